"""Limits in files of /sys that behave as the kernel's: they round, refuse, and keep only valid values."""
import json
import os
import shutil
import signal
import time

from gpu_card import Card
from harness import BUILD, TESTS, main, near, test, wait_until

KERNEL = BUILD / "tests/fakes/libkernel_writes.so"
SIMULATOR = BUILD / "tests/fakes/limit_sim"
WORKER = BUILD / "tests/fakes/gpu_worker"
PACKAGE = "class/powercap/intel-rapl:0"
LONG, SHORT, ENABLED = "constraint_0_power_limit_uw", "constraint_1_power_limit_uw", "enabled"


class Machine:
    """One of tests/machines/ with writable limits, and a log of each write."""

    def __init__(self, workdir, name):
        self.workdir, self.sysfs, self.log = workdir, workdir.folder / "machine/sys", workdir.folder / "writes"
        shutil.copytree(TESTS / "machines" / name, workdir.folder / "machine", symlinks=True)
        sanitizers = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0")))
        self.environment = {
            "LD_PRELOAD": str(KERNEL), "ASAN_OPTIONS": sanitizers, "WATTLE_FAKE_KERNEL": str(self.sysfs),
            "WATTLE_FAKE_KERNEL_LOG": str(self.log), "WATTLE_SYSFS": str(self.sysfs),
            "WATTLE_PROCFS": str(workdir.folder / "machine/proc"), "WATTLE_NVML": "/nonexistent/libnvidia-ml.so.1",
            "WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_HELPER": "off"}

    def cap(self, *words, status=0, **environment):
        done = self.workdir.wattle("cap", *words, env={**self.environment, **environment})
        assert done.returncode == status, (done.returncode, done.stderr)
        return done.stderr

    def start(self, *words, **environment):
        return self.workdir.start("cap", *words, env={**self.environment, **environment})

    def read(self, name, folder=PACKAGE):
        return int((self.sysfs / folder / name).read_text())

    def writes(self):
        """(file, value) of each accepted write, in order, since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [(line.split(" ", 3)[3].rsplit("/", 1)[1], int(line.split()[2])) for line in lines]


def one_domain(workdir):
    """A desktop without the second register set."""
    machine = Machine(workdir, "desktop-intel")
    (machine.sysfs / "class/powercap/intel-rapl-mmio:0").unlink()
    shutil.rmtree(machine.sysfs / "devices/virtual/powercap/intel-rapl-mmio/intel-rapl-mmio:0")
    return machine


@test
def a_package_takes_eighths_of_a_watt(workdir):
    """limit in force: reported; previous values: restored exactly; equal value: not written again"""
    machine = one_domain(workdir)
    said = machine.cap("set", "package-0", "50.19")
    assert "50.125 W" in said, said
    assert machine.writes() == [(LONG, 50125000), (SHORT, 50125000)]
    machine.cap("set", "package-0", "50.125")
    assert machine.writes() == [], "an equal limit is written again"
    machine.cap("reset", "package-0")
    assert machine.writes() == [(LONG, 95000000), (SHORT, 118750000)]


@test
def a_limit_that_was_off_is_off_again(workdir):
    """package with disabled limits: enabled while the command runs; after a kill -9 of wattle all three are restored"""
    machine = one_domain(workdir)
    (machine.sysfs / PACKAGE / ENABLED).write_text("0\n")
    wattle = machine.start("set", "package-0", "60", "--", "sh", "-c", "echo $$ > pid; exec sleep 60")
    wait_until(lambda: (workdir.folder / "pid").exists() and (workdir.folder / "pid").read_text(), "the command runs")
    assert (machine.read(LONG), machine.read(SHORT), machine.read(ENABLED)) == (60000000, 60000000, 1)
    wattle.kill()
    killed_s = time.monotonic()
    wait_until(lambda: machine.read(ENABLED) == 0, "the limit is disabled again")
    assert time.monotonic() - killed_s < 1
    assert (machine.read(LONG), machine.read(SHORT)) == (95000000, 118750000)
    os.kill(int((workdir.folder / "pid").read_text()), signal.SIGKILL)


@test
def locked_by_the_firmware(workdir):
    """kernel returns ENODATA: reported, nothing remains changed, and the command does not run"""
    machine = one_domain(workdir)
    (machine.sysfs / PACKAGE / "locked").touch()
    for words, status in [(("set", "package-0", "60"), 1), (("set", "package-0", "60", "--", "touch", "ran"), 125)]:
        said = machine.cap(*words, status=status)
        assert "locked" in said and said.count("\n") == 1, said
    assert machine.writes() == [] and not (workdir.folder / "ran").exists()
    assert (not list((workdir.folder / "state").rglob("*.lease"))
            and not list((workdir.folder / "state").rglob("*.standing")))


@test
def graphics_cards(workdir):
    """amdgpu: whole watts within its range; i915: 0 means no limit and is restored"""
    machine = Machine(workdir, "amd-desktop")
    assert "290 W" in machine.cap("set", "gpu-0", "290.7")
    machine.cap("set", "gpu-0", "271", status=1)
    machine.cap("reset", "gpu-0")
    assert machine.writes() == [("power1_cap", 290000000), ("power1_cap", 303000000)]
    shutil.rmtree(workdir.folder / "machine")
    machine = Machine(workdir, "intel-arc-i915")
    machine.cap("set", "gpu-0", "150.7", "--", "true")
    assert machine.writes() == [("power1_max", 150625000), ("power1_max", 0)]


@test
def a_package_is_tuned(workdir):
    """cap tune on a package whose energy, with a program whose steps, follow its limit: finds the known optimum"""
    card = Card(idle_w=8, full_w=90, min_w=9.5, max_w=95, default_w=95, memory_share=0.55, exponent=2.2)
    machine = one_domain(workdir)
    (workdir.folder / "cards").write_text(card.text())
    zone = machine.sysfs / PACKAGE
    environment = {"WATTLE_FAKE_NVML": str(workdir.folder / "cards")}
    simulator = workdir.start("--gpu", 0, "--limit", zone / LONG, "--energy", zone / "energy_uj", "--range",
                           machine.read("max_energy_range_uj"), program=SIMULATOR, env=environment)
    assert simulator.stdout.readline() == b"ready\n"
    machine.cap("tune", "package-0", "--seconds", "0.6", "--settle", "0.05", "--step", "step", "--json", "tune.json",
                "--", WORKER, "--seconds", "8", **environment)
    tuned = json.loads((workdir.folder / "tune.json").read_text())
    assert tuned["device"] == "package-0", tuned
    assert card.worse_percent("ed2p", tuned["chosen_w"], from_w=28.5) < 3, (tuned["chosen_w"], card.best_w("ed2p"))
    for row in tuned["caps"]:
        near(row["energy_j"] / row["steps"], card.step(row["cap_w"])[0], relative=0.05)
    assert (machine.read(LONG), machine.read(SHORT)) == (95000000, 118750000)


if __name__ == "__main__":
    main()
