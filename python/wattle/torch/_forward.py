"""Observation of one forward pass: which module runs, which operators it calls, what they multiply.

Nothing is hooked into the model. `nn.Module.__call__` is replaced for the time of the pass, as in torch.fx; a
TorchDispatchMode sees the operators, and a TorchFunctionMode keeps PyTorch from fusing whole layers into one
operator (the "fast path" of nn.TransformerEncoderLayer in eval mode), which would hide the inner layers.
"""
import contextlib
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional, Sequence

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ._origin import INPUT, Kind, Origin, Origins, combine, tensors_in
from ._products import Product, is_sum_of_products, rule_of

# : `nn.Module.__call__` is shared by the process: one pass at a time
_PASS = threading.RLock()

# : functions whose first argument is data and whose result is therefore an activation, even if a parameter was passed
_LAYER_FUNCTIONS = frozenset((
    "linear", "bilinear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "multi_head_attention_forward", "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell",
    "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"))


@dataclass
class Work:
    """One module's own work, without the modules that it called."""
    multiply_adds: int = 0
    other_multiply_adds: int = 0
    unknown: Counter[str] = field(default_factory=Counter)        #: operators that may have multiplied weights
    other_unknown: Counter[str] = field(default_factory=Counter)  #: … that may have multiplied activations
    calls: int = 0
    output_shape: Optional[list[int]] = None  #: of the first call
    output_bytes: int = 0                     #: of all calls


class Places:
    """Which module owns a parameter and which module contains which, by names as in named_modules()."""

    def __init__(self, model: nn.Module) -> None:
        self.name_of = {id(module): name for name, module in model.named_modules()}
        self._owners: dict[int, list[str]] = {}
        for name, module in model.named_modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    self._owners.setdefault(id(parameter), []).append(row_name(name))

    def of(self, running: str, weight: Optional[int]) -> str:
        """The module that a product counts for: the running module, or its part that owns the weight and is not called itself,
        as `out_proj` of nn.MultiheadAttention."""
        owners = self._owners.get(weight, ()) if weight is not None else ()
        if running in owners:
            return running
        within = running + "." if running else ""
        return next((owner for owner in owners if owner.startswith(within)), running)


def row_name(name: str) -> str:
    """A parametrization is a part of the layer whose weight it makes."""
    parts = name.split(".")
    return ".".join(parts[:parts.index("parametrizations")]) if "parametrizations" in parts else name


class ForwardPass(TorchDispatchMode):  # type: ignore[misc]
    """Runs a model once; `work` has each module's work, by its name."""

    supports_higher_order_operators = True  # those of PyTorch 2: observed, and unknown

    def __init__(self, model: nn.Module, before_write: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.work: dict[str, Work] = {row_name(name): Work() for name, _ in model.named_modules()}
        self._model = model
        self._before_write = before_write
        self._places = Places(model)
        self._origins = Origins(model)
        self._running: list[str] = [""]
        self._preparing = 0  #: depth in code that makes weights from weights
        self.parts = 1       # : products that PyTorch makes of one that is counted
        self._writes: dict[Any, tuple[tuple[int, str], ...]] = {}
        self._thread = threading.get_ident()

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """One forward pass without gradients."""
        for tensor in tensors_in((args, kwargs)):
            self._origins[tensor] = INPUT
        with _PASS, torch.no_grad(), _eager(), self._module_calls(), _LayerFunctions(self, self._origins), self:
            self._model(*args, **kwargs)

    # ---- modules ----

    @contextlib.contextmanager
    def _module_calls(self) -> Iterator[None]:
        original = nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            name = self._places.name_of.get(id(module))
            if name is not None and threading.get_ident() != self._thread:
                self.work[row_name(name)].unknown["a call in another thread"] += 1  # its operators are not visible
                name = None
            if name is None:
                return original(module, *args, **kwargs)
            return self._call(name, module, args, kwargs)

        nn.Module.__call__ = call
        try:
            yield
        finally:
            nn.Module.__call__ = original

    def _call(self, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        module = getattr(module, "_orig_mod", module)  # of torch.compile: eagerly here
        row = row_name(name)
        with contextlib.ExitStack() as undo:
            self._running.append(row)
            undo.callback(self._running.pop)
            if row != name:
                self._enter_preparation(undo)
                return nn.Module._call_impl(module, *args, **kwargs)  # past torch.compile's __call__
            self._enter_arguments(args, kwargs, undo)
            if module._forward_pre_hooks:  # weight_norm, spectral_norm, pruning: they make the weight
                leave = self._enter_preparation(undo)
                undo.callback(module.register_forward_pre_hook(lambda *_: leave()).remove)
            output = nn.Module._call_impl(module, *args, **kwargs)
            self._returned(row, output)
        return output

    def _enter_preparation(self, undo: contextlib.ExitStack) -> Callable[[], None]:
        """Until the returned function is called, or the module returns or raises."""
        inside = [True]

        def leave() -> None:
            if inside:
                inside.clear()
                self._preparing -= 1

        self._preparing += 1
        undo.callback(leave)
        return leave

    def _enter_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], undo: contextlib.ExitStack) -> None:
        """Parameters passed to a module are data for it: attention between learned queries is no product of weights."""
        for tensor in tensors_in((args, kwargs)):
            origin = self._origins[tensor]
            if origin.kind == Kind.PARAMETER:
                self._origins[tensor] = origin._replace(is_argument=True)
                undo.callback(self._origins.__setitem__, tensor, origin)

    def _returned(self, row: str, output: Any) -> None:
        tensors = list(tensors_in(output))
        for tensor in tensors:
            origin = self._origins[tensor]
            if origin.is_product:
                self._origins[tensor] = INPUT
            elif origin.is_argument:
                self._origins[tensor] = origin._replace(is_argument=False)
        work = self.work[row]
        work.calls += 1
        if not tensors:
            return
        if work.output_shape is None:
            work.output_shape = list(tensors[0].shape)
        work.output_bytes += tensors[0].numel() * tensors[0].element_size()

    # ---- operators ----

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name if hasattr(func, "_schema") else f"higher_order::{func}"
        rule = rule_of(name)
        suspect = rule is None and is_sum_of_products(name)
        if suspect and hasattr(func, "decompose"):  # composite operators are dispatched as a whole in inference mode
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        operands = list(tensors_in((args, kwargs)))
        written = list(self._written(func, args, kwargs))
        for tensor in written:
            self._before_write(tensor)
        out = func(*args, **kwargs)
        origins = [self._origins[tensor] for tensor in operands]
        if rule is not None:
            for product in rule(args, out):
                self._count(product)
        elif suspect:
            self._unknown(name, origins, args)
        self._results(out, written, combine(origins), is_product=rule is not None)
        return out

    def _written(self, func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
        """The tensors that the operator changes in place, by its schema."""
        places = self._writes.get(func)
        if places is None:
            places = tuple((at, argument.name) for at, argument in enumerate(_arguments_of(func))
                           if argument.alias_info is not None and argument.alias_info.is_write)
            self._writes[func] = places
        for at, name in places:
            yield from tensors_in(args[at] if at < len(args) else kwargs.get(name))

    def _results(self, out: Any, written: list[torch.Tensor], origin: Origin, is_product: bool) -> None:
        if is_product:
            origin = INPUT if origin.kind == Kind.INPUT or origin.is_argument else origin._replace(is_product=True)
        for tensor in written:
            self._origins.written(tensor, origin)
        changed = {id(tensor) for tensor in written}
        for tensor in tensors_in(out):
            if id(tensor) not in changed:
                self._origins[tensor] = origin

    def _count(self, product: Product) -> None:
        left, right = self._origins[product.left], self._origins[product.right]
        kinds = sorted((left.kind, right.kind))
        is_of_weights = Kind.PARAMETER in kinds or kinds == [Kind.BUFFER, Kind.INPUT]
        if self._preparing and kinds[1] != Kind.INPUT:
            return
        running = self._running[-1]
        if not is_of_weights:
            self.work[running].other_multiply_adds += product.number // self.parts
            return
        weight = right.weight if right.weight is not None else left.weight
        self.work[self._places.of(running, weight)].multiply_adds += product.number // self.parts

    def _unknown(self, name: str, origins: list[Origin], args: Any) -> None:
        """An operator without a rule: whether it uses weights determines which figure is unknown."""
        kinds = {origin.kind for origin in origins}
        has_hidden_weights = any(isinstance(value, torch.ScriptObject) for value in args)
        if Kind.INPUT not in kinds and not has_hidden_weights:
            return
        work = self.work[self._running[-1]]
        is_of_weights = has_hidden_weights or Kind.PARAMETER in kinds or Kind.BUFFER in kinds
        (work.unknown if is_of_weights else work.other_unknown)[name] += 1


def _arguments_of(func: Any) -> Sequence[Any]:
    return func._schema.arguments if hasattr(func, "_schema") else ()


class _LayerFunctions(TorchFunctionMode):  # type: ignore[misc]
    """The result of torch.nn.functional.linear and similar is an activation. This mode alone disables the fast paths. A
    convolution of complex numbers counts once, as a matrix product of these does: PyTorch makes three of it."""

    def __init__(self, forward: ForwardPass, origins: Origins) -> None:
        super().__init__()
        self._forward = forward
        self._origins = origins

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        is_complex = name.startswith("conv") and any(tensor.is_complex() for tensor in tensors_in((args, kwargs)))
        outside = self._forward.parts
        self._forward.parts = 3 if is_complex else outside
        try:
            out = func(*args, **(kwargs or {}))
        finally:
            self._forward.parts = outside
        if name in _LAYER_FUNCTIONS:
            for tensor in tensors_in(out):
                self._origins[tensor] = INPUT
        return out


@contextlib.contextmanager
def _eager() -> Iterator[None]:
    """Disables compiled functions and fused attention layers, where this PyTorch allows it."""
    with contextlib.ExitStack() as undo:
        set_stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
        if set_stance is not None:
            undo.enter_context(set_stance("force_eager"))
        mha = getattr(torch.backends, "mha", None)
        if mha is not None:
            undo.callback(mha.set_fastpath_enabled, mha.get_fastpath_enabled())
            mha.set_fastpath_enabled(False)
        yield
