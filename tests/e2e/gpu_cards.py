"""The measure must be true before anything is measured with it: cards that obey limits, and a program whose steps do."""
import json
import time

from gpu_card import Card
from harness import BUILD, main, near, test, wait_until

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
WORKER = BUILD / "tests/fakes/gpu_worker"


def put(room, *cards):
    """The file of cards, and the environment in which it is the machine's."""
    path = room.folder / "cards"
    path.write_text("".join(card.text() for card in cards))
    return {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(path)}


def limit(room, watts, gpu=0, log="limits"):
    """Somebody sets a limit (or, of "clocks", MHz)."""
    with open(room.folder / f"cards.{log}", "a") as file:
        file.write(f"{time.monotonic_ns()} {gpu} {watts * (1000 if log == 'limits' else 1)} 1\n")


def work(room, *options, **keywords):
    return json.loads(room.finish(room.start(*options, program=WORKER, **keywords)).stdout)


@test
def steps_take_as_long_as_the_limit_lets_them(room):
    """a program's steps take the time that the formula gives for the limit, the locked clock, the slower of two cards"""
    card, slow = Card(), Card(memory_share=0, exponent=1.5)
    environment = put(room, card, slow)
    for watts, mhz, gpus, expected_s in [
            (400, None, "0", card.step(400)[1]), (200, None, "0", card.step(200)[1]),
            (400, 705, "0", card.step(400, locked_mhz=705)[1]), (150, None, "0,1", slow.step(150)[1])]:
        limit(room, watts)
        limit(room, watts, 1)
        limit(room, mhz or 0, log="clocks")
        done = work(room, "--steps", 40, "--gpus", gpus, env=environment)
        near(done["seconds"] / done["steps"], expected_s, 1e-6)


@test
def a_limit_changes_the_step_that_is_under_way(room):
    """a limit that is set within a step slows the rest of that step, from when it takes effect"""
    card = Card(memory_share=0, exponent=1, clock_min_mhz=1, idle_w=0, full_w=400, more=("limit_delay_ms 300",))
    start_s = time.monotonic()
    worker = room.start("--steps", 1, "--step-ms", 1000, program=WORKER, env=put(room, card))
    time.sleep(0.2)
    limit(room, 200)
    set_s = time.monotonic()
    seconds = json.loads(room.finish(worker).stdout)["seconds"]
    fast_s = seconds - 2 * (seconds - 1)  # at full speed; the rest of the second at half of it
    assert 0.3 <= fast_s <= set_s - start_s + 0.3, seconds


@test
def spans_and_energy_of_a_step(room):
    """wattle's own figures for a step are those of the formula: time, energy, count"""
    card = Card(more=("energy_period_ms 1",))
    environment = put(room, card)
    limit(room, 180)
    report, _ = room.report("--", WORKER, "--steps", 200, "--step-ms", 5, env=environment)
    energy_j, time_s = card.step(180)
    block = next(block for block in report["blocks"] if block["name"] == "step")
    assert block["num_calls"] == 200, block
    near(block["compute_time"]["mean"], time_s, 0.03)
    near(block["energy"]["domains"]["gpu-0"] / 200, energy_j, 0.03)


@test
def what_is_set_outlives_a_kill(room):
    """a writer that dies within its line leaves nothing that counts, and the next line is whole"""
    environment = put(room, Card())
    (room.folder / "cards.limits").write_text(f"{time.monotonic_ns()} 0 200000 1\n{time.monotonic_ns()} 0 15")
    done = work(room, "--steps", 20, env=environment)
    near(done["seconds"] / done["steps"], Card().step(200)[1], 1e-6)


if __name__ == "__main__":
    main()
