"""Spans for `async with` and decorators, written in Python; the rest of wattle.span is in the extension.

Coroutines and generators of one thread interleave. Their spans are therefore ranges, which may overlap others.
"""
from __future__ import annotations

import functools
import inspect
import os
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, ContextManager, Generator

from . import _wattle

if TYPE_CHECKING:
    from ._wattle import Span

Begin = Callable[[], Any]
End = Callable[[Any], Any]

# The ranges that a task opened with `async with`: (object, number), innermost last. In asyncio, trio and curio each
# task has its own context.
_open: ContextVar[tuple[tuple["Span", int], ...]] = ContextVar("wattle.open", default=())


async def enter(span: Span) -> Span:
    """Begins a range in the calling task."""
    _open.set((*_open.get(), (span, _wattle.range_begin(span.name))))
    return span


async def leave(span: Span) -> None:
    """Ends the range that the calling task began most recently with this object."""
    ranges = _open.get()
    for index in range(len(ranges) - 1, -1, -1):
        if ranges[index][0] is span:
            _open.set(ranges[:index] + ranges[index + 1:])
            _wattle.range_end(ranges[index][1])
            return


def decorate(span: Span, function: Any) -> Any:
    """Wraps the function: each call is a span, until it returns or its coroutine or generator is finished."""
    return wrap(function, "a span", span, lambda: _wattle.range_begin(span.name), _wattle.range_end)


def wrap(function: Any, what: str, block: ContextManager[Any], begin: Begin, end: End) -> Any:
    """Wraps each call of the function in `block`. Coroutines and generators of one thread overlap: each calls begin()
    before and end(result of begin()) after. `what` is the subject of the error message."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(wrap(function.__func__, what, block, begin, end))
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"{what} can only decorate functions and methods, not {function!r}")
    for fits, make in _WRAPPERS:
        if fits(function):
            return functools.wraps(function)(make(begin, end, function))
    return functools.wraps(function)(_plain(block, function))


class _Calls:
    """Counts the running calls of a decorated function: begin() before the first, end() after the last."""

    def __init__(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        self._begin, self._end = begin, end
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._n = 0
        self._pid = os.getpid()

    def __enter__(self) -> None:
        if self._pid != os.getpid():  # calls inherited by fork belong to the parent
            self._forget()
        with self._lock:
            if self._n == 0:
                self._begin()
            self._n += 1

    def __exit__(self, *_: object) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._n > 0:
                self._n -= 1
                if self._n == 0:
                    self._end()


def wrap_calls(function: Any, what: str, begin: Callable[[], object], end: Callable[[], object]) -> Any:
    """Wraps each call of the function; calls that overlap share one begin() and end()."""
    calls = _Calls(begin, end)
    return wrap(function, what, calls, calls.__enter__, calls.__exit__)


def _plain(block: ContextManager[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        with block:
            return function(*arguments, **keywords)
    return call


def _coroutine(begin: Begin, end: End, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **keywords: Any) -> Any:
        number = begin()
        try:
            return await function(*arguments, **keywords)
        finally:
            end(number)
    return call


def _generator(begin: Begin, end: End, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Generator[Any, Any, Any]:
        number = begin()
        try:
            return (yield from function(*arguments, **keywords))
        finally:
            end(number)
    return call


def _async_generator(begin: Begin, end: End, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
        number = begin()
        inner = function(*arguments, **keywords)
        try:
            step = inner.__anext__()
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as exception:  # thrown in by the consumer; the inner generator handles it
                    step = inner.athrow(exception)
                else:
                    step = inner.asend(sent)
        finally:
            await inner.aclose()
            end(number)
    return call


_WRAPPERS: tuple[tuple[Callable[[Any], bool], Callable[..., Callable[..., Any]]], ...] = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
)
