"""Code blocks: marking them while a program runs (SubTracker, sub_track), and their usage."""
from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Optional, TypeVar, Union

from ... import _wattle
from ...tracker import check_ending
from ._analyzer import SubTrackingAnalyzer
from ._comparison import TrackingComparison
from ._results import CodeBlockResults, ComparisonResults, SubTrackingResults
from ._sub_tracking_files import SubTrackingFile, fork_generation, open_file

__all__ = ["CodeBlockResults", "ComparisonResults", "SubTracker", "SubTrackingAnalyzer", "SubTrackingResults",
           "TrackingComparison", "sub_track"]

PathLike = Union[str, "os.PathLike[str]"]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound="SubTracker")

_START, _STOP = 0, 1


class SubTracker:
    """Marks a code block: a row in the sub-tracking file when it starts and when it stops, and a span for a
    recorder (`wattle run`, a Tracker).

    code_block_name       None: "relative/path.py:LINE" of the caller; code_block_attribute replaces LINE
    sub_tracking_file     .csv or .sqlite; None: "PID.csv". Threads and forked children share it; other processes need
                          their own
    overwrite             replace a file that another program left (the first time this process opens it)

    The column process_id has the number of the thread, which is the process's for the main thread, so that overlapping
    calls in several threads are paired correctly.
"""

    def __init__(self, code_block_name: Optional[str] = None, code_block_attribute: Optional[str] = None,
                 sub_tracking_file: Optional[PathLike] = None, overwrite: bool = False) -> None:
        if code_block_name is None:
            code_block_name = _name_of(sys._getframe(1), code_block_attribute)
        self.code_block_name = code_block_name
        self.process_id = os.getpid()
        self.sub_tracking_file = f"{self.process_id}.csv" if sub_tracking_file is None else os.fspath(sub_tracking_file)
        check_ending(self.sub_tracking_file)
        self._overwrite = overwrite
        self._generation = fork_generation()
        self._file: Optional[SubTrackingFile] = None
        self._span = _wattle.span(code_block_name)

    def __enter__(self: T) -> T:
        if self._file is None:
            self._file = open_file(self.sub_tracking_file, self._overwrite)
        if self._generation != fork_generation():  # made before a fork
            self.process_id, self._generation = os.getpid(), fork_generation()
        self._file.write(self._number(), self.code_block_name, _START, time.time())
        self._span.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        now_s = time.time()
        self._span.__exit__(None, None, None)
        if self._file is not None and self._generation == fork_generation():  # otherwise the parent ends it
            self._file.write(self._number(), self.code_block_name, _STOP, now_s)

    def _number(self) -> int:
        """Value of the column process_id."""
        is_main = threading.get_ident() == threading.main_thread().ident
        return self.process_id if is_main else threading.get_native_id()


def sub_track(code_block_name: Optional[str] = None, code_block_attribute: Optional[str] = None,
              sub_tracking_file: Optional[PathLike] = None, overwrite: bool = False) -> Callable[[F], F]:
    """Decorator: each call of the function is a code block, for a coroutine function from its first step to its last.

    code_block_name None: "/absolute/path.py:FUNCTION" of the decorated function, or ":ATTRIBUTE". The rest as
    for SubTracker.
"""
    def decorate(function: F) -> F:
        name = code_block_name
        if name is None:
            path = os.path.abspath(sys._getframe(1).f_code.co_filename)
            name = f"{path}:{function.__name__ if code_block_attribute is None else code_block_attribute}"
        block = functools.partial(SubTracker, name, None, sub_tracking_file, overwrite)
        if inspect.iscoroutinefunction(function):
            return _around_coroutine(function, block)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with block():
                return function(*args, **kwargs)
        return call  # type: ignore[return-value]
    return decorate


def _around_coroutine(function: F, block: Callable[[], SubTracker]) -> F:
    """Other tasks of the thread run meanwhile, so the recorder gets a range, which may overlap others."""
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        tracker = block()
        file = open_file(tracker.sub_tracking_file, tracker._overwrite)
        number = tracker._number()
        file.write(number, tracker.code_block_name, _START, time.time())
        try:
            async with tracker._span:
                return await function(*args, **kwargs)
        finally:
            file.write(number, tracker.code_block_name, _STOP, time.time())
    return call  # type: ignore[return-value]


_paths: dict[tuple[str, str], str] = {}  # (file, working folder) -> the one relative to the other


def _name_of(frame: FrameType, attribute: Optional[str]) -> str:
    key = frame.f_code.co_filename, os.getcwd()
    path = _paths.get(key) or _paths.setdefault(key, os.path.relpath(key[0]))
    return f"{path}:{frame.f_lineno if attribute is None else attribute}"
