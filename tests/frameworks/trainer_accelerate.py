"""wattle in training loops of Hugging Face's accelerate, on a machine of known power."""
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import GeneralTracker
from harness import main, near, test
from simulated import blocks, machine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import wattle
import wattle.torch

torch.set_num_threads(1)
BATCHES, SAMPLES, ACCUMULATED = 12, 4, 3
VALIDATED, GPU_W, GPU_PERIOD_S = 4, 100, 0.02


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


class Lines(GeneralTracker):
    """accelerate's own log: what `accelerator.log` is given."""

    name, requires_logging_directory, main_process_only = "lines", False, True

    def __init__(self):
        super().__init__()
        self.lines = []

    @property
    def tracker(self):
        return self.lines

    def store_init_configuration(self, values):
        pass

    def log(self, values, step=None, **_):
        self.lines.append({"step": step, **values})

    def of(self, name):
        return [line for line in self.lines if f"wattle/{name}_j" in line]


def fit(workdir, simulated, path="run.sqlite", epochs=2, first=0, fail_at=None, resume=None, enough=float("inf")):
    """A loop that logs the energy of each step, validation and epoch, saves its state after each epoch and stops early, when training
    has used `enough` joules. Returns the log, whose lines have the true energies too, and the losses."""
    log, losses = Lines(), []
    accelerator, model, optimizer, data = prepared(log_with=log)
    accelerator.init_trackers("example")
    if resume:
        accelerator.load_state(resume)
    simulated.start()
    true = {"epoch": 0.0, "step": 0.0, "validation": 0.0}

    def spent():
        simulated.is_training()
        return simulated.train_j + simulated.validation_j

    with wattle.Tracker(sleep_time=0.02, output=workdir.folder / path, overwrite=True) as tracker:
        def begin(name):
            true[name] = spent()
            tracker.begin_window(name)

        def end(name):
            true_j, window = spent() - true[name], tracker.end_window(name)
            accelerator.log({f"wattle/{name}_j": window.total_j, "true_j": true_j, "error_j": window.error_j,
                             f"wattle/{name}_gpu_j": window.gpu_j, "true_gpu_j": GPU_W * window.seconds,
                             "gpu_error_j": window.domains["gpu-0"][1]}, step=len(losses))

        for epoch in range(first, epochs):
            begin("epoch")
            begin("step")
            for batch, (x,) in enumerate(data):
                with accelerator.accumulate(model):
                    if len(losses) == fail_at:
                        raise ValueError("bad batch")
                    simulated.train()
                    loss = model(x).pow(2).mean()
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                    losses.append(loss.detach().clone())
                if accelerator.sync_gradients:
                    end("step")
                    if batch < BATCHES - 1:
                        begin("step")
            begin("validation")
            for _ in range(VALIDATED):
                simulated.validate()
            end("validation")
            end("epoch")
            accelerator.save_state(workdir.folder / f"state{epoch}")
            if simulated.train_j > enough:
                accelerator.set_trigger()
            if accelerator.check_trigger():
                break
    accelerator.end_training()
    return log, losses


def check_energies(log, names, simulated):
    """The lines of the log agree with the machine: each within its stated error, and all together within 10 %."""
    for name in names:
        lines = log.of(name)
        joules, true_j = (sum(line[key] for line in lines) for key in (f"wattle/{name}_j", "true_j"))
        simulated.near(joules, true_j)
        for line in lines:
            near(line[f"wattle/{name}_j"], line["true_j"], 0.02, 2 * line["error_j"] + 80 * simulated.waited_s)
            near(line[f"wattle/{name}_gpu_j"], line["true_gpu_j"], 0.02, min(line["gpu_error_j"], GPU_W * GPU_PERIOD_S))


@test
def energy_in_the_log(workdir):
    """two epochs with validation, CPUs and a GPU: energy of each step, validation and epoch in accelerate's own log"""
    with machine(workdir, gpu_w=GPU_W) as simulated:
        log, losses = fit(workdir, simulated)
    steps = 2 * BATCHES // ACCUMULATED
    assert [len(log.of(name)) for name in ("step", "validation", "epoch")] == [steps, 2, 2], log.lines
    assert [line["step"] for line in log.of("step")] == list(range(ACCUMULATED, 2 * BATCHES + 1, ACCUMULATED))
    check_energies(log, ("step", "validation", "epoch"), simulated)
    assert blocks(workdir) == {"step": steps, "validation": 2, "epoch": 2}, blocks(workdir)


@test
def early_stop(workdir):
    """early stop by accelerate's trigger: lines of the finished epochs, closed blocks"""
    with machine(workdir, gpu_w=GPU_W) as simulated:
        log, losses = fit(workdir, simulated, epochs=9, enough=1)
    assert len(losses) == BATCHES and [len(log.of(name)) for name in ("validation", "epoch")] == [1, 1], log.lines
    check_energies(log, ("step", "validation", "epoch"), simulated)
    assert blocks(workdir) == {"step": BATCHES // ACCUMULATED, "validation": 1, "epoch": 1}, blocks(workdir)


@test
def exception(workdir):
    """exception in a batch: reaches the program, the run file has the steps before it, and the next training has energies of its own"""
    with machine(workdir, gpu_w=GPU_W) as simulated:
        try:
            fit(workdir, simulated, "failed.sqlite", fail_at=7)
            raise AssertionError("no exception")
        except ValueError as error:
            assert str(error) == "bad batch"
        log, _ = fit(workdir, simulated, epochs=1)
    ended = "SELECT name, close, count(*) FROM span GROUP BY name, close ORDER BY name, close"
    assert workdir.rows(ended, "failed.sqlite") == [("epoch", "open", 1), ("step", "ended", 2), ("step", "open", 1)], workdir.rows(
        ended, "failed.sqlite")
    check_energies(log, ("step", "validation", "epoch"), simulated)


@test
def resumed(workdir):
    """training resumed from a saved state: the losses of an uninterrupted one, energies of the resumed epochs only"""
    with machine(workdir, gpu_w=GPU_W) as simulated:
        _, expected = fit(workdir, simulated)
        log, losses = fit(workdir, simulated, first=1, resume=workdir.folder / "state0")
    assert len(losses) == BATCHES and all(map(torch.equal, losses, expected[BATCHES:]))
    assert [len(log.of(name)) for name in ("step", "validation", "epoch")] == [BATCHES // ACCUMULATED, 1, 1], log.lines
    check_energies(log, ("step", "validation", "epoch"), simulated)


if __name__ == "__main__":
    main()
