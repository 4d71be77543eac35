"""wattle.torch.lightning in the real Trainer of Lightning, on a machine of known power."""
import csv
import logging
import warnings

import lightning
import torch
from harness import main, near, test
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from simulated import blocks, check_figures, machine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import wattle
from wattle.torch.lightning import EnergyCallback

torch.set_num_threads(1)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
BATCHES, SAMPLES = 8, 4


class Model(lightning.LightningModule):
    def __init__(self, simulated, fail_at=None):
        super().__init__()
        self.layer, self.simulated, self.fail_at = nn.Linear(4, 1), simulated, fail_at

    def training_step(self, batch, index):
        if self.fail_at == self.trainer.fit_loop.total_batch_idx:
            raise ValueError("bad batch")
        self.simulated.train()
        return self.layer(batch[0]).pow(2).mean()

    def validation_step(self, batch, index):
        self.simulated.validate()
        self.log("val_loss", 1.0)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def train_dataloader(self):
        return data(BATCHES)

    def val_dataloader(self):
        return data(2)


class Truth(Callback):
    """When training and validation begin and end, for the simulated machine. It is called before wattle's callback."""

    def __init__(self, simulated):
        self.simulated = simulated

    def on_fit_start(self, trainer, pl_module):
        self.simulated.start()

    def on_train_batch_end(self, *_):
        self.simulated.is_training()

    def on_validation_start(self, trainer, pl_module):
        self.simulated.is_training(False)

    def on_validation_end(self, trainer, pl_module):
        self.simulated.is_training(True)


def data(batches):
    return DataLoader(TensorDataset(torch.zeros(batches * SAMPLES, 4)), batch_size=SAMPLES)


def trainer(workdir, simulated, callback, *more, **options):
    options = {"max_epochs": 2, "log_every_n_steps": 4, **options}
    return lightning.Trainer(accelerator="cpu", devices=1, logger=CSVLogger(workdir.folder, name="log"), enable_progress_bar=False,
                             enable_model_summary=False, callbacks=[Truth(simulated), callback, *more], default_root_dir=workdir.folder,
                             enable_checkpointing=any(isinstance(one, ModelCheckpoint) for one in more), **options)


def logged(workdir, version=0):
    """The lines of the trainer's log that have figures, as numbers."""
    with open(workdir.folder / f"log/version_{version}/metrics.csv", newline="") as file:
        rows = [{key: float(value) for key, value in row.items() if value != ""} for row in csv.DictReader(file)]
    return [row for row in rows if "wattle/j_per_step" in row]


def recorded(workdir, name="run.sqlite"):
    return wattle.Tracker(sleep_time=0.02, output=workdir.folder / name, overwrite=True)


@test
def energy_in_the_log(workdir):
    """two epochs of 8 batches with validation, CPUs and a GPU: figures in the trainer's log add up to the training's energy"""
    with machine(workdir, gpu_w=100) as simulated, recorded(workdir):
        trainer(workdir, simulated, EnergyCallback(every=4)).fit(Model(simulated))
    lines = logged(workdir)
    assert len(lines) == 4, lines
    check_figures(lines, lambda line: 4, simulated)
    for line in lines:
        near(line["wattle/j_per_sample"], line["wattle/j_per_step"] / SAMPLES, relative=1e-4)
    assert blocks(workdir) == {"sanity check": 1, "epoch": 2, "step": 2 * BATCHES, "validation": 2}, blocks(workdir)
    assert workdir.rows("SELECT sum(value) FROM user_metric WHERE name = 'samples'") == [(2.0 * BATCHES * SAMPLES,)]


@test
def accumulated(workdir):
    """gradient accumulation and other intervals of the trainer's log: no figure is lost"""
    for accumulate, log_every in ((2, 4), (4, 1), (1, 3)):
        with machine(workdir) as simulated:
            trainer(workdir, simulated, EnergyCallback(every=4), accumulate_grad_batches=accumulate, log_every_n_steps=log_every,
                    limit_val_batches=0).fit(Model(simulated))
        lines = logged(workdir)
        assert len(lines) == 4, (accumulate, log_every, lines)
        check_figures(lines, lambda line: 4, simulated)
        (workdir.folder / "log/version_0/metrics.csv").unlink()
        (workdir.folder / "log/version_0").rename(workdir.folder / f"old{accumulate}")


@test
def early_stop(workdir):
    """early stop: blocks are closed, and the figures of the finished epochs are in the log"""
    with machine(workdir) as simulated, recorded(workdir):
        fitted = trainer(workdir, simulated, EnergyCallback(every=4), EarlyStopping("val_loss", patience=1), max_epochs=9)
        fitted.fit(Model(simulated))
    epochs = fitted.current_epoch
    assert epochs == 2 and len(logged(workdir)) == 2 * epochs, (epochs, logged(workdir))
    assert blocks(workdir) == {"sanity check": 1, "epoch": 2, "step": 2 * BATCHES, "validation": 2}


@test
def exception(workdir):
    """exception in a batch: reaches the program, blocks are closed, and the next training has figures of its own"""
    callback = EnergyCallback(every=4)
    with machine(workdir) as simulated, recorded(workdir):
        try:
            trainer(workdir, simulated, callback, limit_val_batches=0).fit(Model(simulated, fail_at=6))
            raise AssertionError("no exception")
        except ValueError as error:
            assert str(error) == "bad batch"
        simulated.train_j = simulated.train_s = 0.0
        trainer(workdir, simulated, callback, limit_val_batches=0, max_epochs=1).fit(Model(simulated))
    assert blocks(workdir) == {"epoch": 2, "step": 7 + BATCHES}, blocks(workdir)
    check_figures(logged(workdir, 1), lambda line: 4, simulated)


@test
def resumed(workdir):
    """training resumed from a checkpoint: figures of the resumed epochs only"""
    with machine(workdir) as simulated:
        trainer(workdir, simulated, EnergyCallback(every=4), ModelCheckpoint(workdir.folder, "first"), max_epochs=1).fit(Model(simulated))
        simulated.train_j = simulated.train_s = 0.0
        with recorded(workdir):
            trainer(workdir, simulated, EnergyCallback(every=4), max_epochs=3).fit(
                Model(simulated), ckpt_path=workdir.folder / "first.ckpt", weights_only=False)
    lines = logged(workdir, 1)
    assert len(lines) == 4 and min(line["step"] for line in lines) >= BATCHES, lines
    check_figures(lines, lambda line: 4, simulated)
    assert blocks(workdir)["epoch"] == 2, blocks(workdir)


@test
def test_and_predict(workdir):
    """test and predict are blocks of their own"""
    class Full(Model):
        def test_step(self, batch, index):
            self.simulated.validate()

        def predict_step(self, batch, index):
            return self.layer(batch[0])

    with machine(workdir) as simulated:
        simulated.start()
        with recorded(workdir):
            used = trainer(workdir, simulated, EnergyCallback(every=4))
            used.test(Full(simulated), data(2))
            used.predict(Full(simulated), data(2))
    assert blocks(workdir) == {"test": 1, "predict": 1}, blocks(workdir)


if __name__ == "__main__":
    main()
