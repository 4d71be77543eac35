"""Writing gpu_tracker's sub-tracking files: a row at each start and stop of a code block.

Rows of several threads and of forked children may go to one file: each is a single append (CSV) or transaction
(SQLite). Rows are not buffered, because a worker of multiprocessing ends without any way to flush a buffer.
"""
from __future__ import annotations

import os
import sqlite3
import threading
from typing import Optional, Union

COLUMNS = ("process_id", "code_block_name", "position", "timestamp")
_BUSY_S = 60.0


def _create(path: str, overwrite: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    if overwrite:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        raise FileExistsError(f"File {path} already exists. "
                              "Set overwrite to True to overwrite the existing file.") from None


def _removed(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"The file {path} was removed in the middle of writing data to it.")


class CsvFile:
    """Appends rows by one write each, which the kernel keeps together."""

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path = path
        self._fd = _create(path, overwrite)
        self._names: dict[str, str] = {}
        os.write(self._fd, (",".join(COLUMNS) + "\r\n").encode())

    def write(self, process_id: int, name: str, position: int, timestamp_s: float) -> None:
        if os.fstat(self._fd).st_nlink == 0:
            raise _removed(self.path)
        quoted = self._names.get(name) or self._names.setdefault(name, _quoted(name))
        os.write(self._fd, f"{process_id},{quoted},{position},{timestamp_s!r}\r\n".encode("utf-8", "surrogateescape"))

    def forked(self) -> None:
        """The descriptor appends from any process."""


class SqliteFile:
    """Table `data`, a transaction for each row. A crash of the program loses nothing, one of the machine may (synchronous)."""

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path = path
        os.close(_create(path, overwrite))
        self._connection: Optional[sqlite3.Connection] = None
        self._lock = threading.Lock()
        self._parents: list[Optional[sqlite3.Connection]] = []
        self._connect().execute("CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR, position INTEGER, "
                                "timestamp FLOAT)")

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None,
                                               check_same_thread=False)
            self._connection.execute("PRAGMA synchronous = OFF")
        return self._connection

    def write(self, process_id: int, name: str, position: int, timestamp_s: float) -> None:
        if not os.path.isfile(self.path):
            raise _removed(self.path)
        with self._lock:
            self._connect().execute("INSERT INTO data VALUES (?, ?, ?, ?)", (process_id, name, position, timestamp_s))

    def forked(self) -> None:
        """A connection must not be used, nor closed, in a child."""
        self._parents.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()


def _quoted(name: str) -> str:
    if any(sign in name for sign in ',"\r\n'):
        return '"' + name.replace('"', '""') + '"'
    return name


SubTrackingFile = Union[CsvFile, SqliteFile]

_files: dict[str, SubTrackingFile] = {}
_lock = threading.Lock()
_generation = 0


def fork_generation() -> int:
    """Number of forks between this process and the one that imported this first: distinguishes children from parents."""
    return _generation


def open_file(path: str, overwrite: bool) -> SubTrackingFile:
    """The file of this name that this process (or its parent before the fork) writes, created on first use. FileExistsError:
    another program's file exists, and overwrite is not set."""
    file = _files.get(path)
    if file is not None:
        return file
    with _lock:
        if path not in _files:
            _files[path] = CsvFile(path, overwrite) if path.endswith(".csv") else SqliteFile(path, overwrite)
        return _files[path]


def _forked() -> None:
    global _lock, _generation
    _lock = threading.Lock()
    _generation += 1
    for file in _files.values():
        file.forked()


os.register_at_fork(after_in_child=_forked)
