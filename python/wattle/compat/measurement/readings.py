"""A recorded run as the rows of AsynchronousMeasurementTool."""
import bisect
import math
from typing import Any, Iterator, Sequence

from ... import _wattle
from .rows import J_PER_KWH

NS_PER_S = 1e9
Row = list[float]


class Curve:
    """A quantity of one device at the times of its readings."""

    def __init__(self, t_ns: Sequence[int], values: Sequence[float]) -> None:
        known = [(t, value) for t, value in zip(t_ns, values) if not math.isnan(value)]
        self.t_ns = [t for t, _ in known]
        self.values = [value for _, value in known]

    def at(self, t_ns: int) -> float:
        """The reading at exactly that time; nan if there is none."""
        i = bisect.bisect_left(self.t_ns, t_ns)
        return self.values[i] if i < len(self.t_ns) and self.t_ns[i] == t_ns else math.nan

    def integral(self) -> "Curve":
        """Joules since the first reading of watts, by the trapezoidal rule."""
        means = [(before + now) / 2 for before, now in zip(self.values, self.values[1:])]
        return Curve(self.t_ns, _summed(self.t_ns, means))

    def integral_of_means(self, from_ns: int) -> "Curve":
        """Joules since `from_ns` from watts that are means over the time since the previous reading."""
        t_ns = [from_ns, *(t for t in self.t_ns if t > from_ns)]
        return Curve(t_ns, _summed(t_ns, self.values[len(self.t_ns) - len(t_ns) + 1:]))


def _summed(t_ns: Sequence[int], watts: Sequence[float]) -> list[float]:
    """Joules at each of the times: watts[i] from t_ns[i] to t_ns[i + 1]."""
    joules = [0.0] if t_ns else []
    for before_ns, now_ns, power_w in zip(t_ns, t_ns[1:], watts):
        joules.append(joules[-1] + power_w * (now_ns - before_ns) / NS_PER_S)
    return joules


class Device:
    """One package or GPU of a run."""

    def __init__(self, device: dict[str, Any]) -> None:
        columns = _columns(device["samples"])
        t_ns = columns["t_ns"]

        def curve(name: str, factor: float = 1.0) -> Curve:
            return Curve(t_ns, [_known(value) * factor for value in columns.get(name, ())])

        self.power_w = curve("power_mw", 1e-3)
        self.energy_j = curve("energy_uj", 1e-6)
        if not self.energy_j.t_ns:  # the load model reports means over its observation time
            are_means = device["source"] == "model" and len(t_ns) > 0
            self.energy_j = self.power_w.integral_of_means(t_ns[0]) if are_means else self.power_w.integral()
        self.utilization = curve("utilization_percent")
        self.temperature_c = curve("temperature_c")


def readings(run: _wattle.Run) -> Iterator[Row]:
    """elapsed s, CPU kWh, CPU %, CPU °C, GPU kWh, GPU %, GPU °C, GPU W: a row for each interval, and one for the rest."""
    sample = _regular(run)
    t_ns = sample["t_ns"]
    load_percent = _load_percent(sample["system_cpu_busy_ns"], sample["system_cpu_idle_ns"])
    devices = run.devices()
    packages = [Device(device) for device in devices if device["kind"] == "package"]
    gpus = [Device(device) for device in devices if device["kind"] == "gpu"]
    for i in range(1, len(t_ns)):
        yield [(t_ns[i] - t_ns[0]) / NS_PER_S,
               _used_kwh(packages, t_ns[0], t_ns[i]), load_percent[i],
               _highest(device.temperature_c.at(t_ns[i]) for device in packages),
               _used_kwh(gpus, t_ns[0], t_ns[i]),
               _highest(device.utilization.at(t_ns[i]) for device in gpus),
               _highest(device.temperature_c.at(t_ns[i]) for device in gpus),
               _sum(device.power_w.at(t_ns[i]) for device in gpus)]


def _regular(run: _wattle.Run) -> dict[str, list[int]]:
    """The samples, without those followed by another within half an interval: the recorder's last one is taken when it is
    stopped, and the load over a microsecond is meaningless."""
    columns = _columns(run.samples())
    t_ns, least_ns = columns["t_ns"], int(run.facts()["interval_ns"]) // 2
    kept = [i for i in range(len(t_ns)) if i in (0, len(t_ns) - 1) or t_ns[i + 1] - t_ns[i] >= least_ns]
    return {name: [values[i] for i in kept] for name, values in columns.items()}


def _columns(columns: Sequence[_wattle.Column]) -> dict[str, memoryview]:
    # The buffer protocol has no type before Python 3.12.
    return {column.name: memoryview(column.buffer) for column in columns}  # type: ignore[arg-type]


def _known(value: int) -> float:
    return math.nan if value == _wattle.MISSING else float(value)


def _sum(values: Any) -> float:
    """nan for an empty list of devices."""
    values = list(values)
    return math.fsum(values) if values else math.nan


def _highest(values: Any) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _used_kwh(devices: list[Device], from_ns: int, to_ns: int) -> float:
    return _sum(device.energy_j.at(to_ns) - device.energy_j.at(from_ns) for device in devices) / J_PER_KWH


def _load_percent(busy_ns: Sequence[int], idle_ns: Sequence[int]) -> Row:
    """Of all cores, since the last sample with a known value: /proc/stat is read every 10 ms at most."""
    percent, before = [], (math.nan, math.nan)
    for now in zip(map(_known, busy_ns), map(_known, idle_ns)):
        busy, idle = now[0] - before[0], now[1] - before[1]
        percent.append(100 * busy / (busy + idle) if busy + idle > 0 else math.nan)
        if not math.isnan(now[0]):
            before = now
    return percent
