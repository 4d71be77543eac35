"""The energy counters for the measurement tools: of one GPU, for any duration, nan where unknown."""
import math
import time
import warnings
from dataclasses import dataclass
from typing import Optional, Union

from ... import _wattle
from ...meter import Meter

GpuNumber = Union[int, str]


@dataclass(frozen=True)
class Energy:
    """Time and energy of an interval; nan where unreadable."""
    seconds: float
    cpu_j: float
    gpu_j: float


def open_meter(gpu_num: GpuNumber) -> Optional[Meter]:
    """A meter of the packages and of GPU `gpu_num`; of the packages only if there is no GPU; None, with a UserWarning, if
    there is no source of energy. ValueError: there are GPUs, but none of that number."""
    try:
        return Meter(gpus=gpu_option(gpu_num))
    except OSError as why:
        warnings.warn(f"energy is unknown (nan): {why}; run `wattle sensors` for the available sensors",
                      stacklevel=4)
        return None


def gpu_option(gpu_num: GpuNumber) -> Optional[str]:
    """`gpu_num` as an option of meters and recorders; None if there is no GPU. ValueError as above."""
    try:
        _wattle.check_gpus(str(gpu_num))
    except ValueError as why:
        if _has_gpus():
            raise ValueError(f"gpu_num {gpu_num!r}: {str(why).removeprefix(f'--gpus {gpu_num}: ')}") from None
        return None
    return str(gpu_num)


def _has_gpus() -> bool:
    try:
        meter = Meter()
    except OSError:
        return False
    meter.start()
    return not math.isnan(meter.stop().gpu_j)


class Counters:
    """A meter for intervals of any length."""

    def __init__(self, gpu_num: GpuNumber) -> None:
        self._meter = open_meter(gpu_num)
        self._begin_s = 0.0
        self._has_warned = False

    def start(self) -> None:
        """Starts or restarts an interval."""
        self._begin_s = time.monotonic()
        if self._meter is not None:
            self._meter.start()

    def stop(self) -> Energy:
        """Energy since start()."""
        if self._meter is None:
            return Energy(time.monotonic() - self._begin_s, math.nan, math.nan)
        reading = self._meter.stop()
        if reading.estimated and not self._has_warned:
            self._has_warned = True
            warnings.warn("no energy counter of the CPU can be read: its energy is estimated by wattle's load model; "
                          "run `wattle sensors` for the reason", stacklevel=3)
        return Energy(reading.seconds, reading.cpu_j, reading.gpu_j)
