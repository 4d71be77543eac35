"""A run and a trace of torch.profiler in one file for Perfetto, on one clock.

The profiler's trace is converted to the clock of the run (CLOCK_MONOTONIC) by the wall clock if its times are Unix times,
as those of torch 2 are. Older ones begin with 0 at the start of profiling, at an unknown time; those are
aligned by spans that both have: `with wattle.span("step"), torch.profiler.record_function("step"):`.
"""
from __future__ import annotations

import gzip
import json
import os
import statistics
from bisect import bisect_left
from collections import Counter
from typing import Any, NamedTuple, Union

from .. import _wattle
from ..files import export
from ..run import Run
from ._perfetto import Event, append

PathLike = Union[str, "os.PathLike[str]"]
NEAR_NS = 2_000_000        # : a span and an event with the same name match if they begin no further apart
SINCE_1970_US = 1e14       #: times above this are Unix times: 1973


class Alignment(NamedTuple):
    """How a profiler's trace was aligned with the run's clock."""
    by: str            #: "wall clock" or "spans"
    offset_ns: int     #: added to its times
    matched: int       # : spans that both have, used for the alignment; by the wall clock those that are near
    spread_us: float   # : of their begins: half of them lie within this distance of the median; NaN: none matched


def join_profile(run: Union[PathLike, Run], profile: PathLike, out: PathLike, *,
                 overwrite: bool = False) -> Alignment:
    """Writes `out`, a Perfetto trace of the run, and beside it the events of a Chrome trace (`export_chrome_trace`, .gz
    too).

    ValueError: the profile is no such trace, or its times cannot be related to the run's; FileExistsError.
"""
    document = _read(profile)
    events, threads = _events(document)
    if not events:
        raise ValueError(f"{os.fspath(profile)} has no events")
    path = run.path if isinstance(run, Run) else run
    alignment = _align(_wattle.Run(path), document, events)
    export(path, "perfetto", out, overwrite=overwrite)
    with open(out, "ab") as file:
        append(file, "torch.profiler", events, threads, alignment.offset_ns)
    return alignment


# ---- the profiler's file ----

def _read(path: PathLike) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    try:
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, OSError) as error:
        raise ValueError(f"{os.fspath(path)} is not a Chrome trace: {error}") from None


def _events(document: Any) -> tuple[list[Event], dict[tuple[str, str], str]]:
    """The complete events, and names of their threads."""
    rows = document.get("traceEvents", []) if isinstance(document, dict) else document
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    processes = {str(row.get("pid")): row["args"]["name"] for row in rows if row.get("name") == "process_name"}
    names = {}
    events = []
    for row in rows:
        thread = str(row.get("pid")), str(row.get("tid"))
        if row.get("name") == "thread_name":
            names[thread] = str(row["args"]["name"])
        if row.get("ph") != "X" or not isinstance(row.get("ts"), (int, float)):
            continue
        begin_ns = round(row["ts"] * 1000)
        end_ns = begin_ns + round(float(row.get("dur", 0)) * 1000)
        events.append(Event(thread, begin_ns, end_ns, str(row.get("name", ""))))
    labels = {event.thread: f"{processes.get(event.thread[0], event.thread[0])}: "
                            f"{names.get(event.thread, event.thread[1])}" for event in events}
    return sorted(events, key=lambda event: (event.thread, event.begin_ns, -event.end_ns)), labels


# ---- on the run's clock ----

def _align(run: _wattle.Run, document: Any, events: list[Event]) -> Alignment:
    base_ns = document.get("baseTimeNanoseconds") if isinstance(document, dict) else None
    is_unix = min(event.begin_ns for event in events) > SINCE_1970_US * 1000
    begins = _begins(run)
    if base_ns or is_unix:
        offset_ns = _from_wall(run, (base_ns or 0) + events[0].begin_ns) - events[0].begin_ns
        return _judged("wall clock", offset_ns, events, begins)
    found = max((_judged("spans", offset_ns, events, begins) for offset_ns in _candidates(events, begins)),
                key=lambda fit: (fit.matched, -fit.spread_us), default=None)
    if found is None or found.matched == 0:
        raise ValueError("the profile's times are not Unix times, and no span of the run has the name of one of its "
                         "events: mark the same code with a wattle.span and a record_function of the same name")
    differences = _differences(found.offset_ns, events, begins)
    return _judged("spans", found.offset_ns + round(statistics.median(differences)), events, begins)


def _from_wall(run: _wattle.Run, unix_ns: int) -> int:
    """CLOCK_MONOTONIC at a Unix time, by the last segment that began before it."""
    rows = [(row["wall_start_ns"], row["start_ns"]) for row in run.segments()
            if row["wall_start_ns"] is not None]
    if not rows:
        raise ValueError("the run file has no wall clock times")
    wall_ns, start_ns = max((row for row in rows if row[0] <= unix_ns), default=min(rows))
    return int(start_ns + unix_ns - wall_ns)


def _begins(run: _wattle.Run) -> dict[str, list[int]]:
    columns = {column.name: memoryview(column.buffer).tolist() for column in run.spans()}  # type: ignore[arg-type]
    names = run.span_names()
    begins: dict[str, list[int]] = {}
    for index, begin_ns in zip(columns["name_index"], columns["begin_ns"]):
        begins.setdefault(names[index], []).append(begin_ns)
    return {name: sorted(times) for name, times in begins.items()}


def _differences(offset_ns: int, events: list[Event], begins: dict[str, list[int]]) -> list[int]:
    """For each event with a span of its name near it: how much later that begins."""
    found = []
    for event in events:
        times, at_ns = begins.get(event.name, []), event.begin_ns + offset_ns
        place = bisect_left(times, at_ns)
        near = [time - at_ns for time in times[max(0, place - 1):place + 1] if abs(time - at_ns) <= NEAR_NS]
        found += [min(near, key=abs)] if near else []
    return found


def _judged(by: str, offset_ns: int, events: list[Event], begins: dict[str, list[int]]) -> Alignment:
    differences = _differences(offset_ns, events, begins)
    if not differences:
        return Alignment(by, offset_ns, 0, float("nan"))
    middle = statistics.median(differences)
    return Alignment(by, offset_ns, len(differences), statistics.median(abs(d - middle) for d in differences) / 1000)


def _candidates(events: list[Event], begins: dict[str, list[int]]) -> list[int]:
    """The first event of the rarest name that both have may match any span of that name."""
    counts = Counter(event.name for event in events if event.name in begins)
    if not counts:
        return []
    rarest = min(counts, key=lambda name: (len(begins[name]), name))
    first_ns = min(event.begin_ns for event in events if event.name == rarest)
    return [time - first_ns for time in begins[rarest]]
