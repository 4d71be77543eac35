"""The current layer of each thread: begins and ends spans, and closes those left open by exceptions."""
from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any, Callable, Optional

import torch

CALL_CODE = getattr(torch.nn.Module._call_impl, "__code__", None)
BACKWARD_CODES = {function.__code__ for function in (torch.autograd.backward, torch.autograd.grad)
                  if hasattr(function, "__code__")}
APPLY_CODE = getattr(torch.autograd.function.BackwardCFunction.apply, "__code__", None)


def call_compiled(module: torch.nn.Module, compiled: Callable[..., Any], before: Callable[..., None],
                  after: Callable[..., None], args: Any, kwargs: Any) -> Any:
    """Represents the compiled call of a module that was compiled in place, whose own hooks would be compiled with it."""
    before(module, args)
    output = compiled(*args, **kwargs)
    after(module, args, output)
    return output


COMPILED_CODE = call_compiled.__code__


class Column:
    """Forward or backward of a layer: a column of the timeline by which energy is divided."""

    __slots__ = ("number", "module", "is_backward", "may_nest", "enter", "leave")

    def __init__(self, number: int, module: Optional[torch.nn.Module], is_backward: bool, may_nest: bool,
                 enter: Callable[[], Any], leave: Callable[..., Any]) -> None:
        self.number = number
        self.module = module
        self.is_backward = is_backward
        self.may_nest = may_nest  # : a node of Python's own (checkpointing …): its backward may run others inside it
        self.enter = enter
        self.leave = leave


class Stacks(threading.local):
    """The open columns of this thread, the outermost first.

    Forward hooks are not called when forward raises, nor are those after a node of the graph that raises. Columns
    that an outer layer's end does not close are found here when the next one begins: by the remaining Python
    frames.
"""

    def __init__(self, mark: Optional[Callable[[int], None]] = None) -> None:
        self.open: list[Column] = []
        self.mark = mark  # : called with the column after each change, for work that is timed where it runs

    def begin(self, column: Column) -> None:
        self.open.append(column)
        column.enter()
        if self.mark is not None:
            self.mark(column.number)

    def end(self, column: Column) -> None:
        """Ends the innermost of this column and all inside it; no effect if it is not open."""
        open_ = self.open
        if column not in open_:
            return
        while True:
            top = open_.pop()
            top.leave(None, None, None)
            if top is column:
                break
        if self.mark is not None:
            self.mark(self.open[-1].number if self.open else 0)

    def cut(self, depth: int) -> None:
        """Ends all but the outermost `depth`."""
        while len(self.open) > depth:
            self.open.pop().leave(None, None, None)
        if self.mark is not None:
            self.mark(self.open[-1].number if self.open else 0)

    def unwind(self, called: Optional[torch.nn.Module] = None) -> None:
        """Ends columns without a frame of this thread, and all inside them. `called`: the module whose call is just beginning,
        and has a frame already."""
        frames = _Frames()
        frames.modules[id(called)] -= 1
        for depth, column in enumerate(self.open):
            if not frames.stand_for(column):
                self.cut(depth)
                return


class _Frames:
    """The active calls of this thread, by its Python frames."""

    def __init__(self) -> None:
        # current_thread() would create one
        known = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
        #: Python began this thread
        self.in_python = known is not None and not isinstance(known, threading._DummyThread)
        self.modules: Counter[int] = Counter()  #: calls of modules, by id
        self.backwards = self.functions = 0  #: calls of backward; backward functions written in Python
        frame = sys._getframe(1)
        while frame is not None:
            self._count(frame)
            frame = frame.f_back  # type: ignore[assignment]

    def _count(self, frame: Any) -> None:
        code = frame.f_code
        if code is CALL_CODE:
            self.modules[id(frame.f_locals.get("self"))] += 1
        elif code is COMPILED_CODE:
            self.modules[id(frame.f_locals.get("module"))] += 1
        elif code in BACKWARD_CODES:
            self.backwards += 1
        elif code is APPLY_CODE:
            self.functions += 1

    def stand_for(self, column: Column) -> bool:
        if not column.is_backward:
            self.modules[id(column.module)] -= 1
            return self.modules[id(column.module)] >= 0
        if column.may_nest:
            self.functions -= 1
            return self.functions >= 0
        # Recomputed forward runs inside the node that requires it; threads of the engine have no frames of their own.
        return self.backwards > 0 or not self.in_python
