"""Other readers of NVML on the simulated cards, and wattle on a second, independent NVML: all agree.

nvidia-ml-py and nvitop come from the virtual environment of bench/peers (`make bench-peers` makes it). The second NVML is
NVIDIA's mock library of the repository NVIDIA/k8s-test-infra: name its shared library in WATTLE_MOCK_NVML and the folder of its
profiles (*.yaml) in WATTLE_MOCK_NVML_PROFILES:

	go build -tags nopadding -buildmode=c-shared -o libnvidia-mock.so ./pkg/gpu/mocknvml/bridge
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from harness import BUILD, TESTS, Skip, main, near, test

sys.path.insert(0, str(TESTS.parent / "bench/peers"))
import peers  # noqa: E402

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
CARDS = f"""
epoch_ns {time.monotonic_ns()}
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
memory_total_bytes 85520809984
memory_reserved_bytes 600000000
memory_used_bytes 2000000000
power_mw constant 300000
energy_start_mj 123456789
temperature_c 55
utilization_percent 90 40
limits_mw 200000 700000 700000 650000
gpu
name NVIDIA GeForce GTX 1060
uuid GPU-1e5b4d20-0000-4000-8000-000000000001
power_mw constant 8500
limits_mw 60000 140000 120000 120000
error nvmlDeviceGetTotalEnergyConsumption 3
"""

READ_BY_PYNVML = """
import json, pynvml
pynvml.nvmlInit()
def card(handle):
    found = {"name": pynvml.nvmlDeviceGetName(handle), "uuid": pynvml.nvmlDeviceGetUUID(handle),
             "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3, "cap_w": pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
             "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, 0), "use": pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
             "memory": pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used}
    try:
        found["energy_j"] = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3
    except pynvml.NVMLError_NotSupported:
        found["energy_j"] = None
    return found
print(json.dumps([card(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount())]))
"""
READ_BY_NVITOP = """
import json
from nvitop import Device
print(json.dumps([{"name": d.name(), "uuid": d.uuid(), "power_w": d.power_usage() / 1e3, "cap_w": d.power_limit() / 1e3,
                   "temperature_c": d.temperature(), "use": d.gpu_utilization()} for d in Device.all()]))
"""


def environment(workdir):
    (workdir.folder / "cards").write_text(CARDS)
    return {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
            "WATTLE_SYSFS": str(workdir.tree("empty", {})), "CUDA_VISIBLE_DEVICES": None}


def read_by(workdir, script):
    python = peers.environment_folder() / "bin/python"
    if not python.exists():
        raise Skip("no virtual environment of other readers: `make bench-peers` makes it")
    (workdir.folder / "lib").mkdir(exist_ok=True)
    link = workdir.folder / "lib/libnvidia-ml.so.1"
    link.unlink(missing_ok=True)
    link.symlink_to(LIBRARY)
    env = {**os.environ, **environment(workdir), "LD_LIBRARY_PATH": str(link.parent)}
    done = subprocess.run([python, "-c", script], env={k: v for k, v in env.items() if v is not None}, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def measured(workdir, env, seconds=0.5):
    report, _ = workdir.report("--", "sleep", seconds, env=env)
    return report, {gpu["index"]: gpu for gpu in report["gpus"]}


def check_card(theirs, ours):
    assert (theirs["name"], theirs["uuid"]) == (ours["name"], ours["uuid"]), (theirs, ours)
    near(ours["cap_w"], theirs["cap_w"], absolute=1e-9)
    near(ours["max_temperature_c"], theirs["temperature_c"], absolute=0)
    near(ours["mean_utilization_percent"], theirs["use"], absolute=1)


@test
def nvidia_ml_py(workdir):
    """nvidia-ml-py on the simulated cards: names, UUIDs, limits, temperatures, use, memory, energy as wattle reports them"""
    before = read_by(workdir, READ_BY_PYNVML)
    report, ours = measured(workdir, environment(workdir))
    after = read_by(workdir, READ_BY_PYNVML)
    assert len(before) == len(ours) == 2, (before, ours)
    for i, theirs in enumerate(before):
        check_card(theirs, ours[i])
        near(ours[i]["max_memory_bytes"], theirs["memory"], absolute=0)
        near(ours[i]["energy_j"] / report["run"]["duration_s"], theirs["power_w"], relative=0.05)
    assert before[1]["energy_j"] is None  # no counter: derived from power
    assert 0 < ours[0]["energy_j"] <= after[0]["energy_j"] - before[0]["energy_j"], (before, ours, after)


@test
def nvitop(workdir):
    """nvitop on the simulated cards: names, UUIDs, limits, temperatures, use as wattle reports them"""
    theirs = read_by(workdir, READ_BY_NVITOP)
    _, ours = measured(workdir, environment(workdir))
    for i, card in enumerate(theirs):
        check_card(card, ours[i])
    assert len(theirs) == len(ours)


def value_of(text, key):
    """The first value of a key of a profile; YAML needs no parser for that."""
    found = re.search(rf"^ +{key}: +\"?([^\"#\n]*)", text, re.MULTILINE)
    return found and found.group(1).strip()


@test
def second_nvml(workdir):
    """NVIDIA's mock library, each profile: sensors and run agree with its YAML: cards, names, UUIDs, limits, power"""
    library, folder = os.environ.get("WATTLE_MOCK_NVML"), os.environ.get("WATTLE_MOCK_NVML_PROFILES")
    if not library or not folder:
        raise Skip("WATTLE_MOCK_NVML and WATTLE_MOCK_NVML_PROFILES name no second NVML")
    profiles = sorted(pathlib.Path(folder).glob("*.yaml"))
    assert profiles, folder
    for path in profiles:
        text = path.read_text(encoding="utf-8")
        uuids = re.findall(r"^ +uuid: +\"?(GPU-[^\"\n]*)", text, re.MULTILINE)
        env = {"WATTLE_NVML": library, "MOCK_NVML_CONFIG": str(path), "WATTLE_SYSFS": str(workdir.tree("empty", {})),
               "CUDA_VISIBLE_DEVICES": None}
        rows = [row for row in json.loads(workdir.wattle("sensors", "--json", env=env).stdout)["sensors"] if row["sensor"] == "nvml"]
        report, ours = measured(workdir, env, 1)
        assert [row["uuid"] for row in rows] == [ours[i]["uuid"] for i in sorted(ours)] == uuids, (path.name, uuids, rows)
        for card in ours.values():
            assert card["name"] == value_of(text, "name"), (path.name, card)
            near(card["cap_w"], float(value_of(text, "enforced_limit_mw")) / 1e3, absolute=1e-9)
            near(card["max_temperature_c"], float(value_of(text, "temperature_gpu_c")), absolute=5)
            # The mock's energy counter stands still: wattle notices that, and integrates the power.
            near(card["mean_w"], float(value_of(text, "current_draw_mw")) / 1e3, relative=0.05)


if __name__ == "__main__":
    main()
