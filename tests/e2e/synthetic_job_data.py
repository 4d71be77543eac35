"""Activity of the ranks of a synthetic job at every instant, and the resulting energies; synthetic_jobs.py writes the
files.

A job consists of steps: every rank computes, then waits in MPI_Allreduce for the slowest one. A machine's power follows
the busy cores and GPUs and is constant between two changes of them, so that every energy is a sum that can be
checked by hand. Times are seconds since the job began by a reference clock; each machine has its own clock.
"""
import bisect
import dataclasses
import itertools
import math

COMPUTE_CORES, WAIT_CORES, OTHERS_CORES = 6.0, 1.0, 1.5
COMPUTE_USE, WAIT_USE = 0.40, 0.10  # of a rank's GPU, from 0 to 1
MACHINE_MEMORY, RANK_MEMORY = 100_000_000_000, 8_000_000_000  # bytes in use; of these, each rank's
SETUP, COMPUTE, WAIT, STEP = "setup", "forward", "MPI_Allreduce", "step"


class Steps:
    """A function of time that is constant between its breaks and 0 outside, and its integral."""

    def __init__(self, pieces):
        """pieces: (from, to, value), in order and without overlap."""
        self.times, self.values, self.sums = [-math.inf], [0.0], [0.0]
        for start, end, value in pieces:
            if end > start:
                self._add(start, end, value)

    def _add(self, start, end, value):
        if self.times[-1] == start:
            self.values[-1] = value
        else:
            self.times.append(start), self.values.append(value), self.sums.append(self.sums[-1])
        self.times.append(end), self.values.append(0.0), self.sums.append(self.sums[-1] + value * (end - start))

    def at(self, time):
        return self.values[bisect.bisect_right(self.times, time) - 1]

    def upto(self, time):
        i = bisect.bisect_right(self.times, time) - 1
        return self.sums[i] + (self.values[i] * (time - self.times[i]) if self.values[i] else 0.0)

    def between(self, start, end):
        return self.upto(end) - self.upto(start) if end > start else 0.0


def join(functions, value, start, end):
    """value(of each function) as a function of time from start to end."""
    breaks = sorted({start, end, *(t for f in functions for t in f.times if start < t < end)})
    return Steps((a, b, value(*(f.at(a) for f in functions))) for a, b in itertools.pairwise(breaks))


@dataclasses.dataclass(eq=False)
class Work:
    """One recording of a rank, which is one run file."""
    rank: int
    local_rank: int
    node: int
    start_s: float
    end_s: float
    spans: list               # (name, from, to, number of the enclosing one or None)
    gpus: tuple = ()          # on which it computes
    visible: tuple = ()       # visible to it
    restart: int = 0
    exit_code: int = 0
    is_killed: bool = False   # with its recorder, at end_s
    is_recorded: bool = True  # False: not measured
    step: str | None = None   # of the scheduler
    is_outer: bool = False    # the recorder measured the launcher, and with it the ranks of the node

    def __post_init__(self):
        self.spans = [span for span in self.spans if span[1] < self.end_s]
        inner = [(self.start_s, None), *((a, name) for name, a, _, _ in self.spans if name != STEP)]
        ends = [*(a for a, _ in inner[1:]), self.end_s]
        self.parts = [(name, a, min(b, self.end_s)) for (a, name), b in zip(inner, ends)]
        # The time from the last block to the end of the program is computing.
        last = max((b for _, a, b, _ in self.spans), default=self.end_s)
        if last < self.end_s and self.parts:
            name, a, _ = self.parts[-1]
            self.parts[-1:] = [(name, a, last), (None, last, self.end_s)]
        self.cores = self._load(WAIT_CORES, COMPUTE_CORES)
        self.use = self._load(WAIT_USE, COMPUTE_USE)

    def _load(self, waiting, computing):
        return Steps((a, b, waiting if name == WAIT else computing) for name, a, b in self.parts)

    def calls(self, name):
        return [(a, min(b, self.end_s)) for span, a, b, _ in self.spans if span == name]

    def time_in(self, name):
        return math.fsum(b - a for a, b in self.calls(name))

    def ticks(self, interval_s):
        n = math.ceil((self.end_s - self.start_s) / interval_s - 1e-9)
        return [self.start_s + i * interval_s for i in range(n)] + ([] if self.is_killed else [self.end_s])


@dataclasses.dataclass
class Piece:
    """One recording's readings of one domain, from its first to its last."""
    work: Work
    from_s: float
    to_s: float
    taken_over: bool


class Machine:
    """One set of sensors, shared by all ranks that read it."""

    def __init__(self, nodes, devices, works, length_s, interval_s):
        self.nodes, self.devices, self.works = nodes, devices, works
        self.start_s, self.end_s, self.interval_s = -10.0, length_s + 10.0, interval_s
        self.busy = self._join([w.cores for w in works if not w.is_outer], lambda *each: sum(each) + OTHERS_CORES)
        self.power = [self._join([self._load(device)], self._law(device)) for device in devices]
        self.pieces = [[] for _ in devices]
        for outer in (w for w in works if w.is_outer):
            outer.cores = self._join([w.cores for w in works if not w.is_outer], lambda *each: sum(each))
        self.offset_uj = [(i + 1) * 1_234_567_890 for i in range(len(devices))]  # values of the counters at start_s

    def _join(self, functions, value):
        return join(functions, value, self.start_s, self.end_s)

    def _load(self, device):
        if device.kind != "gpu":
            return self.busy
        return self._join([w.use for w in self.users(device.idx)], lambda *each: sum(each))

    @staticmethod
    def _law(device):
        base_w, slope_w = {"gpu": (72, 600), "package": (58, 7.5), "dram": (9, 0.9)}.get(device.kind, (110, 11.0))
        return lambda load: (base_w + slope_w * load) / (1 + 0.25 * device.idx)

    def users(self, gpu):
        return [work for work in self.works if gpu in work.gpus]

    def share(self, work, number):
        """A rank's share of a domain's power: by CPU time, by memory, by use of the GPU."""
        device = self.devices[number]
        if device.kind == "dram":
            return Steps([(work.start_s, work.end_s, RANK_MEMORY / MACHINE_MEMORY)])
        if device.kind != "gpu":
            return self._join([work.cores, self.busy], lambda own, all_: own / all_)
        if device.idx not in work.gpus or device.idx not in work.visible:
            return Steps([])
        users = [w.use for w in self.users(device.idx)]
        return self._join([work.use, *users], lambda own, *all_: own / sum(all_) if sum(all_) else 0.0)

    def attributed(self, work, number):
        """Its share of the power, in W."""
        return self._join([self.power[number], self.share(work, number)], lambda watts, share: watts * share)

    # ---- counters ----

    def counter_uj(self, number, time):
        """The hardware's count, without restarts."""
        period_s = (self.devices[number].period_ns or 1) / 1e9
        updated = math.floor(time / period_s + 1e-6) * period_s
        return self.offset_uj[number] + int(self.power[number].upto(updated) * 1e6)

    def wrap_at(self, number, time, range_uj):
        """Restarts the hardware's counter at that time."""
        self.offset_uj[number] = -int(self.power[number].upto(time) * 1e6) % range_uj

    # ---- readers ----

    def claim(self, number, takeover, overlap_s=0.0):
        """takeover: "elect": the first rank reads, when it ends the next one; "first": then nobody; "all": always
        all."""
        device = self.devices[number]
        waiting = sorted((w for w in self.works if w.is_recorded and (device.kind != "gpu" or device.idx in w.visible)),
                         key=lambda w: w.start_s)
        until = -math.inf
        while waiting:
            first = next((w for w in waiting if w.end_s > until), None)
            if first is None:
                break
            waiting = [w for w in waiting if w is not first]
            since = first.start_s if takeover == "all" else max(first.start_s, until - overlap_s)
            self._add_piece(number, first, since, until > first.start_s)
            if takeover == "first":
                break
            until = -math.inf if takeover == "all" else max(until, first.end_s)
            if takeover != "all":
                waiting.sort(key=lambda w: (w.start_s > until, w.start_s))

    def _add_piece(self, number, work, since, taken_over):
        ticks = [t for t in work.ticks(self.interval_s) if t >= since - 1e-9]
        if ticks:
            self.pieces[number].append(Piece(work, ticks[0], ticks[-1], taken_over))

    # ---- true values ----

    def covered(self, number):
        """(from, to) of a domain's known energy: with raw counter values also the time between two parts."""
        pieces = self.pieces[number]
        return (min(p.from_s for p in pieces), max(p.to_s for p in pieces)) if pieces else None

    def pauses(self):
        """(from, to) without a measured rank: restarts, and time between steps."""
        works, reached, found = sorted((w for w in self.works if w.is_recorded), key=lambda w: w.start_s), None, []
        for work in works:
            if reached is not None and work.start_s > reached:
                found.append((reached, work.start_s))
            reached = max(reached or -math.inf, work.end_s)
        return found

    def paused_j(self, number):
        """Energy of these times, between the first and the last reading: no rank's, and not the job's."""
        covered = self.covered(number)
        return math.fsum(self.power[number].between(max(a, covered[0]), min(b, covered[1])) for a, b in self.pauses())

    def energy_j(self, number):
        """While ranks ran, as far as it was measured."""
        covered = self.covered(number)
        return self.power[number].between(*covered) - self.paused_j(number) if covered else None

    def gaps(self, number):
        """(from, to) between parts, without a reader."""
        reached, found = None, []
        for piece in sorted(self.pieces[number], key=lambda p: p.from_s):
            if reached is not None and piece.from_s > reached:
                found.append((reached, piece.from_s))
            reached = max(reached or -math.inf, piece.to_s)
        return found

    def rank_j(self, work, number, intervals=None):
        """Energy of a domain attributed to a rank, while it was measured."""
        covered = self.covered(number)
        if covered is None:
            return None
        watts = self.attributed(work, number)
        inside = ((max(a, covered[0], work.start_s), min(b, covered[1], work.end_s))
                  for a, b in intervals or [(work.start_s, work.end_s)])
        return math.fsum(watts.between(a, b) for a, b in inside)
