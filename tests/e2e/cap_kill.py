"""Power limits are restored whatever is killed at any time: SIGKILL at random moments during `wattle cap set`.

Each trial has a machine of its own: a fake card whose set calls take some milliseconds, so that kills fall into them,
and before and after the limit is in force. The card's log of all set calls shows needless ones, limits too low, and
calls after the end.
"""
import concurrent.futures
import fcntl
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import harness
from harness import BUILD, WATTLE, children_of, guards_of, test, wait_until

MIN_W, PREVIOUS_W, LIMIT_W = 100, 300, 200
PROMISE_S = 1.0
BUSY_MACHINE = 10  # bounds on time are checked here too, but other tests may occupy the processors meanwhile
SIDE_BY_SIDE = 4
CARDS = f"gpu\nlimits_mw {MIN_W}000 400000 400000 {PREVIOUS_W}000\nset_delay_ms 6\n"
WHO = ("wattle", "guard", "command", "wattle and guard", "wattle and command", "guard and command")


class Machine:
    """A card, a journal, and the logged calls."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        (self.folder / "sys").mkdir()
        (self.folder / "cards").write_text(CARDS)
        # A process stopped in the leak check never ends; elsewhere running processes are numerous.
        self.environment = {**os.environ, "LC_ALL": "C", "ASAN_OPTIONS": "detect_leaks=0",
                            "WATTLE_SYSFS": str(self.folder / "sys"), "WATTLE_HELPER": "off",
                            "WATTLE_STATE": str(self.folder / "state"), "WATTLE_FAKE_NVML": str(self.folder / "cards"),
                            "WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so")}

    def start(self, *arguments, **options):
        return subprocess.Popen([str(WATTLE), *arguments], cwd=self.folder, env=self.environment, **options)

    def wattle(self, *arguments):
        """Its messages about other limits, and its status."""
        done = subprocess.run([str(WATTLE), *arguments], cwd=self.folder, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.TIMEOUT_S)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return done

    def calls(self):
        """(W, pid) of each call that set a limit."""
        path = self.folder / "cards.limits"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(words[2]) / 1000, int(words[3])) for words in (line.split() for line in lines) if len(words) == 4]

    def limit_w(self):
        calls = self.calls()
        return calls[-1][0] if calls else PREVIOUS_W

    def journal(self):
        return sorted(path.name for path in (self.folder / "state" / "caps").glob("*.lease"))

    def check_calls(self):
        """Never below the minimum, never the same twice: no needless call, and none after the restore."""
        limits = [PREVIOUS_W] + [watts for watts, _ in self.calls()]
        assert min(limits) >= MIN_W, limits
        assert all(a != b for a, b in zip(limits, limits[1:])), f"a needless call: {limits}"


def runs_command(process):
    """The command is a forked copy of wattle until it may run."""
    try:
        return any(os.readlink(f"/proc/{pid}/exe") != str(WATTLE.resolve()) for pid in children_of(process.pid))
    except OSError:
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def strike(who, process):
    """Kills all of them at once: wattle is stopped while the others are found."""
    os.kill(process.pid, signal.SIGSTOP)
    guards, commands = guards_of(process.pid), children_of(process.pid)
    for pid in (guards if "guard" in who else []) + (commands if "command" in who else []):
        kill(pid)
    os.kill(process.pid, signal.SIGKILL if "wattle" in who else signal.SIGCONT)
    return guards


def sleep_until(when):
    time.sleep(max(0.0, when - time.monotonic()))


def live_once(machine):
    """An undisturbed trial: time until the command runs, and from the command's end to wattle's."""
    began = time.monotonic()
    process = machine.start("cap", "set", "-q", "gpu-0", str(LIMIT_W), "--", "cat", stdin=subprocess.PIPE)
    wait_until(lambda: machine.limit_w() == LIMIT_W, "the limit")
    until_limit_s = time.monotonic() - began
    process.communicate()
    return until_limit_s, time.monotonic() - began


def one_kill(folder, number, life):
    """The command is `cat`: it runs until its standard input ends, or until it is killed."""
    machine, chance = Machine(folder), random.Random(number)
    until_limit_s, life_s = life
    who = WHO[number % len(WHO)]
    began = time.monotonic()
    moment, command_ends = began + chance.uniform(0, 1.1 * life_s), began + 1.2 * until_limit_s
    # half of the moments depend on events, not time, because a busy machine is slow
    under_limit = number % (2 * len(WHO)) < len(WHO)
    process = machine.start("cap", "set", "gpu-0", str(LIMIT_W), "--", "cat", stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ends_first = command_ends < moment and not under_limit
    if ends_first:
        sleep_until(command_ends)
        process.stdin.close()
    if under_limit:
        wait_until(lambda: machine.limit_w() == LIMIT_W, "the limit")
    else:
        sleep_until(moment)
    guards = strike(who, process)
    data = f"trial {number}: {who} killed after {1000 * (time.monotonic() - began):.1f} ms of {1000 * life_s:.0f}"
    if "wattle" in who:
        process.wait()
        if "guard" not in who:  # the command continues, because its standard input is still open
            killed = time.monotonic()
            wait_until(lambda: machine.limit_w() == PREVIOUS_W and not any(map(harness.is_alive, guards)),
                       f"{data}: back", PROMISE_S * BUSY_MACHINE)
            took_s = time.monotonic() - killed
        else:
            took_s = 0.0
    else:
        took_s = 0.0
    if ends_first:
        process.stdin = None
    _, error = process.communicate(timeout=harness.TIMEOUT_S)
    wait_until(lambda: not guards_of(process.pid), f"{data}: the end of its guard")
    was_left = machine.limit_w() != PREVIOUS_W
    assert not was_left or who == "wattle and guard", \
        f"{data}: left at {machine.limit_w()} W, {machine.journal()}, status {process.returncode}: {error}"
    told = machine.wattle("cap", "get", "gpu-0")
    assert machine.limit_w() == PREVIOUS_W, f"{data}: not even the next start: {told.stderr}"
    assert ("restored to 300 W" in told.stderr) == was_left, f"{data}: {told.stderr}"
    assert machine.journal() == [], f"{data}: {machine.journal()}"
    machine.check_calls()
    shutil.rmtree(folder)
    return who, was_left, took_s


@test
def two_hundred_kills(workdir):
    """200 kills of wattle, the guard, the command, or two of them: the limit is restored each time, without needless
    calls"""
    life = live_once(Machine(workdir.folder / "undisturbed"))
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        trials = [pool.submit(one_kill, workdir.folder / f"trial-{number}", number, life) for number in range(200)]
        outcomes = [trial.result() for trial in trials]
    left = sum(was_left for _, was_left, _ in outcomes)
    slowest_s = max(took_s for _, _, took_s in outcomes)
    print(f"# {left} of {sum(who == WHO[3] for who, _, _ in outcomes)} kills of wattle and its guard left a limit to "
          "the next "
          f"start; the slowest guard took {1000 * slowest_s:.0f} ms")
    assert left > 0, "no kill fell into the lifetime of the limit"


def hold(machine, *command):
    """Starts a command under a limit; returns when the limit is set."""
    process = machine.start("cap", "set", "-q", "gpu-0", str(LIMIT_W), "--", *command, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: runs_command(process), "the command")
    return process


def end(process):
    out, error = process.communicate(timeout=harness.TIMEOUT_S)
    assert b"Sanitizer" not in error, error
    return out, error


@test
def within_the_time_limit(workdir):
    """SIGKILL of wattle alone: the limit is restored within 1 s, though the command continues"""
    machine = Machine(workdir.folder / "machine")
    for _ in range(3):
        process = hold(machine, "cat")
        polls = [time.monotonic()]
        process.kill()
        wait_until(lambda: polls.append(time.monotonic()) or machine.limit_w() == PREVIOUS_W, "back")
        # The guard waits for a CPU as we do: what a poll took beyond its 10 ms is the machine's time.
        stalled_s = sum(max(b - a - 0.02, 0) for a, b in zip(polls, polls[1:]))
        assert time.monotonic() - polls[0] - stalled_s < PROMISE_S, (polls[0], polls[-1], stalled_s)
        process.stdin.write(b"alive")
        assert end(process)[0] == b"alive"


@test
def guard_is_renewed(workdir):
    """killed guard: started again, with the same effect as the first"""
    machine = Machine(workdir.folder / "machine")
    process = hold(machine, "cat")
    first = wait_until(lambda: guards_of(process.pid), "a guard")
    kill(first[0])
    second = wait_until(lambda: [pid for pid in guards_of(process.pid) if pid not in first], "a second guard")
    assert harness.is_alive(second[0])
    wait_until(lambda: pathlib.Path(f"/proc/{second[0]}/cwd").resolve() == pathlib.Path("/"), "its readiness")
    process.kill()
    wait_until(lambda: machine.limit_w() == PREVIOUS_W, "back")
    end(process)


@test
def guard_is_alone(workdir):
    """guard: leads a session of its own, runs in /, has no descriptor of its owner, and ignores common signals"""
    machine = Machine(workdir.folder / "machine")
    process = hold(machine, "cat")
    (guard,) = wait_until(lambda: guards_of(process.pid), "a guard")
    assert os.getsid(guard) == guard
    assert pathlib.Path(f"/proc/{guard}/cwd").resolve() == pathlib.Path("/")
    open_files = {os.readlink(path) for path in pathlib.Path(f"/proc/{guard}/fd").iterdir()}
    assert not any(name.startswith("pipe:") for name in open_files), open_files
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(guard, number)
    process.kill()
    wait_until(lambda: machine.limit_w() == PREVIOUS_W, "back")
    end(process)


@test
def journal_is_removed(workdir):
    """journal's folder removed: guard and wattle still restore the limit"""
    machine = Machine(workdir.folder / "machine")
    process = hold(machine, "cat")
    shutil.rmtree(machine.folder / "state")
    process.kill()
    wait_until(lambda: machine.limit_w() == PREVIOUS_W, "back")
    end(process)
    assert machine.wattle("cap", "set", "gpu-0", str(LIMIT_W), "--", "rm", "-r", "state").returncode == 0
    assert machine.limit_w() == PREVIOUS_W
    machine.check_calls()


@test
def pipes_close(workdir):
    """pipe from the command's output: closed when the command ends"""
    machine = Machine(workdir.folder / "machine")
    process = hold(machine, "sh", "-c", "read line; echo $line")
    out, _ = process.communicate(b"text\n", timeout=harness.TIMEOUT_S)
    assert out == b"text\n" and process.returncode == 0
    wait_until(lambda: not guards_of(process.pid), "the end of the guard")


@test
def second_is_refused(workdir):
    """device with a lease: set, reset and a second lease are refused with the owner's name"""
    machine = Machine(workdir.folder / "machine")
    process = hold(machine, "cat")
    for words in (("set", "gpu-0", "250"), ("reset", "gpu-0"), ("reset", "gpu-0", "--default"),
                  ("set", "gpu-0", "250", "--for", "5s"), ("set", "gpu-0", "250", "--", "true")):
        done = machine.wattle("cap", *words)
        assert done.returncode == (125 if "--" in words else 1), (words, done)
        assert f"wattle cap set, pid {process.pid}, user" in done.stderr, done.stderr
    assert machine.limit_w() == LIMIT_W
    end(process)
    machine.check_calls()


@test
def leases_nest_in_persistent_limits(workdir):
    """end of a lease, normal or by a kill: restores the earlier limit; reset restores the one from before all of
    them"""
    machine = Machine(workdir.folder / "machine")
    assert machine.wattle("cap", "set", "gpu-0", "250").returncode == 0
    assert machine.wattle("cap", "set", "gpu-0", "200", "--", "true").returncode == 0
    assert machine.limit_w() == 250
    process = hold(machine, "cat")
    process.kill()
    wait_until(lambda: machine.limit_w() == 250, "back")
    end(process)
    assert machine.wattle("cap", "set", "gpu-0", "220").returncode == 0
    done = machine.wattle("cap", "reset", "gpu-0")
    assert machine.limit_w() == PREVIOUS_W and "restored to 300 W" in done.stderr, done.stderr
    assert list((machine.folder / "state/caps").glob("*.standing")) == []


@test
def foreign_limit_stays(workdir):
    """limit changed by another program: left unchanged and reported, at the end and after a kill"""
    for killed in (False, True):
        machine = Machine(workdir.folder / f"machine-{killed}")
        process = hold(machine, "cat")
        with (machine.folder / "cards.limits").open("a") as log:
            log.write("1 0 150000 1\n")
        if killed:
            for pid in guards_of(process.pid) + [process.pid]:
                os.kill(pid, signal.SIGSTOP)
            for pid in guards_of(process.pid) + [process.pid]:
                kill(pid)
        _, error = end(process)
        told = machine.wattle("cap", "get", "gpu-0").stderr if killed else error.decode()
        assert machine.limit_w() == 150 and machine.journal() == [], machine.calls()
        assert "another program changed the limit meanwhile; it is left at 150 W" in told, told


@test
def for_some_time(workdir):
    """--for: returns at once; the limit ends by itself, by reset, by SIGTERM, and after a SIGKILL at the next start"""
    machine = Machine(workdir.folder / "machine")
    assert machine.wattle("cap", "set", "gpu-0", "200", "--for", "1s").returncode == 0
    assert machine.limit_w() == LIMIT_W
    wait_until(lambda: machine.limit_w() == PREVIOUS_W, "back")
    wait_until(lambda: machine.journal() == [], "struck")
    owner = None
    for ending in ("reset", "TERM", "KILL"):
        assert machine.wattle("cap", "set", "gpu-0", "200", "--for", "600s").returncode == 0
        busy = machine.wattle("cap", "set", "gpu-0", "250")
        assert busy.returncode == 1 and "`wattle cap reset gpu-0` ends it" in busy.stderr, busy.stderr
        (lease,) = (machine.folder / "state/caps").glob("*.lease")
        owner = int(dict(line.split("=", 1) for line in lease.read_text().splitlines())["owner_pid"])
        if ending == "reset":
            assert machine.wattle("cap", "reset", "gpu-0").returncode == 0
        else:
            os.kill(owner, signal.Signals[f"SIG{ending}"])
            wait_until(lambda: not harness.is_alive(owner), "its end")
        if ending == "KILL":
            assert machine.limit_w() == LIMIT_W
            assert "restored to 300 W" in machine.wattle("cap", "list").stderr
        assert machine.limit_w() == PREVIOUS_W and machine.journal() == [], ending
        assert not harness.is_alive(owner)
    machine.check_calls()


@test
def process_is_not_waited_for(workdir):
    """--for: requester killed before the limit is set: it is not set"""
    machine = Machine(workdir.folder / "machine")
    assert machine.wattle("cap", "set", "gpu-0", "200", "--", "true").returncode == 0
    before = machine.calls()
    (path,) = (machine.folder / "state/caps").glob("*.lock")
    with path.open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, 0)  # the guard stops here
        process = machine.start("cap", "set", "gpu-0", "200", "--for", "600s")
        wait_until(lambda: guards_of(process.pid), "the guard")
        (guard,) = guards_of(process.pid)
        process.kill()
        process.wait()
    wait_until(lambda: not harness.is_alive(guard), "its end")
    assert machine.calls() == before and machine.journal() == []


@test
def left_on_a_sleeper(workdir):
    """GPU suspended under a dead owner's limit: woken to restore it; not woken where nothing is to restore"""
    machine = Machine(workdir.folder / "machine")
    proc = machine.folder / "proc/sys/kernel/random"
    proc.mkdir(parents=True)
    process = hold(machine, "cat")
    guards = guards_of(process.pid)
    for pid in guards + [process.pid]:
        os.kill(pid, signal.SIGSTOP)
    for pid in guards + [process.pid]:
        kill(pid)
    end(process)
    device = machine.folder / "sys/bus/pci/devices/0000:01:00.0"
    (device / "power").mkdir(parents=True)
    for name, text in (("vendor", "0x10de\n"), ("class", "0x030000\n"), ("power/runtime_status", "suspended\n")):
        (device / name).write_text(text)
    told = machine.wattle("cap", "list").stderr
    assert "restored to 300 W" in told and machine.limit_w() == PREVIOUS_W and machine.journal() == [], told
    assert machine.wattle("cap", "set", "gpu-0", "200").returncode == 0
    (proc / "boot_id").write_text("00000000-1111-2222-3333-444444444444\n")
    machine.environment.update(WATTLE_PROCFS=str(machine.folder / "proc"),
                               WATTLE_FAKE_NVML_CALLS=str(machine.folder / "calls"))
    assert machine.wattle("cap", "list").returncode == 0
    assert not (machine.folder / "calls").exists() and not list((machine.folder / "state/caps").glob("*.standing"))


@test
def after_a_restart(workdir):
    """lease of an earlier boot: limits still in force are restored, lost ones are dropped silently"""
    for still_there in (True, False):
        machine = Machine(workdir.folder / f"machine-{still_there}")
        process = hold(machine, "cat")
        for pid in guards_of(process.pid) + [process.pid]:
            os.kill(pid, signal.SIGSTOP)
        for pid in guards_of(process.pid) + [process.pid]:
            kill(pid)
        end(process)
        proc = machine.folder / "proc/sys/kernel/random"
        proc.mkdir(parents=True)
        (proc / "boot_id").write_text("00000000-1111-2222-3333-444444444444\n")
        machine.environment["WATTLE_PROCFS"] = str(machine.folder / "proc")
        if not still_there:
            (machine.folder / "cards.limits").unlink()
        told = machine.wattle("cap", "get", "gpu-0").stderr
        assert machine.journal() == [] and machine.limit_w() == PREVIOUS_W
        assert ("restored to 300 W" in told) == still_there, told
        assert still_there or told == "", told


@test
def persistent_limit_ends_with_the_boot(workdir):
    """persistent limit after a reboot: gone, its entry is removed silently; reset has no effect then"""
    machine = Machine(workdir.folder / "machine")
    machine.wattle("cap", "set", "gpu-0", "200")
    (machine.folder / "cards.limits").unlink()
    (machine.folder / "proc/sys/kernel/random").mkdir(parents=True)
    (machine.folder / "proc/sys/kernel/random/boot_id").write_text("00000000-1111-2222-3333-444444444444\n")
    machine.environment["WATTLE_PROCFS"] = str(machine.folder / "proc")
    assert machine.wattle("cap", "get", "gpu-0").stderr == ""
    assert "nothing to reset" in machine.wattle("cap", "reset", "gpu-0").stderr
    assert machine.calls() == []


@test
def damaged_journal_is_kept_aside(workdir):
    """journal file truncated, edited or of another user: set aside and reported once, and no limit is set because of
    it"""
    damages = {"cut": lambda text: text[:len(text) // 2], "edited": lambda text: text.replace("=300000", "=400000"),
               "empty": lambda text: "", "bytes": lambda text: "\0\xff" * 5000}
    for name, damage in damages.items():
        machine = Machine(workdir.folder / name)
        process = hold(machine, "cat")
        (path,) = (machine.folder / "state/caps").glob("*.lease")
        text = path.read_text()
        for pid in guards_of(process.pid) + [process.pid]:
            os.kill(pid, signal.SIGSTOP)
        for pid in guards_of(process.pid) + [process.pid]:
            kill(pid)
        end(process)
        path.write_text(damage(text))
        told = machine.wattle("cap", "get", "gpu-0")
        assert told.returncode == 0 and "was renamed to .broken" in told.stderr, (name, told.stderr)
        assert [path.name + ".broken"] == [found.name for found in path.parent.glob("*.lease*")]
        assert machine.limit_w() == LIMIT_W
        assert machine.wattle("cap", "get", "gpu-0").stderr == ""
        assert machine.wattle("cap", "reset", "gpu-0", "--default").returncode == 0 and machine.limit_w() == 400


if __name__ == "__main__":
    harness.main()
