"""The C extension below the package wattle. Private: use the package instead.

Everything that reads counters, files or another process releases the GIL. Codes of the C library become exceptions: bad
arguments ValueError, wrong state RuntimeError, all else OSError (FileExistsError, FileNotFoundError, PermissionError …)
with one sentence that describes the error.
"""
import os
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, TypeVar, Union

PathLike = Union[str, "os.PathLike[str]"]
F = TypeVar("F", bound=Callable[..., Any])

MISSING: int  #: -2**63, the unknown value of integer columns
BLOCK_COLUMNS: tuple[str, ...]  #: statistics of code blocks, of blocks.def
VERSION: str  #: version of wattle

# ---- spans: include/wattle.h, section spans ----

class Span:
    """A code block of this thread. May be entered repeatedly, recursively and by several threads."""
    name: str
    def __enter__(self) -> "Span": ...
    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None: ...
    async def __aenter__(self) -> "Span": ...  #: a range: other tasks may run meanwhile
    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None: ...
    def __call__(self, function: F) -> F: ...  #: as a decorator; coroutines and generators included

def span(name: str, /) -> Span: ...
def metric(name: str, value: float, /) -> None: ...
def mark(name: str, /) -> None: ...
def range_begin(name: str, /) -> int: ...
def range_end(number: int, /) -> None: ...
def is_recording() -> bool: ...
span_calls: Any  #: capsule of the C functions that begin and end a span by a key and a name, without the GIL

# ---- tracker: include/wattle.h, section tracker ----

class Tracker:
    """A recorder of this process (or of `pid`) with the fields of struct wattle_tracker_options; new, started, stopped."""
    def __init__(self, *, interval_s: float = 0.0, output: Optional[PathLike] = None, overwrite: bool = False,
                 tracking_file: Optional[PathLike] = None, ram_unit: Optional[str] = None,
                 gpu_ram_unit: Optional[str] = None, time_unit: Optional[str] = None, expected_cores: int = 0,
                 gpus: Optional[str] = None, gpu_brand: Optional[str] = None, label: Optional[str] = None, pid: int = 0,
                 keep_environment: bool = False, quiet: bool = False, program: Optional[PathLike] = None,
                 arguments: Sequence[str] = (), stop_timeout_s: float = 0.0) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    state: int  #: 0 new, 1 started, 2 stopped
    run_file: Optional[str]
    def report_json(self) -> str: ...
    def close(self) -> None: ...  #: removes a temporary run file

def check_gpus(gpus: str, brand: Optional[str] = None, /) -> None:
    """ValueError lists this machine's GPUs if `gpus` (UUIDs or indices, comma separated) names one that does not exist."""

# ---- meter: include/wattle.h, section meter ----

class Reading:
    """Energy since start, NaN where unknown: seconds, cpu_j, dram_j, gpu_j, total_j, error_j; estimated;
    calibration_error_j"""
    def __init__(self, values: Sequence[float], /) -> None: ...
    seconds: float
    cpu_j: float
    dram_j: float
    gpu_j: float
    total_j: float
    error_j: float
    estimated: bool
    calibration_error_j: float

class Meter:
    def __init__(self, *, gpus: Optional[str] = None, gpu_brand: Optional[str] = None) -> None: ...
    def start(self) -> None: ...
    def read(self) -> Reading: ...
    def stop(self) -> Reading: ...
    def domains(self) -> list[tuple[str, float, float]]: ...  #: name, energy_j, error_j as of the latest reading
    def close(self) -> None: ...

# ---- caps: include/wattle.h, section caps; values come with a notice, "" where there is none ----

CapRow = tuple[str, str, str, float, float, float, float, float, bool, str, str, Optional[str], float, float, bool]

def cap_list() -> tuple[list[CapRow], str]: ...
def cap_get(device: str, /) -> tuple[CapRow, str]: ...
def cap_names(device: str, clocks: bool, /) -> list[str]: ...  #: names of all selected devices
def cap_set(device: str, value: float, clocks: bool, keep: bool, /) -> tuple[None, str]: ...
def cap_reset(device: str, clocks: Optional[bool], default: bool, /) -> tuple[None, str]: ...  #: clocks None: both
def cap_tune(device: str, step: Callable[[], Any], *, goal: int = 0, slowdown_percent: float = 0.0, n_limits: int = 0,
             from_percent: float = 0.0, seconds: float = 0.0, settle_s: float = 0.0, seed: int = 0,
             clocks: bool = False, synchronize: Optional[Callable[[], Any]] = None,
             progress: Optional[Callable[[float, float, float, int], Any]] = None) -> tuple[dict[str, Any], str]: ...
def cap_introduce(name: str, /) -> None: ...  #: sets the name of owners of leases

# ---- carbon: code, code3, name, g per kWh, year ----

CarbonRow = tuple[str, str, str, float, int]
CARBON_SOURCE: str

def carbon_regions() -> list[CarbonRow]: ...
def carbon_region(wanted: str, /) -> CarbonRow: ...  #: by code or name; ValueError with the nearest one

# ---- stored runs ----

class Buffer:
    """Numbers of a loaded run, read-only, 1-D: buffer protocol, so numpy.asarray() and memoryview() copy nothing and
    keep the run in memory. Those of spans have strides, being members of an array of structs."""
    def __len__(self) -> int: ...

class Column:
    name: str
    unit: str
    meaning: str
    buffer: Buffer  #: int64, MISSING: unknown; int32 for pid, tid and the name indexes of spans

class Run:
    """A run file, loaded whole; released with its last reference."""
    def __init__(self, path: PathLike) -> None: ...  #: also a span file (WATTLE_SPANS), which has spans and no samples
    @property
    def path(self) -> str: ...
    def report_json(self) -> str: ...                #: schema "wattle-report/1"
    def report_text(self) -> str: ...
    def blocks_json(self) -> str: ...                #: as `wattle blocks --format json`
    def charts_json(self, buckets: int = 0, items: int = 0) -> str: ...  #: "wattle-charts/1"; maximum numbers, 0: default
    def facts(self) -> dict[str, str]: ...           #: table run
    def samples(self) -> list[Column]: ...           #: t_ns, then one column per metric
    def process_samples(self) -> list[Column]: ...   #: with --per-process: t_ns, pid, start_ns, then the metrics
    def devices(self) -> list[dict[str, Any]]: ...   #: name, kind, …, "samples": list[Column]
    def spans(self) -> list[Column]: ...        #: id parent begin_ns end_ns cpu_ns pid tid name_index category_index
    #: kind close, without copying
    def span_names(self) -> list[str]: ...           #: by name_index and category_index; -1: no category
    def user_metrics(self) -> list[dict[str, Any]]: ...
    def events(self) -> list[dict[str, Any]]: ...
    def processes(self) -> list[dict[str, Any]]: ...
    def segments(self) -> list[dict[str, Any]]: ...
    def wall_ns(self, t_ns: int, /) -> Optional[int]: ...  #: Unix time of an instant; None without an anchor
    def divide(self, begin_ns: Any, end_ns: Any, column: Any, n_columns: int, domain: Optional[str] = None,
               without: Sequence[str] = (), groups: Optional[Sequence[int]] = None) -> list[tuple[float, float, float]]:
        """Divides the target's energy (of one domain, or of all in the total except those in `without`) over a timeline.

        begin_ns, end_ns (int64) and column (int32) are buffers of equal length, in any order. Overlapping intervals share
        evenly; column 0 is the time outside of all intervals. Calls shorter than an update of the counter are deconvolved
        if that reduces the errors (docs/accuracy.md). Returns (time_s, energy_j, error_j) for each column; the energies
        add up to the domain's. With groups[column], the same for each group follows: errors of columns that cannot be
        distinguished cancel in their group. ValueError: unknown domain or invalid interval."""
    def divide_spans(self, columns: dict[str, int], n_columns: int, domain: Optional[str] = None,
                     without: Sequence[str] = (),
                     groups: Optional[Sequence[int]] = None, pid: int = ...) -> list[tuple[float, float, float]]:
        """As divide, over the run's spans of process `pid` (default: this process). Each name has a column. In each thread the
        innermost span with one of these names counts; other spans are ignored."""

# ---- gpu_tracker's files, comparisons, conversions ----

def sub_tracking_calls(path: PathLike, /) -> list[tuple[str, float, float]]:
    """Calls in a sub-tracking file: name, begin_s, end_s (Unix s, NaN: never stopped), by name, process and start."""
def tracking_blocks_json(tracking_file: Optional[PathLike], sub_tracking_file: PathLike, /) -> str: ...
def compare_json(named: Sequence[tuple[str, PathLike]], statistic: str = "mean", /) -> str: ...
def merge(out: PathLike, inputs: Sequence[PathLike], /) -> None: ...
def export(run: PathLike, format: str, out: PathLike, *, overwrite: bool = False,
           weight: Optional[str] = None) -> None: ...
