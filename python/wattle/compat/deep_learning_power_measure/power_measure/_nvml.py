"""The few calls of NVIDIA's management library (or of WATTLE_NVML) needed for single readings, by ctypes."""
from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple, Optional

PerPid = dict[int, Optional[float]]


class Gpu(NamedTuple):
    """None: not supported by this GPU."""
    energy_j: Optional[float]  #: since the driver was loaded
    power_w: Optional[float]
    use_percent: Optional[float]
    memory_bytes: Optional[int]
    least_limit_w: Optional[float]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    """Only functions without a suffix: those with one have changed their data structures over the years."""
    _fields_ = [("pid", ctypes.c_uint), ("memory_bytes", ctypes.c_ulonglong)]


class _ProcessUse(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_us", ctypes.c_ulonglong), ("sm_percent", ctypes.c_uint),
                ("others_percent", ctypes.c_uint * 3)]


PROCESSES_MAX = 1024
UNKNOWN_BYTES = 2**64 - 1


class NvmlError(OSError):
    """No library, no driver, or no answer."""


class Nvml:
    """The library, loaded and started. Raises NvmlError."""

    def __init__(self) -> None:
        name = os.environ.get("WATTLE_NVML") or "libnvidia-ml.so.1"
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise NvmlError(f"NVIDIA's library can't be loaded: {error}") from None
        code = self._library.nvmlInit_v2()
        if code != 0:
            raise NvmlError(f"NVIDIA's library does not start: {self._describe(code)}")

    def __enter__(self) -> "Nvml":
        return self

    def __exit__(self, *_: Any) -> None:
        self._library.nvmlShutdown()

    def _describe(self, code: int) -> str:
        try:
            describe = self._library.nvmlErrorString
        except AttributeError:
            return f"error {code}"
        describe.restype = ctypes.c_char_p
        return (describe(code) or b"").decode(errors="replace") or f"error {code}"

    def count(self) -> int:
        """GPUs that the driver shows."""
        number = ctypes.c_uint()
        code = self._library.nvmlDeviceGetCount_v2(ctypes.byref(number))
        if code != 0:
            raise NvmlError(f"GPUs can't be counted: {self._describe(code)}")
        return number.value

    def gpus(self) -> list[Gpu]:
        """A reading of each, in NVML's order."""
        return [self._read(index) for index in range(self.count())]

    def memory_per_pid(self, index: int) -> PerPid:
        """Bytes of each process on a GPU, None: unknown; pids as the driver reports them."""
        found: PerPid = {}
        for kind in ("Compute", "Graphics"):
            count, entries = ctypes.c_uint(PROCESSES_MAX), (_Process * PROCESSES_MAX)()
            if self._call(f"nvmlDeviceGet{kind}RunningProcesses", self._handle(index), ctypes.byref(count), entries):
                found.update({one.pid: None if one.memory_bytes == UNKNOWN_BYTES else one.memory_bytes
                              for one in entries[:count.value]})
        return found

    def use_per_pid(self, index: int, since_us: int) -> dict[int, float]:
        """The mean multiprocessor utilization, 0 to 1, by each process that used them since then (Unix time)."""
        count, entries = ctypes.c_uint(PROCESSES_MAX), (_ProcessUse * PROCESSES_MAX)()
        samples: dict[int, list[int]] = {}
        if self._call("nvmlDeviceGetProcessUtilization", self._handle(index), entries, ctypes.byref(count),
                      ctypes.c_ulonglong(since_us)):
            for one in entries[:count.value]:
                if one.time_us > since_us and one.sm_percent <= 100:  # drivers also return invalid values
                    samples.setdefault(one.pid, []).append(one.sm_percent)
        return {pid: sum(percents) / len(percents) / 100 for pid, percents in samples.items()}

    def _handle(self, index: int) -> Optional[ctypes.c_void_p]:
        handle = ctypes.c_void_p()
        found = self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        return handle if found else None

    def _read(self, index: int) -> Gpu:
        handle = self._handle(index)
        if handle is None:
            return Gpu(None, None, None, None, None)
        energy_mj = self._ask("nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.c_ulonglong())
        power_mw = self._ask("nvmlDeviceGetPowerUsage", handle, ctypes.c_uint())
        use = self._ask("nvmlDeviceGetUtilizationRates", handle, _Utilization())
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle, _Memory())
        least_mw, most_mw = ctypes.c_uint(), ctypes.c_uint()
        limits = self._call("nvmlDeviceGetPowerManagementLimitConstraints", handle, ctypes.byref(least_mw),
                            ctypes.byref(most_mw))
        return Gpu(energy_j=None if energy_mj is None else energy_mj.value / 1e3,
                   power_w=None if power_mw is None else power_mw.value / 1e3,
                   use_percent=None if use is None else float(use.gpu),
                   memory_bytes=None if memory is None else memory.used,
                   least_limit_w=least_mw.value / 1e3 if limits else None)

    def _ask(self, name: str, handle: ctypes.c_void_p, answer: Any) -> Any:
        return answer if self._call(name, handle, ctypes.byref(answer)) else None

    def _call(self, name: str, handle: Optional[ctypes.c_void_p], *arguments: Any) -> bool:
        if handle is None:
            return False
        try:
            function = getattr(self._library, name)
        except AttributeError:  # an old driver
            return False
        return bool(function(handle, *arguments) == 0)
