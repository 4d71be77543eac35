"""What programs add to a run file that is complete."""
import os
import sqlite3
from typing import Any


def keep(run_file: Any, key: str, value: str) -> None:
    """A fact of the run; replaces one of that key."""
    if not os.path.isfile(run_file):
        raise FileNotFoundError(f"{os.fspath(run_file)}: there is no such run file")
    connection = sqlite3.connect(run_file)
    try:
        with connection:
            connection.execute("INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", (key, value))
    finally:
        connection.close()
