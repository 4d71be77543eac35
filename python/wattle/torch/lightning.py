"""A callback for PyTorch Lightning, of the package `lightning` or `pytorch_lightning`.

    from wattle.torch.lightning import EnergyCallback
    trainer = Trainer(callbacks=[EnergyCallback()])
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

from .._training import Count, Training, count, samples_in, tokens_in

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same program under two names, with classes of their own


def _bases() -> list[type]:
    """Callback of the packages that the program has imported, so that either Trainer accepts it; else of an installed one."""
    loaded = [name for name in _PACKAGES if sys.modules.get(name) is not None]
    if loaded:
        return [sys.modules[name].Callback for name in loaded]
    for name in _PACKAGES:
        try:
            return [importlib.import_module(name).Callback]
        except ImportError:
            continue
    raise ImportError("wattle.torch.lightning needs the package lightning or pytorch_lightning: pip install lightning")


class _Hooks:
    """Marks 'epoch', 'step' and 'validation' (also 'sanity check', 'test', 'predict') as blocks of the run, reports
    samples and tokens of each step, and logs joules per step and per sample.

    samples  of a batch: a number, or a function of the batch; None: the first length of its first tensor
    tokens   likewise; None: the size of `input_ids` if a batch has them
    every    steps between two figures in the log; 0: none

    A step is a batch of training: the time between on_train_batch_start and on_train_batch_end. The figures
    (wattle/j_per_step, wattle/gpu_j_per_step with a GPU, wattle/j_per_sample, wattle/j_per_token, wattle/power_w) are of
    the whole machine, and logged by its global rank 0.
"""

    def __init__(self, samples: Count = None, tokens: Count = None, every: int = 50) -> None:
        super().__init__()
        self._training = Training(every)
        self._count_samples, self._count_tokens = samples, tokens

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.start()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.stop()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin("epoch")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end("epoch")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        self._training.begin("step")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        figures = self._training.step_ends(count(self._count_samples, batch, samples_in),
                                           count(self._count_tokens, batch, tokens_in))
        if figures is not None and getattr(trainer, "is_global_zero", True):
            # The trainer would drop figures of the steps that it does not log: every 50th optimizer step by default.
            pl_module.log_dict(figures, on_step=True, on_epoch=False, rank_zero_only=True, logger=False)
            for logger in getattr(trainer, "loggers", ()):
                logger.log_metrics(figures, step=max(trainer.global_step - 1, 0))  # its own lines have the step before the update

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.pause("sanity check" if getattr(trainer, "sanity_checking", False) else "validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        for name in ("sanity check", "validation"):
            self._training.resume(name)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end("predict")


class EnergyCallback(_Hooks, *_bases()):  # type: ignore[misc]
    __doc__ = _Hooks.__doc__
