"""bench/peers: the harness computes errors rightly, on its simulated machine, with meters whose error is known."""
import math
import sys

from harness import BUILD, TESTS, Skip, main, near, test

sys.path.insert(0, str(TESTS.parent / "bench/peers"))
import machine
import meters
import peers
from statistics_table import cell, interval, relative_error_percent, table

COUNTER = "/sys/class/powercap/intel-rapl/intel-rapl:0/energy_uj"
# Reads the counter around the command, as the peers do, and reports 1.1 times the difference.
MADE = f'a=$(cat {COUNTER}); file=$1; shift; "$@"; b=$(cat {COUNTER}); echo "$((a))" "$((b))" >"$file"'


def read_made(folder):
    before, after = map(int, (folder / "made").read_text().split())
    return {"package_j": 1.1e-6 * (after - before), "program_j": 5.0}


MADE_METER = meters.Meter("made", "1", lambda folder, command: ["sh", "-c", MADE, "sh", folder / "made", *command], read_made)
BROKEN_METER = meters.Meter("broken", "1", lambda folder, command: ["sh", "-c", "echo no such sensor >&2; exit 3"], read_made)


@test
def errors_of_a_made_meter(workdir):
    """meter that reads 10 % too much: the table says +10 %; wattle: within 3 %; a meter that fails: its message"""
    if REFUSED:
        raise Skip(REFUSED)
    made = peers.run_once(BUILD, workdir.folder / "a", MADE_METER, "steady", True)
    wattle = peers.run_once(BUILD, workdir.folder / "b", meters.wattle(BUILD), "steady", True)
    broken = peers.run_once(BUILD, workdir.folder / "c", BROKEN_METER, "steady", True)
    # The commands between reading and work use energy too: in proportion to a run of 1 s of CPU time, little.
    assert 8 < made["errors"]["package_j"] < 25, made
    near(made["errors"]["program_j"], 100 * (5 / (machine.WATTS_PER_CPU * made["truth"]["cpu_s"]) - 1), relative=1e-6)
    assert abs(wattle["errors"]["program_j"]) < 10 and abs(wattle["errors"]["cpu_s"]) < 3, wattle
    assert "status 3" in broken["failed"] and "no such sensor" in broken["failed"], broken
    results = {("made", "steady"): [made], ("broken", "steady"): [broken], ("wattle run", "steady"): [wattle]}
    text = peers.error_table(results, [MADE_METER, BROKEN_METER], ["steady"], "package_j")
    assert "| made | +" in text and "broken" not in text, text


@test
def a_card_with_steps(workdir):
    """card between 60 and 260 W: energy between any two instants equals the sum over small steps"""
    simulated = machine.Machine(workdir.folder / "m", BUILD, gpu_steps=True)
    simulated.epoch_ns = 1_000_000_000

    def power_w(t_ns):
        rest = (t_ns - simulated.epoch_ns) / 1e9 % machine.GPU_PERIOD_S
        return machine.GPU_HIGH_W if rest >= machine.GPU_PERIOD_S / 2 else machine.GPU_LOW_W
    step_ns = 100_000
    for from_ns, to_ns in ((1_000_000_000, 1_300_000_000), (1_350_000_000, 3_777_000_000)):
        slow_j = math.fsum(power_w(t + step_ns // 2) * step_ns / 1e9 for t in range(from_ns, to_ns, step_ns))
        near(simulated.gpu_j(from_ns, to_ns), slow_j, relative=1e-6)


@test
def figures_of_the_tables(workdir):
    """means, Student's intervals, percent, empty cells, unknown names, and text between markers of a page"""
    mean, half = interval([1.0, 2.0, 3.0])
    near(mean, 2)
    near(half, 4.303 / math.sqrt(3), relative=1e-9)
    assert interval([5.0]) == (5.0, None)
    assert relative_error_percent(11, 10) == 100 * (11 / 10 - 1) and relative_error_percent(None, 10) is None
    assert relative_error_percent(1, 0) is None
    assert cell([None, None]) == "n/a" and cell([1.0], signed=True) == "+1.0"
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |"
    page = workdir.folder / "page.md"
    page.write_text(f"before\n{peers.MARKERS[0]}\nold\n{peers.MARKERS[1]}\nafter\n")
    peers.write_between_markers(page, "new\n")
    assert page.read_text() == f"before\n{peers.MARKERS[0]}\nnew\n{peers.MARKERS[1]}\nafter\n"


@test
def debians_meters(workdir):
    """pidstat's and perf's files as they write them: CPU seconds"""
    (workdir.folder / "perf.csv").write_text("# started\n\n1500.25,msec,task-clock,1500250000,100.00,1.000,CPUs utilized\n")
    assert meters.read_perf(workdir.folder)["cpu_s"] == 1.50025
    (workdir.folder / "meter.out").write_text(
        "Linux 6.1 (host) \t2026-01-01 \t_x86_64_\t(2 CPU)\n\n"
        "22:39:29      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n"
        "22:39:30        0     16928   10.00    4.00    0.00   86.00   14.00     0  burner\n"
        "22:39:31        0     16928   13.33    2.86    0.00   82.86   86.00     0  burner\n"
        "Average:        0     16928   11.40    3.91    0.00   84.69   50.00     -  burner\n")
    near(meters.read_pidstat(workdir.folder)["cpu_s"], 1.0, relative=1e-12)


if __name__ == "__main__":
    REFUSED = machine.in_own_namespaces()
    main()
