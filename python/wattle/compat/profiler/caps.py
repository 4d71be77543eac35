"""Limits by the number of a GPU."""
from __future__ import annotations

import operator
from typing import Union

from ... import cap as caps

GpuNumber = Union[int, str]

_set_here: set[str] = set()  # devices whose limit this program has set


def device_name(gpu_num: GpuNumber) -> str:
    """`gpu_num` (NVML's index, or a UUID) in the form of wattle.cap's device names."""
    if isinstance(gpu_num, str) and not gpu_num.isdecimal():
        return gpu_num
    return f"gpu-{gpu_num if isinstance(gpu_num, str) else operator.index(gpu_num)}"


def set_power_cap(gpu_num: GpuNumber, cap: float) -> None:
    """Limits the GPU to `cap` watts, until reset_power_cap() or the end of the program, for whatever reason.

    ValueError: outside the GPU's range, which the message states; nothing is set. LookupError: there is no such GPU, or it
    cannot be limited. PermissionError: neither this program nor the helper wattled has permission.
"""
    _set_here.update(caps.set(device_name(gpu_num), cap).devices)


def reset_power_cap(gpu_num: GpuNumber) -> None:
    """Restores the limit from before set_power_cap(); for a GPU that this program has not limited: its default."""
    name = caps.get(device_name(gpu_num)).device  # a UUID means the same one
    caps.reset(name, default=name not in _set_here)
    _set_here.discard(name)
