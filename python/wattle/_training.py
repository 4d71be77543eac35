"""Shared by the callbacks for training frameworks: blocks of the run, and energy per step during training."""
from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Optional, Union

from . import _wattle

Count = Union[None, int, Callable[[Any], int]]  # : a number for each step, or a function of the batch

NEVER = 1 << 62  # : steps between two figures: counters are read then, and figures() is called on other events

J_PER_STEP, J_PER_SAMPLE, J_PER_TOKEN = "wattle/j_per_step", "wattle/j_per_sample", "wattle/j_per_token"
GPU_J_PER_STEP, POWER = "wattle/gpu_j_per_step", "wattle/power_w"


class Training:
    """Marks epochs, steps and validation as blocks, and reads the machine's counters for figures.

    Blocks are ranges: frameworks begin and end them in different calls. A block left open by an exception is
    closed by the next enclosing call. Figures are of the whole machine and of training only: energy of
    validation is left out, that of loading data is included.

    every: steps between two figures; 0: none, and no counter is read.
"""

    def __init__(self, every: int = 50) -> None:
        if every != int(every) or every < 0:
            raise ValueError(f"every must be an integer number of steps (0: no figures), not {every!r}")
        self._every = int(every)
        self._open: dict[str, int] = {}
        self._meter: Optional[_wattle.Meter] = None
        self._estimated = False
        self._clear()

    def _clear(self) -> None:
        self._energy_j = self._gpu_j = self._seconds = 0.0
        self._from: Optional[_wattle.Reading] = None
        self._steps, self._samples, self._tokens = 0, 0, 0
        self._all_samples_known = self._all_tokens_known = True

    # ---- blocks ----

    def begin(self, name: str) -> None:
        self.end(name)
        self._open[name] = _wattle.range_begin(name)

    def end(self, name: str) -> None:
        number = self._open.pop(name, None)
        if number is not None:
            _wattle.range_end(number)

    def is_open(self, name: str) -> bool:
        return name in self._open

    # ---- the course of a training ----

    def start(self) -> None:
        """Training begins. Without a counter there are blocks but no figures."""
        self.stop()
        self._clear()
        if self._every == 0:
            return
        try:
            self._meter = _wattle.Meter()
            self._meter.start()
            self._from = self._meter.read()
        except OSError:
            self._meter = None

    def stop(self) -> None:
        """Training has ended for any reason: open blocks are closed, from the innermost."""
        for name in reversed(list(self._open)):
            self.end(name)
        if self._meter is not None:
            self._meter.close()
            self._meter = None

    def pause(self, name: str) -> None:
        """Validation begins."""
        self._add_energy()
        self._from = None
        self.begin(name)

    def resume(self, name: str) -> None:
        self.end(name)
        if self._meter is not None and self._from is None:
            self._from = self._meter.read()

    def step_ends(self, samples: Optional[int], tokens: Optional[int]) -> Optional[dict[str, float]]:
        """The step's own numbers, and every so many steps the figures since the last ones (known ones only)."""
        if self.is_open("step"):
            for name, value in (("samples", samples), ("tokens", tokens)):
                if value is not None:
                    _wattle.metric(name, value)
            self.end("step")
        self._steps += 1
        self._samples += samples or 0
        self._tokens += tokens or 0
        self._all_samples_known &= samples is not None
        self._all_tokens_known &= tokens is not None
        return self.figures() if self._every and self._steps >= self._every else None

    def figures(self) -> Optional[dict[str, float]]:
        """Joules per step, sample and token, of the GPUs per step, and mean power since the last call; None: unknown."""
        self._add_energy()
        energy_j, gpu_j = self._energy_j, self._gpu_j
        parts = {J_PER_STEP: (energy_j, self._steps), GPU_J_PER_STEP: (gpu_j, self._steps),
                 J_PER_SAMPLE: (energy_j, self._samples if self._all_samples_known else 0),
                 J_PER_TOKEN: (energy_j, self._tokens if self._all_tokens_known else 0), POWER: (energy_j, self._seconds)}
        kept = self._from
        self._clear()
        self._from = kept
        if self._meter is None or not math.isfinite(energy_j):
            return None
        return {name: joules / count for name, (joules, count) in parts.items() if count > 0 and math.isfinite(joules)} or None

    def _add_energy(self) -> None:
        if self._meter is None or self._from is None:
            return
        reading = self._meter.read()
        self._energy_j += reading.total_j - self._from.total_j
        self._gpu_j += reading.gpu_j - self._from.gpu_j  # NaN: no GPU, or one without an energy reading
        self._seconds += reading.seconds - self._from.seconds
        self._estimated |= reading.estimated
        self._from = reading


def count(how: Count, batch: Any, fallback: Optional[Callable[[Any], Optional[int]]] = None) -> Optional[int]:
    """Number of samples or tokens of a batch, by the user's number or function; None: unknown."""
    if how is None:
        return fallback(batch) if fallback is not None else None
    return int(how(batch)) if callable(how) else int(how)


def samples_in(batch: Any) -> Optional[int]:
    """The first length of the first array in a batch, as data loaders make them; None: no array."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) > 0 else None
    values = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ()
    return next((found for found in map(samples_in, values) if found is not None), None)


def tokens_in(batch: Any) -> Optional[int]:
    """Elements of `input_ids`, padding included, as in batches of language models; None: not such a batch."""
    ids = batch.get("input_ids") if isinstance(batch, Mapping) else None
    shape = getattr(ids, "shape", None)
    return math.prod(int(n) for n in shape) if shape is not None else None
