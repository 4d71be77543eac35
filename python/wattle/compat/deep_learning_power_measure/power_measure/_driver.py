"""Interface of drivers, which store recordings, for Experiment and ExpResults.

A custom driver derives from Driver and has at least `run_file`, `erase`, `save_power_metrics` and `records`. The
recording itself is wattle's, in a process of its own and in a run file; a driver determines that file's path and the
recorder's options (`recorder_arguments`), and takes over the recording when it ends (`take_run`).
"""
from __future__ import annotations

import datetime
import errno
import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Sequence, Union

from . import _wall_meter
from ._recorder import settle
from ._records import SEGMENT_END, Item, Metrics, append, as_record, gather, number

if TYPE_CHECKING:
    from ._recording import Beside

PathLike = Union[str, "os.PathLike[str]"]


def export(run_file: PathLike, folder: PathLike) -> bool:
    """`wattle export --format aipowermeter`: a run file, also of a running or killed recording, as a folder. False: it has no
    samples yet, and there is no folder."""
    from wattle import _wattle
    settle(run_file)
    try:
        _wattle.export(os.fspath(run_file), "aipowermeter", os.fspath(folder))
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return False
    return True


def read_lines(path: pathlib.Path) -> Iterator[Item]:
    """The lines of a power_metrics.json. The last may be truncated if its writer was killed. Raises ValueError."""
    with open(path, encoding="utf-8") as lines:
        pending: Optional[tuple[int, str]] = None
        for line, text in enumerate(lines, 1):
            if not text.strip():
                continue
            if pending is not None:
                yield _parse(path, *pending)
            pending = (line, text)
        if pending is not None and (pending[1].endswith("\n") or _is_whole(pending[1])):
            yield _parse(path, *pending)


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _parse(path: pathlib.Path, number: int, text: str) -> Item:
    try:
        return as_record(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: line {number} is not a record of AIPowerMeter ({error}); "
                         f'expected {{"date": …, "metrics": {{…}}}} or "{SEGMENT_END}"') from error


def read_run(run_file: PathLike) -> tuple[list[Item], dict[str, Any]]:
    """Contents of a run file as records, and the exporter's remarks."""
    with tempfile.TemporaryDirectory(prefix="wattle-") as folder:
        target = pathlib.Path(folder, "run")
        if not export(run_file, target):
            return [], {}
        return list(read_lines(target / "power_metrics.json")), exported_metadata(target)


def records_of_run(run_file: PathLike) -> list[Item]:
    """Contents of a run file as records."""
    return read_run(run_file)[0]


class Driver:
    """Base class of drivers, see the module. Messages show `folder`."""
    folder: str = ""
    wall_meter: Optional[PathLike] = None         #: CSV that a wall meter is writing (OmegaWatt's layout)
    wattmeter_logfile: Optional[PathLike] = None  #: CSV of a wall meter that is read beside the recording
    wattemeter_exec: Optional[str] = None         #: not used: a meter's own program writes its CSV

    # ---- recording ----

    def run_file(self) -> pathlib.Path:
        """Path for the recorder; an existing file gets one more segment."""
        raise NotImplementedError

    def recorder_arguments(self) -> list[str]:
        """Further options of `wattle attach`."""
        return ["--wall-meter", os.path.abspath(self.wall_meter)] if self.wall_meter is not None else []

    def record(self, pids: Sequence[int], period_s: float) -> Beside:
        """Starts wattle's recorder for these processes and their descendants, 0: this one."""
        from ._recording import Recording  # which needs this module
        return Recording(self, pids, period_s)

    def begin_run(self) -> None:
        """A recording is about to begin; run_file is called next."""

    def take_run(self, run_file: pathlib.Path) -> None:
        """The recording in `run_file` has ended."""
        for item in records_of_run(run_file):
            if isinstance(item, str):
                self.close_driver()
            else:
                self.save_power_metrics(item.metrics, date=item.date)

    def erase(self) -> None:
        """Erases the stored data; a new experiment begins."""
        raise NotImplementedError

    def save_power_metrics(self, metrics: dict[str, Any], date: Optional[datetime.datetime] = None) -> None:
        """Adds one record, {'cpu': {…}, 'gpu': {…}} with AIPowerMeter's names; date: when, None: now."""
        raise NotImplementedError

    def close_driver(self) -> None:
        """Ends a segment: later records are integrated separately."""

    def save_exp_metrics(self, metrics: dict[str, Any]) -> None:
        """Adds figures of the experiment as of now: {'accuracy': 0.9}."""
        raise NotImplementedError

    def save_model_card(self, model_card: dict[str, Any]) -> None:
        """Stores the result of model_complexity.get_summary."""

    # ---- reading ----

    def records(self) -> Iterable[Item]:
        """All records in order of time, SEGMENT_END after each segment."""
        raise NotImplementedError

    def exp_records(self) -> Iterable[tuple[datetime.datetime, dict[str, Any]]]:
        """All figures of the experiment in order of time."""
        return ()

    def get_model_card(self) -> Optional[dict[str, Any]]:
        """The model's parameters and multiply-adds, None: not stored."""
        return None

    def get_description(self) -> Optional[str]:
        """The user's description of the experiment."""
        return None

    def get_segments(self) -> list[datetime.datetime]:
        """The ends of all segments but the last."""
        return gather(self.records()).segment_ends

    def load_cpu_metrics(self) -> Optional[Metrics]:
        """CPU metrics, {name: {'dates': [datetime], 'values': […]}}; values per process are summed."""
        return gather(self.records()).cpu

    def load_gpu_metrics(self) -> Optional[Metrics]:
        """GPU metrics; those that begin with per_gpu_ are {name: {gpu: {'dates': …, 'values': …}}}."""
        return gather(self.records()).gpu

    def load_exp_metrics(self) -> Optional[Metrics]:
        """Metrics of the experiment itself, such as accuracy."""
        metrics: Metrics = {}
        for date, figures in self.exp_records():
            for name, value in figures.items():
                append(metrics, name, date, number(value))
        return metrics or None

    def load_wattmeter_metrics(self) -> Optional[Metrics]:
        """Columns of the wall meter's CSV; dates are Unix seconds."""
        if self.wattmeter_logfile is None or not os.path.isfile(self.wattmeter_logfile):
            return None
        return _wall_meter.load(self.wattmeter_logfile)

    def load_metrics(self) -> tuple[Optional[Metrics], Optional[Metrics], Optional[Metrics], Optional[Metrics]]:
        """CPU, GPU, experiment and wall meter, each None if there is none."""
        recorded = gather(self.records())
        return recorded.cpu, recorded.gpu, self.load_exp_metrics(), self.load_wattmeter_metrics()


# The exporter's description of a recording; provenance is {domain: measured, integrated or estimated}.
EXPORTED = ("provenance", "host", "wattle_run")


def exported_metadata(folder: pathlib.Path) -> dict[str, Any]:
    """For a folder made by export: metadata besides the user's own."""
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    return {key: metadata[key] for key in EXPORTED if key in metadata}


def describe(metadata: dict[str, Any]) -> Optional[str]:
    """Metadata as text: the description, then the other entries, one on a line, then values that are not measured."""
    lines = [str(metadata["description"])] if metadata.get("description") else []
    lines += [f"{key}: {value}" for key, value in metadata.items() if key not in ("description", "date", *EXPORTED)]
    provenance = metadata.get("provenance") or {}
    estimated = [domain for domain, source in provenance.items() if source == "estimated"]
    if estimated:
        lines.append(f"ESTIMATED from load, not measured: {', '.join(estimated)}")
    return "\n".join(lines) or None


def metadata_of(meta_data: Union[str, dict[str, Any]]) -> dict[str, Any]:
    """Metadata of an experiment, from a text or a dict. Raises TypeError for anything else."""
    if isinstance(meta_data, str):
        meta_data = {"description": meta_data}
    if not isinstance(meta_data, dict):
        raise TypeError(f"meta_data must be a string or a dict, not {type(meta_data).__name__}")
    return {"description": "", **meta_data, "date": str(datetime.datetime.now())}
