"""The cost of wattle.torch.layers in a training step of ResNet-18, while a recorder runs: JSON.

usage: torch_layers.py BATCH SIZE STEPS PAIRS [observer|hooks]     the observer of backward; the default is that of layers()

Equal steps differ by 10 % on a machine shared with others, so blocks of STEPS bare and measured steps alternate in one process: bare,
measured, measured, bare, and the next four the other way round, so that a machine whose speed drifts changes both. Each four give a ratio
and a difference of CPU times of the thread, per step. "ratio" and "cost_s" are [median of PAIRS, low, high] with a 95 % interval
(bootstrap). The cost depends on the number of calls, not on the size of their tensors: small images resolve it best.
"""
import contextlib
import json
import random
import statistics
import sys
import time

import torch
import torchvision

import wattle.torch

RESAMPLES = 2000


def interval(values):
    """Median, and 95 % of the medians of resampled values."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def main(batch, size, steps, pairs, by=None):
    torch.set_num_threads(1)
    model, images = torchvision.models.resnet18(), torch.randn(batch, 3, size, size)
    labels = torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    used = set()

    def step():
        begin = time.thread_time()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        return time.thread_time() - begin

    def block(is_measured):
        """CPU time of a step: the least of `steps` steps after one for the caches; other programs can only add to it."""
        with contextlib.ExitStack() as stack:
            if is_measured:
                used.add(stack.enter_context(wattle.torch.layers(model, tracker=False, observer=by)).backward_by)
            step()
            return min(step() for _ in range(steps))

    block(False), block(True)
    plain, ratios, costs = [], [], []
    with wattle.Tracker(sleep_time=0.02, disable_logs=True):
        for pair in range(pairs):
            order = (False, True, True, False) if pair % 2 == 0 else (True, False, False, True)
            times = [(is_measured, block(is_measured)) for is_measured in order]
            measured_s, bare_s = (sum(time_s for is_measured, time_s in times if is_measured == wanted) / 2 for wanted in (True, False))
            plain.append(bare_s)
            ratios.append(measured_s / bare_s)
            costs.append(measured_s - bare_s)
    print(json.dumps({"by": "/".join(sorted(used)), "plain_s": statistics.median(plain), "ratio": interval(ratios),
                      "cost_s": interval(costs)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]), *({"observer": True, "hooks": False}[by] for by in sys.argv[5:]))
