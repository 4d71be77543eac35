"""Origin of a tensor, which determines whether a product is one "of weights".

Shapes cannot distinguish x @ W from Q @ K. So each tensor of a forward pass carries its origin: an operator's result has
its inputs' origin unless all of them are weights; then it is still a weight, reshaped, cast, scaled, normalised or merged.
"""
import enum
import weakref
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional

import torch
from torch.nn.parameter import is_lazy


class Kind(enum.IntEnum):
    """What a tensor was computed from; the last in this order determines a result."""
    CONSTANT = 0   #: made in the forward pass from shapes alone, as torch.arange(n)
    BUFFER = 1     # : stored in the model, registered or not, and no parameter
    PARAMETER = 2
    INPUT = 3      # : depends on the model's input


class Origin(NamedTuple):
    kind: Kind
    weight: Optional[int] = None    # : id() of the parameter, for a derived one the first
    is_product: bool = False        #: a sum over products of weights: an activation, as soon as it leaves its module
    is_argument: bool = False       # : a parameter that a module got as its input, such as learned queries


BUFFER = Origin(Kind.BUFFER)
INPUT = Origin(Kind.INPUT)


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in nested arguments, packed sequences and dataclass-like outputs included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 8 or value is None or isinstance(value, (str, bytes, int, float)):
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name, None), depth + 1)
    elif hasattr(value, "tensors"):  # torchvision's ImageList, DETR's NestedTensor
        yield from tensors_in(value.tensors, depth + 1)


def combine(origins: Iterable[Origin]) -> Origin:
    """The origin of a result from those of its operands."""
    found = list(origins)
    kind = max((origin.kind for origin in found), default=Kind.CONSTANT)
    if kind == Kind.INPUT:
        return INPUT
    if kind != Kind.PARAMETER:
        return Origin(kind)
    weights = [origin for origin in found if origin.kind == Kind.PARAMETER]
    return Origin(kind, weights[0].weight, any(o.is_product for o in weights), any(o.is_argument for o in weights))


def storage_key(tensor: torch.Tensor) -> Optional[int]:
    """The memory of a tensor: views have that of their base, meta tensors too; None for sparse ones."""
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        return int(storage._cdata)
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return None


class Origins:
    """The origin of every living tensor: by its identity, and for other views of weights (`.data`) by its memory."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], Origin]] = {}
        self._memory: dict[int, Origin] = {}
        for buffer in model.buffers():
            self._enter(buffer, BUFFER)
        for parameter in model.parameters():
            self._enter(parameter, Origin(Kind.PARAMETER, id(parameter)))

    def _enter(self, tensor: torch.Tensor, origin: Origin) -> None:
        self[tensor] = origin
        key = None if is_lazy(tensor) else storage_key(tensor)
        if key is not None:
            self._memory[key] = origin

    def __setitem__(self, tensor: torch.Tensor, origin: Origin) -> None:
        key = id(tensor)
        self._known[key] = (weakref.ref(tensor, lambda _: self._known.pop(key, None)), origin)

    def __getitem__(self, tensor: torch.Tensor) -> Origin:
        known = self._known.get(id(tensor))
        if known is None or known[0]() is not tensor:
            return self._by_memory(tensor)
        origin = known[1]
        if origin.kind == Kind.BUFFER:  # a cache may hold activations by now
            return max(origin, self._in_memory(tensor) or origin, key=lambda one: one.kind)
        return origin

    def _in_memory(self, tensor: torch.Tensor) -> Optional[Origin]:
        key = storage_key(tensor)
        return None if key is None else self._memory.get(key)

    def _by_memory(self, tensor: torch.Tensor) -> Origin:
        origin = self._in_memory(tensor)
        if origin is not None:
            return origin
        if isinstance(tensor, torch.nn.Parameter):  # made while the model ran
            return Origin(Kind.PARAMETER, id(tensor))
        return BUFFER  # not made in this pass: an attribute that is not registered, a constant of a frozen script

    def written(self, tensor: torch.Tensor, origin: Origin) -> None:
        """An operator wrote into this tensor: a buffer that received an activation is no weight any more."""
        owner = self._in_memory(tensor)
        if owner is not None and owner.kind == Kind.PARAMETER:
            return
        self[tensor] = origin
        key = storage_key(tensor)
        if owner is not None and key is not None and origin.kind == Kind.INPUT:
            self._memory[key] = origin
