"""layers(): time and energy of each layer of a model."""
from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from types import TracebackType
from typing import Any, Callable, Optional, Union

import torch

from .. import _wattle
from . import cuda, figures, modules, rows
from ._kept import keep
from .graph import Graph, Layer
from .hooks import ForwardHooks, Hooked, arguments_of
from .observer import Observer, take
from .stacks import Column, Stacks

PathLike = Union[str, "os.PathLike[str]"]

_lock = threading.Lock()
_measuring: Optional["layers"] = None  # the session whose tracker runs


class layers:
    """Measures each module of a model, forward and backward, while the model is used as usual.

        with wattle.torch.layers(model) as measured:
            train()
        print(measured)
        measured.rows[0].energy_j

    model         a module, or a dict of names and modules that are used together: {"generator": G, "discriminator": D}
    tracker       False: only marks spans ('layer1.0.conv1', 'layer1.0.conv1 backward') for a `wattle run` around the
                  program
    interval_s    seconds between two samples, 0.001 to 3600
    output        run file to keep; by default a temporary one is read and removed
    gpus          UUIDs or indices (NVML's), comma separated; by default those visible to the program
    break_graphs  measure inside compiled modules as well, which breaks their graphs and makes them slower
    observer      True: the C++ observer observes backward, False: hooks in Python; None: the observer if
                  it was built for this torch and the work is on CPUs. The rows are the same, the observer is cheaper

    Neither the model nor its graph is changed: gradients are bitwise the same. A module's row has its own work;
    work of inner modules is in their rows. A module that is used several times has one row, under its first
    name. Energy is the energy that the recorder attributes to this process, on all its threads; docs/torch.md describes how
    it is divided.

    RuntimeError: another layers() with a tracker is measuring; start() twice; results before stop().
"""

    def __init__(self, model: modules.Model, *, tracker: bool = True, interval_s: float = 0.02,
                 output: Optional[PathLike] = None, overwrite: bool = False, gpus: Optional[str] = None,
                 break_graphs: bool = False, observer: Optional[bool] = None) -> None:
        self._parts = modules.find(model, break_graphs)
        self._break_graphs = break_graphs
        self._wants_observer = observer
        self._observer: Optional[Observer] = None
        # : what observes backward, once started: "observer" (C++) or "hooks" (Python); see observer=
        self.backward_by: Optional[str] = None
        self._tracker: Optional[_wattle.Tracker] = _wattle.Tracker(
            interval_s=interval_s, output=output, overwrite=overwrite, gpus=gpus, quiet=True) if tracker else None
        self._keeps = output is not None
        self._state = "new"
        self._result: Optional[figures.Result] = None
        self.notes: list[str] = []  # : omissions of the figures, and the reason
        self._note_compiled()

    # ---- when ----

    def start(self) -> "layers":
        if self._state != "new":
            raise RuntimeError(f"layers() measures only once and is already {self._state}: create another one")
        self._take_turn()
        try:
            if self._tracker is not None:
                self._tracker.start()
            self._open()
        except BaseException:
            self._state = "stopped"
            if self._observer is not None:
                self._observer.close()
            self._give_turn()
            if self._tracker is not None:
                self._tracker.close()
            raise
        self._state = "started"
        return self

    def stop(self) -> None:
        if self._state != "started":
            raise RuntimeError(f"layers() cannot be stopped before start(): it is {self._state}")
        self._state = "stopped"
        try:
            pieces = self._close()
            run = self._stop_tracker()
            self._result = figures.make(self._measured, self._numbers, run, pieces, self.notes)
            self._keep_rows()
        finally:
            self._give_turn()
            if self._tracker is not None:
                self._tracker.close()
            del self._parts

    def _keep_rows(self) -> None:
        """The report of a run file that is kept then shows the same figures as the rows here."""
        path = self._done().run_file
        if not self._keeps or path is None:
            return
        try:
            keep(path, "torch_layers", rows.kept(self.rows))
        except sqlite3.Error as error:  # the rows exist all the same
            self.notes.append(f"the rows could not be kept in {path}: {error}")

    def __enter__(self) -> "layers":
        return self.start()

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.stop()

    def _take_turn(self) -> None:
        global _measuring
        with _lock:
            if self._tracker is None:
                return
            if _measuring is not None:
                raise RuntimeError("another layers() is measuring already: give both models to one, "
                                   'layers({"generator": G, "discriminator": D}), or tracker=False to this one')
            _measuring = self

    def _give_turn(self) -> None:
        global _measuring
        with _lock:
            if _measuring is self:
                _measuring = None

    # ---- how ----

    def _open(self) -> None:
        devices = self._gpus()
        self._timeline = cuda.Timeline(devices, self._cuda()) if devices else None
        self._stacks = Stacks(self._timeline.mark if self._timeline is not None else None)
        self._graph = Graph(self._stacks)
        self._observer = take(self._wants_observer, bool(devices), self._stacks.unwind)
        self.backward_by = "hooks" if self._observer is None else "observer"
        self._measured: list[figures.Measured] = []
        self._numbers: dict[str, int] = {}  # column of each span name
        hooked = {part.module: self._hook(part) for part in self._parts.parts}
        for part in self._parts.parts:
            hooked[part.module].inside = frozenset(hooked[around].forward for around in part.inside)
        self._hooked = hooked
        self._forward = ForwardHooks(hooked, self._stacks, self._graph, self._note_once, label=self._observer is None)
        self._forward.open(globally=not self._parts.compiled, in_place=self._parts.compiled_in_place,
                           wrap=_breaking if self._break_graphs else _as_it_is)
        self._forget_compiled()

    def _hook(self, part: modules.Part) -> Hooked:
        number = 2 * len(self._measured) + 1
        name = self._span_name(part)
        forward, backward = _wattle.span(name), _wattle.span(f"{name} backward")
        self._numbers[forward.name], self._numbers[backward.name] = number, number + 1
        self._measured.append(figures.Measured(part.name, part.type))
        layer = Layer(Column(number + 1, None, True, False, backward.__enter__, backward.__exit__),
                      Column(number + 1, None, True, True, backward.__enter__, backward.__exit__), self._graph)
        enter: Callable[[], Any] = forward.__enter__
        leave: Callable[..., Any] = forward.__exit__
        if self._observer is not None:
            enter, leave = self._observer.add(forward.name, backward.name)
        else:
            for parameter in part.module.parameters(recurse=False):
                self._graph.own(parameter, layer)
        return Hooked(Column(number, part.module, False, True, enter, leave), layer, arguments_of(part.module))

    def _span_name(self, part: modules.Part) -> str:
        name = part.name or part.type
        while name in self._numbers or f"{name} backward" in self._numbers:
            name += " (model)"
        return name

    def _gpus(self) -> list[int]:
        """torch's indices of the GPUs that the models use"""
        found = set()
        for part in self._parts.parts:
            for tensor in (*part.module.parameters(recurse=False), *part.module.buffers(recurse=False)):
                if tensor.device.type == "cuda":
                    found.add(tensor.device.index or 0)
        return sorted(found)

    def _cuda(self) -> Optional[Any]:
        """Replaces torch.cuda in tests."""
        return None

    def _forget_compiled(self) -> None:
        """Code that was compiled earlier has no hooks of modules inside, and code compiled meanwhile keeps them: torch.compile
        doesn't check for changed hooks."""
        reset = getattr(sys.modules.get("torch._dynamo"), "reset", None)
        if self._break_graphs and self._parts.compiled and reset is not None:
            reset()

    def _close(self) -> dict[int, cuda.Pieces]:
        self._forward.close()
        self._forget_compiled()
        self._graph.close()
        self._stacks.cut(0)
        self._close_observer()
        pieces = self._timeline.finish() if self._timeline is not None else {}
        if self._timeline is not None and self._timeline.is_captured:
            self.notes.append("work in CUDA graphs is not timed layer by layer: "
                              "it counts for the layer that was on before")
        parameters = modules.count_parameters(self._parts.parts)
        for measured, entry, own in zip(self._measured, self._hooked.values(), parameters):
            measured.calls, measured.parameters = entry.count_call(), own
        if not any(measured.calls for measured in self._measured):
            self.notes.append("no module of the model was called, so there are no layers: modules that the model keeps in a list or "
                              "dict of Python are not part of it (use torch.nn.ModuleList or ModuleDict, or pass a dict of modules)")
        del self._forward, self._graph, self._stacks, self._hooked, self._timeline
        return pieces

    def _close_observer(self) -> None:
        unknown = self._observer.close() if self._observer is not None else 0
        self._observer = None
        if unknown > 0:
            self.notes.append(f"{unknown} backward functions belong to graphs so old that their layers were forgotten: "
                              "their time is outside layers (observer=False forgets none)")

    def _stop_tracker(self) -> Optional[_wattle.Run]:
        if self._tracker is None:
            self.notes.append("only spans were marked (tracker=False): "
                              "times and energies are in the run file of the recorder")
            return None
        try:
            self._tracker.stop()
        except OSError as error:  # the recorder died; its stored data may still exist
            self.notes.append(f"the recorder ended early: {error}")
        path = self._tracker.run_file
        if path is None or not os.path.exists(path):
            why = " (WATTLE_DISABLE is set)" if "WATTLE_DISABLE" in os.environ else ""
            self.notes.append(f"nothing was recorded{why}")
            return None
        return _wattle.Run(path)

    def _note_compiled(self) -> None:
        if not self._parts.compiled:
            return
        names = ", ".join(self._parts.compiled)
        self.notes.append(
            f"compiled by torch.compile, with graph breaks at each module that is measured: {names}"
            if self._break_graphs else
            f"compiled by torch.compile and measured as one layer each: {names} "
            "(break_graphs=True measures inside, more slowly)")

    def _note_once(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    # ---- results ----

    def _done(self) -> figures.Result:
        if self._result is None:
            raise RuntimeError("the results of layers() are available after stop() or after the with block")
        return self._result

    @property
    def rows(self) -> list[rows.Row]:
        """A row for each module whose forward was called, in the order of named_modules(), and last 'outside layers'."""
        return self._done().rows

    @property
    def total_s(self) -> Optional[float]:
        """Sum of all rows' times: the recorded time, s."""
        return rows.add_up([row.time_s for row in self.rows])

    @property
    def total_j(self) -> Optional[float]:
        """Sum of all rows' energies: the energy attributed to this process, J."""
        return rows.add_up([row.energy_j for row in self.rows])

    @property
    def error_j(self) -> Optional[float]:
        """Half of a 95 % interval of total_j, J."""
        return self._done().error_j

    @property
    def estimated(self) -> Optional[bool]:
        """Whether some of the energy is a model's estimate, because no counter was readable."""
        return self._done().estimated

    @property
    def report(self) -> Optional[dict[str, Any]]:
        """The whole report of the run, contract "wattle-report/1"; None: nothing was recorded here."""
        report = self._done().report
        return None if report is None else json.loads(report)

    @property
    def run_file(self) -> Optional[str]:
        """The run file requested by output=."""
        result = self._done()
        return result.run_file if self._keeps else None

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame([{key: row[key] for key in row} for row in self.rows], columns=list(rows.COLUMNS))

    def __str__(self) -> str:
        return self._show(rows.text) if self._result is not None else repr(self)

    def _repr_html_(self) -> Optional[str]:
        return self._show(rows.as_html) if self._result is not None else None

    def _show(self, how: Any) -> str:
        return str(how(self.rows, self.total_s, self.total_j, bool(self.estimated), self.notes))

    def __repr__(self) -> str:
        return f"<wattle.torch.layers, {self._state}>" if self._result is None else (
            f"<wattle.torch.layers, {len(self.rows) - 1} layers, {self.total_j} J in {self.total_s} s>")


def _as_it_is(hook: Any) -> Any:
    return hook


def _breaking(hook: Any) -> Any:
    """A hook that torch.compile does not trace: it breaks the graph there."""
    compiler = getattr(torch, "compiler", None)
    disable = getattr(compiler, "disable", None) or getattr(getattr(torch, "_dynamo", None), "disable", None)
    return hook if disable is None else disable(hook)
