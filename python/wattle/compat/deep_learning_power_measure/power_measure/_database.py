"""One connection to SQLite or PostgreSQL, with the question mark for parameters in both."""
from __future__ import annotations

import contextlib
import os
import pathlib
import threading
from typing import Any, Callable, Iterable, Iterator, Sequence

from .... import _sqlite

Run = Callable[..., Any]
POSTGRESQL = ("postgresql://", "postgres://")
SQLITE = "sqlite:///"
TABLES = ("aipm_experiment", "aipm_recording", "aipm_power_metric", "aipm_exp_metric")


def _import_psycopg2() -> Any:
    try:
        import psycopg2
        import psycopg2.extras
    except ImportError as error:
        raise ImportError("a PostgreSQL database needs psycopg2 (Debian: python3-psycopg2)") from error
    return psycopg2


class Database:
    """Connects on first use, and again after fork. Raises ValueError for a URL of another kind."""

    def __init__(self, url: str) -> None:
        self.is_postgresql = url.startswith(POSTGRESQL)
        if "://" in url and not self.is_postgresql and not url.startswith(SQLITE):
            raise ValueError(f"unsupported database {url.split('://')[0]}://…; "
                             "use FILE.sqlite or postgresql://USER@HOST/NAME")
        self.url = url if self.is_postgresql else os.path.abspath(url[len(SQLITE):] if url.startswith(SQLITE) else url)
        self._psycopg2 = _import_psycopg2() if self.is_postgresql else None
        self._connection: Any = None
        self._owner = 0
        self._lock = threading.RLock()

    def folder_of_runs(self) -> pathlib.Path:
        """Folder of run files until they are rows: beside a SQLite file, else in the user's state folder."""
        if not self.is_postgresql:
            return pathlib.Path(self.url).parent
        states = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        folder = pathlib.Path(states, "wattle")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Run]:
        """Passes run(statement, parameters) to the block; commits everything, or nothing."""
        with self._lock:
            connection = self._connect()
            cursor = connection.cursor()
            try:
                yield lambda statement, parameters=(): cursor.execute(self._marks(statement), parameters) or cursor
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                cursor.close()

    def select(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        with self._lock:
            connection = self._connect()
            cursor = connection.cursor()
            try:
                cursor.execute(self._marks(statement), parameters)
                return cursor.fetchall()
            finally:
                cursor.close()
                connection.rollback()  # no transaction stays open between two calls

    def insert(self, run: Run, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Many rows, inside a transaction."""
        rows = list(rows)
        if not rows:
            return
        cursor = run("SELECT 1")
        if self._psycopg2 is not None:
            self._psycopg2.extras.execute_values(cursor, f"INSERT INTO {table} VALUES %s", rows, page_size=1000)
        else:
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def close(self) -> None:
        """Closes the connection of this process."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _connect(self) -> Any:
        if self._connection is None or self._owner != os.getpid():
            self._connection = self._open()
            self._owner = os.getpid()
        return self._connection

    def _open(self) -> Any:
        if self._psycopg2 is not None:
            return self._psycopg2.connect(self.url)
        return _sqlite.connect(self.url, TABLES, timeout=30, check_same_thread=False)

    def _marks(self, statement: str) -> str:
        return statement.replace("?", "%s") if self.is_postgresql else statement
