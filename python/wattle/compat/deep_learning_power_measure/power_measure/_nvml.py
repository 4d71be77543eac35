"""The few calls of NVIDIA's management library (or of WATTLE_NVML) that single readings need, by ctypes."""
from __future__ import annotations

import ctypes
import os
from typing import Any, List, NamedTuple, Optional


class Gpu(NamedTuple):
    """None: this GPU does not tell."""
    energy_j: Optional[float]  #: since the driver was loaded
    power_w: Optional[float]
    use_percent: Optional[float]
    memory_bytes: Optional[int]
    least_limit_w: Optional[float]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NvmlError(OSError):
    """There is no library, no driver, or it does not answer."""


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

    def gpus(self) -> List[Gpu]:
        """A reading of each, in NVML's order."""
        return [self._read(index) for index in range(self.count())]

    def _read(self, index: int) -> Gpu:
        handle = ctypes.c_void_p()
        if self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
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

    def _call(self, name: str, *arguments: Any) -> bool:
        try:
            function = getattr(self._library, name)
        except AttributeError:  # an old driver
            return False
        return function(*arguments) == 0
