"""wattle.Tracker: records a process and its descendants from start to stop, with gpu_tracker's arguments."""
from __future__ import annotations

import atexit
import enum
import json
import logging
import math
import numbers
import os
import threading
import weakref
from typing import Any, Callable, Collection, Optional, Sequence, TypeVar, Union

from . import _ranges, _show, _wattle, carbon
from .resource_usage import (ComputeTime, CPUUtilization, Energy, GPUUtilization, MaxGPURAM, MaxRAM,
                             ProcessingUnitPercentages, ResourceUsage, text)
from .run import Report
from .window import Window, Windows

PathLike = Union[str, "os.PathLike[str]"]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound="Tracker")

_log = logging.getLogger(__name__)
_logged: set[str] = set()  # warnings of recorders that have been logged

_MEMORY_UNITS = {"bytes": 1.0, "kilobytes": 1e3, "megabytes": 1e6, "gigabytes": 1e9, "terabytes": 1e12}
_TIME_UNITS = ("seconds", "minutes", "hours", "days")
_BRANDS = ("nvidia", "amd", "intel")
_SHORTEST_S, _LONGEST_S = 0.001, 3600.0


class Tracker:
    """Records this process (or another one) and its descendants from start to stop, in a process of its own.

        with wattle.Tracker() as tracker:
            tracker.begin_window("epoch")
            train()
            print(tracker.end_window("epoch").total_j)
        print(tracker)
        print(tracker.energy.target_j)

        @wattle.Tracker()
        def train(): ...

        train()
        print(train.tracker)

    A tracker records once; a decorated function makes a recording per call. `resource_usage` (ResourceUsage), `energy`
    (Energy, J) and `report` (the schema "wattle-report/1" as a dict; None under WATTLE_DISABLE) raise RuntimeError
    before stop; windows return energies earlier. In a forked child the tracker belongs to the parent.
    """

    class State(enum.Enum):
        """State of the tracker."""

        NEW = 0
        STARTED = 1
        STOPPED = 2

    _warning_level = logging.WARNING  #: of the recorder's warnings
    _early_is_error = True  #: results before stop: True raises RuntimeError, False returns None

    def __init__(self, sleep_time: float = 0.1, ram_unit: str = "gigabytes", gpu_ram_unit: str = "gigabytes",
                 time_unit: str = "seconds", n_expected_cores: Optional[int] = None,
                 gpu_uuids: Optional[Collection[str]] = None,
                 disable_logs: bool = False, process_id: Optional[int] = None,
                 resource_usage_file: Optional[PathLike] = None,
                 n_join_attempts: int = 5, join_timeout: float = 10.0, gpu_brand: Optional[str] = None,
                 tracking_file: Optional[PathLike] = None, overwrite: bool = False, *,
                 output: Optional[PathLike] = None,
                 label: Optional[str] = None, arguments: Sequence[str] = (),
                 carbon_region: Optional[str] = None) -> None:
        """
        sleep_time           seconds between two samples, 0.001 to 3600
        ram_unit             bytes, kilobytes, megabytes, gigabytes or terabytes (decimal); gpu_ram_unit likewise
        time_unit            seconds, minutes, hours or days
        n_expected_cores     number of cores that hardware percentages refer to; None: all cores
        gpu_uuids            GPUs to measure; None: those visible to the program (CUDA_VISIBLE_DEVICES and similar)
        disable_logs         log no warnings
        process_id           process to track; None: this one
        resource_usage_file  file for the pickled resource_usage if the program ends without stop; None: a hidden file
                             in the current folder. If given, the run file is beside it (".sqlite" added) until stop,
                             and remains if the program is killed: `wattle report` reads it
        n_join_attempts      stop waits n_join_attempts * join_timeout seconds for the recorder, then kills it
        gpu_brand            nvidia, amd or intel; None: all found
        tracking_file        also write gpu_tracker's tracking file, .csv or .sqlite
        overwrite            replace an existing tracking file or run file
        output               path of the run file, for wattle.open(); None: a temporary one, removed with the tracker
        label                label shown in reports, stored in the run file
        arguments            further options of `wattle attach`
        carbon_region        country whose electricity is used, such as "DE": energy.carbon_g (wattle.carbon)

        ValueError lists the valid values. FileExistsError: tracking_file or output exists and overwrite is not set.
        """
        if callable(sleep_time):
            raise TypeError("Tracker does not accept a function. Decorate with @wattle.Tracker(), including the "
                            "parentheses.")
        _check_number("Sleep time", sleep_time, _SHORTEST_S, _LONGEST_S, " seconds")
        _check_choice("RAM unit", ram_unit, _MEMORY_UNITS)
        _check_choice("GPU RAM unit", gpu_ram_unit, _MEMORY_UNITS)
        _check_choice("time unit", time_unit, _TIME_UNITS)
        _check_number("Number of expected cores", 1 if n_expected_cores is None else n_expected_cores, 1, 1_000_000,
                      kind=numbers.Integral)
        _check_number("Process ID", 1 if process_id is None else process_id, 1, 2**31 - 1, kind=numbers.Integral)
        _check_number("Number of join attempts", n_join_attempts, 1, 1_000_000, kind=numbers.Integral)
        _check_number("Join timeout", join_timeout, 0, 1_000_000, " seconds")
        if gpu_brand is not None and gpu_brand not in _BRANDS:
            raise ValueError(f'"{gpu_brand}" is not a valid GPU brand. Supported values are {_listed(_BRANDS)}.')
        if carbon_region is not None:
            arguments = [*arguments, "--carbon-region", carbon.region(carbon_region).code]
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        self._resource_usage: Optional[ResourceUsage] = None
        self._energy: Optional[Energy] = None
        self._report: Optional[Report] = None
        self._disable_logs = disable_logs
        self._process_id = process_id
        self._units = ram_unit, gpu_ram_unit, time_unit
        self._n_expected_cores = n_expected_cores
        self._usage_file = os.path.abspath(resource_usage_file or f".gpu-tracker_{os.urandom(16).hex()}.pkl")
        self._lock = threading.Lock()
        self._backup: Optional[str] = None  # our own run file, removed after stop
        if output is None and resource_usage_file is not None:
            output = self._backup = f"{self._usage_file}.sqlite"
        self._kept = [_absolute(check_ending(tracking_file)), _absolute(output) if self._backup is None else None]
        self._options: dict[str, Any] = dict(
            interval_s=sleep_time, output=_absolute(output), overwrite=overwrite,
            tracking_file=_absolute(tracking_file), ram_unit=ram_unit, gpu_ram_unit=gpu_ram_unit,
            time_unit=time_unit, expected_cores=n_expected_cores or 0, gpus=_gpus(gpu_uuids, gpu_brand),
            gpu_brand=gpu_brand, label=label, pid=process_id or 0, quiet=True, arguments=arguments,
            stop_timeout_s=max(n_join_attempts * join_timeout, _SHORTEST_S))
        self._renew()

    def _renew(self) -> None:
        """Creates the recorder of the next recording. FileExistsError: it would replace a file."""
        for path in self._kept:
            if path is not None and not self._options["overwrite"] and os.path.exists(path):
                raise FileExistsError(f"File {path} already exists. "
                                      "Set overwrite to True to overwrite the existing file.")
        self.state = Tracker.State.NEW
        self._has_target = True
        self._recorder = _wattle.Tracker(**self._options)
        self._windows = Windows(self._recorder, self._options["interval_s"], self._options["gpus"],
                                self._options["gpu_brand"], in_report=self._process_id in (None, os.getpid()))
        self._resource_usage = self._energy = self._report = None

    # ---- start and stop ----

    def start(self) -> None:
        """Starts recording; returns after the first sample. RuntimeError: already started. OSError: refused."""
        with self._lock:
            if self.state is not Tracker.State.NEW:
                raise RuntimeError(f"Cannot start tracking when tracking has already {self.state.name.lower()}.")
            try:
                self._recorder.start()
            except ProcessLookupError:
                self._warn(f"The target process of ID {self._process_id} ended before tracking could begin.")
                self._has_target = False
            self.state = Tracker.State.STARTED
            _started[id(self)] = self

    def stop(self) -> None:
        """Stops recording; returns when the run file is complete, and sets resource_usage, energy and report.
        RuntimeError: not started."""
        with self._lock:
            if self.state is Tracker.State.NEW:
                raise RuntimeError("Cannot stop tracking when tracking has not started yet.")
            if self.state is Tracker.State.STOPPED:
                raise RuntimeError("Cannot stop tracking when tracking has already stopped.")
            for name in self._windows.close():
                self._warn(f"Window {name!r} was not ended before the tracker stopped, and has no result.")
            report = self._end() if self._has_target else None
            self._take(report)
            self.state = Tracker.State.STOPPED
            _started.pop(id(self), None)
        for warning in (report or {}).get("warnings", ()):
            if not self._disable_logs and warning not in _logged:  # a warning about the machine applies to every tracker
                _logged.add(warning)
                self._warn(warning, self._warning_level)
        self._remove_backup()

    def __enter__(self: T) -> T:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, function: F) -> F:
        """Decorator: each call of the function is a recording. It lasts until the function returns, or until its
        coroutine or generator is finished. Calls that overlap (recursion, threads, tasks) share one recording, from
        the first call to the end of the last. This tracker, also `function.tracker`, has the results of the latest
        recording. TypeError: not a function or method."""
        decorated = _ranges.wrap_calls(function, "a tracker", self._begin_calls, self.stop)
        getattr(decorated, "__func__", decorated).tracker = self
        result: F = decorated
        return result

    def _begin_calls(self) -> None:
        if self.state is Tracker.State.STOPPED:
            self._renew()
        self.start()

    # ---- windows ----

    def begin_window(self, name: str) -> None:
        """Begins a window: a named measurement, also a code block of the report. Windows may be nested, overlap and
        run in several threads. ValueError: a window of that name is open. RuntimeError: not tracking."""
        self._check_tracking("begin")
        self._windows.begin(name)

    def end_window(self, name: str) -> Window:
        """Ends a window and returns its energy at once. ValueError lists the open windows. RuntimeError: not
        tracking."""
        self._check_tracking("end")
        return self._windows.end(name)

    def _check_tracking(self, verb: str) -> None:
        if self.state is not Tracker.State.STARTED:
            reason = "has not started yet" if self.state is Tracker.State.NEW else "has already stopped"
            raise RuntimeError(f"Cannot {verb} a window when tracking {reason}.")

    def _end(self) -> Optional[dict[str, Any]]:
        """The report; None: nothing was recorded (WATTLE_DISABLE)."""
        try:
            self._recorder.stop()
            report: Optional[dict[str, Any]] = json.loads(self._recorder.report_json())
            return report
        except OSError as failure:
            self._warn(f"{failure.strerror}; results cover only the data written so far.")
            return self._salvage()

    def _salvage(self) -> dict[str, Any]:
        """The report from an incomplete run file."""
        try:
            report: dict[str, Any] = json.loads(_wattle.Run(self._recorder.run_file or "").report_json())
            return report
        except (OSError, ValueError) as failure:
            self.state = Tracker.State.STOPPED
            raise RuntimeError(f"cannot read tracking results: {failure}") from failure

    def _take(self, report: Optional[dict[str, Any]]) -> None:
        self._report = Report(report) if report else None
        self._energy = Energy.from_report(report) if report else Energy(None, None, None, None, None)
        self._resource_usage = ResourceUsage.from_json(report["resource_usage"]) if report else self._nothing()

    def _adopt(self, report: dict[str, Any]) -> None:
        """Takes over the report of another recorder."""
        self._take(report)
        self.state = Tracker.State.STOPPED

    def _nothing(self) -> ResourceUsage:
        """Results for a process that had ended, or under WATTLE_DISABLE: usage is 0, machine figures are None."""
        ram_unit, gpu_ram_unit, time_unit = self._units
        cores = os.cpu_count() or 1
        capacity = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MEMORY_UNITS[ram_unit]
        unknown = ProcessingUnitPercentages(None, None, None, None)
        return ResourceUsage(MaxRAM(ram_unit, capacity, None), MaxGPURAM(gpu_ram_unit, None, None),
                             CPUUtilization(cores, self._n_expected_cores or cores, unknown),
                             GPUUtilization(None, None, unknown), ComputeTime(time_unit))

    def _warn(self, warning: str, level: int = logging.WARNING) -> None:
        if not self._disable_logs:
            _log.log(level, "%s", warning)

    # ---- a program that ends without stop ----

    def _save(self) -> None:
        """At interpreter exit: pickles the results into the usage file."""
        if self.state is not Tracker.State.STARTED:
            return
        try:
            self.stop()
            import pickle
            with open(self._usage_file, "wb") as file:
                pickle.dump(self._resource_usage, file)
        except (OSError, RuntimeError) as failure:
            self._warn(f"The program ended without stop; its resource usage could not be saved: {failure}")
            return
        self._warn(f"The program ended without stop; its resource usage was saved to {self._usage_file}.")

    def _remove_backup(self) -> None:
        if self._backup is not None:
            for ending in ("", "-wal", "-shm"):
                try:
                    os.remove(self._backup + ending)
                except FileNotFoundError:
                    pass

    # ---- results ----

    def _done(self, attribute: str) -> None:
        """RuntimeError if results are not available yet."""
        if self._energy is None and self._early_is_error:
            raise RuntimeError(f"Tracker.{attribute} is not available before tracking completes. Exit the context "
                               "manager or call stop() first. For energies during tracking use begin_window() and "
                               "end_window().")

    @property
    def resource_usage(self) -> ResourceUsage:
        """Time, CPU, memory and GPU use in gpu_tracker's fields. RuntimeError before stop."""
        self._done("resource_usage")
        return self._resource_usage  # type: ignore[return-value]  # None in gpu_tracker's class only

    @property
    def energy(self) -> Energy:
        """Energy of the machine and of the tracked processes, J. RuntimeError before stop."""
        self._done("energy")
        return self._energy  # type: ignore[return-value]  # likewise

    @property
    def report(self) -> Optional[Report]:
        """The whole report; None: nothing was recorded (WATTLE_DISABLE). RuntimeError before stop."""
        self._done("report")
        return self._report

    @property
    def run_file(self) -> Optional[str]:
        """Path of the run file, for wattle.open(); None before start. A temporary one is removed with the tracker."""
        return self._recorder.run_file if self._recorder is not None else None

    def to_json(self) -> dict[str, Any]:
        """`energy` and the fields of resource_usage as dictionaries. RuntimeError before stop."""
        if self._resource_usage is None or self._energy is None:
            raise RuntimeError("Cannot display the tracker in string or JSON format before tracking completes. Exit "
                               "the context manager or call the stop() method before calling to_json() or str()")
        return {"energy": vars(self._energy), **self._resource_usage.to_json()}

    def __str__(self) -> str:
        values = self.to_json()
        energy = Energy(**values.pop("energy"))
        return f"{energy}\n{text(values)}"

    def __repr__(self) -> str:
        return f"State: {self.state.name}"

    def _repr_html_(self) -> str:
        return self._report._repr_html_() if self._report is not None else repr(self)

    def __getstate__(self) -> dict[str, Any]:
        """Results can be pickled, a recorder can't."""
        if self.state is Tracker.State.STARTED:
            raise RuntimeError("Cannot pickle a tracker before tracking completes.")
        return {**self.__dict__, "_recorder": None, "_lock": None, "_windows": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


# ---- checks of arguments ----

def _listed(words: Collection[str]) -> str:
    *first, last = (f'"{word}"' for word in words)
    return f"{', '.join(first)} and {last}"


def _check_choice(what: str, value: str, valid: Collection[str]) -> None:
    if value not in tuple(valid):
        raise ValueError(f'"{value}" is not a valid {what}. Valid values are {", ".join(sorted(valid))}')


def _check_number(what: str, value: Any, least: float, most: float, unit: str = "", *,
                  kind: Any = numbers.Real) -> None:
    if not isinstance(value, kind):
        number = "an integer" if kind is numbers.Integral else "a number"
        raise ValueError(f"{what} of {value!r} is invalid. Must be {number}, at least {least}{unit}.")
    if not (math.isfinite(value) and value >= least):
        raise ValueError(f"{what} of {value} is invalid. Must be at least {least}{unit}.")
    if value > most:
        raise ValueError(f"{what} of {value} is invalid. Must be at most {most}{unit}.")


def _absolute(path: Optional[PathLike]) -> Optional[str]:
    """Absolute, because the program may change its working folder before start or stop."""
    return None if path is None else os.path.abspath(path)


def check_ending(path: Optional[PathLike]) -> Optional[PathLike]:
    """The path of a tracking or sub-tracking file; ValueError unless it is .csv or .sqlite, or None."""
    if path is not None and not os.fspath(path).endswith((".csv", ".sqlite")):
        raise ValueError(f'Invalid file name: "{path}". Valid file extensions are ".csv" and ".sqlite".')
    return path


def _gpus(uuids: Optional[Collection[str]], brand: Optional[str]) -> Optional[str]:
    """GPUs in the recorder's format; ValueError lists those of this machine."""
    if uuids is None:
        return None
    wanted = {uuids} if isinstance(uuids, str) else set(uuids)
    if not wanted:
        raise ValueError("gpu_uuids is not None but the set is empty. Please provide a set of at least one GPU UUID.")
    if not all(isinstance(one, str) for one in wanted):
        raise ValueError(f"gpu_uuids of {wanted} is invalid. Please provide a set of strings.")
    gpus = ",".join(sorted(wanted))
    try:
        _wattle.check_gpus(gpus, brand)
    except ValueError as failure:
        raise ValueError(str(failure).replace("--gpus", "GPU UUID", 1)) from None
    return gpus


# ---- the end of the interpreter ----

_started: weakref.WeakValueDictionary[int, Tracker] = weakref.WeakValueDictionary()


@atexit.register
def _save_started() -> None:
    for tracker in list(_started.values()):
        tracker._save()


os.register_at_fork(after_in_child=_started.clear)  # these trackers belong to the parent
