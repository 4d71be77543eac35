"""Experiment: starts and ends recordings."""
from __future__ import annotations

import logging
import math
import numbers
import os
import signal
import threading
import time
import warnings
from typing import Any, Iterable, Optional, Sequence

from . import gpu_power, model_complexity, rapl_power
from ._driver import Driver
from ._proc import all_pids, parent_of, pid_of
from ._recorder import is_alive
from ._recording import Beside, ControlQueue

SHORTEST_S, LONGEST_S = 0.001, 3600.0

_log = logging.getLogger(__name__)


def _interval_s(period: float, measurement_period: Optional[float]) -> float:
    """Seconds between two records. Raises ValueError."""
    given = {"period": period} if measurement_period is None else {"period": period,
                                                                   "measurement_period": measurement_period}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not SHORTEST_S <= value <= LONGEST_S:
            raise ValueError(f"{name} must be a number of seconds from {SHORTEST_S} to {LONGEST_S:.0f}, not {value!r}")
    return float(period if measurement_period is None else measurement_period)


class Experiment:
    """Records a program's use, in a process of its own, while the program runs.

        driver = parsers.JsonParser("folder")
        p, q = experiment.Experiment(driver).measure_yourself(period=2)
        train()
        q.put(experiment.STOP_MESSAGE)

    driver: stores the recordings; unless cont, its contents are erased now. Each measurement adds a segment.
    model, input_size: a torch module and (batch, …), stored as the model card (parameters, multiply-adds).
    Raises ValueError for a model without input_size, TypeError for an invalid driver.
"""

    def __init__(self, driver: Driver, model: Any = None, input_size: Optional[Sequence[int]] = None,
                 cont: bool = False) -> None:
        if not isinstance(driver, Driver):
            raise TypeError("driver must be a parsers.JsonParser, a parsers.SqlParser, a "
                            "prometheus_client.PrometheusClient or "
                            f"another parsers.Driver, not {type(driver).__name__}")
        self.db_driver = driver
        if not cont:
            driver.erase()
        self.rapl_available, rapl_message = rapl_power.is_rapl_compatible()
        self.nvidia_available, nvidia_message = gpu_power.is_nvidia_compatible()
        self.wattmeter_available = driver.wall_meter is not None
        _log.info("%s", nvidia_message)
        if self.rapl_available:
            _log.info("%s", rapl_message)
        else:
            warnings.warn(f"RAPL not available: {rapl_message}; CPU energy comes from another sensor or is estimated "
                          "(run `wattle sensors`)", RuntimeWarning, stacklevel=2)
        if model is not None:
            self.save_model_card(model, input_size)

    def save_model_card(self, model: Any, input_size: Optional[Sequence[int]], device: Any = None) -> None:
        """Counts the model's parameters and multiply-adds and stores them with the recording."""
        if model is None or input_size is None:
            raise ValueError("a model card requires the model and its input_size, (batch, …)")
        self.db_driver.save_model_card(model_complexity.get_summary(model, input_size, device=device))

    def measure_yourself(self, period: float = 1, measurement_period: Optional[float] = None
                         ) -> tuple[Beside, ControlQueue]:
        """Records this process and its descendants. period: seconds between two records, 0.001 to 3600;
        measurement_period, if given, overrides it. Returns (process, queue); queue.put(STOP_MESSAGE) ends it.

        Counters are read at both ends and in between as often as necessary: a long period loses no energy.
"""
        return self._record([0], _interval_s(period, measurement_period))

    def measure_from_pid_list(self, pid_list: Iterable[Any], period: float = 1) -> tuple[Beside, ControlQueue]:
        """Records these processes (pids, or objects with .pid) and their descendants, until they have ended or STOP_MESSAGE is
        sent. Ended ones are left out. Raises ValueError if none is left."""
        wanted = list(dict.fromkeys(map(pid_of, pid_list)))
        interval_s = _interval_s(period, None)
        while True:
            living = [pid for pid in wanted if is_alive(pid)]
            if not living:
                raise ValueError(f"no process to measure: {', '.join(map(str, wanted))} ended" if wanted else
                                 "no process to measure: the list is empty")
            try:
                return self._record(living, interval_s)
            except ProcessLookupError:  # one ended meanwhile
                if all(map(is_alive, living)):
                    raise

    def monitor_machine(self, pid_args: Optional[Iterable[Any]] = None, parent_pid: int = 1, period: float = 1,
                        measurement_period: Optional[float] = None, *, duration_s: float = math.inf) -> None:
        """Records all processes (parent_pid and its descendants; or pid_args) until Ctrl-C, SIGTERM or duration_s.

        Returns only then. The machine's own figures (intel_power, total_mem_use) are of the machine in any case.
"""
        followed = [parent_pid] if pid_args is None else list(map(pid_of, pid_args))
        recording, _ = self._record(followed, _interval_s(period, measurement_period))
        end = time.monotonic() + duration_s
        with _Interruptible() as asked:
            while recording.is_alive() and not asked.is_set():
                left = end - time.monotonic()
                if left <= 0:
                    break
                asked.wait(min(left, 0.5))
        recording.stop()

    def _record(self, followed: Sequence[int], interval_s: float) -> tuple[Beside, ControlQueue]:
        recording = self.db_driver.record(followed, interval_s)
        return recording, ControlQueue(recording)


class _Interruptible:
    """An event that SIGINT and SIGTERM set, where this thread may handle signals."""

    def __enter__(self) -> threading.Event:
        event = threading.Event()
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, lambda *_: event.set())
        return event

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def get_pid_list(current_pid: int, parent_pid: Optional[int] = None) -> list[int]:
    """The pids of parent_pid (None: this process's parent) and its descendants, without current_pid's."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        parent = parent_of(pid)
        if parent is not None:
            children.setdefault(parent, []).append(pid)

    def family(pid: int) -> list[int]:
        found, waiting = [], [pid]
        while waiting:
            found.append(waiting.pop(0))
            waiting += children.get(found[-1], [])
        return found

    left_out = set(family(current_pid))
    return [pid for pid in family(os.getppid() if parent_pid is None else parent_pid) if pid not in left_out]
