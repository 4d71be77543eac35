"""A ResNet-18 training step with and without wattle.torch.layers, alternating: medians of the CPU time of the thread,
and of the ratio over rounds, as JSON.

usage: torch_layers.py BATCH SIZE STEPS ROUNDS [observer|hooks]     the observer of backward; the default is that of layers()
"""
import json
import statistics
import sys
import time

import torch
import torchvision

import wattle.torch


def main(batch, size, steps, rounds, by=None):
    torch.set_num_threads(1)
    model, images = torchvision.models.resnet18(), torch.randn(batch, 3, size, size)
    labels = torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        begin = time.thread_time()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        return time.thread_time() - begin

    def some():
        step()
        return statistics.median(step() for _ in range(steps))

    some()
    plain, ratios = [], []
    for _ in range(rounds):
        before = some()
        with wattle.torch.layers(model, observer=by) as layers:
            measured = some()
        plain.append((before + some()) / 2)  # a machine that changes its speed changes both
        ratios.append(measured / plain[-1])
    print(json.dumps({"by": layers.backward_by, "plain_s": statistics.median(plain), "ratio": statistics.median(ratios),
                      "ratios": sorted(ratios)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]), *({"observer": True, "hooks": False}[by] for by in sys.argv[5:]))
