"""Connections to SQLite files that another process may have written."""
from __future__ import annotations

import os
import pathlib
import sqlite3
import sys
import time
from typing import Any, Iterable, Optional

BASE_S = 2.0
BYTES_PER_S = 2 << 20
STEPS_PER_CHECK = 10_000
LENGTH_MIN, LENGTH_MAX = 16 << 20, 1 << 30


def _stored_bytes(path: str) -> int:
    """Of the file and its log. A sparse file has any size for nothing, so blocks limit the size (sql_guard.c)."""
    total = 0
    for name in (path, path + "-wal"):
        try:
            status = os.stat(name)
        except FileNotFoundError:
            continue
        total += min(status.st_size, max(status.st_blocks * 512 * 64, 64 << 20))
    return total


def _authorize(action: int, first: Optional[str], second: Optional[str], database: Optional[str],
               source: Optional[str]) -> int:
    """The source is the view or trigger that an operation comes from."""
    return sqlite3.SQLITE_OK if source is None else sqlite3.SQLITE_DENY


# The rules of src/store/sql_guard.c: (of writers alone, query with a row if the table breaks the rule, fault).
FAULTS = (
    (False, "SELECT 1 FROM sqlite_master WHERE name = ?1 COLLATE NOCASE AND (type = 'view' OR type = 'table' AND rootpage = 0)",
     "is a view or a virtual table"),
    (False, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0", "has computed columns"),
    (True, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE dflt_value LIKE '%(%'", "has computed default values"),
    (True, "SELECT 1 FROM pragma_index_list(?1) AS l WHERE l.partial OR EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name) WHERE cid = -2)",
     "has an index of computed values"),
)


def _check(connection: sqlite3.Connection, file: str, tables: Iterable[str], is_writer: bool) -> None:
    if is_writer:
        connection.execute("PRAGMA ignore_check_constraints=ON")
    for table in tables:
        for of_writer, query, fault in FAULTS:
            if (is_writer or not of_writer) and connection.execute(query, (table,)).fetchone() is not None:
                raise sqlite3.DatabaseError(f"{file}: table {table} {fault}: wattle does not write such files and refuses to read it")


def connect(path: str | os.PathLike[str], tables: Iterable[str], *, read_only: bool = False, **options: Any) -> sqlite3.Connection:
    """tables: those the caller uses; they must be tables that compute nothing. Triggers, and views in a query, are refused ("not
    authorized"). read_only: a query ends ("interrupted") after the CPU time that a file of this size need."""
    file = os.fspath(path)
    if read_only:
        uri = pathlib.Path(file).absolute().as_uri()
        connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, **options)
    else:
        connection = sqlite3.connect(file, **options)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.set_authorizer(_authorize)
    if read_only:
        stored = _stored_bytes(file)
        if sys.version_info >= (3, 11):  # older versions cannot set it; the tables' faults and the CPU time are checked anyway
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(stored, LENGTH_MIN), LENGTH_MAX))
        end_s = time.thread_time() + BASE_S + stored / BYTES_PER_S
        connection.set_progress_handler(lambda: time.thread_time() > end_s, STEPS_PER_CHECK)
    try:
        _check(connection, file, tables, not read_only)
    except BaseException:
        connection.close()
        raise
    return connection
