"""The energy counters as the measurement tools need them: one GPU, as long as it takes, and where nothing can be read, nan."""
import math
import os
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Optional, Union

from wattle import _wattle

GpuNumber = Union[int, str]

# The quickest counters known wrap after 33 s at the most that such a device draws (docs/tracker.md).
READ_EVERY_S = 10.0


@dataclass(frozen=True)
class Energy:
    """What a stretch took; nan where it could not be read."""
    seconds: float
    cpu_j: float
    gpu_j: float


def open_meter(gpu_num: GpuNumber) -> Optional[_wattle.Meter]:
    """A meter of the packages and of GPU `gpu_num`; of the packages alone where there is no GPU; None, with a UserWarning, where
    nothing gives energy. ValueError: there are GPUs, but none of that number."""
    try:
        return _wattle.Meter(gpus=gpu_option(gpu_num))
    except OSError as why:
        warnings.warn(f"energy is unknown (nan): {why}; `wattle sensors` tells what this machine can meter", stacklevel=4)
        return None


def gpu_option(gpu_num: GpuNumber) -> Optional[str]:
    """`gpu_num` as an option of meters and recorders; None (all, and that is none) where there is no GPU. ValueError as above."""
    try:
        _wattle.check_gpus(str(gpu_num))
    except ValueError as why:
        if _has_gpus():
            raise ValueError(f"gpu_num {gpu_num!r}: {str(why).removeprefix(f'--gpus {gpu_num}: ')}") from None
        return None
    return str(gpu_num)


def _has_gpus() -> bool:
    try:
        meter = _wattle.Meter()
    except OSError:
        return False
    meter.start()
    return not math.isnan(meter.stop().gpu_j)


class Counters:
    """A meter for stretches of any length: it is read now and then, so that no wrap of a counter is missed."""

    def __init__(self, gpu_num: GpuNumber) -> None:
        self._meter = open_meter(gpu_num)
        self._reader: Optional[_Reader] = None
        self._begin_s = 0.0
        self._has_warned = False

    def start(self) -> None:
        """Begins a stretch, or begins it anew."""
        self._end_reader()
        if self._meter is None:
            self._begin_s = time.monotonic()
            return
        self._reader = _Reader(self._meter)
        self._reader.start()
        self._meter.start()

    def stop(self) -> Energy:
        """What was used since start()."""
        if self._meter is None:
            return Energy(time.monotonic() - self._begin_s, math.nan, math.nan)
        self._end_reader()
        reading = self._meter.stop()
        if reading.estimated and not self._has_warned:
            self._has_warned = True
            warnings.warn("no energy counter of the CPU can be read: its energy is estimated by wattle's load model; "
                          "`wattle sensors` tells why", stacklevel=3)
        return Energy(reading.seconds, reading.cpu_j, reading.gpu_j)

    def _end_reader(self) -> None:
        if self._reader is not None:
            self._reader.end()
            self._reader = None


class _Reader(threading.Thread):
    """Reads a meter every READ_EVERY_S until end(). A meter belongs to one thread at a time: hence the lock."""

    def __init__(self, meter: _wattle.Meter) -> None:
        super().__init__(name="wattle-counters", daemon=True)
        self._meter = meter
        self._is_over = threading.Event()
        self._reading = threading.Lock()
        self._process = os.getpid()

    def run(self) -> None:
        while not self._is_over.wait(READ_EVERY_S):
            with self._reading:
                if not self._is_over.is_set():
                    self._meter.read()

    def end(self) -> None:
        """After this the meter is the caller's. In a forked child there is no thread, and its lock may be held for ever."""
        if self._process != os.getpid():
            return
        self._is_over.set()
        with self._reading:
            pass
