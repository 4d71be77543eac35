"""wattle's recorder as seen by other processes: which one writes a run file, and when it has ended."""
from __future__ import annotations

import os
import pathlib
import time
from typing import Optional, Sequence

POLL_S = 0.02
SETTLE_S = 10.0  # a recorder whose program has ended finishes in milliseconds, on a busy machine in seconds
OUTPUT, ALSO = b"--output=", b"--also"
FOLLOWS, RUNS = b"attach", b"run"  #: wattle's commands that write run files


def is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        pass  # it is gone, or another user's and hidden (hidepid)
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True


def _command_of(pid: str) -> Sequence[bytes]:
    try:
        return pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return ()


def _find(run_file: "str | os.PathLike[str]", *commands: bytes) -> Optional[tuple[int, Sequence[bytes]]]:
    wanted = os.path.realpath(os.fsencode(run_file))
    for entry in os.scandir("/proc"):
        words = _command_of(entry.name) if entry.name.isdigit() else ()
        if len(words) < 2 or words[1] not in commands:
            continue
        outputs = [word.removeprefix(OUTPUT) for word in words if word.startswith(OUTPUT)]
        if any(os.path.realpath(output) == wanted for output in outputs):
            return int(entry.name), words
    return None


def recorder_pid(run_file: "str | os.PathLike[str]") -> Optional[int]:
    """The process that writes a run file, None if /proc does not show it."""
    found = _find(run_file, FOLLOWS, RUNS)
    return found[0] if found is not None else None


def wait_until_gone(pid: Optional[int]) -> None:
    """The run file is complete a moment before a stopped recorder exits; a search for recorders (settle, recorder_pid) would
    still find it."""
    until = time.monotonic() + SETTLE_S
    while pid is not None and is_alive(pid) and time.monotonic() < until:
        time.sleep(POLL_S / 4)


def _followed(words: Sequence[bytes]) -> list[int]:
    """The pids in a recorder's command line."""
    also = [pids for option, pids in zip(words, words[1:]) if option == ALSO]
    return [int(pid) for pids in (*also, words[-1]) for pid in pids.split(b",") if pid.isdigit()]


def settle(run_file: "str | os.PathLike[str]") -> None:
    """If the recorded processes have ended and the recorder is still writing, waits until it has finished."""
    found = _find(run_file, FOLLOWS)
    if found is None:
        return
    pid, words = found
    if any(is_alive(followed) for followed in _followed(words)):
        return
    end = time.monotonic() + SETTLE_S
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(POLL_S)
