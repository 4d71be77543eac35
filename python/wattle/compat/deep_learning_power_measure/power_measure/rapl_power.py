"""Single samples of energy counters, CPU use and memory of processes.

For recordings see experiment: wattle's recorder does not use these. Domains nest: psys contains the packages
(intel_power), a package contains its cores (total_cpu_power), its uncore and more; DRAM is beside the packages.
"""
from __future__ import annotations

import os
import time
from typing import Any, Iterable, Iterator, Optional

from . import rapl
from ._proc import (ProcessTimes, SystemTimes, machine_memory, memory_of, parent_of, pid_of, process_times, processes,
                    system_times)

__all__ = ["get_cpu_uses", "get_diff_power_draw", "get_info_time", "get_mem_uses", "get_metrics", "get_percent_uses",
           "get_power", "get_processes", "get_rel_power", "get_relative_mem_use", "is_rapl_compatible", "parent_of"]

Info = dict[int, tuple[SystemTimes, ProcessTimes]]
# Names of subdomains -> the key of get_power; several names, since kernels differ.
SUBDOMAINS = {"core": "total_cpu_power", "cpu": "total_cpu_power", "uncore": "uncore_power", "dram": "total_dram_power",
              "ram": "total_dram_power"}
DOMAINS = {"RAM": ("dram", "ram"), "CPU core": ("core", "cpu"), "uncore": ("uncore",), "System on Chip": ("psys",)}


class _Pair(dict[int, Any]):
    """The dict of AIPowerMeter's documentation (`get_cpu_uses(…)[pid]`), which unpacks into the two values that its code
    returns (`uses, seconds = get_cpu_uses(…)`). So its pids are `.keys()`, not the items of a loop over it."""

    def __init__(self, first: dict[int, Any], second: dict[int, Any]) -> None:
        super().__init__(first)
        self.both = (first, second)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.both)

    def __missing__(self, key: int) -> Any:
        if key in (0, 1):
            return self.both[key]
        raise KeyError(key)


# ---- energy counters ----

def is_rapl_compatible() -> tuple[bool, str]:
    """Whether the counters under /sys/class/powercap are readable, and a text: their names, or the remedy."""
    folders = list(rapl.zones())
    if not folders:
        return False, f"there are no counters in {rapl.rapl_dir}"
    locked = [folder for folder in folders if not os.access(folder / "energy_uj", os.R_OK)]
    if locked:
        return False, f"{locked[0]}/energy_uj is readable by root only; `wattle sensors` lists how to enable access"
    names = {domain.name for domain in rapl.RAPLSample.take_sample().domains_by_id.values()}
    lines = [f"{title} related energy consumption {'available' if names & set(words) else 'NOT available'}\n"
             for title, words in DOMAINS.items()]
    return True, "RAPL available:\n" + "".join(lines)


def get_diff_power_draw(diff: rapl.RAPLDifference) -> dict[str, float]:
    """Mean power in W between two samples (`get_power(sample2 - sample1)`).

    intel_power: all packages; total_cpu_power, uncore_power: parts of them; total_dram_power: beside them; psys_power:
    the platform, with all of it. Domains that this machine lacks have no key.
"""
    watts: dict[str, float] = {}

    def add(key: str, power_w: float) -> None:
        watts[key] = watts.get(key, 0.0) + power_w

    for domain in diff.domains.values():
        power_w = diff.average_power(domain.name)
        if domain.name == "psys":
            add("psys_power", power_w)
        elif domain.name.startswith("package"):
            add("intel_power", power_w)
        for name in domain.subdomains:
            key = SUBDOMAINS.get(name.lower())
            if key is not None:
                add(key, diff.average_power(domain.name, name))
    return watts


get_power = get_diff_power_draw


def get_rel_power(rel_uses: dict[int, Optional[float]], power: Optional[float]) -> dict[int, Optional[float]]:
    """Each process's share (0 to 1) of a power in W. None if the share or the power is unknown."""
    return {pid: None if use is None or power is None else use * power for pid, use in rel_uses.items()}


# ---- CPU use ----

def get_processes(pid_list: Iterable[Any]) -> list[Any]:
    """Objects with .pid for existing processes: psutil's if psutil is installed. Others are left out."""
    return processes(pid_list)


def get_info_time(process_list: Iterable[Any], zombies: Optional[list[int]] = None) -> tuple[Info, list[int]]:
    """({pid: (CPU time of the machine, CPU time of the process)}, pids that have ended), times in seconds."""
    infos: Info = {}
    zombies = [] if zombies is None else zombies
    for process in process_list:
        pid = pid_of(process)
        own = process_times(pid)
        if own is None:
            zombies.append(pid)
        else:
            infos[pid] = (system_times(), own)
    return infos, zombies


def get_percent_uses(infos1: Info, infos2: Info, zombies: Iterable[int], process_list: Iterable[Any]
                     ) -> tuple[dict[int, Optional[float]], dict[int, float]]:
    """Between two get_info_time: ({pid: share of the machine's busy CPU time, 0 to 1}, {pid: CPU seconds}).

    Busy is all but idle and iowait, interrupts included. The share is None if the machine was busy for less than a tick.
"""
    shares: dict[int, Optional[float]] = {}
    seconds: dict[int, float] = {}
    gone = set(zombies)
    for pid in map(pid_of, process_list):
        if pid in gone or pid not in infos1 or pid not in infos2:
            continue
        (machine1, own1), (machine2, own2) = infos1[pid], infos2[pid]
        busy_s = machine2.busy_s - machine1.busy_s
        # User and system separately: sums of such numbers would differ by rounding, and become negative.
        seconds[pid] = (own2.user - own1.user) + (own2.system - own1.system)
        shares[pid] = min(seconds[pid] / busy_s, 1.0) if busy_s > 0 else None
    return shares, seconds


def get_cpu_uses(process_list: Iterable[Any], period: float = 2.0) -> _Pair:
    """Samples twice, `period` seconds apart: {pid: share of the machine's busy CPU time, 0 to 1}, {pid: CPU seconds}.

    process_list: pids or objects with .pid. The result is the first, which unpacks into both.
"""
    process_list = list(process_list)
    infos1, zombies = get_info_time(process_list)
    time.sleep(period)
    infos2, zombies = get_info_time(process_list, zombies)
    return _Pair(*get_percent_uses(infos1, infos2, zombies, process_list))


# ---- memory ----

def get_mem_uses(process_list: Iterable[Any]) -> _Pair:
    """Memory of processes in bytes: {pid: PSS, or RSS if PSS is not readable}, {pid: USS} if it is.

    PSS: pages shared by several processes are divided evenly among them. USS: memory freed if the process ended.
    process_list: pids or objects with .pid; ended ones are left out. The result is the first, which unpacks into both.
"""
    pss: dict[int, int] = {}
    uss: dict[int, int] = {}
    for pid in map(pid_of, process_list):
        memory = memory_of(pid)
        if memory.pss_or_rss is not None:
            pss[pid] = memory.pss_or_rss
        if memory.uss is not None:
            uss[pid] = memory.uss
    return _Pair(pss, uss)


def get_relative_mem_use(mem_info_per_process: dict[int, int]) -> dict[int, float]:
    """Each process's share (0 to 1) of the memory in use."""
    used = machine_memory().used
    return {pid: memory / used for pid, memory in mem_info_per_process.items()}


def get_metrics(pid_list: Iterable[Any], period: float = 2.0, memory_usage: bool = True, measure_rapl: bool = True,
                measure_cpu_usage: bool = True) -> dict[str, Any]:
    """One record's `cpu`: power in W, shares and CPU seconds over `period` seconds, memory in bytes at its end."""
    found = get_processes(pid_list)
    before = rapl.RAPLSample.take_sample() if measure_rapl else None
    metrics: dict[str, Any] = {}
    if measure_cpu_usage:
        metrics["per_process_cpu_uses"], metrics["absolute_cpu_time_per_pid"] = get_cpu_uses(found, period).both
    elif measure_rapl:
        time.sleep(period)
    if before is not None:
        metrics.update(get_power(rapl.RAPLSample.take_sample() - before))
    if memory_usage:
        pss, uss = get_mem_uses(found).both
        metrics.update(per_process_mem_use_abs=pss, per_process_mem_use_percent=get_relative_mem_use(pss),
                       total_mem_use=machine_memory().used)
        if uss:
            metrics["per_process_mem_use_uss"] = uss
    return _with_shares(metrics)


# power of the machine, share of a process -> power of a process
SHARES = (("intel_power", "per_process_cpu_uses", "rel_intel_power"),
          ("total_cpu_power", "per_process_cpu_uses", "per_process_cpu_power"),
          ("total_dram_power", "per_process_mem_use_percent", "per_process_dram_power"))


def _with_shares(metrics: dict[str, Any]) -> dict[str, Any]:
    for power, share, name in SHARES:
        if power in metrics and share in metrics:
            metrics[name] = get_rel_power(metrics[share], metrics[power])
    return metrics
