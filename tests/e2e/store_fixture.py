"""Shared by tests of the store in PostgreSQL: whether the server has exactly the rows of a run file."""
import contextlib
import dataclasses
import math
import pathlib
import shutil
import sqlite3
import tempfile
import uuid

import synthetic_runs
from harness import WATTLE

BIG = ("sample", "device_sample", "process_sample", "span", "user_metric", "event")
SMALL = ("run", "device", "segment", "process")
KEYS = {"sample": "t_ns", "device_sample": "t_ns, device", "process_sample": "t_ns, pid, start_ns", "span": "id",
        "user_metric": "rowid", "event": "rowid", "run": "key", "device": "id", "segment": "id",
        "process": "pid, start_ns"}


def open_file(path):
    file = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    file.text_factory = lambda text: text.decode("utf-8", "replace")
    return file


def run_id(path):
    file = open_file(path)
    try:
        return file.execute("SELECT value FROM run WHERE key = 'id'").fetchone()[0]
    finally:
        file.close()


def columns_of(server, table):
    return [name for name, in server.rows(
        f"SELECT attname::text FROM pg_attribute WHERE attrelid = '{table}'::regclass "
                                          "AND attnum > 0 AND NOT attisdropped ORDER BY attnum")]


def file_columns(file, table):
    return [row[1] for row in file.execute(f"PRAGMA table_info({table})")]


def plain(row):
    """Equal numbers are equal, whatever their type."""
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in row)


def sorted_rows(rows):
    return sorted((plain(row) for row in rows), key=lambda row: [(value is not None, str(value)) for value in row])


def same_table(server, file, table, run):
    known = columns_of(server, table)
    shared = [name for name in file_columns(file, table) if name in known]
    assert len(shared) >= 2, (table, shared)
    names = ", ".join(f'"{name}"' for name in shared)
    here = sorted_rows(file.execute(f"SELECT {names} FROM {table}"))
    there = sorted_rows(server.rows(f"SELECT {names} FROM {table} WHERE run_id = '{run}'"))
    assert len(here) == len(there), f"{table}: {len(here)} rows in the file, {len(there)} on the server"
    for one, other in zip(here, there):
        assert one == other, f"{table} ({names}):\n{one}\n{other}"
    return len(here)


def same_run(server, path, tables=BIG + SMALL):
    """Compares every value of every row; returns the number of rows."""
    file = open_file(path)
    try:
        return {table: same_table(server, file, table, run_id(path)) for table in tables}
    finally:
        file.close()


def same_counts(server, path):
    """For large runs: rows, different keys and the sum of times of each table."""
    file = open_file(path)
    try:
        for table in BIG:
            key = "begin_ns" if table == "span" else "t_ns"
            here = file.execute(f"SELECT count(*), total({key} - 5e12) FROM {table}").fetchone()
            there = server.rows(f"SELECT count(*), coalesce(sum({key} - 5e12), 0)::float8 FROM {table} "
                                f"WHERE run_id = '{run_id(path)}'")[0]
            assert here[0] == there[0], f"{table}: {here[0]} rows in the file, {there[0]} on the server"
            assert math.isclose(here[1], there[1], rel_tol=1e-9), (table, here, there)
    finally:
        file.close()


kept = {}  # for each plan the file made from it, in a folder that is removed with the program


def made(workdir, kind, name="run.sqlite", **changes):
    """A synthetic run with an id of its own."""
    plan = dataclasses.replace(synthetic_runs.KINDS[kind] if isinstance(kind, str) else kind, **changes)
    key = repr(plan)
    if key not in kept:
        if not kept:
            kept["folder"] = tempfile.TemporaryDirectory(prefix="wattle-made-")
        kept[key] = pathlib.Path(kept["folder"].name) / f"{len(kept)}.sqlite"
        synthetic_runs.make(WATTLE, kept[key], plan)
    shutil.copyfile(kept[key], workdir.folder / name)
    with contextlib.closing(sqlite3.connect(workdir.folder / name)) as file, file:
        file.execute("UPDATE run SET value = ? WHERE key = 'id'", (str(uuid.uuid4()),))
    return workdir.folder / name
