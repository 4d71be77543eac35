"""Tensors inside a module's inputs and outputs."""
from __future__ import annotations

import dataclasses
import types
from itertools import islice
from typing import Any, Iterable

import torch

DEPTH_MOST = 6
ITEMS_MOST = 10_000  # : items of one level; data in Python's own numbers and object graphs may be unlimited
_PLAIN = (int, float, bool, str, bytes, type(None))
_CLOSED = (type, types.ModuleType, torch.nn.Module)


def find(value: Any, found: list[torch.Tensor]) -> None:
    """Appends the tensors in `value` to `found`: tuples, lists, dicts (including Hugging Face's outputs), dataclasses, and the
    attributes of other objects, some levels deep, the outermost first. Runs no code of theirs."""
    level: list[Any] = [value]
    seen: dict[int, Any] = {}  # by id, which is unique as long as the object is kept
    for _ in range(DEPTH_MOST):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, torch.Tensor):
                found.append(one)
            elif not isinstance(one, _PLAIN) and id(one) not in seen and len(inner) < ITEMS_MOST:
                seen[id(one)] = one
                inner.extend(islice(_inside(one), ITEMS_MOST - len(inner)))
        if not inner:
            return
        level = inner


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    if isinstance(value, dict):
        return dict.values(value)
    if isinstance(value, _CLOSED):
        return ()
    if isinstance(getattr(value, "__dict__", None), dict):
        return list(vars(value).values())
    if dataclasses.is_dataclass(value):  # of slots
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return ()
