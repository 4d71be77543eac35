"""SubTrackingAnalyzer: results for each code block from a tracking file and a sub-tracking file, of wattle or gpu_tracker."""
from __future__ import annotations

import contextlib
import json
import math
import os
from typing import TYPE_CHECKING, Optional, Sequence, Union

from ... import _sqlite, _wattle
from ...tracker import check_ending
from ._results import STATISTICS, SubTrackingResults

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]


class SubTrackingAnalyzer:
    """Both files may be .csv or .sqlite. Without a tracking file (None) only calls and their times are known.

    Starts and stops of a block in one process pair last in, first out, so that nested and recursive calls are correct.
"""

    def __init__(self, tracking_file: Optional[PathLike], sub_tracking_file: PathLike) -> None:
        self._tracking_file = None if tracking_file is None else os.fspath(tracking_file)
        self._sub_tracking_file = os.fspath(sub_tracking_file)
        for path in (self._tracking_file, self._sub_tracking_file):
            check_ending(path)
        self._calls: Optional[dict[str, list[tuple[float, float]]]] = None
        self._data: Optional[pandas.DataFrame] = None

    # ---- the tracking file ----

    def _tracking(self) -> str:
        if self._tracking_file is None:
            raise ValueError("This analyzer has no tracking file.")
        return self._tracking_file

    def _read(self, table: str, **csv_part: int) -> pandas.DataFrame:
        import pandas
        path = self._tracking()
        if path.endswith(".csv"):
            return pandas.read_csv(path, float_precision="round_trip", **csv_part)
        with contextlib.closing(_sqlite.connect(path, (table,), read_only=True)) as connection:
            return pandas.read_sql_query(f'SELECT * FROM "{table}"', connection)

    def read_static_data(self) -> pandas.Series:
        """Units, capacities and counts of the tracking file, by name."""
        return self._read("static_data", nrows=1).astype(object).iloc[0]

    def _timepoints(self) -> pandas.DataFrame:
        if self._data is None:
            self._data = self._read("data", skiprows=2)
        return self._data

    def load_timepoints(self, timestamp_pairs: Sequence[tuple[float, float]]) -> pandas.DataFrame:
        """The rows inside any of the (start, stop), both ends included, each once and in the order of the file."""
        import numpy
        timepoints = self._timepoints()
        at = timepoints["timestamp"].to_numpy(dtype=float)
        pairs = numpy.asarray(timestamp_pairs, dtype=float).reshape(-1, 2)
        begun = numpy.searchsorted(numpy.sort(pairs[:, 0]), at, side="right")
        ended = numpy.searchsorted(numpy.sort(pairs[:, 1]), at, side="left")
        return timepoints[begun > ended]

    def overall_timepoint_results(self) -> pandas.DataFrame:
        """min, max, mean and std (population) of each metric over all timepoints."""
        metrics = self._timepoints().drop(columns="timestamp")
        results = metrics.agg(["min", "max", "mean"]).T
        results["std"] = metrics.std(ddof=0)
        return results[list(STATISTICS)]

    # ---- the sub-tracking file ----

    def _blocks(self) -> dict[str, list[tuple[float, float]]]:
        if self._calls is not None:
            return self._calls
        try:
            rows = _wattle.sub_tracking_calls(self._sub_tracking_file)
        except ValueError as failure:
            raise ValueError(f"Sub-tracking file is invalid. {failure}") from None
        self._calls = {}
        for name, begin_s, end_s in rows:
            calls = self._calls.setdefault(name, [])
            if not math.isnan(end_s):
                calls.append((begin_s, end_s))
        return self._calls

    def load_code_block_names(self) -> list[str]:
        """Names of the code blocks, sorted."""
        return sorted(self._blocks())

    def load_timestamp_pairs(self, code_block_name: str) -> list[tuple[float, float]]:
        """(start, stop) of each call in Unix seconds, ordered by process and start; calls that were never stopped are left
        out. ValueError: a stop without a start, with both timestamps and processes."""
        return list(self._blocks().get(code_block_name, ()))

    def combine_sub_tracking_files(self, files: Sequence[PathLike]) -> None:
        """Writes all rows into this analyzer's sub-tracking file, which must be of the same kind and not exist yet."""
        target = self._sub_tracking_file
        ending = os.path.splitext(target)[1]
        if os.path.exists(target):
            raise ValueError(f"Cannot create sub-tracking file {target}. File already exists.")
        for file in files:
            if not os.fspath(file).endswith(ending):
                raise ValueError(f"File {file} does not end with the same extension as {target}. "
                                 f'Must end in "{ending}".')
        _wattle.merge(target, list(files))

    # ---- both ----

    def sub_tracking_results(self) -> SubTrackingResults:
        """The figures of all code blocks, and overall."""
        results = SubTrackingResults.from_json(json.loads(
            _wattle.tracking_blocks_json(self._tracking(), self._sub_tracking_file)))
        results.static_data = self.read_static_data()
        return results
