"""Check of the test tools themselves: cards that obey limits, a program whose steps do."""
import json
import os
import time

from gpu_card import Card
from harness import BUILD, NOBODY, Skip, main, near, test

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
WORKER = BUILD / "tests/fakes/gpu_worker"
SIMULATOR = BUILD / "tests/fakes/limit_sim"
PYTHON = "/usr/bin/python3"  # accessible to any user


def put(workdir, *cards):
    """The file of cards, and the environment that selects it."""
    path = workdir.folder / "cards"
    path.write_text("".join(card.text() for card in cards))
    return {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(path)}


def limit(workdir, watts, gpu=0, log="limits"):
    """Another program sets a limit (or, of "clocks", MHz)."""
    with open(workdir.folder / f"cards.{log}", "a") as file:
        file.write(f"{time.monotonic_ns()} {gpu} {watts * (1000 if log == 'limits' else 1)} 1\n")


def work(workdir, *options, **keywords):
    return json.loads(workdir.finish(workdir.start(*options, program=WORKER, **keywords)).stdout)


@test
def steps_take_as_long_as_the_limit_lets_them(workdir):
    """steps of a program: as long as the formula states for the limit, the locked clock, and the slower of two cards"""
    card, slow = Card(), Card(memory_share=0, exponent=1.5)
    environment = put(workdir, card, slow)
    for watts, mhz, gpus, expected_s in [
            (400, None, "0", card.step(400)[1]), (200, None, "0", card.step(200)[1]),
            (400, 705, "0", card.step(400, locked_mhz=705)[1]), (150, None, "0,1", slow.step(150)[1])]:
        limit(workdir, watts)
        limit(workdir, watts, 1)
        limit(workdir, mhz or 0, log="clocks")
        done = work(workdir, "--steps", 40, "--gpus", gpus, env=environment)
        near(done["seconds"] / done["steps"], expected_s, 1e-6)


@test
def a_limit_changes_the_step_that_is_under_way(workdir):
    """limit set during a step: slows the rest of that step, from when it takes effect"""
    card = Card(memory_share=0, exponent=1, clock_min_mhz=1, idle_w=0, full_w=400, more=("limit_delay_ms 300",))
    start_s = time.monotonic()
    worker = workdir.start("--steps", 1, "--step-ms", 1000, program=WORKER, env=put(workdir, card))
    time.sleep(0.2)
    limit(workdir, 200)
    set_s = time.monotonic()
    seconds = json.loads(workdir.finish(worker).stdout)["seconds"]
    fast_s = seconds - 2 * (seconds - 1)  # at full speed; the rest of the second at half of it
    assert 0.3 <= fast_s <= set_s - start_s + 0.3, seconds


@test
def spans_and_energy_of_a_step(workdir):
    """wattle's figures for a step: equal to the formula's: time, energy, count"""
    card = Card(more=("energy_period_ms 1",))
    environment = put(workdir, card)
    limit(workdir, 180)
    report, _ = workdir.report("--", WORKER, "--steps", 200, "--step-ms", 5, env=environment)
    energy_j, time_s = card.step(180)
    block = next(block for block in report["blocks"] if block["name"] == "step")
    assert block["num_calls"] == 200, block
    near(block["compute_time"]["mean"], time_s, 0.03)
    near(block["energy"]["domains"]["gpu-0"] / 200, energy_j, 0.03)


@test
def a_package_that_obeys_its_limit(workdir):
    """simulated card read through powercap files: energy and duration of steps follow the limit"""
    card, limit_uw = Card(), workdir.folder / "limit_uw"
    environment = put(workdir, card)
    limit_uw.write_text("400000000\n")
    simulator = workdir.start("--gpu", 0, "--limit", limit_uw, "--energy", "energy_uj", program=SIMULATOR,
                              env=environment)
    assert simulator.stdout.readline() == b"ready\n"
    limit_uw.write_text("160000000\n")
    time.sleep(0.1)
    from_uj, from_s = int((workdir.folder / "energy_uj").read_text()), time.monotonic()
    done = work(workdir, "--steps", 100, env=environment)
    watts = (int((workdir.folder / "energy_uj").read_text()) - from_uj) / 1e6 / (time.monotonic() - from_s)
    near(watts, card.power_w(160), 0.05)
    near(done["seconds"] / done["steps"], card.step(160)[1], 1e-6)


CALLS = """
import ctypes, os
nvml = ctypes.CDLL(os.environ["WATTLE_NVML"])
number, card = ctypes.c_uint(), ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0

def ask(function, *arguments):
    "Its number, or minus its code."
    code = getattr(nvml, "nvmlDeviceGet" + function)(card, *arguments, ctypes.byref(number))
    return -code if code else number.value

def give(function, *arguments):
    return getattr(nvml, "nvmlDevice" + function)(card, *arguments)

assert nvml.nvmlDeviceGetHandleByUUID(b"GPU-00000000-0000-0000-0000-000000000000", ctypes.byref(card)) == 0
"""


def call(workdir, card, program, user=None):
    """Runs lines of Python with the library's calls available, optionally as another user."""
    environment = put(workdir, card)
    workdir.folder.chmod(0o755)
    as_user = {"user": user} if user is not None else {}
    done = workdir.finish(workdir.start("-c", CALLS + program, program=PYTHON, env=environment, **as_user))
    assert done.returncode == 0, done.stderr


@test
def the_calls_answer_as_those_of_real_cards(workdir):
    """default differs from current limit, whole watts, another limiter, persistence mode, clocks from a list, a lost
    card"""
    card = Card(default_w=350, now_w=300, more=("limit_step_mw 1000", "enforced_mw 250000", "persistence_off",
                                                "lost_when_file gone"))
    call(workdir, card, """
assert ask("PowerManagementLimit") == 300000 and ask("PowerManagementDefaultLimit") == 350000
assert ask("EnforcedPowerLimit") == 250000 and ask("PersistenceMode") == 0
assert give("SetPowerManagementLimit", 99999) == 2 and give("SetPowerManagementLimit", 400001) == 2
assert give("SetPowerManagementLimit", 200900) == 0 and ask("PowerManagementLimit") == 200000
assert give("SetGpuLockedClocks", 210, 1425) == 2 and give("SetGpuLockedClocks", 210, 600) == 0
assert ask("ClockInfo", 1) == 600
mhz = (ctypes.c_uint * 81)()
assert give("GetSupportedGraphicsClocks", 1, ctypes.byref(number), mhz) == 6
assert give("GetSupportedGraphicsClocks", 1215, ctypes.byref(number), None) == 7 and number.value == 81
assert give("GetSupportedGraphicsClocks", 1215, ctypes.byref(number), mhz) == 0
assert (mhz[0], mhz[80]) == (1410, 210)
assert give("ResetGpuLockedClocks") == 0 and ask("ClockInfo", 1) > 600
open("gone", "w")
assert ask("PowerUsage") == -15
""")
    last = (workdir.folder / "cards.limits").read_text().split()
    assert last[1:3] == ["0", "200000"] and len(last) == 4, last


@test
def a_user_who_may_not(workdir):
    """limits and clocks for one user only: NO_PERMISSION for others, and nothing is stored"""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    call(workdir, Card(more=("set_uid 0",)), """
assert give("SetPowerManagementLimit", 200000) == 4 and give("SetGpuLockedClocks", 210, 600) == 4
assert ask("PowerManagementLimit") == 400000
""", user=NOBODY)
    assert not (workdir.folder / "cards.limits").exists()


@test
def persistent_limit_survives_a_kill(workdir):
    """writer that dies within its line: the incomplete line is ignored, and the next line is complete"""
    environment = put(workdir, Card())
    (workdir.folder / "cards.limits").write_text(f"{time.monotonic_ns()} 0 200000 1\n{time.monotonic_ns()} 0 15")
    done = work(workdir, "--steps", 20, env=environment)
    near(done["seconds"] / done["steps"], Card().step(200)[1], 1e-6)


if __name__ == "__main__":
    main()
