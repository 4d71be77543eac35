"""Tensors inside whatever a module takes and gives."""
from __future__ import annotations

import dataclasses
from typing import Any, List, Mapping

import torch

DEPTH_MOST = 6
_PLAIN = (int, float, bool, str, bytes, type(None))


def find(value: Any, found: List[torch.Tensor], depth: int = 0) -> None:
    """Appends the tensors in `value` to `found`: tuples, lists, mappings (Hugging Face's outputs are some),
    dataclasses, and the attributes of other objects, some levels deep."""
    if isinstance(value, torch.Tensor):
        found.append(value)
        return
    if depth == DEPTH_MOST or isinstance(value, _PLAIN):
        return
    if isinstance(value, (tuple, list, set, frozenset)):
        items: Any = value
    elif isinstance(value, Mapping):
        items = value.values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, (type, torch.nn.Module)) or not hasattr(value, "__dict__"):
        return
    else:
        items = list(vars(value).values())
    for item in items:
        find(item, found, depth + 1)
