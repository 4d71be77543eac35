"""Parameters and multiply-adds of a PyTorch model, layer by layer, without a list of known layers.

The model runs once; every operator is observed, and a product counts when one of its factors is a weight of the model.
docs/complexity.md has the definitions and how they differ from torchinfo's.
"""
from typing import Any, Iterator, Mapping, Optional, Union

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ._forward import ForwardPass, Work, row_name
from ._inputs import Dtypes, Size, device_of, dtype_of, given_inputs, input_bytes, make_inputs, model_to_run
from ._summary import Complexity, Layer, Memory
from ._untouched import Untouched

__all__ = ["complexity", "Complexity", "Layer", "Memory"]

#: of torchinfo.summary, for its table
_LAYOUT = frozenset(("verbose", "depth", "col_names", "col_width", "row_settings", "cache_forward_pass"))
_MODES = ("same", "train", "eval")


def complexity(model: nn.Module, input_size: Union[None, Size, Mapping[str, Size]] = None, *, input_data: Any = None,
               batch_dim: Optional[int] = None, dtypes: Dtypes = None,
               device: Union[None, str, torch.device] = None, mode: str = "same", **arguments: Any) -> Complexity:
    """Counts parameters and multiply-adds of `model` in one forward pass.

    input_size  size of the input with its batch as (1, 3, 224, 224); a list of sizes for several inputs; a dict of
                sizes by argument name. Floating-point inputs are random, integers are 0.
    input_data  instead: a tensor, a list of arguments or a dict of keyword arguments. With neither, the model is not
                run and only parameters are known.
    batch_dim   the sizes have no batch: insert one of 1 there.
    dtypes      of the inputs: one, one for each, or by name; default the default of PyTorch or of a model in half
                precision
    device      where to run; default the model's. Elsewhere a copy runs; "meta" computes nothing at all.
    mode        "same", "train" or "eval"
    arguments   further keyword arguments of forward

    The model is restored afterwards: weights, running statistics, modes, gradients, hooks, attributes; so are the
    random number generators. Raises ValueError or TypeError for invalid arguments, and RuntimeError,
    with the model's own error as its cause, if the model cannot be run with this input.
"""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: {type(model).__name__} is not a torch.nn.Module")
    if input_size is not None and input_data is not None:
        raise ValueError("input_size and input_data: give only one of them")
    if mode not in _MODES:
        raise ValueError(f"invalid mode '{mode}': use {' or '.join(_MODES)}")
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    if input_size is None and input_data is None:
        return _summarise(model, model, None, 0)
    chosen = torch.device(device) if device is not None else None
    if input_size is not None:
        args, kwargs = make_inputs(input_size, dtypes, batch_dim, chosen or device_of(model), dtype_of(model))
    else:
        args, kwargs = given_inputs(input_data, chosen)
    kwargs = {**kwargs, **given_inputs(arguments, chosen)[1]}
    runnable = model_to_run(model, chosen)
    with Untouched(runnable, mode) as untouched:
        try:
            if any(map(is_lazy, runnable.buffers())):  # PyTorch 1.13 cannot create them while it is observed
                with torch.no_grad():
                    runnable(*args, **kwargs)
            forward = ForwardPass(runnable, untouched.before_write)
            forward.run(args, kwargs)
        except Exception as error:
            raise RuntimeError(_why(model, args, kwargs, error)) from error
        return _summarise(runnable, model, forward.work, input_bytes(args, kwargs))


def _why(model: nn.Module, args: Any, kwargs: Any, error: Exception) -> str:
    """One message; the model's own error is its cause."""
    shapes = ", ".join(str(list(getattr(value, "shape", ()))) for value in (*args, *kwargs.values()))
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    hint = ""
    layout = _LAYOUT.intersection(kwargs)
    if layout and "keyword" in text:
        hint = f" ({', '.join(sorted(layout))}: forward has no such argument; the table is print(result.text(depth=…)))"
    elif "'Meta' backend" in text:
        text = f"this PyTorch has no {text.split(chr(39))[1]} on the device meta"
        hint = "; try it without device"
    elif "not implemented for 'Half'" in text:
        hint = '; this PyTorch cannot compute it here, device="meta" computes nothing'
    elif "indices" in text or "Long" in text:
        hint = " (a model that takes whole numbers wants dtypes=torch.long)"
    return f"{_type(model)} cannot be run with input of {shapes}: {text}{hint}"


def _summarise(model: nn.Module, original: nn.Module, work: Optional[dict[str, Work]], given_bytes: int) -> Complexity:
    rows = list(_rows(model, work))
    parameters = dict.fromkeys(model.parameters())
    counted = {id(parameter): elements for parameter, elements in _elements(model)}
    activations = sum(row.output_bytes for row in rows if row.is_leaf and row.parameters + row.shared_parameters)
    unknown = {name: dict(done.unknown) for name, done in (work or {}).items() if done.unknown}
    return Complexity(
        model=_type(original), modules=rows, unknown=unknown,
        parameters=sum(counted.values()),
        trainable_parameters=sum(counted[id(p)] for p in parameters if p.requires_grad and id(p) in counted),
        memory=Memory(given_bytes, 2 * activations,
                      sum(counted[id(p)] * p.element_size() for p in parameters if id(p) in counted)))


def _rows(model: nn.Module, work: Optional[dict[str, Work]]) -> Iterator[Layer]:
    """A row for each module, parametrizations within that of the layer whose weights they make."""
    counted = {id(parameter): elements for parameter, elements in _elements(model)}
    members: dict[str, list[nn.Module]] = {}
    for name, module in model.named_modules():
        members.setdefault(row_name(name), []).append(module)
    seen: set[int] = set()
    for name, (module, *others) in members.items():
        own = {id(p): p for part in (module, *others) for p in part._parameters.values() if id(p) in counted}
        fresh = [p for key, p in own.items() if key not in seen]
        seen.update(own)
        parameters = sum(counted[id(p)] for p in fresh)
        done = work.get(name, Work()) if work is not None else None  # made by forward itself: part of its maker
        yield Layer(
            name=name, type=_type(module), depth=name.count(".") + 1 if name else 0,
            parameters=parameters, trainable_parameters=sum(counted[id(p)] for p in fresh if p.requires_grad),
            shared_parameters=sum(counted[key] for key in own) - parameters,
            multiply_adds=done.multiply_adds if done is not None and not done.unknown else None,
            other_multiply_adds=done.other_multiply_adds if done is not None and not done.other_unknown else None,
            calls=done.calls if done is not None else None, kernel=_kernel(module),
            output_shape=done.output_shape if done is not None else None,
            output_bytes=done.output_bytes if done is not None else 0,
            is_leaf=all(child in others for child in module.children()))


def _elements(model: nn.Module) -> Iterator[tuple[nn.Parameter, int]]:
    """Each parameter once with the number of its elements; for a pruned one those that its mask keeps, as in torchinfo."""
    seen = set()
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen or is_lazy(parameter):
                continue
            seen.add(id(parameter))
            mask = module._buffers.get(name.removesuffix("_orig") + "_mask") if name.endswith("_orig") else None
            yield parameter, parameter.numel() if mask is None or mask.is_meta else int(mask.sum())


def _type(module: nn.Module) -> str:
    """A parametrized layer is still a layer of its class; so is a scripted one."""
    if hasattr(module, "original_name"):
        return str(module.original_name)
    if hasattr(module, "parametrizations"):
        return type(module).__mro__[1].__name__
    return type(module).__name__


def _kernel(module: nn.Module) -> Optional[list[int]]:
    size = getattr(module, "kernel_size", None)
    if isinstance(size, int):
        return [size]
    if isinstance(size, (tuple, list)) and all(isinstance(n, int) for n in size):
        return list(size)
    return None
