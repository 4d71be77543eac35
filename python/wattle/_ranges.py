"""The parts of wattle.span that need Python's own machinery: `async with`, and decorators. Imported when first used.

Coroutines and generators of one thread run in turns, so what they take are ranges, which may overlap others.
"""
from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, ContextManager, Generator

from . import _wattle

if TYPE_CHECKING:
    from ._wattle import Span

Begin = Callable[[], Any]
End = Callable[[Any], Any]

# The ranges that a task has open by `async with`: (object, number), innermost last. A context is the task's own in
# asyncio, trio and curio alike.
_open: ContextVar[tuple[tuple["Span", int], ...]] = ContextVar("wattle.open", default=())


async def enter(span: Span) -> Span:
    """Begins a range of the calling task."""
    _open.set((*_open.get(), (span, _wattle.range_begin(span.name))))
    return span


async def leave(span: Span) -> None:
    """Ends the range that the calling task began last with this object."""
    ranges = _open.get()
    for index in range(len(ranges) - 1, -1, -1):
        if ranges[index][0] is span:
            _open.set(ranges[:index] + ranges[index + 1:])
            _wattle.range_end(ranges[index][1])
            return


def decorate(span: Span, function: Any) -> Any:
    """The function, each of whose calls is a span: until it returns, or until its coroutine or generator is through."""
    return wrap(function, "a span", span, lambda: _wattle.range_begin(span.name), _wattle.range_end)


def wrap(function: Any, what: str, block: ContextManager[Any], begin: Begin, end: End) -> Any:
    """The function, with `block` around each call. Coroutines and generators of one thread overlap: each has begin()
    before it and end(result of begin) after it. `what` is the subject of the error message."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(wrap(function.__func__, what, block, begin, end))
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"{what} decorates functions and methods, not {function!r}")
    for fits, make in _WRAPPERS:
        if fits(function):
            return functools.wraps(function)(make(begin, end, function))
    return functools.wraps(function)(_plain(block, function))


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
                except BaseException as exception:  # thrown in by the consumer: the inner one's to handle
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
