"""Assigns each node of the autograd graph to its layer.

Nothing is added to the graph: nodes made by a module's forward are found from its outputs, get the layer's label in
their `metadata` (a dict that lives as long as the node) and a pair of hooks that run just before and just after the
node does. `register_full_backward_hook` would put nodes of its own into the graph, which breaks models with in-place
operations.
"""
from __future__ import annotations

import itertools
from typing import Any, Callable, Iterable, Optional, Sequence

import torch
from torch.nn.parameter import is_lazy

from .stacks import Column, Stacks

_sessions = itertools.count()
HANDLES_LEAST = 4096


def _accumulate_type() -> type:
    with torch.inference_mode(False), torch.enable_grad():
        leaf = torch.zeros((), requires_grad=True)
        return type(leaf.view_as(leaf).grad_fn.next_functions[0][0])


class Layer:
    """Data of a layer for the graph: its backward, in a node of C++ or of Python."""

    __slots__ = ("backward", "hooks", "python_hooks")

    def __init__(self, backward: Column, backward_python: Column, graph: "Graph") -> None:
        self.backward = backward
        self.hooks = graph.hooks_of(self, backward)
        self.python_hooks = graph.hooks_of(self, backward_python)


Hooks = tuple[Callable[[Any], None], Callable[[Any, Any], None]]


class Graph:
    """Labels nodes and times them. Keeps no tensor alive, and no node except those of the parameters."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._key = f"wattle.layer.{next(_sessions)}"
        self._accumulate = _accumulate_type()
        self._python = torch._C._FunctionBase
        self.owners: dict[int, Layer] = {}  #: of parameters, by id
        self._kept: list[Any] = []  #: nodes of parameters
        self._handles: list[Any] = []
        self._prune_at = HANDLES_LEAST

    def own(self, parameter: torch.nn.Parameter, layer: Layer) -> None:
        """Accumulation of the parameter's gradient belongs to the layer; for shared parameters to the first one.

        The accumulating node is created for each graph unless it is kept alive, so on a CPU it is kept and hooked
        once. On a GPU it would be bound to the current stream, which need not be the one of the
        training."""
        if id(parameter) in self.owners:
            return
        self.owners[id(parameter)] = layer
        if not parameter.requires_grad or not parameter.is_leaf or parameter.device.type != "cpu" or is_lazy(parameter):
            return
        with torch.inference_mode(False), torch.enable_grad():
            view = parameter.view_as(parameter)
        if view.grad_fn is None:  # made in inference mode
            return
        node = view.grad_fn.next_functions[0][0]
        self._kept.append(node)
        node.metadata[self._key] = True
        self._hook(node, layer.hooks)

    def hooks_of(self, layer: Layer, column: Column) -> Hooks:
        # Runs twice for each node and step: the same as Stacks.begin and end, without calling them.
        stacks, label, mark, grad_enabled = self._stacks, self.label, self._stacks.mark, torch.is_grad_enabled
        enter, leave, number = column.enter, column.leave, column.number

        def begin(grad_outputs: Any) -> None:
            open_ = stacks.open
            if open_:
                self._check(open_)
            open_.append(column)
            enter()
            if mark is not None:
                mark(number)

        def end(grad_inputs: Any, grad_outputs: Any) -> None:
            if grad_enabled():  # the gradient has a graph of its own, which also belongs to the layer
                label(_nodes(grad_inputs), layer)
            open_ = stacks.open
            if mark is not None or not open_ or open_[-1] is not column:
                stacks.end(column)
                return
            open_.pop()
            leave(None, None, None)

        return begin, end

    def _check(self, open_: list[Column]) -> None:
        """Before a node runs inside another one: whether that one continues."""
        if open_[-1].is_backward and not open_[-1].may_nest:
            self._stacks.cut(len(open_) - 1)  # nodes of C++ run in sequence: that one raised
        if open_:
            self._stacks.unwind()

    def label(self, nodes: list[Any], layer: Optional[Layer]) -> None:
        """Nodes and all before them, up to labelled ones, are assigned to the layer; None: to no layer, and only the nodes
        themselves."""
        key = self._key
        while nodes:
            node = nodes.pop()
            metadata = node.metadata
            if key in metadata:
                continue
            metadata[key] = True
            if layer is None:
                continue
            kind = type(node)
            if kind is self._accumulate:
                owner = self.owners.get(id(node.variable), layer)
                self._hook(node, owner.hooks)
                continue
            self._hook(node, layer.python_hooks if issubclass(kind, self._python) else layer.hooks)
            for before, _ in node.next_functions:
                if before is not None:
                    nodes.append(before)

    def is_known(self, tensor: torch.Tensor) -> bool:
        """Whether there is nothing to label: the usual case of a tensor that goes from layer to layer."""
        node = tensor.grad_fn
        return node is None or self._key in node.metadata

    def label_tensors(self, tensors: Sequence[torch.Tensor], layer: Optional[Layer]) -> None:
        nodes = _nodes(tensors)
        if nodes:
            self.label(nodes, layer)

    def _hook(self, node: Any, hooks: Hooks) -> None:
        self._handles.append(node.register_prehook(hooks[0]))
        self._handles.append(node.register_hook(hooks[1]))
        if len(self._handles) >= self._prune_at:
            self._prune()

    def _prune(self) -> None:
        """Drops handles of nodes that are gone."""
        self._handles = [handle for handle in self._handles if handle.hooks_dict_ref() is not None]
        self._prune_at = max(HANDLES_LEAST, 2 * len(self._handles))

    def close(self) -> None:
        """Removes the hooks from living nodes."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for node in self._kept:
            del node.metadata[self._key]
        self._kept.clear()
        self.owners.clear()


def _nodes(tensors: Iterable[Any]) -> list[Any]:
    nodes = []
    for tensor in tensors:
        if tensor is None or not tensor.requires_grad:
            continue
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view that was changed in a way that autograd cannot inspect
            continue
        if node is not None:
            nodes.append(node)
    return nodes
