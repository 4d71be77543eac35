"""GPU work of layers is timed by events in its streams: a stand-in for torch.cuda simulates a GPU that runs behind the
host."""

import torch
from harness import near, main, test

from wattle.torch import cuda

NS = 1_000_000_000


class Event:
    device_ns = None


class FakeCuda:
    """One clock for the host; GPUs whose own clocks are ahead and drift. Work is queued in streams, in order."""

    def __init__(self, drift=1.0, offset_ns=7 * NS):
        self.now_ns, self.free_ns, self.stream = 0, {}, 0
        self.drift, self.offset_ns = drift, offset_ns
        self.recorded = self.waits = 0
        self.capturing = False

    def work(self, ns, stream=None):
        stream = self.stream if stream is None else stream
        begin = max(self.free_ns.get(stream, 0), self.now_ns)
        self.free_ns[stream] = begin + ns
        return begin, begin + ns

    def record(self, device, event):
        event = event if event is not None else Event()
        event.ready_ns = max(self.free_ns.get(self.stream, 0), self.now_ns)
        event.device_ns = self.offset_ns + event.ready_ns * self.drift
        self.recorded += 1
        return self.stream, event

    def is_over(self, event):
        return event.ready_ns <= self.now_ns

    def wait(self, event):
        self.waits += 1
        self.now_ns = max(self.now_ns, event.ready_ns)

    def elapsed_ms(self, begin, end):
        return float(torch.tensor((end.device_ns - begin.device_ns) / 1e6, dtype=torch.float32))

    def synchronize(self, device):
        self.now_ns = max([self.now_ns, *self.free_ns.values()])

    def is_capturing(self):
        return self.capturing

    def monotonic_ns(self):
        return int(self.now_ns)


def time_of(pieces, column):
    return sum(e - b for b, e, c in zip(pieces.begin_ns, pieces.end_ns, pieces.column) if c == column)


@test
def behind_the_host(workdir):
    """host launches in microseconds, GPU runs for milliseconds: each column has its GPU time, and no other's"""
    fake = FakeCuda(drift=1.0002)
    fake.now_ns = 1 * NS
    device = cuda.Device(fake, 0)
    expected_values = {1: 0, 2: 0}
    for i in range(3000):
        for column, ns in ((1, 1_000_000 + i), (2, 3_000_000)):
            device.mark(column)
            begin, end = fake.work(ns)
            expected_values[column] += end - begin
            device.mark(0)
            fake.work(500_000)
            fake.now_ns += 10_000
        if i % 50 == 0:
            fake.synchronize(0)  # as a loss.item() does
    pieces = device.finish()
    for column, ns in expected_values.items():
        near(time_of(pieces, column), ns, relative=1e-4)
    assert len(pieces.begin_ns) == 6000 and list(pieces.begin_ns) == sorted(pieces.begin_ns)


@test
def placed_on_the_host_clock(workdir):
    """an hour of a drifting clock: intervals stay within 20 us of their times, though events have single-precision
    milliseconds"""
    fake = FakeCuda(drift=1.00005)
    fake.now_ns = 5 * NS
    device = cuda.Device(fake, 0)
    expected_values = []
    for _ in range(36000):
        fake.now_ns += 100_000_000
        device.mark(1)
        expected_values.append(fake.work(1_000_000)[0])
        device.mark(0)
    pieces = device.finish()
    off = [begin - true for begin, true in zip(pieces.begin_ns, expected_values)]
    assert max(map(abs, off)) < 20_000, max(map(abs, off))
    assert fake.recorded < 72000 + 20


@test
def never_waits(workdir):
    """GPU behind the host: nothing is waited for, and events are reused once it has caught up"""
    fake = FakeCuda()
    device = cuda.Device(fake, 0)
    waits = fake.waits
    for _ in range(cuda.PENDING_MOST * 2):
        device.mark(1)
        fake.work(1_000_000)
    assert fake.waits == waits
    fake.synchronize(0)
    for _ in range(cuda.PENDING_MOST):
        device.mark(1)
        fake.work(10)
        fake.now_ns += 1000
    assert len(device._pool) > 0 and len(device._pending) < 3 * cuda.PENDING_MOST
    assert time_of(device.finish(), 1) >= cuda.PENDING_MOST * 2 * 1_000_000


@test
def streams(workdir):
    """overlapping streams: overlapping intervals"""
    fake = FakeCuda()
    device = cuda.Device(fake, 0)
    for stream, column in ((1, 1), (2, 2)):
        fake.stream = stream
        device.mark(column)
        fake.work(10_000_000)
        device.mark(0)
    pieces = device.finish()
    assert sorted(pieces.column) == [1, 2]
    assert abs(pieces.begin_ns[0] - pieces.begin_ns[1]) < 1000 and abs(pieces.end_ns[0] - pieces.end_ns[1]) < 1000


@test
def graphs(workdir):
    """CUDA graph: nothing is recorded, with a note"""
    fake = FakeCuda()
    device = cuda.Device(fake, 0)
    before = fake.recorded
    fake.capturing = True
    device.mark(1)
    assert fake.recorded == before and device.is_captured


if __name__ == "__main__":
    main()
