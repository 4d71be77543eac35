"""ExpResults: a recording with AIPowerMeter's names. Power is in W, totals of power in J, memory in bytes."""
from __future__ import annotations

import datetime
from typing import Any, Iterator, Optional, Union

from . import _curves, _display, _summary
from ._curves import Curve, DeviceCurves, Figure, Segment, clip, length_s, time_to_sec
from ._driver import Driver, PathLike
from ._records import spans_of, split

GPU_POWER = ("nvidia_draw_absolute", "nvidia_power")  # : the same metric in two generations


class ExpResults:
    """Reads all data of a driver. Raises ValueError if there are none.

    Nesting of energy domains (powercap): psys_power, the platform, contains intel_power, the packages; a package contains
    its cores (total_cpu_power), its uncore (uncore_power) and more. total_dram_power is beside the packages. So
    psys >= intel >= cores + uncore; adding them counts the same joules again.
"""

    def __init__(self, db_driver: Driver) -> None:
        self.db_driver = db_driver
        self.cpu_metrics, self.gpu_metrics, self.exp_metrics, self.wattmeter_metrics = db_driver.load_metrics()
        if self.cpu_metrics is None and self.gpu_metrics is None and self.exp_metrics is None:
            raise ValueError(f'no recording in "{db_driver.folder}": neither power_metrics.json nor a run file nor '
                             "results_exp.json, or they are empty")
        self.segments = db_driver.get_segments()
        self.model_card = db_driver.get_model_card()
        dates = self._dates(self.cpu_metrics, self.gpu_metrics) or self._dates(self.exp_metrics)
        self._spans = spans_of(dates, map(time_to_sec, self.segments))

    @staticmethod
    def _dates(*groups: Optional[dict[str, Any]]) -> list[float]:
        found = set()
        for group in groups:
            for metric in (group or {}).values():
                for curve in [metric] if "dates" in metric else metric.values():
                    found.update(curve["dates"])
        return sorted(map(time_to_sec, found))

    # ---- metrics and curves ----

    def list_metrics(self) -> dict[str, list[str]]:
        """Names of the metrics: {'CPU': […], 'GPU': […], 'Experiment': […]}, and 'wattmeter' if there is one."""
        groups = {"CPU": self.cpu_metrics, "GPU": self.gpu_metrics, "Experiment": self.exp_metrics}
        if self.wattmeter_metrics is not None:
            groups["wattmeter"] = self.wattmeter_metrics
        return {group: list(metrics or ()) for group, metrics in groups.items()}

    def print_metrics(self) -> None:
        """Prints list_metrics."""
        for group, names in self.list_metrics().items():
            print(group)
            print(names if names else "      NOT AVAILABLE")

    def get_curve(self, name: str) -> Union[Curve, DeviceCurves, None]:
        """The segments of a metric, each [{'date': Unix seconds, 'value': …}, …]; per_gpu_ metrics: {gpu: segments}.

        Unknown values are left out. None: no such metric, or no known value.
"""
        for group in (self.exp_metrics, self.gpu_metrics, self.cpu_metrics):
            if group is not None and name in group:
                return self._curve(group[name])
        if self.wattmeter_metrics is not None and name in self.wattmeter_metrics:
            return self._while_recording(_points(self.wattmeter_metrics[name])) or None
        return None

    def _curve(self, metric: dict[str, Any]) -> Union[Curve, DeviceCurves, None]:
        if "dates" in metric:
            return self.split_into_segments(_points(metric)) or None
        curves = {device: self.split_into_segments(_points(curve)) for device, curve in metric.items()}
        return curves if any(curves.values()) else None

    def split_into_segments(self, curve: Segment) -> Curve:
        """Points in order of time, by segment; segments without a point are left out."""
        return list(split(curve, self._spans))

    def _while_recording(self, points: Segment) -> Curve:
        """The meter continues during pauses."""
        return [part for begin, end in self._spans if (part := clip(points, begin, end)) and length_s(part) > 0]

    def align(self, metric1: str, metric2: str) -> tuple[Segment, Segment]:
        """Two metrics at the dates of both, such as energy and accuracy; see interpolate. Segments are joined. Raises
        ValueError for a missing metric or one per GPU."""
        first, second = (self._one_line(name) for name in (metric1, metric2))
        return _curves.interpolate(first, second)

    def _one_line(self, name: str) -> Segment:
        curve = self.get_curve(name)
        if curve is None:
            raise ValueError(self.missing(name))
        if isinstance(curve, dict):
            raise ValueError(f"{name} has a curve per GPU ({', '.join(curve)}); select one from get_curve('{name}')")
        return [point for segment in curve for point in segment]

    def missing(self, name: str) -> str:
        """Message about a missing metric."""
        names = [known for group in self.list_metrics().values() for known in group]
        return f"no metric '{name}' in {self.db_driver.folder}; it has {', '.join(names)}"

    # ---- figures ----

    def get_duration_metric(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None
                            ) -> tuple[float, float, float]:
        """(seconds, start, end) of the time in which a metric was recorded. Raises ValueError if there is none."""
        curve = self.get_curve(metric_name)
        if curve is None:
            raise ValueError(self.missing(metric_name))
        curves = curve.values() if isinstance(curve, dict) else [curve]
        return _duration([(segment[0]["date"], segment[-1]["date"]) for one in curves for segment in one], start, end)

    def get_exp_duration(self, start: Optional[float] = None, end: Optional[float] = None
                         ) -> tuple[float, float, float]:
        """(seconds, start, end) of the time in which anything was recorded, without pauses between segments."""
        return _duration(self._spans, start, end)

    def total_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> Figure:
        """Integral over time: J for a power in W. A dict for per_gpu_ metrics. None: unknown."""
        return _curves.total(self.get_curve(metric_name), start=start, end=end)

    def average_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> Figure:
        """Mean over time, in the metric's unit."""
        return _curves.average(self.get_curve(metric_name), start=start, end=end)

    def max_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> Figure:
        """The largest value."""
        return _curves.maximum(self.get_curve(metric_name), start=start, end=end)

    def gpu_energy_j(self, start: Optional[float] = None, end: Optional[float] = None) -> Optional[float]:
        """All GPUs, in J; None: unknown."""
        known = (self.total_(name, start, end) for name in GPU_POWER)
        return next((value for value in known if isinstance(value, float)), None)

    def total_power_draw(self, start: Optional[float] = None, end: Optional[float] = None) -> Optional[float]:
        """CPU packages and GPUs of the whole machine, in J: the sum of the known ones. None: both unknown."""
        parts = [self.total_("intel_power", start, end), self.gpu_energy_j(start, end)]
        known = [part for part in parts if isinstance(part, float)]
        return sum(known) if known else None

    # ---- text output ----

    def get_summary(self, start: Optional[float] = None, end: Optional[float] = None) -> dict[str, Any]:
        """All figures as a dict: duration (s), start, end, cpu, gpu."""
        return _summary.summary(self, start, end)

    def print(self) -> None:
        """Prints the figures."""
        print("\n".join(_summary.lines(self)))

    def __str__(self) -> str:
        words = ["Available metrics : "]
        for group, names in self.list_metrics().items():
            words += [group.replace("Experiment", "Experiments"), "  " + ", ".join(names) if names else "NOT AVAILABLE"]
        return "\n".join([*words, "\n\ncall print() method to display power consumption"])

    def display_curves(self, metric_names: list[str], saveto: Optional[PathLike] = None) -> Optional[str]:
        """Draws metrics over time (matplotlib), into a file or on the screen; without a screen into curves.png in the working
        directory. Returns the file's name, None if it was shown. Missing metrics give a warning."""
        return _display.curves(self, metric_names, saveto)

    def display_2_curves(self, metric_name1: str, metric_name2: str, saveto: Optional[PathLike] = None
                         ) -> Optional[str]:
        """Draws two metrics over time, each with its own axis; otherwise as display_curves."""
        return _display.two_curves(self, metric_name1, metric_name2, saveto)

    def dated(self, seconds: float) -> datetime.datetime:
        """Local time."""
        return datetime.datetime.fromtimestamp(seconds)


def _points(metric: dict[str, Any]) -> Segment:
    pairs: Iterator[tuple[Any, Any]] = zip(metric["dates"], metric["values"])
    return [{"date": time_to_sec(date), "value": value} for date, value in pairs if value is not None]


def _duration(spans: list[tuple[float, float]], start: Optional[float], end: Optional[float]
              ) -> tuple[float, float, float]:
    first, last = min(begin for begin, _ in spans), max(end_ for _, end_ in spans)
    start = first if start is None else max(start, first)
    end = last if end is None else min(end, last)
    # A metric per GPU has the same interval once for each GPU; overlapping time counts once.
    seconds, reached = 0.0, start
    for begin, finish in sorted(spans):
        begin, finish = max(begin, reached), min(finish, end)
        if finish > begin:
            seconds += finish - begin
            reached = finish
    return seconds, start, end
