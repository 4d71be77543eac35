"""The run files of a synthetic job: the recording of one rank as rows of each table (see synthetic_jobs.py)."""
import json
import shutil
import sqlite3
import types

import synthetic_runs
from synthetic_job_data import COMPUTE, MACHINE_MEMORY, RANK_MEMORY, SETUP, STEP, WAIT
from synthetic_runs import WALL_NS

MONO_NS = [5_000 * 10**9, 777 * 10**9, 1_234_567 * 10**9, 42 * 10**9]  # start of the job, by each node's own clock
CORES = 96


class Recording:
    """One recording of a rank as rows of a run file."""

    def __init__(self, job, machine, work):
        self.job, self.machine, self.work = job, machine, work
        self.mono_ns = MONO_NS[machine.nodes[0] % len(MONO_NS)]
        errors = job.clock_error_s or (0.0,)
        self.wall_ns = WALL_NS + int(errors[work.node % len(errors)] * 1e9)
        self.pid = 4242 + work.local_rank + (work.node * job.per_node if job.one_machine else 0)
        if work.is_outer:
            self.pid = 4200  # the launcher's
        self.ticks = work.ticks(job.interval_s)
        self.numbers = [i for i, device in enumerate(machine.devices)
                        if device.kind != "gpu" or device.idx in work.visible]

    def t_ns(self, time):
        return self.mono_ns + round(time * 1e9)

    def facts(self):
        job, work, machine = self.job, self.work, self.machine
        boot = f"b0070000-0000-4000-8000-{machine.nodes[0]:012x}"
        facts = {"complete": "false" if work.is_killed else "true", "host": job.node_name(work.node),
                 "id": f"7e57ab1e-{work.restart:04x}-4{int(work.step or 0):03x}-8{work.node:03x}-"
                       f"{work.rank % 2**48:012x}",
                 "interval_ns": int(job.interval_s * 1e9),
                 "command": json.dumps(["./solver", "--steps", str(job.steps)]),
                 "anchor_mono_ns": self.t_ns(work.start_s), "anchor_wall_ns": self.wall_ns + round(work.start_s * 1e9),
                 "boot_id": boot, "machine": boot, "memory_total_bytes": 540_000_000_000, "n_cores": CORES,
                 "expected_cores": CORES, "n_gpus_system": job.gpus, "user": job.name("ada", 4), "step": STEP}
        place = {"job_id": job.id, "job_step": work.step, "job_name": job.name("solver", 2),
                 "job_user": job.name("ada", 4),
                 "job_cluster": job.name("atlas", 5), "job_launcher": job.launcher, "rank": work.rank,
                 "local_rank": work.local_rank, "world_size": job.world_size, "local_size": job.per_node,
                 "n_nodes": job.nodes, "node": job.node_name(work.node), "restart": work.restart or None}
        if work.is_outer:
            place.update(dict.fromkeys(("rank", "local_rank", "world_size", "local_size", "job_launcher")))
        facts.update({key: value for key, value in place.items() if value is not None} if job.has_place else {})
        return facts

    def devices(self):
        for number in self.numbers:
            device = self.machine.devices[number]
            yield {**device.row(number), "energy_range_uj": None if device.kind == "gpu" else self.job.range_uj}

    def samples(self):
        work, busy, interval_ns = self.work, self.machine.busy, int(self.job.interval_s * 1e9)
        begin = self.ticks[0]
        for i, at in enumerate(self.ticks):
            own_s, busy_s = work.cores.between(begin, at), busy.between(begin, at)
            threads_s = min(own_s, at - begin)
            yield {"t_ns": self.t_ns(at), "self_cpu_ns": i * interval_ns // 2_000,
                   "system_cpu_busy_ns": int(busy_s * 1e9), "main_cpu_ns": int(threads_s * 1e9),
                   "system_cpu_idle_ns": int(((at - begin) * CORES - busy_s) * 1e9),
                   "descendants_cpu_ns": int((own_s - threads_s) * 1e9), "system_memory_bytes": MACHINE_MEMORY,
                   "self_rss_bytes": 0, "main_rss_bytes": RANK_MEMORY, "descendants_rss_bytes": 0,
                   "main_pss_bytes": RANK_MEMORY if i % 10 == 0 else None,
                   "descendants_pss_bytes": 0 if i % 10 == 0 else None,
                   "main_threads": 8, "descendants_threads": 0, "processes": 1}

    def device_samples(self):
        for number in self.numbers:
            piece = next((p for p in self.machine.pieces[number] if p.work is self.work), None)
            is_gpu = self.machine.devices[number].kind == "gpu"
            base_uj = self.machine.counter_uj(number, piece.from_s) if piece else 0
            for at in self.ticks:
                is_held = piece is not None and piece.from_s <= at <= piece.to_s
                if is_held or is_gpu:
                    yield self.device_row(number, at, is_held, base_uj, is_held and at == piece.from_s)

    def device_row(self, number, at, is_held, base_uj, is_first):
        """A rank that does not read a GPU still reports its own processes on it."""
        machine, device = self.machine, self.machine.devices[number]
        now_uj = machine.counter_uj(number, at) if is_held else 0
        row = {"t_ns": self.t_ns(at), "device": number, "energy_uj": now_uj - base_uj if is_held else None,
               "energy_raw_uj": now_uj % (self.job.range_uj if device.kind != "gpu" else 2**63) if is_first else None,
               "temperature_c": 52 if is_held and device.kind in ("gpu", "package") else None, "power_mw": None,
               "utilization_percent": None, "target_utilization_percent": None, "others_utilization_percent": None,
               "target_memory_bytes": None, "target_processes": None, "others_processes": None, "sm_clock_mhz": None}
        if device.kind == "gpu":
            users = machine.users(device.idx)
            mine = users if self.work.is_outer else [w for w in users if w is self.work]
            users = mine if self.job.blind else users
            own, all_ = sum(w.use.at(at) for w in mine), sum(w.use.at(at) for w in users)
            row.update(power_mw=int(machine.power[number].at(at) * 1e3) if is_held else None,
                       utilization_percent=round(100 * all_) if is_held else None,
                       target_utilization_percent=round(100 * own),
                       others_utilization_percent=round(100 * (all_ - own)),
                       target_memory_bytes=20_000_000_000 * len(mine),
                       target_processes=len(mine), others_processes=len(users) - len(mine),
                       sm_clock_mhz=1980 if is_held else None)
        return row

    def processes(self):
        """Its program, and for outer recorders theirs: descendants of a launcher are the launcher's too."""
        inner = [w for w in self.machine.works if not w.is_outer
                 and w.node == self.work.node] if self.work.is_outer else []
        for work in [self.work, *inner]:
            is_main = work is self.work
            yield {"pid": self.pid if is_main else 4242 + work.local_rank, "ppid": 4000 if is_main else self.pid,
                   "start_ns": self.t_ns(work.start_s) - 5_000, "is_main": int(is_main), "sampled": 1,
                   "command": "solver",
                   "end_ns": None if work.is_killed else self.t_ns(work.end_s),
                   "cpu_ns": int(work.cores.upto(work.end_s) * 1e9), "max_rss_bytes": RANK_MEMORY}

    def spans(self):
        for i, (name, begin, end, parent) in enumerate(self.work.spans):
            is_open = self.work.is_killed and end > self.work.end_s
            yield {"id": i + 1, "parent": None if parent is None else parent + 1, "pid": self.pid, "tid": self.pid,
                   "name": block_name(self.job, name), "begin_ns": self.t_ns(begin), "kind": "nested",
                   "end_ns": None if is_open else self.t_ns(min(end, self.work.end_s)),
                   "close": "open" if is_open else "ended"}

    def events(self):
        """As the recorder reports who reads from which time on."""
        for number in self.numbers:
            name = self.machine.devices[number].name
            pieces = sorted(self.machine.pieces[number], key=lambda p: p.from_s)
            own = next((p for p in pieces if p.work is self.work), None)
            reader = next((p.work for p in reversed(pieces) if p.from_s <= self.ticks[0]), None)
            if own is None and reader is not None:
                rank = "the recorder around this one" if reader.is_outer else f"rank {reader.rank} of this job"
                text = f"{name}: read by pid {4242 + reader.local_rank}, {rank}"
                yield {"t_ns": self.t_ns(self.ticks[0]), "kind": "sensors", "text": text}
            if own is not None and own.taken_over:
                yield {"t_ns": self.t_ns(own.from_s), "kind": "sensors", "text": f"{name}: taken over"}

    def segments(self):
        work, is_cut = self.work, self.work.is_killed
        length_s = work.end_s - work.start_s
        cpu_ns, main_ns = int(work.cores.upto(work.end_s) * 1e9), int(length_s * 1e9)
        figures = {"exit_code": work.exit_code, "cpu_method": "rusage", "samples": len(self.ticks), "lost_samples": 0,
                   "main_cpu_ns": main_ns, "descendants_cpu_ns": cpu_ns - main_ns,
                   "processes_seen": 1, "processes_sampled": 1,
                   "peak_rss_bytes": RANK_MEMORY, "main_peak_rss_bytes": RANK_MEMORY, "read_bytes": 4096,
                   "written_bytes": int(1e6 * length_s), "self_cpu_ns": int(5e5 * length_s),
                   "self_max_rss_bytes": 5_100_000, "self_wakeups": int(10 * length_s)}
        yield {"id": 1, "start_ns": self.t_ns(work.start_s), "end_ns": None if is_cut else self.t_ns(work.end_s),
               "wall_start_ns": self.wall_ns + round(work.start_s * 1e9), "shift_ns": 0, "boot_id": "made",
               "host": self.job.node_name(work.node), "pid": self.pid, "complete": int(not is_cut),
               "command": json.dumps(["./solver"]), **(dict.fromkeys(figures) if is_cut else figures)}

    def file_name(self):
        step = f".{self.work.step}" if self.job.scheduler_steps > 1 else ""
        restart = f"-restart{self.work.restart}" if self.work.restart else ""
        return f"job{step}-r{self.work.rank:03}{restart}.sqlite" if not self.work.is_outer else "outer.sqlite"


def block_name(job, name):
    return job.name(name, [SETUP, COMPUTE, STEP].index(name) + 6) if name != WAIT else name


def write(template, path, recording):
    shutil.copy(template, path)
    file = sqlite3.connect(path)
    file.execute("pragma journal_mode = off")
    file.execute("pragma synchronous = off")
    file.executemany("insert or replace into run (key, value) values (cast(? as text), cast(? as text))",
                     recording.facts().items())
    rows_of = {"device": recording.devices, "sample": recording.samples, "device_sample": recording.device_samples,
               "process": recording.processes, "span": recording.spans, "event": recording.events,
               "segment": recording.segments}
    for table, rows in rows_of.items():
        columns = {name for _, name, *_ in file.execute(f"pragma table_info({table})")}
        synthetic_runs.insert(file, table, ({k: v for k, v in row.items() if k in columns} for row in rows()))
    if recording.job.times > 1:
        repeat(file, recording)
    file.commit()
    file.close()


def repeat(file, recording):
    job = recording.job
    synthetic_runs.repeat(file, types.SimpleNamespace(n_samples=len(recording.ticks),
                                                      interval_ns=int(job.interval_s * 1e9),
                                                      times=job.times, devices=recording.machine.devices))
    if any(name == "energy_raw_uj" for _, name, *_ in file.execute("pragma table_info(device_sample)")):
        file.execute("update device_sample set energy_raw_uj = null where t_ns > ?",
                     (recording.t_ns(recording.work.start_s),))


def template_of(wattle, folder):
    """An empty run file to copy: data of `wattle run` about this machine is removed."""
    path = folder / "template"
    file = synthetic_runs.tables(wattle, path)
    file.execute("delete from run")
    file.commit()
    file.close()
    return path
