"""The machine's energy counters, read in the calling thread: no process and no file."""
from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar

from . import _keeper, _ranges, _show, _wattle
from ._wattle import Reading

F = TypeVar("F", bound=Callable[..., Any])


class Meter:
    """Energy of the whole machine (not of the program alone) between start and stop.

        with wattle.measure() as m:
            work()
        m.energy_j, m.error_j, m.seconds, m.power_w

        @wattle.measure()
        def train(): ...

        train()
        train.meter.energy_j

    Energies are in J, NaN where unknown. error_j is half of a 95 % interval of energy_j. It is large for intervals
    shorter than the counter's update period (10 ms of a counter that updates every 100 ms). Counters wrap; a thread
    of this package reads them every 10 s, so intervals may be of any length. If no package counter can be read, a
    load model estimates the energy and `estimated` is True. calibration_error_j is an additional error: the gain of
    GPU power sensors, ± 10 % before `wattle sensors --calibrate-gpu`; NaN if no GPU is measured.

    gpus: UUIDs or indices, comma separated (None: those visible to the program); gpu_brand: nvidia, amd or intel
    (None: any). ValueError: an option is invalid. OSError (ENODEV): no readable energy sensor.

    Threads that share a meter wait for each other. In a forked child the meter continues independently.
    """

    def __init__(self, gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> None:
        self._meter = _open(gpus, gpu_brand)
        self._reading: Optional[Reading] = None
        self._domains: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Reads the counters as the starting point of the next readings. Calling it again restarts the measurement."""
        _keeper.watch(self)
        with self._lock:
            self._meter.start()
            self._reading = None

    def read(self) -> Reading:
        """The energy since start; the meter continues. RuntimeError: not started."""
        with self._lock:
            self._reading = reading = self._meter.read()
            self._domains = _by_name(self._meter)
        return reading

    def stop(self) -> Reading:
        """The energy since start; the meter stops, and can be started again."""
        with self._lock:
            self._reading = reading = self._meter.stop()
            self._domains = _by_name(self._meter)
        _keeper.forget(self)
        return reading

    def close(self) -> None:
        """Closes the counters; the last reading remains available."""
        _keeper.forget(self)
        with self._lock:
            self._meter.close()

    def _keep(self) -> None:
        """Reads the counters so that the library detects wraps. Skipped while another thread holds the lock, because
        that thread is reading."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._meter.read()
        except RuntimeError:  # not started, or stopped
            pass
        finally:
            self._lock.release()

    def __enter__(self) -> Meter:
        self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.stop()

    def __call__(self, function: F) -> F:
        """Decorator: each call of the function is measured, until it returns or its coroutine or generator is finished.
        Calls that overlap share one measurement, from the first call to the end of the last. This meter, also
        `function.meter`, has the latest. TypeError: not a function or method."""
        decorated = _ranges.wrap_calls(function, "a meter", self.start, self.stop)
        getattr(decorated, "__func__", decorated).meter = self
        result: F = decorated
        return result

    @property
    def reading(self) -> Reading:
        """The last reading. RuntimeError: not read yet."""
        if self._reading is None:
            raise RuntimeError("the meter has not been read. Leave the with block, or call read() or stop().")
        return self._reading

    @property
    def seconds(self) -> float:
        """Time from start to the last reading (CLOCK_MONOTONIC)."""
        return self.reading.seconds

    @property
    def energy_j(self) -> float:
        """Energy of the machine: the sum of the outermost domains that do not overlap (the known ones of cpu, dram and
        gpu). NaN if one of their counters was reset or unreadable since start."""
        return self.reading.total_j

    @property
    def total_j(self) -> float:
        """The same as energy_j."""
        return self.reading.total_j

    @property
    def error_j(self) -> float:
        """Half of a 95 % interval of energy_j."""
        return self.reading.error_j

    @property
    def calibration_error_j(self) -> float:
        """Calibration error of GPU power sensors, in addition to error_j; NaN: no GPU is measured."""
        return self.reading.calibration_error_j

    @property
    def cpu_j(self) -> float:
        """Energy of all packages."""
        return self.reading.cpu_j

    @property
    def dram_j(self) -> float:
        """Energy of all memory domains."""
        return self.reading.dram_j

    @property
    def gpu_j(self) -> float:
        """Energy of the selected GPUs."""
        return self.reading.gpu_j

    @property
    def domains(self) -> dict[str, tuple[float, float]]:
        """{"package-0": (energy_j, error_j), "gpu-1": …}: the energy of each device. Domains may contain
        others, as in a report."""
        self.reading  # RuntimeError: not read yet
        return self._domains

    @property
    def power_w(self) -> float:
        """Mean power."""
        reading = self.reading
        return reading.total_j / reading.seconds if reading.seconds > 0 else float("nan")

    @property
    def estimated(self) -> bool:
        """Whether a part of the energy is estimated by a model."""
        return self.reading.estimated

    def __repr__(self) -> str:
        if self._reading is None:
            return "<wattle meter, not read yet>"
        estimated = " (estimated)" if self.estimated else ""
        energy = _show.with_error(self.energy_j, self.error_j, "J")
        return f"<wattle meter: {energy}{estimated} in {_show.quantity(self.seconds, 's')}>"


def _by_name(meter: _wattle.Meter) -> dict[str, tuple[float, float]]:
    return {name: (energy_j, error_j) for name, energy_j, error_j in meter.domains()}


def _open(gpus: Optional[str], gpu_brand: Optional[str]) -> _wattle.Meter:
    if gpu_brand not in (None, "nvidia", "amd", "intel"):
        raise ValueError(f"invalid gpu_brand {gpu_brand!r}: use 'nvidia', 'amd' or 'intel'")
    try:
        return _wattle.Meter(gpus=gpus, gpu_brand=gpu_brand)
    except ValueError as why:  # the library gives no reason for a refusal
        raise ValueError(_why_not(gpus, gpu_brand) or str(why)) from None


def _why_not(gpus: Optional[str], gpu_brand: Optional[str]) -> str:
    try:
        if gpus is not None:
            _wattle.check_gpus(gpus, gpu_brand)
    except ValueError as why:
        return str(why).removeprefix("--")
    return ""


def measure(gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> Meter:
    """`with wattle.measure() as m: …` measures a block of code, `@wattle.measure()` each call of a function: a Meter that
    is ready to start."""
    return Meter(gpus, gpu_brand)
