"""EnergyMeasurementTool: energy of sections of a program."""
import atexit

from .counters import Counters, GpuNumber
from .rows import J_PER_KWH, PathLike, RowFile


class EnergyMeasurementTool:
    """Measures sections of code: a row `elapsed s,CPU kWh,GPU kWh` for each start() and stop().

        tool = EnergyMeasurementTool(out_file="energy.csv", gpu_num=0)
        for epoch in range(epochs):
            tool.start()
            train()
            tool.stop()

    CPU is all packages of the machine, GPU that of `gpu_num` (NVML's index or a UUID), both from their energy
    counters, including use by other programs. A row is in the file as soon as stop() returns, so that it survives
    any end of the program; the first row replaces an older file. A relative `out_file` refers to the current working
    folder.

    ValueError: there are GPUs, but none of that number. OSError: `out_file` cannot be written.
"""

    def __init__(self, out_file: PathLike, gpu_num: GpuNumber = 0) -> None:
        self._file = RowFile(out_file)
        self._counters = Counters(gpu_num)
        self._pending: list[list[float]] = []
        self._is_started = False
        atexit.register(self.flush)

    def start(self) -> None:
        """Starts a section. Called again before stop(), it restarts it."""
        self._is_started = True
        self._counters.start()

    def stop(self) -> None:
        """Ends the section and writes its row. RuntimeError: not started. OSError: the row cannot be written; the next
        stop() and the end of the program try again."""
        if not self._is_started:
            raise RuntimeError("EnergyMeasurementTool.stop() without start(): nothing is being measured")
        used = self._counters.stop()
        self._is_started = False
        self._pending.append([used.seconds, used.cpu_j / J_PER_KWH, used.gpu_j / J_PER_KWH])
        self.flush()

    def flush(self) -> None:
        """Writes rows that could not be written when they were measured. Called by stop() and at the end of the program."""
        self._file.extend(self._pending)
        self._pending.clear()
