"""wattle cap set, reset and list on each kind of device: registers, ranges, names, permissions. Lifetime of limits:
cap_set.py, cap_kill.py."""
import json
import os
import pathlib
import shutil
import signal

from harness import BUILD, NOBODY, Skip, main, test, wait_until

FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
CARDS = ("gpu\nuuid GPU-aaaa\nlimits_mw 100000 400000 400000 300000\ngpu\nuuid GPU-bbbb\nlimits_mw 100000 400000 "
         "400000 350000\n")
RAPL, HWMON = "class/powercap/intel-rapl:0", "class/drm/card0/device/hwmon/hwmon2"
FILES = {
    f"{RAPL}/name": "package-0\n", f"{RAPL}/enabled": "0\n",
    f"{RAPL}/constraint_0_name": "long_term\n", f"{RAPL}/constraint_0_power_limit_uw": "95000000\n",
    f"{RAPL}/constraint_0_max_power_uw": "95000000\n",
    f"{RAPL}/constraint_1_name": "short_term\n", f"{RAPL}/constraint_1_power_limit_uw": "119000000\n",
    "class/drm/card0/device/vendor": "0x1002\n", "class/drm/card0/device/device": "0x744c\n",
    "class/drm/card0/device/uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
    f"{HWMON}/name": "amdgpu\n", f"{HWMON}/power1_cap": "303000000\n", f"{HWMON}/power1_cap_default": "303000000\n",
    f"{HWMON}/power1_cap_min": "272000000\n", f"{HWMON}/power1_cap_max": "348000000\n",
}
CHANGING = (f"{RAPL}/enabled", f"{RAPL}/constraint_0_power_limit_uw", f"{RAPL}/constraint_1_power_limit_uw",
            f"{HWMON}/power1_cap")


class Machine:
    """Two NVIDIA cards (gpu-0, gpu-1), one AMD card (gpu-2), a package."""

    def __init__(self, workdir, cards=CARDS):
        self.workdir, self.cards = workdir, workdir.folder / "cards"
        self.sysfs = workdir.tree("sys", FILES)
        self.cards.write_text(cards)
        self.env = {"WATTLE_SYSFS": str(self.sysfs), "WATTLE_STATE": str(workdir.folder / "state"),
                    "WATTLE_HELPER": "off",
                    "WATTLE_NVML": str(FAKE_NVML), "WATTLE_FAKE_NVML": str(self.cards),
                    "WATTLE_ROCM_SMI": "/nonexistent",
                    "CUDA_VISIBLE_DEVICES": None, "HIP_VISIBLE_DEVICES": None, "ROCR_VISIBLE_DEVICES": None}

    def cap(self, *words, env=None, **options):
        return self.workdir.wattle("cap", *words, env={**self.env, **(env or {})}, **options)

    def set_calls(self, of="limits"):
        """Limits that were set, in order: (GPU index, mW or MHz)."""
        path = pathlib.Path(f"{self.cards}.{of}")
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(map(int, line.split()[1:3])) for line in lines]

    def files(self):
        return [int((self.sysfs / path).read_text()) for path in CHANGING]


@test
def stays_until_reset(workdir):
    """limit without a command: stays; reset restores the limit from before the first one, --default the default"""
    machine = Machine(workdir)
    assert machine.cap("set", "gpu-0", "250").returncode == 0
    assert machine.cap("set", "GPU-aaaa", "200.5").returncode == 0
    assert "gpu-0: persistent; `wattle cap reset gpu-0` restores 300 W" in machine.cap("list").stdout
    rows = json.loads(machine.cap("list", "--json").stdout)
    assert [(row["is_persistent"], row["previous_w"]) for row in rows[:2]] == [(True, 300), (False, None)], rows
    assert machine.cap("reset", "gpu-0").returncode == 0
    assert machine.set_calls() == [(0, 250000), (0, 200500), (0, 300000)], machine.set_calls()
    assert machine.cap("reset", "gpu-0", "--default").returncode == 0
    assert machine.set_calls()[-1] == (0, 400000), machine.set_calls()
    done = machine.cap("reset", "gpu-0")
    assert len(machine.set_calls()) == 4 and done.returncode == 0, done


@test
def mistakes(workdir):
    """invalid arguments: one line, nothing is set, and a command is not started"""
    machine = Machine(workdir)
    never = ["--", "touch", str(workdir.folder / "started")]
    for words, status, text in (
            (["gpu-0", "99"], 1, "gpu-0: 99 W is out of range; give 100 to 400 W"),
            (["gpu-0", "401"], 1, "100 to 400 W"), (["gpu-9", "200"], 1, "gpu-0, gpu-1, gpu-2, package-0"),
            (["gpu-0", "many"], 2, "WATTS: 'many' is not valid"), (["gpu-0"], 2, "no limit given"),
                                ([], 2, "no device given"),
            (["gpu-0", "-5"], 2, "-5"), (["gpu-0,gpu-0", "200"], 1, "gpu-0 is named twice"),
            (["gpu-2", "--clocks", "1000"], 1, "clocks")):
        for command in ([], never):
            done = machine.cap("set", *words, *command)
            expected = 125 if command else status
            assert done.returncode == expected and text in done.stderr, (words, command, done)
            assert done.stderr.count("\n") == 1, done.stderr
    assert machine.set_calls() == [] and not (workdir.folder / "started").exists()


@test
def those_shown(workdir):
    """GPUs: those visible through CUDA_VISIBLE_DEVICES, as others may belong to other jobs"""
    machine = Machine(workdir)
    done = machine.cap("set", "gpus", "280", "--", "true",
                       env={"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "-1"})
    assert done.returncode == 0, done
    assert machine.set_calls() == [(1, 280000), (1, 350000)] and machine.files()[3] == 303000000, machine.set_calls()
    before = machine.files()
    assert machine.cap("set", "gpus", "280", "--", "grep", "-q", "280000000",
                       str(machine.sysfs / CHANGING[3])).returncode == 0
    assert sorted(machine.set_calls()[2:]) == [(0, 280000), (0, 300000), (1, 280000), (1, 350000)], machine.set_calls()
    assert machine.files() == before, machine.files()


@test
def package(workdir):
    """package: long-term and short-term limits are lowered and enabled, and all three registers are restored"""
    machine = Machine(workdir)
    before = machine.files()
    shown = "cat " + " ".join(str(machine.sysfs / path) for path in CHANGING[:3])
    done = machine.cap("set", "package-0", "60.5", "--", "sh", "-c", shown)
    assert done.stdout == "1\n60500000\n60500000\n", done
    assert machine.files() == before, machine.files()
    assert machine.cap("set", "package-0", "5").returncode == 1  # below wattle's own guard


@test
def amd(workdir):
    """amdgpu: within its stated range; --default restores power1_cap_default"""
    machine = Machine(workdir)
    assert machine.cap("set", "gpu-2", "280").returncode == 0 and machine.files()[3] == 280000000
    done = machine.cap("set", "gpu-2", "200")
    assert done.returncode == 1 and "272 to 348 W" in done.stderr, done
    assert machine.cap("reset", "gpu-2").returncode == 0 and machine.files()[3] == 303000000


@test
def clocks(workdir):
    """clocks: an upper bound, not locked afterwards; power limits are unchanged"""
    machine = Machine(workdir)
    done = machine.cap("set", "gpu-0", "--clocks", "1200", "--", "true")
    assert done.returncode == 0, done
    assert machine.set_calls("clocks") == [(0, 1200), (0, 0)], machine.set_calls("clocks")
    assert machine.set_calls() == []
    done = machine.cap("set", "gpu-0", "--clocks", "100", "--", "true")
    assert done.returncode == 125 and "210 to 1410 MHz" in done.stderr, done
    done = machine.cap("set", "gpu-0", "250", "--clocks", "1200", "--", "true")
    assert done.returncode == 0 and machine.set_calls() == [(0, 250000), (0, 300000)], done


@test
def clocks_under_clocks(workdir):
    """locked clocks, which cannot be read back: after a command wattle restores the persistent limit that it set
    before"""
    machine = Machine(workdir)
    assert machine.cap("set", "gpu-0", "--clocks", "1350").returncode == 0
    assert machine.cap("set", "gpu-0", "--clocks", "1200", "--", "true").returncode == 0
    assert machine.set_calls("clocks") == [(0, 1350), (0, 1200), (0, 1350)], machine.set_calls("clocks")
    assert machine.cap("reset", "gpu-0", "--clocks").returncode == 0
    assert machine.set_calls("clocks")[-1] == (0, 0), machine.set_calls("clocks")


@test
def as_nobody(workdir):
    """user without permission: the message states the remedy, and the command does not run"""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    machine = Machine(workdir, CARDS.replace("gpu\n", "gpu\nset_uid 0\n"))
    wattle, library = workdir.for_everybody()[0], shutil.copy2(FAKE_NVML, workdir.folder)
    env = {**machine.env, "WATTLE_NVML": str(library), "WATTLE_STATE": str(workdir.folder / "own")}
    for device in ("gpu-0", "package-0"):
        done = workdir.finish(workdir.start("cap", "set", device, "80" if device == "package-0" else "250", "--",
                                            "touch",
                                            str(workdir.folder / "started"), program=wattle, env=env, user=NOBODY,
                                            group=NOBODY))
        assert done.returncode == 125 and "root" in done.stderr and "sudo wattle cap set" in done.stderr, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert machine.set_calls() == [] and not (workdir.folder / "started").exists()


@test
def owner_in_the_list(workdir):
    """command running: the list names the limit's owner, and others are refused with that name"""
    machine = Machine(workdir)
    process = workdir.start("cap", "set", "-q", "gpu-0", "250", "--", "sleep", "1000", env=machine.env)
    wait_until(lambda: (0, 250000) in machine.set_calls(), "the limit")
    assert f"gpu-0: held by wattle cap set, pid {process.pid}" in machine.cap("list").stdout
    done = machine.cap("set", "gpu-0", "200")
    assert done.returncode == 1 and f"pid {process.pid}" in done.stderr, done
    process.send_signal(signal.SIGTERM)
    assert workdir.finish(process).returncode == 128 + signal.SIGTERM
    assert machine.set_calls() == [(0, 250000), (0, 300000)], machine.set_calls()


if __name__ == "__main__":
    main()
