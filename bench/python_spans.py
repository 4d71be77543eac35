"""Cost of a span in Python: the minimum ns of a `with` block over all rounds, and of the floor in the same rounds, as
JSON.

usage: python_spans.py ROUNDS
"""
import itertools
import json
import sys
import time

import python_floor
import wattle

PAIRS = 5000


def kept(thing):
    for _ in itertools.repeat(None, PAIRS):
        with thing:
            pass


def made(make):
    for _ in itertools.repeat(None, PAIRS):
        with make("forward"):
            pass


def empty(_):
    for _ in itertools.repeat(None, PAIRS):
        pass


ACTS = {
    "empty": (empty, None),
    "floor_kept": (kept, python_floor.block("forward")),
    "span_kept": (kept, wattle.span("forward")),
    "floor_made": (made, python_floor.block),
    "span_made": (made, wattle.span),
}


def main(rounds):
    least = dict.fromkeys(ACTS, float("inf"))
    for _ in range(rounds):
        for name, (act, thing) in ACTS.items():  # alternating, so that a machine that changes its speed changes all
            begin = time.perf_counter_ns()
            act(thing)
            least[name] = min(least[name], (time.perf_counter_ns() - begin) / PAIRS)
        time.sleep(0.02)  # full rings would measure lost spans
    costs = {f"{name}_ns": cost - least["empty"] for name, cost in least.items() if name != "empty"}
    print(json.dumps({**costs, "recording": wattle.is_recording()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
