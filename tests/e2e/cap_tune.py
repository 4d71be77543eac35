"""`wattle cap tune`: sources of steps: spans, NVTX, ITT, metrics, whole runs, running programs. Results are compared
with the card's formulas. Devices: cap_tune_devices.py; failures: cap_tune_ends.py."""
import csv
import json
import os
import signal
import time

from gpu_card import Card
from harness import BUILD, is_alive, main, near, test, wait_until
from tune_fixture import CARD, NEARLY, WORK, WORKER, calls, is_as_before, is_good, is_true, program, put, tune


@test
def steps(workdir):
    """steps from spans: the best limit, figures as in the card's formula, previous limit restored; CSV in gpu_tracker's
    layout, a page that loads nothing; no secret of the command in any output"""
    put(workdir, CARD)
    result, done = tune(workdir, "--step", "step", "--csv", "tune.csv", "--html", "tune.html", "--", "env",
                        "API_TOKEN=s3cret", *WORK)
    is_good(result)
    is_as_before(workdir)
    is_true(result)
    assert [row["cap_w"] for row in result["caps"]] == [400, 330, 260, 190, 120], result["caps"]
    assert {watts for _, watts in calls(workdir)} <= {400, 330, 260, 190, 120}, calls(workdir)
    (reference_j, reference_s), (energy_j, time_s) = CARD.step(400, 0.002), CARD.step(result["chosen_w"], 0.002)
    near(result["saving_percent"], 100 * (1 - energy_j / reference_j), absolute=6 + result["noise_percent"])
    near(result["slowdown_percent"], 100 * (time_s / reference_s - 1), absolute=6 + result["noise_percent"])
    assert result["saving_low_percent"] <= result["saving_percent"] <= result["saving_high_percent"], result
    assert result["previous_w"] == 400 and result["device"] == "gpu-0" and result["objective"] == "edp", result
    assert f"wattle cap set gpu-0 {result['chosen_w']:.0f} -- CMD" in done.stderr, done.stderr
    assert '"steps"' in done.stdout, "the command's own output is on stdout"
    is_as_the_seed_has_it((workdir.folder / "tune.csv").read_text(), result)
    text = (workdir.folder / "tune.json").read_text()
    assert text.endswith("}\n") and not text.endswith("\n\n") and text.count("\n") < 250 and len(result["curve"]) <= 60
    assert "  EDP" in done.stderr and "-0.0" not in done.stderr, done.stderr
    page = (workdir.folder / "tune.html").read_text()
    assert page.count("<circle") == 5 and "default-src 'none'" in page, page
    assert "<script" not in page and "-0.0" not in page, page
    assert "http" not in page.replace("http-equiv", ""), "no resource is loaded"
    assert "API_TOKEN=***" in page and "API_TOKEN=***" in done.stderr, (page, done.stderr)
    assert not [shown for shown in (page, text, done.stderr) if "s3cret" in shown]


def is_as_the_seed_has_it(text, result):
    """Cap, steps, kWh and objective of each row, without a header, then the chosen cap."""
    *rows, last = csv.reader(text.splitlines())
    assert len(rows) == 5 and last == ["Modeled Optimal Cap:", f"{result['chosen_w']:g}"], (rows, last)
    for (watts, n, kwh, objective), row in zip(rows, result["caps"]):
        assert (float(watts), float(n), float(objective)) == (row["cap_w"], row["steps"], row["objective"])
        near(float(kwh) * 3.6e6, row["energy_j"], relative=1e-9)


@test
def nvtx(workdir):
    """NVTX ranges of an unmodified program, and least energy within a bound on time"""
    put(workdir, CARD)
    result, _ = tune(workdir, "--nvtx", "--step", "step", "--objective", "slowdown=10", "--", *WORK, "--as", "nvtx")
    near(result["chosen_w"], CARD.best_w("energy", slowdown_percent=10), absolute=25)
    assert [row["allowed"] for row in result["caps"]][0::4] == [True, False], result["caps"]
    is_as_before(workdir)


@test
def metric(workdir):
    """work counted by reported metrics; a program that ends before the search is started again"""
    put(workdir, CARD)
    result, done = tune(workdir, "--metric", "step", "--", *WORK, "--as", "metric", "--seconds", 2)
    is_good(result)
    assert done.stdout.count('"steps"') >= 2, done.stdout
    is_as_before(workdir)


@test
def metric_total(workdir):
    """metric that is a running total: the work is its increase"""
    put(workdir, CARD)
    result, _ = tune(workdir, "--caps", 3, "--metric-total", "step", "--", *WORK, "--as", "total")
    is_true(result)
    is_as_before(workdir)


@test
def readings_later_than_steps(workdir):
    """the recorder's first reading under a new limit is later than the window's first step (interval 0.7 s, window 0.3
    s, as on a busy machine): the window is measured again, and the search ends"""
    put(workdir, CARD)
    started = time.monotonic()
    result, _ = tune(workdir, "--caps", 3, "--interval", "700ms", "--step", "step", "--", *WORK)
    assert result["complete"] and time.monotonic() - started < 60, result
    is_as_before(workdir)


@test
def itt(workdir):
    """ITT tasks of an unmodified program"""
    put(workdir, CARD)
    result, _ = tune(workdir, "--itt", "--caps", 2, "--seconds", 0.2, "--step", "app/batch", "--",
                     BUILD / "tests/fakes/itt_app", 200)
    assert result["complete"] and len(result["caps"]) == 2, result
    for row in result["caps"]:
        assert row["steps"] >= 2 and 0.02 <= row["time_per_step_s"] < 0.2, row
    is_as_before(workdir)


@test
def many_short_steps(workdir):
    """ten thousand steps a second: all are counted"""
    put(workdir, CARD)
    result, done = tune(workdir, "--caps", 3, "--step", "step", "--", *WORK[:-1], "0.1", "--seconds", 9)
    assert result["complete"] and sum(row["steps"] for row in result["caps"]) > 2000, result
    is_true(result, step_s=1e-4)
    is_as_before(workdir)


@test
def whole_runs(workdir):
    """no --step: whole runs of the command are measured, one for each window"""
    put(workdir, CARD)
    result, done = tune(workdir, "--", *WORK, "--as", "nothing", "--steps", 100)
    worse = CARD.worse_percent("edp", result["chosen_w"], from_w=120)
    assert worse < 2 * NEARLY + result["noise_percent"], result["chosen_w"]
    assert all(row["steps"] == row["windows"] for row in result["caps"]), result["caps"]
    assert done.stdout.count('"steps": 100') == result["windows"], done.stdout
    is_as_before(workdir)


# Delay until a limit acts, time constant (ms), and whether the card is idle between programs.
LATE = ((1000, 300, False), (2000, 0, False), (2000, 0, True))


@test
def whole_runs_on_late_cards(workdir):
    """cards on which a limit acts after 1 to 2 s, also one that is idle between runs: each counted run begins after its
    limit acts"""
    cards = [Card(idle_w=80, full_w=680, min_w=200, max_w=700, default_w=700,
                  more=(f"limit_delay_ms {delay_ms}", f"limit_approach_ms {approach_ms}", *["rests"] * rests,
                        "energy_period_ms 20", "field_times")) for delay_ms, approach_ms, rests in LATE]
    put(workdir, *cards)
    searches = [workdir.start("cap", "tune", f"gpu-{i}", "--objective", "slowdown=10", "--caps", 4, "--from", 40,
                              "--seconds", 1,
                              "--seed", 1, "--json", f"{i}.json", "--", WORKER, "--prompt", "--gpus", i, "--step-ms", 5,
                              "--as", "nothing", "--steps", 200) for i in range(len(cards))]
    for i, search in enumerate(searches):
        done = workdir.finish(search)
        assert done.returncode == 0, done.stderr
        result = json.loads((workdir.folder / f"{i}.json").read_text())
        first_s, *later_s = measured_runs_s(workdir, i)  # the first one still has the previous limit
        assert len(later_s) + 1 == result["windows"], (LATE[i], first_s, later_s, result)
        for since_s in later_s:
            assert since_s >= sum(LATE[i][:2]) / 1000 - 0.1, (LATE[i], first_s, later_s, calls(workdir))


def measured_runs_s(workdir, gpu):
    """Time from setting the limit to the beginning of each run; for several runs with one limit the last one, as the
    others were repeated."""
    lines = [(int(words[0]), name, words[2]) for name in ("limits", "work")
             for words in map(str.split, (workdir.folder / f"cards.{name}").read_text().splitlines())
             if int(words[1]) == gpu]
    since_s, set_ns = {}, None
    for t_ns, name, value in sorted(lines):
        if name == "limits":
            set_ns = t_ns
        elif value == "1":
            since_s[set_ns] = (t_ns - set_ns) / 1e9
    return list(since_s.values())


@test
def running_program(workdir):
    """--pid: a program that writes its spans to a file: it is not changed, and continues"""
    put(workdir, CARD)
    worker = workdir.start("--step-ms", 2, program=WORKER, env={"WATTLE_SPANS": "%p.spans"})
    wait_until(lambda: (workdir.folder / f"{worker.pid}.spans").exists(), "the first span")
    result, _ = tune(workdir, "--pid", worker.pid, "--step", "step")
    is_good(result)
    assert worker.poll() is None
    is_as_before(workdir)


@test
def program_under_a_recorder(workdir):
    """--pid: a program under `wattle run`: its steps are read from that run file"""
    put(workdir, CARD)
    recorder = workdir.start("run", "-q", "--flush", "200ms", "-o", "own.sqlite", "--", *WORK)
    wait_until(lambda: (workdir.folder / "pid").exists() and workdir.rows("select 1 from span", "own.sqlite"),
               "the first span")
    pid = program(workdir)
    (workdir.folder / "pid").unlink()
    result, _ = tune(workdir, "--caps", 3, "--pid", pid, "--step", "step")
    assert result["complete"] and is_alive(pid), result
    is_as_before(workdir)
    os.kill(pid, signal.SIGTERM)
    workdir.finish(recorder)


@test
def program_without_spans(workdir):
    """--pid: a program that writes no spans: the message states what to do, and nothing is changed"""
    put(workdir, CARD)
    worker = workdir.start("--step-ms", 2, program=WORKER)
    _, done = tune(workdir, "--pid", worker.pid, "--step", "step", status=1)
    assert "WATTLE_SPANS=FILE" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert calls(workdir) == [] and worker.poll() is None


main()
