"""The folder layout: metadata.json, power_metrics.json, results_exp.json, model_summary.json, omegawatt.csv, and
wattle.sqlite, the run file, from which power_metrics.json is made when a recording ends.

A killed program leaves the run file; the next reader of the folder makes power_metrics.json from it.
"""
from __future__ import annotations

import datetime
import json
import os
import pathlib
import shutil
import tempfile
import warnings
from typing import Any, Iterable, Iterator, Optional, Union

from ._driver import Driver, PathLike, describe, export, exported_metadata, metadata_of, read_lines
from ._recorder import settle
from ._recording import end_recording
from ._records import SEGMENT_END, Item, segments_of

EXP_DATE = "end_training_epoch"  # : the key of the date in AIPowerMeter's reader

ExpRecord = tuple[datetime.datetime, dict[str, Any]]


class JsonParser(Driver):
    """Stores recordings in a folder.

    location: the folder, created if missing. meta_data: a text or a dict about the experiment. wall_meter: the
    CSV that a wall meter is writing (OmegaWatt's format): a further domain of the recording, and omegawatt.csv.
    Raises TypeError for other meta_data, OSError if the folder cannot be created.
"""

    def __init__(self, location: PathLike, meta_data: Union[str, dict[str, Any]] = "", *,
                 wall_meter: Optional[PathLike] = None) -> None:
        self.metadata = metadata_of(meta_data)
        self.folder = os.fspath(location)
        self.wall_meter = wall_meter
        self._path = pathlib.Path(self.folder).absolute()  # the program may change its working directory
        self.metadata_filename = str(self._path / "metadata.json")
        self.power_metric_filename = str(self._path / "power_metrics.json")
        self.exp_metric_filename = str(self._path / "results_exp.json")
        self.model_card_file = str(self._path / "model_summary.json")
        self.wattmeter_logfile: str = str(self._path / "omegawatt.csv")  # pyright: ignore[reportIncompatibleVariableOverride]
        self._path.mkdir(parents=True, exist_ok=True)
        self._write_metadata()

    @property
    def _kept(self) -> pathlib.Path:
        """Lines that are in no run file: of AIPowerMeter itself, or saved manually."""
        return self._path / "power_metrics.kept.json"

    # ---- recording ----

    def run_file(self) -> pathlib.Path:
        return self._path / "wattle.sqlite"

    def begin_run(self) -> None:
        """Recordings of another program in this folder stay before those of wattle."""
        power = pathlib.Path(self.power_metric_filename)
        if power.exists() and not self.run_file().exists() and not self._kept.exists():
            os.replace(power, self._kept)

    def take_run(self, run_file: pathlib.Path) -> None:
        self._make_power_metrics()

    def erase(self) -> None:
        """Removes the files of a recording, and no others: the folder may contain anything. Raises OSError while another
        program records there."""
        end_recording(self.run_file())
        names = (self.metadata_filename, self.power_metric_filename, self.exp_metric_filename, self.model_card_file,
                 self.wattmeter_logfile, os.fspath(self._kept))
        paths = [pathlib.Path(name) for name in names]
        paths += self._path.glob(f"{self.run_file().name}*")  # with its journal and its spool of spans
        for path in paths:
            path.unlink(missing_ok=True)
        self._path.mkdir(parents=True, exist_ok=True)
        self._write_metadata()

    def save_power_metrics(self, metrics: dict[str, Any], date: Optional[datetime.datetime] = None) -> None:
        self._append({"date": str(date or datetime.datetime.now()), "metrics": metrics})

    def close_driver(self) -> None:
        self._append(SEGMENT_END)

    def save_exp_metrics(self, metrics: dict[str, Any]) -> None:
        """Adds figures of the experiment as of now, in the format of load_exp_metrics."""
        self._add_exp_records([(datetime.datetime.now(), metrics)])

    def save_model_card(self, model_card: dict[str, Any]) -> None:
        self._write(self.model_card_file, model_card)

    # ---- reading ----

    def records(self) -> Iterable[Item]:
        if self._is_stale():
            return self._make_power_metrics()
        for path in (pathlib.Path(self.power_metric_filename), self._kept):
            if path.exists():
                return read_lines(path)
        return ()

    def exp_records(self) -> Iterator[ExpRecord]:
        path = pathlib.Path(self.exp_metric_filename)
        return iter(_read_exp_records(path) if path.exists() else ())

    def get_model_card(self) -> Optional[dict[str, Any]]:
        path = pathlib.Path(self.model_card_file)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def get_description(self) -> Optional[str]:
        path = pathlib.Path(self.metadata_filename)
        return describe(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    # ---- files ----

    def _write_metadata(self) -> None:
        if os.path.exists(self.metadata_filename):
            return
        try:
            self._write(self.metadata_filename, self.metadata)
        except OSError as error:
            if not os.path.exists(self.power_metric_filename) and not self.run_file().exists():
                raise OSError(error.errno, error.strerror, self.folder) from None  # else it can still be read

    def _add_metadata(self, more: dict[str, Any]) -> None:
        path = pathlib.Path(self.metadata_filename)
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else self.metadata
        if {**before, **more} != before:
            self._write(path, {**before, **more})

    def _write(self, path: PathLike, content: Any) -> None:
        """All or nothing: a reader never sees an incomplete file."""
        partial = f"{os.fspath(path)}.{os.getpid()}.new"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(partial, path)

    def _append(self, line: Any) -> None:
        text = json.dumps(line) + "\n"
        self._path.mkdir(parents=True, exist_ok=True)
        paths = [pathlib.Path(self.power_metric_filename)]
        if self.run_file().exists():
            paths.append(self._kept)  # the other is made again from the run file
        for path in paths:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)

    def _is_stale(self) -> bool:
        """Whether the recorder has written since power_metrics.json was made, or is about to."""
        settle(self.run_file())
        try:
            made_ns = os.stat(self.power_metric_filename).st_mtime_ns
        except FileNotFoundError:
            return self.run_file().exists()
        journal = pathlib.Path(f"{self.run_file()}-wal")
        return any(path.exists() and path.stat().st_mtime_ns > made_ns for path in (self.run_file(), journal))

    def _make_power_metrics(self) -> list[Item]:
        """Exports the run file; returns all records. A read-only folder is still read."""
        run_file = self.run_file()
        if not run_file.exists():
            return []
        with tempfile.TemporaryDirectory(prefix="wattle-") as folder:
            made = pathlib.Path(folder, "run")
            if not export(run_file, made):
                return list(read_lines(self._kept)) if self._kept.exists() else []
            lines = made / "power_metrics.json"
            if self._kept.exists():
                lines = _join(self._kept, lines, pathlib.Path(folder, "power_metrics.json"))
            items = list(read_lines(lines))
            self._keep_exported(made, lines)
            return items

    def _keep_exported(self, made: pathlib.Path, lines: pathlib.Path) -> None:
        try:
            self._add_metadata(exported_metadata(made))
            if (made / "omegawatt.csv").exists():
                _copy(made / "omegawatt.csv", self.wattmeter_logfile)
            if (made / "results_exp.json").exists():
                self._add_exp_records(_read_exp_records(made / "results_exp.json"))
            _copy(lines, self.power_metric_filename)  # last: it states that everything is as new as the run file
        except OSError as error:
            warnings.warn(f"{self.folder}: cannot write power_metrics.json: {error.strerror}. The recording is read "
                          f"from {self.run_file().name}.", RuntimeWarning, stacklevel=2)

    def _add_exp_records(self, records: list[ExpRecord]) -> None:
        """wattle.metric's figures are in the run file, others in results_exp.json only: none is lost or doubled."""
        before = list(self.exp_records())
        new = [record for record in records if record not in before]
        merged = sorted(before + new, key=lambda record: record[0].timestamp())
        if new:
            self._write(self.exp_metric_filename, [{EXP_DATE: str(date), **figures} for date, figures in merged])


def _copy(made: pathlib.Path, name: str) -> None:
    partial = f"{name}.{os.getpid()}.new"
    shutil.copyfile(made, partial)
    os.replace(partial, name)


def _join(first: pathlib.Path, second: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Both files' segments by time."""
    segments = [segment for path in (first, second) for segment in segments_of(read_lines(path))]
    with open(target, "w", encoding="utf-8") as out:
        for segment in sorted(segments, key=lambda segment: segment[0].date.timestamp()):
            for record in segment:
                out.write(json.dumps({"date": str(record.date), "metrics": record.metrics}) + "\n")
            out.write(json.dumps(SEGMENT_END) + "\n")
    return target


def _objects(text: str) -> list[dict[str, Any]]:
    """A list of objects, an object of objects, or an object on each line as AIPowerMeter's save_exp_metrics writes them."""
    try:
        content = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(content, dict):
        return [content] if "metrics" in content and "date" in content else list(content.values())
    return content


def _read_exp_records(path: pathlib.Path) -> list[ExpRecord]:
    try:
        return [_exp_record(entry) for entry in _objects(path.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected a list of objects with the key '{EXP_DATE}' ({error})") from error


def _exp_record(entry: dict[str, Any]) -> ExpRecord:
    if EXP_DATE not in entry and isinstance(entry.get("metrics"), dict):
        return datetime.datetime.fromisoformat(entry["date"]), entry["metrics"]
    figures = {name: value for name, value in entry.items() if name != EXP_DATE}
    return datetime.datetime.fromisoformat(entry[EXP_DATE]), figures
