"""The large tables of a run as arrays over the memory that the run was loaded into, without copies."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence

from . import _show, _wattle

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from typing_extensions import TypeAlias

    Masked: TypeAlias = np.ma.MaskedArray[Any, np.dtype[Any]]

Clock = Callable[[Any], Any]  #: CLOCK_MONOTONIC ns (array) to a pandas index


def _floats(array: Any) -> Any:
    """Values of a masked array, NaN where masked."""
    return array.astype(float).filled(float("nan"))


class Columns(Mapping[str, "Masked"]):
    """Columns by name, as masked arrays of int64 over the run's own memory (read-only): unknown values are masked.

        run.samples["main_rss_bytes"].max()
        run.samples.unit["main_rss_bytes"]      # "bytes", as the name ends
        run.samples.buffer("t_ns")              # without numpy: a memoryview, missing values are wattle.MISSING

    An array keeps the run in memory as long as it exists. The values under the mask are wattle.MISSING.
"""

    def __init__(self, columns: Sequence[_wattle.Column], clock: Optional[Clock] = None, what: str = "samples") -> None:
        self._columns = {column.name: column for column in columns}
        self._arrays: dict[str, Masked] = {}
        self._clock = clock
        self._what = what
        self.unit: Mapping[str, str] = {name: column.unit for name, column in self._columns.items()}
        self.meaning: Mapping[str, str] = {name: column.meaning for name, column in self._columns.items()}

    def buffer(self, name: str) -> memoryview:
        """The numbers without numpy, read-only; those of spans have strides."""
        # The buffer protocol has no type before Python 3.12.
        return memoryview(self._find(name).buffer)  # type: ignore[arg-type]

    def _find(self, name: str) -> _wattle.Column:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; valid: {', '.join(self)}") from None

    def __getitem__(self, name: str) -> Masked:
        if name not in self._arrays:
            import numpy
            data = numpy.asarray(self._find(name).buffer)
            missing = data == _wattle.MISSING if data.dtype == numpy.int64 else numpy.ma.nomask
            self._arrays[name] = numpy.ma.masked_array(data, mask=missing, copy=False)  # type: ignore[no-untyped-call]
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Number of columns; n is the number of rows."""
        return len(self._columns)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values())).buffer) if self._columns else 0

    @property
    def units(self) -> Mapping[str, str]:
        """The same as unit."""
        return self.unit

    def _numbers(self, name: str) -> Any:
        """For a data frame: NaN where unknown."""
        array = self[name]
        return _floats(array) if array.mask.any() else array.data

    def to_pandas(self) -> pd.DataFrame:
        """All columns, NaN where unknown, by wall clock (UTC) where the run has one, else by time since boot."""
        import pandas
        frame = pandas.DataFrame({name: self._numbers(name) for name in self if name != "t_ns"})
        if self._clock is not None and "t_ns" in self:
            frame.index = self._clock(self["t_ns"].data)
        return frame

    def __repr__(self) -> str:
        return f"<{self.n} {self._what} of {len(self)} columns: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        rows = [(name, column.unit, column.meaning) for name, column in self._columns.items()]
        return _show.html_table(f"{self.n} {self._what}", ("column", "unit", "meaning"), rows)


class Spans(Columns):
    """Table span: id, parent, begin_ns, end_ns, cpu_ns, pid, tid, name_index, category_index, kind, close; and `name`, made
    from name_index. `meaning` explains the numbers of kind and close."""

    def __init__(self, columns: Sequence[_wattle.Column], names: list[str], clock: Optional[Clock] = None) -> None:
        super().__init__(columns, clock, "spans")
        self.names = names  # : the lists that name_index and category_index refer to

    def __getitem__(self, name: str) -> Masked:
        if name != "name":
            return super().__getitem__(name)
        array: Masked = self.name
        return array

    @property
    def name(self) -> Any:
        """The name of each span: an array of str."""
        import numpy
        return numpy.array(self.names, dtype=object)[numpy.asarray(self._find("name_index").buffer)]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each span, with its name first, its seconds (NaN: never ended) and its begin as index."""
        frame = super().to_pandas()
        frame.insert(0, "name", self.name)
        frame["seconds"] = _floats(self["end_ns"] - self["begin_ns"]) / 1e9
        if self._clock is not None:
            frame.index = self._clock(self["begin_ns"].data)
        return frame
