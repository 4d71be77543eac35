"""Activity of the program of a synthetic run at every instant; synthetic_runs.py writes the file.

A program sets up, then trains in epochs; an epoch is steps of load, forward, backward and optimizer, then a validation
and a checkpoint, during which the GPU is idle. Power follows the load, temperature follows power slowly, and clocks
fall at high temperature.
"""
import dataclasses
import json
import math

MAIN_PID = 4242
SETUP = 0.06  # of the run
EPOCHS = 6
TRAIN, VALIDATE = 0.82, 0.12  # of an epoch; the rest is the checkpoint
THERMAL, POWER_CAP, IDLE = 0x20, 0x4, 0x1  # NVML's reasons
BLOCKS = ["setup", "epoch", "step", "load", "forward", "backward", "optimizer", "validate", "checkpoint", "decode"]
GPU_COLUMNS = ["power_cap_mw", "utilization_percent", "target_utilization_percent", "others_utilization_percent",
               "memory_used_bytes", "main_memory_bytes", "target_memory_bytes", "others_memory_bytes",
               "target_processes", "others_processes", "sm_clock_mhz", "memory_clock_mhz", "throttle_reasons_bits"]
PARTS = [(3, 0.0, 0.18), (4, 0.18, 0.5), (5, 0.5, 0.9), (6, 0.9, 0.99)]  # of a step: block, from, to


@dataclasses.dataclass
class Device:
    kind: str
    name: str
    device: str
    source: str
    provenance: str = "measured"
    inside: str | None = None
    uuid: str | None = None
    idx: int = 0
    has_energy: bool = True
    resolution_uj: int | None = None
    period_ns: int | None = None
    relative_error: float | None = None
    memory_bytes: int | None = None

    def row(self, number):
        same = ("kind", "name", "uuid", "device", "inside", "idx", "source", "provenance", "resolution_uj",
                "relative_error")
        row = {key: getattr(self, key) for key in same}
        return {"id": number, **row, "has_energy": int(self.has_energy), "memory_total_bytes": self.memory_bytes,
                "update_period_ns": self.period_ns, "update_jitter_ns": self.period_ns and self.period_ns // 50}


@dataclasses.dataclass
class Plan:
    what: str
    devices: list
    n_samples: int
    interval_ns: int = 100_000_000
    steps: int = 60         # five spans each
    names: list | None = None  # replaces the names of blocks, processes and labels
    workers: int = 2        # threads with spans of their own
    segments: int = 1
    pause_s: float = 0.0    # between two of them
    is_killed: bool = False
    hole: bool = False      # unreadable from 0.45 to 0.55 of the run
    gpu_scale: float = 1.0
    cap_w: float = 700.0
    cores: int = 96
    times: int = 1          # number of repetitions, in succession
    run_id: str = "7e57ab1e-0000-4000-8000-000000000001"

    @property
    def length_s(self):
        return max(0, self.n_samples - self.segments) * self.interval_ns / 1e9

    @property
    def command(self):
        if self.names is None:
            return ["python3", "train.py", "--epochs", str(EPOCHS), "--batch-size", "256"]
        return ["python3", *(name for name in self.names if isinstance(name, str) and name)]

    def name(self, usual, number):
        return usual if self.names is None else self.names[number % len(self.names)]

    def block_name(self, block):
        return self.name(BLOCKS[block], block)


class SyntheticData:
    def __init__(self, plan, booted_ns, wall_ns):
        self.plan = plan
        self.booted_ns = booted_ns
        self.wall_ns = wall_ns
        self.step_s = plan.length_s * (1 - SETUP) * TRAIN / plan.steps if plan.steps else math.inf
        self.epoch_s = plan.length_s * (1 - SETUP) / EPOCHS or 1.0
        self.peak = int(plan.n_samples * 0.618)  # a single sample that every picture must show
        self.expected_values = {"n_samples": plan.n_samples, "n_spans": 0, "length_s": plan.length_s,
                      "peak_w": {}, "energy_j": {}}
        self.changes, self.states = [], {}  # events that follow from the samples of devices

    def expected_of_all(self):
        times, expected_values = self.plan.times, self.expected_values
        return {**expected_values, "n_samples": expected_values["n_samples"] * times,
                "n_spans": expected_values["n_spans"] * times,
                "length_s": expected_values["length_s"] + (times - 1) * self.plan.n_samples
                * self.plan.interval_ns / 1e9,
                "energy_j": {name: energy_j * times for name, energy_j in expected_values["energy_j"].items()}}

    # ---- time ----

    def ticks(self):
        """(number, segment, t_ns, seconds of measured time) of every sample."""
        plan = self.plan
        each = -(-plan.n_samples // plan.segments) if plan.n_samples else 0
        t_ns, measured_ns = self.booted_ns, 0
        for number in range(plan.n_samples):
            if number > 0:
                if number % each == 0:
                    t_ns += int(plan.pause_s * 1e9)
                else:
                    t_ns += plan.interval_ns
                    measured_ns += plan.interval_ns
            yield number, number // each, t_ns, measured_ns / 1e9

    def segment_s(self):
        plan = self.plan
        return (-(-plan.n_samples // plan.segments) - 1) * plan.interval_ns / 1e9 if plan.segments > 1 else math.inf

    def t_ns(self, at_s):
        """The clock at a measured time: pauses between segments are skipped."""
        segment = min(int(at_s / self.segment_s()), self.plan.segments - 1)
        return self.booted_ns + int((at_s + segment * self.plan.pause_s) * 1e9)

    def span_end_ns(self, from_s, to_s):
        """No span outlives its segment, because its process does not."""
        segment = min(int(from_s / self.segment_s()), self.plan.segments - 1)
        to_s = min(to_s, self.plan.length_s, (segment + 1) * self.segment_s())
        return self.booted_ns + int((to_s + segment * self.plan.pause_s) * 1e9)

    def phase(self, at_s):
        """(kind of work, position in it from 0 to 1) at a measured time."""
        setup_s = self.plan.length_s * SETUP
        if at_s < setup_s:
            return "setup", at_s / setup_s
        part = ((at_s - setup_s) / self.epoch_s) % 1.0
        if part < TRAIN:
            return "train", ((part * self.epoch_s) / self.step_s) % 1.0
        if part < TRAIN + VALIDATE:
            return "validate", (part - TRAIN) / VALIDATE
        return "checkpoint", (part - TRAIN - VALIDATE) / (1 - TRAIN - VALIDATE)

    def load(self, number, at_s):
        """(cores of the target, use of the GPU from 0 to 1)."""
        kind, part = self.phase(at_s)
        wobble = 0.5 + 0.5 * math.sin(number * 12.9898) * math.sin(number * 0.37)
        if kind == "setup":
            return 1.0 + 6.0 * part * wobble, 0.02
        if kind == "train":
            if part < 0.18:
                return 12.0 + 4.0 * wobble, 0.25
            return 4.0 + 1.5 * wobble, 0.88 + 0.10 * wobble
        if kind == "validate":
            return 8.0 + 2.0 * wobble, 0.55 + 0.08 * wobble
        return 1.2 + 0.3 * wobble, 0.03

    def in_hole(self, number):
        n = self.plan.n_samples
        return self.plan.hole and 0.45 * n <= number < 0.55 * n

    # ---- rows ----

    def samples(self):
        plan = self.plan
        dt_ns, last_segment = plan.interval_ns, -1
        busy = idle = main = others = own = 0
        for number, segment, t_ns, at_s in self.ticks():
            cores, _ = self.load(number, at_s)
            if segment != last_segment:
                last_segment, busy, idle, main, others, own = segment, 0, 0, 0, 0, 0
            else:
                own += 180_000
                main += int(min(cores, 1.0) * dt_ns)
                others += int(max(cores - 1.0, 0.0) * dt_ns)
                busy += int((cores + 1.5) * dt_ns) + 180_000
                idle += int((plan.cores - cores - 1.5) * dt_ns)
            grown = min(1.0, 3.0 * at_s / plan.length_s) if plan.length_s else 1.0
            row = {"t_ns": t_ns, "self_cpu_ns": own, "system_cpu_busy_ns": busy, "system_cpu_idle_ns": idle,
                   "main_cpu_ns": main, "descendants_cpu_ns": others,
                   "system_memory_bytes": int(38e9 + 21e9 * grown), "self_rss_bytes": 5_100_000,
                   "main_rss_bytes": int(2e9 + 14e9 * grown), "descendants_rss_bytes": int(6e9 * grown + 2e8 * cores),
                   "main_threads": 34, "descendants_threads": 8, "processes": 1 + min(8, int(cores)),
                   "main_pss_bytes": None, "descendants_pss_bytes": None}
            if number % 10 == 0:
                row["main_pss_bytes"] = int(1.9e9 + 13.8e9 * grown)
                row["descendants_pss_bytes"] = int(4e9 * grown)
            if self.in_hole(number):
                row.update((key, None) for key in row if key != "t_ns")
            yield row

    def power_w(self, device, number, cores, use):
        """The device's power, and the resulting other metrics."""
        if device.kind == "gpu":
            skew = 1.0 - 0.013 * device.idx
            watts = min(self.plan.cap_w, 72 + 600 * self.plan.gpu_scale * use * skew)
            return watts * 1.12 if number == self.peak else watts
        if device.kind == "dram":
            return 9 + 0.9 * cores
        if device.kind == "core":
            return 12 + 5.5 * cores
        if device.kind in ("psys", "node", "wall"):
            return 110 + 11.0 * cores
        return (58 + 7.5 * cores) / (1 + device.idx) * (1.25 if number == self.peak else 1.0)

    def device_samples(self):
        devices = self.plan.devices
        energy_uj, temperature_c = [0] * len(devices), [34.0] * len(devices)
        dt_s, last_segment = self.plan.interval_ns / 1e9, -1
        for number, segment, t_ns, at_s in self.ticks():
            cores, use = self.load(number, at_s)
            is_first = segment != last_segment
            last_segment = segment
            for i, device in enumerate(devices):
                watts = self.power_w(device, number, cores, use)
                if is_first:
                    energy_uj[i] = 0
                else:
                    energy_uj[i] += int(watts * dt_s * 1e6)
                    self.note(device, watts, dt_s)
                goal = 30 + watts * (0.085 if device.kind == "gpu" else 0.16)
                temperature_c[i] += (goal - temperature_c[i]) * min(1.0, dt_s / 12)
                row = self.device_row(device, i, t_ns, watts, use, energy_uj[i], temperature_c[i], at_s)
                if self.in_hole(number):
                    row.update((key, None) for key in row if key not in ("t_ns", "device"))
                self.note_changes(device, row)
                yield row

    def note_changes(self, device, row):
        """Events as the recorder writes them: throttling begins and ends, a device becomes unreadable and returns."""
        bits = row["throttle_reasons_bits"] or 0
        gone = all(value is None for key, value in row.items() if key not in ("t_ns", "device"))
        held, was_gone = self.states.get(device.name, (0, False))
        now = held if gone else bits & (THERMAL | POWER_CAP)
        told = []
        if now and now != held:
            told.append(("throttle", f"clocks held back: {'thermal slowdown' if now & THERMAL else 'power limit'}"))
        elif held and not now:
            told.append(("throttle-end", "clocks are free again"))
        if gone != was_gone:
            told.append(("gap-end", "the energy counter can be read again") if was_gone else
                        ("gap", "the energy counter can't be read"))
        self.states[device.name] = (now, gone)
        self.changes += [{"t_ns": row["t_ns"], "kind": kind, "text": f"{device.name}: {text}"} for kind, text in told]

    def note(self, device, watts, dt_s):
        peaks, sums = self.expected_values["peak_w"], self.expected_values["energy_j"]
        peaks[device.name] = max(peaks.get(device.name, 0.0), watts)
        sums[device.name] = sums.get(device.name, 0.0) + watts * dt_s

    def device_row(self, device, number, t_ns, watts, use, energy_uj, temperature_c, at_s):
        is_gpu = device.kind == "gpu"
        row = {"t_ns": t_ns, "device": number, "energy_uj": energy_uj if device.has_energy else None,
               "power_mw": int(watts * 1e3) if is_gpu or not device.has_energy else None,
               "temperature_c": int(temperature_c) if is_gpu or device.kind == "package" else None}
        row.update(dict.fromkeys(GPU_COLUMNS))
        if not is_gpu:
            return row
        filled = min(1.0, 0.05 + 4.0 * at_s / self.plan.length_s) if self.plan.length_s else 0.05
        used_bytes, others_bytes = int(64e9 * filled), 600_000_000
        is_hot = temperature_c > 78
        bits = THERMAL if is_hot else POWER_CAP if watts >= self.plan.cap_w else IDLE if use < 0.05 else 0
        row.update(power_cap_mw=int(self.plan.cap_w * 1e3), throttle_reasons_bits=bits,
                   utilization_percent=int(100 * use), target_utilization_percent=int(96 * use),
                   others_utilization_percent=int(2 * use),
                   memory_used_bytes=used_bytes + others_bytes, main_memory_bytes=used_bytes,
                   target_memory_bytes=used_bytes, others_memory_bytes=others_bytes, target_processes=1,
                   others_processes=1, sm_clock_mhz=345 if use < 0.05 else 1600 if is_hot else 1980,
                   memory_clock_mhz=2619)
        return row

    def processes(self):
        if self.plan.n_samples == 0:
            return
        end_ns = None if self.plan.is_killed else self.t_ns(self.plan.length_s)
        for i in range(5):
            is_main = i == 0
            yield {"pid": MAIN_PID + i, "start_ns": self.booted_ns - 5_000 + i * 1_000, "end_ns": end_ns,
                   "ppid": 4000 if is_main else MAIN_PID, "is_main": int(is_main), "sampled": 1,
                   "command": self.plan.name("python3 train.py" if is_main else "pt_data_worker", i),
                   "cpu_ns": int((9e8 if is_main else 8e8) * self.plan.length_s),
                   "max_rss_bytes": 16_000_000_000 if is_main else 1_500_000_000}

    # ---- spans ----

    def span(self, block, from_s, to_s, parent=None, tid=MAIN_PID, kind="nested", pid=MAIN_PID, name=None):
        self.expected_values["n_spans"] += 1
        is_open = self.plan.is_killed and to_s > self.plan.length_s * 0.999
        return {"id": self.expected_values["n_spans"], "parent": parent, "pid": pid, "tid": tid,
                "name": self.plan.block_name(block) if name is None else name, "begin_ns": self.t_ns(from_s),
                "end_ns": None if is_open else self.span_end_ns(from_s, to_s), "kind": kind,
                "close": "open" if is_open else "ended"}

    def spans(self):
        if self.plan.steps == 0 or self.plan.length_s == 0:
            return
        yield self.span(0, 0.0, self.plan.length_s * SETUP)
        for epoch in range(EPOCHS):
            yield from self.epoch_spans(epoch)
        yield from self.other_names()

    def epoch_spans(self, epoch):
        begin = self.plan.length_s * SETUP + epoch * self.epoch_s
        outer = self.span(1, begin, begin + self.epoch_s * 0.9999)
        yield outer
        steps = self.plan.steps // EPOCHS or 1
        step_s = self.epoch_s * TRAIN / steps
        for i in range(steps):
            yield from self.step_spans(begin + i * step_s, step_s, outer["id"])
        at = begin + self.epoch_s * TRAIN
        yield self.span(7, at, at + self.epoch_s * VALIDATE * 0.99, outer["id"])
        at += self.epoch_s * VALIDATE
        yield self.span(8, at, begin + self.epoch_s * 0.999, outer["id"])
        # Written by another thread while the next epoch begins: a range, which overlaps.
        yield self.span(8, at, min(at + self.epoch_s * 0.15, self.plan.length_s), None, 0, "range")
        for worker in range(self.plan.workers):
            length = self.epoch_s * TRAIN / (4 + worker % 3)
            yield from (self.span(9, begin + i * length, begin + (i + 0.7) * length, None, MAIN_PID + 100 + worker)
                        for i in range(4 + worker % 3))

    def step_spans(self, begin, step_s, epoch):
        step = self.span(2, begin, begin + step_s * 0.995, epoch)
        yield step
        for block, start, end in PARTS:
            yield self.span(block, begin + start * step_s, begin + end * step_s, step["id"])

    def other_names(self):
        """With custom names each of them is a block, in a thread of its own."""
        for i, name in enumerate(self.plan.names or []):
            at = self.plan.length_s * i / len(self.plan.names)
            yield self.span(9, at, at + self.plan.length_s / 40, None, MAIN_PID + 50, name=name)

    def user_metrics(self):
        reports = min(self.plan.steps, 2_000)
        for i in range(reports):
            part = SETUP + (1 - SETUP) * i / reports
            row = {"t_ns": self.t_ns(self.plan.length_s * part), "pid": MAIN_PID, "tid": MAIN_PID}
            yield {**row, "name": self.plan.name("loss", 0), "value": 0.4 + 6.2 * math.exp(-3.0 * part)}
            yield {**row, "name": self.plan.name("tokens", 1), "value": 4096}

    def events(self):
        length_s, names = self.plan.length_s, self.plan.names or []
        if length_s == 0:
            return
        for i, text in enumerate(names):
            yield {"t_ns": self.t_ns(length_s * i / len(names)), "kind": "mark" if i % 2 else "note", "text": text}
        yield from self.changes
        yield {"t_ns": self.t_ns(length_s * 0.5), "kind": "mark", "text": self.plan.name("learning rate halved", 0)}

    def segments(self):
        plan = self.plan
        ends = {}
        for _, segment, t_ns, _ in self.ticks():
            ends.setdefault(segment, [t_ns, t_ns])[1] = t_ns
        for number, (start_ns, end_ns) in (ends or {0: [self.booted_ns, self.booted_ns + 400_000]}).items():
            is_cut = plan.is_killed and number == plan.segments - 1
            figures = self.figures((end_ns - start_ns) / 1e9)
            yield {"id": number + 1, "start_ns": start_ns, "end_ns": None if is_cut else end_ns,
                   "wall_start_ns": self.wall_ns + start_ns - self.booted_ns, "shift_ns": 0, "boot_id": "made",
                   "host": plan.name("node-17", 4), "pid": MAIN_PID, "command": self.command_json(),
                   "complete": int(not is_cut), **(dict.fromkeys(figures) if is_cut else figures)}

    def figures(self, length_s):
        """Totals that a recorder writes at the end of a segment, unless it is killed."""
        return {"exit_code": 0, "cpu_method": "rusage", "samples": self.plan.n_samples // self.plan.segments,
                "lost_samples": 0, "main_cpu_ns": int(9e8 * length_s), "descendants_cpu_ns": int(3.5e9 * length_s),
                "processes_seen": 5, "processes_sampled": 5, "peak_rss_bytes": 24_000_000_000,
                "main_peak_rss_bytes": 16_000_000_000, "read_bytes": int(1.2e9 * length_s),
                "written_bytes": int(5e7 * length_s), "self_cpu_ns": int(1.8e6 * length_s),
                "self_max_rss_bytes": 5_100_000, "self_wakeups": int(10 * length_s)}

    def command_json(self):
        return json.dumps(self.plan.command)
