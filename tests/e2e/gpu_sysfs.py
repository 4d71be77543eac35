"""GPUs of AMD and Intel in a simulated /sys whose files change while wattle runs."""
import json
import math
import os
import shutil
import sys
import threading
import time

from harness import BUILD, TESTS, main, near, run_first, test

sys.path.insert(0, str(TESTS.parent / "tools"))
sys.dont_write_bytecode = True
from machine_gpus import gpu_metrics

NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ROCM = BUILD / "tests/fakes/rocm/librocm_smi64-fake.so"
UNITS_PER_J = 65536
HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class Card:
    """class/drm/cardN of amdgpu; power 150 + 50 sin W, and the accumulator is its integral."""

    def __init__(self, top, number=0, pci="0000:03:00.0", accumulates=True, period_s=0.02, unique_id=0x5d):
        self.device = top / f"class/drm/card{number}/device"
        self.accumulates, self.period_s = accumulates, period_s
        self.files = {"vendor": "0x1002", "device": "0x744c", "uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME={pci}",
                      "unique_id": f"{unique_id:016x}", "hwmon/hwmon0/name": "amdgpu",
                      "hwmon/hwmon0/power1_cap": "300000000", "hwmon/hwmon0/power1_cap_max": "300000000",
                      "hwmon/hwmon0/temp1_input": "55000", "mem_info_vram_total": "8000000000",
                      "mem_info_vram_used": "1000000000", "gpu_busy_percent": "80"}
        self.start_s = time.monotonic()
        self.pause_from_s, self.pause_to_s = math.inf, math.inf  # when the counter stops
        self.write_all()

    def power_w(self, t_s):
        return 150 + 50 * math.sin(2 * math.pi * 0.7 * (t_s - self.start_s))

    def energy_j(self, t_s):
        dt = t_s - self.start_s
        w = 2 * math.pi * 0.7
        return 150 * dt + 50 / w * (1 - math.cos(w * dt))

    def write(self, name, data):
        path = self.device / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name("." + path.name)
        fresh.write_bytes(data if isinstance(data, bytes) else data.encode())
        os.rename(fresh, path)

    def write_all(self):
        for name, text in self.files.items():
            self.write(name, text + "\n")
        self.step()

    def step(self):
        t_s = time.monotonic()
        counted_s = self.pause_from_s if self.pause_from_s <= t_s < self.pause_to_s else t_s
        units = int(self.energy_j(counted_s) * UNITS_PER_J) + (1 << 33)
        fields = {"average_socket_power": int(self.power_w(t_s)), "temperature_edge": 55}
        if self.accumulates:
            fields["energy_accumulator"] = units
        self.write("gpu_metrics", gpu_metrics((1, 3), **fields))
        self.write("hwmon/hwmon0/power1_average", f"{int(self.power_w(t_s) * 1e6)}\n")


class Stepped:
    """Updates cards in a thread until the block ends."""

    def __init__(self, *cards):
        self.cards, self.end = cards, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        run_first()
        while not self.end.wait(self.cards[0].period_s):
            for card in self.cards:
                try:
                    card.step()
                except OSError:
                    pass  # removed at this moment

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def environment(top, **more):
    return {"WATTLE_SYSFS": str(top), "WATTLE_NVML": "/nonexistent/libnvidia-ml.so.1",
            "WATTLE_ROCM_SMI": "/nonexistent/librocm_smi64.so", **{name: None for name in HIDING}, **more}


def run(workdir, top, *arguments, seconds=2, **more):
    report, done = workdir.report(*arguments, "--", "sleep", seconds, env=environment(top, **more))
    start_ns, end_ns = workdir.rows("select start_ns, end_ns from segment")[0]
    return report, {d["domain"]: d for d in report["energy"]["domains"]}, start_ns / 1e9, end_ns / 1e9


def events(workdir, kind):
    return [text for (text,) in workdir.rows(f"select text from event where kind = '{kind}'")]


@test
def counter(workdir):
    """accumulator: energy within 0.5 % and the stated error; the other metrics beside it"""
    card = Card(workdir.tree("sys", {}))
    with Stepped(card):
        report, domains, start_s, end_s = run(workdir, workdir.folder / "sys")
    found, expected_j = domains["gpu-0"], card.energy_j(end_s) - card.energy_j(start_s)
    assert found["source"] == "amdgpu" and found["provenance"] == "measured", found
    near(found["energy_j"], expected_j, relative=0.01)
    assert abs(found["energy_j"] - expected_j) <= 1.5 * found["error_j"] + 0.1, (found, expected_j)
    gpu = report["gpus"][0]
    assert (gpu["uuid"], gpu["max_temperature_c"], gpu["cap_w"]) == ("GPU-000000000000005d", 55, 300), gpu
    near(gpu["mean_utilization_percent"], 80, absolute=1)


@test
def power_alone(workdir):
    """card without an accumulator: power integrated, and marked as derived"""
    card = Card(workdir.tree("sys", {}), accumulates=False)
    with Stepped(card):
        _, domains, start_s, end_s = run(workdir, workdir.folder / "sys")
    found, expected_j = domains["gpu-0"], card.energy_j(end_s) - card.energy_j(start_s)
    assert found["provenance"] == "derived", found
    near(found["energy_j"], expected_j, relative=0.04)


@test
def frozen_counter(workdir):
    """accumulator that never changes: power is integrated, and a note reports it"""
    card = Card(workdir.tree("sys", {}))
    card.pause_from_s = card.start_s
    card.step()
    with Stepped(card):
        _, domains, start_s, end_s = run(workdir, workdir.folder / "sys", seconds=1.5)
    found, expected_j = domains["gpu-0"], card.energy_j(end_s) - card.energy_j(start_s)
    assert found["provenance"] == "derived", found
    near(found["energy_j"], expected_j, relative=0.05)
    assert any("does not change" in text for text in events(workdir, "note")), events(workdir, "note")


@test
def counter_that_stops(workdir):
    """accumulator that stops for two seconds and catches up: no energy is lost or counted twice"""
    card = Card(workdir.tree("sys", {}))
    card.pause_from_s, card.pause_to_s = card.start_s + 1.5, card.start_s + 3.5
    with Stepped(card):
        _, domains, start_s, end_s = run(workdir, workdir.folder / "sys", seconds=4.5)
    near(domains["gpu-0"]["energy_j"], card.energy_j(end_s) - card.energy_j(start_s), relative=0.02)


@test
def pulled(workdir):
    """card removed during the run: its energy up to then is kept, and the gap is reported; no crash"""
    top = workdir.tree("sys", {})
    card = Card(top)
    process = workdir.start("run", "-q", "-o", "run.sqlite", "--json", "-", "--", "sleep", "3", env=environment(top))
    with Stepped(card):
        time.sleep(1.5)
    shutil.rmtree(top / "class/drm/card0")
    done = workdir.finish(process)
    assert done.returncode == 0, done
    found = next(d for d in json.loads(done.stdout)["energy"]["domains"] if d["domain"] == "gpu-0")
    assert 60 < found["energy_j"] < 400 and found["gaps"] >= 1, found
    assert any("removed" in text for text in events(workdir, "note")), events(workdir, "note")


@test
def pulled_and_back(workdir):
    """card removed, and back under another name: counting continues, the counter covers the time between"""
    top = workdir.tree("sys", {})
    card = Card(top)
    with Stepped(card):
        process = workdir.start("run", "-q", "-o", "run.sqlite", "--json", "-", "--", "sleep", "4.5",
                                env=environment(top))
        time.sleep(1.2)
        old, card.device = card.device, top / "class/drm/card3/device"
        shutil.rmtree(old.parent, ignore_errors=True)
        time.sleep(0.8)
        shutil.rmtree(card.device.parent, ignore_errors=True)
        card.write_all()
        done = workdir.finish(process)
    start_ns, end_ns = workdir.rows("select start_ns, end_ns from segment")[0]
    found = next(d for d in json.loads(done.stdout)["energy"]["domains"] if d["domain"] == "gpu-0")
    near(found["energy_j"], card.energy_j(end_ns / 1e9) - card.energy_j(start_ns / 1e9), relative=0.05)


@test
def sleeping(workdir):
    """suspended card: only its status is read until it wakes"""
    top = workdir.tree("sys", {"class/drm/card0/device/power/runtime_status": "suspended\n"})
    card = Card(top)
    report, domains, _, _ = run(workdir, top, seconds=0.5)
    assert domains["gpu-0"]["energy_j"] is None, domains
    assert any("suspended" in text for text in events(workdir, "note")), events(workdir, "note")
    assert not [text for text in report["warnings"] if "not in the total" in text], report["warnings"]
    assert card.device.exists()


CARDS = """
gpu
name NVIDIA A100
uuid GPU-aaaa0000-0000-4000-8000-000000000001
power_mw constant 250000
"""


def two_brands(workdir):
    top = workdir.tree("sys", {})
    (workdir.folder / "cards").write_text(CARDS)
    cards = [Card(top, 0, "0000:03:00.0", unique_id=0xaaaa000000000002), Card(top, 1, "0000:43:00.0", unique_id=0xbb)]
    return top, cards, {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "cards")}


@test
def two_makers(workdir):
    """NVIDIA GPUs are numbered before AMD's; --gpus accepts all, the message for an invalid one lists all"""
    top, cards, env = two_brands(workdir)
    with Stepped(*cards):
        report, domains, _, _ = run(workdir, top, seconds=0.5, **env)
        assert [gpu["index"] for gpu in report["gpus"]] == [0, 1, 2], report["gpus"]
        assert [domains[f"gpu-{i}"]["source"] for i in range(3)] == ["nvml", "amdgpu", "amdgpu"], domains
        for chosen, expected in (("2", [2]), ("0,1", [0, 1]), ("GPU-00000000000000bb", [2]), ("GPU-aaaa0000-", [0])):
            report, *_ = run(workdir, top, "--gpus", chosen, seconds=0.2, **env)
            assert [gpu["index"] for gpu in report["gpus"]] == expected, (chosen, report["gpus"])
        report, *_ = run(workdir, top, "--gpu-brand", "amd", seconds=0.2, **env)
        assert [gpu["index"] for gpu in report["gpus"]] == [0, 1], report["gpus"]
    for wrong in ("7", "GPU-aaaa"):
        done = workdir.wattle("run", "--gpus", wrong, "-o", "x.sqlite", "--", "true", env=environment(top, **env))
        assert done.returncode == 125 and "GPU-00000000000000bb" in done.stderr and "GPU-aaaa0000-" in done.stderr, done


@test
def environment_of_the_target(workdir):
    """HIP_VISIBLE_DEVICES hides AMD GPUs, not NVIDIA's; ROCR_VISIBLE_DEVICES is applied first"""
    top, cards, env = two_brands(workdir)
    for variables, expected in (({"HIP_VISIBLE_DEVICES": "1"}, [0, 2]), ({"ROCR_VISIBLE_DEVICES": "1"}, [0, 2]),
                                ({"ROCR_VISIBLE_DEVICES": "1,0", "HIP_VISIBLE_DEVICES": "0"}, [0, 2]),
                                ({"HIP_VISIBLE_DEVICES": "-1"}, [0])):
        report, *_ = run(workdir, top, seconds=0.1, **env, **variables)
        assert [gpu["index"] for gpu in report["gpus"]] == expected, (variables, report["gpus"])


@test
def rocm_smi(workdir):
    """power from /sys, the counter from ROCm SMI: 65536 counts are a joule, whatever its stated resolution"""
    card = Card(workdir.tree("sys", {}), accumulates=False)
    (workdir.folder / "rocm").write_text("gpu\naddress 0000:03:00.0\npower_w 120\nstart_units 1000000\n")
    _, domains, start_s, end_s = run(workdir, workdir.folder / "sys", WATTLE_ROCM_SMI=str(ROCM),
                                     WATTLE_FAKE_ROCM=str(workdir.folder / "rocm"))
    assert domains["gpu-0"]["provenance"] == "measured", domains
    near(domains["gpu-0"]["energy_j"], 120 * (end_s - start_s), relative=0.0015)
    assert card.device.exists()


@test
def intel(workdir):
    """counter of an Arc card, updated every 20 ms"""
    top = workdir.tree("sys", {f"class/drm/card0/device/{name}": text + "\n" for name, text in (
        ("vendor", "0x8086"), ("device", "0x56a0"), ("uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:03:00.0"),
        ("hwmon/hwmon1/name", "i915"), ("hwmon/hwmon1/energy1_input", "1"))})
    path, start_s = top / "class/drm/card0/device/hwmon/hwmon1/energy1_input", time.monotonic()
    end = threading.Event()

    def step():
        run_first()
        while not end.wait(0.02):
            fresh = path.with_name(".energy")
            fresh.write_text(f"{int((time.monotonic() - start_s) * 75e6)}\n")
            os.rename(fresh, path)
    thread = threading.Thread(target=step)
    thread.start()
    try:
        _, domains, begin_s, end_s = run(workdir, top)
    finally:
        end.set()
        thread.join()
    assert domains["gpu-0"]["source"] == "intel_gpu" and domains["gpu-0"]["provenance"] == "measured", domains
    near(domains["gpu-0"]["energy_j"], 75 * (end_s - begin_s), relative=0.015)


if __name__ == "__main__":
    main()
