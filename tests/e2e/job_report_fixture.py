"""Synthetic jobs and their reports; unchanged ones are made once for each program."""
import contextlib
import functools
import json
import pathlib
import shutil
import sqlite3
import tempfile

import synthetic_jobs
from harness import WATTLE, Room


@functools.cache
def _kept(kind):
    """(folder that must not be changed, true values of the job)"""
    kept = tempfile.TemporaryDirectory(prefix="wattle-job-")
    truth = synthetic_jobs.make(WATTLE, kept.name, kind)
    return kept, json.loads(json.dumps(truth))  # keys are texts, as in a report


def made(room, kind):
    """A folder of the test with the runs of a job; (folder, true values of the job)."""
    kept, truth = _kept(kind)
    return shutil.copytree(kept.name, room.folder / kind, dirs_exist_ok=True), truth


def report(room, *arguments, status=0):
    result = room.wattle("report", *arguments, "--format", "json")
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout) if status == 0 else result.stderr


@functools.cache
def report_of(kind):
    """(report of an unchanged job, true values of it)"""
    kept, truth = _kept(kind)
    room = Room(pathlib.Path(kept.name))
    try:
        return report(room, "."), truth
    finally:
        room.stop_all()


def change(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(*statement)
