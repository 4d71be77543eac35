"""GPUs through the real NVML back end and a fake library whose cards follow known functions of time."""
import json
import os

from harness import BUILD, BURNER, main, near, test

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
UUIDS = ["GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-1e5b4d20-0000-4000-8000-000000000001"]
CARDS = f"""
gpu
name NVIDIA H100 80GB HBM3
uuid {UUIDS[0]}
memory_total_bytes 85520809984
memory_reserved_bytes 600000000
memory_used_bytes 2000000000
power_mw constant 300000
energy_start_mj 123456789
temperature_c 55
utilization_percent 90 40
throttle_bits 4
limits_mw 200000 700000 700000 650000
process descendants C 80 1500000000
process 1 C 10 250000000
gpu
name NVIDIA GeForce GTX 1060
uuid {UUIDS[1]}
memory_total_bytes 6442450944
power_mw constant 8500
limits_mw 60000 140000 120000 120000
error nvmlDeviceGetTotalEnergyConsumption 3
"""


def environment(room, cards=CARDS, library=LIBRARY):
    (room.folder / "cards").write_text(cards)
    return {"WATTLE_NVML": str(library), "WATTLE_FAKE_NVML": str(room.folder / "cards"),
            "WATTLE_SYSFS": str(room.tree("empty", {})), "CUDA_VISIBLE_DEVICES": None}


def gpus_of(room, *options, env=None, seconds=2, cards=CARDS):
    report, _ = room.report(*options, "--", "sleep", seconds, env={**environment(room, cards), **(env or {})})
    return report, {gpu["index"]: gpu for gpu in report["gpus"]}


@test
def two_cards(room):
    """energy by counter (measured) and by integrated power (derived), memory, use, temperature, limit"""
    report, gpus = gpus_of(room)
    seconds = report["run"]["duration_s"]
    assert [gpu["uuid"] for gpu in report["gpus"]] == UUIDS
    near(gpus[0]["energy_j"], 300 * seconds, relative=0.02)
    near(gpus[1]["energy_j"], 8.5 * seconds, relative=0.02)
    assert gpus[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert gpus[0]["max_memory_bytes"] == 2000000000, gpus[0]
    assert gpus[0]["target_max_memory_bytes"] == 1500000000, gpus[0]
    near(gpus[0]["mean_utilization_percent"], 90, absolute=1)
    near(gpus[0]["target_mean_utilization_percent"], 80, absolute=10)
    assert (gpus[0]["max_temperature_c"], gpus[0]["cap_w"]) == (55, 650), gpus[0]
    near(gpus[0]["throttled_s"], seconds, relative=0.2)
    provenance = {domain["domain"]: domain["provenance"] for domain in report["energy"]["domains"]}
    assert provenance["gpu-0"] == "measured" and provenance["gpu-1"] == "derived", provenance


@test
def old_driver(room):
    """a driver of 2014 loses metrics, not the GPU: energy is derived from power"""
    report, _ = room.report("--", "sleep", "1.5", env=environment(
        room, CARDS.replace("error nvmlDeviceGetTotalEnergyConsumption 3", ""),
        LIBRARY.with_name("libnvidia-ml-fake-old.so")))
    assert len(report["gpus"]) == 2
    near(report["gpus"][0]["energy_j"], 300 * report["run"]["duration_s"], relative=0.03)
    assert {d["provenance"] for d in report["energy"]["domains"] if d["kind"] == "gpu"} == {"derived"}


@test
def chosen_gpus(room):
    """--gpus takes indices and UUIDs; gpus lists the measured ones"""
    for chosen, expected in (("1", [1]), (UUIDS[0], [0]), (f"1,{UUIDS[0]}", [0, 1])):
        _, gpus = gpus_of(room, "--gpus", chosen, seconds=0.3)
        assert sorted(gpus) == expected, (chosen, gpus)
    done = room.wattle("run", "--gpus", "7", "-o", "x.sqlite", "--", "true", env=environment(room))
    assert done.returncode == 125 and "--gpus" in done.stderr and UUIDS[0] in done.stderr, done


@test
def visible_devices(room):
    """CUDA_VISIBLE_DEVICES: indices, UUIDs and prefixes; none of them is none"""
    for value, expected in (("1", [1]), ("0,1", [0, 1]), (UUIDS[1], [1]), ("GPU-8932", [0]), ("", []), ("-1", []),
                            ("1,-1,0", [1]), ("NoDevFiles", [])):
        _, gpus = gpus_of(room, env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, seconds=0.2)
        assert sorted(gpus) == expected, (value, gpus)


@test
def attribution(room):
    """a GPU's energy goes to the target by SM time: eight parts of nine"""
    report, _ = gpus_of(room, "--gpus", "0")
    domain = next(d for d in report["energy"]["domains"] if d["domain"] == "gpu-0")
    assert domain["target_j"] is not None and domain["target_j"] > 0.5 * domain["energy_j"], domain
    assert "sm" in domain["attribution"].lower(), domain


@test
def lost_gpu(room):
    """a GPU that falls off the bus during the run: the run goes on, its energy up to then stands"""
    report, gpus = gpus_of(room, cards=CARDS.replace("temperature_c 55", "temperature_c 55\nlost_after_ms 1000"))
    assert gpus[0]["energy_j"] is None or 100 < gpus[0]["energy_j"] < 800, gpus[0]
    near(gpus[1]["energy_j"], 8.5 * report["run"]["duration_s"], relative=0.03)


@test
def broken_libraries(room):
    """a library that is none, one without a driver, one that refuses: no GPU, no crash"""
    (room.folder / "text.so").write_text("no library")
    for library, cards in ((room.folder / "text.so", CARDS), (LIBRARY, "nonsense"),
                           (LIBRARY, "error nvmlInit 9\n" + CARDS), (LIBRARY, "error nvmlDeviceGetCount 999\n" + CARDS),
                           ("/usr/lib/x86_64-linux-gnu/libm.so.6", CARDS)):
        report, _ = room.report("--", "true", env=environment(room, cards, library))
        assert report["gpus"] == [], (library, report["gpus"])


@test
def tracking_file(room):
    """GPU memory and use are in gpu_tracker's file"""
    from tracking import read_csv
    done = room.wattle("run", "-q", "-o", "run.sqlite", "--tracking-file", "track.csv", "--gpu-ram-unit", "megabytes",
                       "--", BURNER, "cpu", "1", env=environment(room))
    assert done.returncode == 0, done
    static, data = read_csv(room.folder / "track.csv")
    assert static["system_gpu_count"] == 2 and static["n_expected_gpus"] == 2, static
    near(max(row["system_gpu_ram"] for row in data), 2000, absolute=1)
    near(max(row["combined_gpu_ram"] for row in data), 1500, absolute=1)
    near(max(row["gpu_sum_utilization_percent"] for row in data), 90, absolute=1)


@test
def sensors(room):
    """wattle sensors lists both cards, also where CUDA_VISIBLE_DEVICES hides them"""
    env = {**environment(room), "CUDA_VISIBLE_DEVICES": "1"}
    rows = json.loads(room.wattle("sensors", "--json", env=env).stdout)["sensors"]
    assert [row["domain"] for row in rows if row["sensor"] == "nvml"] == ["gpu-0", "gpu-1"], rows


if __name__ == "__main__":
    main()
