"""wattle sensors: the list of sensors and the calibration of GPUs."""
import json
import os
import pathlib
import re
import sys
import time

from harness import NOBODY, TESTS, Skip, main, near, run_first, test, wait_until
from sensor_machines import TWO_CARDS, VM, cards, cards_of, doctor, end_simulator, known_machine, machine, row_of, simulate


@test
def status(workdir):
    """status: 0 if something is measured, 1 if everything is estimated, 2 for a usage error"""
    measured, estimated = machine(workdir, "metal", ["package-0"]), machine(workdir, "vm", cpuinfo=VM)
    for options in ([], ["--json"]):
        assert workdir.wattle("sensors", *options, env=measured).returncode == 0
        done = workdir.wattle("sensors", *options, env=estimated)
        assert done.returncode == 1 and "package-0" in done.stdout, done
    for wrong in (["--jsn"], ["extra"], ["--json", "--calibrate-idle"], ["--seconds", "3"],
                  ["--calibrate-idle", "--seconds", "0"], ["--capture"]):
        done = workdir.wattle("sensors", *wrong, env=measured)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout, (wrong, done)


def assert_fits(text):
    lines = text.splitlines()
    for at, line in enumerate(lines):
        assert len(line) <= 80 or line.startswith("    ") and lines[at - 1].endswith(":"), line
        assert line == line.rstrip(), line


@test
def text(workdir):
    """text: 80 columns except commands, which are on lines of their own, and a verdict at the end"""
    names = sorted(path.name for path in (TESTS / "machines").iterdir() if (path / "sys").is_dir())
    for name in names:
        done = workdir.wattle("sensors", env=known_machine(name))
        assert_fits(done.stdout)
        assert "\nWhat a run on this machine reports\n" in done.stdout, (name, done.stdout)


@test
def verdict(workdir):
    """verdict: names the measured, the additional and the unreadable domains"""
    done = workdir.wattle("sensors", env=known_machine("desktop-intel"))
    words = " ".join(done.stdout.split())
    assert "package-0 and dram-0 are measured." in words, done.stdout
    assert "are shown beside the total, not included in it." in words, done.stdout
    words = " ".join(workdir.wattle("sensors", env=known_machine("one-unreadable")).stdout.split())
    assert "package-1 can't be read and is missing from the total." in words, words
    words = " ".join(workdir.wattle("sensors", env=machine(workdir, "vm", cpuinfo=VM)).stdout.split())
    assert "Nothing on this machine measures energy." in words and "`estimated`" in words, words


@test
def no_powercap(workdir):
    """no zone: a virtual machine has no remedy, real hardware has its driver loaded, ARM has no row"""
    row = row_of(doctor(workdir, machine(workdir, "vm", cpuinfo=VM))[0], "powercap", "package-0")
    assert not row["readable"] and not row["used"] and "virtual machine" in row["why"] and row["remedy"] is None, row
    row = row_of(doctor(workdir, machine(workdir, "metal"))[0], "powercap", "package-0")
    assert row["remedy"] == "sudo modprobe intel_rapl_msr", row
    arm = machine(workdir, "arm", cpuinfo="processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n")
    assert not [row for row in doctor(workdir, arm)[0] if row["sensor"] == "powercap"]


@test
def root_only(workdir):
    """counters readable by root only: one command for all of them until the next boot, and a permanent one"""
    if os.geteuid() != 0:
        raise Skip("needs root, to be refused as another user")
    env = machine(workdir, "metal", ["package-0", "package-1"])
    files = [pathlib.Path(env["WATTLE_SYSFS"], f"class/powercap/intel-rapl:{i}/energy_uj") for i in range(2)]
    for file in files:
        file.chmod(0o400)
    wattle, _ = workdir.for_everybody()
    who = {"program": wattle, "env": env, "user": NOBODY, "group": NOBODY}
    done = workdir.finish(workdir.start("sensors", "--json", **who))
    rows = [row for row in json.loads(done.stdout)["sensors"] if row["sensor"] == "powercap"]
    assert (done.returncode == 1
            and [row["remedy"] for row in rows] == [f"sudo chmod a+r {file}" for file in files]), rows
    assert all("udev" in row["lasting_remedy"] for row in rows), rows
    text = workdir.finish(workdir.start("sensors", **who)).stdout
    assert f"    sudo chmod a+r {files[0]} {files[1]}\n" in text and text.count("/etc/udev/rules.d/") == 1, text
    assert "Run the command above to measure it." in " ".join(text.split()), text
    assert_fits(text)
    # Where the helper is possible, it is the better way.
    who["env"] = {**env, "WATTLE_HELPER": "/nonexistent/wattled.sock"}
    rows = json.loads(workdir.finish(workdir.start("sensors", "--json", **who)).stdout)["sensors"]
    systemd = pathlib.Path("/run/systemd/system").exists()
    for row in (row for row in rows if row["sensor"] == "powercap"):
        assert row["why"] == "energy_uj is readable by root only; no helper is running", row
        assert row["remedy"] == ("sudo systemctl enable --now wattled.socket" if systemd else "sudo wattled"), row
        assert row["lasting_remedy"] is None, row
    text = workdir.finish(workdir.start("sensors", **who)).stdout
    for command in ("systemctl enable --now wattled.socket", "wattled", 'usermod -aG wattle "$USER" && newgrp wattle'):
        assert text.count(f"    sudo {command}\n") == 1, (command, text)
    assert_fits(text)


@test
def periods(workdir):
    """update period of a counter: measured: every millisecond, and every 100 ms, which start-up does not wait for"""
    fast = row_of(doctor(workdir, simulate(workdir, "fast", "--zone", "package-0=40"))[0], "powercap", "package-0")
    assert 0.0005 < fast["update_period_s"] < 0.005 + 2 * end_simulator(workdir, "fast"), fast
    slow = row_of(doctor(workdir, simulate(workdir, "slow", "--zone", "package-0=40", "--tick",
                                           "100000"))[0], "powercap",
                  "package-0")
    late_s = 2 * end_simulator(workdir, "slow")
    near(slow["update_period_s"], 0.1, absolute=0.02 + late_s)
    assert 0 < slow["update_jitter_s"] < 0.04 + late_s, slow


@test
def still(workdir):
    """counter that never changes: no period, and no waiting"""
    env = machine(workdir, "still", ["package-0"])
    started = time.monotonic()
    rows, _ = doctor(workdir, env)
    assert time.monotonic() - started < 20
    row = row_of(rows, "powercap", "package-0")
    assert row["update_period_s"] is None and row["update_jitter_s"] is None, row
    assert row["last"] == 0.001 and row["last_unit"] == "J", row


@test
def gpus(workdir):
    """GPUs: the period of an energy counter is measured; one that a program would not see is listed as hidden"""
    env = {**machine(workdir, "metal", ["package-0"]), **cards(workdir, TWO_CARDS), "CUDA_VISIBLE_DEVICES": "0"}
    rows, done = doctor(workdir, env)
    first, second = row_of(rows, "nvml", "gpu-0"), row_of(rows, "nvml", "gpu-1")
    assert done.returncode == 0 and first["used"] and first["provenance"] == "measured", first
    near(first["update_period_s"], 0.1, relative=0.25)
    assert second["readable"] and not second["used"] and "CUDA_VISIBLE_DEVICES" in second["why"], second


# ---- calibrating a GPU against a wall meter ----

# Works on the fake card until it is asked to end; the card's power is in the cards file, its true power in the meter.
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
# The meter of the whole machine: 1.08 times the card's reading and 50 W more, through a supply of 92 %.
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


def calibrate_gpu(workdir, *command, options=("--supply-efficiency", "92±1"), zones=("--zone", "package-0=40")):
    (workdir.folder / "template").write_text(CARD)
    (workdir.folder / "cards").write_text(CARD.replace("WATTS", "40000"))
    with open(workdir.folder / "meter.csv", "wb") as file:
        workdir.start("-c", WALL.replace("\\\\", "\\"), workdir.folder, program=sys.executable, stdout=file,
                      preexec_fn=run_first)
        wait_until(lambda: (workdir.folder / "meter.csv").read_text().count("\n") > 3, "the meter")
        env = {**simulate(workdir, "sim", *zones), **cards_of(workdir.folder / "cards"),
               "WATTLE_STATE": str(workdir.folder / "state")}
        return workdir.wattle("sensors", "--calibrate-gpu", 0, "--wall-meter", "meter.csv", "--seconds", 1, *options,
                              "--",
                              *command, env=env)


@test
def gpu_against_a_wall_meter(workdir):
    """factor of a GPU: found behind a power supply, stored with its error by UUID, and used from then on"""
    done = calibrate_gpu(workdir, sys.executable, "-c", LOAD, workdir.folder, 60)
    assert done.returncode == 0, done
    header, line = (workdir.folder / "state/gpu-gain").read_text().splitlines()
    uuid, factor, percent, date = line.split()
    assert (header, uuid) == ("wattle-gpu-gain/1", "GPU-12345678-1234-1234-1234-123456789abc"), line
    near(float(factor), 1.08, relative=min(float(percent), 2) / 100)
    assert 1 < float(percent) < 5 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date), line
    assert "rest of the machine" in done.stdout and "state/gpu-gain" in done.stdout, done.stdout


@test
def gpu_that_cannot_be_calibrated(workdir):
    """command that ends at once, that does not load the GPU, invalid options: a reason, and nothing is stored"""
    done = calibrate_gpu(workdir, "true")
    assert done.returncode == 1 and "true ended too early" in done.stderr, done
    assert not (workdir.folder / "state/gpu-gain").exists()
    for words, reason in ((["--calibrate-gpu", 0, "--", "true"], "give --wall-meter FILE"),
                          (["--calibrate-gpu", 0, "--wall-meter", "meter.csv"], "give -- CMD"),
                          (["--wall-meter", "meter.csv"], "need --calibrate-gpu"),
                          (["--calibrate-gpu", 0, "--json", "--wall-meter", "m", "--", "true"], "give only one of"),
                          (["--calibrate-gpu", 0, "--supply-efficiency", "120", "--wall-meter", "meter.csv", "--",
                            "true"], "PERCENT±ERROR")):
        done = workdir.wattle("sensors", *words)
        assert done.returncode == 2 and reason in done.stderr, (words, done)
    env = {**simulate(workdir, "again", "--zone", "package-0=40"), **cards_of(workdir.folder / "cards")}
    done = workdir.wattle("sensors", "--calibrate-gpu", 3, "--wall-meter", "meter.csv", "--", "true", env=env)
    assert done.returncode == 1 and "no measured GPU has this index" in done.stderr, done


if __name__ == "__main__":
    main()
