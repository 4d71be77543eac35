"""wattle: where in a program time, CPU and joules go.

    with wattle.span("forward"):            # a code block; also a decorator, and for `async with`
        ...
    wattle.metric("images", 64)             # joules per image

    with wattle.Tracker() as tracker:       # records this process and what it starts
        train()
    with wattle.measure() as m:             # the machine's counters, nothing else
        work()
    print(m.energy_j)

    with wattle.cap.set("gpu-0", 250):      # a power limit that goes back whatever happens
        train()
    wattle.cap.tune("gpu-0", step)          # the limit that saves most

    run = wattle.open("run.sqlite")         # of `wattle run`, or of a Tracker with `output`
    run.report, run.blocks, run.samples, run.to_pandas()
    job = wattle.open_job("runs/")          # all ranks of a job; job.ranks, job.nodes, job.imbalance

Spans and metrics reach whoever records: `wattle run` around the program, or a tracker in it. Without one they cost some
nanoseconds and do nothing. Needs nothing but Python; numpy and pandas are used where they are asked for. Times are in
s, energies in J, memory in bytes unless a name says otherwise; what is unknown is None, NaN or masked, never 0.
"""
import importlib
from typing import Any

# All that the package itself has is here from the start: a module that is imported when it is first used would be half
# imported in a child that another thread forks just then, and the child would wait for it forever.
from . import _ranges  # for the extension
from . import cap
from ._wattle import MISSING
from ._wattle import VERSION as __version__
from ._wattle import Reading, is_recording, mark, metric, range_begin, range_end, span
from .files import combine, compare, export
from .job import Job, open_job
from .meter import Meter, measure
from .run import Run, open
from .tracker import Tracker
from .window import Window

__all__ = ["MISSING", "Job", "Meter", "Reading", "Run", "Tracker", "Window", "cap", "combine", "compare", "export",
           "is_recording", "mark", "measure", "metric", "open", "open_job", "range_begin", "range_end", "span", "__version__"]

# These need, or stand in for, packages that not everybody has.
_PACKAGES = ("torch", "compat")  # not in dir(), or help(wattle) would import them


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
