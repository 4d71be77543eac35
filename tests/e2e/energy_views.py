"""One machine, all outputs of its energy at once: a recorded run with its report and progress line, `serve`, `top`, the
library's meter and a search for a limit. Each must agree with the true energy within its stated error, and so with the
others."""
import json
import re
import sys
import time

from c_programs import build
from harness import TESTS, main, near, test
from serving import NVML, Server, powercap
from tune_fixture import WORK, Card, tune

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

ZONES = ("package-0=50+20*sin@1.3", "package-0/dram=5")
CARD = Card(more=("limit_delay_ms 20", "energy_period_ms 20", "field_times"))


class Machine:
    """Counters of a package and its memory that move along known functions, and a card of constant power."""

    def __init__(self, workdir, card=CARD):
        environment, folder = powercap(workdir, *ZONES)
        (workdir.folder / "cards").write_text(card.text())
        workdir.environment |= environment | {"WATTLE_NVML": str(NVML),
                                              "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                             "WATTLE_STATE": str(workdir.folder / "state")}
        self.expected_values = expected_values.load(folder)
        self.gpu_w = card.power_w(card.default_w)

    def used_j(self, from_ns, to_ns):
        zones = sum(expected_values.energy_j(self.expected_values, zone.split("=")[0], from_ns, to_ns)
                    for zone in ZONES)
        return zones + self.gpu_w * (to_ns - from_ns) / 1e9


def served(server):
    """The counters of `serve`, and their time (CLOCK_MONOTONIC)."""
    now = server.now()
    return now["total_j"], now["unix_s"] * 1e9 + time.monotonic_ns() - time.time_ns()


UNITS = {"mW": 1e-3, "W": 1, "kW": 1e3, "mJ": 1e-3, "J": 1, "kJ": 1e3}


def shown(pattern, text):
    """The last figure of a text after a pattern, with its unit."""
    number, unit = re.findall(pattern + r"\s*~?([\d.]+) (mW|W|kW|mJ|J|kJ)", text)[-1]
    return float(number) * UNITS[unit]


@test
def at_once(workdir):
    """report, progress line, serve, top and the library's meter: the same energy within their errors"""
    machine = Machine(workdir)
    server = Server(workdir, "--interval", "100ms")
    server.wait_for_samples(10)
    first_j, first_ns = served(server)
    run = workdir.start("run", "-q", "-o", "run.sqlite", "--json", "report.json", "--progress", "--",
                        build(workdir, "meter"), "once", "2.3")
    done = workdir.finish(run)
    top = workdir.wattle("top", "--once", "-i", "1s", env={"COLUMNS": "100", "LINES": "60"}).stdout
    last_j, last_ns = served(server)
    energy = json.loads((workdir.folder / "report.json").read_text())["energy"]
    (start_ns, end_ns), = workdir.rows("SELECT start_ns, end_ns FROM segment")
    run_j = machine.used_j(start_ns, end_ns)
    # The report.
    near(energy["total_j"], run_j, absolute=energy["error_j"])
    assert energy["error_j"] < 0.1 * run_j, energy
    # The progress line, to its three digits; a busy machine ends a run up to 50 ms after its last sample.
    late_j = 0.005 * run_j + 0.05 * (machine.gpu_w + 75)
    shown_j = shown(r"wattle: [^,]+,", done.stderr)
    near(shown_j, energy["total_j"], absolute=energy["error_j"] + late_j)
    near(shown_j, run_j, absolute=energy["error_j"] + late_j)
    # The meter of the measured program.
    words = next(line.split() for line in done.stdout.splitlines() if line.startswith("once "))
    from_ns, to_ns, meter_j, meter_error_j = int(words[2]), int(words[3]), float(words[9]), float(words[10])
    near(meter_j, machine.used_j(from_ns, to_ns), absolute=meter_error_j + 0.5)  # between its calls and the clock's
    assert meter_error_j < 0.08 * meter_j, words  # the period of the card is unknown to it: 0.1 s of its power
    # serve: counters of the latest update, up to 20 ms ago at both ends.
    near(last_j - first_j, machine.used_j(first_ns, last_ns), absolute=2 * 0.02 * machine.gpu_w + 0.02 * run_j)
    # top: mean power of a second.
    near(shown("gpu-0", top), machine.gpu_w, relative=0.05)
    near(shown("dram-0", top), 5, relative=0.05)
    assert 30 < shown("package-0", top) < 70, top


@test
def a_window(workdir):
    """window of cap tune: the power under each limit is the card's, within the stated error"""
    Machine(workdir)
    result, _ = tune(workdir, "--step", "step", "--", *WORK)
    for row in result["caps"]:
        near(row["energy_j"] / row["time_s"], CARD.power_w(row["cap_w"]), relative=0.05)


if __name__ == "__main__":
    main()
