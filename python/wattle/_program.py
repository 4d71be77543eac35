"""Where the program wattle is."""
from __future__ import annotations

import os
import shutil
from typing import Optional

_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "wattle")


def find() -> Optional[str]:
    """The package's own, as wheels and build folders have it, else the first in PATH; None: there is none."""
    return _OWN if os.access(_OWN, os.X_OK) else shutil.which("wattle")
