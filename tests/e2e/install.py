"""make install and make uninstall: files found with the variables that the first prints, and files left by the second.

The build folder of the tests is installed into a folder by DESTDIR: another PREFIX would compile parts of it again."""
import hashlib
import json
import os
import re
import subprocess

from harness import BUILD, NOBODY, TESTS, Skip, main, test

TOP = TESTS.parent
PROGRAM = """#include <wattle.h>
int main(void)
{
	WATTLE_SPAN("installed")
		wattle_metric("tokens", 1);
	return 0;
}
"""
TRACKED = """
import wattle
with wattle.Tracker(sleep_time=0.01) as tracker:
    with wattle.span("work"):
        sum(range(10 ** 6))
assert tracker.report["blocks"][0]["num_calls"] == 1
print(wattle.__file__)
"""


def option(name):
    rows = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", str(BUILD)], check=True,
                                     capture_output=True).stdout)
    return next((row["value"] for row in rows if row["name"] == name), None)


def tool(workdir, *words, status=0):
    done = workdir.finish(workdir.start(TOP / "tools/install.py", *words, program="/usr/bin/python3"))
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


def install(workdir):
    if not option("pkgconfig.relocatable"):
        raise Skip("this build folder is older than -Dpkgconfig.relocatable=true in meson.build: meson setup --wipe")
    return tool(workdir, BUILD, workdir.folder / "dest")


def shell(workdir, lines, script):
    """A shell with nothing in its environment but what a login has, and these lines."""
    words = ["env", "-i", "PATH=/usr/bin:/bin", f"HOME={workdir.folder}", f"TMPDIR={workdir.folder}", "sh", "-ec",
             lines + script]
    done = workdir.finish(workdir.start(*words[1:], program="/usr/bin/env"))
    assert done.returncode == 0, (script, done.stdout[-500:], done.stderr[-1500:])
    return done.stdout


@test
def variables(workdir):
    """with exactly the variables that are printed: wattle and its manual, a C program by pkg-config, and Python's
    package"""
    text = install(workdir)
    lines = "".join(re.findall(r"^export .*\n", text, re.MULTILINE))
    assert re.findall(r"^export (\w+)=", lines, re.MULTILINE) == ["PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH",
                                                                  "PYTHONPATH"], text
    (workdir.folder / "program.c").write_text(PROGRAM)
    assert shell(workdir, lines,
        "command -v wattle; wattle --version").startswith(f"{workdir.folder}/dest/usr/local/bin/wattle\nwattle ")
    shell(workdir, lines,
          "cc program.c $(pkg-config --cflags --libs wattle) -o program\nwattle run -q -o run.sqlite -- ./program")
    assert workdir.rows("SELECT name FROM span") == [("installed",)]
    assert shell(workdir, lines,
                 f"python3 -c '{TRACKED}'").startswith(f"{workdir.folder}/dest/usr/local/lib/python3"), text
    assert shell(workdir, lines,
                 "man -w wattle-run").strip() == f"{workdir.folder}/dest/usr/local/share/man/man1/wattle-run.1"


@test
def without_a_trace(workdir):
    """after two installations uninstall removes all that was written, and Python's cache of it, and nothing else; what
    has changed stays and is named; the second installation removes files that only the first one had"""
    (workdir.folder / "dest/usr/local/bin").mkdir(parents=True)
    mine = workdir.folder / "dest/usr/local/bin/mine"
    mine.write_text("mine")
    before = sorted(workdir.folder.joinpath("dest").rglob("*"))
    install(workdir)
    record = workdir.folder / "dest/usr/local/share/wattle/installed.txt"
    old = workdir.folder / "dest/usr/local/bin/wattle-of-before"
    old.write_text("")
    with record.open("a") as file:
        file.write(f"{hashlib.sha256(b'').hexdigest()}  /usr/local/bin/wattle-of-before\n")
    lines = "".join(re.findall(r"^export .*\n", install(workdir), re.MULTILINE))
    assert not old.exists() and "wattle-of-before" not in record.read_text()
    policy = workdir.folder / "dest/etc/wattle/policy"
    policy.parent.mkdir(parents=True)
    policy.write_text("others read\n")
    shell(workdir, lines, "python3 -c 'import wattle'")
    changed = workdir.folder / "dest/usr/local/share/wattle/prometheus/wattle-targets.yml"
    changed.write_text("- targets: [node1:9095]\n")
    if os.geteuid() == 0:  # another user's record could name files that belong to root
        os.chown(record, NOBODY, -1)
        assert f"belongs to user {NOBODY}" in tool(workdir, "--uninstall", "/usr/local", workdir.folder / "dest",
                                                   status=1)
        os.chown(record, 0, -1)
    makefile = ["make", "-s", "-C", str(TOP), "uninstall", "PREFIX=/usr/local", f"DESTDIR={workdir.folder}/dest"]
    done = subprocess.run(makefile, capture_output=True, text=True, check=True)
    assert f"Kept, changed since it was installed: {changed}" in done.stdout, done
    assert f"Kept, not written by the installation: {policy.parent}" in done.stdout, done
    changed.unlink()
    policy.unlink()
    for folder in [*changed.parents][:3] + [policy.parent, policy.parent.parent]:
        folder.rmdir()
    assert sorted(workdir.folder.joinpath("dest").rglob("*")) == before, sorted(
        workdir.folder.joinpath("dest").rglob("*"))
    again = subprocess.run(makefile, capture_output=True, text=True, check=False)
    assert again.returncode != 0 and "there is no record" in again.stderr, again


if __name__ == "__main__":
    main()
