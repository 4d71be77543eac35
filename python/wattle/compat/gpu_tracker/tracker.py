"""Tracker, and the classes of its results."""
from __future__ import annotations

import logging
from typing import Any

from ...resource_usage import (ComputeTime, CPUUtilization, GPUUtilization, MaxGPURAM, MaxRAM,
                               ProcessingUnitPercentages, ResourceUsage, RSSValues)
from ...tracker import Tracker as _Tracker

__all__ = ["CPUUtilization", "ComputeTime", "GPUUtilization", "MaxGPURAM", "MaxRAM", "ProcessingUnitPercentages",
           "RSSValues", "ResourceUsage", "Tracker"]


class Tracker(_Tracker):
    """wattle.Tracker whose JSON and text have what gpu_tracker's have. Energy is in `.energy` and `.report`."""

    _warning_level = logging.INFO  # that the machine has no energy counter is no news to who did not ask for energy

    def to_json(self) -> dict[str, Any]:
        """The fields of resource_usage as dictionaries. RuntimeError before stop."""
        return {key: value for key, value in super().to_json().items() if key != "energy"}
