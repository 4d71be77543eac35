"""Forward: which module was called, and its nodes of the graph."""
from __future__ import annotations

import itertools
import sys
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any, Callable, Optional, Sequence

import torch
from torch.nn.modules import module as nn_module

from . import tensors
from .graph import Graph, Layer
from .stacks import Column, Stacks, call_compiled


class Hooked:
    """A module that is measured."""

    __slots__ = ("forward", "layer", "inside", "count_call", "arguments")

    def __init__(self, forward: Column, layer: Layer, arguments: int) -> None:
        self.forward = forward
        self.layer = layer
        self.arguments = arguments  # : positional parameters of forward; with exactly so many there are no keywords; -1: any number
        self.inside: frozenset[Column] = frozenset()  # : forward columns of the enclosing modules
        self.count_call = itertools.count().__next__  # : returns the calls so far; a single instruction, for thread safety


def arguments_of(module: torch.nn.Module) -> int:
    """How many positional arguments forward takes, itself not counted; -1: any number, keywords, or unknown."""
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    if code is None or "forward" in vars(module) or code.co_kwonlyargcount:
        return -1
    return -1 if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) else int(code.co_argcount) - 1


def compiling() -> Callable[[], bool]:
    """torch.compiler.is_compiling, if torch has it: torch.compile must not trace these hooks."""
    compiler = getattr(torch, "compiler", None)
    dynamo = sys.modules.get("torch._dynamo")
    return getattr(compiler, "is_compiling", None) or getattr(dynamo, "is_compiling", None) or (lambda: False)


class ForwardHooks:
    """A pair of hooks around each measured module's forward.

    They are torch's global ones: the modules are unchanged, so they can be copied and pickled meanwhile. Where
    parts are compiled they are the modules' own instead, as a change of the global ones would have everything compiled
    again.
"""

    def __init__(self, hooked: dict[torch.nn.Module, Hooked], stacks: Stacks, graph: Graph,
                 warn: Callable[[str], None], label: bool = True) -> None:
        """label: nodes of the graph are labelled here, if nothing else observes backward."""
        self._hooked = hooked
        self._is_to_label: Callable[[], bool] = torch.is_grad_enabled if label else bool  # bool() is False
        self._by_column = {entry.forward: entry for entry in hooked.values()}
        self._stacks = stacks
        self._graph = graph
        self._warn = warn
        self._handles: list[Any] = []
        self._compiled: dict[torch.nn.Module, Any] = {}
        self._before, self._after = self._make_before(), self._make_after()

    def open(self, globally: bool, in_place: Sequence[torch.nn.Module] = (),
             wrap: Callable[[Any], Any] = lambda hook: hook) -> None:
        """in_place: modules with a compiled call of their own. wrap: applied to the hooks of modules."""
        if globally:
            self._handles = [nn_module.register_module_forward_pre_hook(self._before),
                             nn_module.register_module_forward_hook(self._after)]
            return
        before, after = Hook(wrap(self._before)), Hook(wrap(self._after))
        for module in in_place:
            self._compiled[module] = module.__dict__["_compiled_call_impl"]
            module.__dict__["_compiled_call_impl"] = _compiled_call(module, self._compiled[module], before, after)
        for module in self._hooked:
            if module not in self._compiled:
                self._handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        for module, compiled in self._compiled.items():
            module.__dict__["_compiled_call_impl"] = compiled
        self._handles.clear()
        self._compiled.clear()

    def _make_before(self) -> Callable[[torch.nn.Module, Any], None]:
        hooked, stacks, is_compiling, label = self._hooked, self._stacks, compiling(), self._label_inputs
        is_to_label = self._is_to_label

        def before(module: torch.nn.Module, args: Any) -> None:
            if is_compiling():  # first: nothing after this may be compiled
                return
            entry = hooked.get(module)
            if entry is None:
                return
            open_ = stacks.open
            if open_ and open_[-1] not in entry.inside:
                stacks.unwind(module)
            around = open_[-1] if open_ else None
            entry.count_call()
            stacks.begin(entry.forward)
            if is_to_label():
                label(args, around, entry.arguments, sys._getframe(1))

        return before

    def _make_after(self) -> Callable[[torch.nn.Module, Any, Any], None]:
        hooked, stacks, is_compiling, label = self._hooked, self._stacks, compiling(), self._label_outputs
        is_to_label = self._is_to_label

        def after(module: torch.nn.Module, args: Any, output: Any) -> None:
            if is_compiling():
                return
            entry = hooked.get(module)
            if entry is None:
                return
            if is_to_label():
                label(output, entry.layer)
            stacks.end(entry.forward)

        return after

    def _label_inputs(self, args: Any, around: Optional[Column], arguments: int, frame: Any) -> None:
        """The module's inputs were made by the enclosing layer, or outside of all layers."""
        try:
            if arguments == len(args) == 1 and isinstance(args[0], torch.Tensor) and self._graph.is_known(args[0]):
                return
            found: list[torch.Tensor] = []
            tensors.find(args, found)
            if len(args) != arguments:
                tensors.find(_keywords(frame), found)
            if found:
                entry = self._by_column.get(around) if around is not None else None
                self._graph.label_tensors(found, entry.layer if entry is not None else None)
        except Exception as error:  # a measurement must not end a training
            self._warn(f"the inputs of a module could not be followed: {error!r}; "
                       "a part of its backward time is counted for another layer")

    def _label_outputs(self, output: Any, layer: Layer) -> None:
        try:
            if isinstance(output, torch.Tensor):
                found = [output]
            else:
                found = []
                tensors.find(output, found)
            self._graph.label_tensors(found, layer)
        except Exception as error:
            self._warn(f"the outputs of a module could not be followed: {error!r}; its backward time is missing")


CALLERS = ("_call_impl", "inner", "call_compiled")  # : of hooks; 'inner' is a part of _call_impl in torch 2.x
FRAMES_MOST = 6


def _keywords(frame: Any) -> Any:
    """Keyword arguments of the call that a hook belongs to: torch passes only positional ones to global hooks."""
    for _ in range(FRAMES_MOST):
        if frame is None:
            return None
        if frame.f_code.co_name in CALLERS:
            return frame.f_locals.get("kwargs")
        frame = frame.f_back
    return None


class Hook:
    """A hook that has no effect in copies and pickles of its module."""

    def __init__(self, call: Optional[Callable[..., Any]] = None) -> None:
        self._call = call

    def __call__(self, *args: Any) -> None:
        if self._call is not None:
            self._call(*args)

    def __deepcopy__(self, memo: Any) -> "Hook":
        return Hook()

    def __reduce__(self) -> Any:
        return Hook, ()


def _compiled_call(module: torch.nn.Module, compiled: Any, before: Hook, after: Hook) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return call_compiled(module, compiled, before, after, args, kwargs)

    return call
