"""A callback for Keras 2 and 3 (TensorFlow's included).

    from wattle.keras import EnergyCallback
    model.fit(x, y, batch_size=32, callbacks=[EnergyCallback(samples=32)])
"""
from __future__ import annotations

import importlib
import sys
from typing import Any, Optional

from ._training import NEVER, Training

_PACKAGES = ("keras", "tf_keras", "tensorflow.keras")


def _base() -> type:
    """Callback of the Keras that the program has imported, else of an installed one."""
    loaded = [name for name in _PACKAGES if sys.modules.get(name) is not None]
    for name in loaded or _PACKAGES:
        try:
            base: type = importlib.import_module(name).callbacks.Callback
            return base
        except (ImportError, AttributeError):
            continue
    raise ImportError("wattle.keras needs Keras: pip install keras, or tensorflow")


class EnergyCallback(_base()):  # type: ignore[misc]
    """Marks 'epoch', 'step', 'validation' and 'predict' as blocks of the run, reports the samples of each step, and
    adds joules per step and per sample to the logs of each epoch, for History and later callbacks.

    samples  of a step (the batch size), which Keras does not report; None: no joules per sample
    figures  False: only blocks, and no counter is read

    The figures (wattle/j_per_step, wattle/gpu_j_per_step with a GPU, wattle/j_per_sample, wattle/power_w) are of the whole
    machine and of training only.
"""

    def __init__(self, samples: Optional[int] = None, figures: bool = True) -> None:
        super().__init__()
        self._training = Training(NEVER if figures else 0)
        self._samples = samples

    def on_train_begin(self, logs: Any = None) -> None:
        self._training.start()

    def on_train_end(self, logs: Any = None) -> None:
        self._training.stop()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._training.begin("epoch")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._training.end("epoch")
        figures = self._training.figures()
        if figures and logs is not None:
            logs.update(figures)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._training.begin("step")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._training.step_ends(self._samples, None)

    def on_test_begin(self, logs: Any = None) -> None:
        self._training.pause("validation")

    def on_test_end(self, logs: Any = None) -> None:
        self._training.resume("validation")

    def on_predict_begin(self, logs: Any = None) -> None:
        self._training.begin("predict")

    def on_predict_end(self, logs: Any = None) -> None:
        self._training.end("predict")
