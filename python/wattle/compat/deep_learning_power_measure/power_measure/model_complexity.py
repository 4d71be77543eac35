"""Parameters and multiply-adds of a model with torchinfo's definitions, from the observations of wattle.torch.complexity."""
from __future__ import annotations

import math
import warnings
from typing import Any, Iterable, Sequence


def to_bytes(num: int) -> float:
    """Megabytes of this many numbers of 4 bytes (the name is AIPowerMeter's)."""
    return num * 4 / 1e6


def _positions(kind: str, parameter: str, output: Sequence[int]) -> int:
    """How often torchinfo counts each element of a parameter: a rule by the layer's class name."""
    if parameter not in ("weight", "bias"):
        return math.prod(output[:2])  # weight_ih_l0 of an LSTM and similar: batch and time
    if "Conv" in kind:
        return math.prod([*output[:1], *output[2:]])
    return math.prod(output[:-1]) if "Linear" in kind else output[0]


def _multiply_adds(model: Any, rows: Iterable[Any]) -> int:
    """torchinfo's total: layers that contain no others, biases and the parameters of norms included."""
    modules = dict(model.named_modules())
    total = 0
    for row in rows:
        if not row.is_leaf or not row.calls or not row.output_shape:
            continue
        for name, parameter in modules[row.name].named_parameters(recurse=False):
            if "weight" in name or "bias" in name:
                total += row.calls * parameter.numel() * _positions(row.type, name, row.output_shape)
    return total


def get_summary(model: Any, input_size: Sequence[int], device: Any = None) -> dict[str, Any]:
    """total_params, trainable_params, total_mult_adds (torchinfo's), multiply_adds (wattle's, of weights only; None:
    unknown), input_size, total_input (numbers in an input).

    model: a torch module; input_size: (batch, …); device: where the input is made, None: the model's.
    For other models {} with a warning: only torch models are supported here, ONNX files by `wattle model`.
"""
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(model).__mro__]
    if "torch.nn.modules.module.Module" not in kinds:
        warnings.warn(f"{type(model).__name__} is not a torch module: its parameters and multiply-adds are not "
                      "counted; `wattle model FILE.onnx` counts those of an exported model", RuntimeWarning,
                      stacklevel=2)
        return {}
    from wattle.torch.complexity import complexity
    counted = complexity(model, tuple(input_size), device=device)
    return {"input_size": list(input_size), "total_input": math.prod(input_size),
            "total_params": counted.parameters,
            "trainable_params": counted.trainable_parameters,
            "total_mult_adds": _multiply_adds(model, counted.modules), "multiply_adds": counted.multiply_adds}
