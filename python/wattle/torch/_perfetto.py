"""Events of another program as packets of a Perfetto trace, appended to those of `wattle export`.

The numbers of messages and fields are in src/report/trace/internal.h."""
from __future__ import annotations

import os
from typing import BinaryIO, NamedTuple

ROUNDING_NS = 2_000        # : whole microseconds: an inner event may end this much after the enclosing one
MONOTONIC = 3              # Perfetto's number of the clock
SEQUENCE = 2               # wattle's own packets are sequence 1
BEGIN, END = 1, 2


class Event(NamedTuple):
    thread: tuple[str, str]
    begin_ns: int
    end_ns: int
    name: str


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _uint(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode("utf-8", "replace"))


def _packet(*parts: bytes, flags: int = 2) -> bytes:
    return _message(1, _uint(10, SEQUENCE), _uint(13, flags), *parts)


class _Writer:
    def __init__(self, file: BinaryIO, offset_ns: int) -> None:
        self.file, self.offset_ns = file, offset_ns
        self.last_uuid = int.from_bytes(os.urandom(5), "little") << 20  # separate from those of the run
        self.file.write(_packet(_uint(87, 1), _message(59, _uint(58, MONOTONIC)), flags=1))

    def track(self, name: str, parent: int = 0) -> int:
        self.last_uuid += 1
        inside = _uint(5, parent) if parent else b""
        self.file.write(_packet(_message(60, _uint(1, self.last_uuid), _text(2, name), inside)))
        return self.last_uuid

    def event(self, kind: int, track: int, t_ns: int, name: bytes = b"") -> None:
        event = _message(11, _uint(9, kind), _uint(11, track), name)
        self.file.write(_packet(_uint(8, t_ns + self.offset_ns), event))


class _Lane:
    """A track, and the ends of its open events."""

    def __init__(self, writer: _Writer, track: int) -> None:
        self.writer, self.track = writer, track
        self.ends: list[int] = []

    def end_until(self, t_ns: float) -> None:
        while self.ends and self.ends[-1] <= t_ns:
            self.writer.event(END, self.track, self.ends.pop())

    def takes(self, event: Event) -> bool:
        self.end_until(event.begin_ns)
        return not self.ends or event.end_ns <= self.ends[-1] + ROUNDING_NS

    def begin(self, event: Event) -> None:
        self.ends.append(min(event.end_ns, self.ends[-1]) if self.ends else event.end_ns)
        self.writer.event(BEGIN, self.track, event.begin_ns, _text(23, event.name or '""'))


def append(file: BinaryIO, label: str, events: list[Event], threads: dict[tuple[str, str], str],
           offset_ns: int) -> None:
    """Events sorted by thread, begin and, if equal, length; crossing ones get a further track."""
    writer = _Writer(file, offset_ns)
    top = writer.track(label)
    lanes: list[_Lane] = []
    thread = None
    for event in events:
        if event.thread != thread:
            for lane in lanes:
                lane.end_until(float("inf"))
            lanes, thread = [], event.thread
        chosen = next((lane for lane in lanes if lane.takes(event)), None)
        if chosen is None:
            chosen = _Lane(writer, writer.track(threads[event.thread], top))
            lanes.append(chosen)
        chosen.begin(event)
    for lane in lanes:
        lane.end_until(float("inf"))
