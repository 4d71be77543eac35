"""wattle top: in terminals of five sizes (tmux), in limited ones, and as text."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

from harness import BUILD, BURNER, WATTLE, Skip, main, near, test, wait_until

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
SPANNER = BUILD / "tests/fakes/spanner"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"


def simulate(workdir, *zones):
    """A powercap tree with known powers, visible to all programs started from now on."""
    tree = workdir.folder / "sys"
    words = [word for zone in zones for word in ("--zone", zone)]
    process = workdir.start(tree, *words, program=SIMULATOR)
    assert process.stdout.readline() == b"ready\n"
    workdir.environment["WATTLE_SYSFS"] = str(tree)


def watts(text, name):
    """The figure after a name, in watts."""
    found = re.search(name + r"\s+~?([\d.]+) (mW|W|kW)", text)
    assert found, f"no watts of {name} in\n{text}"
    return float(found[1]) * {"mW": 1e-3, "W": 1, "kW": 1e3}[found[2]]


def joules(text):
    """The target's energy so far, from its line."""
    found = re.search(r"^(?:Run|Target) .*?· ([\d.]+) (mJ|J|kJ)", text, re.MULTILINE)
    assert found, f"no energy of the target in\n{text}"
    return float(found[1]) * {"mJ": 1e-3, "J": 1, "kJ": 1e3}[found[2]]


def picture(workdir, *arguments, columns=100, status=0, env=None):
    done = workdir.wattle("top", "--once", *arguments,
                       env={"COLUMNS": str(columns), "LC_ALL": "C.UTF-8", "LINES": "60", **(env or {})})
    assert done.returncode == status, (done.returncode, done.stderr)
    assert all(len(line) <= columns for line in done.stdout.splitlines()), done.stdout
    assert "\x1b" not in done.stdout, repr(done.stdout)
    return done.stdout if status == 0 else done.stderr


# ---- as text

@test
def known_powers(workdir):
    """--once: prints the hardware's power, and the attributed powers add up to it"""
    simulate(workdir, "package-0=50", "package-0/dram=5", "package-1=20")
    text = picture(workdir, "-i", "1s")
    near(watts(text, "package-0"), 50, relative=0.1)
    near(watts(text, "package-1"), 20, relative=0.1)
    near(watts(text, "dram-0"), 5, relative=0.1)
    total = watts(text, "Power")
    near(total, 75, relative=0.1)
    assert "idle 0 W" not in text, text  # idle power of devices in use is unknown: n/a
    names = ("programs", "wattle", "idle", "unattributed")
    parts = sum(watts(text, name) for name in names if f"{name} n/a" not in text)
    near(parts, total, relative=0.02)
    assert "measured" in text and "~" not in text.splitlines()[1], text


@test
def widths(workdir):
    """width of the text: COLUMNS, down to nothing; 80 without it"""
    for columns in (1, 20, 40, 80, 133, 300):
        picture(workdir, "-i", "100ms", columns=columns)
    done = workdir.wattle("top", "--once", "-i", "100ms", env={"COLUMNS": None, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.stdout


@test
def without_utf8(workdir):
    """LC_ALL=C: ASCII only"""
    text = picture(workdir, "-i", "100ms", env={"LC_ALL": "C"})
    assert text.isascii() and "wattle top | " in text, text
    if "estimated" in text:  # only bars of estimated values are hatched
        assert "+ wattle " in text and "% wattle " not in text, text


@test
def a_process(workdir):
    """--pid: the power attributed to the process and its children, and only they are listed"""
    simulate(workdir, "package-0=50")
    burner = workdir.start("cpu", 20, program=BURNER)
    text = picture(workdir, "--pid", burner.pid, "-i", "1s")
    rows = text[text.index("COMMAND"):].splitlines()[1:]
    assert len(rows) == 1 and str(burner.pid) in rows[0], text
    target = watts(text, "Target")
    assert 0 < target <= 55, text
    near(watts(text, "target"), target, relative=0.01)
    text = picture(workdir, "--pid", burner.pid, "-i", "100ms", "--all", env={"LINES": "1000"})
    assert str(os.getpid()) in text, text


@test
def hostile_commands(workdir):
    """names of other users' programs: neither move the cursor nor change the direction of writing"""
    name = "\x1b[2J\x07<script>\u202e evil \U0001f525 \u05e9\u05dc\u05d5\u05dd " + "x" * 10000
    sleeper = subprocess.Popen([name, "30"], executable="/bin/sleep")
    try:
        text = picture(workdir, "--pid", sleeper.pid, "-i", "100ms")
        assert "?[2J?<script>" in text and "\u202e" not in text and "\x07" not in text, text
    finally:
        sleeper.kill()
        sleeper.wait()


@test
def filters_and_orders(workdir):
    """--filter, --sort and --tree: equal to their keys"""
    alone = f"burner-of-{os.getpid()}"  # other tests run burners, too
    shutil.copy2(BURNER, workdir.folder / alone)
    workdir.start("cpu", 20, program=workdir.folder / alone)
    text = picture(workdir, "-i", "300ms", "--filter", alone.upper(), "--sort", "memory", columns=200)
    rows = text[text.index("COMMAND"):].splitlines()[1:]
    assert rows and all(alone in row.lower() for row in rows), text
    assert "MEM▼" in text, text
    assert "└─" in picture(workdir, "-i", "100ms", "--tree", columns=160)


@test
def eight_gpus(workdir):
    """each GPU with its limit, temperature and memory, and the owners of its power"""
    cards = "".join(f"gpu\nname Card {i}\npower_mw constant {100000 + i}\nutilization_percent 90 40\n"
                    f"temperature_c {50 + i}\nmemory_total_bytes 85520809984\nmemory_used_bytes 2000000000\n"
                    f"limits_mw 100000 700000 700000 650000\n"
                    for i in range(8))
    (workdir.folder / "cards").write_text(cards)
    env = {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
           "WATTLE_SYSFS": str(workdir.tree("empty", {}))}
    text = picture(workdir, "-i", "1s", columns=160, env=env)
    for i in range(8):
        near(watts(text, f"gpu-{i}"), 100, relative=0.2)
        assert f"{50 + i} °C" in text and f"Card {i}" in text, text
    assert text.count("/650 W") == 8 and "GMEM" in text, text


# ---- a run in progress

def share_of_50_w(samples, until_s):
    """Joules of the program until this time, by a simple calculation: its share of the busy CPU time in each interval."""
    return sum(50 * (b[0] - a[0]) * (b[1] - a[1]) / (b[2] - a[2])
               for a, b in zip(samples, samples[1:]) if b[0] <= until_s and b[2] > a[2])


@test
def a_run(workdir):
    """run in progress: its energy so far is that of the later report, and its open spans are shown"""
    simulate(workdir, "package-0=50")
    script = f"{SPANNER} wait & {BURNER} cpu 2; kill $!"
    run = workdir.start("run", "-q", "-o", "run.sqlite", "--flush", "100ms", "--json", "report.json", "--", "sh", "-c",
                     script)
    wait_until(lambda: (workdir.folder / "run.sqlite").exists() and len(workdir.rows(
        "select 1 from span where end_ns is null")) == 2, "two open spans")
    text = picture(workdir, "run.sqlite", "-i", "1s")
    found = re.search(r"in ([\d.]+)s · (?:RAM .*? · )?pid (\d+)", text)
    assert found and "SPAN (2 running" in text, text
    assert re.search(r"\d outer$", text, re.MULTILINE) and re.search(r"\d   inner$", text, re.MULTILINE), text
    so_far_j, so_far_s = joules(text), float(found[1])
    workdir.finish(run)
    report = json.loads((workdir.folder / "report.json").read_text())
    assert int(found[2]) == report["run"]["pid"], text
    whole_j = report["energy"]["ledger"]["target_j"]
    samples = workdir.rows("select (t_ns - (select start_ns from segment)) / 1e9, main_cpu_ns + descendants_cpu_ns, system_cpu_busy_ns "
                           "from sample where main_cpu_ns + descendants_cpu_ns + system_cpu_busy_ns is not null order by t_ns")
    behind_s = 0.1 + 2 * max(b[0] - a[0] for a, b in zip(samples, samples[1:]))  # written after --flush, between two samples
    earliest_j, latest_j = (share_of_50_w(samples, so_far_s + s) for s in (-behind_s, behind_s))
    assert 0.9 * earliest_j <= so_far_j <= 1.1 * latest_j, (earliest_j, so_far_j, latest_j)
    assert so_far_j < whole_j, (so_far_j, whole_j)
    text = picture(workdir, "run.sqlite", status=1)
    assert "this run has ended; `wattle report run.sqlite`" in text, text


@test
def a_dead_recorder(workdir):
    """killed recorder and program: the run is over, though its file does not state it"""
    run = workdir.start("run", "-q", "-o", "run.sqlite", "--", "sleep", "60")
    wait_until(lambda: (workdir.folder / "run.sqlite").exists() and workdir.rows("select 1 from sample"), "a sample")
    pid, = workdir.rows("select pid from segment")[0]
    os.kill(run.pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the program")
    text = picture(workdir, "run.sqlite", status=1)
    assert "its recorder was killed; `wattle report run.sqlite`" in text, text


@test
def no_run(workdir):
    """not a run in progress: refused with the remedy"""
    (workdir.folder / "text").write_text("no database")
    workdir.wattle("run", "-q", "-o", "done.sqlite", "--", "true")
    for words, status, said in ((["nowhere"], 1, "nowhere: No such file"), (["text"], 1, "not a wattle run file"),
                                (["done.sqlite"], 1, "wattle report done.sqlite"), (["a", "b"], 2, "more than one run"),
                                (["--pid", "x"], 2, "--pid: 'x'"), (["--pid", "99999999"], 1, "no process 99999999"),
                                (["done.sqlite", "--pid", "1"], 2, "--pid"), (["-i", "1ms"], 2, "100ms to 1h")):
        done = workdir.wattle("top", "--once", *words)
        assert done.returncode == status and said in done.stderr and done.stdout == "", (words, done)
        assert done.stderr.count("\n") == 1, done.stderr


# ---- in a terminal

class Tmux:
    """wattle top in a terminal of tmux, which is a terminal emulator without a window."""

    def __init__(self, workdir, columns, rows, *arguments, env=None):
        self.words = ["tmux", "-L", f"wattle-{os.getpid()}-{columns}", "-f", "/dev/null"]
        self.environment = {**workdir.environment, "LC_ALL": "C.UTF-8", "TMUX_TMPDIR": str(workdir.folder),
                            "TERM": "xterm",
                            **(env or {})}
        self.environment.pop("TMUX", None)
        self.done = workdir.folder / "status"
        command = " ".join(map(str, [WATTLE, "top", *arguments]))
        try:
            self.call("new-session", "-d", "-x", str(columns), "-y", str(rows),
                      f"{command} 2>{workdir.folder}/stderr; echo $? >{self.done}; sleep 60")
        except FileNotFoundError:
            raise Skip("tmux is not installed")
        self.call("set", "-g", "status", "off")
        self.call("resize-window", "-x", str(columns), "-y", str(rows))

    def call(self, *words):
        return subprocess.run([*self.words, *words], env=self.environment, check=True, capture_output=True,
                              text=True).stdout

    def screen(self):
        return self.call("capture-pane", "-p").rstrip("\n").split("\n")

    def wait(self, condition, what):
        def look():
            screen = self.screen()
            return screen if condition(screen) else None
        try:
            return wait_until(look, what)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *self.screen()]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.words, "kill-server"], env=self.environment, capture_output=True)


def has(text):
    return lambda screen: any(text in line for line in screen)


SIZES = ((20, 5), (40, 12), (80, 24), (132, 43), (240, 67))


@test
def five_sizes(workdir):
    """from 20 x 5 to full screen: power, processes and keys are shown, each on its line"""
    for columns, rows in SIZES:
        with Tmux(workdir, columns, rows, "-i", "200ms") as terminal:
            screen = terminal.wait(lambda s: has("q quit")(s) and has("Power")(s) and not has("Power n/a")(s),
                                   "a picture")
            assert len(screen) == rows and screen[-1].startswith("q quit"), screen
            assert screen[0].startswith("wattle top"), screen
            assert any("COMMAND" in line for line in screen), screen
            assert ("package" in "".join(screen)) == (rows > 10), screen


@test
def a_new_size(workdir):
    """terminal that changes its size: filled again, without remains"""
    with Tmux(workdir, 80, 24, "-i", "200ms") as terminal:
        terminal.wait(lambda s: len(s) == 24 and s[-1].startswith("q quit"), "a picture of 24 rows")
        for columns, rows in ((132, 43), (30, 6), (80, 24)):
            terminal.call("resize-window", "-x", str(columns), "-y", str(rows))
            screen = terminal.wait(
                lambda s: len(s) == rows and s[-1].startswith("q quit") and s[0].startswith("wattle top"),
                f"a picture of {rows} rows")
            assert sum(line.startswith("q quit") for line in screen) == 1, screen


@test
def keys(workdir):
    """sorting, tree, filter, help and quitting by keys"""
    workdir.start("cpu", 60, program=BURNER)
    with Tmux(workdir, 130, 30, "-i", "200ms") as terminal:  # so wide that the command's last words are visible
        press = lambda *keys: terminal.call("send-keys", *keys)
        terminal.wait(has("W▼"), "processes by power")
        press("m")
        terminal.wait(has("MEM▼"), "processes by memory")
        press("r")
        terminal.wait(has("MEM▲"), "the reverse")
        press("t")
        terminal.wait(has("─ "), "a tree")
        press("/", "b", "u", "r", "n", "e", "r")
        terminal.wait(has("filter: burner"), "the filter that is typed")
        press("Enter")
        screen = terminal.wait(has("COMMAND (burner)"), "the filter")
        rows = [line for line in screen[screen.index(next(s for s in screen if "COMMAND" in s)) + 1:-1] if line]
        # For a truncated command line the word may be in the hidden part: the shell that started another test's burner.
        assert any("burner" in row for row in rows), screen
        assert all("burner" in row or row.endswith("…") for row in rows), screen
        press("?")
        terminal.wait(has("sort by power"), "the help")
        press("Escape")
        terminal.wait(lambda s: not has("sort by power")(s), "no help")
        press("b")
        press("b")
        terminal.wait(has("graph"), "another style")
        press("q")
        wait_until(lambda: terminal.done.exists() and terminal.done.read_text() == "0\n", "the end")
        assert (workdir.folder / "stderr").read_text() == ""


@test
def an_ended_target(workdir):
    """ended process: reported, and its energy stays"""
    simulate(workdir, "package-0=50")
    burner = workdir.start("cpu", 60, program=BURNER)
    with Tmux(workdir, 100, 30, "-i", "200ms", "--pid", burner.pid) as terminal:
        terminal.wait(lambda s: has("Target")(s) and not has("Target n/a")(s), "the target")
        burner.kill()
        burner.wait()
        terminal.wait(has("has ended"), "that it has ended")


class Terminal:
    """A pseudoterminal whose output is read as it arrives."""

    def __init__(self, workdir, *arguments, kind="xterm-256color", size=(80, 24), env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(workdir.folder)
            os.execve(WATTLE, [str(WATTLE), "top", *map(str, arguments)],
                      {**workdir.environment, "LC_ALL": "C.UTF-8", "TERM": kind, **(env or {})})
        self.shown = b""

    def read(self, seconds):
        """Output within that time, or until the other end was closed."""
        came, end = b"", time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                if select.select([self.fd], [], [], left)[0]:
                    came += os.read(self.fd, 65536)
        except OSError:
            pass
        self.shown += came
        return came

    def until(self, text):
        wait_until(lambda: self.read(0.05) is not None and text in self.shown, f"{text!r}")

    def end(self, number=None):
        """Its exit status, after a signal."""
        if number is not None:
            os.kill(self.pid, number)
        try:
            status = wait_until(self.wait_for_exit, "the end", seconds=10)
        except AssertionError:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            raise AssertionError(f"did not end: {self.shown[-300:]!r}")
        finally:
            os.close(self.fd)
        return os.waitstatus_to_exitcode(status[0])

    def wait_for_exit(self):
        self.read(0.02)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid != 0:
            self.read(0.02)
        return [status] if pid != 0 else None


COLOUR = re.compile(rb"\x1b\[[\d;]*(?:3[0-7]|38;5;\d+|4[0-7])[\d;]*m")


@test
def colours(workdir):
    """colours: where the terminal has them, none with NO_COLOR, --colours none or TERM=vt100"""
    for kind, options, env, expected in (("xterm-256color", [], {}, True), ("xterm", [], {}, True),
                                         ("xterm-256color", [], {"NO_COLOR": "1"}, False),
                                         ("xterm-256color", ["--colours", "none"], {}, False),
                                         ("vt100", [], {}, False)):
        terminal = Terminal(workdir, "-i", "100ms", *options, kind=kind, env=env)
        terminal.until(b"quit")
        terminal.read(0.3)
        assert terminal.end(signal.SIGTERM) == 0
        assert bool(COLOUR.search(terminal.shown)) == expected, (kind, env, terminal.shown)


@test
def ascii_terminal(workdir):
    """terminal without UTF-8: ASCII"""
    terminal = Terminal(workdir, "-i", "100ms", kind="vt100", env={"LC_ALL": "C"})
    terminal.until(b"quit")
    terminal.read(0.5)
    assert terminal.end(signal.SIGTERM) == 0
    assert terminal.shown.isascii() and re.search(rb"\[[#%]", terminal.shown), terminal.shown


@test
def terminal_after_exit(workdir):
    """terminal after the end: its own screen, cursor and modes are restored"""
    held = b"\x13"  # Ctrl-S: the terminal accepts no output
    for keys, number in ((b"", signal.SIGTERM), (b"", signal.SIGINT), (b"", signal.SIGHUP), (b"q", None),
                         (b"\x03", None),
                         (b"\x1c", None), (held, signal.SIGTERM)):
        terminal = Terminal(workdir, "-i", "100ms")
        terminal.until(b"quit")
        before = len(terminal.shown)
        os.write(terminal.fd, keys)
        if keys == held:
            terminal.read(0.5)
        assert terminal.end(number) == 0, (keys, number)
        after = terminal.shown[before:]
        assert b"\x1b[?1049l" in after and b"\x1b[?25h" in after, after


@test
def slow_terminals(workdir):
    """refresh: sends only the changed part of a screen"""
    quiet = workdir.start("60", program="/bin/sleep")
    terminal = Terminal(workdir, "-i", "200ms", "--pid", quiet.pid)
    terminal.until(b"quit")
    first = len(terminal.shown)
    terminal.read(0.6)
    refreshes = len(terminal.read(1.6)) / 8
    assert terminal.end(signal.SIGTERM) == 0
    print(f"# 80 x 24: {first} bytes at first, {refreshes:.0f} bytes a refresh", flush=True)
    assert 0 < refreshes < 1000, refreshes


@test
def blocked_terminal(workdir):
    """output blocked: frames are skipped, not queued, and the program ends when requested"""
    terminal = Terminal(workdir, "-i", "100ms", size=(200, 60))
    time.sleep(1.5)
    waiting = len(terminal.read(0.3))
    assert waiting < 35000, waiting  # 15 frames of up to 5 kB otherwise
    terminal.until(b"quit")
    terminal.read(0.3)
    time.sleep(1)
    os.kill(terminal.pid, signal.SIGTERM)  # also if stopped in the middle of a frame
    wait_until(lambda: os.waitpid(terminal.pid, os.WNOHANG)[0] != 0, "the end of it", seconds=5)
    os.close(terminal.fd)


@test
def dumb_terminals(workdir):
    """terminal without cursor positioning: one picture and the reason; an unknown terminal is named"""
    terminal = Terminal(workdir, "-i", "100ms", kind="dumb")
    assert terminal.end() == 0
    assert b"one frame" in terminal.shown and b"COMMAND" in terminal.shown and b"\x1b" not in terminal.shown
    # ncurses keeps memory for a terminal type that it rejects later.
    terminal = Terminal(workdir, "-i", "100ms", kind="no-such-terminal", env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert terminal.end() == 1
    assert b"'no-such-terminal'" in terminal.shown and b"--once" in terminal.shown, terminal.shown


@test
def ncurses_is_loaded_by_top_alone(workdir):
    """recorder: has no ncurses in its memory"""
    done = workdir.wattle("run", "-q", "--disable-logs", "--", "sh", "-c", "cat /proc/$PPID/maps")
    assert "libsqlite3" in done.stdout and "ncurses" not in done.stdout and "libtinfo" not in done.stdout, done.stdout


if __name__ == "__main__":
    main()
