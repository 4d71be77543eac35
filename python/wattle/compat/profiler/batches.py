"""One batch after another, on the device, endlessly."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Generator, Iterable, Iterator, Optional

import torch


def check(model: Any, dataloader: Any, train: bool, loss_fn: Any, optimizer: Any) -> None:
    """Checks before anything is done."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if isinstance(dataloader, Iterator) or not hasattr(dataloader, "__iter__") and not hasattr(dataloader, "__getitem__"):
        raise TypeError("dataloader must support repeated iteration, as a DataLoader or a list of batches does, "
                        f"not {type(dataloader).__name__}")
    if hasattr(dataloader, "__len__") and _is_empty(dataloader):
        raise ValueError("the dataloader has no batch")
    if train and (loss_fn is None or optimizer is None):
        raise ValueError("train=True needs loss_fn and optimizer")
    if train and not (callable(loss_fn) and hasattr(optimizer, "step") and hasattr(optimizer, "zero_grad")):
        raise TypeError(f"loss_fn must be a function and optimizer a torch.optim.Optimizer, not {type(loss_fn).__name__} "
                        f"and {type(optimizer).__name__}")


def _is_empty(dataloader: Any) -> bool:
    try:
        return len(dataloader) == 0
    except TypeError:  # a DataLoader of a data set without a length
        return False


def steps(model: Any, dataloader: Iterable[Any], train: bool, loss_fn: Optional[Callable[..., Any]], optimizer: Any,
          device: torch.device) -> Generator[None, None, None]:
    """Each next() takes one batch through the model. It ends only if there is no batch at all."""
    for batch in _cycle(dataloader):
        inputs, labels = _split(batch, train)
        if train:
            assert loss_fn is not None
            _train(model, _to(device, inputs), _to(device, labels), loss_fn, optimizer)
        else:
            with torch.no_grad():
                _call(model, _to(device, inputs))
        yield


def _train(model: Any, inputs: Any, labels: Any, loss_fn: Callable[..., Any], optimizer: Any) -> None:
    def forward_and_backward() -> Any:
        optimizer.zero_grad()
        loss = loss_fn(_call(model, inputs), labels)
        loss.backward()
        return loss

    if isinstance(optimizer, torch.optim.LBFGS):  # evaluates the model as often as it needs
        optimizer.step(forward_and_backward)
        return
    forward_and_backward()
    optimizer.step()


def _cycle(dataloader: Iterable[Any]) -> Iterator[Any]:
    while True:
        has_batch = False
        for batch in dataloader:
            has_batch = True
            yield batch
        if not has_batch:
            raise ValueError("the dataloader has no batch")


def _split(batch: Any, needs_labels: bool) -> tuple[Any, Any]:
    """data and labels, as `for data, labels in dataloader` unpacks them; without training also data alone."""
    if isinstance(batch, (list, tuple)) and len(batch) >= 2:
        return batch[0], batch[1]
    if needs_labels:
        raise ValueError(f"train=True needs batches of data and labels, not of {type(batch).__name__}")
    return (batch[0], None) if isinstance(batch, (list, tuple)) else (batch, None)  # pyright: ignore[reportGeneralTypeIssues]


def _call(model: Any, inputs: Any) -> Any:
    return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def _to(device: torch.device, value: Any) -> Any:
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: _to(device, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to(device, item) for item in value]
    return value
