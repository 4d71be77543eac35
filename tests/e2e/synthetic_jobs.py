#!/usr/bin/python3
"""Folders with the run files of a synthetic job of N nodes with M ranks each, for tests and demonstrations.

    synthetic_jobs.py WATTLE KIND FOLDER    makes one (WATTLE is the program, which creates the tables) and prints the true values
    synthetic_jobs.py WATTLE all FOLDER     makes all but the large one, a folder each
    synthetic_jobs.py                       lists the kinds

The numbers come from synthetic_job_data.py. `make` returns the true values: joules by node, domain, rank and block,
seconds by rank; for a node those while ranks ran on it, as far as its sensors were read. Pids are equal on all nodes,
every node's clock began at another time, and the first rank of a node reads its sensors, unless a kind differs.
"""
import dataclasses
import json
import math
import pathlib
import shutil
import sys

import synthetic_runs
from synthetic_job_files import Recording, block_name, template_of, write
from synthetic_job_data import COMPUTE, SETUP, STEP, WAIT, Machine, Work
from synthetic_runs import HOSTILE
from synthetic_data import Device

CPU_RANGE_UJ = 262_143_328_850


@dataclasses.dataclass
class Job:
    what: str
    nodes: int = 2
    per_node: int = 4             # ranks
    gpus: int = 4                 # of a node
    gpus_each: int = 1            # that a rank computes on; with fewer GPUs than ranks they share
    see_all: bool = False         # GPUs of its node visible to every rank, not only its own
    blind: bool = False           # a recorder sees only its own rank on a GPU
    steps: int = 20
    step_s: float = 0.5           # in which a rank computes
    slow: dict = dataclasses.field(default_factory=dict)   # rank: times as long
    dead: dict = dataclasses.field(default_factory=dict)   # rank: seconds until it and its recorder are killed
    missing: tuple = ()           # ranks that are not measured
    restart_s: float | None = None  # time at which all ranks are restarted
    pause_s: float = 2.0          # pause before that
    cut_off: tuple = ()           # ranks killed with their recorders then, and restarted with the others
    scheduler_steps: int = 1      # one after the other
    takeover: str = "elect"       # synthetic_job_data.Machine.claim
    overlap_s: float = 0.0        # time for which two read at once in a takeover
    wrap_in_gap: bool = False     # the counter restarts between two readers
    range_uj: int = CPU_RANGE_UJ
    one_machine: bool = False     # the nodes are namespaces on one kernel with one /sys
    clock_error_s: tuple = ()     # of each node's wall clock
    has_sensors: bool = True
    names: list | None = None     # replaces the names of blocks, nodes, the job and its user
    id: str | None = "4242"
    has_place: bool = True        # False: its runs have neither rank nor node
    launcher: str = "slurm"
    has_outer: bool = False       # a recorder around the launcher reads the first node's sensors
    clutter: bool = False         # unrelated files in the folder: another job, a single run, a damaged file, a text
    interval_s: float = 0.1
    is_even: bool = False         # all ranks begin and end with the job
    times: int = 1                # number of repetitions, in succession
    host: str = "node"

    @property
    def world_size(self):
        return self.nodes * self.per_node

    def name(self, usual, number):
        return usual if self.names is None else self.names[number % len(self.names)]

    def node_name(self, node):
        return self.name(f"{self.host}-{node + 1:02}", node)


KINDS = {
    "plain": Job("two nodes with four ranks and GPUs each"),
    "takeover": Job("two ranks that read a node's sensors are killed, another one takes over", dead={0: 4.0, 1: 7.0}),
    "wraps": Job("a reader is killed, and the counters wrap before another one takes over", dead={0: 4.0, 1: 7.0},
                 wrap_in_gap=True,
                 range_uj=1_500_000_000),
    "many_wraps": Job("counters that wrap every few seconds", range_uj=700_000_000, dead={0: 4.03}),
    "overlap": Job("two ranks read at the same time for three seconds", dead={0: 6.0}, overlap_s=3.0),
    "all_read": Job("every rank reads all sensors", takeover="all", see_all=True),
    "all_visible": Job("all GPUs visible to every rank, one rank reads them", see_all=True),
    "shared_gpus": Job("two ranks on one GPU", gpus=2, see_all=True),
    "blind": Job("four ranks on one GPU, each sees only itself there", nodes=1, gpus=1, blind=True),
    "restart": Job("all ranks restart after five seconds (elastic)", restart_s=5.0, launcher="torchrun"),
    "requeued": Job("a rank is killed, and all restart minutes later", restart_s=5.0, pause_s=240.0,
                    cut_off=(4,)),
    "dead": Job("the only rank of a node is killed", per_node=1, gpus=1, dead={1: 5.0}),
    "unmeasured": Job("the rank that reads is killed and no other one takes over", dead={0: 5.0}, takeover="first",
                      see_all=True),
    "missing": Job("two of eight ranks left no run", missing=(5, 6)),
    "skewed": Job("wall clocks differ by seconds", clock_error_s=(0.0, 3.2, -1.7), nodes=3, per_node=2, gpus=2),
    "imbalanced": Job("one rank computes 50 % longer, three others 5 to 20 %", nodes=4, per_node=2,
                      gpus=2, slow={5: 1.5, 0: 1.1, 1: 1.2, 7: 1.05}, steps=24),
    "virtual_nodes": Job("two virtual nodes on one machine with one set of sensors", one_machine=True, see_all=True),
    "short_blocks": Job("blocks of 20 to 60 ms while other ranks compute", gpus=0, step_s=0.02, steps=200,
                        slow={1: 2.0, 2: 1.5, 5: 3.0}),
    "no_gpu": Job("three nodes without GPUs", nodes=3, per_node=2, gpus=0, launcher="openmpi"),
    "no_energy": Job("machines without energy sensors", has_sensors=False, gpus=0),
    "no_id": Job("launcher without a job id", id=None, launcher="environment", per_node=2, gpus=2),
    "nested": Job("a recorder around mpirun, and one in each rank", launcher="openmpi", has_outer=True,
                  see_all=True),
    "one_rank": Job("a job of one rank", nodes=1, per_node=1, gpus=1),
    "two_steps": Job("two consecutive steps of one job", per_node=2, gpus=2, scheduler_steps=2, steps=10),
    "clutter": Job("unrelated files in the folder", per_node=2, gpus=2, clutter=True, steps=10),
    "hostile": Job("hostile names", names=HOSTILE, per_node=2, gpus=2, id=HOSTILE[0]),
    "wide": Job("sixteen nodes", nodes=16, per_node=4, steps=8, slow={17: 1.4, 40: 1.2}),
    "large": Job("64 ranks, an hour at 10 Hz", nodes=8, per_node=8, gpus=8, steps=30, step_s=1.642, is_even=True,
                 times=60, slow={rank: 1 + 0.003 * rank for rank in range(64)}),
}
LONG = {"large"}


# ---- activity over time ----

def round_of(job, rank, begin_s):
    """The blocks of a rank over one launch; no rank leaves a step before the slowest arrives."""
    slowest = max([1.0, *job.slow.values()])
    own_s, step_s = job.step_s * job.slow.get(rank, 1.0), job.step_s * slowest + 0.02
    spans, at = [(SETUP, begin_s, begin_s + 0.5, None)], begin_s + 0.5
    for _ in range(job.steps):
        around = len(spans)
        spans.append((STEP, at, at + step_s, None))
        spans.append((COMPUTE, at, at + own_s, around))
        spans.append((WAIT, at + own_s, at + step_s, around))
        at += step_s
    return spans, at


def work_of(job, rank, begin_s, restart=0, step=0):
    local_rank = rank % job.per_node
    spans, end_s = round_of(job, rank, begin_s + 0.3)
    each, gpus = job.gpus_each, tuple(range(job.gpus))
    own = tuple(gpus[(local_rank * each + k) % job.gpus] for k in range(each)) if job.gpus else ()
    node, has_step = rank // job.per_node, job.launcher == "slurm" and job.id is not None
    lead_s, tail_s = (0.0, 0.0) if job.is_even else (0.013 * (local_rank + 1) + 0.002 * node, 0.08 * local_rank)
    work = dict(rank=rank, local_rank=local_rank, node=node, start_s=begin_s + lead_s, end_s=end_s + tail_s,
                spans=spans, gpus=own, visible=gpus if job.see_all else own, restart=restart,
                is_recorded=rank not in job.missing, step=str(step) if has_step else None)
    if job.is_even:  # whole rounds of samples, which can be repeated
        work["end_s"] = begin_s + math.floor((end_s - begin_s) / job.interval_s) * job.interval_s
    if rank in job.dead:
        work.update(end_s=job.dead[rank] + 0.0371, is_killed=True)
    return Work(**work)


def works_of(job):
    works, begin_s = [], 0.0
    for step in range(job.scheduler_steps):
        works += [work_of(job, rank, begin_s, step=step) for rank in range(job.world_size)]
        begin_s = max(w.end_s for w in works) + 1.0
    if job.has_outer:
        works.append(Work(-1, 0, 0, 0.0, begin_s, [], (), tuple(range(job.gpus)), is_outer=True))
    if job.restart_s is None:
        return works
    first = [dataclasses.replace(w, end_s=job.restart_s + 0.01 * w.local_rank, exit_code=1 if w.rank == 1 else 143,
                                 is_killed=w.rank in job.cut_off) for w in works]
    return first + [work_of(job, rank, job.restart_s + job.pause_s, restart=1) for rank in range(job.world_size)]


def devices_of(job, node):
    if not job.has_sensors:
        return []
    rapl = {"resolution_uj": 61, "period_ns": 1_000_000}
    gpus = [dataclasses.replace(synthetic_runs.gpu(i), uuid=f"GPU-6d5f1c9e-0000-4000-8{node:03x}-{i:012x}")
            for i in range(job.gpus)]
    return [Device("package", "package-0", "intel-rapl:0", "powercap", **rapl),
            Device("dram", "dram-0", "intel-rapl:0:0", "powercap", **rapl), *gpus]


def machines_of(job, works):
    length_s = max(w.end_s for w in works)
    groups = [tuple(range(job.nodes))] if job.one_machine else [(node,) for node in range(job.nodes)]
    machines = []
    for group in groups:
        own = [w for w in works if w.node in group]
        machine = Machine(group, devices_of(job, group[0]), own, length_s, job.interval_s)
        for number, device in enumerate(machine.devices):
            machine.claim(number, job.takeover, job.overlap_s)
            gaps = machine.gaps(number)
            if job.wrap_in_gap and gaps and device.kind != "gpu":
                machine.wrap_at(number, sum(gaps[0]) / 2, job.range_uj)
        machines.append(machine)
    return machines


# ---- the folder ----

def write_clutter(wattle, folder):
    synthetic_runs.make(wattle, folder / "lone.sqlite", "short")
    make(wattle, folder / "other", dataclasses.replace(KINDS["one_rank"], id="999", steps=3))
    shutil.move(folder / "other" / "job-r000.sqlite", folder / "other-job.sqlite")
    (folder / "other").rmdir()
    whole = (folder / "lone.sqlite").read_bytes()
    (folder / "damaged.sqlite").write_bytes(whole[:100] + b"\xff" * 8_000)
    (folder / "slurm-4242.out").write_text("step 1\nstep 2\n")


# ---- true values ----

def added(values):
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def expected_of_rank(works, machine, times):
    own = sorted(works, key=lambda w: (w.start_s, w.restart))
    numbers = range(len(machine.devices))
    return {"node": own[0].node, "runs": len(own), "complete": not own[-1].is_killed, "exit_code": own[-1].exit_code,
            "duration_s": added(w.end_s - w.start_s for w in own), "start_s": own[0].start_s, "end_s": own[-1].end_s,
            "cpu_s": added(w.cores.upto(w.end_s) for w in own),
            "waiting_s": added(w.time_in(WAIT) for w in own) * times,
            "energy_j": added(machine.rank_j(w, i) for w in own for i in numbers)}


def expected_of_block(works, machine_of, name, times):
    by_rank = {}
    for work in works:
        entry = by_rank.setdefault(work.rank, {"calls": 0, "time_s": 0.0, "energy_j": 0.0})
        calls, machine = work.calls(name), machine_of[work.node]
        entry["calls"] += len(calls) * times
        entry["time_s"] += work.time_in(name) * times
        entry["energy_j"] += added(machine.rank_j(work, i, calls) for i in range(len(machine.devices))) or 0.0
    return by_rank


def expected_of_domains(machine):
    numbers = range(len(machine.devices))
    return {machine.devices[i].name: {"energy_j": machine.energy_j(i), "covered_s": machine.covered(i),
                                      "gaps_s": [b - a for a, b in machine.gaps(i)],
                                      "readers": [p.work.rank for p in machine.pieces[i]]} for i in numbers}


def scale(expected_values, factor, keys=("energy_j", "total_j", "cpu_s")):
    """The same with the energies and times of all rounds."""
    if isinstance(expected_values, dict):
        return {key: value * factor if key in keys and value is not None else scale(value, factor)
                for key, value in expected_values.items()}
    return expected_values


def expected_of(job, machines, works):
    machine_of = {node: machine for machine in machines for node in machine.nodes}
    recorded = [w for w in works if w.is_recorded and not w.is_outer]
    ranks = {rank: expected_of_rank([w for w in recorded if w.rank == rank], machine_of[rank // job.per_node],
                                    job.times)
             for rank in sorted({w.rank for w in recorded})}
    nodes = {job.node_name(machine.nodes[0]): expected_of_domains(machine) for machine in machines}
    totals = {name: added(d["energy_j"] for d in domains.values()) for name, domains in nodes.items()}
    expected_values = {"job_id": job.id, "world_size": job.world_size, "n_ranks": len(ranks),
             "n_files": len(recorded) + job.has_outer, "total_j": added(totals.values()), "ranks": ranks,
             "nodes": {name: {"energy_j": totals[name], "domains": domains} for name, domains in nodes.items()},
             "blocks": {block_name(job, name): expected_of_block(recorded, machine_of, name, job.times)
                        for name in (SETUP, STEP, COMPUTE, WAIT)}}
    if job.times == 1:
        return expected_values
    n = len(works[0].ticks(job.interval_s))
    expected_values = scale(expected_values,
                            # the interval between two rounds is as long as any other
                            (job.times - 1) * n / (n - 1) + 1)
    for rank in expected_values["ranks"].values():
        rank["duration_s"] = (n * job.times - 1) * job.interval_s
        rank["end_s"] = rank["start_s"] + rank["duration_s"]
    return expected_values


def make(wattle, folder, job):
    """Makes the folder of a job (or of the name of one) and returns its true values."""
    job, folder = KINDS[job] if isinstance(job, str) else job, pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    works = works_of(job)
    machines = machines_of(job, works)
    template = template_of(wattle, folder)
    for machine in machines:
        for work in (w for w in machine.works if w.is_recorded):
            recording = Recording(job, machine, work)
            write(template, folder / recording.file_name(), recording)
    template.unlink()
    if job.clutter:
        write_clutter(wattle, folder)
    return expected_of(job, machines, works)


def main(arguments):
    if len(arguments) != 3 or arguments[1] not in {*KINDS, "all"}:
        print(__doc__)
        for name, job in KINDS.items():
            print(f"    {name:14} {job.what}")
        return 2
    wattle, kind, folder = arguments
    if kind != "all":
        print(json.dumps(make(wattle, folder, kind), indent=1))
        return 0
    for name in KINDS:
        if name not in LONG:
            make(wattle, pathlib.Path(folder) / name, name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
