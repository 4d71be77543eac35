"""Every example of --help, the manual and the documents runs unchanged, in a folder with the files it needs.

A shell block of a document that no test can run has a comment before it: <!-- not run: REASON -->."""
import re
import shlex
import shutil

from gpu_card import Card
from harness import BUILD, SHELL_BLOCK, TESTS, WATTLE, main, test

SPANNER = BUILD / "tests/fakes/spanner"
PROGRAMS = {  # programs that examples call
    "train": f"#!/bin/sh\n[ -z \"$WATTLE_RING\" ] || exec {SPANNER} pulse 1\nsleep 0.2\n",
    "old": "#!/bin/sh\nsleep 0.1\n",
    "new": "#!/bin/sh\nsleep 0.12\n",
    "Makefile": "all:\n\t@sleep 0.1\n",
}
SPAN_FILES = ("first.csv", "second.csv")
PROGRAM_C = """#include <wattle.h>
int main(void)
{
	WATTLE_SPAN("step")
		wattle_metric("tokens", 4096);
	return 0;
}
"""
TOP = TESTS.parent
ELSEWHERE = {"tutorial.md", "helper.md", "prometheus.md", "slurm.md"}  # tests/e2e/tutorial.py, operators.py
OTHER_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$|((?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(?:\$ |sudo |wattle [a-z]|pip install)", re.MULTILINE)
LEFT_OUT = {
    "cap tune": "takes minutes; tests/e2e/cap_tune.py",
    "model": "wants a model; tests/e2e/model.py",
    "top": "a terminal; tests/e2e/top.py",
    "serve": "does not end; tests/e2e/serve.py",
    "attach": "wants a process; here with one",
    "push": "wants a server; tests/e2e/push.py",
}


def commands(workdir):
    for command in re.findall(r"^  (\w+) +", workdir.wattle("--help").stdout, re.MULTILINE):
        yield command
        for part in re.findall(rf"^  {command} (\w+) +", workdir.wattle(command, "--help").stdout, re.MULTILINE):
            yield f"{command} {part}"


def examples(workdir):
    for command in commands(workdir):
        text = workdir.wattle(*command.split(), "--help").stdout.partition("\nexamples:\n")[2]
        for line in re.findall(r"^  (wattle .*)$", text, re.MULTILINE):
            yield command, line


def prepare(workdir):
    for name, text in PROGRAMS.items():
        path = workdir.folder / name
        path.write_text(text)
        path.chmod(0o755)
    for number, name in enumerate(SPAN_FILES):
        (workdir.folder / name).write_text(
            f"process_id,code_block_name,position,timestamp\n{number},a,0,1.0\n{number},a,1,2.0\n")
    for name in ("run.sqlite", "a.sqlite", "b.sqlite"):
        workdir.wattle("run", "-q", "-o", name, "--", SPANNER, "pulse", "0.3")
    workdir.environment["PATH"] = f"{WATTLE.parent}:{BUILD / 'src/helper'}:{workdir.environment['PATH']}"


def surroundings(workdir):
    """A machine with one GPU of a fake NVML."""
    (workdir.folder / "cards").write_text(Card().text())
    return {"WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
            "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
            "WATTLE_STATE": str(workdir.folder / "state")}


def documents():
    return [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]


@test
def all_of_them(workdir):
    """each example: status 0"""
    prepare(workdir)
    env = surroundings(workdir)
    found = list(examples(workdir))
    may_profile = workdir.wattle("run", "-q", "--profile", "-o", "probe.sqlite", "--", "true").returncode == 0
    assert len(found) > 15 and {"run", "cap set", "report"} <= {command for command, _ in found}, found
    for command, line in found:
        if command in LEFT_OUT and command != "attach":
            continue
        if "profile" in line and not may_profile:
            continue
        script = f"sleep 2 & sleep 0.2; {line}" if command == "attach" else line
        done = workdir.finish(workdir.start("-c", script, program="/bin/sh", env=env))
        assert done.returncode == 0 or command == "sensors", (line, done.stdout[-500:], done.stderr[-500:])
        assert "unknown option" not in done.stderr, (line, done.stderr)


@test
def options_that_exist(workdir):
    """examples that are not run here: name options that their command has"""
    for command, line in examples(workdir):
        known = workdir.wattle(*command.split(), "--help").stdout
        words = shlex.split(line.partition(" -- ")[0])[1:]
        for word in words:
            if word.startswith("--"):
                assert re.search(rf"{word.partition('=')[0]}\b", known), (line, word)


@test
def shell_blocks(workdir):
    """each shell block of each document: status 0, or a comment before it with the reason why it is not run"""
    prepare(workdir)
    (workdir.folder / "program.c").write_text(PROGRAM_C)
    env = {**surroundings(workdir), "LD_LIBRARY_PATH": str(BUILD / "src"),
           "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"),
           "ASAN_OPTIONS": "detect_leaks=0"}
    n_run = 0
    for page in documents():
        here = workdir.folder / f"of-{page.stem}"
        for reason, _, block in SHELL_BLOCK.findall(page.read_text()) if page.name not in ELSEWHERE else []:
            if reason:
                continue
            if not here.exists():
                here.mkdir()
                for name in (*PROGRAMS, *SPAN_FILES, "program.c", "run.sqlite", "a.sqlite", "b.sqlite"):
                    shutil.copy2(workdir.folder / name, here / name)
            done = workdir.finish(workdir.start("-ec", block, program="/bin/sh", env=env, cwd=here))
            assert done.returncode == 0, (page.name, block, done.stdout[-500:], done.stderr[-1500:])
            n_run += 1
    assert n_run > 15, n_run


@test
def no_hidden_commands(workdir):
    """commands in documents are in blocks marked as shell, which the test above reads"""
    for page in documents():
        rest = SHELL_BLOCK.sub("", page.read_text())
        for fenced, indented in OTHER_BLOCK.findall(rest):
            assert not COMMAND.search(fenced or indented), (page.name, fenced or indented)


if __name__ == "__main__":
    main()
