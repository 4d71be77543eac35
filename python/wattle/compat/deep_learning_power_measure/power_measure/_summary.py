"""The figures of a recording, as a dict and as lines of text."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._curves import Figure, humanize_bytes

if TYPE_CHECKING:
    from ._results import ExpResults

TITLE = " EXPERIMENT SUMMARY ".center(108, "=")

# key of get_summary -> (call, metric)
CPU_FIGURES = {
    "total_psys_power": ("total_", "psys_power"),
    "total_intel_power": ("total_", "intel_power"),
    "rel_intel_power": ("total_", "rel_intel_power"),
    "total_dram_power": ("total_", "total_dram_power"),
    "total_cpu_power": ("total_", "total_cpu_power"),
    "uncore_power": ("total_", "uncore_power"),
    "rel_dram_power": ("total_", "per_process_dram_power"),
    "rel_cpu_power": ("total_", "per_process_cpu_power"),
    "mem_use_abs": ("average_", "per_process_mem_use_abs"),
    "mem_use_uss": ("average_", "per_process_mem_use_uss"),
    "max_total_mem_use": ("max_", "total_mem_use"),
    "absolute_cpu_time_per_pid": ("total_", "absolute_cpu_time_per_pid"),
    "relative_cpu_use": ("average_", "per_process_cpu_uses"),
}
GPU_FIGURES = {
    "nvidia_use_rate": ("average_", "nvidia_use_rate"),
    "nvidia_memory": ("max_", "nvidia_memory"),
    "per_gpu_power": ("total_", "per_gpu_nvidia_power"),
    "per_gpu_nvidia_memory": ("max_", "per_gpu_nvidia_memory"),
    "per_gpu_nvidia_use_rate": ("average_", "per_gpu_nvidia_use_rate"),
    "per_gpu_attributable_power": ("total_", "per_gpu_attributable_power"),
}


def summary(results: "ExpResults", start: Optional[float], end: Optional[float]) -> dict[str, Any]:
    """ExpResults.get_summary."""
    seconds, start, end = results.get_exp_duration(start=start, end=end)
    figures: dict[str, Any] = {"duration": seconds, "start": str(results.dated(start)), "end": str(results.dated(end))}
    if results.cpu_metrics is not None:
        figures["cpu"] = {key: getattr(results, call)(name, start=start, end=end)
                          for key, (call, name) in CPU_FIGURES.items()}
    if results.gpu_metrics is not None:
        figures["gpu"] = {key: getattr(results, call)(name, start=start, end=end)
                          for key, (call, name) in GPU_FIGURES.items()}
        figures["gpu"]["nvidia_power"] = results.gpu_energy_j(start, end)
    if results.wattmeter_metrics is not None:
        figures["wattmeter"] = {name: results.total_(name, start=start, end=end)
                                for name in results.wattmeter_metrics if "activepow" in name}
    return figures


# ---- lines ----

def _joules(value: Figure) -> str:
    return f"{value:.3f} joules" if isinstance(value, (int, float)) else "n/a"


def lines(results: "ExpResults") -> Iterator[str]:
    """Output of ExpResults.print."""
    figures = results.get_summary()
    yield TITLE
    description = results.db_driver.get_description()
    if description is not None:
        yield description
    card = results.model_card or {}
    if "total_params" in card and "total_mult_adds" in card:
        yield (f"MODEL SUMMARY:  {card['total_params']} parameters and  {card['total_mult_adds']} mac operations "
               "during the forward pass of your model")
    yield ""
    yield f"Experiment duration:  {figures['duration']:.3f} seconds.  Start: {figures['start']}  end {figures['end']}"
    if "cpu" in figures:
        yield from _cpu_lines(figures["cpu"])
    if "gpu" in figures:
        yield from _gpu_lines(figures["gpu"])
    for name, value in figures.get("wattmeter", {}).items():
        yield f"wall meter {name.lstrip('#')}: {_joules(value)}"


def _cpu_lines(cpu: dict[str, Any]) -> Iterator[str]:
    yield "ENERGY CONSUMPTION: "
    yield "on the cpu"
    yield ""
    if cpu["absolute_cpu_time_per_pid"] is not None:
        yield f"CPU time usage of your experiment: {cpu['absolute_cpu_time_per_pid']:.3f} seconds"
    yield _memory_line(cpu)
    if cpu["total_cpu_power"] is None:
        yield "detailed CPU consumption not available"
    else:
        yield (f"Total CPU consumption: {_joules(cpu['total_cpu_power'])}, your experiment consumption:  "
               f"{_joules(cpu['rel_cpu_power'])}")
    yield f"total intel power:  {_joules(cpu['total_intel_power'])}, your experiment: {_joules(cpu['rel_intel_power'])}"
    yield f"total psys power:  {_joules(cpu['total_psys_power'])}"


def _memory_line(cpu: dict[str, Any]) -> str:
    used, unique = humanize_bytes(cpu["mem_use_abs"]), humanize_bytes(cpu["mem_use_uss"])
    usage = f"{used} among which {unique} is unique to your experiment (ie. USS memory)"
    if cpu["total_dram_power"] is None and cpu["mem_use_abs"] is None:
        return "RAM consumption not available. RAM usage not available"
    if cpu["total_dram_power"] is None:
        return f"RAM consumption not available. Your usage was  {usage}"
    return (f"Total RAM consumption: {_joules(cpu['total_dram_power'])}, your experiment consumption:  "
            f"{_joules(cpu['rel_dram_power'])}, for an average of {usage}. The max amount of RAM used during your "
            f"experiment was: {humanize_bytes(cpu['max_total_mem_use'])}")


def _gpu_lines(gpu: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield ""
    yield "GPU"
    yield f"nvidia total consumption: {_joules(gpu['nvidia_power'])}"
    yield from _per_gpu("Max memory used:", gpu["per_gpu_nvidia_memory"], humanize_bytes)
    yield from _per_gpu("Average GPU usage:", gpu["per_gpu_nvidia_use_rate"], lambda rate: f"{rate:.3f} %")
    yield from _per_gpu("Consumption per GPU:", gpu["per_gpu_power"], _joules)
    yield from _per_gpu("Attributable usage per GPU", gpu["per_gpu_attributable_power"], _joules)


def _per_gpu(title: str, values: Any, text: Any) -> Iterator[str]:
    known = {gpu: value for gpu, value in (values or {}).items() if gpu != "all"}
    if known:
        yield title
    for gpu, value in known.items():
        yield f"    gpu: {gpu}: {'n/a' if value is None else text(value)}"
