"""Results of tools/run-tests.py for test programs that pass, fail, crash, hang or leave something behind: it runs
simulated ones."""
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

PASS = "echo 1..1; echo ok 1 - fine"
FAIL = "echo 1..1; echo not ok 1 - wrong; exit 1"
# Would pass the second time: the file exists from then on.
ONCE = "test -e a.mark || { : > a.mark; echo 1..1; echo not ok 1 - unlucky; exit 1; }; " + PASS
SPIN = "/usr/bin/python3 -S -c 'import time\nwhile time.process_time() < 0.5: pass'"
LOCKED = "mkdir lock && sleep 0.3 && rmdir lock && " + PASS
MEET = ": > {here}.begin; until test -e {other}.begin; do sleep 0.01; done; : > {here}.end; " + PASS
# A daemon: in a session of its own, its parent gone.
DAEMON = "(setsid sh -c 'echo $$ > {name}.pid; exec sleep 3600' &); until test -s {name}.pid; do sleep 0.01; done; "
CLOSING = "{} passed, {} failed, 0 skipped"

ROWS = [  # title, {program: script}, exit status, closing counts, required lines
    ("programs that pass: run once; those of the suite check only on request", {"a": PASS, "b": PASS, "check": FAIL},
     0, (2, 0), []),
    ("program that fails: not run again", {"a": ONCE, "b": FAIL}, 1, (0, 2),
     ["     failed: unlucky", "     failed: wrong"]),
    ("crash: a failure, in addition to the incomplete plan", {"a": "kill -SEGV $$"}, 1, (0, 2),
     ["     failed: ended by signal 11"]),
    ("incomplete plan: a failure", {"a": "echo 1..2; echo ok 1 - fine"}, 1, (1, 1),
     ["     failed: 2 tests were planned, 1 were run"]),
    ("no output: a failure", {"a": "true"}, 1, (0, 1), ["     failed: no TAP plan was printed"]),
    ("program that hangs: ended", {"a": "exec sleep 60"}, 1, (0, 2), ["     failed: still running after 1 s"]),
    ("CPU time: that of all started processes, ended daemons included",
     {"a": PASS, "b": f"(setsid {SPIN} &); " + PASS}, 0, (2, 0),
     [r"  CPU +(0\.[5-9]|[1-9]\.\d) s of .*  e2e/b", r"  CPU +0\.[0-4] s of .*  e2e/a"]),
    ("concurrent programs overlap; those that judge time do not overlap each other, the last one overlaps none",
     {"a1": LOCKED, "last": "test -e b1.end && " + LOCKED, "a2": LOCKED, "b1": MEET.format(here="b1", other="b2"),
      "b2": MEET.format(here="b2", other="b1")}, 0, (5, 0), []),
]


LEAVES = {  # {program: (script, the runner's message)}; "b…" run concurrently
    "b1": (DAEMON.format(name="b1") + PASS, "left behind: process {pid}: sleep 3600"),
    "b2": (DAEMON.format(name="b2") + FAIL, "left behind: process {pid}: sleep 3600"),
    "b3": (DAEMON.format(name="b3") + "kill -SEGV $$", "left behind: process {pid}: sleep 3600"),
    "b4": (DAEMON.format(name="b4") + "sleep 60", "still running after 1 s"),
    "b5": ("mkdir $TMPDIR/d; : > $TMPDIR/d/file; " + PASS, "left behind: $TMPDIR/d"),
    "b6": ("sleep 1 & " + PASS, None),  # as guards do: it ends by itself
}
MOUNT = "mkdir $TMPDIR/m; mount -t tmpfs none $TMPDIR/m && : > mounted && : > $TMPDIR/m/file || rmdir $TMPDIR/m; " + PASS
BUSY = ("echo $$ > pids; while :; do mktemp $TMPDIR/fXXXXXX > name; setsid sleep 3600 & echo $! >> pids; sleep 0.01; "
        "done")
CGROUP = ("for top in /sys/fs/cgroup/unified /sys/fs/cgroup; do mkdir -p $top/wattle-$$-left/below && echo "
          "$top/wattle-$$-left > made && break; done; ")
SHARED_MEMORY = "test $TMPDIR != /tmp || : > /dev/shm/{name}; " + PASS
# A file in /tmp that ignores $TMPDIR: detected where the program has a /tmp of its own.
STRAY = "test $TMPDIR != /tmp || : > /tmp/stray; " + PASS


def is_beside(name):
    return name[0] == "b" and name[1:].isdigit()


def start(folder, programs, *options):
    """Starts the runner over programs, with a meson in PATH that lists only these; "b4" has priority 4 and runs beside
    others."""
    tests = [{"name": name, "suite": ["wattle:check" if name == "check" else "wattle:e2e"],
              "cmd": ["/bin/sh", "-c", script], "env": {}, "workdir": str(folder),
              "timeout": 1 if "sleep 60" in script else 60, "is_parallel": is_beside(name),
              "priority": int(name[1:]) if is_beside(name) else -(name == "last")} for name, script in programs.items()]
    (folder / "tests.json").write_text(json.dumps(tests))
    meson = folder / "meson"
    meson.write_text(f"#!/bin/sh\ncat {folder}/tests.json\n")
    meson.chmod(0o755)
    return subprocess.Popen([sys.executable, RUNNER, "build", *options], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(folder)})


def run(folder, programs):
    process = start(folder, programs)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def check(programs, status, counts, lines):
    with tempfile.TemporaryDirectory() as folder:
        done = run(pathlib.Path(folder), programs)
    said = done.stdout.splitlines()
    wrong = []
    if done.returncode != status:
        wrong.append(f"status {done.returncode}, expected {status}")
    if not said or said[-1] != CLOSING.format(*counts):
        wrong.append(f"closing line {said[-1:]}, expected {CLOSING.format(*counts)}")
    wrong += [f"not printed: {line}" for line in lines if not any(re.fullmatch(line, other) for other in said)]
    return wrong and wrong + said + done.stderr.splitlines()


def text_of(path):
    try:
        return path.read_text().strip()
    except OSError:  # a process may end while its file is read
        return ""


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def is_alive(pid):
    return text_of(pathlib.Path(f"/proc/{pid}/cmdline")) != ""


def idle_is_listed(folder):
    """--idle: lists the CPU time that nobody used while a program ran alone"""
    said = start(folder, {"a": "sleep 1.5; " + PASS}, "--idle").communicate()[0]
    return not re.search(r"^\d+ s of CPU time unused:\n +\d+\.\d s  a$", said, re.MULTILINE) and said.splitlines()


def at_once(is_idle):
    """The most programs that ran at once."""
    spec = importlib.util.spec_from_file_location("run_tests", RUNNER)
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    now, most, lock = [], [], threading.Lock()

    def run_none(test, nice=0):
        with lock:
            now.append(test)
            most.append(len(now))
        time.sleep(3 * runner.TICK_S)
        with lock:
            now.remove(test)

    runner.run, runner.idle_s = run_none, lambda: is_idle * (os.cpu_count() or 1) * time.monotonic()
    tests = [{"name": str(i), "priority": 0, "is_parallel": True} for i in range(5 * (os.cpu_count() or 1))]
    assert len(list(runner.run_all(tests, runner.Idle()))) == len(tests)
    return max(most)


def idle_cpus_are_used(folder):
    """programs that wait: two for each CPU run at once; while a CPU is idle, further ones"""
    busy, idle = at_once(False), at_once(True)
    good = busy == 2 * (os.cpu_count() or 1) < idle <= 4 * (os.cpu_count() or 1)
    return not good and [f"at once: {busy} on a busy machine, {idle} on an idle one"]


def leaves_nothing(folder):
    """processes and files left by programs that pass, fail, crash or hang: removed, and reported as failures"""
    done = run(folder, {name: script for name, (script, _) in LEAVES.items()})
    wrong = []
    for name, (_, said) in LEAVES.items():
        pid = text_of(folder / f"{name}.pid")
        line = said and said.format(pid=pid)
        if line and line not in done.stdout:
            wrong.append(f"{name}: not said: {line}")
        if pid and is_alive(pid):
            wrong.append(f"{name}: {pid} is still there")
    wrong += [f"{made} is still there" for made in folder.glob("wt-*")]
    if "ok   e2e/b6" not in done.stdout:
        wrong.append("b6: what ends by itself is no failure")
    return wrong and wrong + done.stdout.splitlines() + done.stderr.splitlines()


def leaves_no_mounts(folder):
    """mount in the temporary folder, and file in /tmp with a fixed name: removed and reported, where mounts are
    allowed"""
    done = run(folder, {"a": MOUNT, "b": STRAY})
    good = not list(folder.glob("wt-*")) and str(folder) not in text_of(pathlib.Path("/proc/self/mountinfo"))
    allowed = (folder / "mounted").exists()
    good = good and all((f"left behind: $TMPDIR/{name}" in done.stdout) == allowed for name in ("m", "stray"))
    return not good and done.stdout.splitlines()


def leaves_nothing_when_killed(folder):
    """program killed at a random moment while it starts daemons and writes files: leaves nothing"""
    runner = start(folder, {"b1": BUSY})
    wait_until(lambda: text_of(folder / "pids").count("\n") > 1)
    time.sleep(random.uniform(0, 0.5))
    main, *daemons = map(int, text_of(folder / "pids").split())
    os.kill(main, signal.SIGKILL)
    said, _ = runner.communicate()
    left = [pid for pid in map(int, text_of(folder / "pids").split()) if is_alive(pid)] + list(folder.glob("wt-*"))
    good = not left and "failed: ended by signal 9" in said and f"left behind: process {daemons[0]}: sleep 3600" in said
    return not good and [str(left), *said.splitlines()]


def leaves_nothing_without_keeper(folder):
    """killed keeper: its program fails; the runner ends the processes of that program and removes its folder"""
    runner = start(folder, {"b1": DAEMON.format(name="b1") + "echo $PPID > keeper; exec sleep 3600", "b2": PASS})
    wait_until(lambda: text_of(folder / "keeper"))
    os.kill(int(text_of(folder / "keeper")), signal.SIGKILL)
    try:
        said, _ = runner.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        runner.kill()
        said, _ = "the runner does not end", runner.wait()
    pid = int(text_of(folder / "b1.pid"))
    left = [str(pid)] * is_alive(pid) + list(folder.glob("wt-*"))
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)
    lines = ("failed: ended by signal 9", f"failed: left behind: process {pid}",
             "failed: left behind: " + str(folder / "wt-"), "ok   e2e/b2")
    good = not left and all(line in said for line in lines)
    return not good and [str(left), *said.splitlines()]


def leaves_no_cgroups(folder):
    """a cgroup of a program that is killed is removed, and is a failure, where cgroups are allowed"""
    done = run(folder, {"a": CGROUP + "kill -9 $$"})
    made = text_of(folder / "made")
    good = not made or (f"left behind: cgroup {made}" in done.stdout and not os.path.exists(made))
    for path in (made + "/below", made) if made and os.path.exists(made) else ():
        os.rmdir(path)
    return not good and done.stdout.splitlines()


def leaves_no_shared_memory(folder):
    """POSIX shared memory that a program leaves is removed, where mounts are allowed"""
    name = f"wattle-test-{os.getpid()}"
    done = run(folder, {"a": SHARED_MEMORY.format(name=name)})
    made = pathlib.Path("/dev/shm", name)
    good = not made.exists() and CLOSING.format(1, 0) in done.stdout
    made.unlink(missing_ok=True)
    return not good and done.stdout.splitlines()


def ends_with_the_runner(folder):
    """runner interrupted, ended or killed: all started processes end, their temporary folders are removed"""
    wrong = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        name = f"b{number.value}"
        runner = start(folder, {name: DAEMON.format(name=name) + f": > {name}.ready; exec sleep 3600", "after": PASS})
        wait_until((folder / f"{name}.ready").exists)
        runner.send_signal(number)
        runner.communicate()
        pid = text_of(folder / f"{name}.pid")
        if not (pid and wait_until(lambda: not is_alive(pid) and not list(folder.glob("wt-*")))):
            wrong.append(f"{number.name}: {pid} or its folder is still there")
    return wrong


def in_folder(function):
    with tempfile.TemporaryDirectory() as folder:
        return function(pathlib.Path(folder))


def main():
    checks = [(teaches, lambda row=row: check(*row)) for teaches, *row in ROWS]
    checks += [(function.__doc__, lambda function=function: in_folder(function))
               for function in (idle_is_listed, idle_cpus_are_used, leaves_nothing, leaves_nothing_when_killed, leaves_nothing_without_keeper,
                                leaves_no_mounts,
                                leaves_no_shared_memory, leaves_no_cgroups, ends_with_the_runner)]
    print(f"1..{len(checks)}")
    failed = False
    for number, (teaches, judge) in enumerate(checks, 1):
        wrong = judge()
        print(f"{'not ok' if wrong else 'ok'} {number} - {teaches}")
        for line in wrong or []:
            print(f"#   {line}")
        failed = failed or bool(wrong)
    sys.exit(failed)


RUNNER = sys.argv[1]
main()
