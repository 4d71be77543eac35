"""wattle.open_job: usage of all ranks of a job, as `wattle report` adds it up."""
from __future__ import annotations

import json
import os
from typing import Any, Optional, Sequence, Union

from . import _program, _show
from .table import Table, blocks_table

PathLike = Union[str, "os.PathLike[str]"]

_RANKS_SHOWN = ("rank", "node", "duration_s", "work_s", "waiting_s", "cpu_s", "energy_j")
_NODES_SHOWN = ("name", "node", "n_ranks", "ranks", "energy_j", "error_j", "mean_w", "provenance")


class Job:
    """The combined runs of a job. A machine's energy is counted once, however many of its ranks could read it.

        job = wattle.open_job("runs/")
        job.report["energy"]["total_j"]
        job.ranks["energy_j"]                          # a numpy array, one value for each rank
        job.nodes.to_pandas()
        job.imbalance
"""

    def __init__(self, report: dict[str, Any], source: str) -> None:
        self.report = report  # : output of `wattle report DIR --format json`; unknown figures are None
        self.source = source

    @property
    def id(self) -> Optional[str]:
        """The scheduler's job id; None: none known."""
        found: Optional[str] = (self.report.get("job") or {}).get("id")
        return found

    @property
    def energy_j(self) -> Optional[float]:
        """Energy of all machines while the job ran on them."""
        found: Optional[float] = self.report["energy"]["total_j"]
        return found

    @property
    def ranks(self) -> Table:
        """One row for each rank."""
        return _table(self.report.get("ranks") or (), _RANKS_SHOWN, "ranks")

    @property
    def nodes(self) -> Table:
        """One row for each node."""
        return _table(self.report.get("nodes") or (), _NODES_SHOWN, "nodes")

    @property
    def blocks(self) -> Table:
        """Code blocks by name, all ranks combined."""
        return blocks_table(self.report.get("blocks") or ())

    @property
    def imbalance(self) -> dict[str, Any]:
        """Load imbalance of the ranks: waiting times, and the cost of the slowest one."""
        return dict(self.report.get("imbalance") or {})

    @property
    def warnings(self) -> list[str]:
        """Warnings about these figures: missing ranks, clocks, takeovers."""
        return list(self.report.get("warnings") or ())

    def summary(self) -> dict[str, str]:
        """A short summary."""
        energy = self.report["energy"]
        return {
            "job": self.id or "n/a",
            "nodes": str(len(self.nodes)),
            "ranks": str(len(self.ranks)),
            "duration": _show.quantity(self.report["run"].get("duration_s"), "s"),
            "energy of the machines": _show.with_error(energy.get("total_j"), energy.get("error_j"), "J"),
            "energy of the ranks": _show.quantity((energy.get("ledger") or {}).get("target_j"), "J"),
        }

    def __repr__(self) -> str:
        summary = self.summary()
        return (f"<wattle job {summary['job']}: {summary['ranks']} ranks on {summary['nodes']} nodes, "
                f"{summary['duration']}, {summary['energy of the machines']}>")

    def _repr_html_(self) -> str:
        parts = [_show.html_table("", ("job", ""), list(self.summary().items())), self.nodes._repr_html_(),
                 self.ranks._repr_html_()]
        if len(self.blocks) > 0:
            parts.append(self.blocks._repr_html_())
        parts += (f"<p>{_show.escape(str(warning))}</p>" for warning in self.warnings)
        return "".join(parts)


def _table(rows: Sequence[dict[str, Any]], shown: Sequence[str], title: str) -> Table:
    columns = tuple(rows[0]) if rows else tuple(shown)
    return Table(rows, columns, shown=[name for name in shown if name in columns], title=title)


def _arguments(folder: Optional[PathLike], job: Optional[str], step: Optional[str], store: Optional[str],
               waiting: Sequence[str]) -> list[str]:
    if (folder is None) == (store is None):
        raise ValueError("give either a folder or a store")
    arguments = ["report", "--format", "json"]
    for option, value in (("--job", job), ("--step", step), ("--store", store), *(("--waiting", w) for w in waiting)):
        arguments += [] if value is None else [option, str(value)]
    return arguments if folder is None else [*arguments, "--", os.path.abspath(folder)]


def open_job(folder: Optional[PathLike] = None, *, job: Optional[str] = None, step: Optional[str] = None,
             store: Optional[str] = None, waiting: Sequence[str] = ()) -> Job:
    """Adds up the run files of a job's ranks in a folder, or its runs in a PostgreSQL store (`store`, a URL without a
    password). `job`: its id, if there are several; `step`: one step of it; `waiting`: name patterns of code
    blocks in which a rank waits for others, if they are unusual.

    ValueError: no such job, several and none chosen, no run; FileNotFoundError: no such folder; OSError: the store cannot
    be reached, or the program wattle is not there.
"""
    import subprocess
    arguments = _arguments(folder, job, step, store, waiting)
    if folder is not None and not os.path.exists(folder):
        raise FileNotFoundError(2, "no such folder", os.fspath(folder))
    program = _program.find()
    if program is None:
        raise FileNotFoundError(2, "cannot find the program wattle, which adds up jobs", "wattle")
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().removeprefix("wattle: ").removeprefix("report: ")
        raise (OSError if store is not None and job is not None else ValueError)(message or f"wattle exited with status {done.returncode}")
    return Job(json.loads(done.stdout), os.fspath(folder) if folder is not None else str(store))
