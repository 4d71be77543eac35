"""wattle.torch with the modes of PyTorch 2: compiled, exported, mixed precision, checkpoints, workers, accumulated gradients."""
import copy
import os

import torch
import torch_marks
from harness import main, near, test
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import wattle
import wattle.torch

torch.set_num_threads(1)


def block():
    return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.LayerNorm(16))


def state_after(model, run, seed=1):
    """Loss, gradients, buffers and the random generator's state after a step."""
    torch.manual_seed(seed)
    model.zero_grad(set_to_none=True)
    loss = run(model)
    return [loss.detach().clone(), torch.get_rng_state(), *(b.clone() for b in model.buffers()),
            *(p.grad.clone() for p in model.parameters())]


def step(model):
    loss = model(torch.randn(4, 16)).float().pow(2).mean()
    loss.backward()
    return loss


def unchanged(make, run=step, **options):
    """Marks and layers of a step whose results are bitwise those of the same step without measurement."""
    torch.manual_seed(0)
    plain = make()
    measured_model = copy.deepcopy(plain)
    expected = state_after(plain, run)
    with torch_marks.layers(measured_model, **options) as (marks, measured):
        actual = state_after(measured_model, run)
    assert len(actual) == len(expected) and all(map(torch.equal, actual, expected))
    return marks, measured


def compiled_graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def compiled_state(model, run=step):
    with torch.random.fork_rng():
        return state_after(model, run)


@test
def compiled_part(workdir):
    """torch.compile(part) by inductor: one row that names the compiled module, no further compilation, bitwise equal results"""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), torch.compile(block()), nn.Linear(16, 1))
    expected, before = compiled_state(model), compiled_graphs()
    with torch_marks.layers(model) as (marks, measured):
        actual = compiled_state(model)
    assert all(map(torch.equal, actual, expected)) and compiled_graphs() == before
    rows = {row.name: row for row in measured.rows}
    assert list(rows) == ["", "0", "1", "2", "outside layers"], list(rows)
    assert rows["1"].type == "Sequential (compiled)", rows["1"].type
    assert {"0", "1", "2"} <= marks.backward(), marks.backward()
    assert any("one layer" in note for note in measured.notes), measured.notes


@test
def compiled_whole(workdir):
    """compiled model and model.compile(): one row for the model, forward and backward, bitwise equal results"""
    for in_place in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(block(), nn.Linear(16, 1))
        if in_place:
            model.compile()
        else:
            model = torch.compile(model)
        expected, before = compiled_state(model), compiled_graphs()
        with torch_marks.layers(model) as (marks, measured):
            actual = compiled_state(model)
        assert all(map(torch.equal, actual, expected)) and compiled_graphs() == before, in_place
        assert [(row.name, row.type, row.calls) for row in measured.rows[:-1]] == [("", "Sequential (compiled)", 1)], measured.rows
        assert len(marks.backward()) == 1, marks.backward()


@test
def compiled_function(workdir):
    """compiled training function: no rows inside, a row for modules outside of it, results as without measurement"""
    torch.manual_seed(0)
    inner, outer = block(), nn.Linear(16, 16)
    function = torch.compile(lambda x: inner(x).pow(2).mean())
    both = nn.ModuleList([inner, outer])

    def run(_):
        loss = function(outer(torch.randn(4, 16)))
        loss.backward()
        return loss

    expected = compiled_state(both, run)
    with torch_marks.layers(both) as (marks, measured):
        actual = compiled_state(both, run)
    assert all(map(torch.equal, actual, expected))
    assert [row.name for row in measured.rows] == ["1", "outside layers"], measured.rows


@test
def exported(workdir):
    """torch.export: the same graph while layers are measured; the exported module has rows and the model's multiply-adds"""
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).eval(), torch.randn(2, 3, 8, 8)
    plain = torch.export.export(model, (x,))
    with torch_marks.layers(model) as (marks, _):
        program = torch.export.export(model, (x,))
    assert str(program.graph) == str(plain.graph) and not marks.names(), marks.names()
    module = program.module()
    with torch_marks.layers(module) as (marks, measured):
        assert torch.equal(module(x), model(x))
    assert measured.rows[0].calls == 1, measured.rows
    assert wattle.torch.complexity(module, input_data=x).multiply_adds == wattle.torch.complexity(model, input_data=x).multiply_adds
    unflattened = torch.export.unflatten(program)
    with torch_marks.layers(unflattened) as (marks, measured):
        assert torch.equal(unflattened(x), model(x))
    assert {row.name for row in measured.rows} >= {"0", "3"}, measured.rows


@test
def mixed_precision(workdir):
    """autocast to bfloat16: bitwise equal results, forward and backward of each layer"""
    def run(model):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(torch.randn(4, 16))
        loss = output.float().pow(2).mean()
        loss.backward()
        return loss

    marks, _ = unchanged(lambda: nn.Sequential(block(), nn.Linear(16, 1)), run)
    assert {"0.0", "0.1", "0.2", "1"} <= marks.backward() and marks.forward().count("0.0") == 1, marks.log


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.body, self.reentrant = nn.Linear(16, 16), block(), reentrant

    def forward(self, x):
        return checkpoint(self.body, self.first(x), use_reentrant=self.reentrant)


@test
def checkpointed_mixed_precision(workdir):
    """checkpointing under autocast, reentrant or not: recomputed forward of each layer inside the backward"""
    def run(model):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(torch.randn(4, 16))
        loss = output.float().pow(2).mean()
        loss.backward()
        return loss

    for reentrant in (True, False):
        marks, _ = unchanged(lambda: Checkpointed(reentrant), run)
        assert marks.forward().count("body.0") == 2 and {"first", "body.0", "body.2"} <= marks.backward(), (reentrant, marks.log)


@test
def accumulated_gradients(workdir):
    """gradient accumulation: 2 optimizer steps of 4 batches are 2 steps with their samples; 8 calls of each layer"""
    model, recorded = nn.Sequential(block(), nn.Linear(16, 1)), workdir.folder / "run.sqlite"
    optimizer = torch.optim.AdamW(model.parameters())
    with wattle.torch.layers(model, output=recorded) as measured, wattle.torch.step(optimizer, samples=16):
        for batch in range(8):
            (step(model) / 4).detach()
            if batch % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    assert {row.name: row.calls for row in measured.rows}["0.0"] == 8
    assert workdir.rows("SELECT count(*) FROM span WHERE name = 'step' AND close = 'ended'") == [(2,)]
    assert workdir.rows("SELECT sum(value) FROM user_metric WHERE name = 'samples'") == [(32.0,)]


class Samples(Dataset):
    """Each sample comes from a module, called in the worker."""

    def __init__(self):
        self.module = nn.Linear(16, 16)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        with torch.no_grad():
            return self.module(torch.full((16,), float(index))), os.getpid()


def loaded(model, data, **options):
    """Outputs of two epochs, and the pids of workers."""
    loader, outputs, pids = DataLoader(data, batch_size=4, num_workers=2, **options), [], set()
    for _ in range(2):
        for x, worker in loader:
            outputs.append(model(x).detach().clone())
            pids.update(worker.tolist())
    return outputs, pids


@test
def workers(workdir):
    """DataLoader workers (fork, spawn, persistent): equal outputs; the workers' calls of modules are in no row"""
    torch.manual_seed(0)
    model, data = nn.Linear(16, 1), Samples()
    both = nn.ModuleDict({"model": model, "data": data.module})
    expected, _ = loaded(model, data)
    for options in ({"multiprocessing_context": "fork"}, {"multiprocessing_context": "spawn"},
                    {"multiprocessing_context": "fork", "persistent_workers": True}):
        with wattle.torch.layers(both) as measured:
            outputs, pids = loaded(model, data, **options)
        assert all(map(torch.equal, outputs, expected)), options
        assert os.getpid() not in pids and {row.name: row.calls for row in measured.rows}["model"] == 4, options
        assert "data" not in {row.name for row in measured.rows}, measured.rows
        near(sum(row.time_s for row in measured.rows), measured.report["run"]["duration_s"], relative=1e-6)


if __name__ == "__main__":
    main()
