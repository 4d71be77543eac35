"""Actual execution times of work on a GPU.

The host only launches the work. So each change of layer leaves an event in the stream, and the GPU records the time when
it reaches it. Events are read later, many at once, without waiting for the GPU; two anchors, at start and end, relate
the GPU's clock to CLOCK_MONOTONIC.
"""
from __future__ import annotations

import threading
import time
from array import array
from collections import deque
from typing import Any, Optional, Sequence

PENDING_MOST = 4096  # : unread events before those that are over are read
ANCHORS = 5


class TorchCuda:
    """The few required calls of torch.cuda; tests replace them."""

    def __init__(self) -> None:
        import torch
        self._cuda = torch.cuda

    def record(self, device: int, event: Optional[Any]) -> tuple[int, Any]:
        """(stream, event): an event, reused if one is given, in the device's current stream."""
        stream = self._cuda.current_stream(device)
        used: Any = event if event is not None else self._cuda.Event(enable_timing=True)
        used.record(stream)
        return stream.cuda_stream, used

    def is_over(self, event: Any) -> bool:
        return bool(event.query())

    def wait(self, event: Any) -> None:
        event.synchronize()

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end))

    def synchronize(self, device: int) -> None:
        self._cuda.synchronize(device)

    def is_capturing(self) -> bool:
        """In a CUDA graph events are part of the graph, and have no time."""
        return bool(self._cuda.is_current_stream_capturing())

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


class Pieces:
    """When a device worked for which column: CLOCK_MONOTONIC ns, columns above 0."""

    def __init__(self) -> None:
        self.begin_ns = array("q")
        self.end_ns = array("q")
        self.column = array("i")

    def extend(self, other: "Pieces") -> None:
        self.begin_ns.extend(other.begin_ns)
        self.end_ns.extend(other.end_ns)
        self.column.extend(other.column)


class Device:
    """One GPU's events. Times are ns since its first anchor, by its own clock, until the second one exists."""

    def __init__(self, cuda: Any, index: int) -> None:
        self.index = index
        self._cuda = cuda
        self._pool: list[Any] = []
        self._pending: deque[tuple[int, Any, int]] = deque()
        self._now: dict[int, tuple[int, int]] = {}  # : for each stream: since when it works for which column
        self._pieces = Pieces()
        self._anchor_ns, self._base = self._anchor()
        self._base_ns = 0  # : the base event's time; it advances, because single-precision milliseconds are accurate for short times only
        self.is_captured = False
        self._lock = threading.Lock()  # backward runs in a thread of its own

    def _anchor(self) -> tuple[int, Any]:
        """(CLOCK_MONOTONIC ns, event) of one instant: the narrowest of a few tries."""
        begin_ns, end_ns, event = min((self._try_anchor() for _ in range(ANCHORS)), key=lambda one: one[1] - one[0])
        return (begin_ns + end_ns) // 2, event

    def _try_anchor(self) -> tuple[int, int, Any]:
        """CLOCK_MONOTONIC ns before and after an event, and the event."""
        self._cuda.synchronize(self.index)
        begin_ns = self._cuda.monotonic_ns()
        _, event = self._cuda.record(self.index, None)
        self._cuda.wait(event)
        return begin_ns, self._cuda.monotonic_ns(), event

    def mark(self, column: int) -> None:
        """From here on the current stream works for `column`."""
        if self._cuda.is_capturing():
            self.is_captured = True
            return
        with self._lock:
            stream, event = self._cuda.record(self.index, self._pool.pop() if self._pool else None)
            self._pending.append((stream, event, column))
            if len(self._pending) >= PENDING_MOST and len(self._pending) % (PENDING_MOST // 4) == 0:
                self._read_some()

    def _read_some(self) -> None:
        """Reads the older half, once the GPU has executed them. A GPU that is very far behind is waited for."""
        last = self._pending[len(self._pending) // 2][1]
        if len(self._pending) > 8 * PENDING_MOST:
            self._cuda.wait(last)
        if self._cuda.is_over(last):
            self._read(len(self._pending) // 2)

    def _read(self, most: int) -> None:
        last = None
        for _ in range(most):
            stream, event, column = self._pending[0]
            if not self._cuda.is_over(event):  # of another stream than the requested one
                break
            self._pending.popleft()
            self._note(stream, self._time_ns(event), column)
            if last is not None:
                self._pool.append(last)
            last = event
        if last is not None:
            self._base_ns, old, self._base = self._time_ns(last), self._base, last
            self._pool.append(old)

    def _time_ns(self, event: Any) -> int:
        return self._base_ns + round(self._cuda.elapsed_ms(self._base, event) * 1e6)

    def _note(self, stream: int, t_ns: int, column: int) -> None:
        begin_ns, before = self._now.get(stream, (t_ns, 0))
        t_ns = max(t_ns, begin_ns)  # rounded apart
        if before != 0 and t_ns > begin_ns:
            self._pieces.begin_ns.append(begin_ns)
            self._pieces.end_ns.append(t_ns)
            self._pieces.column.append(before)
        self._now[stream] = t_ns, column

    def finish(self) -> Pieces:
        """All intervals, in CLOCK_MONOTONIC; the device is idle now."""
        host_ns, last = self._anchor()
        self._read(len(self._pending))
        device_ns = self._time_ns(last)
        rate = (host_ns - self._anchor_ns) / device_ns if device_ns > 0 else 1.0

        def placed(times: "array[int]") -> "array[int]":
            return array("q", [self._anchor_ns + round(t_ns * rate) for t_ns in times])

        pieces = Pieces()
        pieces.begin_ns, pieces.end_ns = placed(self._pieces.begin_ns), placed(self._pieces.end_ns)
        pieces.column = self._pieces.column
        self._pool.clear()
        return pieces


class Timeline:
    """All devices used by a model."""

    def __init__(self, devices: Sequence[int], cuda: Optional[Any] = None) -> None:
        backend = cuda if cuda is not None else TorchCuda()
        self.devices = [Device(backend, index) for index in devices]

    def mark(self, column: int) -> None:
        for device in self.devices:
            device.mark(column)

    def finish(self) -> dict[int, Pieces]:
        return {device.index: device.finish() for device in self.devices}

    @property
    def is_captured(self) -> bool:
        return any(device.is_captured for device in self.devices)


def domain_of(devices: Sequence[dict[str, Any]], index: int) -> Optional[str]:
    """The run's domain ('gpu-0') of torch's device `index`, or None if unknown."""
    gpus = [device for device in devices if device["kind"] == "gpu"]
    uuid = _uuid(index)
    for gpu in gpus:
        if uuid is not None and _bare(gpu.get("uuid")) == uuid:
            return gpu["name"]
    return gpus[0]["name"] if len(gpus) == 1 and uuid is None else None


def _bare(uuid: Optional[str]) -> str:
    return (uuid or "").lower().removeprefix("gpu-")


def _uuid(index: int) -> Optional[str]:
    """UUID of torch's device; torch 2.x reports it."""
    import torch
    try:
        uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    except (AssertionError, RuntimeError):  # no such device
        return None
    return None if uuid is None else _bare(str(uuid))
