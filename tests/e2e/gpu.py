"""GPUs through the real NVML sensor and a fake library whose cards follow known functions of time."""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess

from harness import BUILD, BURNER, WATTLE, main, near, test, wait_until

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


def environment(workdir, cards=CARDS, library=LIBRARY):
    (workdir.folder / "cards").write_text(cards)
    return {"WATTLE_NVML": str(library), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
            "WATTLE_SYSFS": str(workdir.tree("empty", {})), "CUDA_VISIBLE_DEVICES": None}


def card(*lines):
    """A card with an energy counter, 100 W and these additional lines."""
    return "gpu\npower_mw constant 100000\nutilization_percent 90 10\n" + "".join(f"{line}\n" for line in lines)


def domain_of(report, name="gpu-0"):
    return next(domain for domain in report["energy"]["domains"] if domain["domain"] == name)


def notes(workdir):
    return [text for text, in workdir.rows("select text from event where kind = 'note'")]


def alter(workdir, statement, path="run.sqlite"):
    with contextlib.closing(sqlite3.connect(workdir.folder / path)) as file, file:
        file.execute(statement)


def gpus_of(workdir, *options, env=None, seconds=2, cards=CARDS):
    report, _ = workdir.report(*options, "--", "sleep", seconds, env={**environment(workdir, cards), **(env or {})})
    return report, {gpu["index"]: gpu for gpu in report["gpus"]}


@test
def two_cards(workdir):
    """energy by counter (measured) and by integrated power (derived), memory, use, temperature, limit"""
    report, gpus = gpus_of(workdir)
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
def power_after_the_end(workdir):
    """card with a counter: its power is read once more after the last quick reading; card without: it is not"""
    gpus_of(workdir, seconds=0.5)
    after = workdir.rows(
        "select device.name, device_sample.power_mw, device_sample.energy_uj, device_sample.temperature_c"
                      " from device_sample join device on device_sample.device = device.id, segment"
                      " where device_sample.t_ns > segment.end_ns and power_mw is not null order by t_ns")
    assert [name for name, *_ in after].count("gpu-0") == 2 and [name for name, *_ in after].count("gpu-1") == 1, after
    name, power_mw, energy_uj, temperature = after[-1]
    assert name == "gpu-0" and power_mw == 300000 and energy_uj is not None and temperature is None, after


@test
def old_driver(workdir):
    """driver of 2014: loses metrics, not the GPU: energy is derived from power"""
    report, _ = workdir.report("--", "sleep", "1.5", env=environment(
        workdir, CARDS.replace("error nvmlDeviceGetTotalEnergyConsumption 3", ""),
        LIBRARY.with_name("libnvidia-ml-fake-old.so")))
    assert len(report["gpus"]) == 2
    near(report["gpus"][0]["energy_j"], 300 * report["run"]["duration_s"], relative=0.03)
    assert {d["provenance"] for d in report["energy"]["domains"] if d["kind"] == "gpu"} == {"derived"}


@test
def library_that_takes_signals(workdir):
    """library with a thread that gets the program's SIGCHLD: the run ends with its command, also with --wait-all"""
    env = environment(workdir, "takes_signals\n" + CARDS)
    for options in ([], ["--wait-all"]):
        report, _ = workdir.report(*options, "--", "sh", "-c", "sleep 0.5 & sleep 0.1", env=env)
        assert 0.05 < report["run"]["duration_s"] < 20, report["run"]
        assert len(report["gpus"]) == 2


@test
def chosen_gpus(workdir):
    """--gpus: takes indices and UUIDs; gpus lists the measured ones"""
    for chosen, expected in (("1", [1]), (UUIDS[0], [0]), (f"1,{UUIDS[0]}", [0, 1])):
        _, gpus = gpus_of(workdir, "--gpus", chosen, seconds=0.3)
        assert sorted(gpus) == expected, (chosen, gpus)
    done = workdir.wattle("run", "--gpus", "7", "-o", "x.sqlite", "--", "true", env=environment(workdir))
    assert done.returncode == 125 and "--gpus" in done.stderr and UUIDS[0] in done.stderr, done


@test
def visible_devices(workdir):
    """CUDA_VISIBLE_DEVICES: indices, UUIDs and abbreviated UUIDs; an empty list hides all"""
    for value, expected in (("1", [1]), ("0,1", [0, 1]), (UUIDS[1], [1]), ("GPU-8932", [0]), ("", []), ("-1", []),
                            ("1,-1,0", [1]), ("NoDevFiles", [])):
        _, gpus = gpus_of(workdir, env={"CUDA_VISIBLE_DEVICES": value, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, seconds=0.2)
        assert sorted(gpus) == expected, (value, gpus)


@test
def calibration(workdir):
    """uncalibrated GPU: ± 10 % beside error_j, for counters and integrated power, added over GPUs; --gpu-gain corrects
    and narrows"""
    report, gpus = gpus_of(workdir, seconds=1)
    energy = report["energy"]
    for gpu in gpus.values():
        near(gpu["calibration_error_j"], 0.1 * gpu["energy_j"], relative=1e-9)
    near(energy["calibration_error_j"], 0.1 * sum(gpu["energy_j"] for gpu in gpus.values()), relative=1e-9)
    assert gpus[0]["error_j"] < 0.05 * gpus[0]["energy_j"], gpus[0]  # without the calibration
    assert all(domain["calibration_error_j"] is None for domain in energy["domains"] if domain["kind"] != "gpu"), energy
    assert domain_of(report)["calibration_source"] == "uncalibrated", domain_of(report)
    raw = workdir.rows("select max(energy_uj) - min(energy_uj) from device_sample where device = 0")
    workdir.wattle("run", "-o", "gain.sqlite", "--gpu-gain", "0=1.25±2", "--gpu-gain", "1=0.8", "--", "sleep", 1,
                env=environment(workdir))
    report = json.loads(workdir.wattle("report", "gain.sqlite", "--format", "json").stdout)
    gpus = {gpu["index"]: gpu for gpu in report["gpus"]}
    near(gpus[0]["energy_j"], 1.25 * 300 * report["run"]["duration_s"], relative=0.03)
    near(gpus[1]["energy_j"], 0.8 * 8.5 * report["run"]["duration_s"], relative=0.03)
    near(gpus[0]["mean_w"], 375, relative=0.03)
    near(gpus[0]["max_w"], 375, relative=0.15)
    near(gpus[0]["calibration_error_j"], 0.02 * gpus[0]["energy_j"], relative=1e-9)
    near(gpus[1]["calibration_error_j"], 0.1 * gpus[1]["energy_j"], relative=1e-9)
    near(report["energy"]["calibration_error_j"], sum(gpu["calibration_error_j"] for gpu in gpus.values()),
         relative=1e-9)
    first = domain_of(report)
    assert (first["calibration_factor"], first["calibration_source"]) == (1.25, "--gpu-gain"), first
    near(first["calibration_error_percent"], 2, relative=1e-9)
    stored = workdir.rows("select max(energy_uj) - min(energy_uj) from device_sample where device = 0", "gain.sqlite")
    near(stored[0][0], raw[0][0], relative=0.2)  # as read: 300 W of one second, not 375
    text = workdir.wattle("report", "gain.sqlite").stdout
    assert "(reading) ±" in text and "(GPU calibration)" in text and "gpu-0 1.250 ± 2.0 % (--gpu-gain)" in text, text
    assert "GPU calibration" in workdir.wattle("report", "gain.sqlite", "--format", "html").stdout


@test
def calibration_of_the_state_folder(workdir):
    """stored calibration: applied to the GPU with its UUID, in run, sensors and the library's meter; a damaged one is
    reported"""
    state = workdir.folder / "state"
    state.mkdir()
    env = {**environment(workdir), "WATTLE_STATE": str(state)}
    (state / "gpu-gain").write_text(f"wattle-gpu-gain/1\n{UUIDS[0]} 1.10 3 2026-01-31T12:00:00Z\n")
    report, gpus = gpus_of(workdir, env=env, seconds=1)
    near(gpus[0]["energy_j"], 330 * report["run"]["duration_s"], relative=0.03)
    near(gpus[0]["calibration_error_j"], 0.03 * gpus[0]["energy_j"], relative=1e-9)
    assert domain_of(report)["calibration_source"].endswith("--calibrate-gpu 2026-01-31T12:00:00Z"), domain_of(report)
    listing = json.loads(workdir.wattle("sensors", "--json", env=env).stdout)["calibrations"]
    assert [(row["domain"], row["factor"], row["source"] == "uncalibrated") for row in listing] == [
        ("gpu-0", 1.1, False), ("gpu-1", None, True)], listing
    (state / "gpu-gain").write_text("wattle-gpu-gain/1\nGPU 1\n")
    done = workdir.wattle("run", "-o", "x.sqlite", "--", "true", env=env)
    assert done.returncode == 0 and "gpu-gain is not used: the file is damaged" in done.stderr, done


@test
def old_run_files(workdir):
    """run file from before calibrations existed: loads, and its GPUs count as uncalibrated"""
    gpus_of(workdir, seconds=0.5)
    for column in ("gain", "gain_error", "gain_source"):
        alter(workdir, f"alter table device drop column {column}")
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    near(report["energy"]["calibration_error_j"], 0.1 * sum(gpu["energy_j"] for gpu in report["gpus"]), relative=1e-9)


@test
def gains_that_are_refused(workdir):
    """--gpu-gain: an invalid factor, out of range or of no measured GPU, is refused before anything starts"""
    for gain, words in (("0", "give INDEX=FACTOR±PERCENT"), ("0=3±2", "FACTOR must be from 0.5 to 2"),
                        ("0=1±0", "PERCENT from 0.1 to 50"), ("7=1.03±2", "not measured; measured GPUs: 0, 1"),
                        ("0=nan", "is not valid")):
        done = workdir.wattle("run", "--gpu-gain", gain, "-o", "x.sqlite", "--", "touch", workdir.folder / "ran",
                           env=environment(workdir))
        assert done.returncode == 125 and "--gpu-gain" in done.stderr and words in done.stderr, (gain, done)
        assert done.stderr.count("\n") == 1 and not (workdir.folder / "ran").exists(), (gain, done)


@test
def attribution(workdir):
    """GPU energy: attributed to the target by SM time: eight ninths"""
    report, _ = gpus_of(workdir, "--gpus", "0")
    domain = next(d for d in report["energy"]["domains"] if d["domain"] == "gpu-0")
    assert domain["target_j"] is not None and domain["target_j"] > 0.5 * domain["energy_j"], domain
    assert "sm" in domain["attribution"].lower(), domain


@test
def lost_gpu(workdir):
    """GPU lost during the run: the run continues, the energy up to then is kept"""
    report, gpus = gpus_of(workdir, cards=CARDS.replace("temperature_c 55", "temperature_c 55\nlost_after_ms 1000"))
    assert gpus[0]["energy_j"] is None or 100 < gpus[0]["energy_j"] < 800, gpus[0]
    near(gpus[1]["energy_j"], 8.5 * report["run"]["duration_s"], relative=0.03)


@test
def gpu_that_comes_back(workdir):
    """GPU lost for a while: its counter covers the energy meanwhile, and the run reports it"""
    report, gpus = gpus_of(workdir, cards=card("lost_after_ms 700 1200"), seconds=4)
    near(gpus[0]["energy_j"], 100 * report["run"]["duration_s"], relative=0.03)
    assert any("fell off the bus" in note for note in notes(workdir)), notes(workdir)


@test
def mig(workdir):
    """GPU divided into instances: energy counted once, the target's share by its slices"""
    cards = card("mig MIG-a 1 0 3 42 20000000000 NVIDIA A100-SXM4-40GB MIG 3g.20gb",
                 "mig MIG-b 2 0 4 56 20000000000 NVIDIA A100-SXM4-40GB MIG 4g.20gb",
                 "mig_process 0 descendants C 0 1000000000", "mig_process 1 1 C 0 1000000000",
                 "error nvmlDeviceGetUtilizationRates 3", "error nvmlDeviceGetProcessUtilization 3")
    report, gpus = gpus_of(workdir, cards=cards, seconds=2)
    domain = domain_of(report)
    near(domain["energy_j"], 100 * report["run"]["duration_s"], relative=0.02)
    near(domain["target_j"], domain["energy_j"] * 3 / 7, relative=0.1)
    assert "mig" in domain["attribution"].lower(), domain
    rows = json.loads(workdir.wattle("sensors", "--json", env=environment(workdir, cards)).stdout)["sensors"]
    parts = [row for row in rows if row["sensor"] == "nvml" and row["inside"] == "gpu-0"]
    assert [row["uuid"] for row in parts] == ["MIG-a", "MIG-b"], parts
    assert "by SM slices, 3 of 7" in parts[0]["why"] and not parts[0]["used"], parts


@test
def mig_without_instances(workdir):
    """driver that lists an instance's processes on the whole GPU only: divided by memory, and not idle"""
    cards = card("mig MIG-a 1 0 3 42 20000000000", "process descendants C 0 3000000000", "process 1 C 0 1000000000",
                 "error nvmlDeviceGetProcessUtilization 3")
    report, _ = gpus_of(workdir, cards=cards, seconds=2)
    domain = domain_of(report)
    assert domain["attribution"] == "gpu memory", domain
    near(domain["target_j"], domain["energy_j"] * 3 / 4, relative=0.1)


@test
def no_count(workdir):
    """driver that starts but cannot count its GPUs: a reported failure, not a machine without GPUs"""
    cards = "error nvmlDeviceGetCount 999\n" + card()
    workdir.report("--", "true", env=environment(workdir, cards))
    told = [text for text, in workdir.rows("select text from event where kind = 'warning'")]
    assert any("gpu-0 (nvml)" in text for text in told), told


@test
def nonsense_percents(workdir):
    """utilization that is no percentage: unknown; samples from the far future do not hide later ones"""
    cards = card("process descendants C 30 1000000000", "process 1 C 70 1000000000", "garbage").replace(
        "utilization_percent 90 10", "utilization_percent 2147483632 10")
    report, gpus = gpus_of(workdir, cards=cards, seconds=3)
    assert gpus[0]["mean_utilization_percent"] is None, gpus[0]
    near(gpus[0]["target_mean_utilization_percent"], 30, absolute=1)
    near(domain_of(report)["target_j"], domain_of(report)["energy_j"] * 0.3, relative=0.1)


@test
def module(workdir):
    """Grace-Hopper that answers for the module only: shown as such, and not in the total as a GPU"""
    refused = ["error nvmlDeviceGetTotalEnergyConsumption 3", "error nvmlDeviceGetPowerUsage 3", "field_error 185 0 3",
               "field_error 186 0 3", "module_mw 600000"]
    report, gpus = gpus_of(workdir, cards=card(*refused), seconds=2)
    near(domain_of(report, "module-0")["energy_j"], 600 * report["run"]["duration_s"], relative=0.02)
    assert domain_of(report, "module-0")["kind"] == "module"
    assert gpus[0]["energy_j"] is None, gpus
    near(gpus[0]["mean_utilization_percent"], 90, absolute=0.01)
    assert report["energy"]["total_j"] < 300 * report["run"]["duration_s"], report["energy"]["total_j"]


@test
def module_and_memory(workdir):
    """Grace-Blackwell: power of module and memory beside the GPU's: shown, not added; the memory is attributed as its
    GPU"""
    cards = card("module_mw 467000", "memory_mw 38000", "field_error 191 1 3", "field_error 191 2 3",
                 "process descendants C 60 1000000000", "process 1 C 20 1000000000")
    report, gpus = gpus_of(workdir, cards=cards, seconds=2)
    duration_s = report["run"]["duration_s"]
    gpu, module, memory = (domain_of(report, name) for name in ("gpu-0", "module-0", "gpu-0-memory"))
    near(gpu["energy_j"], 100 * duration_s, relative=0.03)
    near(module["energy_j"], 467 * duration_s, relative=0.03)
    near(memory["energy_j"], 38 * duration_s, relative=0.03)
    assert (module["kind"], memory["kind"]) == ("module", "gpu-memory"), (module, memory)
    near(memory["target_j"] / memory["energy_j"], gpu["target_j"] / gpu["energy_j"], relative=0.05)
    added = [domain["energy_j"] for domain in report["energy"]["domains"] if domain["domain"] in ("gpu-0", "package-0")]
    near(report["energy"]["total_j"], sum(added), relative=1e-6)
    assert len(gpus) == 1, gpus


@test
def module_only_sensors(workdir):
    """wattle sensors: a GPU with only its module's power is listed as unreadable, with the reason and the remedy"""
    cards = card("error nvmlDeviceGetTotalEnergyConsumption 3", "error nvmlDeviceGetPowerUsage 3", "module_mw 600000",
                 "memory_mw 38000", "field_error 185 0 3", "field_error 186 0 3", "field_error 185 2 4",
                 "field_error 186 2 4", "field_error 191 2 4")
    rows = json.loads(workdir.wattle("sensors", "--json", env=environment(workdir, cards)).stdout)["sensors"]
    gpu, module, memory = [row for row in rows if row["sensor"] == "nvml"]
    assert not gpu["readable"] and not gpu["used"] and gpu["last"] is None and gpu["inside"] == "module-0", gpu
    assert "module-0" in gpu["why"] and "nvidia-smi" in gpu["remedy"], gpu
    assert module["domain"] == "module-0" and module["used"] and module["last"] > 0 and not module["in_total"], module
    assert memory["domain"] == "gpu-0-memory" and not memory["readable"] and "permission" in memory["why"], memory
    assert memory["inside"] == "gpu-0" and memory["remedy"] and memory["last"] is None, memory
    text = workdir.wattle("sensors", env=environment(workdir, cards)).stdout
    assert "gpu-0 can't be read and is missing from the total." in " ".join(text.split()), text


@test
def modules_by_socket(workdir):
    """modules are numbered by CPU socket: two GPUs of socket 1 are in one module-1, which is read once"""
    files = {}
    for bus, node in ((1, 1), (2, 1), (3, 0)):
        folder = f"bus/pci/devices/0000:{bus:02}:00.0"
        files |= {f"{folder}/vendor": "0x10de\n", f"{folder}/class": "0x030200\n", f"{folder}/numa_node": f"{node}\n"}
    env = {**environment(workdir, 3 * card("module_mw 467000")), "WATTLE_SYSFS": str(workdir.tree("sockets", files))}
    rows = json.loads(workdir.wattle("sensors", "--json", env=env).stdout)["sensors"]
    inside = {row["domain"]: row["inside"] for row in rows if row["sensor"] == "nvml"}
    assert inside == {"gpu-0": "module-1", "gpu-1": "module-1", "gpu-2": "module-0", "module-0": None,
                      "module-1": None}, inside


@test
def module_of_chosen_gpu(workdir):
    """--gpus with the second GPU of a module: the module's power is read through that one"""
    files = {}
    for bus in (1, 2):
        folder = f"bus/pci/devices/0000:{bus:02}:00.0"
        files |= {f"{folder}/vendor": "0x10de\n", f"{folder}/class": "0x030200\n", f"{folder}/numa_node": "1\n"}
    env = {"WATTLE_SYSFS": str(workdir.tree("sockets", files))}
    report, gpus = gpus_of(workdir, "--gpus", "1", env=env, cards=2 * card("module_mw 467000"), seconds=1)
    assert list(gpus) == [1], gpus
    near(domain_of(report, "module-1")["energy_j"], 467 * report["run"]["duration_s"], relative=0.05)


@test
def memory_by_uuid(workdir):
    """UUIDs GPU-1 and GPU-10: each memory is attributed as its own GPU"""
    busy = "process descendants C 60 1000000000", "process 1 C 20 1000000000"
    cards = card("uuid GPU-1", "memory_mw 38000") + card("uuid GPU-10", "memory_mw 38000", *busy)
    report, _ = gpus_of(workdir, cards=cards, seconds=2)
    for index in (0, 1):
        gpu, memory = domain_of(report, f"gpu-{index}"), domain_of(report, f"gpu-{index}-memory")
        near(memory["target_j"] / memory["energy_j"], gpu["target_j"] / gpu["energy_j"], absolute=0.02)
    assert gpu["target_j"] > 0.5 * gpu["energy_j"], gpu


@test
def power_buffer(workdir):
    """no energy counter and power that varies faster than the interval: the driver's own samples are used"""
    swing = "power_mw step 100000 300000 100 30\npower_samples 5 400\nerror nvmlDeviceGetTotalEnergyConsumption 3\n"
    report, gpus = gpus_of(workdir, cards="gpu\n" + swing, seconds=3)
    near(gpus[0]["energy_j"], 160 * report["run"]["duration_s"], relative=0.06)


@test
def accounting(workdir):
    """process that ran between two readings: counted where the driver keeps accounting data"""
    cards = card("accounting", "process 1 C 0 1000", "process file:pids C 0 7000000000 1030 1070")
    script = "echo $$ > pids; sleep 3"
    report, _ = workdir.report("--", "sh", "-c", script, env=environment(workdir, cards))
    assert report["gpus"][0]["target_max_memory_bytes"] == 7000000000, report["gpus"]


@test
def asleep(workdir):
    """laptop with a suspended GPU: woken neither by a run nor by wattle sensors; the run reports it"""
    device = "bus/pci/devices/0000:01:00.0"
    env = {**environment(workdir, card()), "WATTLE_FAKE_NVML_CALLS": str(workdir.folder / "calls"), "WATTLE_SYSFS": str(
        workdir.tree("sys", {f"{device}/vendor": "0x10de\n", f"{device}/class": "0x030000\n",
                          f"{device}/power/runtime_status": "suspended\n"}))}
    report, _ = workdir.report("--", "sleep", "0.5", env=env)
    assert report["gpus"][0]["energy_j"] is None, report["gpus"]
    assert any("suspended" in note for note in notes(workdir)), notes(workdir)
    rows = json.loads(workdir.wattle("sensors", "--json", env=env).stdout)["sensors"]
    row = next(row for row in rows if row["sensor"] == "nvml")
    assert "suspended" in row["why"] and not row["used"], row
    assert not (workdir.folder / "calls").exists()


# ---- process ids of another namespace ----

HOST_PID = 4000000  # above the kernel's largest pid, so it exists in no namespace


def run_words(workdir, *command):
    return [WATTLE, "run", "-q", "--overwrite", "-o", workdir / "run.sqlite", "--json", workdir / "report.json", "--",
            *command]


def in_namespace(workdir, cards, *command, prefix=("unshare", "--pid", "--fork", "--mount-proc")):
    """A run in a pid namespace of its own, with a driver that reports the host's pids."""
    from containers import need
    need(workdir, *prefix)
    words = [*prefix, *run_words(workdir.folder, *command)]
    done = workdir.finish(workdir.start(*words[1:], program=words[0], env=environment(workdir, cards)))
    assert done.returncode == 0, done
    return json.loads((workdir.folder / "report.json").read_text())


@test
def host_pids(workdir):
    """container, driver reports host pids: the GPU is the target's, because no other process is there to use it"""
    report = in_namespace(workdir, card(f"process {HOST_PID} C 50 1000000"), "sleep", "2")
    domain = domain_of(report)
    near(domain["target_j"], domain["energy_j"], relative=0.01)
    assert "exclusiv" in domain["attribution"], domain
    assert report["gpus"][0]["target_max_memory_bytes"] is None, report["gpus"]
    assert any("another PID namespace" in note and "exclusive use" in note for note in notes(workdir)), notes(workdir)


@test
def equal_numbers(workdir):
    """container: a host pid equal to one of the target's is not matched"""
    cards = card("process descendants C 0 111", f"process {HOST_PID} C 50 1000000")
    report = in_namespace(workdir, cards, "sleep", "2")
    assert report["gpus"][0]["target_max_memory_bytes"] is None, report["gpus"]


@test
def translated_pids(workdir):
    """container, driver translates pids: numbers are equal, and no note is printed"""
    report = in_namespace(workdir, card("process descendants C 50 1000000"), "sleep", "2")
    assert "sm" in domain_of(report)["attribution"].lower(), report
    assert report["gpus"][0]["target_max_memory_bytes"] == 1000000, report["gpus"]
    assert not any("namespace" in note for note in notes(workdir)), notes(workdir)


HOST_PROC = """mount --bind /proc hostproc && exec unshare --pid --fork --mount-proc "$@" """


@test
def host_proc(workdir):
    """container with the host's /proc: the driver's host pids are found there, the target's CPU time too"""
    from containers import need
    (workdir.folder / "hostproc").mkdir()
    prefix = ("unshare", "--mount", "sh", "-c", HOST_PROC, "sh")
    need(workdir, *prefix)
    env = {**environment(workdir, card("process file:pids C 50 1000000", "process 1 C 30 500000")),
           "WATTLE_PROCFS": str(workdir.folder / "hostproc")}
    process = workdir.start(*prefix[1:], *run_words(workdir.folder, "sleep", "2.5"), program=prefix[0], env=env)
    pid = wait_until(lambda: find_process(b"sleep\0002.5\0"), "the target")
    (workdir.folder / "pids").write_text(f"{pid}\n")
    assert workdir.finish(process).returncode == 0
    report = json.loads((workdir.folder / "report.json").read_text())
    assert report["gpus"][0]["target_max_memory_bytes"] == 1000000, report["gpus"]
    assert report["cpu"]["target_cpu_s"] < 0.5, report["cpu"]


def find_process(cmdline):
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == cmdline:
                return int(path.parent.name)
    return None


DEVICES = """mount -t tmpfs none /dev && mknod /dev/null c 1 3 && touch /dev/nvidia0 /dev/nvidiactl && exec "$@" """


@test
def descriptors(workdir):
    """container: as many target processes have the GPU open as the driver lists, so they are matched"""
    prefix = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", DEVICES, "sh")
    report = in_namespace(workdir, card(f"process {HOST_PID} C 50 1000000"), "sh", "-c", "exec sleep 2 3</dev/nvidia0",
                          prefix=prefix)
    domain = domain_of(report)
    near(domain["target_j"], domain["energy_j"], relative=0.06)
    assert "sm" in domain["attribution"].lower(), domain
    assert report["gpus"][0]["target_max_memory_bytes"] == 1000000, report["gpus"]
    assert any("descriptors" in note for note in notes(workdir)), notes(workdir)


@test
def oci_container(workdir):
    """in a real OCI container"""
    from containers import container, tidy
    library = BUILD / "tests/fakes/nvml"
    for name, text in environment(workdir, card(f"process {HOST_PID} C 50 1000000")).items():
        workdir.environment[name] = text or ""
    workdir.environment["WATTLE_FAKE_NVML"] = "/room/cards"
    try:
        words = container(workdir, "/usr/bin/env", f"WATTLE_NVML=/room/{LIBRARY.name}", "WATTLE_FAKE_NVML=/room/cards",
                          *run_words(pathlib.Path("/room"), "sleep", "2"))
        subprocess.run(["cp", library / LIBRARY.name, workdir.folder], check=True)
        done = workdir.finish(workdir.start(*words[1:], program=words[0]))
    finally:
        tidy()
    assert done.returncode == 0, done
    report = json.loads((workdir.folder / "report.json").read_text())
    domain = domain_of(report)
    near(domain["target_j"], domain["energy_j"], relative=0.01)
    assert any("another PID namespace" in note for note in notes(workdir)), notes(workdir)


@test
def broken_libraries(workdir):
    """invalid library, library without a driver, library that refuses: no GPU, no crash"""
    (workdir.folder / "text.so").write_text("no library")
    for library, cards in ((workdir.folder / "text.so", CARDS), (LIBRARY, "nonsense"),
                           (LIBRARY, "error nvmlInit 9\n" + CARDS), (LIBRARY, "error nvmlDeviceGetCount 999\n" + CARDS),
                           ("/usr/lib/x86_64-linux-gnu/libm.so.6", CARDS)):
        report, _ = workdir.report("--", "true", env=environment(workdir, cards, library))
        assert report["gpus"] == [], (library, report["gpus"])


@test
def tracking_file(workdir):
    """GPU memory and utilization are in gpu_tracker's file"""
    from tracking import read_csv
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--tracking-file", "track.csv", "--gpu-ram-unit",
                          "megabytes",
                          "--", BURNER, "cpu", "1", env=environment(workdir))
    assert done.returncode == 0, done
    static, data = read_csv(workdir.folder / "track.csv")
    assert static["system_gpu_count"] == 2 and static["n_expected_gpus"] == 2, static
    near(max(row["system_gpu_ram"] for row in data), 2000, absolute=1)
    near(max(row["combined_gpu_ram"] for row in data), 1500, absolute=1)
    near(max(row["gpu_sum_utilization_percent"] for row in data), 90, absolute=1)


@test
def capacity_of_all(workdir):
    """one of two GPUs measured: GPU memory capacity and count are the machine's, in all outputs"""
    from tracking import read_csv
    env = environment(workdir)
    capacity = (85520809984 - 600000000 + 6442450944 - (512 << 20)) / 1e9  # without memory reserved by the driver
    for options, hidden in ((("--gpus", "1"), None), ((), "1")):
        report, _ = workdir.report("--overwrite", "--tracking-file", "track.csv", *options, "--", BURNER, "cpu", "0.3",
                                env={**env, "CUDA_VISIBLE_DEVICES": hidden})
        usage = report["resource_usage"]
        near(usage["max_gpu_ram"]["system_capacity"], capacity, relative=1e-9)
        counts = usage["gpu_utilization"]
        assert (counts["system_gpu_count"], counts["n_expected_gpus"]) == (2, 1), usage
        workdir.wattle("export", "run.sqlite", "--format", "gpu_tracker", "-o", "export.csv")
        blocks = json.loads(workdir.wattle("blocks", "run.sqlite", "--format", "json").stdout)["static_data"]
        for static in (read_csv(workdir.folder / "track.csv")[0], read_csv(workdir.folder / "export.csv")[0], blocks):
            near(static["gpu_ram_system_capacity"], capacity, relative=1e-9)
            assert (static["system_gpu_count"], static["n_expected_gpus"]) == (2, 1), static
        for name in ("track.csv", "export.csv"):
            (workdir.folder / name).unlink()


@test
def sensors(workdir):
    """wattle sensors: lists both cards, also if CUDA_VISIBLE_DEVICES hides them"""
    env = {**environment(workdir), "CUDA_VISIBLE_DEVICES": "1"}
    rows = json.loads(workdir.wattle("sensors", "--json", env=env).stdout)["sensors"]
    assert [row["domain"] for row in rows if row["sensor"] == "nvml"] == ["gpu-0", "gpu-1"], rows


if __name__ == "__main__":
    main()
