"""Power and clock limits of GPUs and CPU packages, and the search for the limit that saves most.

    for device in wattle.cap.list():
        print(device.device, device.current_w, device.min_w, device.max_w)

    with wattle.cap.set("gpu-0", 250):      # the previous limit is restored at the end of the block, also
        train()                             # after an exception, exit or kill -9

    result = wattle.cap.tune("gpu-0", lambda: train_step(next(batches)))
    with result.apply():                    # the limit with the least energy times time squared per step
        train()

device: "gpu-0", "package-1", a GPU's UUID or a prefix of it, several of these in a list or with commas, or "gpus": those
visible to this program. A limit is a lease of this process. No other process gets the device meanwhile; children do not
hold the lease. Limits are in W, clocks (NVIDIA GPUs) in MHz; unknown values are NaN.

ValueError: outside of the device's range, or an argument is not valid. LookupError: there is no such device, or it
cannot be limited. PermissionError: neither this program nor the helper wattled has permission. BlockingIOError: another
process has a lease on it, or another thread of this one has a Limit or a search. RuntimeError: another program has
changed the limit since (its limit stays), or a Limit is used twice. Other OSErrors: the device or the journal
(WATTLE_STATE) failed. Every message states the correct form or the remedy.
"""
from __future__ import annotations

import builtins
import errno
import json
import os
import sys
import threading
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

from . import _show, _wattle

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

__all__ = ["Device", "Interval", "Limit", "Progress", "Row", "TuneResult", "get", "list", "reset", "set", "tune"]

Devices = Union[str, Sequence[str]]
Step = Union[Callable[[], Any], Iterator[Any]]

_NAN = float("nan")
_J_PER_KWH = 3.6e6

_wattle.cap_introduce(os.path.basename(getattr(sys, "argv", [""])[0]) or "python3")  # the name that users know


class Device(NamedTuple):
    """A device with a limit, as it was at the call."""
    device: str  #: "gpu-0", "package-0"
    name: str  # : label for display
    id: str  # : stable across reboots
    current_w: float  #: the limit in force
    default_w: float  # : the device's default
    min_w: float  # : if the device states none, wattle's own minimum
    max_w: float
    enforced_w: float  # : after all limiters, if the device reports it
    settable: bool  # : this program may set it, as far as can be determined without trying
    why: str  # : reason, if not
    remedy: str  # : the command that fixes it
    lease: Optional[str]  # : owner of the lease: "train.py, pid 4242, user alice"
    min_mhz: float  # : range of the clock for `clock_mhz`
    max_mhz: float
    clocks_settable: bool


def list() -> builtins.list[Device]:
    """All devices with a limit: GPUs by number, then packages."""
    return [Device(*row) for row in _warn_of_notice(_wattle.cap_list())]


def get(device: str) -> Device:
    """One device, read now."""
    return Device(*_warn_of_notice(_wattle.cap_get(_names(device))))


# ---- set ----

class _Leases:
    """This process's limits, by threads and blocks. A device has an entry for the whole program and one for each nested block;
    the last one's value is in force."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.cells: dict[tuple[str, bool], builtins.list[builtins.list[Any]]] = {}  # [Limit or None, value or None]
        self.limits: weakref.WeakSet[Limit] = weakref.WeakSet()  # one without an owner cannot conflict with another's

    def of(self, key: tuple[str, bool]) -> builtins.list[builtins.list[Any]]:
        return self.cells.setdefault(key, [[None, None]])

    def check(self, keys: Sequence[tuple[str, bool]]) -> None:
        """BlockingIOError if another thread has one of these."""
        for limit in self.limits:
            if limit._thread is threading.current_thread() or not limit._thread.is_alive():
                continue
            for key in limit._keys:
                if key in keys and limit._is_on:
                    raise BlockingIOError(errno.EBUSY, f"{key[0]} is limited by another thread of this program "
                                              f"({limit._thread.name}): end its block or call limit.reset() first")


if "_leases" not in globals():  # importlib.reload must keep the limits in force
    _leases = _Leases()


def _after_fork() -> None:
    global _leases
    _leases = _Leases()  # the parent's limits are not the child's


os.register_at_fork(after_in_child=_after_fork)


class Limit:
    """A limit made by set(). As a context manager it ends with the block, and the enclosing block's limit (or the previous
    one) is restored; without `with` it lasts until reset() or the end of the process."""

    def __init__(self, names: Sequence[str], values: dict[bool, float], keep: bool) -> None:
        self.devices = tuple(names)
        self.power_w = values.get(False)
        self.clock_mhz = values.get(True)
        self.keep = keep
        self._thread = threading.current_thread()
        self._values = values
        self._keys = [(name, clocks) for clocks in values for name in names]
        self._before: dict[tuple[str, bool], Any] = {}
        self._leases = _leases
        self._is_on = False

    def _set(self) -> None:
        leases = self._leases
        with leases.lock:
            leases.check(self._keys)
            for clocks, value in self._values.items():
                try:
                    _warn_of_notice(_wattle.cap_set(",".join(self.devices), value, clocks, self.keep))
                except BaseException:
                    self._undo()
                    raise
                for name in self.devices:
                    cell = leases.of((name, clocks))[-1]
                    self._before[name, clocks] = cell[1]
                    cell[1] = None if self.keep else value
            self._is_on = not self.keep
            leases.limits.add(self)

    def _undo(self) -> None:
        for (name, clocks), before in self._before.items():
            self._leases.of((name, clocks))[-1][1] = before
            _back(name, clocks, before)

    def __enter__(self) -> "Limit":
        if self.keep:
            raise ValueError("a limit with keep=True outlasts the block: omit keep=True for one that ends with it")
        leases = self._leases
        with leases.lock:
            if not self._before or not self._is_on:
                raise RuntimeError("this limit has already been used or reset: call wattle.cap.set again")
            for (name, clocks), before in self._before.items():
                cells = leases.of((name, clocks))
                cells[-1][1] = before  # the enclosing block has its own value again
                cells.append([self, self._values[clocks]])
            self._before = {}
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.reset()

    def reset(self) -> None:
        """Restores the previous limit. No effect on an ended limit, or on that of a forked child's parent."""
        leases = self._leases
        if leases is not _leases:
            return
        failure: Optional[BaseException] = None
        with leases.lock:
            is_on, self._is_on = self._is_on, False
            for key in self._keys if is_on else ():
                try:
                    self._end(key)
                except OSError as why:  # the other devices' limits must still be restored
                    failure = failure or why
            self._before = {}
        if failure is not None:
            raise failure

    def _end(self, key: tuple[str, bool]) -> None:
        cells = self._leases.of(key)
        for i, cell in enumerate(cells):
            if cell[0] is self:
                del cells[i]
                if i == len(cells):  # open blocks inside this one keep theirs
                    _back(*key, cells[-1][1])
                return
        if key in self._before:
            cells[-1][1] = self._before[key]
            _back(*key, cells[-1][1])

    def __repr__(self) -> str:
        of = [_show.quantity(self.power_w, "W")] if self.power_w is not None else []
        of += [f"{self.clock_mhz:g} MHz"] if self.clock_mhz is not None else []
        state = "stays" if self.keep else "in force" if self._is_on else "over"
        return f"<limit of {', '.join(self.devices)}: {', '.join(of)}, {state}>"


def _back(name: str, clocks: bool, value: Optional[float]) -> None:
    if value is None:
        _warn_of_notice(_wattle.cap_reset(name, clocks, False))
    else:
        _warn_of_notice(_wattle.cap_set(name, value, clocks, False))


def set(device: Devices, power_w: Optional[float] = None, *, clock_mhz: Optional[float] = None,
        keep: bool = False) -> Limit:
    """Limits the device's power, its maximum clock, or both. The limit is in force when the call returns.

    `with wattle.cap.set(…):` sets it for a block; blocks may be nested. Without `with` it lasts until reset(device) or
    the end of the process, however it ends. keep=True: the limit outlasts the process, as that of `wattle cap set`,
    until reset(device) or `wattle cap reset`.
    """
    values = {clocks: float(value) for clocks, value in ((False, power_w), (True, clock_mhz)) if value is not None}
    if not values:
        raise ValueError("no limit given: use set(device, power_w) or set(device, clock_mhz=…)")
    names = _wattle.cap_names(_names(device), True in values and False not in values)
    limit = Limit(names, values, keep)
    limit._set()
    return limit


def reset(device: Devices, default: bool = False) -> None:
    """Ends this program's limits of power and clock on the device, whichever thread made them. If it has none, a persistent
    limit (keep=True, `wattle cap set`) is replaced by the limit from before wattle's first change. default=True: the device's
    default is set. Clocks that this program may not set are left."""
    with _leases.lock:
        for name in _wattle.cap_names(_names(device), False):
            for clocks in (False, True):
                _leases.cells.pop((name, clocks), None)
            for limit in _leases.limits:
                if name in limit.devices:
                    limit._is_on = False
            _warn_of_notice(_wattle.cap_reset(name, None, default))


# ---- tune ----

class Interval(NamedTuple):
    """95 % interval; NaN: unknown."""
    value: float
    low: float
    high: float


class Progress(NamedTuple):
    """Argument of `progress` after each window."""
    done: float  #: 0 to 1
    seconds_left: float  # : upper estimate
    limit: float  #: in force, W or MHz
    steps: int  #: so far


class Row(NamedTuple):
    """Measurements under one limit. Sums over its windows; intervals are corrected for drift."""
    cap_w: float  #: NaN for clocks
    clock_mhz: float  #: NaN for power
    windows: int
    steps: float
    energy_j: float
    time_s: float
    objective: float  #: of a step, in TuneResult.objective_unit
    objective_interval: Interval
    energy_per_step_j: Interval
    time_per_step_s: Interval
    allowed: bool  #: False: slower than `slowdown` allows
    added: bool  # : not a candidate: added near the best candidate

    def to_dict(self) -> dict[str, Any]:
        """Under the names of `wattle cap tune --json`."""
        return {"cap_w": self.cap_w, **({"clock_mhz": self.clock_mhz} if _show.is_known(self.clock_mhz) else {}),
                "steps": self.steps, "energy_j": self.energy_j, "time_s": self.time_s, "objective": self.objective,
                "objective_low": self.objective_interval.low, "objective_high": self.objective_interval.high,
                "energy_per_step_j": self.energy_per_step_j.value,
                "energy_per_step_low_j": self.energy_per_step_j.low,
                "energy_per_step_high_j": self.energy_per_step_j.high, "time_per_step_s": self.time_per_step_s.value,
                "time_per_step_low_s": self.time_per_step_s.low, "time_per_step_high_s": self.time_per_step_s.high,
                "windows": self.windows, "allowed": self.allowed}


class TuneResult(NamedTuple):
    """Result of the search."""
    device: str  #: names with commas
    objective: str  #: "ed2p", "edp", "energy", "slowdown"
    objective_unit: str
    chosen_w: float  #: NaN for clocks
    chosen_mhz: float  #: NaN for power
    previous_w: float  # : in force before, and restored
    saving_percent: float  # : of energy per step, compared with the highest limit
    saving_interval: Interval
    slowdown_percent: float  #: of time per step
    slowdown_interval: Interval
    chosen_range: Interval  # : range in which the optimum may also be
    caps: builtins.list[Row]  #: descending
    model: str  # : "exp+sigmoid", "convex", "spline" (of "slowdown"); "none": the best measured limit
    parameters: builtins.list[float]  #: of the model; a spline has none
    residual_percent: float
    noise_percent: float
    drift_percent: float
    note: str  # : remarks; "" none
    curve: builtins.list[tuple[float, float]]  #: the model: limit, objective

    @property
    def chosen(self) -> float:
        """W, or MHz for clocks."""
        return self.chosen_w if _show.is_known(self.chosen_w) else self.chosen_mhz

    @property
    def unit(self) -> str:
        """Unit of limits: "W" or "MHz"."""
        return "MHz" if _show.is_known(self.chosen_mhz) else "W"

    def apply(self) -> Limit:
        """Sets the chosen limit: `with result.apply(): train()`. As set()."""
        if self.unit == "MHz":
            return set(self.device, clock_mhz=self.chosen_mhz)
        return set(self.device, self.chosen_w)

    def to_dict(self) -> dict[str, Any]:
        """All data, under the names of `wattle cap tune --json`; unknown is None."""
        by_clock = self.unit == "MHz"
        result: dict[str, Any] = _without_nan({
            "schema": "wattle-cap-tune/1", "device": self.device, "what": "clocks" if by_clock else "power",
            "objective": self.objective, "objective_unit": self.objective_unit, "chosen_w": self.chosen_w,
            "previous_w": self.previous_w, **({"chosen_mhz": self.chosen_mhz} if by_clock else {}),
            "saving_percent": self.saving_percent, "saving_low_percent": self.saving_interval.low,
            "saving_high_percent": self.saving_interval.high, "slowdown_percent": self.slowdown_percent,
            "slowdown_low_percent": self.slowdown_interval.low, "slowdown_high_percent": self.slowdown_interval.high,
            "chosen_low": self.chosen_range.low, "chosen_high": self.chosen_range.high,
            "caps": [row.to_dict() for row in self.candidates],
            "added_caps": [row.to_dict() for row in self.caps if row.added],
            "model": {"name": self.model, "parameters": self.parameters, "residual_percent": self.residual_percent},
            "noise_percent": self.noise_percent, "drift_percent": self.drift_percent, "curve": self.curve,
            "note": self.note or None})
        return result

    @property
    def candidates(self) -> builtins.list[Row]:
        """The caps without those added near the best one."""
        return [row for row in self.caps if not row.added]

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """The table as De Feo's profiler wrote it: cap, steps, kWh, objective a row, then the modelled optimum."""
        rows = [(_limit(row), row.steps, row.energy_j / _J_PER_KWH, row.objective) for row in self.candidates]
        lines = [",".join(map(_number, row)) for row in rows] + [f"Modeled Optimal Cap:,{_number(self.chosen)}"]
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write("\n".join(lines) + "\n")

    def to_pandas(self) -> "pandas.DataFrame":
        """The table, one row for each limit."""
        import pandas
        return pandas.DataFrame(self._table(), columns=self._columns())

    def plot(self, ax: Optional["matplotlib.axes.Axes"] = None) -> "matplotlib.axes.Axes":
        """Objective over limit: measurements with their intervals, the model, the chosen limit."""
        import matplotlib.pyplot
        axes: Any = matplotlib.pyplot.subplots()[1] if ax is None else ax
        x = [_limit(row) for row in self.caps]
        y = [row.objective_interval for row in self.caps]
        errors = [[max(i.value - i.low, 0) for i in y], [max(i.high - i.value, 0) for i in y]]
        axes.errorbar(x, [i.value for i in y], yerr=errors, fmt="o", capsize=3, label="measured, 95 %")
        if self.curve:
            axes.plot(*zip(*self.curve), label=self.model)
        axes.axvline(self.chosen, linestyle="--", color="gray", label=f"chosen: {_show.number(self.chosen)} {self.unit}")
        axes.set_xlabel(f"limit ({self.unit})")
        axes.set_ylabel(f"{self.objective} of a step ({self.objective_unit})")
        axes.set_title(self.device)
        axes.legend()
        return axes

    def _columns(self) -> builtins.list[str]:
        return ["limit_w" if self.unit == "W" else "limit_mhz", "windows", "steps", "energy_j", "time_s",
                "energy_per_step_j", "time_per_step_s", "objective", "allowed", "added"]

    def _table(self) -> builtins.list[tuple[Any, ...]]:
        return [(_limit(row), row.windows, row.steps, row.energy_j, row.time_s, row.energy_per_step_j.value,
                 row.time_per_step_s.value, row.objective, row.allowed, row.added)
                for row in self.caps]

    def _headline(self) -> str:
        def percent(value: Interval) -> str:
            if not _show.is_known(value.value):
                return "n/a"
            between = f" ({value.low:.1f} to {value.high:.1f})" if _show.is_known(value.low) else ""
            return f"{value.value:.1f} %{between}"
        note = f"; {self.note}" if self.note else ""
        return (f"{self.device}: {_show.number(self.chosen)} {self.unit} by {self.objective}: saves "
                f"{percent(self.saving_interval)} of energy for {percent(self.slowdown_interval)} of time{note}")

    def __str__(self) -> str:
        return self._headline() + "\n" + _show.text_table(self._columns(), self._table())

    def _repr_html_(self) -> str:
        return _show.html_table(self._headline(), self._columns(), self._table())


def tune(device: Devices, step: Step, *, objective: str = "ed2p", slowdown: Optional[float] = None,
         caps: Optional[int] = None, from_percent: float = 30, seconds: float = 30, settle: Optional[float] = None,
         clocks: bool = False, seed: int = 0, sync: Optional[Callable[[], Any]] = None,
         progress: Optional[Callable[[Progress], Any]] = None) -> TuneResult:
    """Searches for the limit that saves most: runs `step` repeatedly under limits in random order and measures
    energy and time per step from the device's counters. The previous limit is restored when it returns or raises, and if
    the program dies meanwhile.

    step: a function that does one unit of work (StopIteration: no more work), or an iterator whose next() does one.
    objective: "ed2p", "edp" or "energy" of a step. With `slowdown` in percent (also "slowdown=5"): the least energy
    among limits that are at most that much slower than the highest one.
    caps: number of limits, from from_percent of the default (or the device's minimum) to the default; None: 8, then more
    near the best one in the remaining time; seconds: maximum measuring time for each; settle: s under a
    new limit before measuring (None: until the limit acts and power is steady).
    clocks: searches the clock's upper bound instead of the power (NVIDIA GPUs).
    sync: waits for asynchronous work of a step, called before each time reading; None: torch.cuda.synchronize if torch
    is imported and uses CUDA. progress: called after each window.

    Several devices get the same limit, and their energies are added. RuntimeError: the work ended before two
    limits could be compared, or another program changed the limit meanwhile (its limit stays).
"""
    goal, percent = _goal(objective, slowdown)
    call = _call(step)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function, not {type(progress).__name__}")
    if caps is not None and caps < 2:
        raise ValueError(f"caps must be at least 2, not {caps!r}")
    if not seconds > 0 or not from_percent > 0:
        raise ValueError(f"seconds ({seconds!r}) and from_percent ({from_percent!r}) must be above 0")
    names = _wattle.cap_names(_names(device), clocks)
    with _leases.lock:
        _leases.check([(name, clocks) for name in names])
    found = _warn_of_notice(_wattle.cap_tune(
        ",".join(names), call, goal=goal, slowdown_percent=percent,
        n_limits=0 if caps is None else caps, from_percent=from_percent,
        seconds=seconds, settle_s=_settle(settle), seed=seed, clocks=clocks,
        synchronize=sync if sync is not None else _synchronize_cuda,
        progress=None if progress is None else _progress(progress)))
    return _result(",".join(names), clocks, found)


_GOALS = {"ed2p": 0, "edp": 1, "energy": 2, "slowdown": 3}


def _goal(objective: str, slowdown: Optional[float]) -> tuple[int, float]:
    name, equals, percent = str(objective).partition("=")
    if slowdown is not None and objective == "ed2p":
        name = "slowdown"
    if equals and name == "slowdown" and slowdown is None:
        try:
            slowdown = float(percent)
        except ValueError:
            name = ""
    if name not in _GOALS or (equals and name != "slowdown"):
        raise ValueError(f"invalid objective {objective!r}: use 'ed2p', 'edp', 'energy' or 'slowdown=PERCENT'")
    if (name == "slowdown") != (slowdown is not None):
        raise ValueError("objective 'slowdown' requires slowdown in percent; other objectives do not accept it")
    return _GOALS[name], slowdown or 0.0


def _settle(settle: Optional[float]) -> float:
    if settle is None:
        return 0.0
    if not settle >= 0:
        raise ValueError(f"invalid settle {settle!r}: use seconds (0 or more) or None")
    return max(float(settle), 1e-9)  # 0 is the C library's "until it is steady"


def _progress(tell: Callable[[Progress], Any]) -> Callable[[float, float, float, int], Any]:
    return lambda *figures: tell(Progress(*figures))


def _call(step: Step) -> Callable[[], Any]:
    advance: Optional[Callable[[], Any]] = getattr(step, "__next__", None)
    if advance is not None:
        return advance
    if not callable(step):
        raise TypeError(f"step must be a function or an iterator, not {type(step).__name__}; iter() makes an iterator")
    return step


def _synchronize_cuda() -> None:
    torch = sys.modules.get("torch")  # the first step may import it
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _result(device: str, clocks: bool, found: dict[str, Any]) -> TuneResult:
    def by_unit(value: float) -> tuple[float, float]:
        return (_NAN, value) if clocks else (value, _NAN)
    rows = [Row(*by_unit(limit), windows, steps, energy_j, time_s, objective[0], Interval(*objective),
                Interval(*energy), Interval(*time), allowed, added)
            for limit, windows, steps, energy_j, time_s, objective, energy, time, allowed, added in found["limits"]]
    watts, mhz = by_unit(found["chosen"])
    saving, slowdown = Interval(*found["saving_percent"]), Interval(*found["slowdown_percent"])
    return TuneResult(
        device=device, objective=found["objective"], objective_unit=found["objective_unit"], chosen_w=watts,
        chosen_mhz=mhz, previous_w=by_unit(found["previous"])[0], saving_percent=saving.value, saving_interval=saving,
        slowdown_percent=slowdown.value, slowdown_interval=slowdown, chosen_range=Interval(*found["chosen_range"]),
        caps=rows, model=found["model"], parameters=found["parameters"], residual_percent=found["residual_percent"],
        noise_percent=found["noise_percent"], drift_percent=found["drift_percent"], note=found["note"],
        curve=found["curve"])


def _limit(row: Row) -> float:
    return row.cap_w if _show.is_known(row.cap_w) else row.clock_mhz


def _number(value: float) -> str:
    """For a CSV: all digits, empty for unknown values."""
    if not _show.is_known(value):
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (builtins.list, tuple)):
        return [_without_nan(item) for item in value]
    return value if _show.is_known(value) else None


# ---- shared ----

def _names(device: Devices) -> str:
    names: builtins.list[Any] = [*device] if isinstance(device, Iterable) and not isinstance(device, str) else [device]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"device must be a name such as 'gpu-0', or a list of names, not {name!r}")
    return ",".join(names)


def _warn_of_notice(answer: tuple[Any, str]) -> Any:
    """The result without its notice, which becomes a warning."""
    value, notice = answer
    if notice:
        warnings.warn(notice, RuntimeWarning, stacklevel=4)
    return value
