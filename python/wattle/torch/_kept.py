"""Adding metadata to a complete run file."""
import os
from typing import Any

from .. import _sqlite


def keep(run_file: Any, key: str, value: str) -> None:
    """A metadata entry of the run; replaces one with that key."""
    if not os.path.isfile(run_file):
        raise FileNotFoundError(f"{os.fspath(run_file)}: run file does not exist")
    connection = _sqlite.connect(run_file, ("run",))
    try:
        with connection:
            connection.execute("INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", (key, value))
    finally:
        connection.close()
