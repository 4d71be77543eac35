"""Parameters and multiply-adds of a model, with torchinfo's definitions, counted by wattle.torch.complexity."""
from __future__ import annotations

import math
import warnings
from typing import Any, Dict, Sequence


def to_bytes(num: int) -> float:
    """Megabytes of so many numbers of 4 bytes (the name is AIPowerMeter's)."""
    return num * 4 / 1e6


def get_summary(model: Any, input_size: Sequence[int], device: Any = None) -> Dict[str, Any]:
    """total_params, trainable_params, total_mult_adds (None: not known), input_size, total_input (numbers in an input).

    model: a torch module; input_size: (batch, …); device: where the input is made, None: where the model is.
    For other models {} with a warning: torch's alone can be counted so, ONNX files by `wattle model`.
    """
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(model).__mro__]
    if "torch.nn.modules.module.Module" not in kinds:
        warnings.warn(f"{type(model).__name__} is no torch module: its parameters and multiply-adds are not counted; "
                      "`wattle model FILE.onnx` counts an exported one", RuntimeWarning, stacklevel=2)
        return {}
    from wattle.torch.complexity import complexity
    counted = complexity(model, tuple(input_size), device=device)
    return {"input_size": list(input_size), "total_input": math.prod(input_size),
            "total_params": counted.parameters,
            "trainable_params": counted.trainable_parameters,
            "total_mult_adds": counted.multiply_adds}
