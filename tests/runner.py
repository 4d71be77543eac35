"""What tools/run-tests.py makes of test programs that pass, fail, crash, or fail by bad luck: it is run on made ones."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PASS = "echo 1..1; echo ok 1 - fine"
FAIL = "echo 1..1; echo not ok 1 - wrong; exit 1"
# Fails the first time: the file is there from then on.
ONCE = "test -e {mark} || {{ : > {mark}; echo 1..1; {first}echo not ok 1 - unlucky; exit 1; }}; " + PASS
STATUS_AS_TAP = "status=$?; echo 1..1; if test $status = 0; then echo ok 1; else echo not ok 1; fi"
MEET = ": > {here}.begin; until test -e {other}.begin; do sleep 0.01; done; : > {here}.end; " + PASS
HANG_ONCE = "test -e a.mark || { : > a.mark; exec sleep 60; }; "
CLOSING = "{} passed, {} failed, 0 skipped"

ROWS = [  # what it teaches, {program: script}, exit status, closing counts, lines that must be there
    ("programs that pass are run once", {"a": PASS, "b": PASS}, 0, (2, 0), []),
    ("a program that fails twice has failed", {"a": PASS, "b": FAIL}, 1, (1, 1),
     ["     failed once: wrong", "     failed: wrong"]),
    ("one that fails once passes, is named, and what it said is printed", {"a": ONCE.format(mark="a.mark", first="")}, 0, (1, 0),
     ["     | not ok 1 - unlucky", "     failed once: unlucky", "passed when run again alone: e2e/a"]),
    ("a report of AddressSanitizer is never forgiven",
     {"a": ONCE.format(mark="a.mark", first="echo == ERROR: AddressSanitizer: heap-use-after-free; ")}, 1, (0, 1),
     ["     failed: unlucky"]),
    ("nor one of UBSan",
     {"a": ONCE.format(mark="a.mark", first="echo x.c:1:2: runtime error: shift of negative value; ")}, 1, (0, 1), []),
    ("nor a crash", {"a": "test -e a.mark || { : > a.mark; kill -SEGV $$; }; " + PASS}, 1, (0, 2),
     ["     failed: ended by signal 11"]),
    ("a plan that is not kept is a failure", {"a": "echo 1..2; echo ok 1 - fine"}, 1, (1, 1),
     ["     failed: 2 tests were planned, 1 were run"]),
    ("no output at all is a failure", {"a": "true"}, 1, (0, 1), ["     failed: no TAP plan was printed"]),
    ("one that hangs is ended, and has another try", {"a": HANG_ONCE + PASS}, 0, (1, 0), ["     failed once: still running after 1 s"]),
    ("where many fail it is no bad luck: eight have another try",
     {f"p{i}": ONCE.format(mark=f"p{i}.mark", first="") for i in range(10)}, 1, (8, 2), ["passed when run again alone: e2e/p7"]),
    ("two that wait for each other run side by side; one that runs alone comes after all others",
     {"a": f"test -e b1.end && test -e b2.end; {STATUS_AS_TAP}", "b1": MEET.format(here="b1", other="b2"),
      "b2": MEET.format(here="b2", other="b1")}, 0, (3, 0), []),
]


def is_beside(name):
    return name[0] == "b" and name[1:].isdigit()


def run(folder, programs):
    """Runs the runner over programs, with a meson in PATH that knows them alone; "b4" is one of priority 4 that runs beside others."""
    tests = [{"name": name, "suite": ["wattle:e2e"], "cmd": ["/bin/sh", "-c", script], "env": {}, "workdir": str(folder),
              "timeout": 1 if "sleep 60" in script else 60, "is_parallel": is_beside(name),
              "priority": int(name[1:]) if is_beside(name) else 0} for name, script in programs.items()]
    (folder / "tests.json").write_text(json.dumps(tests))
    meson = folder / "meson"
    meson.write_text(f"#!/bin/sh\ncat {folder}/tests.json\n")
    meson.chmod(0o755)
    return subprocess.run([sys.executable, RUNNER, "build"], capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})


def check(programs, status, counts, lines):
    with tempfile.TemporaryDirectory() as folder:
        done = run(pathlib.Path(folder), programs)
    said = done.stdout.splitlines()
    wrong = []
    if done.returncode != status:
        wrong.append(f"status {done.returncode}, expected {status}")
    if not said or said[-1] != CLOSING.format(*counts):
        wrong.append(f"closing line {said[-1:]}, expected {CLOSING.format(*counts)}")
    wrong += [f"not printed: {line}" for line in lines if line not in said]
    return wrong and wrong + said + done.stderr.splitlines()


def main():
    print(f"1..{len(ROWS)}")
    failed = False
    for number, (teaches, *row) in enumerate(ROWS, 1):
        wrong = check(*row)
        print(f"{'not ok' if wrong else 'ok'} {number} - {teaches}")
        for line in wrong:
            print(f"#   {line}")
        failed = failed or bool(wrong)
    sys.exit(failed)


RUNNER = sys.argv[1]
main()
