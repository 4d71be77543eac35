#!/usr/bin/python3
"""Synthetic run files of any size and kind, for tests and demonstrations, without the waiting time.

    synthetic_runs.py WATTLE KIND FILE     makes one (WATTLE is the program, which creates the tables)
    synthetic_runs.py WATTLE all FOLDER    makes all but the large ones
    synthetic_runs.py                      lists the kinds

The numbers come from a story (synthetic_data.py): a program that trains a model in epochs of steps. Equal plans make
equal files, except for the tables themselves, which `wattle run` creates, so that they are always current. `make`
returns the true values of the file.
"""
import dataclasses
import functools
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import synthetic_data
from synthetic_data import Device, Plan

BOOTED_NS = 5_000 * 10**9
WALL_NS = 1_793_000_000 * 10**9

# Names of blocks, processes, labels and GPUs that must be shown as text.
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "a & b &lt;c&gt; &amp;",
    "<!-- --> ]]> <![CDATA[",
    "\u202egnp.exe\u202c then left to right",
    "مرحبا بالعالم",
    "עברית (שלום)",
    "🔥🦙👩‍👩‍👧‍👦 émoji",
    "two\nlines\ttab",
    "\x01\x1b[31mred\x1b[0m\x7f\x9b",
    "line\u2028separator\u2029paragraph",
    "__proto__",
    "constructor",
    "javascript:alert(1)",
    "{{7*7}} ${7*7} %s %n",
    "'; DROP TABLE span; --",
    " ",
    "",
    "NaN",
    "null",
    "n" * 10_000,
    "spaces " * 1_400,
    "\ufeff\u200b\u00ad",
    "Z̸̡̛̗͕͎̈́a̷̧̛l̶̗̈g̵̱̈ȯ̸̙",
    b"not UTF-8: \xff\xfe\xc3(",
]

RAPL = {"resolution_uj": 61, "period_ns": 1_000_000}
PACKAGE = Device("package", "package-0", "Intel(R) Xeon(R) Platinum 8468", "powercap", **RAPL)
PACKAGE_1 = dataclasses.replace(PACKAGE, name="package-1", idx=1)
DRAM = Device("dram", "dram-0", "intel-rapl:0:0", "powercap", **RAPL)
MODEL = Device("package", "package-0", "AMD EPYC 7763 64-Core Processor", "model", provenance="estimated",
               has_energy=False, relative_error=0.8)
BESIDE = [
    Device("core", "core-0", "intel-rapl:0:1", "powercap", inside="package-0", **RAPL),
    Device("psys", "psys", "intel-rapl:1", "powercap", **RAPL),
    Device("wall", "wall", "Shelly Plug S", "wall meter", has_energy=False, relative_error=0.01),
]


def gpu(number, name="NVIDIA H100 80GB HBM3"):
    return Device("gpu", f"gpu-{number}", name, "nvml", idx=number, uuid=f"GPU-6d5f1c9e-0000-4000-8000-{number:012x}",
                  resolution_uj=1000, period_ns=20_000_000, memory_bytes=85_520_809_984)


SERVER = [PACKAGE, DRAM, gpu(0)]
EIGHT = [PACKAGE, PACKAGE_1, DRAM, *map(gpu, range(8))]
KINDS = {
    "training": Plan("two minutes of training on one GPU", SERVER, 1_200, steps=160),
    "slower": Plan("two minutes of training with a limit of 500 W: slower, less energy", SERVER, 1_500, steps=160,
                   cap_w=500,
                   gpu_scale=0.62),
    "no_gpu": Plan("a server without a GPU, estimated by the load model", [MODEL], 600),
    "no_energy": Plan("a machine without energy sensors", [], 600),
    "eight_gpus": Plan("two packages and eight GPUs", EIGHT, 1_200, steps=120, workers=4),
    "laptop": Plan("nested and separate domains: core, psys, a wall meter", [PACKAGE, DRAM, *BESIDE], 600),
    "segments": Plan("three recordings in one file, with pauses", SERVER, 900, steps=90, segments=3, pause_s=3_600),
    "killed": Plan("the recorder was killed in the middle", SERVER, 600, is_killed=True),
    "hostile": Plan("hostile names", [PACKAGE, gpu(0, HOSTILE[1])], 600, names=HOSTILE),
    "holes": Plan("missing readings for a tenth of the time", SERVER, 900, hole=True),
    "short": Plan("50 ms", SERVER, 6, interval_ns=10_000_000, steps=1),
    "one_sample": Plan("a single sample", SERVER, 1, steps=0),
    "empty": Plan("ended before the first sample", [PACKAGE, DRAM], 0, steps=0),
    "many_threads": Plan("300 threads with spans of their own", SERVER, 1_200, workers=300),
    "day": Plan("24 h at 10 Hz with 100,000 spans", SERVER, 36_000, steps=834, times=24),
    "day_without_spans": Plan("24 h at 10 Hz", SERVER, 36_000, steps=0, times=24),
    "many_spans": Plan("a million spans in ten minutes", SERVER, 6_000, steps=200_000),
}
LONG = {"day", "day_without_spans", "many_spans"}


@functools.cache
def recorded(wattle):
    """The content of a run file that the program made."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.sqlite"
        subprocess.run([str(wattle), "run", "-q", "--disable-logs", "-o", str(path), "--", "true"], check=True)
        return path.read_bytes()


def tables(wattle, path):
    """An empty run file with the tables of this version."""
    path = pathlib.Path(path)
    for name in (path, pathlib.Path(f"{path}-wal"), pathlib.Path(f"{path}-shm")):
        name.unlink(missing_ok=True)
    path.write_bytes(recorded(wattle))
    file = sqlite3.connect(path)
    file.execute("pragma journal_mode = off")
    file.execute("pragma synchronous = off")
    for table in ("sample", "device", "device_sample", "process", "span", "user_metric", "event", "segment"):
        file.execute(f"delete from {table}")
    return file


def insert(file, table, rows):
    """Inserts rows of equal keys; a text that isn't UTF-8 is given as bytes."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    texts = {"name", "command", "text", "device"} if table != "device_sample" else set()
    values = ", ".join("cast(? as text)" if key in texts else "?" for key in first)
    statement = f"insert or replace into {table} ({', '.join(first)}) values ({values})"
    file.execute(statement, tuple(first.values()))
    file.executemany(statement, (tuple(row.values()) for row in rows))


def write_facts(file, plan):
    facts = {"complete": "false" if plan.is_killed else "true", "id": plan.run_id, "host": plan.name("node-17", 4),
             "interval_ns": plan.interval_ns, "command": json.dumps(plan.command), "anchor_mono_ns": BOOTED_NS,
             "anchor_wall_ns": WALL_NS, "memory_total_bytes": 540_000_000_000, "n_cores": plan.cores,
             "expected_cores": plan.cores,
             "n_gpus_system": sum(d.kind == "gpu" for d in plan.devices), "label": plan.name("baseline", 2),
             "step": plan.block_name(2), "meta.dataset": plan.name("imagenet-1k", 0), "meta.batch_size": "256",
             "carbon_intensity_g_per_kwh": "380"}
    file.executemany("insert or replace into run (key, value) values (?, ?)", facts.items())


def repeat_rows(file, plan, table, shifts, where="true"):
    """Repeats the rows of a table; `shifts` is added to a column each time."""
    names = [name for _, name, *_ in file.execute(f"pragma table_info({table})")]
    file.execute(f"create temp table round as select * from {table} where {where}")
    for k in range(1, plan.times):
        values = [f"{name} + {k * shifts[name]}" if name in shifts else name for name in names]
        file.execute(f"insert into {table} select {', '.join(values)} from round")
    file.execute("drop table round")


def repeat(file, plan):
    """Repeats the whole round, with continuing counters: SQLite is ten times faster at it than Python."""
    length_ns = plan.n_samples * plan.interval_ns
    for table, rows in [("sample", "true"), *(("device_sample", f"device = {i}") for i in range(len(plan.devices)))]:
        query = file.execute("select name from metric where table_name = ? and kind = 'counter'", (table,))
        shifts = {"t_ns": length_ns}
        for counter, in query.fetchall():
            total, = file.execute(f"select max({counter}) from {table} where {rows}").fetchone()
            # The interval between two rounds is as long as any other.
            shifts[counter] = (total or 0) * plan.n_samples // (plan.n_samples - 1)
        repeat_rows(file, plan, table, shifts, rows)
    spans, = file.execute("select count(*) from span").fetchone()
    repeat_rows(file, plan, "span", {"id": spans, "parent": spans, "begin_ns": length_ns, "end_ns": length_ns})
    repeat_rows(file, plan, "user_metric", {"t_ns": length_ns})
    repeat_rows(file, plan, "event", {"t_ns": length_ns})
    file.execute("update segment set end_ns = end_ns + ?", ((plan.times - 1) * length_ns,))
    for figure in ("samples", "main_cpu_ns", "descendants_cpu_ns", "read_bytes", "written_bytes", "self_cpu_ns",
                   "self_wakeups"):
        file.execute(f"update segment set {figure} = {figure} * {plan.times}")


def make(wattle, path, plan):
    """Makes a run file of a plan (or of the name of one) and returns its true values."""
    plan = KINDS[plan] if isinstance(plan, str) else plan
    file = tables(wattle, path)
    write_facts(file, plan)
    data = synthetic_data.SyntheticData(plan, BOOTED_NS, WALL_NS)
    insert(file, "device", (device.row(i) for i, device in enumerate(plan.devices)))
    insert(file, "sample", data.samples())
    insert(file, "device_sample", data.device_samples())
    insert(file, "process", data.processes())
    insert(file, "span", data.spans())
    insert(file, "user_metric", data.user_metrics())
    insert(file, "event", data.events())
    insert(file, "segment", data.segments())
    if plan.times > 1:
        repeat(file, plan)
    file.commit()
    file.close()
    return data.expected_of_all()


def main(arguments):
    if len(arguments) != 3 or arguments[1] not in {*KINDS, "all"}:
        print(__doc__)
        for name, plan in KINDS.items():
            print(f"    {name:18} {plan.what}")
        return 2
    wattle, kind, path = arguments
    if kind != "all":
        print(make(wattle, path, kind))
        return 0
    pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    for name in KINDS:
        if name not in LONG:
            make(wattle, pathlib.Path(path) / f"{name}.sqlite", name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
