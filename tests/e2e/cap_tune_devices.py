"""`wattle cap tune`: limited devices: several cards, clocks, a card with power readings only, one limited through the
helper;
--apply, and the terminal output. CPU packages: cap_kernel.py."""
import json
import os
import pty
import shutil
import signal

from gpu_card import Card
from harness import BUILD, NOBODY, Skip, main, near, test, wait_until
from helper_client import Helper
from tune_fixture import (CARD, LIBRARY, NEARLY, QUICK, SHARP, WORK, WORKER, calls, is_as_before, is_written, limit_w,
                          program, put,
                          tune)


@test
def several_cards(workdir):
    """one limit for two cards that work together"""
    put(workdir, CARD, Card(memory_share=0.6, more=SHARP))
    both, _ = tune(workdir, "--caps", 4, "--step", "step", "--", *WORK, "--gpus", "0,1", device="gpu-0,gpu-1")
    assert both["device"] == "gpu-0,gpu-1" and both["complete"], both
    near(both["caps"][0]["energy_per_step_j"], 2 * CARD.step(400, 0.002)[0], relative=0.08)
    assert {gpu for gpu, _ in calls(workdir)} == {0, 1}
    assert (limit_w(workdir, 0), limit_w(workdir, 1)) == (400, 400)


@test
def each(workdir):
    """--each: one card after the other, each with its own limit; the other's previous limit stays meanwhile"""
    put(workdir, CARD, Card(memory_share=0.6, more=SHARP))
    each, _ = tune(workdir, "--each", "--caps", 3, "--step", "step", "--", *WORK, "--gpus", "0,1", device="gpus")
    order = [gpu for gpu, _ in calls(workdir)]
    # each was tested before CMD began
    assert order[:4] == [0, 1, 1, 0] and order[4:] == sorted(order[4:]), calls(workdir)
    assert [one["device"] for one in each] == ["gpu-0", "gpu-1"], each
    assert (limit_w(workdir, 0), limit_w(workdir, 1)) == (400, 400)


@test
def apply(workdir):
    """--apply: the chosen limit stays, `cap reset` restores the previous one; the result is in the run file"""
    put(workdir, CARD)
    result, _ = tune(workdir, "--apply", "-o", "kept.sqlite", "--step", "step", "--", *WORK)
    assert result["applied"] and limit_w(workdir) == result["chosen_w"] < 400 and result["previous_w"] == 400, result
    kept = json.loads(workdir.rows("select value from run where key = 'cap_tune'", "kept.sqlite")[0][0])
    assert kept == result
    assert workdir.wattle("cap", "reset", "gpu-0").returncode == 0
    is_as_before(workdir)


@test
def clocks(workdir):
    """--clocks: the highest clock instead of the limit; unlocked afterwards"""
    put(workdir, CARD)
    result, _ = tune(workdir, "--clocks", "--objective", "energy", "--step", "step", "--", *WORK)
    best = CARD.best_clock_mhz("energy")
    energy_j, least_j = (CARD.step(400, locked_mhz=mhz)[0] for mhz in (result["chosen_mhz"], best))
    assert energy_j < least_j * (1 + NEARLY / 100), (result["chosen_mhz"], best)
    assert result["chosen_w"] is None and calls(workdir) == []
    assert (workdir.folder / "cards.clocks").read_text().splitlines()[-1].split()[2] == "0"


@test
def power_only(workdir):
    """card without an energy counter: its power is integrated, and a note reports it"""
    card = Card(more=("limit_delay_ms 20", "error nvmlDeviceGetTotalEnergyConsumption 3", "field_error 83 0 3"))
    put(workdir, card)
    result, _ = tune(workdir, "--caps", 3, "--seconds", 0.9, "--step", "step", "--", *WORK)
    for row in result["caps"]:
        near(row["energy_per_step_j"], card.step(row["cap_w"], 0.002)[0], relative=0.1 + result["noise_percent"] / 100)
    assert any("no energy counter" in note for note in result["notes"]), result["notes"]
    is_as_before(workdir)


@test
def through_the_helper(workdir):
    """user without permission, allowed by the helper: the best limit, and the previous limit restored"""
    if os.geteuid() != 0:
        raise Skip("only root can run as another user")
    Helper.prepare(workdir)
    put(workdir, Card(more=(*SHARP, "set_uid 0")))
    helper = Helper(workdir, policy="others read\nothers cap gpus\n")
    wattle, _ = workdir.for_everybody()
    worker = shutil.copy2(WORKER, workdir.folder / "worker")
    library = shutil.copy2(LIBRARY, workdir.folder / "nvml.so")
    shutil.copy2(BUILD / "src/libwattle.so.0", workdir.folder / "libwattle.so.0")
    done = workdir.finish(workdir.start(
        "cap", "tune", "gpu-0", *QUICK, "--caps", 3, "-q", "--json", "tune.json", "--step", "step", "--", worker,
        "--step-ms", 2, "--seconds", 8, program=wattle, user=NOBODY, group=NOBODY, extra_groups=[],
        env={"WATTLE_NVML": str(library), "WATTLE_HELPER": str(helper.path),
             "WATTLE_STATE": str(workdir.folder / "own-state"), "LD_LIBRARY_PATH": str(workdir.folder)}))
    assert done.returncode == 0, done.stderr
    result = json.loads((workdir.folder / "tune.json").read_text())
    assert result["complete"] and {watts for _, watts in calls(workdir)} == {400, 260, 120}, (result, calls(workdir))
    assert limit_w(workdir) == 400
    helper.stop()


@test
def progress_on_a_terminal(workdir):
    """terminal: a progress line with the current limit and the remaining time, erased before the result"""
    put(workdir, CARD)
    terminal, other = pty.openpty()
    process = workdir.start("cap", "tune", "gpu-0", *QUICK, "--caps", 2, "--json", "tune.json", "--step", "step",
                         "--", *WORK, stderr=other, stdin=other)
    os.close(other)
    shown = b""
    while b"Next:" not in shown and b"best" not in shown:
        shown += os.read(terminal, 65536)
    wait_until(lambda: is_written(workdir.folder / "tune.json"), "the result")
    os.kill(program(workdir), signal.SIGTERM)
    assert process.wait(20) == 0
    os.close(terminal)
    lines = shown.decode().split("\r\x1b[K")
    doing = [line for line in lines if line.startswith("tuning gpu-0: ")]
    assert any("120 W, settling, about " in line for line in doing), lines
    assert all("\n" not in line for line in doing), doing
    assert lines[-1].startswith("\r\n") or lines[-1].startswith("\n"), lines[-1]
    is_as_before(workdir)


main()
