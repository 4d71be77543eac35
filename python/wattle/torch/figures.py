"""From the recording to rows: the energy of CPUs and memory by spans, that of GPUs by the events in their streams."""
from __future__ import annotations

import json
import math
from array import array
from dataclasses import dataclass
from typing import Any, Iterable, NamedTuple, Optional, Sequence

from . import cuda
from .rows import OUTSIDE, Row, known


@dataclass
class Measured:
    """A measured module. Its columns of the timeline are 2 i + 1, forward, and 2 i + 2, backward."""

    name: str
    type: str
    parameters: int = 0
    calls: int = 0


@dataclass
class Result:
    """Results of layers() after stop(); None is unknown."""

    rows: list[Row]
    error_j: Optional[float] = None
    estimated: Optional[bool] = None
    report: Optional[str] = None
    run_file: Optional[str] = None


class Share(NamedTuple):
    """Energy of a column, or of a module (all its columns), from Run.divide."""

    time_s: float
    energy_j: float
    error_j: float


class Divided:
    """One division of the run: by columns, and by modules, outside = 0."""

    def __init__(self, shares: Sequence[Any], n_columns: int) -> None:
        self.columns = [Share(*share) for share in shares[:n_columns]]
        self.modules = [Share(*share) for share in shares[n_columns:]]


def make(measured: Sequence[Measured], numbers: dict[str, int], run: Optional[Any], pieces: dict[int, cuda.Pieces],
         notes: list[str]) -> Result:
    """Rows of `measured`; `numbers`: column of each span name; `pieces`: intervals of torch's devices."""
    if run is None:
        return Result(_unknown(measured))
    of = _columns_of_called(measured)
    numbers = {name: of[column] for name, column in numbers.items()}
    for each in pieces.values():
        each.column = array("i", (of[column] for column in each.column))
    maker = _Maker(measured, numbers, run, pieces, notes)
    report = run.report_json()
    energy = json.loads(report)["energy"]
    return Result(maker.rows(), energy["target_error_j"], energy["provenance"] == "estimated", report, run.path)


def _columns_of_called(measured: Sequence[Measured]) -> list[int]:
    """Which row reports the time of each column. A module that was never called may still have some: others use its parameters
    (MultiheadAttention those of out_proj), whose gradients are computed there. It counts for the enclosing module."""
    places = {one.name: i for i, one in enumerate(measured) if one.calls > 0}
    columns = [0]
    for one in measured:
        name = one.name
        while name not in places and name:
            name = name.rpartition(".")[0]
        i = places.get(name)
        columns += [0, 0] if i is None else [2 * i + 1, 2 * i + 2]
    return columns


def _unknown(measured: Sequence[Measured]) -> list[Row]:
    rows = [Row(one.name, one.type, one.calls, None, None, None, None, parameters=one.parameters)
            for one in measured if one.calls > 0]
    return rows + [Row(OUTSIDE, "", 0, None, None, None, None)]


def _together(pieces: Iterable[cuda.Pieces]) -> cuda.Pieces:
    together = cuda.Pieces()
    for each in pieces:
        together.extend(each)
    return together


class _Maker:
    """Divides a run, and makes rows of it. Times are the GPUs' if there are any, else the host's."""

    def __init__(self, measured: Sequence[Measured], numbers: dict[str, int], run: Any, pieces: dict[int, cuda.Pieces],
                 notes: list[str]) -> None:
        self._measured = measured
        self._n = 2 * len(measured) + 1
        self._groups = [0] + [i // 2 + 1 for i in range(self._n - 1)]
        self._gpus = self._domains(run, pieces, notes)
        self._host = Divided(run.divide_spans(numbers, self._n, without=list(self._gpus), groups=self._groups), self._n)
        self._device = {name: self._divide(run, each, name) for name, each in self._gpus.items()}
        self._times = self._host if not pieces else self._divide(run, _together(pieces.values()), None)

    def _divide(self, run: Any, pieces: cuda.Pieces, domain: Optional[str]) -> Divided:
        return Divided(run.divide(pieces.begin_ns, pieces.end_ns, pieces.column, self._n, domain=domain,
                                  groups=self._groups), self._n)

    @staticmethod
    def _domains(run: Any, pieces: dict[int, cuda.Pieces], notes: list[str]) -> dict[str, cuda.Pieces]:
        """Intervals of the GPUs whose energy is in the run."""
        found: dict[str, cuda.Pieces] = {}
        for index, each in pieces.items():
            name = cuda.domain_of(run.devices(), index)
            if name is None:
                notes.append(f"no counter is known to be that of cuda:{index}: "
                             "its energy is not divided among the layers")
            else:
                found[name] = each
        return found

    def rows(self) -> list[Row]:
        return [self._row(i, one) for i, one in enumerate(self._measured) if one.calls > 0] + [self._outside()]

    def _row(self, i: int, one: Measured) -> Row:
        forward, backward = 2 * i + 1, 2 * i + 2
        times = self._times.columns
        row = Row(one.name, one.type, one.calls, times[forward].time_s, times[backward].time_s, None, None,
                  parameters=one.parameters)
        row.forward_host_s, row.backward_host_s = (self._host.columns[c].time_s for c in (forward, backward))
        row.forward_j, row.backward_j = (
            known(self._energy(lambda divided, c=c: divided.columns[c]).energy_j) for c in (forward, backward))
        return self._energies(row, i + 1)

    def _outside(self) -> Row:
        row = Row(OUTSIDE, "", 0, self._times.columns[0].time_s, 0.0, None, None)
        row.forward_host_s, row.backward_host_s = self._host.columns[0].time_s, 0.0
        row = self._energies(row, 0)
        row.forward_j, row.backward_j = row.energy_j, None if row.energy_j is None else 0.0
        return row

    def _energies(self, row: Row, group: int) -> Row:
        energy = self._energy(lambda divided: divided.modules[group])
        gpus = [divided.modules[group].energy_j for divided in self._device.values()]
        row.energy_j, row.error_j = known(energy.energy_j), known(energy.error_j)
        row.cpu_j = known(self._host.modules[group].energy_j)
        row.gpu_j = known(math.fsum(gpus)) if gpus else None
        row.resolved = None if row.energy_j is None or row.error_j is None else row.error_j < abs(row.energy_j)
        return row

    def _energy(self, pick: Any) -> Share:
        """The sum over CPUs, memory and GPUs; an unknown part is missing, the sum is still known."""
        shares = [share for share in (pick(divided) for divided in (self._host, *self._device.values()))
                  if not math.isnan(share.energy_j)]
        if not shares:
            return Share(math.nan, math.nan, math.nan)
        error_j = math.hypot(*(share.error_j for share in shares))
        return Share(math.nan, sum(share.energy_j for share in shares), error_j)
