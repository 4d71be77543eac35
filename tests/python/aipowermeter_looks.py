"""AIPowerMeter's single samples: rapl, rapl_power and gpu_power with simulated counters, the fake NVML and /proc
itself."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
from harness import BUILD, BURNER, main, near, test, wait_until

FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
CARDS = "gpu\nname Card\npower_mw constant 300000\nutilization_percent 90 40\n" \
        "gpu\nname Card\npower_mw constant 100000\nutilization_percent 20 40\n"
RANGE_UJ = 262143328850


def zone(name, energy_uj, range_uj=RANGE_UJ):
    return {"name": name + "\n", "energy_uj": f"{energy_uj}\n", "max_energy_range_uj": f"{range_uj}\n"}


def counters(workdir, **energies_uj):
    """A server with psys, as the kernel shows it: package with core and dram in it, a second package."""
    zones = {"intel-rapl:0": zone("package-0", energies_uj["package"]),
             "intel-rapl:0/intel-rapl:0:0": zone("core", 400),
             "intel-rapl:0/intel-rapl:0:1": zone("dram", energies_uj["dram"]), "intel-rapl:1": zone("package-1", 1000),
             "intel-rapl:2": zone("psys", energies_uj["psys"])}
    return workdir.tree("sys", {f"class/powercap/intel-rapl/{folder}/{name}": text
                             for folder, files in zones.items() for name, text in files.items()})


def modules(**environment):
    """The modules as a program with this environment gets them."""
    for name in [name for name in sys.modules if "deep_learning_power_measure" in name]:
        del sys.modules[name]
    os.environ.pop("WATTLE_SYSFS", None)
    os.environ.update({"WATTLE_NVML": "/nowhere", **{key: str(value) for key, value in environment.items()}})
    from wattle.compat.deep_learning_power_measure.power_measure import gpu_power, rapl, rapl_power
    return gpu_power, rapl, rapl_power


@test
def power_of_the_domains(workdir):
    """two samples: power by domain, packages added, over a wrap of one counter; missing domains have no key"""
    sysfs = counters(workdir, package=RANGE_UJ - 999_999, dram=10, psys=0)
    _, rapl, rapl_power = modules(WATTLE_SYSFS=sysfs)
    available, text = rapl_power.is_rapl_compatible()
    assert available and "RAM related energy consumption available" in text, text
    assert "uncore related energy consumption NOT" in text, text
    before = rapl.RAPLSample.take_sample()
    counters(workdir, package=1_000_000, dram=3_000_010, psys=9_000_000)
    after = rapl.RAPLSample.take_sample()
    after.time_s = before.time_s + 2
    power = rapl_power.get_power(after - before)
    assert power == {"intel_power": 1.0, "total_cpu_power": 0.0, "total_dram_power": 1.5, "psys_power": 4.5}, power
    assert (after - before).energy("package-0", "dram", rapl.JOULES) == 3


@test
def without_counters(workdir):
    """machine without RAPL: not available, with a message; samples are an error, not zeros"""
    _, rapl, rapl_power = modules(WATTLE_SYSFS=workdir.tree("empty", {"class/x": ""}))
    available, text = rapl_power.is_rapl_compatible()
    assert not available and "no counters" in text
    try:
        rapl.RAPLSample.take_sample()
    except ValueError as error:
        assert "no RAPL counters" in str(error)
    else:
        raise AssertionError("a sample of nothing")


@test
def cpu_of_processes(workdir):
    """busy and sleeping process: CPU seconds and shares; pids or objects, both ways to unpack the result"""
    _, _, rapl_power = modules()
    busy, idle = workdir.start("cpu", "30", program=BURNER), workdir.start("30", program="sleep")
    gone = workdir.start("0", program="sleep")
    gone.wait()
    wait_until(lambda: pathlib.Path(f"/proc/{idle.pid}/stat").read_text().split()[1:3] == ["(sleep)", "S"], "it sleeps")
    began = time.monotonic()
    uses = rapl_power.get_cpu_uses(rapl_power.get_processes([busy.pid, idle.pid, gone.pid]), period=0.5)
    near(time.monotonic() - began, 0.5, absolute=0.2)
    shares, seconds = uses
    assert set(shares) == set(seconds) == {busy.pid, idle.pid}
    assert 0.1 < seconds[busy.pid] < 0.7 and seconds[idle.pid] == 0, seconds
    assert 0.1 < shares[busy.pid] <= 1 and shares[idle.pid] == 0
    assert uses == shares and uses[1] is seconds, "a dict of shares that unpacks into both"
    assert busy.pid in uses and isinstance(uses, dict) and json.loads(json.dumps(uses))[str(idle.pid)] == 0
    before, after = (({1: (rapl_power.SystemTimes(at), rapl_power.ProcessTimes(0.07, 0.13))}) for at in (1.0, 2.0))
    assert rapl_power.get_percent_uses(before, after, [], [1]) == ({1: 0}, {1: 0}), "not below 0 by rounding"
    assert rapl_power.get_rel_power({1: 0.5, 2: None}, 40.0) == {1: 20.0, 2: None}


@test
def memory_of_processes(workdir):
    """PSS and USS of this process with 50 MB more; an ended process is left out"""
    _, _, rapl_power = modules()
    before = rapl_power.get_mem_uses([os.getpid()])[os.getpid()]
    held = bytearray(os.urandom(1)) * 50_000_000
    pss, uss = rapl_power.get_mem_uses([os.getpid(), 2**22 + 1])
    assert list(pss) == [os.getpid()]
    near(pss[os.getpid()] - before, len(held), relative=0.05)
    assert 50e6 < uss[os.getpid()] <= pss[os.getpid()]
    assert 0 < rapl_power.get_relative_mem_use(pss)[os.getpid()] < 1


@test
def one_record(workdir):
    """get_metrics: all CPU values of a record, with the values per process"""
    sysfs = counters(workdir, package=0, dram=0, psys=0)
    _, _, rapl_power = modules(WATTLE_SYSFS=sysfs)
    metrics = rapl_power.get_metrics([os.getpid()], period=0.1)
    assert {"intel_power", "rel_intel_power", "psys_power", "per_process_cpu_power", "per_process_dram_power",
            "per_process_mem_use_abs", "per_process_mem_use_uss", "total_mem_use", "per_process_cpu_uses",
            "absolute_cpu_time_per_pid"} <= set(metrics), metrics
    assert "uncore_power" not in metrics


@test
def gpu_samples(workdir):
    """two samples of two GPUs: power from the energy counters, utilization in percent; without a driver a message"""
    gpu_power, _, _ = modules()
    available, text = gpu_power.is_nvidia_compatible()
    assert not available and "NOT available" in text
    (workdir.folder / "cards").write_text(CARDS)
    gpu_power, _, _ = modules(WATTLE_NVML=FAKE_NVML, WATTLE_FAKE_NVML=workdir.folder / "cards")
    assert gpu_power.is_nvidia_compatible() == (True, "GPU power will be measured with nvidia")
    first = gpu_power.get_gpu_sample()
    time.sleep(1)
    second = gpu_power.get_gpu_sample()
    power = gpu_power.get_diff_gpu_sample(first, second)
    near(power["nvidia_power"], 400, relative=0.15)
    assert power["per_gpu_nvidia_use_rate"] == {0: 90, 1: 20} and power["nvidia_use_rate"] == 55
    near(power["per_gpu_nvidia_power"][0], 300, relative=0.15)
    (workdir.folder / "cards").write_text(CARDS + "error nvmlDeviceGetUtilizationRates 3\n")
    gpu_power, _, _ = modules(WATTLE_NVML=FAKE_NVML, WATTLE_FAKE_NVML=workdir.folder / "cards")
    sample = gpu_power.get_gpu_sample()
    assert sample["per_gpu_nvidia_use_rate"] == {0: 90, 1: None} and sample["nvidia_use_rate"] == 90, sample


@test
def gpu_of_processes(workdir):
    """sample of GPUs: power, and utilization and memory of each process of a list, or of all"""
    pids = [workdir.start("60", program="sleep").pid for _ in range(2)]
    (workdir.folder / "cards").write_text("gpu\npower_mw constant 300000\nutilization_percent 80 40\n"
                                       f"process {pids[0]} C 60 1000000000\nprocess {pids[1]} C 20 unknown\n")
    gpu_power, _, _ = modules(WATTLE_NVML=FAKE_NVML, WATTLE_FAKE_NVML=workdir.folder / "cards")
    for asked, expected in ((None, {pids[0]: 0.6, pids[1]: 0.2}), (pids, {pids[0]: 0.6, pids[1]: 0.2}),
                            (pids[1:], {pids[1]: 0.2})):
        look = gpu_power.get_nvidia_gpu_power(asked)
        assert look["per_gpu_per_pid_utilization_absolute"] == {0: expected}, look
        memory = look["per_gpu_attributable_mem_use"].get(0, {})
        assert memory.get(pids[0]) == (1000000000 if pids[0] in expected else None) and not memory.get(pids[1]), look
        near(look["per_gpu_absolute_percent_usage"][0], sum(expected.values()), relative=1e-9)
        near(look["nvidia_draw_absolute"], 300, relative=0.1)
        near(look["per_gpu_attributable_power"][0], 300 * sum(expected.values()) / 0.8, relative=0.1)


main()
