"""Inputs of a model, made from sizes in torchinfo's form, and their device."""
import copy
import reprlib
from numbers import Integral
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ._origin import tensors_in

Size = Sequence[Any]  #: (1, 3, 224, 224), or several of these
Dtypes = Union[None, torch.dtype, Sequence[torch.dtype], Mapping[str, torch.dtype]]


def device_of(model: nn.Module) -> torch.device:
    """That of the first parameter, else of the first buffer, else the CPU."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


def dtype_of(model: nn.Module) -> torch.dtype:
    """That of the first floating-point parameter: a model in half precision takes such input."""
    for parameter in model.parameters():
        if parameter.dtype.is_floating_point and parameter.dtype in (torch.float16, torch.bfloat16, torch.float64):
            return parameter.dtype
        if parameter.dtype.is_floating_point:
            break
    return torch.get_default_dtype()


def is_size(value: Any) -> bool:
    """One size: whole numbers only. () is that of a scalar."""
    return isinstance(value, (tuple, list, torch.Size)) and all(isinstance(n, Integral) for n in value)


def make_inputs(sizes: Union[Size, Mapping[str, Size]], dtypes: Dtypes, batch_dim: Optional[int], device: torch.device,
                default: torch.dtype) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keyword arguments of these sizes: floating-point ones random from 0 to 1, integers 0 (a valid index)."""
    if isinstance(sizes, Mapping):
        if not isinstance(dtypes, Mapping):
            dtypes = dict(zip(sizes, _listed(dtypes, len(sizes))))
        return (), {name: _make(size, dtypes.get(name), batch_dim, device, default) for name, size in sizes.items()}
    if not isinstance(sizes, (tuple, list, torch.Size)) or not sizes:
        if isinstance(sizes, torch.Tensor):
            raise TypeError(f"input_size: a tensor is not a size; give input_data=TENSOR, or its size, {tuple(sizes.shape)}")  # pyright: ignore[reportAttributeAccessIssue]
        raise TypeError(f"input_size: {reprlib.repr(sizes)} is not valid; give a size with its batch, as (1, 3, 224, 224), a "
                        "list of sizes, or a dict of sizes by argument name")
    each = [sizes] if is_size(sizes) else list(sizes)
    return tuple(_make(size, dtype, batch_dim, device, default)
                 for size, dtype in zip(each, _listed(dtypes, len(each)))), {}


def _listed(dtypes: Any, n: int) -> list[Optional[torch.dtype]]:
    if dtypes is None or isinstance(dtypes, torch.dtype):
        return [dtypes] * n
    if isinstance(dtypes, Mapping) or len(dtypes) != n:
        raise ValueError(f"dtypes: {dtypes!r} does not match {n} inputs; give one for each")
    return list(dtypes)


def _make(size: Size, dtype: Optional[torch.dtype], batch_dim: Optional[int], device: torch.device,
          default: torch.dtype) -> torch.Tensor:
    if not is_size(size):
        raise TypeError(f"input_size: {size!r} is not a size; give integers, such as (1, 3, 224, 224)")
    if any(n <= 0 for n in size):
        raise ValueError(f"input_size: {tuple(size)} has a dimension that is not positive")
    kind: torch.dtype = default if dtype is None else dtype
    if device.type == "meta":
        made = torch.empty(tuple(size), dtype=kind, device=device)
    elif kind.is_floating_point or kind.is_complex:
        made = torch.rand(tuple(size), generator=torch.Generator().manual_seed(0)).to(device, kind)
    else:
        made = torch.zeros(tuple(size), dtype=kind, device=device)
    return made if batch_dim is None else made.unsqueeze(batch_dim)


def given_inputs(data: Any, device: Optional[torch.device]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`input_data` in torchinfo's form: a tensor, a sequence of arguments or a dict of keyword arguments."""
    data = _moved(data, device)
    if isinstance(data, Mapping):
        return (), dict(data)
    if isinstance(data, (tuple, list)):
        return tuple(data), {}
    return (data,), {}


def _moved(value: Any, device: Optional[torch.device]) -> Any:
    """Arrays become tensors, tensors go to the device."""
    if isinstance(value, torch.Tensor):
        return value if device is None else value.to(device)
    if type(value).__module__ == "numpy" and hasattr(value, "__array__"):
        return _moved(torch.as_tensor(value), device)
    if isinstance(value, Mapping):
        return {name: _moved(item, device) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(item, device) for item in value)
    return value


def input_bytes(args: Any, kwargs: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_in((args, kwargs)))


def model_to_run(model: nn.Module, device: Optional[torch.device]) -> nn.Module:
    """The model itself, or a copy if running it would change it: on another device, or with lazy parameters.

    A copy for the device "meta" takes no memory for weights.
"""
    tensors = {id(tensor): tensor for tensor in _tensors_of(model)}
    has_lazy = any(is_lazy(tensor) for tensor in tensors.values())
    is_elsewhere = device is not None and any(not _is_on(tensor, device) for tensor in tensors.values())
    if not has_lazy and not is_elsewhere:
        return model
    copies = {key: _copied(tensor, device) for key, tensor in tensors.items()
              if not isinstance(tensor, nn.UninitializedParameter)}
    try:
        copied = copy.deepcopy(model, copies)
        return copied.to(device) if is_elsewhere else copied  # lazy or scripted parts have not been moved yet
    except Exception as error:
        why = "its parameters are lazy: run it once before" if has_lazy else f"it is not on {device}: leave device out"
        name = type(model).__name__
        raise RuntimeError(f"cannot copy {name} ({type(error).__name__}), and {why}") from error


def _tensors_of(model: nn.Module) -> Iterator[torch.Tensor]:
    """Parameters, buffers and tensors in attributes: weight_norm keeps a weight there that deepcopy() would refuse."""
    yield from model.parameters()
    yield from model.buffers()
    for module in model.modules():
        yield from (value for value in module.__dict__.values() if isinstance(value, torch.Tensor))


def _is_on(tensor: torch.Tensor, device: torch.device) -> bool:
    return tensor.device.type == device.type and device.index in (None, tensor.device.index)


def _copied(tensor: torch.Tensor, device: Optional[torch.device]) -> torch.Tensor:
    if is_lazy(tensor):  # a buffer, which deepcopy() cannot copy
        return nn.UninitializedBuffer(device=device or tensor.device, dtype=tensor.dtype)
    copied = tensor.detach().clone() if device is None else tensor.detach().to(device)
    return nn.Parameter(copied, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copied
