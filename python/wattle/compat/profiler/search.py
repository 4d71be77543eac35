"""power_cap_profiler."""
from __future__ import annotations

import math
import os
from typing import Any, Callable, Iterable, Optional

import torch

from ... import cap as caps
from ..measurement.rows import J_PER_KWH, PathLike, RowFile
from . import batches
from .caps import GpuNumber, device_name
from .state import Kept

N_CAPS = 8  # as De Feo's table has them; no limits are added


def power_cap_profiler(model: torch.nn.Module, dataloader: Iterable[Any], gpu_num: GpuNumber = 0, train: bool = False,
                       loss_fn: Optional[Callable[..., Any]] = None, optimizer: Optional[torch.optim.Optimizer] = None,
                       out_file: Optional[PathLike] = None, *, objective: str = "ed2p", seconds: float = 30,
                       settle: Optional[float] = None, seed: int = 0) -> float:
    """Searches for the best power cap for this model: takes the batches of `dataloader`, repeatedly, through
    training (train=True, which needs loss_fn and optimizer) or inference, under eight caps from 100 % to 30 % of the GPU's
    default, none below its minimum. Returns whole watts inside the GPU's range.

    The results are printed and, with out_file, written: `cap W,batches,kWh,objective` for each cap, then
    `Modeled Optimal Cap:,W`. When it returns or raises, everything is restored: the GPU's limit, and of model,
    optimizer, loss_fn and random generators every bit, the mode and the device of each module included.

    Work is done on the GPU if PyTorch has CUDA, else on the CPU. By the names of wattle.cap.tune: objective ("ed2p", "edp",
    "energy", "slowdown=PERCENT"), seconds (maximum measuring time for each cap), settle, seed.

    ValueError, TypeError: an argument is not valid. LookupError, PermissionError: the GPU cannot be capped; nothing was
    done then.
"""
    batches.check(model, dataloader, train, loss_fn, optimizer)
    file = RowFile(out_file) if out_file is not None else None
    if os.environ.get("WATTLE_DISABLE") == "1":
        return math.nan
    gpu = caps.get(device_name(gpu_num))
    result = _search(model, dataloader, train, loss_fn, optimizer, gpu,
                     {"objective": objective, "caps": N_CAPS, "seconds": seconds, "settle": settle, "seed": seed})
    chosen_w = _whole_watts(result.chosen_w, gpu)
    print(_table(result, chosen_w))
    if file is not None:
        rows = [[row.cap_w, row.steps, row.energy_j / J_PER_KWH, row.objective] for row in result.caps]
        file.replace([*rows, ["Modeled Optimal Cap:", f"{chosen_w}"]])
    return chosen_w


def _search(model: Any, dataloader: Any, train: bool, loss_fn: Any, optimizer: Any, gpu: caps.Device,
            options: dict[str, Any]) -> caps.TuneResult:
    kept = Kept(model, optimizer, loss_fn, dataloader)
    try:
        device = _torch_device(gpu)
        model.to(device)
        if isinstance(optimizer, torch.optim.Optimizer):
            optimizer.load_state_dict(optimizer.state_dict())  # its tensors follow those of the model
        model.train(train)
        work = batches.steps(model, dataloader, train, loss_fn, optimizer, device)
        try:
            return caps.tune(gpu.device, work, progress=_show_progress, **options)
        finally:
            work.close()
    finally:
        kept.restore()


def _torch_device(gpu: caps.Device) -> torch.device:
    """The same GPU by CUDA's numbering, which may differ from NVML's."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    uuids = [str(getattr(torch.cuda.get_device_properties(i), "uuid", "")) for i in range(torch.cuda.device_count())]
    for i, uuid in enumerate(uuids):
        if uuid and gpu.id.removeprefix("GPU-") == uuid.removeprefix("GPU-"):
            return torch.device("cuda", i)
    if all(uuids):
        raise LookupError(f"{gpu.device} ({gpu.id}) is not visible to this program (see CUDA_VISIBLE_DEVICES)")
    number = gpu.device.removeprefix("gpu-")  # an older PyTorch, which does not report it
    return torch.device("cuda", int(number) if number.isdecimal() else 0)


def _show_progress(progress: caps.Progress) -> None:
    print(f"Tested: {progress.limit:.0f}W ({progress.done:.0%}, at most {progress.seconds_left:.0f} s left)", flush=True)


def _whole_watts(watts: float, gpu: caps.Device) -> int:
    whole = round(watts)
    if whole < gpu.min_w:
        return math.ceil(gpu.min_w)
    return math.floor(gpu.max_w) if whole > gpu.max_w else whole


def _table(result: caps.TuneResult, chosen_w: int) -> str:
    unit = result.objective_unit
    lines = [f"{'cap (W)':>8}  {'batches':>8}  {'energy (kWh)':>12}  {f'{result.objective} ({unit})':>16}"]
    lines += [f"{row.cap_w:8.0f}  {row.steps:8.0f}  {row.energy_j / J_PER_KWH:12.6g}  {row.objective:16.6g}"
              for row in result.caps]
    saving, slowdown = result.saving_interval, result.slowdown_interval
    lines.append(f"Modeled Optimal Cap: {chosen_w}W (model: {result.model}), saves {saving.value:.1f} % of energy "
                 f"({saving.low:.1f} to {saving.high:.1f}), takes {slowdown.value:.1f} % longer "
                 f"({slowdown.low:.1f} to {slowdown.high:.1f})")
    return "\n".join([*lines, *([result.note] if result.note else [])])
