"""`wattle cap tune` on cards whose best limit is known: programs of all kinds, and everything that may go wrong meanwhile.

The cards are those of the fake NVML; gpu_worker is a program whose steps take as long as their limit lets them, gpu_card.py
knows what is best. After each test the limit is what it was, unless somebody asked for another.
"""
import csv
import json
import os
import pathlib
import shutil
import signal
import time

from gpu_card import Card
from harness import BUILD, NOBODY, is_alive, main, near, test, wait_until

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
WORKER = BUILD / "tests/fakes/gpu_worker"
# Counters that are renewed often and say when, so that short windows are sharp.
SHARP = ("limit_delay_ms 20", "energy_period_ms 5", "field_times")
CARD = Card(more=SHARP)
QUICK = ["--caps", "5", "--seconds", "0.3", "--settle", "0.08", "--objective", "edp"]
# A program that goes on until it is told to end, as `tune` does when the result is there.
WORK = ["sh", "-c", 'echo $$ > pid; exec "$0" "$@"', WORKER, "--step-ms", "2"]
NEARLY = 6  # percent above the best objective: windows are short, and machines that test are busy


def put(room, *cards):
    """The file of cards and the environment in which they are the machine's."""
    (room.folder / "cards").write_text("".join(card.text() for card in cards))
    room.environment |= {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(room.folder / "cards"),
                         "WATTLE_SYSFS": str(room.tree("empty", {})), "WATTLE_STATE": str(room.folder / "state"),
                         "WATTLE_HELPER": "off"}


def calls(room):
    """(GPU, W) of each call that has set a limit."""
    path = room.folder / "cards.limits"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(words[1]), int(words[2]) / 1000) for words in map(str.split, lines) if len(words) == 4]


def limit_w(room, gpu=0, card=CARD):
    """The limit that is in force now."""
    return ([watts for which, watts in calls(room) if which == gpu] or [card.now_w or card.default_w])[-1]


def leases(room):
    return [path.name for path in (room.folder / "state/caps").glob("*.lease")]


def start(room, *options, device="gpu-0", **keywords):
    return room.start("cap", "tune", device, *QUICK, *options, **keywords)


def program(room):
    return int((room.folder / "pid").read_text())


def tune(room, *options, status=0, device="gpu-0", **keywords):
    """The result, and what was said. The program is told to end when the search is over."""
    result = room.folder / "tune.json"
    process = start(room, "--json", result, *options, device=device, **keywords)
    wait_until(lambda: result.exists() or process.poll() is not None, "the result", 60)
    if process.poll() is None and (room.folder / "pid").exists() and is_alive(program(room)):
        os.kill(program(room), signal.SIGTERM)
    done = room.finish(process)
    assert done.returncode == status, f"status {done.returncode}, expected {status}: {done.stderr}"
    return (json.loads(result.read_text()) if result.exists() else None), done


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_good(result, card=CARD, goal="edp", from_w=120):
    assert result["complete"], result
    worse = card.worse_percent(goal, result["chosen_w"], from_w=from_w)
    assert worse < NEARLY, f"{result['chosen_w']} W is {worse:.1f} % worse than {card.best_w(goal, from_w=from_w)} W"


def is_as_before(room, watts=400):
    assert limit_w(room) == watts, calls(room)
    assert leases(room) == [], leases(room)


@test
def steps(room):
    """steps of a program that tells spans: the best limit, figures as the card's formula has them, the limit as it was; CSV in
    the seed's layout, a page that loads nothing"""
    put(room, CARD)
    result, done = tune(room, "--step", "step", "--csv", "tune.csv", "--html", "tune.html", "--", *WORK)
    is_good(result)
    is_as_before(room)
    for row in result["caps"]:
        energy_j, time_s = CARD.step(row["cap_w"], 0.002)
        near(row["energy_per_step_j"], energy_j, relative=0.08)
        near(row["time_per_step_s"], time_s, relative=0.05)
        near(row["energy_j"] / row["steps"] * row["time_s"] / row["steps"], row["objective"], relative=0.1)
    assert [row["cap_w"] for row in result["caps"]] == [400, 330, 260, 190, 120], result["caps"]
    assert {watts for _, watts in calls(room)} <= {400, 330, 260, 190, 120}, calls(room)
    energy_j, time_s = CARD.step(result["chosen_w"], 0.002)
    near(result["saving_percent"], 100 * (1 - energy_j / CARD.step(400, 0.002)[0]), absolute=6)
    near(result["slowdown_percent"], 100 * (time_s / CARD.step(400, 0.002)[1] - 1), absolute=6)
    assert result["saving_low_percent"] <= result["saving_percent"] <= result["saving_high_percent"], result
    assert result["previous_w"] == 400 and result["device"] == "gpu-0" and result["objective"] == "edp", result
    assert f"wattle cap set gpu-0 {result['chosen_w']:.0f} -- CMD" in done.stderr, done.stderr
    assert '"steps"' in done.stdout, "the command's own output is where it belongs"
    is_as_the_seed_has_it((room.folder / "tune.csv").read_text(), result)
    page = (room.folder / "tune.html").read_text()
    assert page.count("<circle") == 5 and "default-src 'none'" in page and "<script" not in page, page
    assert "http" not in page.replace("http-equiv", ""), "nothing is loaded from anywhere"


def is_as_the_seed_has_it(text, result):
    """Cap, steps, kWh and objective a row, without a header, then the chosen cap."""
    *rows, last = csv.reader(text.splitlines())
    assert len(rows) == 5 and last == ["Modeled Optimal Cap:", f"{result['chosen_w']:g}"], (rows, last)
    for (watts, n, kwh, objective), row in zip(rows, result["caps"]):
        assert (float(watts), float(n), float(objective)) == (row["cap_w"], row["steps"], row["objective"])
        near(float(kwh) * 3.6e6, row["energy_j"], relative=1e-9)


@test
def nvtx(room):
    """NVTX ranges of a program that knows nothing of wattle, and least energy within a bound on time"""
    put(room, CARD)
    result, _ = tune(room, "--nvtx", "--step", "step", "--objective", "slowdown=10", "--", *WORK, "--as", "nvtx")
    near(result["chosen_w"], CARD.best_w("energy", slowdown_percent=10), absolute=25)
    assert [row["allowed"] for row in result["caps"]][0::4] == [True, False], result["caps"]
    is_as_before(room)


@test
def metric(room):
    """work counted by what a program reports, and a program that ends sooner than the search is started again"""
    put(room, CARD)
    result, done = tune(room, "--metric", "step", "--", *WORK, "--as", "metric", "--seconds", 2)
    is_good(result)
    assert done.stdout.count('"steps"') >= 2, done.stdout
    is_as_before(room)


@test
def whole_runs(room):
    """without --step whole runs of the command are measured, one a window"""
    put(room, CARD)
    result, done = tune(room, "--", *WORK, "--as", "nothing", "--steps", 100)
    worse = CARD.worse_percent("edp", result["chosen_w"], from_w=120)
    assert worse < 2 * NEARLY, result["chosen_w"]
    assert all(row["steps"] == row["windows"] for row in result["caps"]), result["caps"]
    assert done.stdout.count('"steps": 100') == result["windows"], done.stdout
    is_as_before(room)


@test
def running_program(room):
    """--pid: a program that leaves its spans in a file; it is not touched, and lives on"""
    put(room, CARD)
    worker = room.start("--step-ms", 2, program=WORKER, env={"WATTLE_SPANS": "%p.spans"})
    wait_until(lambda: (room.folder / f"{worker.pid}.spans").exists(), "the first span")
    result, _ = tune(room, "--pid", worker.pid, "--step", "step")
    is_good(result)
    assert worker.poll() is None
    is_as_before(room)


@test
def program_under_a_recorder(room):
    """--pid: a program that runs under `wattle run` already: its steps are read from that run file"""
    put(room, CARD)
    recorder = room.start("run", "-q", "--flush", "200ms", "-o", "own.sqlite", "--", *WORK)
    wait_until(lambda: (room.folder / "pid").exists() and room.rows("select 1 from span", "own.sqlite"), "the first span")
    pid = program(room)
    (room.folder / "pid").unlink()
    result, _ = tune(room, "--caps", 3, "--pid", pid, "--step", "step")
    assert result["complete"] and is_alive(pid), result
    is_as_before(room)
    os.kill(pid, signal.SIGTERM)
    room.finish(recorder)


@test
def program_without_spans(room):
    """--pid: a program that leaves its spans nowhere: what to do is said, and nothing is changed"""
    put(room, CARD)
    worker = room.start("--step-ms", 2, program=WORKER)
    _, done = tune(room, "--pid", worker.pid, "--step", "step", status=1)
    assert "WATTLE_SPANS=FILE" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert calls(room) == [] and worker.poll() is None


@test
def several_cards(room):
    """one limit for two cards that work together, then each its own"""
    put(room, CARD, Card(memory_share=0.6, more=SHARP))
    both, _ = tune(room, "--caps", 4, "--step", "step", "--", *WORK, "--gpus", "0,1", device="gpu-0,gpu-1")
    assert both["device"] == "gpu-0,gpu-1" and both["complete"], both
    near(both["caps"][0]["energy_per_step_j"], 2 * CARD.step(400, 0.002)[0], relative=0.08)
    assert {gpu for gpu, _ in calls(room)} == {0, 1}
    assert (limit_w(room, 0), limit_w(room, 1)) == (400, 400)
    (room.folder / "tune.json").unlink()
    each, _ = tune(room, "--each", "--caps", 3, "--step", "step", "--", *WORK, "--gpus", "0,1", device="gpus")
    assert [one["device"] for one in each] == ["gpu-0", "gpu-1"], each
    assert (limit_w(room, 0), limit_w(room, 1)) == (400, 400)


@test
def apply(room):
    """--apply: the chosen limit stays, `cap reset` brings back what was there before; the result stands in the run file"""
    put(room, CARD)
    result, _ = tune(room, "--apply", "-o", "kept.sqlite", "--step", "step", "--", *WORK)
    assert result["applied"] and limit_w(room) == result["chosen_w"] < 400 and result["previous_w"] == 400, result
    kept = json.loads(room.rows("select value from run where key = 'cap_tune'", "kept.sqlite")[0][0])
    assert kept == result
    assert room.wattle("cap", "reset", "gpu-0").returncode == 0
    is_as_before(room)


@test
def clocks(room):
    """--clocks: the highest clock in place of the limit; the lock is gone afterwards"""
    put(room, CARD)
    result, _ = tune(room, "--clocks", "--objective", "energy", "--step", "step", "--", *WORK)
    best = CARD.best_clock_mhz("energy")
    energy_j, least_j = (CARD.step(400, locked_mhz=mhz)[0] for mhz in (result["chosen_mhz"], best))
    assert energy_j < least_j * (1 + NEARLY / 100), (result["chosen_mhz"], best)
    assert result["chosen_w"] is None and calls(room) == []
    assert (room.folder / "cards.clocks").read_text().splitlines()[-1].split()[2] == "0"


@test
def ctrl_c(room):
    """SIGTERM: the limit comes back at once, the command gets the signal, the status says which, what was found is shown"""
    put(room, CARD)
    process = start(room, "--step", "step", "--", *WORK)
    wait_until(lambda: limit_w(room) < 400, "a lower limit")
    process.send_signal(signal.SIGTERM)
    done = room.finish(process)
    assert done.returncode == 128 + signal.SIGTERM, done
    assert "interrupted" in done.stderr and '"steps"' in done.stdout, (done.stdout, done.stderr)
    is_as_before(room)


@test
def killed(room):
    """a kill -9 of the tuner: the limit is back within a second, and the command lives on"""
    put(room, CARD)
    process = start(room, "--step", "step", "--", *WORK)
    wait_until(lambda: limit_w(room) < 400, "a lower limit")
    pid = program(room)
    process.kill()
    process.wait()
    wait_until(lambda: limit_w(room) == 400, "the limit is back", 10)
    assert is_alive(pid)
    recorder = parent(pid)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not is_alive(pid) and not is_alive(recorder), "the command and its recorder end")


@test
def somebody_else(room):
    """somebody else changes the limit: the search stops, theirs stays, the command goes on to its end"""
    put(room, CARD)
    process = start(room, "--step", "step", "--", *WORK, "--seconds", 3)
    wait_until(lambda: len(calls(room)) >= 3, "the third limit")
    with open(room.folder / "cards.limits", "a") as file:
        file.write(f"{time.monotonic_ns()} 0 245000 1\n")
    done = room.finish(process)
    assert done.returncode == 1 and "changed" in done.stderr and "245 W" in done.stderr, done
    assert limit_w(room) == 245 and '"seconds": 3' in done.stdout, done.stdout
    assert leases(room) == []


@test
def lost_card(room):
    """a card that is lost while capped: said, the command goes on; back again, the next start of wattle restores"""
    put(room, Card(more=(*SHARP, "lost_when_file lost")))
    process = start(room, "--step", "step", "--", *WORK, "--seconds", 3)
    wait_until(lambda: limit_w(room) < 400, "a lower limit")
    (room.folder / "lost").touch()
    done = room.finish(process)
    assert done.returncode == 1 and "gpu-0" in done.stderr and '"seconds": 3' in done.stdout, done
    (room.folder / "lost").unlink()
    assert "back at 400 W" in room.wattle("cap", "list").stderr
    is_as_before(room)


@test
def failing_command(room):
    """a command that fails ends the search with its status, and the limit is back"""
    put(room, CARD)
    _, done = tune(room, "--step", "step", "--", "sh", "-c", f"{WORKER} --step-ms 2 --seconds 1.2; exit 7", status=7)
    assert "failed with status 7" in done.stderr, done.stderr
    is_as_before(room)


@test
def no_such_step(room):
    """no step of that name: the names that there are; the command goes on"""
    put(room, CARD)
    process = start(room, "--step", "stpe", "--patience", "500ms", "--", *WORK, "--seconds", 1.5)
    done = room.finish(process)
    assert done.returncode == 1 and '"seconds": 1.5' in done.stdout, done
    assert "no step named stpe" in done.stderr and "names seen so far: step" in done.stderr, done.stderr
    is_as_before(room)


@test
def refused(room):
    """what can't work is refused with one line before anything runs"""
    put(room, CARD)
    holder = room.start("cap", "set", "gpu-0", 300, "--", "sleep", 60)
    wait_until(lambda: limit_w(room) == 300, "somebody's lease")
    (room.folder / "there.sqlite").write_text("")
    run = ["--", "touch", "it-ran"]
    for status, word, options in [
            (1, "wattle cap set", ["gpu-0", *run]),
            (1, "gpu-7", ["gpu-7", *run]),
            (2, "--objective", ["gpu-0", "--objective", "speed", *run]),
            (2, "--caps", ["gpu-0", "--caps", "1", *run]),
            (2, "--pid", ["gpu-0", "--pid", "1", *run]),
            (2, "--pid", ["gpu-0", "--pid", "1"]),
            (2, "no command", ["gpu-0"]),
            (2, "no device", run),
            (2, "--nvtx", ["gpu-0", "--nvtx", *run]),
            (1, "there.sqlite", ["gpu-0", "-o", "there.sqlite", *run]),
            (127, "not found", ["gpu-0", "--", "no-such-command"])]:
        done = room.wattle("cap", "tune", *options)
        assert done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1, (options, done)
    assert limit_w(room) == 300 and not (room.folder / "it-ran").exists()
    holder.terminate()
    holder.wait()


@test
def not_allowed(room):
    """a user who may not, and a machine without any device: one line that says what would help; nothing runs"""
    put(room, Card(more=("set_uid 0",)))
    wattle, _ = room.for_everybody()
    library = shutil.copy2(LIBRARY, room.folder / "nvml.so")
    if os.geteuid() == 0:
        done = room.finish(room.start("cap", "tune", "gpu-0", "--", "touch", "it-ran", program=wattle, user=NOBODY,
                                      env={"WATTLE_NVML": str(library), "XDG_STATE_HOME": str(room.folder), "WATTLE_STATE": None}))
        assert done.returncode == 1 and "sudo" in done.stderr and done.stderr.count("\n") == 1, done
    done = room.wattle("cap", "tune", "gpus", "--", "touch", "it-ran", env={"WATTLE_NVML": "/nonexistent.so"})
    assert done.returncode == 1 and "limited" in done.stderr, done
    assert not (room.folder / "it-ran").exists() and calls(room) == []


@test
def refused_by_the_driver(room):
    """a driver that refuses the first change: said, the limit is what it was, the command goes on"""
    put(room, Card(more=("error nvmlDeviceSetPowerManagementLimit 4",)))
    process = start(room, "--step", "step", "--", *WORK, "--seconds", 2.5)
    done = room.finish(process)
    assert done.returncode == 1 and "gpu-0" in done.stderr and '"seconds": 2.5' in done.stdout, done
    assert calls(room) == [] and leases(room) == []


main()
