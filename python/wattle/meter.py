"""The machine's energy counters, read in the calling thread: no process and no file."""
from __future__ import annotations

import threading
from types import TracebackType
from typing import Optional

from . import _keeper, _show, _wattle
from ._wattle import Reading


class Meter:
    """Energy of the whole machine (not of the program alone) between start and stop.

        with wattle.measure() as m:
            work()
        m.energy_j, m.error_j, m.seconds, m.power_w

    Energies are in J, NaN where unknown. error_j is half of a 95 % interval of energy_j: counters are renewed in
    steps, and 10 ms of a counter that is renewed once in 100 ms tell little. Counters wrap; a thread of this package
    reads them every 10 s, so stretches may be of any length. Where no package can be read a model's guess takes its
    place and `estimated` is True. calibration_error_j stands beside error_j: the gain of GPU power sensors, ± 10 % until
    `wattle sensors --calibrate-gpu`; NaN where no GPU is measured.

    gpus: UUIDs or indices, comma separated (None: those visible to the program); gpu_brand: nvidia, amd or intel
    (None: any). ValueError: an option is not valid. OSError (ENODEV): nothing that can be read gives energy.

    Threads that share a meter wait for each other. In a forked child it goes on on its own.
    """

    def __init__(self, gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> None:
        self._meter = _open(gpus, gpu_brand)
        self._reading: Optional[Reading] = None
        self._domains: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Takes the readings that the next ones are compared with; may be called again and starts anew."""
        _keeper.watch(self)
        with self._lock:
            self._meter.start()
            self._reading = None

    def read(self) -> Reading:
        """What was used since start; the meter goes on. RuntimeError: it has not been started."""
        with self._lock:
            self._reading = reading = self._meter.read()
            self._domains = _by_name(self._meter)
        return reading

    def stop(self) -> Reading:
        """The same, and the meter must be started again."""
        with self._lock:
            self._reading = reading = self._meter.stop()
            self._domains = _by_name(self._meter)
        _keeper.forget(self)
        return reading

    def close(self) -> None:
        """Gives the counters back; what was read last stays."""
        _keeper.forget(self)
        with self._lock:
            self._meter.close()

    def _keep(self) -> None:
        """A reading that nobody sees, by which the library notices a wrap. Whoever holds the lock is reading just
        now."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._meter.read()
        except RuntimeError:  # not started (any more)
            pass
        finally:
            self._lock.release()

    def __enter__(self) -> Meter:
        self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.stop()

    @property
    def reading(self) -> Reading:
        """What was read last. RuntimeError: nothing yet."""
        if self._reading is None:
            raise RuntimeError("the meter has not been read; leave the with block, or call read() or stop()")
        return self._reading

    @property
    def seconds(self) -> float:
        """From start to the last reading, CLOCK_MONOTONIC."""
        return self.reading.seconds

    @property
    def energy_j(self) -> float:
        """The machine's energy: the outermost domains that do not overlap (cpu + dram + gpu as far as they are known);
        NaN if a counter of one of them was reset or could not be read since start."""
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
        """The calibration of GPU power sensors, beside error_j; NaN: no GPU is measured."""
        return self.reading.calibration_error_j

    @property
    def cpu_j(self) -> float:
        """All packages."""
        return self.reading.cpu_j

    @property
    def dram_j(self) -> float:
        """All memory domains."""
        return self.reading.dram_j

    @property
    def gpu_j(self) -> float:
        """All GPUs that were chosen."""
        return self.reading.gpu_j

    @property
    def domains(self) -> dict[str, tuple[float, float]]:
        """{"package-0": (energy_j, error_j), "gpu-1": …}: each device; some contain others, as in a report."""
        self.reading  # RuntimeError: nothing yet
        return self._domains

    @property
    def power_w(self) -> float:
        """Mean power."""
        reading = self.reading
        return reading.total_j / reading.seconds if reading.seconds > 0 else float("nan")

    @property
    def estimated(self) -> bool:
        """Whether some of it is a model's estimate, no measurement."""
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
        raise ValueError(f"gpu_brand {gpu_brand!r}: valid are 'nvidia', 'amd' and 'intel'")
    try:
        return _wattle.Meter(gpus=gpus, gpu_brand=gpu_brand)
    except ValueError as why:  # the library has no words for what it refuses
        raise ValueError(_why_not(gpus, gpu_brand) or str(why)) from None


def _why_not(gpus: Optional[str], gpu_brand: Optional[str]) -> str:
    try:
        if gpus is not None:
            _wattle.check_gpus(gpus, gpu_brand)
    except ValueError as why:
        return str(why).removeprefix("--")
    return ""


def measure(gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> Meter:
    """`with wattle.measure() as m: …` measures a block of code: a Meter that is ready to start."""
    return Meter(gpus, gpu_brand)
