"""The pages of operators, block by block as they stand there, as root of a machine on which only wattle was installed.

The machine is this one without its /etc, /usr/local, /run and /var/lib: copies and empty folders in their places.
systemd's programs work on files there (SYSTEMD_OFFLINE), so units are enabled, not started. Other hosts and Slurm's
list of nodes are scripts."""
import os
import shutil
import stat
import subprocess

from harness import BUILD, SHELL_BLOCK, TESTS, Skip, main, test

TOP = TESTS.parent
STUBS = {
    "sudo": 'exec "$@"\n',
    "ssh": 'text=$(cat); printf "%s\\n" "$text" | sh -ec "$2"\n',  # all hosts are this one
    # Of systemctl only --now needs a running systemd.
    "systemctl": 'for word; do shift; [ "$word" = --now ] || set -- "$@" "$word"; done; exec /usr/bin/systemctl "$@"\n',
    "sinfo": "printf '  - \"a1:9095\"\\n  - \"a2:9095\"\\n  - \"a1:9095\"\\n'\n",
}
ACCOUNTS = {"passwd": "alice:x:61001:61001::/home/alice:/bin/sh\nprometheus:x:61002:61002::/:/bin/false\n",
            "group": "alice:x:61001:\nprometheus:x:61002:\n"}


def installed(workdir):
    """The build folder, installed once for all pages."""
    if os.geteuid() != 0:
        raise Skip("only root can be root of another machine with its users")
    if shutil.which("bwrap") is None or subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"],
                                                       check=False).returncode != 0:
        raise Skip("bubblewrap can't make another root here")
    done = workdir.finish(workdir.start(TOP / "tools/install.py", BUILD, workdir.folder / "dest",
                                        program="/usr/bin/python3"))
    assert done.returncode == 0, done
    return workdir.folder / "dest/usr/local"


class Machine:
    def __init__(self, workdir, name, local):
        self.workdir, self.top, self.local = workdir, workdir.folder / name, local
        shutil.copytree("/etc", self.top / "etc", symlinks=True,
                        ignore=shutil.ignore_patterns("wattle*", "prometheus", "slurm*"))
        for name, lines in ACCOUNTS.items():
            path = self.top / "etc" / name
            taken = ("wattle", "alice", "prometheus")
            old = [line for line in path.read_text().splitlines(keepends=True) if line.split(":")[0] not in taken]
            path.write_text("".join(old) + lines)
        for folder in ("run", "var/lib", "var/log", "stubs", "blocks"):
            (self.top / folder).mkdir(parents=True)
        for name, text in STUBS.items():
            (self.top / "stubs" / name).write_text(f"#!/bin/sh\n{text}")
            (self.top / "stubs" / name).chmod(0o755)

    def run(self, script):
        places = [word for here, there in (("etc", "/etc"), ("run", "/run"), ("var", "/var"))
                  for word in ("--bind", self.top / here, there)]
        return self.workdir.finish(self.workdir.start(
            "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--tmpfs", "/root", "--ro-bind", TESTS, TESTS,
                                                      *places, "--bind", self.local, "/usr/local",
            "--bind", self.top, self.top, "--proc", "/proc",
            "--dev", "/dev", "--unshare-pid", "--die-with-parent", "--clearenv", "--setenv", "SYSTEMD_OFFLINE", "1",
            "--setenv", "WATTLE_SYSFS", TESTS / "machines/xeon-2s/sys", "--setenv", "ASAN_OPTIONS", "detect_leaks=0",
            "--setenv", "PATH",
            f"{self.top}/stubs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--chdir",
            self.top / "blocks",
            "sh", "-ec", script, program="bwrap"))

    def follow(self, page):
        """Runs the blocks of a page; the number of those that are not run."""
        left_out = 0
        for number, (reason, indent, block) in enumerate(SHELL_BLOCK.findall((TOP / "docs" / page).read_text())):
            left_out += bool(reason)
            if not reason:
                text = "".join(line.removeprefix(indent) for line in block.splitlines(keepends=True))
                done = self.run(text)
                assert done.returncode == 0, (page, number, text, done.stdout[-1500:], done.stderr[-1500:])
        return left_out

    def mode(self, path):
        return stat.S_IMODE((self.top / path).stat().st_mode)

    def enabled(self):
        return {path.name for path in (self.top / "etc/systemd/system").glob("*.wants/wattle*")}


@test
def pages(workdir):
    """docs/prometheus.md, slurm.md and helper.md, followed literally: all folders and files are where the pages say,
    units are enabled and valid, the policies are valid, promtool accepts the configuration"""
    local = installed(workdir)

    machine = Machine(workdir, "prometheus", local)
    assert machine.follow("prometheus.md") == 0
    assert machine.mode("etc/wattle/token") == 0o600 and machine.mode("etc/prometheus/wattle.token") == 0o600
    assert (machine.top / "etc/wattle/token").read_bytes() == (machine.top
                                                               / "etc/prometheus/wattle.token").read_bytes() != b""
    assert (machine.top / "etc/prometheus/wattle.token").stat().st_uid == 61002
    assert (machine.top / "etc/prometheus/wattle-targets.yml").read_text().count("a1:9095") == 1
    assert "wattle:" in (machine.top / "etc/group").read_text() and (machine.top / "var/lib/wattle").is_dir()
    assert {"wattled.socket", "wattle-serve.service", "wattle-textfile.service"} <= machine.enabled(), machine.enabled()
    assert machine.mode("var/lib/prometheus/node-exporter") == 0o775
    done = machine.run("systemd-analyze verify --man=no wattle-serve.service wattled.service wattle-textfile.service")
    assert done.returncode == 0 and "wattle" not in done.stderr, done

    machine = Machine(workdir, "slurm", local)
    assert machine.follow("slurm.md") == 1  # srun, which tests/e2e/slurm_plugin.py does
    assert (machine.top / "etc/slurm/plugstack.conf").read_text() == "include /etc/slurm/wattle.conf\n"
    lines = (machine.top / "etc/slurm/wattle.conf").read_text().splitlines()
    words = next(line for line in lines if not line.startswith("#")).split()
    assert machine.run(f"test -f {words[1]} -a -x {words[2].removeprefix('wattle=')}").returncode == 0, words
    assert (machine.top / "etc/wattle/policy").read_text() == (TOP / "packaging/policy-cluster").read_text()
    assert {"wattled.socket", "wattled.service"} <= machine.enabled(), machine.enabled()
    done = machine.run("wattled --check-policy /etc/wattle/policy")
    assert done.stdout.count("each at most every 100 ms") == 2 and "No rule permits power limits" in done.stdout, done

    machine = Machine(workdir, "helper", local)
    assert machine.follow("helper.md") == 1  # wattled in the foreground, which does not end
    assert "alice" in machine.run("getent group wattle").stdout


if __name__ == "__main__":
    main()
