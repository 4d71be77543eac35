"""Resource usage of a tracked process in the fields of gpu_tracker's result classes, and its energy.

Memory and time are in the units given to the tracker (decimal: a gigabyte is 1e9 bytes). In percentages, one busy core
or GPU is 100. Energy is in joules. Unknown values are None, never 0; without a GPU in the machine, GPU figures are 0.
"""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from . import _show


@dataclasses.dataclass
class RSSValues:
    """Resident memory of a process or of several."""

    total_rss: Optional[float] = 0.0  #: private plus shared
    private_rss: Optional[float] = 0.0  #: pages that no other process maps
    shared_rss: Optional[float] = 0.0  #: sum over mapped paths of the largest part that one process of the group has


@dataclasses.dataclass
class MaxRAM:
    """Peak memory over all samples, in `unit`."""

    unit: str
    system_capacity: Optional[float]
    system: Optional[float] = 0.0
    main: RSSValues = dataclasses.field(default_factory=RSSValues)
    descendants: RSSValues = dataclasses.field(default_factory=RSSValues)
    combined: RSSValues = dataclasses.field(default_factory=RSSValues)


@dataclasses.dataclass
class MaxGPURAM:
    """Peak memory of the tracked GPUs over all samples, in `unit`."""

    unit: str
    system_capacity: Optional[float]
    system: Optional[float] = 0.0
    main: Optional[float] = 0.0
    descendants: Optional[float] = 0.0
    combined: Optional[float] = 0.0


@dataclasses.dataclass
class ProcessingUnitPercentages:
    """Utilization in percent of one core or GPU ("sum"), and divided by the number of expected units ("hardware")."""

    max_sum_percent: Optional[float] = 0.0
    max_hardware_percent: Optional[float] = 0.0
    mean_sum_percent: Optional[float] = 0.0
    mean_hardware_percent: Optional[float] = 0.0


@dataclasses.dataclass
class CPUUtilization:
    """CPU utilization of the machine, the tracked process and its descendants; maximum number of threads."""

    system_core_count: int
    n_expected_cores: int
    system: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    main: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    descendants: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    combined: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    main_n_threads: Optional[int] = 0
    descendants_n_threads: Optional[int] = 0
    combined_n_threads: Optional[int] = 0


@dataclasses.dataclass
class GPUUtilization:
    """Utilization of the tracked GPUs by all processes."""

    system_gpu_count: Optional[int]
    n_expected_gpus: Optional[int]
    gpu_percentages: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)


@dataclasses.dataclass
class ComputeTime:
    """Duration of tracking, in `unit`."""

    unit: str
    time: Optional[float] = 0.0


@dataclasses.dataclass
class ResourceUsage:
    """All results of gpu_tracker's classes."""

    max_ram: MaxRAM
    max_gpu_ram: MaxGPURAM
    cpu_utilization: CPUUtilization
    gpu_utilization: GPUUtilization
    compute_time: ComputeTime

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The results as nested dictionaries, in gpu_tracker's structure."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return text(self.to_json())

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ResourceUsage:
        """From to_json(), or from `resource_usage` of a report. Missing keys become None."""
        usage: ResourceUsage = _build(cls, values)
        return usage


@dataclasses.dataclass
class Energy:
    """Energy in joules; errors are half of a 95 % interval (docs/accuracy.md)."""

    total_j: Optional[float]  #: of the machine during tracking
    error_j: Optional[float]
    target_j: Optional[float]  #: attributed to the tracked processes
    target_error_j: Optional[float]
    provenance: Optional[str]  #: measured, derived or estimated
    domains: dict[str, Optional[float]] = dataclasses.field(default_factory=dict)  #: J of package-0, dram-0, gpu-0 …
    calibration_error_j: Optional[float] = None  #: in addition to error_j: gain of GPU power sensors; None: no GPU
    target_calibration_error_j: Optional[float] = None  #: the same for target_j
    carbon_g: Optional[float] = None  #: CO2 equivalent of total_j times the PUE; None: no carbon intensity was given

    def __str__(self) -> str:
        """Two lines: energy of the machine, and attributed energy with its share."""
        provenance = f", {self.provenance}" if self.provenance else ""
        share = ""
        if self.total_j and self.target_j is not None:
            share = f" ({100 * self.target_j / self.total_j:.1f} %)"
        machine = _energy(self.total_j, self.error_j, self.calibration_error_j)
        target = _energy(self.target_j, self.target_error_j, self.target_calibration_error_j)
        carbon = f"\nEmissions: {_show.quantity(self.carbon_g, 'g')} CO2e{provenance}" if self.carbon_g is not None else ""
        return f"Energy: {machine}{provenance}\nAttributed energy: {target}{share}{carbon}"

    @classmethod
    def from_report(cls, report: Mapping[str, Any]) -> Energy:
        """From a "wattle-report/1"."""
        energy = report["energy"]
        return cls(energy["total_j"], energy["error_j"], energy["ledger"]["target_j"], energy["target_error_j"],
                   energy["provenance"], {domain["domain"]: domain["energy_j"] for domain in energy["domains"]},
                   energy.get("calibration_error_j"), energy.get("target_calibration_error_j"), energy.get("carbon_g"))


def _energy(energy_j: Optional[float], error_j: Optional[float], calibration_error_j: Optional[float]) -> str:
    calibration = f" ± {_show.quantity(calibration_error_j, 'J')} (GPU calibration)" if calibration_error_j else ""
    return _show.with_error(energy_j, error_j, "J") + calibration


_CLASSES = {c.__name__: c for c in (RSSValues, MaxRAM, MaxGPURAM, ProcessingUnitPercentages, CPUUtilization,
                                    GPUUtilization, ComputeTime)}


def _build(cls: type, values: Mapping[str, Any]) -> Any:
    return cls(**{field.name: _field(field, values.get(field.name)) for field in dataclasses.fields(cls)})


def _field(field: dataclasses.Field[Any], value: Any) -> Any:
    kind = str(field.type)  # its name: annotations are not evaluated here
    if kind in _CLASSES:
        return _build(_CLASSES[kind], value or {})
    if kind == "Optional[float]" and value is not None:
        return float(value)  # JSON writes 0.0 as 0
    return value


_WORDS = {"ram": "RAM", "gpu": "GPU", "gpus": "GPUs", "cpu": "CPU", "rss": "RSS", "j": "J", "n": "number of"}


def _label(key: str) -> str:
    label = " ".join(_WORDS.get(word, word) for word in key.split("_"))
    return label[0].upper() + label[1:]


def _value(value: Any) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return str(float(f"{value:.3f}"))
    return str(value)


def text(values: Mapping[str, Any], depth: int = 0) -> str:
    """Formats nested dictionaries: one figure per line, three spaces per level, three decimals."""
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{'   ' * depth}{_label(key)}:", text(value, depth + 1)]
        elif not isinstance(value, Mapping):
            lines.append(f"{'   ' * depth}{_label(key)}: {_value(value)}")
    return "\n".join(lines)
