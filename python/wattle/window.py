"""Energy windows of a tracker: named measurements whose energy is available during the recording."""
from __future__ import annotations

import array
import os
import threading
import time
from typing import Any, Iterable, Optional

from . import _show, _wattle
from .meter import Meter

NAN = float("nan")
_POLL_S = 0.05
_WRITTEN_WITHIN_S = 2.0  # the recorder writes its rows about once a second


class Window:
    """The result of Tracker.end_window. Energies are in J, NaN where unknown; errors are half of a 95 % interval.

    The energy of the machine is read from the counters at both ends, as wattle.Meter does:

    name, seconds        the window and its duration
    total_j, error_j     energy of the machine
    cpu_j, dram_j, gpu_j its parts
    domains              {"package-0": (energy_j, error_j), "gpu-1": …}: each device
    calibration_error_j  additional error from the gain of GPU power sensors
    estimated            True: part of it is estimated by a model

    target_j and target_error_j, the energy attributed to the tracked processes, come from the recording. The first use
    of either waits until the recorder has written the end of the window, about a second plus one interval.
    """

    def __init__(self, name: str, reading: _wattle.Reading, domains: dict[str, tuple[float, float]],
                 target: _Target) -> None:
        self.name = name
        self.seconds = reading.seconds
        self.total_j = reading.total_j
        self.error_j = reading.error_j
        self.cpu_j = reading.cpu_j
        self.dram_j = reading.dram_j
        self.gpu_j = reading.gpu_j
        self.calibration_error_j = reading.calibration_error_j
        self.estimated = reading.estimated
        self.domains = domains
        self._target = target

    @property
    def target_j(self) -> float:
        """Energy attributed to the tracked processes. NaN: the recorder has not written the end of the window in time;
        a later use tries again."""
        return self._target.get()[0]

    @property
    def target_error_j(self) -> float:
        """Half of a 95 % interval of target_j."""
        return self._target.get()[1]

    @property
    def power_w(self) -> float:
        """Mean power of the machine."""
        return self.total_j / self.seconds if self.seconds > 0 else NAN

    def __repr__(self) -> str:
        estimated = " (estimated)" if self.estimated else ""
        return (f"<wattle window {self.name!r}: {_show.with_error(self.total_j, self.error_j, 'J')}{estimated} in "
                f"{_show.quantity(self.seconds, 's')}>")


class _Target:
    """The tracked processes' energy between two instants, by the run file of a recorder."""

    def __init__(self, recorder: Optional[_wattle.Tracker], begin_ns: int, end_ns: int, interval_s: float) -> None:
        self._recorder = recorder  # holds a temporary run file; None: pickled, or nothing is recorded
        self._begin_ns, self._end_ns = begin_ns, end_ns
        self._wait_s = _WRITTEN_WITHIN_S + 2 * interval_s
        self._energy: Optional[tuple[float, float]] = None

    def get(self) -> tuple[float, float]:
        """Energy and its error; (NaN, NaN): not known yet, or not at all."""
        run = self._run() if self._energy is None else None
        if run is not None:
            begin, end = array.array("q", [self._begin_ns]), array.array("q", [self._end_ns])
            self._energy = run.divide(begin, end, array.array("i", [1]), 2)[1][1:]
            self._recorder = None
        return self._energy or (NAN, NAN)

    def _run(self) -> Optional[_wattle.Run]:
        """The run, once it reaches beyond the window."""
        path = self._recorder.run_file if self._recorder is not None else None
        give_up = time.monotonic() + self._wait_s
        while path is not None:
            is_over = self._recorder is None or self._recorder.state == 2
            run = _wattle.Run(path)
            times = memoryview(run.samples()[0].buffer)  # type: ignore[arg-type]
            if len(times) and times[-1] >= self._end_ns:
                return run
            if is_over or time.monotonic() > give_up:
                return None
            time.sleep(_POLL_S)
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Numbers can be pickled, a recorder can't."""
        self.get()
        return {**self.__dict__, "_recorder": None}


class _Open:
    """An open window."""

    def __init__(self, meter: Optional[Meter], name: str, in_report: bool) -> None:
        self.meter = meter
        self.range = _wattle.range_begin(name) if in_report else None
        self.begin_ns = time.monotonic_ns()
        if meter is not None:
            meter.start()


class Windows:
    """The open windows of one tracker, and the meters that serve them. Meters are kept: opening one takes
    milliseconds, with the driver of a GPU up to seconds."""

    def __init__(self, recorder: _wattle.Tracker, interval_s: float, gpus: Optional[str], gpu_brand: Optional[str],
                 in_report: bool) -> None:
        self._recorder, self._interval_s = recorder, interval_s
        self._options = gpus, gpu_brand
        self._in_report = in_report  # the windows are code blocks of the recording, too
        self._open: dict[str, _Open] = {}
        self._idle: list[Optional[Meter]] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def begin(self, name: str) -> None:
        self._check_process()
        if not isinstance(name, str) or not name:
            raise ValueError(f"{name!r} is not a valid window name. Must be a string that is not empty.")
        meter = self._take_meter()
        with self._lock:
            if name in self._open:
                self._idle.append(meter)
                raise ValueError(f"Window {name!r} is open already. End it first, or use another name.")
            self._open[name] = _Open(meter, name, self._in_report)

    def end(self, name: str) -> Window:
        self._check_process()
        with self._lock:
            if name not in self._open:
                raise ValueError(f"No window {name!r} is open. {_suggestion(name, self._open)}")
            window = self._open.pop(name)
            reading = window.meter.stop() if window.meter is not None else _unknown(window.begin_ns)
            end_ns = time.monotonic_ns()
            domains = window.meter.domains if window.meter is not None else {}
            self._idle.append(window.meter)
        if window.range is not None:
            _wattle.range_end(window.range)
        return Window(name, reading, domains, _Target(self._recorder, window.begin_ns, end_ns, self._interval_s))

    def close(self) -> list[str]:
        """Releases the meters; the names of the windows that were not ended."""
        if self._pid != os.getpid():
            return []
        with self._lock:
            names = list(self._open)
            for meter in (*self._idle, *(window.meter for window in self._open.values())):
                if meter is not None:
                    meter.close()
            self._open.clear()
            self._idle.clear()
        return names

    def _take_meter(self) -> Optional[Meter]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        try:  # without the lock: a driver may take seconds, and windows of other threads end meanwhile
            return Meter(*self._options)
        except OSError:  # no sensor: the energy is unknown, the duration is not
            return None

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise RuntimeError("This process was forked while tracking. The tracker and its windows belong to its "
                               "parent.")


def _unknown(begin_ns: int) -> _wattle.Reading:
    seconds = (time.monotonic_ns() - begin_ns) / 1e9
    return _wattle.Reading((seconds, NAN, NAN, NAN, NAN, NAN, False, NAN))


def _suggestion(name: object, names: Iterable[str]) -> str:
    import difflib  # for the error message only
    known = sorted(names)
    if not known:
        return "No window is open: call begin_window first."
    near = difflib.get_close_matches(str(name), known, 1)
    return (f"Did you mean {near[0]!r}? " if near else "") + f"Open windows: {', '.join(map(repr, known))}."
