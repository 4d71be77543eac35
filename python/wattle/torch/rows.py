"""Measurement results: one row per layer."""
from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any, Iterable, Iterator, Optional, Sequence, TypeVar

from .. import _show

OUTSIDE = "outside layers"

Number = TypeVar("Number", int, float)


@dataclass
class Row:
    """A module's own time and energy; submodules have rows of their own. Times are in seconds, energies in joules; None
    is unknown. row['energy_j'] and row.energy_j are the same."""

    name: str  #: as in named_modules(); '': the model itself; 'outside layers': the rest of the program
    type: str  #: class of the module
    calls: int  #: number of forward calls
    forward_s: Optional[float]  #: for 'outside layers' its whole time
    backward_s: Optional[float]
    energy_j: Optional[float]
    error_j: Optional[float]  #: half of a 95 % interval
    forward_j: Optional[float] = None
    backward_j: Optional[float] = None
    cpu_j: Optional[float] = None  #: packages and memory
    gpu_j: Optional[float] = None
    forward_host_s: Optional[float] = None  #: time of the calling thread; with a GPU, forward_s is GPU time
    backward_host_s: Optional[float] = None
    parameters: int = 0  #: of the module itself, without submodules
    resolved: Optional[bool] = None  #: the error is smaller than the energy

    @property
    def time_s(self) -> Optional[float]:
        return None if self.forward_s is None or self.backward_s is None else self.forward_s + self.backward_s

    def __getitem__(self, key: str) -> Any:
        if key != "time_s" and key not in COLUMNS:
            raise KeyError(f"unknown column '{key}'; valid: {', '.join(COLUMNS)}")
        return getattr(self, key)

    def keys(self) -> list[str]:
        return list(COLUMNS)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)


COLUMNS = tuple(field.name for field in fields(Row))


def add_up(values: Iterable[Optional[Number]]) -> Optional[Number]:
    """Plain sum in order, bit-identical to adding up the column. None if a value is unknown."""
    total: Any = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def known(value: float) -> Optional[float]:
    return None if math.isnan(value) else value


#: columns stored in the run file, for the page of a report (docs/run-file.md)
_KEPT = ("name", "type", "calls", "parameters", "time_s", "energy_j", "error_j")


def kept(rows: Sequence[Row]) -> str:
    return json.dumps([{**{key: row[key] for key in _KEPT}, "is_outside": row is rows[-1]} for row in rows],
                      separators=(",", ":"))


# ---- display ----

_SHOWN = ("layer", "type", "calls", "forward ms", "backward ms", "energy J", "± J", "share")
_RIGHT = (False, False, True, True, True, True, True, True)


def _figure(value: Optional[float], factor: float = 1, digits: int = 4) -> str:
    return "n/a" if value is None else f"{value * factor:.{digits}g}" if value else "0"


def _cells(row: Row, total_j: Optional[float]) -> list[str]:
    share = None if row.energy_j is None or not total_j else row.energy_j / total_j
    outside, mark = row.name == OUTSIDE, _show.unresolved_mark(row.energy_j, row.error_j)
    return [row.name if row.name else "(model)", row.type, "" if outside else str(row.calls),
            _figure(row.forward_s, 1e3), "" if outside else _figure(row.backward_s, 1e3),
            _figure(row.energy_j), _figure(row.error_j, digits=2) + mark, "n/a"
            if share is None else f"{share:.1%}{mark}"]


def _head(total_s: Optional[float], total_j: Optional[float], estimated: bool) -> str:
    energy = "energy n/a" if total_j is None else f"{total_j:.4g} J{' (estimated)' if estimated else ''}"
    return f"{_figure(total_s)} s, {energy}"


def text(rows: Sequence[Row], total_s: Optional[float], total_j: Optional[float], estimated: bool,
         notes: Sequence[str]) -> str:
    cells = [_cells(row, total_j) for row in rows]
    lines = _show.aligned([_SHOWN, *cells], _RIGHT) + _show.unresolved_note(cells)
    return "\n".join([_head(total_s, total_j, estimated), ""] + lines + [""] * bool(notes) + list(notes))


def as_html(rows: Sequence[Row], total_s: Optional[float], total_j: Optional[float], estimated: bool,
            notes: Sequence[str]) -> str:
    table = _show.html_of(_SHOWN, [_cells(row, total_j) for row in rows], _RIGHT)
    below = "".join(f"<p>{_show.escape(note)}</p>" for note in notes)
    return f"<p>{_show.escape(_head(total_s, total_j, estimated))}</p>{table}{below}"
