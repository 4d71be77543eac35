"""Runs a model and restores its state: weights, buffers, modes, attributes, random numbers."""
import contextlib
import random
import sys
from typing import Any, Iterator, Optional

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ._origin import storage_key

#: their results have the same shape in either mode, and in training they would change statistics or draw random numbers
_SAME_SHAPE_IN_EVAL = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


class Untouched:
    """Context manager around a forward pass of `model` in `mode` ("same", "train", "eval")."""

    def __init__(self, model: nn.Module, mode: str) -> None:
        self._model = model
        self._mode = mode
        self._undo = contextlib.ExitStack()
        self._written: dict[Optional[int], list[torch.Tensor]] = {}

    def __enter__(self) -> "Untouched":
        with contextlib.ExitStack() as undo:  # for the case that something of this fails
            undo.enter_context(_random_state())
            for module in self._model.modules():
                undo.callback(_restore, module, dict(module.__dict__), _inside(module),
                              getattr(module, "training", None))
            self._keep_buffers(undo)
            for parameter in self._model.parameters():
                undo.callback(_restore_parameter, parameter, parameter.requires_grad, parameter.grad)
            self._set_mode()
            self._undo = undo.pop_all()
        for parameter in self._model.parameters():
            if not is_lazy(parameter):
                for tensor in (parameter, parameter.grad) if parameter.grad is not None else (parameter,):
                    self._written.setdefault(storage_key(tensor), []).append(tensor)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._undo.close()

    def before_write(self, tensor: torch.Tensor) -> None:
        """Called before an operator changes `tensor`: parameters and gradients are saved only then, as
        nn.Embedding(max_norm=…) changes them."""
        for changed in self._written.pop(storage_key(tensor), ()):
            self._undo.callback(_write_back, changed, changed.detach().clone())

    def _set_mode(self) -> None:
        if self._mode != "same":
            self._model.train(self._mode == "train")
        for module in self._model.modules():
            if isinstance(module, _SAME_SHAPE_IN_EVAL):
                module.training = False

    def _keep_buffers(self, undo: contextlib.ExitStack) -> None:
        for buffer in self._model.buffers():
            if not is_lazy(buffer):
                undo.callback(_write_back, buffer, buffer.detach().clone())


def _write_back(tensor: torch.Tensor, kept: torch.Tensor) -> None:
    if tensor.is_meta or tensor.layout != torch.strided or torch.equal(tensor.detach(), kept):
        return
    with torch.no_grad():
        tensor.copy_(kept)


def _restore_parameter(parameter: nn.Parameter, requires_grad: bool, grad: Optional[torch.Tensor]) -> None:
    """For models that freeze or differentiate in forward."""
    if parameter.requires_grad != requires_grad:
        parameter.requires_grad = requires_grad
    if parameter.grad is not grad:
        parameter.grad = grad


def _inside(module: nn.Module) -> list[tuple[Any, list[Any]]]:
    """Attributes that are lists and dicts, and their contents: parameters, hooks, a model's own caches."""
    return [(value, _contents(value)) for value in module.__dict__.values() if isinstance(value, (dict, list))]


def _contents(container: Any) -> list[Any]:
    return list(container.items()) if isinstance(container, dict) else list(container)


def _restore(module: nn.Module, attributes: dict[str, Any], inside: list[tuple[Any, list[Any]]],
             training: Optional[bool]) -> None:
    """Attributes by identity. ScriptModules keep theirs in C++: only their mode is restored, which frozen ones do not have."""
    if training is not None and module.training != training:
        module.training = training
    if isinstance(module, torch.jit.ScriptModule):
        return
    for container, items in inside:
        if not _are_same(_contents(container), items):
            container.clear()
            (container.update if isinstance(container, dict) else container.extend)(items)
    for name in [name for name in module.__dict__ if name not in attributes]:
        del module.__dict__[name]
    module.__dict__.update(attributes)


def _are_same(contents: list[Any], items: list[Any]) -> bool:
    """By identity, for a dict's items too: tensors compare element by element."""
    return list(map(_identity, contents)) == list(map(_identity, items))


def _identity(item: Any) -> Any:
    return tuple(map(id, item)) if isinstance(item, tuple) else id(item)


@contextlib.contextmanager
def _random_state() -> Iterator[None]:
    """The generators of PyTorch, Python and, if loaded, NumPy."""
    python = random.getstate()
    numpy = sys.modules.get("numpy")
    array = numpy.random.get_state() if numpy is not None else None
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(python)
            if numpy is not None:
                numpy.random.set_state(array)
