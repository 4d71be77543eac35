"""Tracker, and the classes of its results."""
from __future__ import annotations

import logging
from typing import Any

from ...resource_usage import (ComputeTime, CPUUtilization, GPUUtilization, MaxGPURAM, MaxRAM,
                               ProcessingUnitPercentages, ResourceUsage, RSSValues, text)
from ...tracker import Tracker as _Tracker

__all__ = ["CPUUtilization", "ComputeTime", "GPUUtilization", "MaxGPURAM", "MaxRAM", "ProcessingUnitPercentages",
           "RSSValues", "ResourceUsage", "Tracker"]


class Tracker(_Tracker):
    """wattle.Tracker with gpu_tracker's defaults, JSON and text. Energy is in `.energy` and `.report`. Results are None
    before stop."""

    _warning_level = logging.INFO  # gpu_tracker measures no energy, so a missing energy counter is not worth a warning
    _early_is_error = False

    def __init__(self, sleep_time: float = 1.0, ram_unit: str = "gigabytes", gpu_ram_unit: str = "gigabytes",
                 time_unit: str = "hours", *arguments: Any, **keywords: Any) -> None:
        super().__init__(sleep_time, ram_unit, gpu_ram_unit, time_unit, *arguments, **keywords)

    def to_json(self) -> dict[str, Any]:
        """The fields of resource_usage as dictionaries. RuntimeError before stop."""
        return {key: value for key, value in super().to_json().items() if key != "energy"}

    def __str__(self) -> str:
        return text(self.to_json())
