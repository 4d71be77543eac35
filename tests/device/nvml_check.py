#!/usr/bin/env python3
"""On a machine with NVIDIA GPUs: whether wattle agrees with nvidia-smi, how often counters are updated, and what calls
cost.

usage: nvml_check.py WATTLE [FOLDER]

Nothing in the build or the tests depends on this. It needs Python's standard library, only reads, and takes about half
a minute. It writes its results into FOLDER (default: nvml-check): answers.json, and cards, the same as a file for the
fake library (tests/fakes/nvml/README.md), with UUIDs replaced, which can be contributed as a test fixture. WATTLE_NVML
names another library, for a dry run on the fake one.
"""
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

SECONDS = 10
FIELDS = {"energy": 83, "power average": 185, "power instant": 186, "energy, scoped": 191}
SCOPES = {"gpu": 0, "module": 1, "memory": 2}


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp_us", ctypes.c_longlong),
                ("latency_us", ctypes.c_longlong), ("type", ctypes.c_int), ("code", ctypes.c_int),
                ("value", ctypes.c_ulonglong)]


class Sample(ctypes.Structure):
    _fields_ = [("timestamp_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL(os.environ.get("WATTLE_NVML", "libnvidia-ml.so.1"))
        code = self.library.nvmlInit_v2()
        if code != 0:
            sys.exit(f"nvmlInit: {code}")

    def __call__(self, name, *arguments):
        """NVML's code; 13, FUNCTION_NOT_FOUND, if this driver has no such function."""
        function = getattr(self.library, "nvml" + name, None)
        return function(*arguments) if function is not None else 13

    def devices(self):
        count = ctypes.c_uint()
        self("DeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if self("DeviceGetHandleByIndex_v2", index, ctypes.byref(handle)) == 0:
                yield index, handle

    def text(self, name, handle):
        out = ctypes.create_string_buffer(96)
        return out.value.decode() if self(name, handle, out, 96) == 0 else None

    def number(self, name, handle, kind=ctypes.c_uint):
        out = kind()
        code = self(name, handle, ctypes.byref(out))
        return (code, out.value if code == 0 else None)

    def field(self, handle, number, scope):
        field = Field(id=number, scope=scope)
        code = self("DeviceGetFieldValues", handle, 1, ctypes.byref(field))
        return field if code == 0 else Field(code=code)


def cost_us(call):
    """Median time of a call."""
    times = []
    for _ in range(50):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    return round(statistics.median(times), 1)


def updates(read, seconds=2.0):
    """How long a counter is unchanged, in ms: median, least, most. None if it never changed."""
    last, since, gaps = read(), None, []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        value, now = read(), time.perf_counter()
        if value != last:
            if since is not None:
                gaps.append((now - since) * 1e3)
            last, since = value, now
    return [round(x, 2) for x in (statistics.median(gaps), min(gaps), max(gaps))] if gaps else None


def stamps(nvml, handle):
    """Whether the energy field's timestamp is constant while its value is and changes with it, in a second of
    readings."""
    pairs = []
    for _ in range(500):
        field = nvml.field(handle, FIELDS["energy"], 0)
        if field.code != 0:
            return None
        pairs.append((field.value, field.timestamp_us))
        time.sleep(0.002)
    agree = sum((a[0] == b[0]) == (a[1] == b[1]) for a, b in zip(pairs, pairs[1:]))
    return {"readings": len(pairs), "agree": agree, "updates": len({value for value, _ in pairs})}


def power_samples(nvml, handle):
    count, kind = ctypes.c_uint(), ctypes.c_int()
    code = nvml("DeviceGetSamples", handle, 0, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), None)
    if code != 0 or count.value == 0:
        return {"code": code}
    ring = (Sample * count.value)()
    code = nvml("DeviceGetSamples", handle, 0, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), ring)
    times = [sample.timestamp_us for sample in ring[:count.value]]
    gaps = [(b - a) / 1e3 for a, b in zip(times, times[1:]) if b > a]
    return {"code": code, "type": kind.value, "ring": count.value,
            "period_ms": round(statistics.median(gaps), 2) if gaps else None}


def examine(nvml, index, handle):
    memory = Memory(version=ctypes.sizeof(Memory) | 2 << 24)
    limits = ctypes.c_uint(), ctypes.c_uint()
    energy = lambda: nvml.number("DeviceGetTotalEnergyConsumption", handle, ctypes.c_ulonglong)
    counts = ctypes.c_uint(256)
    records = ctypes.create_string_buffer(24 * 256)
    return {
        "index": index, "name": nvml.text("DeviceGetName", handle), "uuid": nvml.text("DeviceGetUUID", handle),
        "memory": [nvml("DeviceGetMemoryInfo_v2", handle, ctypes.byref(memory)), memory.total, memory.reserved,
                   memory.used],
        "limits_mw": [nvml("DeviceGetPowerManagementLimitConstraints", handle, *map(ctypes.byref, limits)),
                      limits[0].value, limits[1].value],
        "enforced_limit_mw": nvml.number("DeviceGetEnforcedPowerLimit", handle),
        "default_limit_mw": nvml.number("DeviceGetPowerManagementDefaultLimit", handle),
        "power_mw": nvml.number("DeviceGetPowerUsage", handle), "energy_mj": energy(),
        "fields": {f"{name}, {scope}": [(field := nvml.field(handle, number, where)).code, field.type, field.value]
                   for name, number in FIELDS.items() for scope, where in SCOPES.items()},
        "accounting": nvml.number("DeviceGetAccountingMode", handle, ctypes.c_int),
        "mig_max": nvml.number("DeviceGetMaxMigDeviceCount", handle),
        "samples": power_samples(nvml, handle), "stamps": stamps(nvml, handle),
        "update_ms": {"energy": updates(energy), "power": updates(lambda: nvml.number("DeviceGetPowerUsage", handle)),
                      "instant": updates(lambda: nvml.field(handle, 186, 0).value)},
        "cost_us": {"energy": cost_us(energy), "power": cost_us(lambda: nvml.number("DeviceGetPowerUsage", handle)),
                    "field": cost_us(lambda: nvml.field(handle, 186, 0)),
                    "memory": cost_us(lambda: nvml("DeviceGetMemoryInfo_v2", handle, ctypes.byref(memory))),
                    "utilization": cost_us(lambda: nvml("DeviceGetUtilizationRates", handle, records)),
                    "processes": cost_us(lambda: nvml("DeviceGetComputeRunningProcesses_v2", handle,
                                                      ctypes.byref(counts), records))},
    }


def as_card(seen):
    """The results as a card of the fake library."""
    lines = ["gpu", f"name {seen['name']}", f"power_mw constant {seen['power_mw'][1] or 0}",
             f"memory_total_bytes {seen['memory'][1]}", f"memory_reserved_bytes {seen['memory'][2]}",
             f"memory_used_bytes {seen['memory'][3]}"]
    if seen["limits_mw"][0] == 0:
        lines.append("limits_mw " + " ".join(str(x or 0) for x in (*seen["limits_mw"][1:], seen["default_limit_mw"][1],
                                                                     seen["enforced_limit_mw"][1])))
    for function, (code, _) in (("TotalEnergyConsumption", seen["energy_mj"]), ("PowerUsage", seen["power_mw"])):
        if code != 0:
            lines.append(f"error nvmlDeviceGet{function} {code}")
    for name, (code, _, _) in seen["fields"].items():
        number, scope = FIELDS[name.rpartition(", ")[0]], SCOPES[name.rpartition(", ")[2]]
        if code != 0 and scope == 0:
            lines.append(f"field_error {number} {scope} {code}")
    if seen["update_ms"]["energy"]:
        lines.append(f"energy_period_ms {seen['update_ms']['energy'][0]}")
    if seen["samples"].get("period_ms"):
        lines.append(f"power_samples {max(1, round(seen['samples']['period_ms']))} {seen['samples']['ring']}")
    return "\n".join(lines) + "\n"


def smi_means():
    """Mean power of each GPU by nvidia-smi, ten times a second; {} without nvidia-smi."""
    command = ["timeout", str(SECONDS), "nvidia-smi", "--query-gpu=index,power.draw", "--format=csv,noheader,nounits",
               "--loop-ms=100"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    except FileNotFoundError:
        return {}
    sums = {}
    for line in lines:
        index, _, watts = line.partition(",")
        try:
            sums.setdefault(int(index), []).append(float(watts))
        except ValueError:
            continue
    return {index: statistics.mean(watts) for index, watts in sums.items()}


def compare(wattle, folder):
    """wattle and nvidia-smi over the same seconds."""
    run = subprocess.Popen([wattle, "run", "-q", "--overwrite", "-o", folder / "run.sqlite", "--json",
                            folder / "report.json", "--", "sleep", str(SECONDS)])
    means = smi_means()
    if run.wait() != 0:
        sys.exit(f"wattle run: {run.returncode}")
    report = json.loads((folder / "report.json").read_text())
    for gpu in report["gpus"]:
        theirs = means.get(gpu["index"])
        ours = gpu["mean_w"]
        ratio = f"{ours / theirs:.3f}" if ours and theirs else "-"
        print(f"gpu-{gpu['index']}  wattle {ours} W, {gpu['energy_j']} J   nvidia-smi {theirs} W   ratio {ratio}")
    print(f"wattle itself: {report['self']['cpu_percent']} % of a core at 10 Hz")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else "nvml-check")
    folder.mkdir(exist_ok=True)
    nvml = Nvml()
    seen = [examine(nvml, index, handle) for index, handle in nvml.devices()]
    for gpu in seen:
        print(f"gpu-{gpu['index']}  {gpu['name']}\n  updates (median, least, most ms): {gpu['update_ms']}\n"
              f"  cost of a call (us): {gpu['cost_us']}\n  stamps of the energy field: {gpu['stamps']}\n"
              f"  power buffer: {gpu['samples']}")
        del gpu["uuid"]
    (folder / "answers.json").write_text(json.dumps(seen, indent=1) + "\n")
    (folder / "cards").write_text("".join(map(as_card, seen)))
    compare(pathlib.Path(sys.argv[1]).resolve(), folder)


if __name__ == "__main__":
    main()
