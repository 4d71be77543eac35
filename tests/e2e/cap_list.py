"""wattle cap list and get: devices with limits, under the sensors' names, and reading changes nothing."""
import json
import os
import shutil

from harness import BUILD, NOBODY, TESTS, Skip, main, near, test

FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
MACHINES = TESTS / "machines"
KEYS = {"device", "name", "current_w", "default_w", "min_w", "max_w", "lease"}
CARDS = """
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
limits_mw 200000 700000 700000 650000
enforced_mw 600000
persistence_off
gpu
uuid GPU-1e5b4d20-0000-4000-8000-000000000001
limits_mw 60000 140000 120000 120000
error nvmlDeviceGetSupportedMemoryClocks 3
"""
WRITES = ("nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks")


def environment(workdir, cards=CARDS, sysfs=None):
    path = workdir.folder / "cards"
    path.write_text(cards)
    (workdir.folder / "empty").mkdir(exist_ok=True)
    return {"WATTLE_SYSFS": str(sysfs or workdir.folder / "empty"), "WATTLE_STATE": str(workdir.folder / "state"),
            "WATTLE_HELPER": "off", "WATTLE_NVML": str(FAKE_NVML), "WATTLE_FAKE_NVML": str(path),
            "WATTLE_FAKE_NVML_CALLS": str(workdir.folder / "calls")}


def calls(workdir):
    return {line.split()[0] for line in (workdir.folder / "calls").read_text().splitlines()}


@test
def listing(workdir):
    """list: the contract's keys, the cards' figures, and no owner of a limit"""
    rows = json.loads(workdir.wattle("cap", "list", "--json", env=environment(workdir)).stdout)
    assert [row["device"] for row in rows] == ["gpu-0", "gpu-1"], rows
    assert all(KEYS <= set(row) for row in rows), rows
    first, second = rows
    assert (first["current_w"], first["default_w"], first["min_w"], first["max_w"]) == (650, 700, 200, 700), first
    assert first["name"] == "NVIDIA H100 80GB HBM3" and first["lease"] is None, first
    near(first["enforced_w"], 600)
    assert (first["clocks"]["min_mhz"], first["clocks"]["max_mhz"]) == (210, 1410), first
    assert second["clocks"] is None, second


@test
def no_set_call(workdir):
    """list and get: set no limits and no clocks"""
    for words in (["list"], ["list", "--json"], ["get", "gpu-0"], ["get", "GPU-1e5b", "--json"]):
        done = workdir.wattle("cap", *words, env=environment(workdir))
        assert done.returncode == 0 and done.stderr == "", done
        assert calls(workdir).isdisjoint(WRITES), calls(workdir)
    assert not (workdir.folder / "cards.limits").exists() and not (workdir.folder / "cards.clocks").exists()
    assert not (workdir.folder / "state").exists()


@test
def in_words(workdir):
    """text: figures, another limiter that is lower, and notes on this driver"""
    text = workdir.wattle("cap", "list", env=environment(workdir)).stdout
    assert "gpu-0   650 W    700 W  200 to 700 W  210 to 1410 MHz" in text, text
    assert "gpu-0: persistence mode is off" in text and "sudo nvidia-smi" in text, text
    one = workdir.wattle("cap", "get", "gpu-0", env=environment(workdir)).stdout
    assert "650 W, but another limiter enforces 600 W" in one and "GPU-8932f937" in one, one


@test
def as_nobody(workdir):
    """user without permission: sees the limits, with the command that sets them"""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    wattle = workdir.for_everybody()[0]
    library = shutil.copy2(FAKE_NVML, workdir.folder)
    env = {**environment(workdir), "WATTLE_NVML": str(library)}
    done = workdir.finish(workdir.start("cap", "list", "--json", program=wattle, env=env, user=NOBODY, group=NOBODY))
    row = json.loads(done.stdout)[0]
    assert row["current_w"] == 650 and row["settable"] is False, row
    assert row["why"] and "sudo wattle cap set gpu-0" in row["remedy"], row
    done = workdir.finish(workdir.start("cap", "list", program=wattle, env=env, user=NOBODY, group=NOBODY))
    assert "gpu-0, gpu-1: only root can set its power limit" in done.stdout, done.stdout


@test
def mistakes(workdir):
    """invalid word: usage error; invalid device: the message lists the valid ones"""
    env = environment(workdir)
    for words, status, text in (([], 2, "a subcommand is missing"),
                                (["lst"], 2, "unknown subcommand 'lst' (did you mean 'list'?)"),
                                (["list", "gpu-0"], 2, "unexpected argument 'gpu-0'"),
                                (["get"], 2, "give one DEVICE"), (["get", "a", "b"], 2, "give one DEVICE"),
                                (["get", "gpu-2"], 1, "valid are: gpu-0, gpu-1"), (["list", "--jsn"], 2, "--jsn")):
        done = workdir.wattle("cap", *words, env=env)
        assert done.returncode == status and text in done.stderr and done.stdout == "", (words, done)
        assert done.stderr.count("\n") == 1, done.stderr


@test
def help_of_each(workdir):
    """cap --help: lists its subcommands, each has a help of its own, and the manual has them all"""
    summary, manual = workdir.wattle("cap", "--help").stdout, workdir.wattle("--manual", "cap").stdout
    for word in ("list", "get", "set", "reset", "tune"):
        assert f"cap {word} " in summary, summary
        done = workdir.wattle("cap", word, "--help")
        assert done.returncode == 0 and f"usage: wattle cap {word} " in done.stdout, done
        assert f".SS wattle cap {word}\n" in manual, word


@test
def nothing(workdir):
    """machine without devices: an empty list with the reason"""
    env = {**environment(workdir), "WATTLE_NVML": "/nonexistent/libnvidia-ml.so.1"}
    assert json.loads(workdir.wattle("cap", "list", "--json", env=env).stdout) == []
    done = workdir.wattle("cap", "list", env=env)
    assert done.returncode == 0 and done.stdout.startswith("This machine has no device with a settable limit.\n"), done
    assert "libnvidia-ml.so.1" in done.stdout and "CPU packages" in done.stdout.replace("\n", " "), done.stdout


@test
def no_such_gpu(workdir):
    """GPU named where NVML is missing or lists none: one line with the GPU, the reason and the remedy"""
    empty = {**environment(workdir), "WATTLE_SYSFS": str(workdir.tree("none", {}))}
    package = {**empty, "WATTLE_SYSFS": str(workdir.tree("sys", {
        "class/powercap/intel-rapl:0/name": "package-0\n",
        "class/powercap/intel-rapl:0/constraint_0_name": "long_term\n",
        "class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "100000000\n"}))}
    (workdir.folder / "no.cards").write_text("")
    no_cards = {"WATTLE_FAKE_NVML": str(workdir.folder / "no.cards")}
    for env, why in [({**empty, "WATTLE_NVML": None}, "libnvidia-ml.so.1 not found; install the NVIDIA driver"),
                     ({**package, "WATTLE_NVML": None}, "libnvidia-ml.so.1 not found; install the NVIDIA driver"),
                     ({**empty, **no_cards}, "the driver reports no GPU; start the container with --gpus all"),
                     ({**package, "WATTLE_FAKE_NVML": None}, "the NVIDIA driver is not loaded; sudo modprobe nvidia")]:
        for words in (["get", "gpu-0"], ["set", "gpu-0", "200"], ["reset", "gpu-0"], ["tune", "gpu-0", "--", "true"]):
            done = workdir.wattle("cap", *words, env=env)
            assert done.returncode == 1 and done.stderr.count("\n") == 1, (words, done)
            assert "'gpu-0'" in done.stderr and why in done.stderr and "CPU packages" not in done.stderr, (words, done)
        for words in (["set", "gpus", "200"], ["tune", "gpus", "--", "true"]):
            done = workdir.wattle("cap", *words, env=env)
            assert why in done.stderr and "CPU packages" not in done.stderr, (words, done)
    done = workdir.wattle("cap", "get", "gpu-0", env={**package, "WATTLE_NVML": "/nonexistent.so"})
    assert "valid are: package-0; NVIDIA: /nonexistent.so not found" in done.stderr, done
    done = workdir.wattle("cap", "get", "package-0", env={**empty, "WATTLE_NVML": None})
    assert "'package-0'" in done.stderr and "CPU packages: the kernel lists none" in done.stderr, done


@test
def names_of_the_sensors(workdir):
    """every machine of tests/machines: a device has the sensors' name"""
    compared = 0
    for machine in sorted(path for path in MACHINES.iterdir() if (path / "sys").is_dir()):
        cards = machine / "nvml.cards"
        env = {**environment(workdir, sysfs=machine / "sys"), "WATTLE_PROCFS": str(machine / "proc"),
               "WATTLE_NVML": str(FAKE_NVML) if cards.exists() else "/nonexistent/libnvidia-ml.so.1",
               "WATTLE_FAKE_NVML": str(cards), "WATTLE_ROCM_SMI": "/nonexistent/librocm_smi64.so"}
        sensors = json.loads((machine / "sensors.json").read_text())["sensors"]
        known = {(row["domain"], row["device"]) for row in sensors}
        for row in json.loads(workdir.wattle("cap", "list", "--json", env=env).stdout):
            names = {device for domain, device in known if domain == row["device"]}
            assert row["name"] in names, (machine.name, row["device"], row["name"], names)
            compared += 1
    assert compared > 20, compared


if __name__ == "__main__":
    main()
