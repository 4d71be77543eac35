"""LayerwiseMeasurementTool: the energy of each layer of a PyTorch model."""
from __future__ import annotations

import atexit
import math
import os
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .counters import GpuNumber, gpu_option
from .rows import PathLike, RowFile

if TYPE_CHECKING:
    import torch
    Model = TypeVar("Model", bound=torch.nn.Module)


class LayerwiseMeasurementTool:
    """Measures a model layer by layer: a row `layer type,mean J per call` for each layer.

        tool = LayerwiseMeasurementTool(out_file="layers.csv", gpu_num=0)
        model = tool.start(model)
        for epoch in range(epochs):
            train()
        tool.stop()

    Layers are the modules of the model that contain no others, and those of torch.nn that do (except
    plain containers), in the order of model.named_modules(). Joules are the program's, CPU and memory plus GPU, of a
    forward call and its backward together, without those of inner layers. nan: the layer was not
    called, or its energy could not be measured. `tool.layers` is the measurement itself, with all details
    (wattle.torch.layers).

    ValueError: there are GPUs, but none of that number. OSError: `out_file` cannot be written.
"""

    def __init__(self, out_file: PathLike, gpu_num: GpuNumber = 0) -> None:
        self._file = RowFile(out_file)
        self._gpus = gpu_option(gpu_num)
        self._types: dict[str, str] = {}
        self._process = 0
        self.layers: Any = None

    def start(self, model: Model) -> Model:
        """Starts measuring and returns the unchanged model. RuntimeError: already started."""
        from ...torch import layers
        if self._is_started():
            raise RuntimeError("LayerwiseMeasurementTool.start(): already started; call stop() first")
        self._types = {name: type(module).__name__ for name, module in model.named_modules() if _is_layer(name, module)}
        self.layers = layers(model, gpus=self._gpus)
        self.layers.__enter__()
        self._process = os.getpid()
        atexit.register(self._stop_at_exit)
        return model

    def stop(self) -> None:
        """Ends the measurement and writes the file. RuntimeError: not started."""
        if not self._is_started():
            raise RuntimeError("LayerwiseMeasurementTool.stop() without start(): nothing is being measured")
        self._process = 0
        atexit.unregister(self._stop_at_exit)
        self.layers.__exit__(None, None, None)
        rows = {row.name: row for row in self.layers.rows}
        self._file.replace([kind, _mean_j(rows.get(name))] for name, kind in self._types.items())

    def _is_started(self) -> bool:
        return self._process == os.getpid()

    def _stop_at_exit(self) -> None:
        if self._is_started():
            self.stop()


def _is_layer(name: str, module: torch.nn.Module) -> bool:
    import torch
    if next(module.children(), None) is None:
        return True
    containers = torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict
    return name != "" and type(module).__module__.startswith("torch.nn.") and not isinstance(module, containers)


def _mean_j(row: Optional[Any]) -> float:
    if row is None or not row.calls or row.energy_j is None:
        return math.nan
    return float(row.energy_j / row.calls)
