"""The C++ observer (observer.cpp), if one was built for the installed torch: backward without Python."""
from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import pathlib
import sys
from typing import Any, Callable, Iterator, Optional

import torch

from .. import _wattle
from ._built_for import cache_folder, file_stem, tag

HOW_TO_BUILD = "python3 -m wattle.torch.build_observer makes one"
MODULE = "wattle.torch._observer"

_loaded: Optional[Any] = None  # once in a process: a second copy would have threads of its own


def _files() -> Iterator[pathlib.Path]:
    name = f"{file_stem()}.so"
    yield pathlib.Path(__file__).with_name(name)
    with contextlib.suppress(RuntimeError):
        yield cache_folder() / name


def load() -> Any:
    """The module. ImportError: there is none for this torch, or it cannot be loaded."""
    global _loaded
    if _loaded is not None:
        return _loaded
    path = next((path for path in _files() if path.is_file()), None)
    if path is None:
        raise ImportError(f"no observer for torch {torch.__version__}: {HOW_TO_BUILD}")
    loader = importlib.machinery.ExtensionFileLoader(MODULE, str(path))
    spec = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    if module.TORCH != tag():
        raise ImportError(f"{path} was built for torch {module.TORCH}, but this is {tag()}: {HOW_TO_BUILD}")
    _loaded = module
    return module


class Observer:
    """One session of it."""

    def __init__(self, unwind: Callable[[], None]) -> None:
        """ImportError: there is none. RuntimeError: another session has it."""
        self._module = load()
        self._module.open(_wattle.span_calls, unwind)

    def add(self, forward: str, backward: str) -> tuple[Callable[[], Any], Callable[..., Any]]:
        """A layer, by the names of its spans: functions to call when its forward begins and ends."""
        both: tuple[Callable[[], Any], Callable[..., Any]] = self._module.add(forward, backward)
        return both

    def close(self) -> int:
        """How many backward functions were too old to be assigned."""
        return int(self._module.close())


def take(wanted: Optional[bool], on_gpus: bool, unwind: Callable[[], None]) -> Optional[Observer]:
    """The observer; None: hooks. wanted: None uses it if it is available and equivalent to hooks.

    RuntimeError: it was requested (True), and is not."""
    why_not = _why_not(on_gpus)
    if wanted is False or (why_not is not None and not wanted):
        return None
    if why_not is not None:
        raise RuntimeError(f"observer=True: {why_not}")
    try:
        return Observer(unwind)
    except (ImportError, RuntimeError) as error:
        if wanted:
            raise RuntimeError(f"observer=True: {error}") from error
        return None


def _why_not(on_gpus: bool) -> Optional[str]:
    if on_gpus:
        return "work on GPUs is timed by hooks"
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return "communication that gradients start (torch.distributed) is timed by hooks"
    return None
