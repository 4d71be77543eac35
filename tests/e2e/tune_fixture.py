"""Shared by the tests of `wattle cap tune`: a machine of cards of the fake NVML whose best limit is known
(gpu_card.py), and gpu_worker, a program whose step time follows its limit. Limits are read from the fake's log."""
import json
import os
import signal

from gpu_card import Card
from harness import BUILD, is_alive, near, wait_until

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
WORKER = BUILD / "tests/fakes/gpu_worker"
# Counters that are updated often and have timestamps, so that short windows are accurate.
SHARP = ("limit_delay_ms 20", "energy_period_ms 5", "field_times")
CARD = Card(more=SHARP)
QUICK = ["--caps", "5", "--seconds", "0.3", "--settle", "0.08", "--objective", "edp"]
# The program simulates hardware, which others don't delay: it has a higher priority where that is allowed.
WORKING = [WORKER, "--prompt", "--step-ms", "2"]
# A program that runs until it is asked to end, as `tune` does when the result exists.
WORK = ["sh", "-c", 'echo $$ > pid; exec "$0" "$@"', *WORKING]
NEARLY = 6  # percent above the best objective: windows are short



def put(workdir, *cards):
    """Writes the simulated cards to a file, and sets the environment in which they are the GPUs of the machine."""
    (workdir.folder / "cards").write_text("".join(card.text() for card in cards))
    workdir.environment |= {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                         "WATTLE_SYSFS": str(workdir.tree("empty", {})), "WATTLE_STATE": str(workdir.folder / "state"),
                         "WATTLE_HELPER": "off"}


def calls(workdir):
    """(GPU, W) of each call that set a limit."""
    path = workdir.folder / "cards.limits"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(words[1]), int(words[2]) / 1000) for words in map(str.split, lines) if len(words) == 4]


def limit_w(workdir, gpu=0, card=CARD):
    """The limit in force now."""
    return ([watts for which, watts in calls(workdir) if which == gpu] or [card.now_w or card.default_w])[-1]


def leases(workdir):
    return [path.name for path in (workdir.folder / "state/caps").glob("*.lease")]


def start(workdir, *options, device="gpu-0", **keywords):
    return workdir.start("cap", "tune", device, *QUICK, *options, **keywords)


def program(workdir):
    return int((workdir.folder / "pid").read_text())


def is_written(path):
    """wattle creates the file for a moment at its start, to check its permission."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def tune(workdir, *options, status=0, device="gpu-0", **keywords):
    """The result and the messages. The program is asked to end when the search is over."""
    result = workdir.folder / "tune.json"
    process = start(workdir, "--json", result, *options, device=device, **keywords)
    try:
        wait_until(lambda: is_written(result) or process.poll() is not None, "the result", 180)
    finally:
        if (workdir.folder / "pid").exists() and is_alive(program(workdir)):
            os.kill(program(workdir), signal.SIGTERM)
    done = workdir.finish(process)
    assert done.returncode == status, f"status {done.returncode}, expected {status}: {done.stderr}"
    return (json.loads(result.read_text()) if result.exists() else None), done


def is_good(result, card=CARD, goal="edp", from_w=120):
    assert result["complete"], result
    worse = card.worse_percent(goal, result["chosen_w"], from_w=from_w)
    best_w = card.best_w(goal, from_w=from_w)
    assert worse < NEARLY + result["noise_percent"], f"{result['chosen_w']} W is {worse:.1f} % worse than {best_w} W"


def is_as_before(workdir, watts=400):
    assert limit_w(workdir) == watts, calls(workdir)
    assert leases(workdir) == [], leases(workdir)

def is_true(result, card=CARD, step_s=0.002):
    """Measured values agree with the card's formulas, within the stated errors and 3 %."""
    for row in result["caps"]:
        truths = card.step(row["cap_w"], step_s)
        for name, unit, expected_values in zip(("energy", "time"), ("j", "s"), truths):
            low, high = (row[f"{name}_per_step_{end}_{unit}"] for end in ("low", "high"))
            assert low * 0.97 <= expected_values <= high * 1.03, (name, row, expected_values)
        near(row["energy_j"] / row["steps"] * row["time_s"] / row["steps"], row["objective"], relative=0.1)
