"""Result of `complexity`: figures of the model and a row for each layer, as text, HTML, JSON and data frame."""
import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence

from .. import _show
from ._kept import keep
from .rows import add_up

if TYPE_CHECKING:
    from ._joined import Joined

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Readable:
    """row.name and row["name"] are the same, and dict(row) works."""

    def keys(self) -> list[str]:
        return [one.name for one in fields(self)]  # pyright: ignore[reportArgumentType]  # of dataclasses

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys():
            raise KeyError(f"unknown key {key!r}; valid: {', '.join(self.keys())}")
        return getattr(self, key)


@dataclass
class Layer(Readable):
    """One module. Figures are its own: those of inner modules are in their own rows, so that columns add up."""
    name: str                       #: as in named_modules(); "" is the model itself
    type: str                       #: name of its class
    depth: int                      #: 0 is the model
    parameters: int                 #: elements of parameters, each parameter in the first layer that has it
    trainable_parameters: int       #: … of those that require a gradient
    shared_parameters: int          # : elements of parameters that an earlier row already contains
    multiply_adds: Optional[int]    # : with weights, one forward pass, all calls; None: unknown
    other_multiply_adds: Optional[int]  #: without weights: attention's Q K' and A V
    calls: Optional[int]            #: in one forward pass; None: none was made
    kernel: Optional[list[int]]     #: kernel_size of convolutions and pooling
    output_shape: Optional[list[int]]   # : of the first tensor that its first call returned; None: it was not called
    output_bytes: int               #: first tensors of all calls
    is_leaf: bool = True            # : contains no modules


@dataclass
class Memory:
    """Bytes by torchinfo's rule: outputs of layers with parameters twice, for the values and their gradients."""
    input_bytes: int
    forward_backward_bytes: int
    parameter_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.input_bytes + self.forward_backward_bytes + self.parameter_bytes


@dataclass
class Complexity(Readable):
    """Parameters and multiply-adds of a model for one input.

    Attributes: parameters, trainable_parameters (elements; shared ones once), multiply_adds (products with weights
    in one forward pass, whole batch, no biases; None: unknown), known_multiply_adds (of the known layers),
    other_multiply_adds (products between activations; None: unknown), layers (rows with figures of their own),
    modules (all rows, containers included), memory, unknown ({layer: {operator: calls}}).
"""
    model: str
    parameters: int
    trainable_parameters: int
    modules: list[Layer]
    memory: Memory
    unknown: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def layers(self) -> list[Layer]:
        return [row for row in self.modules if row.is_leaf or row.parameters or row.shared_parameters
                or row.multiply_adds != 0 and row.multiply_adds is not None or row.other_multiply_adds
                or row.name in self.unknown]

    @property
    def multiply_adds(self) -> Optional[int]:
        return add_up(row.multiply_adds for row in self.modules)

    @property
    def known_multiply_adds(self) -> int:
        return sum(row.multiply_adds or 0 for row in self.modules)

    @property
    def other_multiply_adds(self) -> Optional[int]:
        return add_up(row.other_multiply_adds for row in self.modules)

    @property
    def known_other_multiply_adds(self) -> int:
        return sum(row.other_multiply_adds or 0 for row in self.modules)

    def keys(self) -> list[str]:
        return [*super().keys(), "layers", "multiply_adds", "known_multiply_adds", "other_multiply_adds",
                "known_other_multiply_adds"]

    def to_dict(self) -> dict[str, Any]:
        """The structure of `wattle model --format json`, with more keys."""
        return {
            "model": self.model, "parameters": self.parameters, "trainable_parameters": self.trainable_parameters,
            "multiply_adds": self.multiply_adds, "known_multiply_adds": self.known_multiply_adds,
            "other_multiply_adds": self.other_multiply_adds,
            "known_other_multiply_adds": self.known_other_multiply_adds,
            "memory": {**asdict(self.memory), "total_bytes": self.memory.total_bytes},
            "unknown": self.unknown, "layers": [_without(asdict(row), "is_leaf") for row in self.layers]}

    def to_json(self, indent: Optional[int] = None) -> str:
        return json.dumps(self.to_dict(), indent=indent)

    def to_pandas(self) -> Any:
        """A data frame, a row for each layer; unknown figures are <NA>."""
        import pandas
        frame = pandas.DataFrame([_without(asdict(row), "is_leaf") for row in self.layers])
        counts = ["multiply_adds", "other_multiply_adds", "calls"]
        return frame.astype({name: "Int64" for name in counts}) if len(frame) else frame

    def meta(self, layers: bool = False) -> str:
        """The figures as `KEY=VALUE` for `wattle run --meta` and the trackers: `model_summary={…}`. `wattle export --format
        aipowermeter` makes model_summary.json from it, so it contains AIPowerMeter's names as well."""
        facts = {**self.to_dict(), "total_params": self.parameters, "total_mult_adds": self.multiply_adds}
        if not layers:
            del facts["layers"]
        return "model_summary=" + json.dumps(facts, separators=(",", ":"))

    def keep(self, run_file: Any, layers: bool = True) -> None:
        """Writes `meta(layers)` into a complete run file, as `wattle run --meta` would have done."""
        key, _, value = self.meta(layers).partition("=")
        keep(run_file, "meta." + key, value)

    def join(self, measured: Any, *, scale: float = 1.0) -> "Joined":
        """The rows of wattle.torch.layers with their multiply-adds: joules per 10^9 multiply-adds and shares.

        scale: size of a measured batch relative to the input here: 32 for batches of 32 if one image was counted.
"""
        from ._joined import join
        return join(self, measured, scale)

    def text(self, depth: Optional[int] = None) -> str:
        """The table; modules deeper than `depth` (0 is the model) are added to their containers."""
        rows = self.modules if depth is None else _folded(self.modules, depth)
        lines = _show.aligned([_HEAD, *(_cells(row) for row in rows)], _RIGHT)
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *(f"{key:<28}{value}" for key, value in self._totals())])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (f"<Complexity of {self.model}: {self.parameters:,} parameters, "
                f"{_number(self.multiply_adds)} multiply-adds>")

    def _repr_html_(self) -> str:
        table = _show.html_of(_HEAD, [_cells(row) for row in self.modules], _RIGHT)
        return table + _show.html_of(("", ""), list(self._totals()), (False, False))

    def _totals(self) -> Iterable[tuple[str, str]]:
        yield "Parameters", f"{self.parameters:,}"
        yield "… trainable", f"{self.trainable_parameters:,}"
        yield "Multiply-adds", _scaled(self.multiply_adds)
        if self.unknown:
            yield "… known part", _scaled(self.known_multiply_adds)
            for layer, operators in self.unknown.items():
                yield "… unknown", f"{layer or self.model}: {', '.join(operators)}"
        if self.other_multiply_adds != 0:
            yield "… between activations", _scaled(self.other_multiply_adds)
        memory = self.memory
        for key, value in (("Input", memory.input_bytes), ("Forward and backward", memory.forward_backward_bytes),
                           ("Parameters' memory", memory.parameter_bytes), ("Memory", memory.total_bytes)):
            yield key, f"{value / 1e6:,.2f} MB"


def _folded(modules: Sequence[Layer], depth: int) -> list[Layer]:
    rows: dict[str, Layer] = {}
    for row in modules:
        if row.depth <= depth:
            rows[row.name] = replace(row)
            continue
        around = rows[".".join(row.name.split(".")[:depth])]
        around.parameters += row.parameters
        around.shared_parameters += row.shared_parameters
        around.multiply_adds = add_up((around.multiply_adds, row.multiply_adds))
    return list(rows.values())


_HEAD = ("Layer", "Type", "Kernel", "Output shape", "Parameters", "Multiply-adds")
_RIGHT = (False, False, False, False, True, True)


def _cells(row: Layer) -> tuple[str, ...]:
    name = "  " * row.depth + row.name.rpartition(".")[2] if row.name else "(model)"
    shape = str(row.output_shape) if row.output_shape is not None else "n/a"
    kernel = "x".join(map(str, row.kernel)) if row.kernel else ""
    parameters = f"{row.parameters:,}" if row.parameters else "(shared)" if row.shared_parameters else "-"
    return name, row.type, kernel, shape, parameters, "-" if row.multiply_adds == 0 else _number(row.multiply_adds)


def _number(value: Optional[int]) -> str:
    return "n/a" if value is None else f"{value:,}"


def _scaled(value: Optional[int]) -> str:
    if value is None:
        return "n/a"
    size, unit = next(((size, unit) for size, unit in _UNITS if value >= size), (1, ""))
    return f"{value:,}" if size == 1 else f"{value:,} ({value / size:.3f} {unit})"


def _without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
