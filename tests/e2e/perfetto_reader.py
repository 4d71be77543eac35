"""A small reader of Perfetto traces, written from the format's description, so that wattle is not tested against
itself.

Stricter than Perfetto: an end without a begin, an event on a track without a description, an undefined name and
invalid UTF-8 are errors here.
"""
import dataclasses
import math
import struct

MONOTONIC, REALTIME, BOOTTIME = 3, 1, 6


def varint(data, at):
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7f, 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7f) << shift
        shift += 7
    return value, at + 1


def fields(data):
    """The fields of a message, in order: (number, value); bytes stay bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, = struct.unpack_from("<d", data, at)
            at += 8
        elif wire == 2:
            length, at = varint(data, at)
            value = data[at:at + length]
            at += length
            assert at <= end, "a message ends in the middle of a field"
        else:
            raise AssertionError(f"wire type {wire}")
        yield key >> 3, value


def message(data):
    """Field number -> list of its values."""
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def one(found, number, default=None):
    values = found.get(number, [default])
    assert len(values) == 1, f"field {number} stands {len(values)} times"
    return values[0]


def text(value):
    return None if value is None else value.decode("utf-8")


@dataclasses.dataclass
class Track:
    uuid: int
    name: str | None
    parent: int | None
    pid: int | None = None
    tid: int | None = None
    process: str | None = None
    unit: str | None = None
    is_counter: bool = False
    values: list = dataclasses.field(default_factory=list)  # of a counter: (t_ns, value)


@dataclasses.dataclass
class Slice:
    track: Track
    name: str
    begin_ns: int
    end_ns: int | None
    category: str | None
    arguments: dict
    depth: int


@dataclasses.dataclass
class Instant:
    track: Track
    name: str
    t_ns: int
    category: str | None
    arguments: dict


class Trace:
    def __init__(self, data):
        self.tracks, self.slices, self.instants, self.clocks = {}, [], [], []
        self.names, self.clock = {}, None
        events = []
        for number, packet in fields(data):
            assert number == 1, f"field {number} is no packet"
            event = self.packet(message(packet))
            if event is not None:
                events.append(event)
        events.sort(key=lambda event: event[0])  # stable, as Perfetto does it
        self.open = {}
        for t_ns, event in events:
            self.event(t_ns, event)

    def packet(self, packet):
        assert one(packet, 10), "no sequence"
        if 59 in packet:
            self.clock = one(message(one(packet, 59)), 58)
        if 12 in packet:
            for entry in message(one(packet, 12)).get(2, []):
                name = message(entry)
                self.names[one(name, 1)] = text(one(name, 2))
        if 6 in packet:
            snapshot = message(one(packet, 6))
            clocks = [message(clock) for clock in snapshot[1]]
            self.clocks.append({one(clock, 1): one(clock, 2) for clock in clocks})
            self.primary_clock = one(snapshot, 2)
        if 60 in packet:
            self.track(message(one(packet, 60)))
        if 11 in packet:
            assert self.clock == MONOTONIC
            return one(packet, 8), message(one(packet, 11))
        return None

    def track(self, found):
        track = Track(one(found, 1), text(one(found, 2)), one(found, 5))
        assert track.uuid not in self.tracks, "a track is described twice"
        assert track.parent is None or track.parent in self.tracks, "a parent comes before its children"
        if 3 in found:
            process = message(one(found, 3))
            track.pid, track.process = one(process, 1), text(one(process, 6))
        if 4 in found:
            thread = message(one(found, 4))
            track.pid, track.tid = one(thread, 1), one(thread, 2)
        if 8 in found:
            counter = message(one(found, 8))
            track.is_counter = True
            track.unit = "bytes" if one(counter, 3) == 3 else text(one(counter, 6))
        self.tracks[track.uuid] = track

    def event(self, t_ns, found):
        track = self.tracks[one(found, 11)]
        name = text(one(found, 23)) if 23 in found else self.names.get(one(found, 10))
        category, kind = text(one(found, 22)), one(found, 9)
        arguments = dict(self.argument(message(argument)) for argument in found.get(4, []))
        assert track.is_counter == (kind == 4), "counters have values, and only they"
        if kind == 4:
            value, before = one(found, 44), track.values[-1] if track.values else (-1, math.nan)
            # A reading at the very end shares its time with "unknown from here on", and that with the first reading of
            # a segment that begins where the previous one ends.
            in_order = t_ns > before[0] or (t_ns == before[0] and math.isnan(value) != math.isnan(before[1]))
            assert in_order, f"two values of {track.name} at {t_ns}"
            track.values.append((t_ns, value))
        elif kind == 3:
            self.instants.append(Instant(track, name, t_ns, category, arguments))
        elif kind == 2:
            self.open[track.uuid].pop().end_ns = t_ns
        else:
            assert kind == 1 and name is not None
            stack = self.open.setdefault(track.uuid, [])
            stack.append(Slice(track, name, t_ns, None, category, arguments, len(stack)))
            self.slices.append(stack[-1])

    @staticmethod
    def argument(found):
        values = [found[number][0] for number in (4, 5, 6) if number in found]
        assert len(values) == 1
        return text(one(found, 10)), text(values[0]) if isinstance(values[0], bytes) else values[0]

    def counter(self, name):
        track, = (track for track in self.tracks.values() if track.is_counter and track.name == name)
        return track

    def counters(self):
        return sorted(track.name for track in self.tracks.values() if track.is_counter)

    def process_of(self, track):
        while track.pid is None and track.parent is not None:
            track = self.tracks[track.parent]
        return track.pid


def integral(values):
    """Value times seconds; NaN is left out, and the last value has no duration."""
    return math.fsum(value * (next_ns - t_ns) / 1e9 for (t_ns, value), (next_ns, _) in zip(values, values[1:])
                     if not math.isnan(value))
