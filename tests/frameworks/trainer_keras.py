"""wattle.keras in the real Keras 3 on the back ends torch and jax, on a machine of known power."""
import os
import subprocess
import sys

BACKENDS = ("torch", "jax")
if "KERAS_BACKEND" not in os.environ:  # Keras has one back end in a process
    os.environ["KERAS_BACKEND"] = BACKENDS[0]

import keras  # noqa: E402
import numpy  # noqa: E402
from harness import main, near, test  # noqa: E402
from simulated import blocks, check_figures, machine  # noqa: E402

import wattle  # noqa: E402
from wattle.keras import EnergyCallback  # noqa: E402

STEPS, BATCH = 8, 4


class Work(keras.callbacks.Callback):
    """The simulated work of each batch, and when training and validation begin and end. It is called before wattle's callback."""

    def __init__(self, simulated, fail_at=None):
        super().__init__()
        self.simulated, self.fail_at, self.batches = simulated, fail_at, 0

    def on_train_begin(self, logs=None):
        self.simulated.start()

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches == self.fail_at:
            raise ValueError("bad batch")
        self.simulated.train()

    def on_test_begin(self, logs=None):
        self.simulated.is_training(False)

    def on_test_batch_end(self, batch, logs=None):
        self.simulated.validate()

    def on_test_end(self, logs=None):
        self.simulated.is_training(True)


def model():
    made = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def fit(simulated, callbacks, made=None, fail_at=None, **options):
    x, y = numpy.zeros((STEPS * BATCH, 4)), numpy.zeros((STEPS * BATCH, 1))
    options = {"epochs": 2, **options}
    return (made or model()).fit(x, y, batch_size=BATCH, verbose=0, validation_data=(x[:2 * BATCH], y[:2 * BATCH]),
                                 validation_batch_size=BATCH, callbacks=[Work(simulated, fail_at), *callbacks], **options).history


def lines_of(history):
    return [dict(zip(history, values)) for values in zip(*history.values())]


def recorded(workdir):
    return wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True)


@test
def energy_in_history(workdir):
    """CPUs and a GPU: figures of each epoch in History add up to the training's energy, without validation; blocks and samples"""
    assert keras.backend.backend() == os.environ["KERAS_BACKEND"]
    with machine(workdir, gpu_w=100) as simulated, recorded(workdir):
        lines = lines_of(fit(simulated, [EnergyCallback(samples=BATCH)]))
    check_figures(lines, lambda line: STEPS, simulated)
    near(lines[0]["wattle/j_per_sample"], lines[0]["wattle/j_per_step"] / BATCH, relative=1e-9)
    assert blocks(workdir) == {"epoch": 2, "step": 2 * STEPS, "validation": 2}, blocks(workdir)
    assert workdir.rows("SELECT sum(value) FROM user_metric WHERE name = 'samples'") == [(2.0 * STEPS * BATCH,)]


@test
def later_callbacks(workdir):
    """a later CSVLogger writes the figures"""
    with machine(workdir) as simulated:
        fit(simulated, [EnergyCallback(), keras.callbacks.CSVLogger(workdir.folder / "log.csv")])
    assert "wattle/j_per_step" in (workdir.folder / "log.csv").read_text().splitlines()[0]


@test
def early_stop(workdir):
    """early stop: blocks are closed, figures of each finished epoch"""
    with machine(workdir) as simulated, recorded(workdir):
        stop = keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=1e9)
        lines = lines_of(fit(simulated, [EnergyCallback(), stop], epochs=9))
    assert len(lines) == 2 and all(line["wattle/j_per_step"] > 0 for line in lines), lines
    assert blocks(workdir) == {"epoch": 2, "step": 2 * STEPS, "validation": 2}, blocks(workdir)


@test
def exception(workdir):
    """exception in a batch: reaches the program; blocks are closed by the next training, which has figures of its own"""
    callback = EnergyCallback()
    with machine(workdir) as simulated, recorded(workdir):
        try:
            fit(simulated, [callback], fail_at=6)
            raise AssertionError("no exception")
        except ValueError as error:
            assert str(error) == "bad batch"
        simulated.train_j = simulated.train_s = 0.0
        lines = lines_of(fit(simulated, [callback], epochs=1))
    check_figures(lines, lambda line: STEPS, simulated)
    assert blocks(workdir) == {"epoch": 2, "step": 6 + STEPS, "validation": 1}, blocks(workdir)


@test
def resumed(workdir):
    """training continued at epoch 1 with a loaded model: figures of the later epochs only"""
    made = model()
    with machine(workdir) as simulated:
        fit(simulated, [EnergyCallback()], made, epochs=1)
        made.save(workdir.folder / "model.keras")
        simulated.train_j = simulated.train_s = 0.0
        loaded = keras.models.load_model(workdir.folder / "model.keras")
        lines = lines_of(fit(simulated, [EnergyCallback()], loaded, epochs=3, initial_epoch=1))
    assert len(lines) == 2
    check_figures(lines, lambda line: STEPS, simulated)


@test
def predict(workdir):
    """predict is a block of its own, evaluate one of validation"""
    made, x = model(), numpy.zeros((BATCH, 4))
    with recorded(workdir):
        made.predict(x, verbose=0, callbacks=[EnergyCallback()])
        made.evaluate(x, numpy.zeros((BATCH, 1)), verbose=0, callbacks=[EnergyCallback()])
    assert blocks(workdir) == {"predict": 1, "validation": 1}, blocks(workdir)


@test
def other_backends(workdir):
    """each other back end of Keras: the same"""
    if os.environ.get("WATTLE_ONE_BACKEND"):
        return
    for backend in BACKENDS[1:]:
        names = [one.__name__ for one in (energy_in_history, later_callbacks, early_stop, exception, resumed, predict)]
        done = subprocess.run([sys.executable, __file__, *names], capture_output=True, text=True, cwd=workdir.folder,
                              env={**workdir.environment, "KERAS_BACKEND": backend, "WATTLE_ONE_BACKEND": "1"})
        assert done.returncode == 0 and done.stdout.count("\nok ") == len(names), done.stdout + done.stderr


if __name__ == "__main__":
    main()
