"""Runs the tests of a Meson build folder and closes with one line: N passed, N failed, N skipped.

usage: run-tests.py BUILD [NAME...]     only the tests with one of these names or suites

Meson knows the programs; each prints TAP, and every TAP line counts as a test. A program that crashes, runs out of
time, breaks its plan or fails without saying where counts as one failed test more, so nothing fails silently.

Tests that judge time may fail because the machine was busy. So a program that fails is run once more, alone, after all
others; the closing line counts the second outcome, and the first is printed as well. What bad luck does not explain is
not run again: a crash, a sanitizer's report, and more than SECOND_TRIES programs that fail.

Each program has a keeper of its own (keep-test.py) and a temporary folder of its own. What a program leaves behind, processes,
files or mounts, is ended and removed, and is a failure of that program. A runner that is interrupted or killed leaves nothing.
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

RESULT = re.compile(r"^(not )?ok\b(?:\s+\d+)?\s*-?\s*(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)")
SKIP = re.compile(r"#\s*skip", re.IGNORECASE)
NEVER_FORGIVEN = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:|Segmentation fault")
SECOND_TRIES = 8
KEEPER = str(pathlib.Path(__file__).resolve().parent / "keep-test.py")
PROGRAMS_A_CPU = 2  # most of them wait for most of the time


@dataclasses.dataclass
class Outcome:
    name: str
    passed: int = 0
    skipped: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    output: str = ""
    seconds: float = 0.0
    crashed: bool = False

    def may_be_bad_luck(self):
        return bool(self.failures) and not self.crashed and not NEVER_FORGIVEN.search(self.output)


def read_tap(outcome):
    """Counts the TAP lines of outcome.output and checks them against the plan."""
    plan, seen, remark = None, 0, ""
    for line in outcome.output.splitlines():
        if line.startswith("# skipped: "):  # how a C test says why, just before it skips
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


def run(test):
    suite = test["suite"][0].split(":")[-1] if test["suite"] else ""
    outcome = Outcome(f"{suite}/{test['name']}")
    started = time.monotonic()
    keeper_end, our_end = os.pipe()
    process = subprocess.Popen([sys.executable, "-SE", KEEPER, str(keeper_end), *test["cmd"]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[keeper_end],
                               env={**os.environ, **test["env"]}, cwd=test["workdir"], start_new_session=True)
    os.close(keeper_end)
    with open(our_end, "wb") as lifeline:
        try:
            output, _ = process.communicate(timeout=test["timeout"] or None)
            status = process.returncode
        except subprocess.TimeoutExpired:
            lifeline.close()
            output, _ = process.communicate()
            status = None
    outcome.seconds = time.monotonic() - started
    outcome.output = output.decode("utf-8", "replace")
    read_tap(outcome)
    if status is None:
        outcome.failures.append(f"still running after {test['timeout']} s")
    elif status < 0:
        outcome.crashed = True
        outcome.failures.append(f"ended by signal {-status}")
    elif status != 0 and not outcome.failures:
        outcome.failures.append(f"exit status {status}")
    return outcome


def show(outcome, second_try=False):
    """A failure that is to be tried again is printed indented: it is no result yet."""
    state = "ok  " if not outcome.failures else "once" if second_try else "FAIL"
    print(f"{state} {outcome.name:32} {outcome.passed:4} passed {outcome.seconds:6.1f} s", flush=True)
    for skipped in outcome.skipped:
        print(f"     skipped: {skipped}")
    if outcome.failures:
        margin = "     | " if second_try else ""
        print("".join(f"{margin}{line}\n" for line in outcome.output.rstrip().splitlines()), end="")
        for failure in outcome.failures:
            print(f"     {'failed once' if second_try else 'failed'}: {failure}")


def run_first(tests):
    """Programs that say so run side by side, those of the highest priority first; those that judge time alone and afterwards."""
    together = sorted((test for test in tests if test["is_parallel"]), key=lambda test: -test["priority"])
    with concurrent.futures.ThreadPoolExecutor(PROGRAMS_A_CPU * (os.cpu_count() or 1)) as pool:
        running = {pool.submit(run, test): test for test in together}
        for future in concurrent.futures.as_completed(running):
            yield running[future], future.result()
    for test in tests:
        if not test["is_parallel"]:
            yield test, run(test)


def run_all(tests):
    """The outcome that counts of each test."""
    outcomes, again = [], []
    for test, outcome in run_first(tests):
        second_try = outcome.may_be_bad_luck() and len(again) < SECOND_TRIES
        show(outcome, second_try)
        (again if second_try else outcomes).append((test, outcome))
    outcomes = [outcome for _, outcome in outcomes]
    for test, _ in again:
        outcomes.append(run(test))
        show(outcomes[-1])
        if not outcomes[-1].failures:
            print(f"passed when run again alone: {outcomes[-1].name}")
    return outcomes


def main(build, wanted):
    # A shell's background jobs ignore SIGINT, nohup's SIGHUP, and both would hand that on to every test. A handler is not
    # handed on: what is started begins with the default. The keepers see that we are gone, and end their programs.
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    listing = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True)
    tests = json.loads(listing.stdout)
    if wanted:
        tests = [t for t in tests if t["name"] in wanted or any(s.split(":")[-1] in wanted for s in t["suite"])]
    outcomes = run_all(tests)
    failed = sum(len(outcome.failures) for outcome in outcomes)
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed} passed, {failed} failed, {sum(len(outcome.skipped) for outcome in outcomes)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], set(sys.argv[2:])))
