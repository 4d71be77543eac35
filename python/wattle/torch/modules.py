"""The measurable modules of a model, and those replaced by torch.compile."""
from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Iterator, Mapping, Union

import torch
from torch.nn.parameter import is_lazy

Model = Union[torch.nn.Module, Mapping[str, torch.nn.Module]]


@dataclass
class Part:
    """A module to measure, under the first of its names."""

    name: str
    module: torch.nn.Module
    inside: list[torch.nn.Module] = field(default_factory=list)  # : enclosing modules
    is_compiled: bool = False  # : as one region, in which modules cannot be distinguished

    @property
    def type(self) -> str:
        """Class of the module, for a compiled one that of the compiled module."""
        if not self.is_compiled:
            return type(self.module).__name__
        return f"{type(getattr(self.module, '_orig_mod', self.module)).__name__} (compiled)"


@dataclass
class Parts:
    parts: list[Part]
    compiled_in_place: list[torch.nn.Module]  #: by module.compile()
    compiled: list[str]  #: names of compiled modules, of either kind


def find(model: Model, inside_compiled: bool) -> Parts:
    """Modules in the order of named_modules(); those inside a compiled module only on request."""
    found: dict[torch.nn.Module, Part] = {}
    compiled, in_place = [], []
    hidden: set[torch.nn.Module] = set()
    for name, module in _named(model):
        if module in found or module in hidden:
            continue
        found[module] = Part(name, module)
        by_wrapper, by_itself = _is_wrapper(module), module.__dict__.get("_compiled_call_impl") is not None
        if not by_wrapper and not by_itself:
            continue
        found[module].is_compiled = not inside_compiled
        compiled.append(name or found[module].type)
        if not inside_compiled:
            hidden.update(inner for inner in module.modules() if inner is not module)
            if by_itself:
                in_place.append(module)
    for part in found.values():
        for inner in part.module.modules():
            if inner in found and inner is not part.module:
                found[inner].inside.append(part.module)
    return Parts(list(found.values()), in_place, compiled)


def _named(model: Model) -> Iterator[tuple[str, torch.nn.Module]]:
    if isinstance(model, torch.nn.Module):
        yield from model.named_modules()  # pyright: ignore[reportAttributeAccessIssue]
        return
    if not isinstance(model, Mapping) or not model or not all(
            isinstance(name, str) and isinstance(one, torch.nn.Module) for name, one in model.items()):
        raise TypeError("layers() requires a torch.nn.Module, or a dict of names and modules: "
                        'layers({"generator": G, "discriminator": D})')
    for name, one in model.items():
        yield from one.named_modules(prefix=name)


def _is_wrapper(module: torch.nn.Module) -> bool:
    """Whether torch.compile(module) made it."""
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    kind = getattr(eval_frame, "OptimizedModule", None)
    return kind is not None and isinstance(module, kind)


def count_parameters(parts: list[Part]) -> list[int]:
    """Parameters by their module; tied ones belong to the first module. Those of lazy modules exist after their first call."""
    seen: set[int] = set()
    counts = []
    for part in parts:
        own = {id(one): one for one in part.module.parameters(recurse=False) if id(one) not in seen}
        seen.update(own)
        counts.append(sum(one.numel() for one in own.values() if not is_lazy(one)))
    return counts
