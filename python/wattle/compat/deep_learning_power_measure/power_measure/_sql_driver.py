"""A database as a driver: SQLite by the standard library, PostgreSQL by psycopg2.

    aipm_experiment    experiment, metadata, model_card            (JSON texts)
    aipm_recording     recording, experiment, host, program_pid, run_file: recordings whose run file is not read yet
    aipm_power_metric  experiment, recording, record, segment, date, unix_s, part, name, gpu, pid, value
    aipm_exp_metric    experiment, date, unix_s, name, value

A row of aipm_power_metric is one figure: part is cpu or gpu, name AIPowerMeter's (power in W, memory in bytes), gpu and
pid are '' for sums. During a recording the data are in a run file on the recording machine; the rows are written
when it ends, or, if the program was killed, when the experiment is next read on that machine.
"""
from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import os
import pathlib
import socket
import uuid
from typing import Any, Iterable, Iterator, Optional, Union

from ._database import Database
from ._driver import Driver, PathLike, describe, metadata_of, read_run, records_of_run
from ._recorder import is_alive
from ._records import SEGMENT_END, Item, Record, segments_of
from ._recording import end_recording

TABLES = (
    "CREATE TABLE IF NOT EXISTS aipm_experiment (experiment TEXT PRIMARY KEY, metadata TEXT NOT NULL, model_card TEXT)",
    "CREATE TABLE IF NOT EXISTS aipm_recording (recording TEXT PRIMARY KEY, experiment TEXT NOT NULL, "
    "host TEXT NOT NULL, program_pid INTEGER NOT NULL, run_file TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS aipm_power_metric (experiment TEXT NOT NULL, recording TEXT NOT NULL, "
    "record INTEGER NOT NULL, segment INTEGER NOT NULL, date TEXT NOT NULL, unix_s DOUBLE PRECISION NOT NULL, "
    "part TEXT NOT NULL, name TEXT NOT NULL, gpu TEXT NOT NULL, pid TEXT NOT NULL, value DOUBLE PRECISION)",
    "CREATE INDEX IF NOT EXISTS aipm_power_metric_order ON aipm_power_metric (experiment, name, unix_s)",
    "CREATE TABLE IF NOT EXISTS aipm_exp_metric (experiment TEXT NOT NULL, date TEXT NOT NULL, "
    "unix_s DOUBLE PRECISION NOT NULL, name TEXT NOT NULL, value DOUBLE PRECISION)",
)
RUN = "wattle-"  #: then the recording's id: a run file's name
Figure = tuple[str, str, str, str, Optional[float]]  #: part, name, gpu, pid, value


class SqlParser(Driver):
    """Stores recordings in a database.

    database: "FILE.sqlite", "sqlite:///FILE" or "postgresql://USER@HOST/NAME". meta_data: a text or a dict about the
    experiment. experiment: its name; a database has many. wall_meter: as JsonParser's.
    Raises ImportError without psycopg2, and the library's own errors if the database cannot be reached.
"""

    def __init__(self, database: PathLike, meta_data: Union[str, dict[str, Any]] = "", *,
                 experiment: str = "experiment", wall_meter: Optional[PathLike] = None) -> None:
        self.metadata = metadata_of(meta_data)
        self.folder = f"{os.fspath(database)} ({experiment})"
        self.experiment = experiment
        self.wall_meter = self.wattmeter_logfile = wall_meter
        self._database = Database(os.fspath(database))
        self._recording = uuid.uuid4().hex
        self._by_hand = itertools.count()
        self._segment = 0
        with self._database.transaction() as run:
            for statement in TABLES:
                run(statement)
        self._insert_experiment()

    # ---- recording ----

    def run_file(self) -> pathlib.Path:
        return self._database.folder_of_runs() / f"{RUN}{self._recording}.sqlite"

    def begin_run(self) -> None:
        """A recording of its own, visible to readers before it ends."""
        self._recording = uuid.uuid4().hex
        with self._database.transaction() as run:
            run("INSERT INTO aipm_recording VALUES (?, ?, ?, ?, ?)",
                (self._recording, self.experiment, socket.gethostname(), os.getpid(), str(self.run_file())))

    def take_run(self, run_file: pathlib.Path) -> None:
        self._take(run_file.stem.removeprefix(RUN), run_file)  # not self._recording: another may have begun since

    def erase(self) -> None:
        """Erases only this experiment. Raises OSError while another program of this machine records it."""
        for _, _, name in self._pending():
            end_recording(pathlib.Path(name))
        files = [pathlib.Path(name) for _, _, name in self._pending()]
        with self._database.transaction() as run:
            for table in ("aipm_power_metric", "aipm_exp_metric", "aipm_recording", "aipm_experiment"):
                run(f"DELETE FROM {table} WHERE experiment = ?", (self.experiment,))
        for file in files:
            _remove_run(file)
        self._insert_experiment()

    def save_power_metrics(self, metrics: dict[str, Any], date: Optional[datetime.datetime] = None) -> None:
        record = Record(date or datetime.datetime.now(), metrics)
        recording = f"by hand {os.getpid()} {id(self)}"
        with self._database.transaction() as run:
            self._insert(run, recording, [(next(self._by_hand), self._segment, record)])

    def close_driver(self) -> None:
        self._segment += 1

    def save_exp_metrics(self, metrics: dict[str, Any]) -> None:
        """Adds figures of the experiment as of now. Raises ValueError for values that are no numbers."""
        now = datetime.datetime.now()
        rows = []
        for name, value in metrics.items():
            try:
                rows.append((self.experiment, str(now), now.timestamp(), name, float(value)))
            except (TypeError, ValueError):
                raise ValueError(f"{name}: {value!r} is not a number; the database stores only numbers") from None
        with self._database.transaction() as run:
            self._database.insert(run, "aipm_exp_metric", rows)

    def save_model_card(self, model_card: dict[str, Any]) -> None:
        with self._database.transaction() as run:
            run("UPDATE aipm_experiment SET model_card = ? WHERE experiment = ?",
                (json.dumps(model_card), self.experiment))

    # ---- reading ----

    def records(self) -> Iterable[Item]:
        segments = list(self._stored_segments())
        for recording, program_pid, file in self._pending():
            if not os.path.exists(file):
                continue
            segments += segments_of(records_of_run(file))
            if not is_alive(program_pid):
                self._take(recording, pathlib.Path(file))
        for segment in sorted(segments, key=lambda segment: segment[0].date.timestamp()):
            yield from segment
            yield SEGMENT_END

    def exp_records(self) -> Iterator[tuple[datetime.datetime, dict[str, Any]]]:
        rows = self._database.select("SELECT date, name, value FROM aipm_exp_metric WHERE experiment = ? "
                                     "ORDER BY unix_s, name", (self.experiment,))
        for date, group in itertools.groupby(rows, key=lambda row: row[0]):
            yield datetime.datetime.fromisoformat(date), {name: value for _, name, value in group}

    def get_model_card(self) -> Optional[dict[str, Any]]:
        card = self._experiment_column("model_card")
        return json.loads(card) if card else None

    def get_description(self) -> Optional[str]:
        metadata = self._experiment_column("metadata")
        return describe(json.loads(metadata)) if metadata else None

    def close(self) -> None:
        """Closes the connection; it is opened again when needed."""
        self._database.close()

    # ---- tables ----

    def _insert_experiment(self) -> None:
        with self._database.transaction() as run:
            run("INSERT INTO aipm_experiment (experiment, metadata) VALUES (?, ?) ON CONFLICT (experiment) DO NOTHING",
                (self.experiment, json.dumps(self.metadata)))

    def _experiment_column(self, column: str) -> Optional[str]:
        rows = self._database.select(f"SELECT {column} FROM aipm_experiment WHERE experiment = ?", (self.experiment,))
        return rows[0][0] if rows else None

    def _pending(self) -> list[tuple[str, int, str]]:
        rows = self._database.select("SELECT recording, program_pid, run_file FROM aipm_recording "
                                     "WHERE experiment = ? AND host = ?", (self.experiment, socket.gethostname()))
        return [(recording, program_pid, run_file) for recording, program_pid, run_file in rows]

    def _take(self, recording: str, run_file: pathlib.Path) -> None:
        """Writes the rows of a run file, all or none; then removes it."""
        items, exported = read_run(run_file)
        numbered = ((number, segment, record) for segment, records in enumerate(segments_of(items))
                    for number, record in enumerate(records))
        metadata = {**json.loads(self._experiment_column("metadata") or "{}"), **exported}
        with self._database.transaction() as run:
            run("UPDATE aipm_experiment SET metadata = ? WHERE experiment = ?", (json.dumps(metadata), self.experiment))
            run("DELETE FROM aipm_recording WHERE recording = ?", (recording,))
            self._insert(run, recording, numbered)
        _remove_run(run_file)

    def _insert(self, run: Any, recording: str, numbered: Iterable[tuple[int, int, Record]]) -> None:
        rows = ((self.experiment, recording, number, segment, str(record.date), record.date.timestamp(), *figure)
                for number, segment, record in numbered for figure in _figures(record))
        self._database.insert(run, "aipm_power_metric", rows)

    def _stored_segments(self) -> Iterator[list[Record]]:
        rows = self._database.select(
            "SELECT recording, segment, record, date, part, name, gpu, pid, value FROM aipm_power_metric "
            "WHERE experiment = ? ORDER BY recording, segment, record", (self.experiment,))
        for _, segment in itertools.groupby(rows, key=lambda row: row[:2]):
            yield [_record(list(figures)) for _, figures in itertools.groupby(segment, key=lambda row: row[2])]


# ---- records and rows ----

def _figures(record: Record) -> Iterator[Figure]:
    for part, metrics in record.metrics.items():
        if not isinstance(metrics, dict):
            continue
        for name, value in metrics.items():
            yield from _spread(part, name, value)


def _spread(part: str, name: str, value: Any) -> Iterator[Figure]:
    """A number, one per process, one per GPU, or one per process of each GPU. Missing entries have no row."""
    if not isinstance(value, dict):
        yield part, name, "", "", value
        return
    for key, inner in value.items():
        if isinstance(inner, dict):
            for pid, number in inner.items():
                yield part, name, str(key), str(pid), number
        elif part == "gpu":
            yield part, name, str(key), "", inner
        else:
            yield part, name, "", str(key), inner


def _record(rows: list[tuple[Any, ...]]) -> Record:
    metrics: dict[str, dict[str, Any]] = {}
    for _, _, _, _, part, name, gpu, pid, value in rows:
        place = metrics.setdefault(part, {})
        keys = [name, *(key for key in (gpu, pid) if key)]
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = value
    return Record(datetime.datetime.fromisoformat(rows[0][3]), metrics)


# ---- run files ----

def _remove_run(run_file: pathlib.Path) -> None:
    for path in run_file.parent.glob(run_file.name + "*"):
        with contextlib.suppress(OSError):
            path.unlink()
