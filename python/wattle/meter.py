"""The machine's energy counters, read in the calling thread: no process, no thread, no file."""
from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from . import _show, _wattle
from ._wattle import Reading


class Meter:
    """Energy of the whole machine (not of the program alone) between start and stop.

        with wattle.measure() as m:
            work()
        m.energy_j, m.error_j, m.seconds, m.power_w

    Energies are in J, NaN where unknown. error_j is half of a 95 % interval of energy_j: counters are renewed in steps, and 10 ms
    of a counter that is renewed once in 100 ms tell little. Where a stretch is long, read() now and then: counters wrap (those
    of an Intel package after a minute at the earliest, those of AMD after half), and one that may have wrapped twice gives
    NaN. Where no package can be read a model's guess takes its place and `estimated` is True.

    gpus: UUIDs or indices, comma separated (None: those visible to the program); gpu_brand: nvidia, amd or intel (None: any).
    ValueError: an option is not valid. OSError (ENODEV): nothing that can be read gives energy.

    One thread at a time may use a meter (RuntimeError else). In a forked child it goes on on its own.
    """

    def __init__(self, gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> None:
        self._meter = _wattle.Meter(gpus=gpus, gpu_brand=gpu_brand)
        self._reading: Optional[Reading] = None

    def start(self) -> None:
        """Takes the readings that the next ones are compared with; may be called again and starts anew."""
        self._meter.start()
        self._reading = None

    def read(self) -> Reading:
        """What was used since start; the meter goes on. RuntimeError: it has not been started."""
        self._reading = self._meter.read()
        return self._reading

    def stop(self) -> Reading:
        """The same, and the meter must be started again."""
        self._reading = self._meter.stop()
        return self._reading

    def close(self) -> None:
        """Gives the counters back; what was read last stays."""
        self._meter.close()

    def __enter__(self) -> Meter:
        self.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
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
        """The machine's energy: the outermost domains that do not overlap (cpu + dram + gpu as far as they are known)."""
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


def measure(gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> Meter:
    """`with wattle.measure() as m: …` measures a block of code: a Meter that is ready to start."""
    return Meter(gpus, gpu_brand)
