"""From recorded lines to metrics: a driver's contents in the structure that ExpResults reads."""
from __future__ import annotations

import bisect
import datetime
import math
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Union

SEGMENT_END = "END OF RECORDING SEGMENT"

Metrics = dict[str, Any]  #: name -> {'dates': [datetime], 'values': […]}, or GPU -> such a dict


class Record(NamedTuple):
    """One line of power_metrics.json: usage up to `date`."""
    date: datetime.datetime
    metrics: dict[str, dict[str, Any]]


class Recorded(NamedTuple):
    """All lines, grouped by metric. None if there is nothing of the kind."""
    cpu: Optional[Metrics]
    gpu: Optional[Metrics]
    segment_ends: list[datetime.datetime]  #: of all but the last


Item = Union[Record, str]  #: a record, or SEGMENT_END

# Names that AIPowerMeter gave to sums of its data before it used NVML (2026).
DERIVED = {"per_gpu_attributable_mem_use": "nvidia_mem_use", "per_gpu_absolute_percent_usage": "nvidia_sm_use"}


def as_record(line: Any) -> Item:
    """One parsed line. Raises ValueError, KeyError or TypeError if it is invalid."""
    if line == SEGMENT_END:
        return SEGMENT_END
    return Record(datetime.datetime.fromisoformat(line["date"]), line["metrics"])


def number(value: Any) -> Optional[float]:
    """A value, or the sum of values per process; lists are from AIPowerMeter's first files. None: unknown, as is NaN."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        known = [one for one in map(number, value) if one is not None]
        return sum(known) if known else None
    return value if isinstance(value, (int, float)) and not math.isnan(value) else None


def append(curves: Metrics, name: str, date: Union[datetime.datetime, float], value: Optional[float]) -> None:
    """Adds a point to the curve of that name."""
    curve = curves.setdefault(name, {"dates": [], "values": []})
    curve["dates"].append(date)
    curve["values"].append(value)


def _add_cpu(metrics: Metrics, record: Record) -> None:
    for name, recorded in record.metrics["cpu"].items():
        value = number(recorded)
        if name == "psys_power" and value is not None and value < 0:
            continue  # AIPowerMeter's value for «this machine has none»
        append(metrics, name, record.date, value)


def _add_devices(metrics: Metrics, name: str, date: datetime.datetime, recorded: dict[str, Any]) -> None:
    devices = metrics.setdefault(name, {})
    for device, value in recorded.items():
        append(devices, str(device), date, number(value))


def _add_gpu(metrics: Metrics, record: Record) -> None:
    for name, recorded in record.metrics["gpu"].items():
        if not isinstance(recorded, dict):
            append(metrics, name, record.date, number(recorded))
            continue
        _add_devices(metrics, name, record.date, recorded)
        if name in DERIVED:
            _add_devices(metrics, DERIVED[name], record.date, recorded)
        if name == "per_gpu_attributable_power" and "all" in recorded:
            append(metrics, "nvidia_attributable_power", record.date, number(recorded["all"]))


def gather(items: Iterable[Item]) -> Recorded:
    """All records by metric. Device metrics that never had a device are left out."""
    cpu: Metrics = {}
    gpu: Metrics = {}
    ends: list[datetime.datetime] = []
    last: Optional[datetime.datetime] = None
    open_segment = False
    for item in items:
        if isinstance(item, str):
            if open_segment and last is not None:
                ends.append(last)
            open_segment = False
            continue
        last, open_segment = item.date, True
        if "cpu" in item.metrics:
            _add_cpu(cpu, item)
        if "gpu" in item.metrics:
            _add_gpu(gpu, item)
    if ends and not open_segment:
        ends.pop()
    gpu = {name: curve for name, curve in gpu.items() if curve}
    return Recorded(cpu or None, gpu or None, ends)


def segments_of(items: Iterable[Item]) -> list[list[Record]]:
    """The records of each segment; segments without any are left out."""
    segments: list[list[Record]] = [[]]
    for item in items:
        if isinstance(item, Record):
            segments[-1].append(item)
        else:
            segments.append([])
    return [segment for segment in segments if segment]


def spans_of(dates: Iterable[float], ends: Iterable[float]) -> list[tuple[float, float]]:
    """First and last date of each segment, from all dates and the ends of all segments but the last."""
    ordered = sorted(set(dates))
    spans = []
    begin = 0
    for cut in [*(bisect.bisect_right(ordered, end) for end in sorted(ends)), len(ordered)]:
        if cut > begin:
            spans.append((ordered[begin], ordered[cut - 1]))
        begin = max(begin, cut)
    return spans


def split(points: list[dict[str, Any]], spans: list[tuple[float, float]]) -> Iterator[list[dict[str, Any]]]:
    """The points of each segment, without segments that have none. Points in a pause belong to the segment before."""
    begins = [first for first, _ in spans[1:]]
    segments: list[list[dict[str, Any]]] = [[] for _ in spans] or [[]]
    for point in points:
        segments[bisect.bisect_right(begins, point["date"])].append(point)
    return (segment for segment in segments if segment)
