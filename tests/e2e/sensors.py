"""wattle sensors: the doctor, the capture of a machine, and the idle power of one that is provably idle."""
import filecmp
import json
import os
import pathlib
import re
import shutil
import sys
import threading
import time

from harness import BUILD, BURNER, NOBODY, TESTS, Skip, main, near, run_first, test, wait_until

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
NO_NVML = {"WATTLE_NVML": "/nonexistent/libnvidia-ml.so.1", "WATTLE_STATE": "/nonexistent"}
METAL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU\nflags\t\t: fpu vme msr\n\n"
VM = METAL.replace("msr", "msr hypervisor")


def zone(name, energy_uj=1000):
    return {"name": f"{name}\n", "energy_uj": f"{energy_uj}\n", "max_energy_range_uj": "262143328850\n"}


def machine(room, name, zones=(), cpuinfo=METAL, more=()):
    """Folders for /sys and /proc, and the environment in which wattle takes them for its own."""
    sys_files = {f"class/powercap/intel-rapl:{i}/{file}": text for i, what in enumerate(zones)
                 for file, text in zone(what).items()}
    sys = room.tree(f"{name}-sys", {"kernel/.keep": "", **sys_files, **dict(more)})
    proc = room.tree(f"{name}-proc", {"cpuinfo": cpuinfo})
    return {"WATTLE_SYSFS": str(sys), "WATTLE_PROCFS": str(proc), **NO_NVML}


def known_machine(name):
    top = TESTS / "machines" / name
    nvml = cards_of(top / "nvml.cards") if (top / "nvml.cards").exists() else NO_NVML
    return {"WATTLE_SYSFS": str(top / "sys"), "WATTLE_PROCFS": str(top / "proc"), **nvml}


def doctor(room, env, *options):
    done = room.wattle("sensors", "--json", *options, env=env)
    return json.loads(done.stdout)["sensors"], done


def row_of(rows, sensor, domain):
    found = [row for row in rows if row["sensor"] == sensor and row["domain"] == domain]
    assert len(found) == 1, (sensor, domain, rows)
    return found[0]


def simulate(room, name, *options):
    """A /sys whose counters move, until the end of the test."""
    top = room.folder / name
    assert room.start(top, *options, program=SIMULATOR).stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top), **NO_NVML}


# ---- the doctor ----

@test
def status(room):
    """the status is 0 where something is measured, 1 where all is estimated, 2 for a wrong use"""
    measured, estimated = machine(room, "metal", ["package-0"]), machine(room, "vm", cpuinfo=VM)
    for options in ([], ["--json"]):
        assert room.wattle("sensors", *options, env=measured).returncode == 0
        done = room.wattle("sensors", *options, env=estimated)
        assert done.returncode == 1 and "package-0" in done.stdout, done
    for wrong in (["--jsn"], ["extra"], ["--json", "--calibrate-idle"], ["--seconds", "3"],
                  ["--calibrate-idle", "--seconds", "0"], ["--capture"]):
        done = room.wattle("sensors", *wrong, env=measured)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout, (wrong, done)


def assert_fits(text):
    lines = text.splitlines()
    for at, line in enumerate(lines):
        assert len(line) <= 80 or line.startswith("    ") and lines[at - 1].endswith(":"), line
        assert line == line.rstrip(), line


@test
def text(room):
    """the text fits 80 columns but for commands, which stand alone on their lines, and ends with a verdict"""
    names = sorted(path.name for path in (TESTS / "machines").iterdir() if (path / "sys").is_dir())
    for name in names:
        done = room.wattle("sensors", env=known_machine(name))
        assert_fits(done.stdout)
        assert "\nWhat a run on this machine will say\n" in done.stdout, (name, done.stdout)


@test
def verdict(room):
    """the verdict names what is measured, what is shown beside it, and what can't be read"""
    done = room.wattle("sensors", env=known_machine("desktop-intel"))
    words = " ".join(done.stdout.split())
    assert "package-0 and dram-0 are measured." in words, done.stdout
    assert "are shown beside the total, not added." in words, done.stdout
    words = " ".join(room.wattle("sensors", env=known_machine("one-unreadable")).stdout.split())
    assert "package-1 can't be read and is missing from the total." in words, words
    words = " ".join(room.wattle("sensors", env=machine(room, "vm", cpuinfo=VM)).stdout.split())
    assert "Nothing on this machine measures energy." in words and "`estimated`" in words, words


@test
def no_powercap(room):
    """without a single zone: a virtual machine has no remedy, real hardware has its driver loaded, ARM has no row"""
    row = row_of(doctor(room, machine(room, "vm", cpuinfo=VM))[0], "powercap", "package-0")
    assert not row["readable"] and not row["used"] and "virtual machine" in row["why"] and row["remedy"] is None, row
    row = row_of(doctor(room, machine(room, "metal"))[0], "powercap", "package-0")
    assert row["remedy"] == "sudo modprobe intel_rapl_msr", row
    arm = machine(room, "arm", cpuinfo="processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n")
    assert not [row for row in doctor(room, arm)[0] if row["sensor"] == "powercap"]


@test
def root_only(room):
    """counters for root only: one command until the next boot, for all of them, and one that lasts"""
    if os.geteuid() != 0:
        raise Skip("only root can be refused as somebody else")
    env = machine(room, "metal", ["package-0", "package-1"])
    files = [pathlib.Path(env["WATTLE_SYSFS"], f"class/powercap/intel-rapl:{i}/energy_uj") for i in range(2)]
    for file in files:
        file.chmod(0o400)
    wattle, _ = room.for_everybody()
    who = {"program": wattle, "env": env, "user": NOBODY, "group": NOBODY}
    done = room.finish(room.start("sensors", "--json", **who))
    rows = [row for row in json.loads(done.stdout)["sensors"] if row["sensor"] == "powercap"]
    assert done.returncode == 1 and [row["remedy"] for row in rows] == [f"sudo chmod a+r {file}" for file in files], rows
    assert all("udev" in row["lasting_remedy"] for row in rows), rows
    text = room.finish(room.start("sensors", **who)).stdout
    assert f"    sudo chmod a+r {files[0]} {files[1]}\n" in text and text.count("/etc/udev/rules.d/") == 1, text
    assert "The command above would have it measured." in " ".join(text.split()), text
    assert_fits(text)
    # Where the helper could do it, that is the better way.
    who["env"] = {**env, "WATTLE_HELPER": "/nonexistent/wattled.sock"}
    rows = json.loads(room.finish(room.start("sensors", "--json", **who)).stdout)["sensors"]
    systemd = pathlib.Path("/run/systemd/system").exists()
    for row in (row for row in rows if row["sensor"] == "powercap"):
        assert row["why"] == "energy_uj is readable by root only; no helper is running", row
        assert row["remedy"] == ("sudo systemctl enable --now wattled.socket" if systemd else "sudo wattled"), row
        assert row["lasting_remedy"] is None, row
    text = room.finish(room.start("sensors", **who)).stdout
    for command in ("systemctl enable --now wattled.socket", "wattled", 'usermod -aG wattle "$USER" && newgrp wattle'):
        assert text.count(f"    sudo {command}\n") == 1, (command, text)
    assert_fits(text)


@test
def periods(room):
    """how often a counter is updated is measured: every millisecond, and every 100 ms, which start-up does not wait for"""
    fast = row_of(doctor(room, simulate(room, "fast", "--zone", "package-0=40"))[0], "powercap", "package-0")
    assert 0.0005 < fast["update_period_s"] < 0.02, fast  # a simulator that has to wait for a core is late
    slow = row_of(doctor(room, simulate(room, "slow", "--zone", "package-0=40", "--tick", "100000"))[0], "powercap",
                  "package-0")
    near(slow["update_period_s"], 0.1, relative=0.25)
    assert 0 < slow["update_jitter_s"] < 0.05, slow


@test
def still(room):
    """a counter that stands still has no period, and is not waited for"""
    env = machine(room, "still", ["package-0"])
    started = time.monotonic()
    rows, _ = doctor(room, env)
    assert time.monotonic() - started < 20
    row = row_of(rows, "powercap", "package-0")
    assert row["update_period_s"] is None and row["update_jitter_s"] is None, row
    assert row["last"] == 0.001 and row["last_unit"] == "J", row


def cards(room, text, name="cards"):
    path = room.folder / name
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


@test
def gpus(room):
    """GPUs: the period of an energy counter is measured; one that a program would not see is listed as hidden"""
    env = {**machine(room, "metal", ["package-0"]), **cards(room, TWO_CARDS), "CUDA_VISIBLE_DEVICES": "0"}
    rows, done = doctor(room, env)
    first, second = row_of(rows, "nvml", "gpu-0"), row_of(rows, "nvml", "gpu-1")
    assert done.returncode == 0 and first["used"] and first["provenance"] == "measured", first
    near(first["update_period_s"], 0.1, relative=0.25)
    assert second["readable"] and not second["used"] and "CUDA_VISIBLE_DEVICES" in second["why"], second


# ---- calibrating a GPU against a wall meter ----

# Works on the fake card until it is told to end; the card's power is in the cards, what it truly draws in the meter.
LOAD = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def put(watts):
    new = folder / f"cards.{os.getpid()}"
    new.write_text((folder / "template").read_text().replace("WATTS", str(watts * 1000)))
    new.rename(folder / "cards")
def end(*_):
    put(40)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
put(340)
time.sleep(float(sys.argv[2]))
end()
"""
# The meter of the whole machine: 1.08 times what the card says, and 50 W beside it, through a supply of 92 %.
WALL = """
import pathlib, re, sys, time
folder = pathlib.Path(sys.argv[1])
print('#timestamp,#frame_is_ok,#U1,#current1,#activepow1', flush=True)
while True:
    watts = int(re.search(r"constant (\\d+)", (folder / "cards").read_text())[1]) / 1000
    print(f"{time.time():.9f},true,230,1,{(1.08 * watts + 50) / 0.92:.3f}", flush=True)
    time.sleep(0.02)
"""
CARD = """
gpu
name Fake A
uuid GPU-12345678-1234-1234-1234-123456789abc
power_mw constant WATTS
energy_period_ms 20
"""


def calibrate_gpu(room, *command, options=("--supply-efficiency", "92±1"), zones=("--zone", "package-0=40")):
    (room.folder / "template").write_text(CARD)
    (room.folder / "cards").write_text(CARD.replace("WATTS", "40000"))
    with open(room.folder / "meter.csv", "wb") as file:
        room.start("-c", WALL.replace("\\\\", "\\"), room.folder, program=sys.executable, stdout=file, preexec_fn=run_first)
        wait_until(lambda: (room.folder / "meter.csv").read_text().count("\n") > 3, "the meter")
        env = {**simulate(room, "sim", *zones), **cards_of(room.folder / "cards"),
               "WATTLE_STATE": str(room.folder / "state")}
        return room.wattle("sensors", "--calibrate-gpu", 0, "--wall-meter", "meter.csv", "--seconds", 1, *options, "--",
                           *command, env=env)


@test
def gpu_against_a_wall_meter(room):
    """the factor of a GPU is found behind a power supply, stored with its error by UUID, and used from then on"""
    done = calibrate_gpu(room, sys.executable, "-c", LOAD, room.folder, 60)
    assert done.returncode == 0, done
    header, line = (room.folder / "state/gpu-gain").read_text().splitlines()
    uuid, factor, percent, date = line.split()
    assert (header, uuid) == ("wattle-gpu-gain/1", "GPU-12345678-1234-1234-1234-123456789abc"), line
    near(float(factor), 1.08, relative=0.01)
    assert 1 < float(percent) < 3 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date), line
    assert "rest of the machine" in done.stdout and "state/gpu-gain" in done.stdout, done.stdout


@test
def gpu_that_cannot_be_calibrated(room):
    """a command that ends at once, one that does not load the GPU, options that make no sense: a reason, and nothing is stored"""
    done = calibrate_gpu(room, "true")
    assert done.returncode == 1 and "true ended too early" in done.stderr, done
    assert not (room.folder / "state/gpu-gain").exists()
    for words, reason in ((["--calibrate-gpu", 0, "--", "true"], "give --wall-meter FILE"),
                          (["--calibrate-gpu", 0, "--wall-meter", "meter.csv"], "give -- CMD"),
                          (["--wall-meter", "meter.csv"], "go with --calibrate-gpu only"),
                          (["--calibrate-gpu", 0, "--json", "--wall-meter", "m", "--", "true"], "do not go together"),
                          (["--calibrate-gpu", 0, "--supply-efficiency", "120", "--wall-meter", "meter.csv", "--",
                            "true"], "PERCENT±ERROR")):
        done = room.wattle("sensors", *words)
        assert done.returncode == 2 and reason in done.stderr, (words, done)
    env = {**simulate(room, "again", "--zone", "package-0=40"), **cards_of(room.folder / "cards")}
    done = room.wattle("sensors", "--calibrate-gpu", 3, "--wall-meter", "meter.csv", "--", "true", env=env)
    assert done.returncode == 1 and "no GPU of this index is measured" in done.stderr, done


# ---- capture ----

def capture(room, env, name="captured"):
    done = room.wattle("sensors", "--capture", room.folder / name, env=env)
    assert done.returncode == 0, done
    top = room.folder / name
    cards = top / "nvml.cards"
    return top, {"WATTLE_SYSFS": str(top / "sys"), "WATTLE_PROCFS": str(top / "proc"),
                 **(cards_of(cards) if cards.exists() else NO_NVML)}, done


def seen(room, env):
    """What sensors says, without the paths of the tree it says it of."""
    text = room.wattle("sensors", "--json", env=env).stdout
    for variable in ("WATTLE_SYSFS", "WATTLE_PROCFS"):
        text = text.replace(env[variable], variable)
    rows = json.loads(text)["sensors"]
    for row in rows:
        if row["sensor"] in ("perf", "nvml"):  # they go on counting
            row["last"] = row["update_period_s"] = row["update_jitter_s"] = None
    return rows


@test
def round_trip(room):
    """each machine of the tests, captured, shows the same sensors; its links stay links"""
    for top in sorted((TESTS / "machines").iterdir()):
        if not (top / "sys").is_dir():
            continue
        env = known_machine(top.name)
        copy, as_captured, _ = capture(room, env, top.name)
        before, after = seen(room, env), seen(room, as_captured)
        for row in before + after:
            row["uuid"] = row["uuid"] and re.sub("[0-9a-fA-F]", "x", row["uuid"])  # a pseudonym
        assert after == before, top.name
        refused = [line.split("\t")[0] for line in (copy / "unreadable").read_text().splitlines()] \
            if (copy / "unreadable").exists() else []
        for path in copy.rglob("*"):
            name = str(path.relative_to(copy))
            assert path.is_symlink() == (top / name).is_symlink(), name
            if path.is_file() and name.startswith("sys/") and path.name not in ("unique_id", "properties") and \
                    str(path.resolve().relative_to(copy.resolve())) not in refused:
                assert filecmp.cmp(path, top / name, shallow=False), name


HOST = os.uname().nodename
NAMED = {
    "class/hwmon/hwmon0/name": "acme\n",
    "class/hwmon/hwmon0/power1_oem_info": f"node {HOST} 00:1a:2b:3c:4d:5e {{01234567-89ab-cdef-0123-456789abcdef}}\n",
    "class/hwmon/hwmon0/power1_model_number": "00:1a:2b:3c:4d:5e again\n",
    "class/hwmon/hwmon0/power1_serial_number": "SN-0815 17\n",
    "class/drm/card12/device/vendor": "0x1002\n",
    "class/drm/card0-DP-1/device/vendor": "0x1002\n",
    "class/drm/card0/device/vendor": "0x1002\n",
    "class/drm/card0/device/unique_id": "a1b2c3d4e5f60718\n",
    "class/power_supply/BAT0/type": "Battery\n",
    "class/power_supply/BAT0/serial_number": "SN-4711\n",
    "class/power_supply/hid-00:1a:2b:3c:4d:5e-battery/type": "Battery\n",
    "class/kfd/kfd/topology/nodes/1/properties": "cpu_cores_count 0\nunique_id 987654321987\nnum_xcc 1\n",
}


@test
def anonymous(room):
    """what names a machine becomes the same pseudonym each time; what no sensor reads is not taken along"""
    cpuinfo = METAL + "Serial\t\t: 10000000abcdef01\n"
    top, _, done = capture(room, machine(room, "named", ["package-0"], cpuinfo, NAMED))
    text = "".join(path.read_text() for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    names = "".join(str(path) for path in top.rglob("*"))
    for secret in ("00:1a:2b", "89ab-cdef", "a1b2c3d4", "SN-4711", "SN-0815", "DP-1", "987654321987", "abcdef01", "Serial"):
        assert secret not in text and secret not in names, secret
    assert f" {HOST} " not in text
    info = (top / "sys/class/hwmon/hwmon0/power1_oem_info").read_text()
    again = (top / "sys/class/hwmon/hwmon0/power1_model_number").read_text()
    assert info.split()[2] == again.split()[0] and re.fullmatch("(..:){5}..", again.split()[0]), (info, again)
    assert re.fullmatch(r"0{15}\d\n", (top / "sys/class/drm/card0/device/unique_id").read_text())
    assert "unique_id 00000000000" in (top / "sys/class/kfd/kfd/topology/nodes/1/properties").read_text()
    assert "num_xcc 1" in (top / "sys/class/kfd/kfd/topology/nodes/1/properties").read_text()
    assert (top / "sys/class/drm/card12/device/vendor").exists()
    assert "left out" in done.stdout, done.stdout


@test
def careful(room):
    """a device that sleeps is not woken, a fifo is not read, a link that leaves the root leads nowhere"""
    secret = room.folder / "secret"
    secret.mkdir()
    (secret / "name").write_text("stolen\n")
    env = machine(room, "odd", ["package-0"], more={
        "class/drm/card0/device/vendor": "0x1002\n",
        "class/drm/card0/device/power/runtime_status": "suspended\n",
        "class/drm/card0/device/gpu_busy_percent": "7\n",
        "class/drm/card1/device/vendor": "0x1002\n",
        "class/drm/card1/device/power/runtime_status": "active\n",
        "class/drm/card1/device/gpu_busy_percent": "8\n"})
    base = pathlib.Path(env["WATTLE_SYSFS"])
    (base / "class/hwmon").mkdir()
    (base / "class/hwmon/hwmon0").symlink_to("/" + str(secret))
    (base / "class/hwmon/hwmon1").symlink_to("../../../../../../" + str(secret))
    (base / "class/hwmon/hwmon2").symlink_to("hwmon2")
    (base / "class/thermal/thermal_zone0").mkdir(parents=True)
    os.mkfifo(base / "class/thermal/thermal_zone0/type")
    top, _, done = capture(room, env)
    assert "stolen" not in "".join(p.read_text() for p in top.rglob("*") if p.is_file() and not p.is_symlink())
    drm = top / "sys/class/drm"
    assert (drm / "card0/device/gpu_busy_percent").read_text() == "" and \
        (drm / "card1/device/gpu_busy_percent").read_text() == "8\n"
    unreadable = (top / "unreadable").read_text()
    assert "sys/class/drm/card0/device/gpu_busy_percent\t" in unreadable and "asleep" in unreadable, unreadable
    assert "thermal_zone0/type\t" in unreadable, unreadable


@test
def refused_files(room):
    """a file that may not be read is listed with its mode, and stands in the copy, empty"""
    if os.geteuid() != 0:
        raise Skip("only root can be refused as somebody else")
    env = machine(room, "metal", ["package-0"])
    counter = "class/powercap/intel-rapl:0/energy_uj"
    pathlib.Path(env["WATTLE_SYSFS"], counter).chmod(0o400)
    wattle, _ = room.for_everybody()
    done = room.finish(room.start("sensors", "--capture", "copy", program=wattle, env=env, user=NOBODY, group=NOBODY))
    assert done.returncode == 0, done
    copy = room.folder / "copy"
    assert (copy / "unreadable").read_text() == f"sys/{counter}\t0400\tPermission denied\n"
    assert (copy / "sys" / counter).stat().st_size == 0 and (copy / "sys" / counter).stat().st_mode & 0o777 == 0o400


@test
def never_overwrites(room):
    """a folder that holds anything is refused, and nothing in it changes; an empty one will do"""
    env = machine(room, "metal", ["package-0"])
    full = room.tree("full", {"mine": "x"})
    done = room.wattle("sensors", "--capture", full, env=env)
    assert done.returncode == 1 and "not empty" in done.stderr and str(full) in done.stderr, done
    assert [path.name for path in full.iterdir()] == ["mine"]
    empty = room.folder / "empty"
    empty.mkdir()
    assert room.wattle("sensors", "--capture", empty, env=env).returncode == 0
    assert (empty / "sys").is_dir()
    done = room.wattle("sensors", "--capture", room.folder / "not/there", env=env)
    assert done.returncode == 1 and "not/there" in done.stderr, done


@test
def captured_modules(room):
    """power of modules and of GPU memory is captured, and a GPU without any of its own too"""
    only = ("gpu\nerror nvmlDeviceGetTotalEnergyConsumption 3\nerror nvmlDeviceGetPowerUsage 3\n"
            "field_error 185 0 3\nfield_error 186 0 3\n")
    power_only = "field_error 191 1 3\nfield_error 191 2 3\nmodule_mw 467000\nmemory_mw 38000\n"
    env = {**machine(room, "metal", ["package-0"]), **cards(room, f"gpu\n{power_only}{only}{power_only}")}
    _, as_captured, _ = capture(room, env)
    before, after = ([(row["domain"], row["inside"], row["readable"]) for row in seen(room, each)
                      if row["sensor"] == "nvml"] for each in (env, as_captured))
    assert before == after and ("gpu-1", "module-1", False) in after and len(after) == 6, (before, after)


@test
def captured_gpus(room):
    """what NVML says is saved in the fake library's own words, with other UUIDs, and the fixture replays it"""
    env = {**machine(room, "metal", ["package-0"]), **cards(room, TWO_CARDS)}
    top, as_captured, _ = capture(room, env)
    saved = (top / "nvml.cards").read_text()
    assert "12345678-1234" not in saved and "GPU-00000000-0000-4000-8000-000000000001" in saved, saved
    before, after = ([row for row in seen(room, each) if row["sensor"] == "nvml"] for each in (env, as_captured))
    for a, b in zip(before, after, strict=True):
        for moving in ("uuid", "last", "update_period_s", "update_jitter_s"):
            a.pop(moving), b.pop(moving)
        assert a == b, (a, b)


# ---- idle power ----

class MovingStat:
    """A /proc of two cores that are busy for a share of the time."""

    def __init__(self, room, share=lambda t: 0.0):
        self.folder = room.tree("proc", {"cpuinfo": METAL})
        self.share, self.stop = share, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        wait_until(lambda: (self.folder / "stat").exists(), "the first stat")

    def run(self):
        run_first()
        started = last = time.monotonic()
        busy = idle = 1000.0
        while not self.stop.wait(0.01):
            now = time.monotonic()
            share = self.share(now - started)
            busy, idle, last = busy + 200 * share * (now - last), idle + 200 * (1 - share) * (now - last), now
            new = self.folder / "stat.new"
            new.write_text(f"cpu  {busy:.0f} 0 0 {idle:.0f} 0 0 0 0 0 0\ncpu0 1 0 0 1\ncpu1 1 0 0 1\n")
            new.rename(self.folder / "stat")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def calibrate(room, env, seconds=2):
    return room.wattle("sensors", "--calibrate-idle", "--seconds", seconds,
                       env={**env, "WATTLE_STATE": str(room.folder / "state/wattle")})


def stored(room):
    path = room.folder / "state/wattle/idle.json"
    return json.loads(path.read_text()) if path.exists() else None


IDLE_ZONES = ["--zone", "package-0=20+0.4*sin@0.7", "--zone", "package-0/core=3", "--zone", "package-0/dram=2"]


@test
def idle_power(room):
    """the idle power of each domain is stored, near the truth and within its error, with date and host"""
    with MovingStat(room) as proc:
        env = {**simulate(room, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        done = calibrate(room, env, seconds=3)
    assert done.returncode == 0, done
    baseline = stored(room)
    assert baseline["schema"] == "wattle-idle/1" and re.fullmatch("[0-9a-f]{16}", baseline["host"]), baseline
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", baseline["date"]), baseline
    found = {row["domain"]: row for row in baseline["domains"]}
    assert set(found) == {"package-0", "core-0", "dram-0"}, found
    for domain, truth_w in (("package-0", 20), ("core-0", 3), ("dram-0", 2)):
        row = found[domain]
        near(row["idle_w"], truth_w, relative=0.01)
        assert abs(row["idle_w"] - truth_w) <= 1.5 * row["error_w"] + 0.1 and row["error_w"] < 0.5, row
        assert row["source"] == "powercap" and row["device"].startswith("intel-rapl:0") and row["seconds"] > 2, row


@test
def attribution_active(room):
    """run --attribution active takes the stored idle power over, with its date, and sensors shows it"""
    with MovingStat(room) as proc:
        sim = simulate(room, "sim", *IDLE_ZONES)
        assert calibrate(room, {**sim, "WATTLE_PROCFS": str(proc.folder)}).returncode == 0
    state = {**sim, "WATTLE_STATE": str(room.folder / "state/wattle")}
    date = stored(room)["date"]
    report, done = room.report("--attribution", "active", "--", "sleep", "0.5", env=state)
    assert "idle" not in done.stderr, done.stderr
    kept = room.rows("select idle_w, idle_error_w, idle_date from device where name = 'package-0'")
    near(kept[0][0], 20, relative=0.01)
    assert kept[0][1] > 0 and kept[0][2] == date, kept
    package = next(d for d in report["energy"]["domains"] if d["domain"] == "package-0")
    assert date[:10] in package["attribution"], package
    room.report("--", "sleep", "0.1", env=state)
    assert room.rows("select idle_w from device where name = 'package-0'") == [(None,)]
    row = row_of(doctor(room, state)[0], "powercap", "package-0")
    near(row["idle_w"], 20, relative=0.01)
    assert row["idle_date"] == date and f"Idle power, measured {date[:10]}" in room.wattle("sensors", env=state).stdout


@test
def not_while_busy(room):
    """while a program burns a core nothing is stored, and the line names it"""
    env = simulate(room, "sim", *IDLE_ZONES)
    burner = room.start("cpu", "30", program=BURNER)
    done = calibrate(room, env)
    burner.kill()
    assert done.returncode == 1 and stored(room) is None, done
    assert len(done.stderr.splitlines()) == 1 and "% busy" in done.stderr and "burner" in done.stderr, done.stderr


@test
def not_for_a_moment(room):
    """a burst in the middle begins the measurement anew; one that never ends for long enough is refused"""
    with MovingStat(room, lambda t: 0.5 if 1 < t < 1.5 else 0.0) as proc:
        env = {**simulate(room, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        started = time.monotonic()
        assert calibrate(room, env).returncode == 0
        assert time.monotonic() - started > 2.5
    shutil.rmtree(room.folder / "state")
    with MovingStat(room, lambda t: 0.5 if t % 1 < 0.3 else 0.0) as proc:
        done = calibrate(room, env)
    assert done.returncode == 1 and stored(room) is None, done


@test
def not_unless_known(room):
    """no idle power where the load can't be known, power is not steady, nothing is measured"""
    refusals = {
        "does not say how busy": {**simulate(room, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(room.tree(
            "still", {"cpuinfo": METAL, "stat": "cpu  1 0 0 1 0 0 0 0\n"}))},
        "nothing on this machine measures energy": machine(room, "vm", cpuinfo=VM),
    }
    with MovingStat(room) as proc:
        refusals["was not steady"] = {**simulate(room, "wild", "--zone", "package-0=20+15*step@4"),
                                      "WATTLE_PROCFS": str(proc.folder)}
        for reason, env in refusals.items():
            done = calibrate(room, env, seconds=4 if "steady" in reason else 2)
            assert done.returncode == 1 and stored(room) is None, (reason, done)
            assert len(done.stderr.splitlines()) == 1 and reason in done.stderr, (reason, done.stderr)


@test
def gpus_have_to_be_idle(room):
    """a GPU with a process or with load refuses the calibration; an idle one is measured with its UUID, one asleep is not"""
    uuid = "GPU-12345678-1234-1234-1234-123456789abc"
    card = f"gpu\nuuid {uuid}\npower_mw constant 30000\nenergy_period_ms 20\n"
    with MovingStat(room) as proc:
        base = {**simulate(room, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        for what, reason in (("process 4711 C 0 1000000\n", "process"), ("utilization_percent 3 0\n", "3 % busy")):
            done = calibrate(room, {**base, **cards(room, card + what)})
            assert done.returncode == 1 and stored(room) is None, (what, done)
            assert "gpu-0" in done.stderr and reason in done.stderr, (what, done.stderr)
        asleep = {"class/drm/card0/device/vendor": "0x1002\n", "class/drm/card0/device/uevent": "DRIVER=amdgpu\n",
                  "class/drm/card0/device/power/runtime_status": "suspended\n"}
        room.tree("sim", asleep)
        done = calibrate(room, {**base, **cards(room, card)})
    assert done.returncode == 0, done
    gpu = next(row for row in stored(room)["domains"] if row["domain"] == "gpu-0")
    near(gpu["idle_w"], 30, relative=0.02)
    assert gpu["uuid"] == uuid and gpu["source"] == "nvml", gpu


@test
def other_domains_stay(room):
    """a calibration replaces the domains it measured and keeps the others with their own dates"""
    with MovingStat(room) as proc:
        env = {**simulate(room, "one", "--zone", "package-0=20", "--zone", "package-1=10"),
               "WATTLE_PROCFS": str(proc.folder)}
        assert calibrate(room, env, seconds=1).returncode == 0
        path = room.folder / "state/wattle/idle.json"
        old = json.loads(path.read_text())
        for row in old["domains"]:
            row["date"] = "2020-01-02T03:04:05Z"
        path.write_text(json.dumps(old))
        env["WATTLE_SYSFS"] = simulate(room, "two", "--zone", "package-0=30")["WATTLE_SYSFS"]
        assert calibrate(room, env, seconds=1).returncode == 0
    rows = {row["domain"]: row for row in stored(room)["domains"]}
    near(rows["package-0"]["idle_w"], 30, relative=0.02)
    near(rows["package-1"]["idle_w"], 10, relative=0.02)
    assert rows["package-1"]["date"] == "2020-01-02T03:04:05Z" != rows["package-0"]["date"], rows
    assert not [path for path in (room.folder / "state/wattle").iterdir() if path.name != "idle.json"]


@test
def not_any_baseline(room):
    """a baseline that is old, another machine's or no baseline is not used, and the run says so"""
    with MovingStat(room) as proc:
        sim = simulate(room, "sim", *IDLE_ZONES)
        assert calibrate(room, {**sim, "WATTLE_PROCFS": str(proc.folder)}, seconds=1).returncode == 0
    path = room.folder / "state/wattle/idle.json"
    good = json.loads(path.read_text())
    state = {**sim, "WATTLE_STATE": str(path.parent)}
    old = {**good, "domains": [{**row, "date": "2020-01-02T03:04:05Z"} for row in good["domains"]]}
    for text, says in ((json.dumps(old), "more than 90 days"), (json.dumps({**good, "host": "0" * 16}), "another machine"),
                       ("{", str(path)), ("[]", str(path)), (json.dumps({**good, "schema": "x"}), str(path))):
        path.write_text(text)
        _, done = room.report("--attribution", "active", "--", "true", env=state)
        assert says in done.stderr and len(done.stderr.splitlines()) == 1, (says, done.stderr)
        assert room.rows("select idle_w from device where name = 'package-0'") == [(None,)], says
        assert says in json.loads(room.wattle("sensors", "--json", env=state).stdout)["idle_note"], says
    path.unlink()
    _, done = room.report("--attribution", "active", "--", "true", env=state)
    assert not done.stderr, done.stderr


@test
def no_state_folder(room):
    """a state folder that can't be made is named, and so is the variable that names another"""
    with MovingStat(room) as proc:
        env = {**simulate(room, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        (room.folder / "state").write_text("a file")
        done = calibrate(room, env, seconds=1)
    assert done.returncode == 1 and "state" in done.stderr and "WATTLE_STATE" in done.stderr, done


if __name__ == "__main__":
    main()
