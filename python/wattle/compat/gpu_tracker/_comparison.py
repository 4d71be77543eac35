"""TrackingComparison: results of several sessions side by side."""
from __future__ import annotations

import functools
import json
import logging
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

from ... import _wattle
from . import _unpickle
from ._results import STATISTICS, CodeBlockResults, ComparisonResults, SubTrackingResults

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]

_log = logging.getLogger(__name__)


class TrackingComparison:
    """Compares sessions, given by name and file: pickled SubTrackingResults (also gpu_tracker's; nothing in a pickle
    is executed), JSON from `to_json()` or `wattle blocks` (.json), or a run file of wattle (.sqlite).

    Code blocks match by name. Names that differ only in the line number after their last colon match in order of the
    line, with a warning. ValueError: a different number of blocks, or one without a match.

    results_map: {session: SubTrackingResults}, the blocks of all in the same order.
"""

    def __init__(self, file_path_map: Mapping[str, PathLike]) -> None:
        if not file_path_map:
            raise ValueError("file_path_map is empty. Please provide at least one tracking session.")
        self.results_map = {name: _load(path) for name, path in file_path_map.items()}
        for results in self.results_map.values():
            results.code_block_results = sorted(results.code_block_results, key=lambda block: _sort_key(block.name))
        self._first = min(self.results_map)
        for name in self.results_map:
            if name != self._first:
                self._check(name)

    def _check(self, name: str) -> None:
        first, second = (self.results_map[session].code_block_results for session in (self._first, name))
        if len(first) != len(second):
            raise ValueError("All sub-tracking results must have the same number of code blocks. The first has "
                             f'{len(first)} code blocks but tracking session "{name}" has {len(second)} code blocks.')
        for one, other in zip(first, second):
            if one.name == other.name:
                continue
            pair = (f'"{one.name}" of tracking session "{self._first}"',
                    f'code block name "{other.name}" of tracking session "{name}"')
            if not _differ_in_line(one.name, other.name):
                raise ValueError(f"Code block name {pair[0]} does not match {pair[1]}")
            _log.warning("Code block name %s matched with %s but they differ by line number. If these code blocks were "
                         "not meant to match, their comparison will not be valid and their names must be "
                         "disambiguated.", *pair)

    def compare(self, statistic: str = "mean") -> ComparisonResults:
        """Compares min, max, mean or std of usage and compute time. Sessions ascend by value, unknown ones last."""
        if statistic not in STATISTICS:
            raise ValueError(f"Invalid summary statistic '{statistic}'. Valid values are {' '.join(STATISTICS)}.")
        first = self.results_map[self._first]
        return ComparisonResults(
            {metric: _series({name: results.overall[statistic][metric] for name, results in self.results_map.items()})
             for metric in first.overall.index},
            {metric: self._of_blocks(functools.partial(_usage, statistic, metric))
             for metric in first.overall.index if first.code_block_results},
            self._of_blocks(lambda block: block.compute_time[statistic]))

    def _of_blocks(self, value_of: Callable[[CodeBlockResults], Any]) -> dict[str, pandas.Series]:
        """A series for each block; if its name differs between sessions, both are shown."""
        rows = zip(*(results.code_block_results for results in self.results_map.values()))
        return {" -> ".join(sorted({block.name for block in row})):
                _series(dict(zip(self.results_map, map(value_of, row)))) for row in rows}


def _usage(statistic: str, metric: str, block: CodeBlockResults) -> Any:
    return block.resource_usage[statistic][metric]


def _line_of(name: str) -> Optional[int]:
    line = name.rpartition(":")[2] if ":" in name else ""
    return int(line) if line.isascii() and line.isdigit() else None


def _sort_key(name: str) -> tuple[str, int]:
    line = _line_of(name)
    return (name, -1) if line is None else (name.rpartition(":")[0] + ":", line)


def _differ_in_line(one: str, other: str) -> bool:
    """Whether two names differ only in the line number."""
    return None not in (_line_of(one), _line_of(other)) and _sort_key(one)[0] == _sort_key(other)[0]


def _series(values: dict[str, Any]) -> pandas.Series:
    import pandas
    return pandas.Series(values).sort_values(ascending=True, kind="stable")


def _load(path: PathLike) -> SubTrackingResults:
    with open(path, "rb") as file:
        start = file.read(16)
    if start == b"SQLite format 3\0":
        return SubTrackingResults.from_json(json.loads(_wattle.Run(path).blocks_json()))
    if start.lstrip().startswith(b"{"):
        try:
            with open(path, encoding="utf-8") as text:
                return SubTrackingResults.from_json(json.load(text))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(f"{os.fspath(path)} holds no sub-tracking results: give the output of to_json() or of "
                             "`wattle blocks --format json`") from None
    return _unpickle.load(path)
