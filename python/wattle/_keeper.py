"""Reads started meters periodically, so that no wrap of a counter is missed in long measurements.

One thread for all meters of the interpreter; it begins with the first started meter and ends soon after the last.
"""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .meter import Meter

# : The fastest counters known, those of AMD's packages, wrap after 33 s at the highest power of such a device.
READ_EVERY_S = 10.0

_started: weakref.WeakSet[Meter] = weakref.WeakSet()
_thread: Optional[threading.Thread] = None
_over = threading.Event()  # the interpreter ends
_changes = threading.Lock()  # of the two above; held while the thread reads, so that no fork happens meanwhile


def watch(meter: Meter) -> None:
    """Adds the meter to those that are read."""
    global _thread
    with _changes:
        _started.add(meter)
        if _thread is None:
            _thread = threading.Thread(target=_run, name="wattle-meter", daemon=True)
            _thread.start()


def forget(meter: Meter) -> None:
    """Removes the meter."""
    with _changes:
        _started.discard(meter)


def _run() -> None:
    global _thread
    while not _over.wait(READ_EVERY_S):
        with _changes:
            if not _started:
                _thread = None
                return
            for meter in list(_started):
                meter._keep()


@atexit.register
def _end() -> None:
    """All threads of a subinterpreter must end before it does, and it waits for no daemon thread."""
    _over.set()
    if _thread is not None:
        _thread.join(timeout=1.0)


def _in_child() -> None:
    """Threads do not survive a fork; their locks are free again."""
    global _over, _thread
    _over, _thread = threading.Event(), None
    for meter in list(_started):
        meter._lock = threading.Lock()
    _changes.release()


os.register_at_fork(before=_changes.acquire, after_in_parent=_changes.release, after_in_child=_in_child)
