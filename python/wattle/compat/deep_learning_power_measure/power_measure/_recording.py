"""A recording as AIPowerMeter's callers use it, a process and a queue, with wattle's recorder in C."""
from __future__ import annotations

import atexit
import errno
import json
import os
import pathlib
import queue
import threading
import time
import warnings
from typing import Any, Optional, Sequence

from ._driver import Driver
from ._recorder import POLL_S, is_alive, recorder_pid, settle, wait_until_gone

STOP_MESSAGE = "Stop"
EXP_DONE = "Done"

_running: set["Beside"] = set()  # : a caller that drops p and q still records


def tracker_of(run_file: pathlib.Path, pids: Sequence[int], period_s: float, arguments: Sequence[str]) -> Any:
    """A recorder of these processes and their descendants, 0: this one; it appends to the run file."""
    from wattle import _wattle
    also = ["--also", ",".join(map(str, pids[1:]))] if pids[1:] else []
    return _wattle.Tracker(interval_s=period_s, output=run_file, pid=pids[0], quiet=True,
                           arguments=[*arguments, "--append", "--per-process", *also])


def end_recording(run_file: pathlib.Path) -> None:
    """Before a run file is removed: ends this program's recording in it. Raises OSError while another program's is active."""
    if not run_file.exists():
        return
    for recording in [one for one in _running if one.run_file == run_file]:
        recording.stop()
    settle(run_file)
    pid = recorder_pid(run_file)
    if pid is not None:
        raise OSError(errno.EBUSY, f"process {pid} is still recording here; end it or record elsewhere",
                      str(run_file))


class Beside:
    """A process beside the program, from start to stop. Behaves like a started multiprocessing.Process."""
    name = "wattle"
    daemon = True
    run_file: Optional[pathlib.Path] = None  # : its output

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._error: Optional[BaseException] = None
        self._ended = False

    @property
    def pid(self) -> Optional[int]:
        """Its pid; None if /proc does not show it."""
        raise NotImplementedError

    @property
    def ident(self) -> Optional[int]:
        """The same."""
        return self.pid

    @property
    def exitcode(self) -> Optional[int]:
        """None while it runs, then 0, or 1 if it failed."""
        return None if not self._ended else int(self._error is not None)

    def is_alive(self) -> bool:
        """Whether it is running."""
        return not self._ended and (self.pid is None or is_alive(self.pid))

    def join(self, timeout: Optional[float] = None) -> None:
        """Waits until it has ended, at most timeout seconds: by a stop, or because the recorded processes ended."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.is_alive() and (until is None or time.monotonic() < until):
            time.sleep(POLL_S)
        if not self.is_alive():
            self.stop()

    def stop(self) -> None:
        """Ends it. Failures are warnings: they must not end a training. Repeated calls have no effect; in a forked child
        neither, because the process is the parent's."""
        if self._owner != os.getpid():
            return
        with self._lock:
            if self._ended:
                return
            self._end()
            self._ended = True
            _running.discard(self)

    def terminate(self) -> None:
        """Ends it, as stop does."""
        self.stop()

    kill = close = terminate

    def _end(self) -> None:
        raise NotImplementedError

    def _fail(self, what: str, error: BaseException) -> None:
        self._error = self._error or error
        warnings.warn(f"AIPowerMeter: {what}: {error}", RuntimeWarning, stacklevel=5)


class Recording(Beside):
    """The recording process, from start to stop, when it passes the recording to the driver.

    pids: the processes to record, with their descendants; [0] is this one.
"""

    def __init__(self, driver: Driver, pids: Sequence[int], period_s: float) -> None:
        super().__init__()
        driver.begin_run()
        self._driver = driver
        self.run_file = run_file = driver.run_file()
        run_file.parent.mkdir(parents=True, exist_ok=True)
        card = driver.get_model_card()
        meta = ["--meta", f"model_summary={json.dumps(card)}"] if card else []
        self._tracker = tracker_of(run_file, pids, period_s, [*driver.recorder_arguments(), *meta])
        self._tracker.start()
        self._pid = recorder_pid(run_file)
        _running.add(self)

    def __repr__(self) -> str:
        return f"<Recording pid={self._pid} {'ended' if self._ended else 'running'} {self.run_file}>"

    @property
    def pid(self) -> Optional[int]:
        return self._pid

    def _end(self) -> None:
        try:
            self._tracker.stop()
            wait_until_gone(self._pid)
        except (OSError, RuntimeError) as error:
            self._fail("the recorder", error)
        assert self.run_file is not None
        try:
            if self.run_file.exists():
                self._driver.take_run(self.run_file)
            elif self._pid is not None:  # WATTLE_DISABLE=1 records nothing
                raise FileNotFoundError("it was removed meanwhile")
        except Exception as error:  # whatever a driver raises
            self._fail(f"cannot store the recording of {self.run_file}", error)


class ControlQueue:
    """The queue that measure_yourself returns: put(STOP_MESSAGE) ends the recording, which has ended when it returns.

    get returns (None, None) once after the end, (None, error) if it failed. Other messages are dropped.
"""

    def __init__(self, recording: Beside) -> None:
        self._recording = recording
        self._answers: "queue.Queue[Any]" = queue.Queue()
        self._lock = threading.Lock()
        self._answered = False

    def put(self, obj: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        if obj == STOP_MESSAGE:
            self._recording.stop()
            self._answer()

    def put_nowait(self, obj: Any) -> None:
        self.put(obj, block=False)

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Raises queue.Empty after the timeout."""
        if block and not self._answered:
            self._recording.join(timeout)
        if self._recording.exitcode is not None:
            self._answer()
        return self._answers.get(block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return self._answers.empty()

    def full(self) -> bool:
        return False

    def qsize(self) -> int:
        return self._answers.qsize()

    def close(self) -> None:
        """Nothing to close; the recording continues."""

    def cancel_join_thread(self) -> None:
        """There is no thread."""

    def join_thread(self) -> None:
        """There is no thread."""

    def _answer(self) -> None:
        with self._lock:
            if not self._answered:
                self._answered = True
                self._answers.put((None, self._recording._error))


def _end_all() -> None:
    running: list[Beside] = list(_running)
    for beside in running:
        beside.stop()


# A program that ends without a stop, or by an exception, keeps its recording.
atexit.register(_end_all)
