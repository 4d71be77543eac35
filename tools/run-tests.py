"""Runs the tests of a Meson build folder and closes with one line: N passed, N failed, N skipped.

usage: run-tests.py BUILD [--second-try] [--idle] [NAME...]     only the tests with one of these names or suites; by default
                                        all but those of the suite "check" alone: parts of others

Meson lists the programs; each prints TAP, and every TAP line counts as a test. A program that crashes, runs out of
time, breaks its plan or fails without a failed TAP line counts as one more failed test, so nothing fails silently.

A program that fails has failed, unless --second-try requests that it runs once more, alone. The programs with the most
CPU time are listed before the closing line; --idle lists too the CPU time that nobody used, by the program that ran alone then.

Each program has a keeper of its own (keep-test.py) and a temporary folder of its own. Leftovers of a program, processes,
files or mounts, are removed, and are a failure of that program. A runner that is interrupted or killed leaves nothing; the
runner itself removes what a killed keeper leaves.
"""
import collections
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

RESULT = re.compile(r"^(not )?ok\b(?:\s+\d+)?\s*-?\s*(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
SKIP = re.compile(r"#\s*skip", re.IGNORECASE)
CPU = re.compile(r"^# cpu_s: (\d+\.\d+)$", re.MULTILINE)
KEEPER = str(pathlib.Path(__file__).resolve().parent / "keep-test.py")
PR_SET_CHILD_SUBREAPER = 36
KILLED_S = 10
PROGRAMS_A_CPU = 2  # most of them wait for most of the time
PROGRAMS_A_CPU_MOST = 4  # while a CPU is idle
IDLE_CPUS = 0.4
TICK_S = 0.5
NICE = 10
SLOWEST = 25


@dataclasses.dataclass
class Outcome:
    name: str
    passed: int = 0
    skipped: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    output: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0


def read_tap(outcome):
    """Counts the TAP lines of outcome.output and checks them against the plan."""
    plan, seen, remark = None, 0, ""
    for line in outcome.output.splitlines():
        if line.startswith("# skipped: "):  # a C test prints the reason just before it skips
            remark = "(" + line.removeprefix("# skipped: ") + ")"
        planned, result = PLAN.match(line), RESULT.match(line)
        if planned:
            plan = int(planned[1])
            if plan == 0:
                outcome.skipped.append(line)
        elif line.startswith("Bail out!"):
            outcome.failures.append(line)
        elif result:
            seen += 1
            if SKIP.search(result[2]):
                outcome.skipped.append(f"{result[2]} {remark}".rstrip())
            elif result[1]:
                outcome.failures.append(result[2])
            else:
                outcome.passed += 1
    if plan is None:
        outcome.failures.append("no TAP plan was printed")
    elif plan != seen:
        outcome.failures.append(f"{plan} tests were planned, {seen} were run")


class Keepers:
    """The keepers that run, with their programs' temporary folders. The runner is a subreaper: when a keeper is killed, what its program
    has started becomes children of the runner, which are no keepers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.pids = set()

    def start(self, command, **options):
        with self.lock:
            process = subprocess.Popen(command, **options)
            self.pids.add(process.pid)
            return process

    def orphans(self):
        found = set()
        for task in pathlib.Path("/proc/self/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                found.update(int(word) for word in (task / "children").read_text().split())
        return found - self.pids

    def end_orphans(self):
        left, end = set(), time.monotonic() + KILLED_S
        while (orphans := self.orphans()) and time.monotonic() < end:
            left |= orphans
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)
        return [f"process {pid}" for pid in sorted(left)]

    def end(self, process, folder):
        """After a keeper's end: ends and removes what it has left, and returns descriptions of that. Orphans are those of a keeper
        that was killed, not of one that ends at the same time."""
        with self.lock:
            self.pids.discard(process.pid)
            left = self.end_orphans() if process.returncode < 0 else []
        left += [folder] * os.path.exists(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return left


KEEPERS = Keepers()


def run(test, nice=0):
    suite = test["suite"][0].split(":")[-1] if test["suite"] else ""
    outcome = Outcome(f"{suite}/{test['name']}")
    started = time.monotonic()
    keeper_end, our_end = os.pipe()
    folder = tempfile.mkdtemp(prefix="wt-")  # short, because it contains sockets
    command = ["nice", "-n", str(nice), sys.executable, "-SE", KEEPER, str(keeper_end), folder, *test["cmd"]]
    # Into a file: a process that holds the other end of a pipe could keep the runner waiting after the keeper's death.
    with tempfile.TemporaryFile() as output, open(our_end, "wb") as lifeline:
        process = KEEPERS.start(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                pass_fds=[keeper_end],
                                env={**os.environ, **test["env"]}, cwd=test["workdir"], start_new_session=True)
        os.close(keeper_end)
        try:
            status = process.wait(test["timeout"] or None)
        except subprocess.TimeoutExpired:
            lifeline.close()
            process.wait()
            status = None
        left = KEEPERS.end(process, folder)
        output.seek(0)
        outcome.output = output.read().decode("utf-8", "replace")
    outcome.seconds = time.monotonic() - started
    outcome.cpu_s = sum(map(float, CPU.findall(outcome.output)[-1:]))
    outcome.output = CPU.sub("", outcome.output)
    read_tap(outcome)
    if status is None:
        outcome.failures.append(f"still running after {test['timeout']} s")
    elif status < 0:
        outcome.failures.append(f"ended by signal {-status}")
    elif status != 0 and not outcome.failures:
        outcome.failures.append(f"exit status {status}")
    outcome.failures += [f"left behind: {what}" for what in left]
    return outcome


def show(outcome):
    state = "FAIL" if outcome.failures else "ok  "
    print(f"{state} {outcome.name:32} {outcome.passed:4} passed {outcome.seconds:6.1f} s, CPU {outcome.cpu_s:5.1f} s", flush=True)
    for skipped in outcome.skipped:
        print(f"     skipped: {skipped}")
    if outcome.failures:
        print(outcome.output.strip())
        for failure in outcome.failures:
            print(f"     failed: {failure}")


def show_slowest(outcomes, wall_s):
    print(f"{wall_s:.0f} s, CPU {sum(outcome.cpu_s for outcome in outcomes):.0f} s; the most CPU time:")
    for outcome in sorted(outcomes, key=lambda outcome: -outcome.cpu_s)[:SLOWEST]:
        print(f"  CPU {outcome.cpu_s:6.1f} s of {outcome.seconds:6.1f} s  {outcome.name}")


def idle_s():
    """CPU time that nobody has used since the machine was started."""
    words = pathlib.Path("/proc/stat").read_text().split(maxsplit=6)
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")  # idle, iowait


class Idle:
    """CPU time that nobody used, by the program that judged time meanwhile, or by the number of programs that ran."""

    def __init__(self):
        self.by_program = collections.Counter()
        self.read_s, self.read_idle_s = time.monotonic(), idle_s()

    def add(self, running):
        """Reads it; returns the mean number of idle CPUs since the last call, None if that was just now."""
        past_s = time.monotonic() - self.read_s
        if past_s < TICK_S:
            return None
        unused_s = idle_s() - self.read_idle_s
        self.read_s, self.read_idle_s = self.read_s + past_s, self.read_idle_s + unused_s
        alone = [test["name"] for test in running if not test["is_parallel"]]
        self.by_program[alone[0] if alone else f"{len(running)} programs, none alone"] += unused_s
        return unused_s / past_s

    def show(self):
        print(f"{self.by_program.total():.0f} s of CPU time unused:")
        for name, unused_s in self.by_program.most_common():
            print(f"  {unused_s:6.1f} s  {name}")


def run_all(tests, idle):
    """Programs run concurrently, those of the highest priority first. Those that judge time run one at a time; meanwhile the
    others leave one CPU free and run at a lower priority. With a priority below 0 they run when all others have ended. While
    a CPU is idle, because programs wait, further ones start."""
    cpus, running = os.cpu_count() or 1, {}
    tests = sorted(tests, key=lambda test: -test["priority"])
    alone, beside = ([test for test in tests if test["is_parallel"] == parallel] for parallel in (False, True))
    with concurrent.futures.ThreadPoolExecutor(PROGRAMS_A_CPU_MOST * cpus + 1) as pool:
        while alone or beside or running:
            one_judges_time = not all(test["is_parallel"] for test in running.values())
            if alone and not one_judges_time and (alone[0]["priority"] >= 0 or not (beside or running)):
                test = alone.pop(0)
                running[pool.submit(run, test)] = test
                one_judges_time = True
            places = PROGRAMS_A_CPU * (cpus - 1 if one_judges_time else cpus)
            most = places + 3 if one_judges_time else PROGRAMS_A_CPU_MOST * cpus
            is_idle = (idle.add(running.values()) or 0) > IDLE_CPUS
            while beside and (n := sum(test["is_parallel"] for test in running.values())) < most and (n < places or is_idle):
                is_idle = is_idle and n < places  # one more for each reading
                test = beside.pop(0)
                running[pool.submit(run, test, NICE if one_judges_time else 0)] = test
            for future in concurrent.futures.wait(running, TICK_S, concurrent.futures.FIRST_COMPLETED).done:
                del running[future]
                yield future.result()


def is_wanted(test, wanted):
    suites = {suite.split(":")[-1] for suite in test["suite"]}
    return bool(suites & wanted) or suites != {"check"} and (not wanted or test["name"] in wanted)


def again(outcome, tests):
    """--second-try: a failed program runs once more, alone, and this result counts; the first failure stays in the output."""
    second = run(next(test for test in tests if outcome.name.endswith("/" + test["name"]) and
                      outcome.name.split("/")[0] == test["suite"][0].split(":")[-1]))
    print("run again alone:")
    show(second)
    return second


def main(build, wanted, is_second_try, shows_idle):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A shell's background jobs ignore SIGINT, nohup's SIGHUP, and both would hand that on to every test. A handler is not
    # handed on: what is started begins with the default. The keepers see that we are gone, and end their programs.
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    os.environ.setdefault("ASAN_OPTIONS", "handle_sigill=1")  # UBSan stops programs with SIGILL: print the place
    listing = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True)
    tests = json.loads(listing.stdout)
    tests = [test for test in tests if is_wanted(test, wanted)]
    started, outcomes, idle = time.monotonic(), [], Idle()
    for outcome in run_all(tests, idle):
        show(outcome)
        outcomes.append(outcome)
    if is_second_try:
        outcomes = [again(outcome, tests) if outcome.failures else outcome for outcome in outcomes]
    if len(outcomes) > 1:
        show_slowest(outcomes, time.monotonic() - started)
    if shows_idle:
        idle.show()
    left = KEEPERS.end_orphans()
    for what in left:
        print(f"left behind: {what}")
    failed = sum(len(outcome.failures) for outcome in outcomes) + len(left)
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed} passed, {failed} failed, {sum(len(outcome.skipped) for outcome in outcomes)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    sys.exit(main(words[0], set(words[1:]), "--second-try" in sys.argv, "--idle" in sys.argv))
