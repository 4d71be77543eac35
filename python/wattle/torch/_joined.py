"""Energy of layers relative to their computation: joules per 10^9 multiply-adds."""
from dataclasses import asdict, dataclass, fields
from typing import Any, Iterable, Mapping, Optional

from .. import _show
from ._summary import Complexity, Layer
from .rows import add_up


@dataclass
class JoinedRow:
    """A measured layer. Energies are sums over all calls. None: unknown, or the divisor is 0."""
    name: str
    type: str
    calls: int
    energy_j: Optional[float]        #: forward plus, in training, backward
    error_j: Optional[float]
    share: Optional[float]           #: of the energy of all rows, 0 to 1
    multiply_adds: Optional[int]     #: of all measured forward calls
    multiply_adds_share: Optional[float]
    j_per_gmac: Optional[float]      #: energy_j per 10^9 multiply-adds of the forward pass
    error_j_per_gmac: Optional[float]
    forward_j_per_gmac: Optional[float]  #: forward energy only


COLUMNS = tuple(field.name for field in fields(JoinedRow))
_SHOWN = ("name", "type", "calls", "energy_j", "error_j", "share", "multiply_adds", "j_per_gmac")


class Joined:
    """Rows of a measurement with their multiply-adds, in the same order; "outside layers" is last."""

    def __init__(self, rows: list[JoinedRow]) -> None:
        self.rows = rows

    def to_dict(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        import pandas
        return pandas.DataFrame(self.to_dict(), columns=list(COLUMNS)).astype({"multiply_adds": "Int64"})

    def _shown(self) -> list[list[Any]]:
        return [[row.name or "(model)", *(getattr(row, name) for name in _SHOWN[1:])] for row in self.rows]

    def __str__(self) -> str:
        return _show.text_table(_SHOWN, self._shown())

    def _repr_html_(self) -> str:
        return _show.html_table("joules per 10^9 multiply-adds", _SHOWN, self._shown())


def join(found: Complexity, measured: Any, scale: float) -> Joined:
    """The rows of `measured` (wattle.torch.layers, or an iterable of such rows) with the multiply-adds of `found`."""
    rows = list(getattr(measured, "rows", measured))
    names = {_get(row, "name") for row in rows}
    work = _work(found.modules, names)
    calls = {layer.name: layer.calls for layer in found.modules}
    done = [_all_calls(work.get(_get(row, "name")), calls.get(_get(row, "name")), _get(row, "calls"), scale)
            for row in rows]
    total_j = add_up(_get(row, "energy_j") for row in rows)
    total = add_up(count for row, count in zip(rows, done) if _get(row, "name") in work)
    return Joined([_joined(row, count, total_j, total) for row, count in zip(rows, done)])


def _work(modules: Iterable[Layer], measured: set[str]) -> dict[str, Optional[int]]:
    """Multiply-adds by name. A module that is never called (out_proj of nn.MultiheadAttention) has no time of its own.
    Its multiply-adds count for the nearest enclosing module that is called."""
    work = {layer.name: layer.multiply_adds for layer in modules}
    called = {layer.name for layer in modules if layer.calls}
    for layer in modules:
        if layer.calls or layer.name in measured or layer.multiply_adds == 0:
            continue
        around = layer.name
        while around and around not in called:
            around = around.rpartition(".")[0]
        here = work.get(around)
        work[around] = None if here is None or layer.multiply_adds is None else here + layer.multiply_adds
    return work


def _all_calls(count: Optional[int], calls: Optional[int], measured_calls: int, scale: float) -> Optional[int]:
    if count is None or not calls:
        return count if count == 0 else None
    return round(count * measured_calls / calls * scale)


def _joined(row: Any, count: Optional[int], total_j: Optional[float], total: Optional[float]) -> JoinedRow:
    energy_j, error_j = _get(row, "energy_j"), _get(row, "error_j")
    return JoinedRow(
        name=_get(row, "name"), type=_get(row, "type"), calls=_get(row, "calls"), energy_j=energy_j, error_j=error_j,
        share=_ratio(energy_j, total_j), multiply_adds=count, multiply_adds_share=_ratio(count, total),
        j_per_gmac=_per_gmac(energy_j, count), error_j_per_gmac=_per_gmac(error_j, count),
        forward_j_per_gmac=_per_gmac(_get(row, "forward_j"), count))


def _per_gmac(energy_j: Optional[float], count: Optional[int]) -> Optional[float]:
    return _ratio(energy_j, None if count is None else count / 1e9)


def _ratio(value: Optional[float], of: Optional[float]) -> Optional[float]:
    return None if value is None or not of else value / of


def _get(row: Any, name: str) -> Any:
    """A field of a row of layers(), a dict or a plain object; None if missing."""
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
