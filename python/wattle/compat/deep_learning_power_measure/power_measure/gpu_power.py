"""Single samples of NVIDIA GPUs. Power in W, memory in bytes, multiprocessor utilization from 0 to 1 unless stated."""
from __future__ import annotations

import pathlib
import tempfile
import time
from typing import Any, Iterable, Mapping, Optional

from ._driver import records_of_run
from ._nvml import Nvml, NvmlError
from ._proc import pid_of
from ._records import Record

# AIPowerMeter's two generations of names.
SAME = {"nvidia_draw_absolute": "nvidia_power", "per_gpu_power_draw": "per_gpu_nvidia_power"}
LOOK_S = 1.0  # energy counters of GPUs are updated every 20 to 100 ms, so less would be inaccurate
USE, MEMORY = "per_gpu_per_pid_utilization_absolute", "per_gpu_attributable_mem_use"
ALIKE = 0.05  # shares of two samples at the same time
ALL = 1  # its descendants are all programs of the machine, or of the container


def is_nvidia_compatible() -> tuple[bool, str]:
    """Whether there is an NVIDIA GPU with power readings, and a text."""
    reason = "nvidia NOT available for energy consumption\n"
    try:
        with Nvml() as nvml:
            gpus = nvml.gpus()
    except NvmlError as error:
        return False, f"{reason}{error}"
    if not gpus:
        return False, f"{reason}no GPU found"
    if all(gpu.power_w is None and gpu.energy_j is None for gpu in gpus):
        return False, f"{reason}no GPU reports its power"
    return True, "GPU power will be measured with nvidia"


def get_gpu_sample() -> dict[str, Any]:
    """A reading of all GPUs: time (Unix s), nvidia_power and per_gpu_nvidia_power (J since the driver was loaded),
    nvidia_memory and per_gpu_nvidia_memory (bytes), nvidia_use_rate and per_gpu_nvidia_use_rate (percent).

    None if a GPU does not support it, also for sums; the mean utilization is of those that do. Raises
    NvmlError (an OSError) without a driver.
"""
    with Nvml() as nvml:
        gpus = dict(enumerate(nvml.gpus()))
    energy_j = {index: gpu.energy_j for index, gpu in gpus.items()}
    memory = {index: gpu.memory_bytes for index, gpu in gpus.items()}
    rates = {index: gpu.use_percent for index, gpu in gpus.items()}
    known_rates = [rate for rate in rates.values() if rate is not None]
    return {"time": time.time(), "nvidia_power": _sum(energy_j), "nvidia_memory": _sum(memory),
            "per_gpu_nvidia_power": energy_j, "per_gpu_nvidia_use_rate": rates, "per_gpu_nvidia_memory": memory,
            "nvidia_use_rate": sum(known_rates) / len(known_rates) if known_rates else None}


def get_diff_gpu_sample(s1: dict[str, Any], s2: dict[str, Any]) -> dict[str, Any]:
    """Between two get_gpu_sample: mean power in W, memory and use as the mean of both. Raises ValueError."""
    seconds = s2["time"] - s1["time"]
    if seconds <= 0:
        raise ValueError("the second sample is not later than the first")

    def between(name: str, first: Optional[float], second: Optional[float]) -> Optional[float]:
        if first is None or second is None:
            return None
        return (second - first) / seconds if "power" in name else (first + second) / 2

    return {name: {gpu: between(name, value, s2[name].get(gpu)) for gpu, value in first.items()}
            if isinstance(first, dict) else between(name, first, s2[name])
            for name, first in s1.items() if name != "time"}


def get_min_power() -> dict[int, Optional[float]]:
    """The minimum power limit of each GPU, in W."""
    with Nvml() as nvml:
        return {index: gpu.least_limit_w for index, gpu in enumerate(nvml.gpus())}


def get_nvidia_gpu_power(pid_list: Optional[Iterable[Any]] = None, nsample: int = 1) -> dict[str, Any]:
    """Power and utilization of each GPU, and the share of the processes in pid_list (None: all) and their descendants.

    Records for nsample seconds with wattle's recorder, so that the processes' share is also correct in containers; there,
    and if a process in pid_list has others below it, values per pid are under the first. Returns
        nvidia_draw_absolute (nvidia_power)          W, all GPUs
        per_gpu_power_draw (per_gpu_nvidia_power)    {gpu: W}
        per_gpu_attributable_mem_use                 {gpu: {pid: bytes}}
        per_gpu_per_pid_utilization_absolute         {gpu: {pid: 0 to 1}}
        per_gpu_absolute_percent_usage               {gpu: 0 to 1}, of these processes
        per_gpu_estimated_attributable_utilization   {gpu: 0 to 1}, their share of the utilization
        per_gpu_attributable_power                   {gpu: W, 'all': W}
    without those that the GPUs do not support. Raises NvmlError (an OSError) if there is no GPU.
"""
    available, reason = is_nvidia_compatible()
    if not available:
        raise NvmlError(reason.replace("\n", ": "))
    pids = [ALL] if pid_list is None else [pid_of(process) for process in pid_list]
    if not pids:
        raise ValueError("pid_list is empty; use None for all processes")
    metrics: dict[str, Any] = _by_number(_record(pids, LOOK_S * max(int(nsample), 1)))
    _split(metrics, pids if pid_list is not None else None)
    for old, new in SAME.items():
        for name, other in ((old, new), (new, old)):
            if other in metrics:
                metrics.setdefault(name, metrics[other])
    return metrics


def _split(metrics: dict[str, Any], pids: Optional[list[int]]) -> None:
    """Divides the recorder's value for these pids (None: all) among them, if the driver's figures add up to it."""
    together = metrics.get(USE, {})
    began_us = int((time.time() - LOOK_S) * 1e6)
    with Nvml() as nvml:
        for gpu, total in together.items():
            use, memory = nvml.use_per_pid(gpu, began_us), nvml.memory_per_pid(gpu)
            wanted = set(pids if pids is not None else [*use, *memory])
            mine = {pid: use.get(pid, 0.0) for pid in memory.keys() | use.keys() if pid in wanted}
            if mine and (pids is None or abs(sum(mine.values()) - sum(total.values())) < ALIKE):
                metrics[USE][gpu] = mine
                metrics[MEMORY][gpu] = {pid: memory.get(pid) for pid in mine}


def _record(pids: list[int], seconds: float) -> dict[str, Any]:
    """`gpu` of the last record of a short recording."""
    from ._recording import tracker_of
    with tempfile.TemporaryDirectory(prefix="wattle-") as folder:
        run_file = pathlib.Path(folder, "run.sqlite")
        tracker = tracker_of(run_file, pids, 2 * seconds, [])  # so that one record covers the whole time
        tracker.start()
        time.sleep(seconds)
        tracker.stop()
        records = [item for item in records_of_run(run_file) if isinstance(item, Record) and "gpu" in item.metrics]
    if not records:
        raise NvmlError("the recorder found no GPU; run `wattle sensors` for the reason")
    return records[-1].metrics["gpu"]


def _by_number(value: Any) -> Any:
    """Keys of JSON are texts; AIPowerMeter's GPUs and pids are numbers."""
    if not isinstance(value, dict):
        return value
    return {int(key) if key.isdigit() else key: _by_number(inner) for key, inner in value.items()}


def _sum(values: Mapping[int, Optional[float]]) -> Optional[float]:
    """None where one is unknown: a counter missing in one of two sums would look like energy."""
    known = [value for value in values.values() if value is not None]
    return sum(known) if known and len(known) == len(values) else None
