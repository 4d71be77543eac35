"""AsynchronousMeasurementTool: the machine over time, recorded by a process of its own."""
import atexit
import os
from typing import Optional

from ... import _wattle
from .counters import GpuNumber, gpu_option
from .readings import readings
from .rows import PathLike, RowFile


class AsynchronousMeasurementTool:
    """Records the machine every `interval` seconds, by a process of its own, while the program runs.

        tool = AsynchronousMeasurementTool(out_file="machine.csv", gpu_num=0)
        tool.start(1)
        train()
        tool.stop()

    Rows: `elapsed s,CPU kWh,CPU %,CPU °C,GPU kWh,GPU %,GPU °C,GPU W`, one for each reading after the first, and one at
    stop(). Elapsed and both energies count from start(), CPU % is over the time since the previous row; the others are
    as read at that moment. CPU is all packages (°C: the hottest), CPU % all cores: 100 is the whole machine. GPU is
    that of `gpu_num` (NVML's index or a UUID); the power of a GPU without an energy counter is integrated.

    The file is written at stop(), or when the program ends without it; the first rows replace an older file. A tool
    may be started again after stop(): further rows follow, counting from that start.

    ValueError: there are GPUs, but none of that number. OSError: `out_file` cannot be written.
"""

    def __init__(self, out_file: PathLike, gpu_num: GpuNumber = 0) -> None:
        self._file = RowFile(out_file)
        self._gpus = gpu_option(gpu_num)
        self._tracker: Optional[_wattle.Tracker] = None
        self._process = 0

    def start(self, interval: float = 1) -> None:
        """Starts recording; returns when the first reading is taken.

        interval: seconds, 0.001 to 3600, otherwise ValueError. RuntimeError: already started. OSError: the
        recorder cannot be started (the program `wattle` was not found …).
"""
        if self._is_started():
            raise RuntimeError("AsynchronousMeasurementTool.start(): already started; call stop() first")
        if not interval > 0:  # 0 selects the library's default
            raise ValueError(f"invalid interval {interval!r}: use seconds from 0.001 to 3600")
        # No row needs data from the program's memory map, so its lock is not taken: --budget 0.
        tracker = _wattle.Tracker(interval_s=float(interval), gpus=self._gpus, arguments=("--budget", "0"))
        tracker.start()
        self._tracker, self._process = tracker, os.getpid()
        atexit.register(self._stop_at_exit)

    def stop(self) -> None:
        """Ends the recording and writes its rows. RuntimeError: not started in this process."""
        tracker = self._tracker
        if tracker is None or not self._is_started():
            raise RuntimeError("AsynchronousMeasurementTool.stop() without start(): nothing is being recorded")
        self._tracker = None
        atexit.unregister(self._stop_at_exit)
        try:
            tracker.stop()
            if tracker.run_file is not None:  # WATTLE_DISABLE=1 records nothing
                self._file.extend(readings(_wattle.Run(tracker.run_file)))
        finally:
            tracker.close()

    def _is_started(self) -> bool:
        # In a forked child the recording is its parent's.
        return self._tracker is not None and self._process == os.getpid()

    def _stop_at_exit(self) -> None:
        if self._is_started():
            self.stop()
