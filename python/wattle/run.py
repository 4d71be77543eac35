"""wattle.open: a stored run, its report, its samples and its code blocks."""
from __future__ import annotations

import datetime
import json
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _show, _wattle
from .columns import Columns, Spans
from .table import Table, blocks_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PathLike = Union[str, "os.PathLike[str]"]


class Report(dict[str, Any]):
    """The report, schema "wattle-report/1", as a dict; unknown figures are None. In a notebook it shows as tables."""

    _charts: Optional[Callable[[], dict[str, Any]]] = None  # : of the run that it belongs to

    def plot(self, kind: Optional[str] = None, ax: Optional[Axes] = None) -> Axes:
        """A plot of the run by matplotlib, on `ax` or in a new figure: "power", "cpu", "memory", "gpu_utilization",
        "gpu_memory", "temperature", "clock", "processes", "metric:NAME", "spans", "blocks" or "ledger"; default power, or the
        first available one. ValueError lists those that this run has."""
        from . import plot
        if self._charts is None:
            raise ValueError("this report has no run file to plot: use wattle.open(FILE).report")
        return plot.plot(self, self._charts(), kind, ax)

    def summary(self) -> dict[str, str]:
        """A short summary."""
        run, energy = self.get("run", {}), self.get("energy", {})
        estimated = " (estimated)" if energy.get("provenance") == "estimated" else ""
        return {
            "command": " ".join(map(str, run.get("command") or ())),
            "duration": _show.quantity(run.get("duration_s"), "s"),
            "energy of the machine": _show.with_error(energy.get("total_j"), energy.get("error_j"), "J") + estimated,
            "energy of the target": _show.with_error((energy.get("ledger") or {}).get("target_j"),
                                                     energy.get("target_error_j"), "J"),
            "CPU time": _show.quantity((self.get("cpu") or {}).get("target_cpu_s"), "s"),
            "peak memory": _show.quantity((self.get("memory") or {}).get("peak_ram_bytes"), "B"),
        }

    def _repr_html_(self) -> str:
        energy = self.get("energy", {})
        parts = [_show.html_table("", ("run", ""), list(self.summary().items()))]
        ledger = energy.get("ledger")
        if ledger:
            names = tuple(ledger)
            parts.append(_show.html_table("whose energy", names, [[ledger[name] for name in names]]))
        names = ("domain", "source", "provenance", "energy_j", "error_j", "calibration_error_j", "mean_w", "max_w",
                 "target_j")
        domains = energy.get("domains") or ()
        parts.append(_show.html_table("domains", names, [[row.get(name) for name in names] for row in domains]))
        if self.get("blocks"):
            parts.append(blocks_table(self["blocks"])._repr_html_())
        parts += (f"<p>{_show.escape(str(warning))}</p>" for warning in self.get("warnings") or ())
        return "".join(parts)


class Device:
    """An energy domain or GPU of a run: its row of table device as attributes (name, kind, source, provenance, uuid, inside …;
    None: unknown), and its samples."""

    def __init__(self, facts: dict[str, Any], samples: Columns) -> None:
        self.facts = facts
        self.samples = samples

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(f"a device has no {name!r}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.facts]

    def __repr__(self) -> str:
        return f"<device {self.facts['name']!r} of {self.facts['source']}, {self.samples.n} samples>"


class Run:
    """A stored run, read completely when it is opened. Its arrays keep it in memory, also after close.

        with wattle.open("run.sqlite") as run:
            run.report["energy"]["total_j"]
            run.samples["main_rss_bytes"]              # a numpy array, nothing copied
            run.devices["package-0"].samples["energy_uj"]
            run.blocks.find("forward")["total_j"]
            run.to_pandas()

    Times of samples, spans and events are CLOCK_MONOTONIC in ns; wall_time() converts them to dates.
"""

    def __init__(self, path: PathLike) -> None:
        self._run: Optional[_wattle.Run] = _wattle.Run(path)
        self._cache: dict[str, Any] = {}
        self.path = self._run.path

    @property
    def _loaded(self) -> _wattle.Run:
        if self._run is None:
            raise ValueError(f"{self.path} is closed")
        return self._run

    def _once(self, name: str, make: Any) -> Any:
        loaded = self._loaded
        if name not in self._cache:
            self._cache[name] = make(loaded)
        return self._cache[name]

    # ---- findings ----

    @property
    def report(self) -> Report:
        """Output of `wattle report --format json`."""
        report: Report = self._once("report", self._make_report)
        return report

    def _make_report(self, run: _wattle.Run) -> Report:
        report = Report(json.loads(run.report_json()))
        report._charts = lambda: self.charts
        return report

    @property
    def charts(self) -> dict[str, Any]:
        """Data of the run's charts, schema "wattle-charts/1" (docs/charts.md): few enough points to draw, with mean, low
        and high, so that no peak is lost."""
        charts: dict[str, Any] = self._once("charts", lambda run: json.loads(run.charts_json()))
        return charts

    def plot(self, kind: Optional[str] = None, ax: Optional[Axes] = None) -> Axes:
        """As report.plot."""
        return self.report.plot(kind, ax)

    @property
    def blocks(self) -> Table:
        """Code blocks, by name: calls, total_s, total_j, error_j … (wattle.table)."""
        blocks: Table = self._once("blocks", _blocks)
        return blocks

    @property
    def text(self) -> str:
        """Output of `wattle report --all`."""
        return self._loaded.report_text()

    # ---- stored data ----

    @property
    def samples(self) -> Columns:
        """t_ns and the metrics of the run, one row for each sample; `wattle run --help` and table metric explain them."""
        samples: Columns = self._once("samples", lambda run: Columns(run.samples(), self._index))
        return samples

    @property
    def process_samples(self) -> Columns:
        """One row for each process and sample, if the run was recorded with --per-process."""
        samples: Columns = self._once("process_samples",
                                      lambda run: Columns(run.process_samples(), self._index, "samples of processes"))
        return samples

    @property
    def devices(self) -> dict[str, Device]:
        """Energy domains and GPUs by name: package-0, dram-0, gpu-0 …"""
        devices: dict[str, Device] = self._once("devices", self._make_devices)
        return devices

    def _make_devices(self, run: _wattle.Run) -> dict[str, Device]:
        return {row["name"]: Device(row, Columns(row.pop("samples"), self._index)) for row in run.devices()}

    @property
    def spans(self) -> Spans:
        """Every single span, one row each."""
        spans: Spans = self._once("spans", lambda run: Spans(run.spans(), run.span_names(), self._index))
        return spans

    @property
    def events(self) -> Table:
        """Marks, gaps, notes: t_ns, kind, text, and the fields of the text, None if an event has none (docs/run-file.md)."""
        return self._table("events", ("t_ns", "kind", "text", "device", "sensor", "pid", "rank", "count", "duration_ns",
                                      "old_value", "new_value", "detail"))

    @property
    def user_metrics(self) -> Table:
        """Values reported by wattle.metric: t_ns, name, value, span (id of the innermost open one), pid, tid."""
        return self._table("user_metrics", ("t_ns", "name", "value", "span", "pid", "tid"))

    @property
    def processes(self) -> Table:
        """The observed processes of the target."""
        return self._table("processes", ("pid", "ppid", "start_ns", "end_ns", "cpu_ns", "max_rss_bytes", "command",
                                         "is_main", "sampled"))

    @property
    def segments(self) -> Table:
        """The segments of the run; usually one."""
        rows = self._loaded.segments()
        return self._table("segments", tuple(rows[0]) if rows else ("id",))

    def _table(self, what: str, columns: tuple[str, ...]) -> Table:
        table: Table = self._once(what, lambda run: Table(getattr(run, what)(), columns, title=what.replace("_", " ")))
        return table

    @property
    def facts(self) -> dict[str, str]:
        """Table run: metadata from the start, as text."""
        facts: dict[str, str] = self._once("facts", lambda run: run.facts())
        return facts

    # ---- time ----

    def wall_time(self, t_ns: int) -> Optional[datetime.datetime]:
        """UTC date of an instant of the run; None if unknown."""
        wall_ns = self._loaded.wall_ns(int(t_ns))
        return None if wall_ns is None else datetime.datetime.fromtimestamp(wall_ns / 1e9, datetime.timezone.utc)

    def _index(self, t_ns: Any) -> Any:
        """A pandas index for instants: dates (UTC), by each segment's own clocks; without them time since boot."""
        import numpy
        import pandas
        begins = [row["start_ns"] for row in self.segments if row["start_ns"] is not None]
        walls = [self._loaded.wall_ns(begin) for begin in begins]
        if not begins or None in walls:
            return pandas.to_timedelta(t_ns, unit="ns").rename("t")
        starts = numpy.array(begins, dtype=numpy.int64)
        segment = numpy.clip(numpy.searchsorted(starts, t_ns, side="right") - 1, 0, None)
        offsets = numpy.array(walls, dtype=numpy.int64) - starts
        return pandas.to_datetime(t_ns + offsets[segment], utc=True).rename("time")

    def to_pandas(self, what: str = "samples") -> pd.DataFrame:
        """A data frame of samples, process_samples, spans, blocks, events, user_metrics, processes or segments, or of
        the samples of a device by its name; NaN where unknown, samples, spans and events by date (UTC)."""
        if what in self.devices:
            return self.devices[what].samples.to_pandas()
        if what in ("samples", "process_samples", "spans", "blocks", "processes", "segments"):
            frame: pd.DataFrame = getattr(self, what).to_pandas()
            return frame
        if what not in ("events", "user_metrics"):
            raise ValueError(f"no table {what!r}; valid: samples, process_samples, spans, blocks, events, "
                             f"user_metrics, processes, segments and the devices {', '.join(self.devices) or '(none)'}")
        frame = getattr(self, what).to_pandas()
        frame.index = self._index(frame["t_ns"].to_numpy(dtype="int64"))
        return frame

    # ---- an object among others ----

    def close(self) -> None:
        """Releases the run; its arrays stay valid."""
        self._run = None
        self._cache.clear()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        if self._run is None:
            return f"<wattle run {self.path!r}, closed>"
        summary = self.report.summary()
        return (f"<wattle run {self.path!r}: {summary['duration']}, {summary['energy of the machine']}, "
                f"{self.samples.n} samples, {len(self.blocks)} code blocks>")

    def _repr_html_(self) -> str:
        return self.report._repr_html_() if self._run is not None else _show.escape(repr(self))


def _blocks(run: _wattle.Run) -> Table:
    return blocks_table(json.loads(run.blocks_json())["code_block_results"])


def open(path: PathLike) -> Run:
    """Reads a run file (of `wattle run`, `wattle attach` or a Tracker with `output`; also one that is still growing, or
    whose recorder died) or a span file of WATTLE_SPANS, which has spans and no samples.

    FileNotFoundError, PermissionError; ValueError: it is neither, or damaged; OSError: made by a newer wattle.
"""
    return Run(path)
