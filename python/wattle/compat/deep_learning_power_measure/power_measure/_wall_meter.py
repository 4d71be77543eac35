"""The CSV of OmegaWatt's reader: seconds since 1970, whether the frame is complete, volts, amperes, watts.

    #timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,…
    1671527189.314471465,true,232.3,0.0,0.0,0.1,20.9
"""
from __future__ import annotations

import csv
import math
import os
from typing import Any, Iterator, Optional, Union

from ._records import append

PathLike = Union[str, "os.PathLike[str]"]
TIMESTAMP, IS_OK = "#timestamp", "#frame_is_ok"


def _rows(path: PathLike) -> Iterator[list[str]]:
    """The header first; earlier output of the writer is left out."""
    with open(path, encoding="utf-8", errors="replace", newline="") as lines:
        header: Optional[list[str]] = None
        for row in csv.reader(lines):
            names = [name.strip() for name in row]
            if header is None and TIMESTAMP in names and IS_OK in names:
                header = names
                yield header
            elif header is not None and names != header:
                yield row


def _frames(path: PathLike) -> Iterator[tuple[list[str], list[str], float]]:
    """Header, row and time of every complete frame."""
    rows = _rows(path)
    header = next(rows, None)
    if header is None:
        return
    timestamp, is_ok = header.index(TIMESTAMP), header.index(IS_OK)
    for row in rows:
        if len(row) != len(header) or row[is_ok].strip().lower() != "true":
            continue
        try:
            seconds = float(row[timestamp])
        except ValueError:
            continue
        yield header, row, seconds


def load(path: PathLike) -> Optional[dict[str, Any]]:
    """Columns by their names, {'dates': [Unix seconds], 'values': […]}; incomplete frames are left out."""
    metrics: dict[str, Any] = {}
    for header, row, seconds in _frames(path):
        for name, text in zip(header, row):
            if name in (TIMESTAMP, IS_OK):
                continue
            try:
                value = float(text)
            except ValueError:
                continue
            if math.isnan(value):
                continue
            append(metrics, name, seconds, value)
    return metrics or None
