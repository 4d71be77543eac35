"""A callback for the Trainer of Hugging Face's transformers.

    from wattle.torch.huggingface import EnergyCallback
    trainer = Trainer(model, args, train_dataset=data, callbacks=[EnergyCallback()])
"""
from __future__ import annotations

import sys
from typing import Any, Optional

from .._training import NEVER, Training

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("wattle.torch.huggingface needs the package transformers: pip install transformers") from error


class EnergyCallback(TrainerCallback):  # type: ignore[misc]
    """Marks 'epoch', 'step' and 'validation' as blocks of the run, reports samples and tokens of each step, and adds
    joules per step, sample and token to the trainer's logs.

    samples  of a step of this process; None: per_device_train_batch_size x its GPUs x gradient_accumulation_steps, less
             in the last step of an epoch; with several processes that last step may have fewer than reported
    every    steps between two figures; None: as often as the trainer logs; 0: none

    A step is an optimizer step, gradient accumulation included. Tokens are known if the trainer counts them
    (include_num_input_tokens_seen). Figures (wattle/j_per_step …) are of the whole machine; they are added to the
    logs and the history at the next on_log, before the callbacks that report them. Evaluation begins where the
    trainer decides on it.
"""

    def __init__(self, samples: Optional[int] = None, every: Optional[int] = None) -> None:
        super().__init__()
        self._training = Training(every or 0)
        self._samples, self._every = samples, every
        self._figures: dict[str, float] = {}
        self._steps = 0
        self._tokens_seen = 0
        self._left: Optional[int] = None  # samples of the epoch that are still to come, if known

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        _move_before_reporters(self, sys._getframe(1).f_locals.get("self"))
        self._training.stop()  # the trainer calls no callback after an exception
        self._steps, self._tokens_seen, self._figures = 0, self._seen(state), {}
        self._training = Training(NEVER if self._every is None else self._every)  # on_log asks for them itself
        self._training.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.stop()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        self._left = _samples_in_epoch(args, train_dataloader)
        self._training.begin("epoch")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.end("epoch")
        self._before_evaluation(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.begin("step")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seen = self._seen(state)
        tokens, self._tokens_seen = seen - self._tokens_seen, seen
        figures = self._training.step_ends(self._samples_of(args), tokens or None)
        self._steps += 1
        self._figures.update(figures or {})
        self._before_evaluation(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self._training.is_open("validation"):
            self._training.pause("validation")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._training.resume("validation")

    on_predict = on_evaluate

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[dict[str, float]] = None, **_: Any) -> None:
        if any(name.startswith("eval_") for name in logs or ()):  # figures of training belong to its own lines
            return
        if self._every is None and self._steps > 0:
            self._figures, self._steps = self._training.figures() or {}, 0
        figures, self._figures = self._figures, {}
        history = getattr(state, "log_history", None)
        for place in (logs, history[-1] if history else None):
            if place is not None:
                place.update(figures)

    def _before_evaluation(self, control: Any) -> None:
        if getattr(control, "should_evaluate", False) and not self._training.is_open("validation"):
            self._training.pause("validation")

    def _samples_of(self, args: Any) -> Optional[int]:
        if self._samples is not None:
            return self._samples
        batch = getattr(args, "train_batch_size", None)
        if batch is None:
            return None
        samples: int = batch * getattr(args, "gradient_accumulation_steps", 1)
        if self._left:  # 0: a sampler that takes more than the data set has
            samples = min(samples, self._left)
            self._left -= samples
        return samples

    @staticmethod
    def _seen(state: Any) -> int:
        return int(getattr(state, "num_input_tokens_seen", 0) or 0)


def _move_before_reporters(callback: Any, handler: Any) -> None:
    """The trainer adds the callbacks of TensorBoard, W&B and the printed log before those of the program, so they would report logs
    without figures. No event passes on the list of callbacks; the handler that calls this one has it."""
    callbacks = getattr(handler, "callbacks", None)
    if not isinstance(callbacks, list) or callback not in callbacks:
        return
    decides = [i for i, one in enumerate(callbacks) if type(one).__name__ == "DefaultFlowCallback"]  # on evaluation: stays before
    first, now = max(decides, default=-1) + 1, callbacks.index(callback)
    if first < now:  # the handler's loop over the list goes on after `now`
        callbacks.insert(first, callbacks.pop(now))


def _samples_in_epoch(args: Any, loader: Any) -> Optional[int]:
    """None: unknown, as of a stream; several processes share the samples in ways of their own."""
    if getattr(args, "world_size", 1) != 1:
        return None
    try:
        samples = len(loader.dataset)
    except (TypeError, AttributeError):
        return None
    return samples - samples % int(args.train_batch_size) if getattr(args, "dataloader_drop_last", False) else samples
