"""What programs add to a run file that is complete."""
import os
from typing import Any

from .. import _sqlite


def keep(run_file: Any, key: str, value: str) -> None:
    """A fact of the run; replaces one of that key."""
    if not os.path.isfile(run_file):
        raise FileNotFoundError(f"{os.fspath(run_file)}: there is no such run file")
    connection = _sqlite.connect(run_file, ("run",))
    try:
        with connection:
            connection.execute("INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", (key, value))
    finally:
        connection.close()
