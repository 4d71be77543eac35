"""Shared by the end-to-end tests: they run the built program as a user does, each in a folder of its own.

A test is a function with the decorator @test; its docstring is its title: condition and expected result. It gets a
WorkDir: a temporary folder, which is the working directory of everything it starts, with methods that start wattle and
the burner. All processes of a test are stopped by their pids when it ends, orphans too. Each program prints TAP.
"""
import contextlib
import fcntl
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = pathlib.Path(os.environ["WATTLE_BUILD"])
TESTS = pathlib.Path(os.environ["WATTLE_TESTS"]).resolve()
WATTLE = BUILD / "src/cli/wattle"
BURNER = BUILD / "tests/fakes/burner"
TIMEOUT_S = 60
ORPHANS_END_S = 5

tests = []


NOBODY = 65534
# Warning of a busy machine, in any test; lost samples themselves are in the report.
LOST = re.compile(r"^wattle: warning: \d+ of \d+ samples were lost\n", re.MULTILINE)


@contextlib.contextmanager
def locked_by_a_reader(path, all_bytes=False):
    """All locks that a user with read access can hold on a file: flock's, and a read lock on each byte. all_bytes:
    SQLite's own bytes (512 from 0x40000000 on) too."""
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for first, n in [(0, 0)] if all_bytes else [(0, 0x40000000), (0x40000200, 0)]:
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, first, n, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        yield


# Of a document: why it is not run, if so; its indentation; its text.
SHELL_BLOCK = re.compile(r"^( *<!-- not run: [^\n]+ -->\n)?( *)```(?:sh|console)\n(.*?)^\2```$",
                         re.MULTILINE | re.DOTALL)


class Skip(Exception):
    """This machine cannot run the test."""


def test(function):
    tests.append(function)
    return function


def sum_without_none(ledger):
    """The sum of a ledger's rows. Idle energy may be unknown; the other rows contain it then."""
    return math.fsum(value for value in ledger.values() if value is not None)


def near(actual, expected, relative=0.0, absolute=0.0):
    """Fails with both numbers unless actual lies within the larger of the two tolerances of expected."""
    assert actual is not None, f"null, expected about {expected}"
    allowed = max(relative * abs(expected), absolute)
    assert abs(actual - expected) <= allowed, f"{actual} is not within {allowed:.6g} of {expected}"


def gap_s(times_ns, t_ns):
    """Seconds between the times before and after an instant, which itself may be one of them."""
    before = [t for t in times_ns if t < t_ns][-1:]
    after = [t for t in times_ns if t > t_ns][:1]
    return ((after or [t_ns])[0] - (before or [t_ns])[0]) / 1e9


def wait_until(condition, what, seconds=20.0):
    """Waits for an event, not for a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what}: did not happen within {seconds} s")


def run_first():
    """Raises the priority of the calling thread, which simulates hardware, above other programs where that is allowed:
    returns whether it is."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    return True


def children_of(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def guards_of(pid):
    """The guards of the limits of a process."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"--cap-guard" in words and str(pid).encode() in words:
            found.append(int(entry.name))
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found


def end_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def in_processes_of_its_own():
    """Starts the program again in a PID namespace, where that is allowed: it sees no processes of other tests."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() != 1 and subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


class WorkDir:
    def __init__(self, folder):
        self.folder = folder
        # A helper that serves this machine must not affect a test.
        self.environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder), "WATTLE_HELPER": "off"}
        self.started = []

    def start(self, *arguments, program=WATTLE, **options):
        """Starts wattle (or another program) and returns at once; stopped at the end of the test."""
        environment = {**self.environment, **options.pop("env", {})}
        process = subprocess.Popen([str(program), *map(str, arguments)], cwd=options.pop("cwd", self.folder),
                                   env={k: v for k, v in environment.items() if v is not None},
                                   stdin=options.pop("stdin", subprocess.DEVNULL),
                                   stdout=options.pop("stdout", subprocess.PIPE),
                                   stderr=options.pop("stderr", subprocess.PIPE), **options)
        self.started.append(process)
        return process

    def finish(self, process, input=None):
        """Waits for a started program; a sanitizer's message fails the test."""
        out, err = process.communicate(input, timeout=TIMEOUT_S)
        done = subprocess.CompletedProcess(process.args, process.returncode,
                                           *(text.decode("utf-8", "replace") if text is not None else None
                                             for text in (out, err)))
        for sign in ("Sanitizer", "runtime error:"):
            assert sign not in (done.stderr or ""), done.stderr
        done.stderr = done.stderr and LOST.sub("", done.stderr)
        return done

    def wattle(self, *arguments, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*arguments, **options), input)

    def report(self, *arguments, status=0, **options):
        """Runs `wattle run -q … --json FILE` and returns the report and the completed process."""
        path = self.folder / "report.json"
        done = self.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--json", path, *arguments, **options)
        assert done.returncode == status, f"status {done.returncode}, expected {status}: {done.stderr}"
        return json.loads(path.read_text()), done

    def burn(self, *act, options=(), status=0, **keywords):
        """Measures a burner: the report, and the burner's own figures."""
        report, done = self.report(*options, "--", BURNER, *act, status=status, **keywords)
        return report, json.loads(done.stdout.splitlines()[-1])

    def tree(self, name, files):
        """Writes {path: text} as a tree of files and returns its folder."""
        top = self.folder / name
        top.mkdir(exist_ok=True)
        for path, text in files.items():
            target = top / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return top

    def for_everybody(self):
        """The folder and copies of the programs that an unprivileged user may use, wherever the build lies."""
        self.folder.chmod(0o1777)
        return [shutil.copy2(program, self.folder / program.name) for program in (WATTLE, BURNER)]

    def rows(self, query, path="run.sqlite"):
        connection = sqlite3.connect(f"file:{self.folder / path}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def reading_times_ns(self, path="run.sqlite"):
        """The times at which the run's sensors were read: a busy machine delays them, and the test knows by how
        much."""
        return [row[0] for row in self.rows("SELECT DISTINCT t_ns FROM device_sample ORDER BY t_ns", path)]

    def orphans(self):
        """Processes of the test that still run, found by the temporary folder in their environment."""
        mark, found = f"TMPDIR={self.folder}".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if mark in environment.split(b"\0") and is_alive(int(entry.name)):
                found.append(int(entry.name))
        return found

    def stop_all(self):
        for process in self.started:
            if process.poll() is None:
                for pid in [process.pid, *descendants_of(process.pid)]:
                    end_process(pid)
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def stop_orphans(self, grace_s):
        """Ends processes that outlive their parent, such as the command of a killed recorder. Guards may take their
        time."""
        end = time.monotonic() + grace_s
        while (pids := self.orphans()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in pids:
            print(f"# ended: process {pid}: {command_of(pid)[:200]}", flush=True)
        end = time.monotonic() + ORPHANS_END_S
        while pids and time.monotonic() < end:  # they may fork meanwhile
            for pid in pids:
                end_process(pid)
            pids = self.orphans()


def run_one(function):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wattle-e2e-", dir=os.environ.get("TMPDIR")))
    workdir = WorkDir(folder)
    grace_s = 0
    try:
        function(workdir)
        grace_s = ORPHANS_END_S
    finally:
        workdir.stop_all()
        workdir.stop_orphans(grace_s)
        shutil.rmtree(folder, ignore_errors=True)


def cpu_s():
    return sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main():
    """Runs the tests of the program, or those whose names are given, and prints TAP."""
    chosen = [f for f in tests if len(sys.argv) == 1 or f.__name__ in sys.argv[1:]]
    print(f"1..{len(chosen)}", flush=True)
    failed = False
    for number, function in enumerate(chosen, 1):
        name = f"{number} - {' '.join((function.__doc__ or function.__name__).split())}"
        began_s, began_cpu_s = time.monotonic(), cpu_s()
        try:
            run_one(function)
            print(f"ok {name}", flush=True)
        except Skip as reason:
            print(f"ok {name} # SKIP {reason}", flush=True)
        except Exception:
            failed = True
            print(f"not ok {name}")
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
        print(f"# {function.__name__}: {time.monotonic() - began_s:.1f} s, CPU {cpu_s() - began_cpu_s:.1f} s",
              flush=True)
    sys.exit(failed)
