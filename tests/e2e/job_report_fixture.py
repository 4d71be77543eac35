"""Synthetic jobs and their reports; unchanged ones are made once for each program."""
import contextlib
import functools
import json
import pathlib
import shutil
import sqlite3
import tempfile

import synthetic_jobs
from harness import WATTLE, WorkDir


@functools.cache
def _kept(kind):
    """(folder that must not be changed, true values of the job)"""
    kept = tempfile.TemporaryDirectory(prefix="wattle-job-")
    expected_values = synthetic_jobs.make(WATTLE, kept.name, kind)
    return kept, json.loads(json.dumps(expected_values))  # keys are texts, as in a report


def made(workdir, kind):
    """A folder of the test with the runs of a job; (folder, true values of the job)."""
    kept, expected_values = _kept(kind)
    return shutil.copytree(kept.name, workdir.folder / kind, dirs_exist_ok=True), expected_values


def report(workdir, *arguments, status=0):
    result = workdir.wattle("report", *arguments, "--format", "json")
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout) if status == 0 else result.stderr


@functools.cache
def report_of(kind):
    """(report of an unchanged job, true values of it)"""
    kept, expected_values = _kept(kind)
    workdir = WorkDir(pathlib.Path(kept.name))
    try:
        return report(workdir, "."), expected_values
    finally:
        workdir.stop_all()


def change(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(*statement)
