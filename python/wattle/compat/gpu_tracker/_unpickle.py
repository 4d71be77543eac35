"""Pickled results, of wattle or gpu_tracker, read without running anything that a pickle names.

A pickle names the classes and functions it is made of. Only those below are available; all others are refused. Its BUILD
instruction could also write into one of these classes themselves, so it is restricted to objects.
"""
from __future__ import annotations

import importlib
import io
import os
import pickle
from typing import Any, Union

from . import _results

_RESULTS = ("CodeBlockResults", "ComparisonResults", "SubTrackingResults")
_RESULT_MODULES = ("gpu_tracker.sub_tracker", _results.__name__)
_NUMPY = {"ndarray", "dtype"}
_NUMPY_MULTIARRAY = {"_reconstruct", "scalar"}
_PANDAS = {
    "pandas.core.frame": {"DataFrame"},
    "pandas.core.series": {"Series"},
    "pandas.core.internals.managers": {"BlockManager", "SingleBlockManager"},
    "pandas._libs.internals": {"_unpickle_block"},
    "pandas.core.indexes.base": {"Index", "_new_Index"},
    "pandas.core.indexes.range": {"RangeIndex"},
}


def _plain_text(text: str, _quote: Any = None) -> str:
    return str(text)


def _find(module: str, name: str) -> Any:
    if module in _RESULT_MODULES and name in _RESULTS:
        return getattr(_results, name)
    if (module, name) == ("sqlalchemy.sql.elements", "quoted_name"):  # texts in the index of results from SQLite
        return _plain_text
    if (module, name) in (("builtins", "slice"), ("__builtin__", "slice")):
        return slice
    if (module, name) == ("_codecs", "encode"):  # how protocol 2 stores bytes
        return _latin1_bytes
    if module == "numpy" and name in _NUMPY or name in _PANDAS.get(module, ()):
        return getattr(importlib.import_module(module), name)
    if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in _NUMPY_MULTIARRAY:
        return _of_numpy(name)
    raise pickle.UnpicklingError(f"{module}.{name} is not part of sub-tracking results")


def _of_numpy(name: str) -> Any:
    try:
        return getattr(importlib.import_module("numpy._core.multiarray"), name)
    except ImportError:  # before numpy 2
        return getattr(importlib.import_module("numpy.core.multiarray"), name)


def _latin1_bytes(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"unsupported encoding of bytes: {encoding}")
    return text.encode("latin1")


_Base: Any = getattr(pickle, "_Unpickler")  # the one in Python, because instructions of the one in C cannot be replaced


class _Unpickler(_Base):  # type: ignore[misc]
    dispatch = dict(_Base.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        return _find(module, name)

    def load_build(self) -> None:
        if isinstance(self.stack[-2], type) or callable(self.stack[-2]):
            raise pickle.UnpicklingError("it modifies a class or function")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def load(path: Union[str, "os.PathLike[str]"]) -> _results.SubTrackingResults:
    """SubTrackingResults from a pickle. ValueError: invalid, or it contains something else."""
    with open(path, "rb") as file:
        pickled = file.read()
    try:
        results = _Unpickler(io.BytesIO(pickled)).load()
    except Exception as failure:  # any exception of numpy and pandas for a damaged or hostile pickle
        raise ValueError(f"{os.fspath(path)} holds no pickled sub-tracking results: {failure}") from failure
    if not _is_whole(results):
        raise ValueError(f"{os.fspath(path)} holds no pickled sub-tracking results")
    return results


def _is_whole(results: Any) -> bool:
    import pandas
    if not isinstance(results, _results.SubTrackingResults):
        return False
    blocks = getattr(results, "code_block_results", None)
    return (isinstance(getattr(results, "overall", None), pandas.DataFrame) and isinstance(blocks, list)
            and all(isinstance(block, _results.CodeBlockResults) and isinstance(getattr(block, "name", None), str)
                    and isinstance(getattr(block, "resource_usage", None), pandas.DataFrame)
                    and isinstance(getattr(block, "compute_time", None), pandas.Series) for block in blocks))
