"""--progress: one line on standard error; its figures equal the later report's."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

from harness import BUILD, TESTS, WATTLE, Skip, main, test, wait_until

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

ROUNDED_S = 0.01  # elapsed times have three digits
SPANNER, SIMULATOR = BUILD / "tests/fakes/spanner", BUILD / "tests/fakes/powercap_sim"
LINE = re.compile(r"wattle: (?P<elapsed>[^,]+), (?P<energy>[^,]+), (?P<power>[^,]+?)(, step (?P<steps>\d+)(/(?P<all>\d+))?)?"
                  r"(, to go (?P<time>[^(]+?)( \((?P<times>[^)]+)\))?( and (?P<more>[^(]+?)( \((?P<energies>[^)]+)\))?)?)?")
UNITS = {"W": 1, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "µJ": 1e-6, "mJ": 1e-3,
         "J": 1, "kJ": 1e3}
# Sub-tracking rows of steps of so many seconds, as gpu_tracker writes them.
FILE_STEPS = """
import sys, time
with open("s.csv", "w") as file:
    file.write("process_id,code_block_name,position,timestamp\\n")
    for _ in range(int(sys.argv[1])):
        file.write(f"1,step,0,{time.time()}\\n")
        time.sleep(float(sys.argv[2]))
        file.write(f"1,step,1,{time.time()}\\n")
        file.flush()
"""


def figure(text):
    """The number of a text such as "1 min 02 s" or "~97.4 J", in s or J."""
    words = text.removeprefix("~").split()
    return sum(float(number) * UNITS[unit] for number, unit in zip(words[::2], words[1::2]))


def ends(text):
    """Both ends of a range such as "1.05 … 1.17 s" or "968 ms … 1.12 s"."""
    low, high = (end.strip() for end in text.split("…"))
    return figure(low if " " in low else f"{low} {high.split()[-1]}"), figure(high)


def lines_of(text):
    found = [LINE.fullmatch(line) for line in text.splitlines() if line.startswith("wattle: ")]
    assert found and None not in found, text
    return found


def simulator_truth(workdir):
    return expected_values.load(workdir.folder / "sim")


def known_updates(workdir, start_ns):
    """Times of the readings that showed an update after the start."""
    rows = workdir.rows("SELECT t_ns, energy_uj FROM device_sample WHERE energy_uj IS NOT NULL ORDER BY t_ns")
    return [b[0] for a, b in zip([(start_ns, 0), *rows], rows) if b[1] > a[1]]


def check_powers(workdir, truth, lines, zone):
    """The power of a line is the mean since the line before it, known once the update period was seen before that line.
    Each end is known to half of the time between two readings, and so is the power with which the curve continues after
    the last update."""
    (start_ns,), = workdir.rows("SELECT start_ns FROM segment")
    times_ns, updates_ns = workdir.reading_times_ns(), known_updates(workdir, start_ns)
    true_w = expected_values.max_w(truth, zone)  # constant
    ends_s = [figure(line["elapsed"]) for line in lines]
    for begin_s, end_s, line in zip(ends_s, ends_s[1:], lines[1:]):
        seen = [t for t in updates_ns if t < start_ns + begin_s * 1e9 - ROUNDED_S * 1e9]
        if line["power"] == "n/a":
            # A quick reading's update reaches the line with the next sample, so the last one may be missing.
            assert len(seen) < 3 or end_s - begin_s < 0.1 + ROUNDED_S, (line[0], seen)
            continue
        gap_s = max(b - a for a, b in zip(times_ns, times_ns[1:]) if a <= start_ns + end_s * 1e9) / 1e9
        unsure_s = 2 * gap_s + 2 * expected_values.late_s(truth) + ROUNDED_S
        off_j = abs(figure(line["power"]) - true_w) * (end_s - begin_s)
        assert off_j <= true_w * unsure_s + 0.005 * figure(line["energy"]), (line[0], gap_s)


@test
def energy_so_far(workdir):
    """energy of the last line: energy.total_j of the report, within its error: fast counters, slow ones, a wrap"""
    for options in (["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5"],
                    ["--zone", "package-0=80", "--tick", "200000"],
                    ["--zone", "package-0=50", "--range", "package-0=60000000", "--start", "package-0=30000000"]):
        simulator = workdir.start(workdir.folder / "sim", *options, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--json", "report.json", "--progress",
                              "--",
                              "sleep", "2.35", env={"WATTLE_SYSFS": str(workdir.folder / "sim")})
        simulator.terminate()
        simulator.wait()
        energy = json.loads((workdir.folder / "report.json").read_text())["energy"]
        last = lines_of(done.stderr)[-1]
        shown_j = figure(last["energy"])
        rounding_j = 0.005 * energy["total_j"]  # three digits
        assert abs(shown_j - energy["total_j"]) <= energy["error_j"] + rounding_j, (options, shown_j, energy)
        assert len(lines_of(done.stderr)) >= 3, done.stderr
        if "--tick" in options:
            check_powers(workdir, simulator_truth(workdir), lines_of(done.stderr), "package-0")


@test
def a_slow_counter(workdir):
    """counter updated every 0.7 s: power is shown once the period is known; n/a until then, never 0 W"""
    simulator = workdir.start(workdir.folder / "sim", "--zone", "package-0=50", "--tick", "700000", program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--progress", "--", "sleep", "4.4",
                       env={"WATTLE_SYSFS": str(workdir.folder / "sim")})
    simulator.terminate()
    simulator.wait()
    check_powers(workdir, simulator_truth(workdir), lines_of(done.stderr), "package-0")


@test
def no_energy(workdir):
    """no energy: n/a, not 0"""
    done = workdir.wattle("run", "-q", "--progress", "--", "true")
    assert lines_of(done.stderr)[-1]["energy"] in ("n/a", "0 J") or figure(lines_of(done.stderr)[-1]["energy"]) > 0
    (workdir.folder / "proc").mkdir()
    done = workdir.wattle("run", "-q", "--progress", "--", "sleep", "0.3",
                          env={"WATTLE_SYSFS": str(workdir.tree("sys", {"x": ""})),
                               "WATTLE_PROCFS": str(workdir.folder / "proc")})
    assert " n/a, n/a" in done.stderr, done.stderr


@test
def forecast(workdir):
    """steps with a known total: remaining time and energy with intervals, and none when all are done"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--progress", "--step", "inner", "--steps", "600", "--",
                          SPANNER,
                          "pulse", "3.3")
    lines = lines_of(done.stderr)
    steps = [int(line["steps"]) for line in lines]
    assert steps == sorted(steps) and steps[0] > 20 and {line["all"] for line in lines} == {"600"}, done.stderr
    assert steps[-1] == workdir.rows("SELECT count(*) FROM span WHERE name = 'inner'")[0][0], done.stderr
    for line, n in list(zip(lines, steps))[:3]:
        left_s, elapsed_s = figure(line["time"]), figure(line["elapsed"])
        low_s, high_s = ends(line["times"]) if line["times"] else (left_s, left_s)
        assert low_s <= left_s <= high_s, line[0]
        assert low_s * 0.8 < elapsed_s / n * (600 - n) < high_s * 1.25, line[0]
        assert line["more"], f"energy to go is missing: {line[0]}"
    enough = workdir.wattle("run", "-q", "-o", "enough.sqlite", "--progress", "--step", "inner", "--steps", "5", "--",
                            SPANNER,
                            "pulse", "1.2")
    assert "to go" not in enough.stderr and not lines_of(enough.stderr)[0]["time"], enough.stderr


@test
def steps_of_what(workdir):
    """--steps without --step: a warning that names what is missing, and the run is measured"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--steps", "5", "--", "true")
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "--step NAME" in done.stderr, done
    assert not workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--disable-logs", "--steps", "5", "--",
                              "true").stderr


@test
def steps_of_a_file(workdir):
    """steps in gpu_tracker's file: forecast as well"""
    done = workdir.wattle("run", "-q", "--progress", "--step", "step", "--steps", "100", "--sub-tracking-file", "s.csv",
                          "-o",
                          "run.sqlite", "--", "/usr/bin/python3", "-c", FILE_STEPS, "55", "0.1")
    forecasts = [line for line in lines_of(done.stderr) if line["time"]]
    assert forecasts, done.stderr
    for line in forecasts:
        expected_s = figure(line["elapsed"]) / int(line["steps"]) * (100 - int(line["steps"]))
        assert 0.6 * expected_s < figure(line["time"]) < 1.6 * expected_s, line[0]


@test
def steps_of_a_fifo(workdir):
    """FIFO without a writer in place of gpu_tracker's file: does not block"""
    os.mkfifo(workdir.folder / "s.csv")
    done = workdir.wattle("run", "-q", "--progress", "--step", "step", "--steps", "100", "--sub-tracking-file", "s.csv",
                          "-o",
                          "run.sqlite", "--", "sleep", "1.2")
    assert done.returncode == 0 and "s.csv is not a regular file" in done.stderr, done
    assert "step 0/100" in done.stderr, done


def on_terminal(workdir, columns, *arguments, kind="xterm"):
    """All output to a terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workdir.folder)
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(WATTLE, [str(WATTLE), *map(str, arguments)], {**workdir.environment, "TERM": kind})
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode()


LAST_ROW = re.compile(r"\x1b7\x1b\[24;1H([^\x1b]*)\x1b\[K\x1b8")


@test
def on_terminals(workdir):
    """terminal: the line is in the last row, fits into each width, and is erased at the end"""
    for columns in (200, 80, 40, 20):
        shown = on_terminal(workdir, columns, "run", "-q", "--overwrite", "-o", "run.sqlite", "--progress", "--step",
                            "inner", "--steps", "900", "--", SPANNER, "pulse", "2.2")
        drawn = LAST_ROW.findall(shown)
        assert len(drawn) >= 2 and all(line and len(line) < columns for line in drawn), (columns, shown)
        assert ("to go" in shown) == (columns >= 80), (columns, drawn)
        assert shown.endswith("\x1b[r\x1b[24;1H\x1b[K\x1b8") and "\n" not in shown, (columns, shown)


@test
def on_simple_terminals(workdir):
    """terminal without a free last row: the line is at the cursor, and is overwritten by blanks"""
    shown = on_terminal(workdir, 80, "run", "-q", "-o", "run.sqlite", "--progress", "--", "sleep", "2.2", kind="dumb")
    drawn = shown.split("\r")
    assert "\x1b" not in shown and "\n" not in shown and all(len(line) < 80 for line in drawn), drawn
    assert len(drawn) >= 4 and not drawn[-1].strip() and not drawn[-2].strip(), drawn


@test
def beside_output(workdir):
    """the program's output stays complete before, while and after the screen is full"""
    words = ["tmux", "-L", f"wattle-progress-{os.getpid()}", "-f", "/dev/null"]
    environment = {**workdir.environment, "TMUX_TMPDIR": str(workdir.folder), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    environment.pop("TMUX", None)
    call = lambda *more: subprocess.run([*words, *more], env=environment, cwd=workdir.folder, check=True,
                                        capture_output=True, text=True).stdout
    script = "for i in $(seq 1 30); do echo epoch $i; sleep 0.1; done; printf open; sleep 1.1"
    try:
        call("new-session", "-d", "-x", "80", "-y", "12",
             f"{WATTLE} run -q -o run.sqlite --progress -- sh -c '{script}'; touch done; sleep 60")
    except FileNotFoundError:
        raise Skip("there is no tmux")
    try:
        call("set", "-g", "status", "off")
        call("resize-window", "-x", "80", "-y", "12")
        look = lambda: call("capture-pane", "-p").rstrip("\n").split("\n")
        rows = wait_until(lambda: (seen := look())[-1].startswith("wattle: ") and "epoch 1" not in seen and seen,
                          "a full screen with the line below")
        assert len(rows) == 12 and all(row.startswith("epoch ") for row in rows[:10]), rows
        wait_until(lambda: (workdir.folder / "done").exists(), "the end")
        rows = call("capture-pane", "-p", "-S", "-100").strip().split("\n")
        # On a busy machine a warning of lost samples is added.
        assert rows[:30] == [f"epoch {i}" for i in range(1, 31)] and re.match("open(wattle: warning|$)", rows[30]), rows
        assert not any(" J, " in row for row in rows), rows
    finally:
        subprocess.run([*words, "kill-server"], env=environment, capture_output=True)


@test
def progress_without_reader(workdir):
    """full or closed pipe: does not block: sampling continues, the status is the command's"""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(write_end, True)
    process = workdir.start("run", "-q", "--disable-logs", "-o", "run.sqlite", "--progress", "--", "sh", "-c",
                            "exec 2>&-; sleep 2.2; exit 7",
                            stderr=write_end)
    assert process.wait(timeout=20) == 7
    os.close(write_end)
    os.close(read_end)
    times = [row[0] for row in workdir.rows("SELECT t_ns FROM sample ORDER BY t_ns")]
    assert max(b - a for a, b in zip(times, times[1:])) < 1.5e9, "the recorder was blocked"


if __name__ == "__main__":
    main()
