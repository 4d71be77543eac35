"""Path of the program wattle."""
from __future__ import annotations

import os
import shutil
from typing import Optional

_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "wattle")


def find() -> Optional[str]:
    """The package's own, in wheels and build folders, else the first in PATH; None: not found."""
    return _OWN if os.access(_OWN, os.X_OK) else shutil.which("wattle")
