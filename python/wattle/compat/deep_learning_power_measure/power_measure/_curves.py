"""Arithmetic on curves. A curve is a list of segments, a segment a list of {'date': Unix seconds, 'value': number}."""
from __future__ import annotations

import bisect
import datetime
import itertools
from typing import Any, Callable, Optional, Sequence, Union

Point = dict[str, Any]
Segment = list[Point]
Curve = list[Segment]
DeviceCurves = dict[str, Curve]  #: per GPU

BINARY_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


def joules_to_kwh(n: float) -> float:
    """Joules in kilowatt hours."""
    return n / 3.6e6


def humanize_bytes(num: Optional[float], suffix: str = "B") -> str:
    """A number of bytes as text, in powers of 1024: 1536 is '1.5KiB'. Unknown is 'n/a'."""
    if num is None:
        return "n/a"
    for prefix in BINARY_PREFIXES[:-1]:
        if abs(num) < 1024:
            return f"{num:3.1f}{prefix}{suffix}"
        num /= 1024
    return f"{num:.1f}{BINARY_PREFIXES[-1]}{suffix}"


def time_to_sec(t: Union[datetime.datetime, float]) -> float:
    """Unix seconds of a date; without a time zone it is local time. Numbers are returned unchanged."""
    return t.timestamp() if isinstance(t, datetime.datetime) else float(t)


def cumsum(metric: Sequence[Point]) -> list[float]:
    """Running sum of the values."""
    return list(itertools.accumulate(point["value"] for point in metric))


def is_iou(s1: float, e1: float, s2: float, e2: float) -> bool:
    """Whether the intervals from s1 to e1 and from s2 to e2 overlap."""
    return s2 < e1 and s1 < e2


# ---- parts of a segment ----

def value_at(segment: Sequence[Point], date: float, dates: Optional[Sequence[float]] = None) -> Optional[float]:
    """On the straight line between the two points around `date`; beyond the ends the first or last value. dates: those of the
    segment, for repeated calls."""
    after = bisect.bisect_left(dates if dates is not None else [point["date"] for point in segment], date)
    if after == 0:
        return segment[0]["value"]
    if after == len(segment):
        return segment[-1]["value"]
    left, right = segment[after - 1], segment[after]
    if left["value"] is None or right["value"] is None:
        return None
    share = (date - left["date"]) / (right["date"] - left["date"])
    return left["value"] + share * (right["value"] - left["value"])


def clip(segment: Segment, start: Optional[float], end: Optional[float]) -> Segment:
    """The part of a segment from start to end, with a point on its line at each cut; [] where they do not meet."""
    if not segment:
        return []
    first, last = segment[0]["date"], segment[-1]["date"]
    begin: float = first if start is None else max(start, first)
    finish: float = last if end is None else min(end, last)
    if begin > finish:
        return []
    inner = [point for point in segment if begin <= point["date"] <= finish]
    if not inner or inner[0]["date"] > begin:
        inner.insert(0, {"date": begin, "value": value_at(segment, begin)})
    if inner[-1]["date"] < finish:
        inner.append({"date": finish, "value": value_at(segment, finish)})
    return inner


def length_s(segment: Segment) -> float:
    """Seconds from the first to the last point."""
    return segment[-1]["date"] - segment[0]["date"] if segment else 0.0


# ---- integrals ----

def integrate(metric: Segment, start: Optional[float] = None, end: Optional[float] = None,
              allow_None: bool = False) -> Optional[list[Optional[float]]]:
    """Running integral over time of one segment, by the trapezoidal rule: watts become joules.

    metric: one segment; start, end: bounds in Unix seconds, None: its own ends. Returns a list as long as the
    points between the bounds (a cut between two points adds a point), beginning with 0; [-1] is the total.
    A value of None makes the result None, or with allow_None only the entries that depend on it.
    Raises ValueError if the bounds are outside the segment.
"""
    points = clip(metric, start, end)
    if not points:
        reach = f"goes from {metric[0]['date']} to {metric[-1]['date']}" if metric else "is empty"
        raise ValueError(f"nothing to integrate from {start} to {end}: the segment {reach}")
    known = 0.0
    sums: list[Optional[float]] = [0.0]
    for left, right in zip(points, points[1:]):
        if left["value"] is None or right["value"] is None:
            if not allow_None:
                return None
            sums.append(None)
            continue
        known += (right["date"] - left["date"]) * (left["value"] + right["value"]) / 2
        sums.append(known)
    return sums


Figure = Union[float, dict[str, Optional[float]], None]  #: of a curve, or of each GPU's


def _of_each(figure: Callable[[Curve, Optional[float], Optional[float]], Optional[float]],
             metric: Union[Curve, DeviceCurves, None], start: Optional[float], end: Optional[float]) -> Figure:
    if metric is None:
        return None
    if isinstance(metric, dict):
        return {device: figure(curve, start, end) for device, curve in metric.items()}
    return figure(metric, start, end)


def _total_of_curve(curve: Curve, start: Optional[float], end: Optional[float]) -> Optional[float]:
    totals = []
    for segment in curve:
        if not segment:
            continue
        if clip(segment, start, end):
            whole = integrate(segment, start, end)
            totals.append(whole[-1] if whole is not None else None)
        else:
            totals.append(0.0)  # recorded at another time
    known = [value for value in totals if value is not None]
    return float(sum(known)) if known else None


def total(metric: Union[Curve, DeviceCurves, None], start: Optional[float] = None,
          end: Optional[float] = None) -> Figure:
    """Integral over time of a whole curve: each segment separately, pauses between them count nothing.

    A dict of curves (one for each GPU) gives a dict of totals. None: unknown.
"""
    return _of_each(_total_of_curve, metric, start, end)


def average(metric: Union[Curve, DeviceCurves, None], start: Optional[float] = None,
            end: Optional[float] = None) -> Figure:
    """Mean over the time in which the metric was recorded; of a single point, its value."""
    return _of_each(_average_of_curve, metric, start, end)


def _average_of_curve(curve: Curve, start: Optional[float], end: Optional[float]) -> Optional[float]:
    parts = [part for part in (clip(segment, start, end) for segment in curve) if part]
    seconds = sum(length_s(part) for part in parts)
    if seconds > 0:
        whole = _total_of_curve(parts, None, None)
        return whole / seconds if whole is not None else None
    values = [point["value"] for part in parts for point in part if point["value"] is not None]
    return sum(values) / len(values) if values else None


def maximum(metric: Union[Curve, DeviceCurves, None], start: Optional[float] = None,
            end: Optional[float] = None) -> Figure:
    """The largest value recorded from start to end."""
    return _of_each(_maximum_of_curve, metric, start, end)


def _maximum_of_curve(curve: Curve, start: Optional[float], end: Optional[float]) -> Optional[float]:
    values = [point["value"] for segment in curve for point in segment if point["value"] is not None
              and (start is None or point["date"] >= start) and (end is None or point["date"] <= end)]
    return max(values, default=None)


# ---- two curves side by side ----

def _at(metric: Segment, dates: Sequence[float]) -> Segment:
    ordered = sorted(metric, key=lambda point: point["date"])
    own = [point["date"] for point in ordered]
    return [{"date": date, "value": value_at(ordered, date, own)} for date in dates]


def interpolate(metric1: Segment, metric2: Segment) -> tuple[Segment, Segment]:
    """Both curves at the dates of both, interpolated linearly between their own; beyond the ends the last value."""
    if not metric1 or not metric2:
        raise ValueError("interpolate: one of the two metrics has no points")
    dates = sorted({point["date"] for point in metric1} | {point["date"] for point in metric2})
    return _at(metric1, dates), _at(metric2, dates)
