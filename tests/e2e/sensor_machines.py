"""Machines for the tests of `wattle sensors`: simulated trees, counters and cards, and the output for them."""
import json
import sys

from harness import BUILD, TESTS

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
NO_NVML = {"WATTLE_NVML": "/nonexistent/libnvidia-ml.so.1", "WATTLE_STATE": "/nonexistent"}
METAL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU\nflags\t\t: fpu vme msr\n\n"
VM = METAL.replace("msr", "msr hypervisor")


def zone(name, energy_uj=1000):
    return {"name": f"{name}\n", "energy_uj": f"{energy_uj}\n", "max_energy_range_uj": "262143328850\n"}


def machine(workdir, name, zones=(), cpuinfo=METAL, more=()):
    """Folders for /sys and /proc, and the environment in which wattle uses them."""
    sys_files = {f"class/powercap/intel-rapl:{i}/{file}": text for i, what in enumerate(zones)
                 for file, text in zone(what).items()}
    sys = workdir.tree(f"{name}-sys", {"kernel/.keep": "", **sys_files, **dict(more)})
    proc = workdir.tree(f"{name}-proc", {"cpuinfo": cpuinfo})
    return {"WATTLE_SYSFS": str(sys), "WATTLE_PROCFS": str(proc), **NO_NVML}


def known_machine(name):
    top = TESTS / "machines" / name
    nvml = cards_of(top / "nvml.cards") if (top / "nvml.cards").exists() else NO_NVML
    return {"WATTLE_SYSFS": str(top / "sys"), "WATTLE_PROCFS": str(top / "proc"), **nvml}


def doctor(workdir, env, *options):
    done = workdir.wattle("sensors", "--json", *options, env=env)
    return json.loads(done.stdout)["sensors"], done


def row_of(rows, sensor, domain):
    found = [row for row in rows if row["sensor"] == sensor and row["domain"] == domain]
    assert len(found) == 1, (sensor, domain, rows)
    return found[0]


def simulate(workdir, name, *options):
    """A /sys whose counters move, until the end of the test."""
    top = workdir.folder / name
    assert workdir.start(top, *options, program=SIMULATOR).stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top), **NO_NVML}


def end_simulator(workdir, name):
    """Ends one of them; the seconds by which its updates were late."""
    top = workdir.folder / name
    simulator, = (process for process in workdir.started if process.args[:2] == [str(SIMULATOR), str(top)])
    simulator.terminate()
    simulator.wait()
    return expected_values.late_s(expected_values.load(top))


def cards(workdir, text, name="cards"):
    path = workdir.folder / name
    path.write_text(text)
    return cards_of(path)


def cards_of(path):
    return {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(path), "WATTLE_STATE": "/nonexistent"}


TWO_CARDS = """
gpu
name Fake A
uuid GPU-12345678-1234-1234-1234-123456789abc
memory_used_bytes 1000000000
power_mw constant 50000
energy_period_ms 100
gpu
name Fake B
uuid GPU-87654321-4321-4321-4321-cba987654321
error nvmlDeviceGetTotalEnergyConsumption 3
"""
