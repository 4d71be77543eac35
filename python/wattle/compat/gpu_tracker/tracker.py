"""Tracker, and the classes of its results."""
from __future__ import annotations

import inspect
import logging
from typing import Any

from ...resource_usage import (ComputeTime, CPUUtilization, GPUUtilization, MaxGPURAM, MaxRAM,
                               ProcessingUnitPercentages, ResourceUsage, RSSValues, text)
from ...tracker import Tracker as _Tracker

__all__ = ["CPUUtilization", "ComputeTime", "GPUUtilization", "MaxGPURAM", "MaxRAM", "ProcessingUnitPercentages",
           "RSSValues", "ResourceUsage", "Tracker"]


def _signature() -> inspect.Signature:
    """wattle.Tracker's, with gpu_tracker's defaults: for help(), and for the command, which reads the options' names."""
    defaults = {"sleep_time": 1.0, "time_unit": "hours"}
    signature = inspect.signature(_Tracker.__init__)
    return signature.replace(parameters=[parameter.replace(default=defaults.get(name, parameter.default))
                                         for name, parameter in signature.parameters.items()])


class Tracker(_Tracker):
    """wattle.Tracker with gpu_tracker's defaults, JSON and text. Energy is in `.energy` and `.report`. Results are None
    before stop."""

    _warning_level = logging.INFO  # gpu_tracker measures no energy, so a missing energy counter is not worth a warning
    _early_is_error = False

    def __init__(self, sleep_time: float = 1.0, ram_unit: str = "gigabytes", gpu_ram_unit: str = "gigabytes",
                 time_unit: str = "hours", *arguments: Any, **keywords: Any) -> None:
        super().__init__(sleep_time, ram_unit, gpu_ram_unit, time_unit, *arguments, **keywords)

    __init__.__signature__ = _signature()  # type: ignore[attr-defined]

    def to_json(self) -> dict[str, Any]:
        """The fields of resource_usage as dictionaries. RuntimeError before stop."""
        return {key: value for key, value in super().to_json().items() if key != "energy"}

    def __str__(self) -> str:
        return text(self.to_json())
