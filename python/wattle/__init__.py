"""wattle: time, CPU time and energy of a program, per code block.

    with wattle.span("forward"):            # a code block; also a decorator, and for `async with`
        ...
    wattle.metric("images", 64)             # joules per image

    with wattle.Tracker() as tracker:       # records this process and its descendants
        train()
    with wattle.measure() as m:             # reads the machine's counters only
        work()
    print(m.energy_j)

    with wattle.cap.set("gpu-0", 250):      # a power limit, restored on any exit
        train()
    wattle.cap.tune("gpu-0", step)          # finds the limit that saves most
    wattle.carbon.region("DE").g_per_kwh    # carbon intensity of electricity by country

    run = wattle.open("run.sqlite")         # of `wattle run`, or of a Tracker with `output`
    run.report, run.blocks, run.samples, run.to_pandas()
    job = wattle.open_job("runs/")          # all ranks of a job; job.ranks, job.nodes, job.imbalance

Spans and metrics go to the recorder: `wattle run` around the program, or a tracker in it. Without a recorder they do
nothing and cost some nanoseconds. The package needs only Python; numpy and pandas are used only by calls that return
their types. Times are in s, energies in J, memory in bytes unless a name states another unit. Unknown values are None,
NaN or masked, never 0.
"""
import importlib
from typing import Any

# All modules of the package are imported here. If one were imported on first use while another thread forks, the child
# would inherit a half-imported module and wait for it forever.
from . import _deprecated
from . import _ranges  # used by the extension
from . import cap, carbon
from ._wattle import MISSING
from ._wattle import VERSION as __version__
from ._wattle import Reading, is_recording, mark, metric, range_begin, range_end, span
from .files import compare, export, merge
from .job import Job, open_job
from .meter import Meter, measure
from .run import Run, open
from .tracker import Tracker
from .window import Window

__all__ = ["MISSING", "Job", "Meter", "Reading", "Run", "Tracker", "Window", "cap", "carbon", "compare", "export", "is_recording",
           "mark", "measure", "merge", "metric", "open", "open_job", "range_begin", "range_end", "span", "__version__"]

# These need, or replace, optional packages.
_PACKAGES = ("torch", "compat")  # not in dir(), because help(wattle) would import them


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _deprecated.NAMES:
        return globals()[_deprecated.current(name)]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
