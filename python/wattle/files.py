"""Results in files: comparing, merging, converting."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from . import _wattle
from .run import Run

PathLike = Union[str, "os.PathLike[str]"]


def _path(run: Union[PathLike, Run]) -> PathLike:
    return run.path if isinstance(run, Run) else run


def merge(out: PathLike, inputs: Union[PathLike, Sequence[PathLike]]) -> None:
    """Merges span files or sub-tracking files into one, as `wattle merge`. One folder as input means all files in it.

    FileExistsError: `out` exists; ValueError: an input is not such a file, or the inputs differ in kind.
    """
    _wattle.merge(out, [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs)


def export(run: Union[PathLike, Run], format: str, out: PathLike, *, overwrite: bool = False,
           weight: Union[str, None] = None) -> None:
    """A run in another format, as `wattle export`: csv, jsonl, gpu_tracker, aipowermeter (a folder), folded …; weight
    (of folded): energy or time.

    ValueError: no such format; FileExistsError: `out` exists and overwrite is not set.
"""
    _wattle.export(_path(run), format, out, overwrite=overwrite, weight=weight)


def compare(runs: Mapping[str, Union[PathLike, Run]], statistic: str = "mean") -> dict[str, Any]:
    """Runs, or JSON saved by `wattle blocks --format json`, side by side: {name: run} to the document of `wattle
    compare --format json`, with names in ascending order of value. statistic: min, max, mean or std.

    ValueError: fewer than two, or code blocks that don't match. Reservations about the comparison are UserWarnings.
"""
    if not isinstance(runs, Mapping):
        raise TypeError(f"runs must be a dict {{name: run}}, not {type(runs).__name__}")
    paths = [(name, _path(run)) for name, run in runs.items()]
    document: dict[str, Any] = json.loads(_wattle.compare_json(paths, statistic))
    return document
