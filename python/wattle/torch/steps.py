"""step(): each step of an optimizer as a block of the run: joules per step and per sample."""
from __future__ import annotations

import functools
import types
from types import TracebackType
from typing import Any, Callable, Optional, Union

from .. import _wattle

NAME, SAMPLES = "step", "samples"


class step:
    """Marks training steps for a recorder: `wattle run`, a tracker, layers().

        marked = wattle.torch.step(optimizer, samples=64)   # from now on each optimizer.step() ends a step
        for batch in data: ...
        marked.undo()                                       # or `with wattle.torch.step(optimizer, samples=64):`

        with wattle.torch.step(samples=len(batch)):         # one step, if there is no optimizer to follow
            ...

    optimizer  a torch.optim.Optimizer, or anything with a step(). Its calls are counted and timed, nothing else:
               closures, schedulers and GradScaler work as before. A step lasts from the end of the previous one (the
               first: from here).
    samples    of a step: a whole number, or a function called at the end of each step that returns it; None: not
               reported
    name       of the block: 'step' is the name for `wattle run --step step` and the progress line

    The block 'step' of the run has calls, times and joules; its units have joules per sample (docs/torch.md). Steps of
    several optimizers, as in a GAN, overlap: name each, or mark only one of them.
"""

    def __init__(self, optimizer: Optional[Any] = None, *, samples: Union[None, int, Callable[[], int]] = None,
                 name: str = NAME) -> None:
        if optimizer is not None and not callable(getattr(optimizer, "step", None)):
            raise TypeError("step() requires an optimizer with a method step(), "
                            f"not {type(optimizer).__name__}")
        if not callable(samples) and samples is not None and not _is_count(samples):
            raise ValueError(f"samples must be a non-negative integer, not {samples!r}")
        self._samples, self._name = samples, name
        self._range: Optional[int] = None
        self._span = _wattle.span(name)
        self._optimizer: Optional[Any] = None
        self.count = 0  #: steps that have ended
        if optimizer is not None:
            self._follow(optimizer)

    # ---- an optimizer's ----

    def _follow(self, optimizer: Any) -> None:
        inner = optimizer.step

        @functools.wraps(inner)  # with the marks that schedulers leave on it
        def marked(_: Any, *args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            if self._optimizer is not None and not _is_passed_over(optimizer):
                self._end()
                self._begin()
            return result

        self._before = optimizer.__dict__.get("step")
        self._marked, self._optimizer = types.MethodType(marked, optimizer), optimizer  # schedulers take methods only
        optimizer.step = self._marked
        self._begin()

    def undo(self) -> None:
        """No further steps are marked; an unfinished one does not count. Safe to repeat."""
        optimizer, self._optimizer = self._optimizer, None
        self._range = None
        if optimizer is None or optimizer.__dict__.get("step") is not self._marked:
            return  # somebody wrapped it again: the inner one only passes calls on from now on
        if self._before is None:
            del optimizer.step
        else:
            optimizer.step = self._before

    # ---- one step ----

    def __enter__(self) -> "step":
        if self._optimizer is None:
            self._span.__enter__()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if self._optimizer is not None:
            self.undo()
            return
        if kind is None:
            self._report_samples()
            self.count += 1
        self._span.__exit__(None, None, None)

    # A range, because `with` blocks of the program may begin in one step and end in another.
    def _begin(self) -> None:
        self._range = _wattle.range_begin(self._name)

    def _end(self) -> None:
        if self._range is not None:
            self._report_samples()
            _wattle.range_end(self._range)
        self.count += 1

    def _report_samples(self) -> None:
        samples = self._samples() if callable(self._samples) else self._samples
        if samples is not None:
            _wattle.metric(SAMPLES, samples)


def _is_passed_over(optimizer: Any) -> bool:
    """Whether the call changed no weights: accelerate's optimizer is called for each batch and steps once in several of them."""
    state = getattr(optimizer, "gradient_state", None)
    return state is not None and (not state.sync_gradients or bool(getattr(optimizer, "step_was_skipped", False)))


def _is_count(value: Any) -> bool:
    try:
        return bool(value >= 0 and value == int(value))
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinity
        return False
