"""wattle in training loops of Hugging Face's accelerate, on a machine of known power."""
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from harness import main, test
from simulated import machine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import wattle
import wattle.torch

torch.set_num_threads(1)
BATCHES, SAMPLES, ACCUMULATED = 12, 4, 3


def prepared(**options):
    """A fresh accelerator with a model, an optimizer and data."""
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED, **options)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    data = DataLoader(TensorDataset(torch.randn(BATCHES * SAMPLES, 4)), batch_size=SAMPLES)
    return accelerator, *accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)


def train(accelerator, model, optimizer, data, simulated):
    """Losses of an epoch."""
    losses = []
    for (x,) in data:
        with accelerator.accumulate(model):
            simulated.train()
            loss = model(x).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach().clone())
    return losses


class Nothing:
    def train(self):
        pass


@test
def steps(workdir):
    """step(optimizer) of a prepared optimizer: one step for each optimizer step, not for each batch; the losses are the same"""
    expected = train(*prepared(), Nothing())
    parts = prepared()
    with machine(workdir) as simulated, wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True):
        simulated.start()
        with wattle.torch.step(parts[2], samples=SAMPLES * ACCUMULATED):
            losses = train(*parts, simulated)
    assert all(map(torch.equal, losses, expected))
    ended = "SELECT name, count(*) FROM span WHERE close = 'ended' GROUP BY name"
    assert workdir.rows(ended) == [("step", BATCHES // ACCUMULATED)], workdir.rows(ended)
    assert workdir.rows("SELECT sum(value) FROM user_metric WHERE name = 'samples'") == [(BATCHES * SAMPLES * 1.0,)]


@test
def windows(workdir):
    """windows around the epochs of a loop: energy of each is the machine's"""
    parts, figures = prepared(), []
    with machine(workdir) as simulated, wattle.Tracker(sleep_time=0.02) as tracker:
        for epoch in range(2):
            simulated.start()
            simulated.train_j = simulated.train_s = 0.0
            tracker.begin_window(f"epoch {epoch}")
            train(*parts, simulated)
            simulated.is_training()
            figures.append((tracker.end_window(f"epoch {epoch}").total_j, simulated.train_j))
    for total_j, true_j in figures:
        simulated.near(total_j, true_j)


@test
def layers(workdir):
    """layers() of a prepared model in mixed precision: the same losses, rows of each layer"""
    expected = train(*prepared(mixed_precision="bf16"), Nothing())
    parts = prepared(mixed_precision="bf16")
    with wattle.torch.layers(parts[1]) as measured:
        losses = train(*parts, Nothing())
    assert all(map(torch.equal, losses, expected))
    rows = {row.name: row for row in measured.rows}
    assert rows["0"].calls == rows["2"].calls == BATCHES and rows["2"].backward_s > 0, measured.rows


if __name__ == "__main__":
    main()
