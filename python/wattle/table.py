"""Rows with names: code blocks, events, processes and the like of a run."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence, Union, overload

from . import _show, _wattle

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from typing_extensions import TypeAlias

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SHOWN = 50  # rows of a repr


class Table(Sequence["dict[str, Any]"]):
    """A sequence of rows (dicts) whose columns are also available as arrays: table[3], table["total_j"], table.to_pandas().

    Unknown values are None in rows, NaN in columns of numbers. Names of columns end in their units.
"""

    def __init__(self, rows: Sequence[dict[str, Any]], columns: Sequence[str], *, shown: Sequence[str] = (),
                 title: str = "") -> None:
        """shown: the columns of its repr; all if empty."""
        self._rows = list(rows)
        self.columns = tuple(columns)
        self._shown = tuple(shown) or self.columns
        self._title = title

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: str) -> Array: ...

    def __getitem__(self, key: Union[int, slice, str]) -> Any:
        """A row by its number, rows by a slice, a column by its name (numpy)."""
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            return Table(self._rows[key], self.columns, shown=self._shown, title=self._title)
        return self._rows[key]

    def _column(self, name: str) -> Any:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; valid: {', '.join(self.columns)}")
        import numpy
        values = [row[name] for row in self._rows]
        known = [value for value in values if value is not None]
        if any(isinstance(value, (str, dict, list)) for value in known):
            column = numpy.empty(len(values), dtype=object)
            column[:] = values
            return column
        if len(known) < len(values) or any(isinstance(value, float) for value in known):
            return numpy.array([math.nan if value is None else value for value in values], dtype=float)
        return numpy.array(values)

    @property
    def names(self) -> list[str]:
        """Names of the rows: column `name`. AttributeError if they have none."""
        if "name" not in self.columns:
            raise AttributeError("the rows of this table have no names")
        return [row["name"] for row in self._rows]

    def find(self, name: str) -> dict[str, Any]:
        """The row of that name; KeyError."""
        for row in self._rows:
            if row.get("name") == name:
                return row
        raise KeyError(f"no row is called {name!r}")

    def to_pandas(self) -> pd.DataFrame:
        """All columns, unknown numbers as NaN."""
        import pandas
        return pandas.DataFrame({name: self._column(name) for name in self.columns}, columns=list(self.columns))

    def _cells(self) -> list[list[Any]]:
        return [[row[name] for name in self._shown] for row in self._rows[:_SHOWN]]

    def __repr__(self) -> str:
        if not self._rows:
            return f"<no {self._title or 'rows'}>"
        more = f"\n… and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return _show.text_table(self._shown, self._cells()) + more

    def _repr_html_(self) -> str:
        return _show.html_table(self._title, self._shown, self._cells(), max(len(self) - _SHOWN, 0))


_BLOCK_COLUMNS = tuple(dict.fromkeys(("name", "num_calls", "num_non_empty_calls", *_wattle.BLOCK_COLUMNS, "method",
                                      "resolved", "compute_time", "energy", "resource_usage", "units")))
_BLOCK_SHOWN = ("name", "num_calls", "total_s", "mean_s", "cpu_s", "total_j", "error_j", "mean_j")


def blocks_table(blocks: Sequence[Mapping[str, Any]]) -> Table:
    """The code_block_results of `wattle blocks --format json`, with each block's figures of time and energy as further
    columns: times in s (total_s adds up the calls, active_s counts no time twice), energies in J of the target while the block
    ran, inner blocks included (self_j: without them)."""
    return Table([_block(block) for block in blocks], _BLOCK_COLUMNS, shown=_BLOCK_SHOWN, title="code blocks")


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    columns = dict.fromkeys(_BLOCK_COLUMNS)
    times = {f"{name}_s": value for name, value in block["compute_time"].items()}
    return {**columns, **times, **(block.get("energy") or {}), "units": [], **block}
