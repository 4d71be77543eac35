"""Single readings of /proc: times and memory of processes and of the machine. None: missing, or not readable."""
from __future__ import annotations

import numbers
import os
import pathlib
from typing import Any, Iterable, NamedTuple, Optional

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
IDLE, IOWAIT, STEAL = 3, 4, 7  # columns of /proc/stat; user time includes guest time (8, 9)


class ProcessTimes(NamedTuple):
    """CPU seconds."""
    user: float
    system: float


class SystemTimes(NamedTuple):
    """Busy CPU seconds of all cores, interrupts included."""
    busy_s: float


class Memory(NamedTuple):
    """Bytes."""
    pss_or_rss: Optional[int]
    uss: Optional[int]


class MachineMemory(NamedTuple):
    """Bytes; used: not available to a program that starts now."""
    total: int
    used: int


class Process:
    """A process by its pid, where psutil is not installed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __repr__(self) -> str:
        return f"Process(pid={self.pid})"


def _procfs() -> pathlib.Path:
    return pathlib.Path(os.environ.get("WATTLE_PROCFS") or "/proc")


def pid_of(process: Any) -> int:
    """A pid, or the .pid of an object. Raises ValueError otherwise."""
    pid = getattr(process, "pid", process)
    if isinstance(pid, bool) or not isinstance(pid, numbers.Integral) or pid < 1:
        raise ValueError(f"{process!r} is not a process; give a pid or an object with .pid (psutil.Process)")
    return int(pid)


def processes(pids: Iterable[Any]) -> list[Any]:
    """psutil.Process if psutil is installed, else Process; living ones only."""
    living = [pid for pid in map(pid_of, pids) if process_times(pid) is not None]
    try:
        import psutil
    except ImportError:
        return [Process(pid) for pid in living]
    found = []
    for pid in living:
        try:
            found.append(psutil.Process(pid))
        except psutil.Error:
            pass
    return found


def _stat(pid: int) -> Optional[list[bytes]]:
    """Fields of /proc/PID/stat from the third on; None also for a zombie."""
    try:
        fields = (_procfs() / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields if fields and fields[0] not in (b"Z", b"X") else None


def parent_of(pid: int) -> Optional[int]:
    """The parent's pid."""
    fields = _stat(pid)
    return int(fields[1]) if fields is not None else None


def all_pids() -> list[int]:
    """Of all visible processes."""
    return [int(entry.name) for entry in os.scandir(_procfs()) if entry.name.isdigit()]


def process_times(pid: int) -> Optional[ProcessTimes]:
    """User and system time; None: it has ended."""
    fields = _stat(pid)
    return ProcessTimes(int(fields[11]) / TICKS_PER_S, int(fields[12]) / TICKS_PER_S) if fields is not None else None


def system_times() -> SystemTimes:
    """Of all cores since boot."""
    with open(_procfs() / "stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:9]]
    busy = sum(value for column, value in enumerate(ticks) if column not in (IDLE, IOWAIT, STEAL))
    return SystemTimes(busy / TICKS_PER_S)


def memory_of(pid: int) -> Memory:
    """PSS and USS if smaps_rollup is readable, else RSS."""
    try:
        text = (_procfs() / str(pid) / "smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return Memory(_rss(pid), None)
    kib = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    if "Pss" not in kib:
        return Memory(_rss(pid), None)
    return Memory(kib["Pss"] * 1024, (kib["Private_Clean"] + kib["Private_Dirty"]) * 1024)


def _rss(pid: int) -> Optional[int]:
    try:
        return int((_procfs() / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    except OSError:
        return None


def machine_memory() -> MachineMemory:
    """From /proc/meminfo."""
    lines = (_procfs() / "meminfo").read_text(encoding="ascii").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return MachineMemory(kib["MemTotal"] * 1024, (kib["MemTotal"] - kib["MemAvailable"]) * 1024)
