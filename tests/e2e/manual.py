"""Manual pages: one for each command, complete, well-formed, found by man where they are installed."""
import json
import os
import re
import shutil
import subprocess

from harness import BUILD, Skip, main, test

OPTION = re.compile(r"^  (?:-(\w), )?--([\w-]+)", re.MULTILINE)


def commands(workdir):
    names = re.findall(r"^  (\w+) +", workdir.wattle("--help").stdout, re.MULTILINE)
    assert len(names) >= 12, names
    return names


def parts(workdir, command):
    return re.findall(rf"^  {command} (\w+) +", workdir.wattle(command, "--help").stdout, re.MULTILINE)


def plain(page):
    """A page's source as the words that a reader sees."""
    return re.sub(r"\\f[BRI]|\\&", "", page).replace("\\-", "-").replace("\\e", "\\")


@test
def pages(workdir):
    """each command has a page with its usage and all its options; the main page names all commands"""
    overview = plain(workdir.wattle("--manual").stdout)
    for command in commands(workdir):
        page = plain(workdir.wattle("--manual", command).stdout)
        assert f".BR wattle-{command} (1)" in overview and f"\nwattle-{command} - " in page, command
        for name in [command, *(f"{command} {part}" for part in parts(workdir, command))]:
            help_text = workdir.wattle(*name.split(), "--help").stdout
            usage = help_text.splitlines()[0].removeprefix(f"usage: wattle {name} ")
            if name == command and parts(workdir, command):
                continue  # "list|get|…": the page has each of them instead
            assert usage in " ".join(page.split("\n")), (name, usage)
            for letter, option in OPTION.findall(help_text.partition("\noptions:\n")[2].partition("\nexamples:\n")[0]):
                assert re.search(rf"^(-{letter}, )?--{option}( .*|\[=.*)?$", page, re.MULTILINE), (name, option)
            for line in re.findall(r"^  (wattle .*)$", help_text.partition("\nexamples:\n")[2], re.MULTILINE):
                assert f".B {line}\n" in page, (name, line)


@test
def json_fields(workdir):
    """page of `wattle schema`: each document, and each field of the schemas with its meaning, without deprecated
    names"""
    page = plain(workdir.wattle("--manual", "schema").stdout)
    words = " ".join(page.split())
    for name in workdir.wattle("schema").stdout.split():
        assert f".B {name}\n" in page, name
        for kind in json.loads(workdir.wattle("schema", name).stdout)["$defs"].values():
            for key, field in kind.get("properties", {}).items():
                if field.get("deprecated"):
                    continue
                assert f".TP\n{key} (" in page, (name, key)
                assert " ".join(re.sub(r" \([^()]*\)$", "", field.get("description", "")).split()) in words, (name, key)


@test
def well_formed(workdir):
    """mandoc's lint: no message for any page"""
    if shutil.which("mandoc") is None:
        raise Skip("mandoc is not installed")
    for words in ([], *([name] for name in commands(workdir))):
        path = workdir.folder / "page.1"
        path.write_text(workdir.wattle("--manual", *words).stdout)
        done = workdir.finish(workdir.start("-Tlint", "-W", "style", path, program="mandoc"))
        said = [line for line in done.stdout.splitlines() + done.stderr.splitlines()
                if "referenced manual not found" not in line]
        assert not said, said


@test
def installed(workdir):
    """installed files: in the folders of man, bash-completion, zsh and fish, and man finds the pages"""
    if shutil.which("meson") is None:
        raise Skip("meson is not installed")
    place = workdir.folder / "place"
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", place], check=True,
                   capture_output=True)
    found = {path.name: path for path in place.rglob("*") if path.is_file()}
    for command in commands(workdir):
        page = found[f"wattle-{command}.1"]
        assert page.parent.name == "man1" and page.read_text() == workdir.wattle("--manual", command).stdout, command
    prefix = found["wattle.1"].parents[3]
    for shell, name in (("bash", "share/bash-completion/completions/wattle"),
                        ("zsh", "share/zsh/site-functions/_wattle"),
                        ("fish", "share/fish/vendor_completions.d/wattle.fish")):
        assert (prefix / name).read_text() == workdir.wattle("--completion", shell).stdout, name
    if shutil.which("man") is None:
        raise Skip("man is not installed")
    shown = workdir.finish(workdir.start("-P", "cat", "wattle-cap", program="man",
                                   env={"MANPATH": str(prefix / "share/man"), "MANWIDTH": "80",
                                        "PATH": os.environ["PATH"]}))
    assert "wattle cap tune DEVICE" in " ".join(shown.stdout.split()), shown


@test
def unknown_page(workdir):
    """page of an unknown command: one line, status 2"""
    done = workdir.wattle("--manual", "fly")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "'fly'" in done.stderr, done


if __name__ == "__main__":
    main()
