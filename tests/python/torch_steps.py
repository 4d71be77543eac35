"""wattle.torch.step: each optimizer step is a block of the run, and the optimizer works as before."""
import copy
import math
import pickle
import time
import warnings

import torch
from harness import main, near, test
from torch import nn

import wattle
import wattle.torch

warnings.simplefilter("error")


def model_and_data():
    torch.manual_seed(0)
    return nn.Linear(8, 1), torch.randn(4, 8)


def train(model, x, optimizer, n, after=lambda: None, pause_s=0.0):
    for _ in range(n):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        time.sleep(pause_s)
        optimizer.step()
        after()


def blocks(measured):
    return {block["name"]: block for block in measured.report["blocks"]}


@test
def joules_per_sample(workdir):
    """calls, time and energy per step and sample, from the end of one step to the end of the next; the time after the
    last is no step"""
    model, x = model_and_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with wattle.torch.layers(model) as measured:
        with wattle.torch.step(optimizer, samples=lambda: len(x)) as steps:
            for _ in range(2):
                with wattle.span("epoch"):  # steps cross it
                    train(model, x, optimizer, 5, pause_s=0.02)
        time.sleep(0.3)
    block = blocks(measured)["step"]
    assert steps.count == 10 and block["num_calls"] == 10, block
    near(block["compute_time"]["mean"], 0.02, relative=0.5)
    (unit,) = [unit for unit in block["units"] if unit["name"] == "samples"]
    assert unit["sum"] == 40
    near(unit["j_per_unit"] * 40, block["energy"]["total_j"], relative=1e-9)


@test
def the_same_training(workdir):
    """weights: bitwise equal, with schedulers made before or after, with momentum; the optimizer can be copied and
    pickled"""
    results = []
    for way in ("plain", "scheduler before", "scheduler after"):
        model, x = model_and_data()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        if way == "scheduler after":
            steps = wattle.torch.step(optimizer)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        if way == "scheduler before":
            steps = wattle.torch.step(optimizer)
        train(model, x, optimizer, 6, scheduler.step)
        results.append(model.weight.detach().clone())
        pickle.loads(pickle.dumps(optimizer)).state_dict()
        copy.deepcopy(optimizer).step()
        if way != "plain":
            assert steps.count == 6, (way, steps.count)
            steps.undo()
            steps.undo()
            train(model, x, optimizer, 1, scheduler.step)
            assert steps.count == 6
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@test
def closures(workdir):
    """LBFGS: calls its closure many times in one step"""
    model, x = model_and_data()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    calls = []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss

    with wattle.torch.step(optimizer) as steps:
        loss = optimizer.step(closure)
    assert steps.count == 1 and len(calls) > 1 and loss > 0


@test
def scaler(workdir):
    """step skipped by GradScaler: no step; one that raises: no step"""
    model, x = model_and_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class Scaler:  # GradScaler's way, which needs a GPU
        def step(self, optimizer, skip):
            return None if skip else optimizer.step()

    with wattle.torch.step(optimizer) as steps:
        for skip in (False, True, False):
            model(x).sum().backward()
            Scaler().step(optimizer, skip)
        try:
            optimizer.step(lambda: 1 / 0)
        except ZeroDivisionError:
            pass
    assert steps.count == 2


@test
def undone(workdir):
    """afterwards: the optimizer has its own step again"""
    model, _ = model_and_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = dict(optimizer.__dict__)
    with wattle.torch.step(optimizer):
        assert optimizer.__dict__ != before
    fresh = torch.optim.SGD(model.parameters(), lr=0.1)
    assert optimizer.__dict__ == before and optimizer.step.__func__ is fresh.step.__func__


@test
def without_optimizer(workdir):
    """step as a block: nests like a span, and one that raises reports no samples"""
    model, x = model_and_data()
    with wattle.torch.layers(model) as measured:
        for i in range(4):
            try:
                with wattle.torch.step(samples=4, name="batch"):
                    model(x)
                    if i == 3:
                        raise ValueError
            except ValueError:
                pass
    block = blocks(measured)["batch"]
    assert block["num_calls"] == 4 and block["units"][0]["sum"] == 12, block


@test
def under_wattle_run(workdir):
    """under `wattle run --step step`: the report counts steps, and layers(tracker=False) leaves its spans there"""
    program = workdir.folder / "train.py"
    program.write_text("""
import sys; sys.path[:0] = %r
import torch_steps, torch, wattle.torch
model, x = torch_steps.model_and_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with wattle.torch.step(optimizer, samples=4), wattle.torch.layers({"net": model}, tracker=False):
    torch_steps.train(model, x, optimizer, 7, pause_s=0.01)
""" % [p for p in __import__("sys").path if p])
    report, _ = workdir.report("--step", "step", "--", "/usr/bin/python3", program)
    found = {block["name"]: block["num_calls"] for block in report["blocks"]}
    assert found["net"] == 7 and found["net backward"] >= 7, found
    assert found["step"] == 8, found  # with the one that was interrupted by the program's end


@test
def misuse(workdir):
    """errors state the correct form"""
    for call, kind, words in ((lambda: wattle.torch.step(nn.Linear(2, 2)), TypeError, "optimizer"),
                              *((lambda wrong=wrong: wattle.torch.step(samples=wrong), ValueError,
                                 "non-negative integer")
                                for wrong in (-1, 1.5, "64", math.nan, math.inf, [64]))):
        try:
            call()
            raise AssertionError(f"{words}: no error")
        except kind as error:
            assert words in str(error), error


if __name__ == "__main__":
    main()
