"""EnergyMeasurementTool: what stretches of a program cost."""
import atexit

from .counters import Counters, GpuNumber
from .rows import J_PER_KWH, PathLike, RowFile


class EnergyMeasurementTool:
    """Measures stretches of code: a row `elapsed s,CPU kWh,GPU kWh` for each start() and stop().

        tool = EnergyMeasurementTool(out_file="energy.csv", gpu_num=0)
        for epoch in range(epochs):
            tool.start()
            train()
            tool.stop()

    CPU is all packages of the machine, GPU the one of `gpu_num` (NVML's index or a UUID), both from their energy
    counters, whoever used them meanwhile. A row is in the file as soon as stop() returns, so nothing that may end the
    program can take it away; the first row replaces an older file. A relative `out_file` is taken from the working
    folder of now.

    ValueError: there are GPUs, but none of that number. OSError: `out_file` can't be written.
    """

    def __init__(self, out_file: PathLike, gpu_num: GpuNumber = 0) -> None:
        self._file = RowFile(out_file)
        self._counters = Counters(gpu_num)
        self._pending: list[list[float]] = []
        self._is_started = False
        atexit.register(self.flush)

    def start(self) -> None:
        """Begins a stretch. Called again before stop(), it begins anew."""
        self._is_started = True
        self._counters.start()

    def stop(self) -> None:
        """Ends the stretch and writes its row. RuntimeError: it was not started. OSError: it can't be written; the
        next stop() and the end of the program try again."""
        if not self._is_started:
            raise RuntimeError("EnergyMeasurementTool.stop() without start(): nothing is being measured")
        used = self._counters.stop()
        self._is_started = False
        self._pending.append([used.seconds, used.cpu_j / J_PER_KWH, used.gpu_j / J_PER_KWH])
        self.flush()

    def flush(self) -> None:
        """Writes what could not be written when it was measured. Called by stop() and at the end of the program."""
        self._file.extend(self._pending)
        self._pending.clear()
