"""wattle sensors --capture: the copy of a machine's files, omissions and pseudonyms."""
import filecmp
import json
import os
import pathlib
import re

from harness import NOBODY, TESTS, Skip, main, test
from sensor_machines import METAL, NO_NVML, TWO_CARDS, cards, cards_of, known_machine, machine


def capture(workdir, env, name="captured"):
    done = workdir.wattle("sensors", "--capture", workdir.folder / name, env=env)
    assert done.returncode == 0, done
    top = workdir.folder / name
    cards = top / "nvml.cards"
    return top, {"WATTLE_SYSFS": str(top / "sys"), "WATTLE_PROCFS": str(top / "proc"),
                 **(cards_of(cards) if cards.exists() else NO_NVML)}, done


def seen(workdir, env):
    """Output of sensors, without the paths of its tree."""
    text = workdir.wattle("sensors", "--json", env=env).stdout
    for variable in ("WATTLE_SYSFS", "WATTLE_PROCFS"):
        text = text.replace(env[variable], variable)
    rows = json.loads(text)["sensors"]
    for row in rows:
        if row["sensor"] in ("perf", "nvml"):  # counters keep counting
            row["last"] = row["update_period_s"] = row["update_jitter_s"] = None
    return rows


@test
def round_trip(workdir):
    """each test machine, captured: the same sensors; its links stay links"""
    for top in sorted((TESTS / "machines").iterdir()):
        if not (top / "sys").is_dir():
            continue
        env = known_machine(top.name)
        copy, as_captured, _ = capture(workdir, env, top.name)
        before, after = seen(workdir, env), seen(workdir, as_captured)
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
def anonymous(workdir):
    """names of a machine: replaced by the same pseudonym each time; files that no sensor reads are left out"""
    cpuinfo = METAL + "Serial\t\t: 10000000abcdef01\n"
    top, _, done = capture(workdir, machine(workdir, "named", ["package-0"], cpuinfo, NAMED))
    text = "".join(path.read_text() for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    names = "".join(str(path) for path in top.rglob("*"))
    for secret in ("00:1a:2b", "89ab-cdef", "a1b2c3d4", "SN-4711", "SN-0815", "DP-1", "987654321987",
                   "abcdef01", "Serial"):
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
def careful(workdir):
    """suspended device: not woken; fifo: not read; link out of the root: leads nowhere"""
    secret = workdir.folder / "secret"
    secret.mkdir()
    (secret / "name").write_text("stolen\n")
    env = machine(workdir, "odd", ["package-0"], more={
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
    top, _, done = capture(workdir, env)
    assert "stolen" not in "".join(p.read_text() for p in top.rglob("*") if p.is_file() and not p.is_symlink())
    drm = top / "sys/class/drm"
    assert (drm / "card0/device/gpu_busy_percent").read_text() == "" and \
        (drm / "card1/device/gpu_busy_percent").read_text() == "8\n"
    unreadable = (top / "unreadable").read_text()
    assert "sys/class/drm/card0/device/gpu_busy_percent\t" in unreadable and "suspended" in unreadable, unreadable
    assert "thermal_zone0/type\t" in unreadable, unreadable


@test
def refused_files(workdir):
    """unreadable file: listed with its mode, empty in the copy"""
    if os.geteuid() != 0:
        raise Skip("needs root, to be refused as another user")
    env = machine(workdir, "metal", ["package-0"])
    counter = "class/powercap/intel-rapl:0/energy_uj"
    pathlib.Path(env["WATTLE_SYSFS"], counter).chmod(0o400)
    wattle, _ = workdir.for_everybody()
    done = workdir.finish(workdir.start("sensors", "--capture", "copy", program=wattle, env=env, user=NOBODY,
                                        group=NOBODY))
    assert done.returncode == 0, done
    copy = workdir.folder / "copy"
    assert (copy / "unreadable").read_text() == f"sys/{counter}\t0400\tPermission denied\n"
    assert (copy / "sys" / counter).stat().st_size == 0 and (copy / "sys" / counter).stat().st_mode & 0o777 == 0o400


@test
def never_overwrites(workdir):
    """non-empty folder: refused and unchanged; an empty one is accepted"""
    env = machine(workdir, "metal", ["package-0"])
    full = workdir.tree("full", {"mine": "x"})
    done = workdir.wattle("sensors", "--capture", full, env=env)
    assert done.returncode == 1 and "not empty" in done.stderr and str(full) in done.stderr, done
    assert [path.name for path in full.iterdir()] == ["mine"]
    empty = workdir.folder / "empty"
    empty.mkdir()
    assert workdir.wattle("sensors", "--capture", empty, env=env).returncode == 0
    assert (empty / "sys").is_dir()
    done = workdir.wattle("sensors", "--capture", workdir.folder / "not/there", env=env)
    assert done.returncode == 1 and "not/there" in done.stderr, done


@test
def captured_modules(workdir):
    """power of modules and of GPU memory: captured, also for a GPU without its own"""
    only = ("gpu\nerror nvmlDeviceGetTotalEnergyConsumption 3\nerror nvmlDeviceGetPowerUsage 3\n"
            "field_error 185 0 3\nfield_error 186 0 3\n")
    power_only = "field_error 191 1 3\nfield_error 191 2 3\nmodule_mw 467000\nmemory_mw 38000\n"
    env = {**machine(workdir, "metal", ["package-0"]), **cards(workdir, f"gpu\n{power_only}{only}{power_only}")}
    _, as_captured, _ = capture(workdir, env)
    before, after = ([(row["domain"], row["inside"], row["readable"]) for row in seen(workdir, each)
                      if row["sensor"] == "nvml"] for each in (env, as_captured))
    assert before == after and ("gpu-1", "module-1", False) in after and len(after) == 6, (before, after)


@test
def captured_gpus(workdir):
    """NVML's answers: saved in the fake library's format, with other UUIDs, and replayed by the fixture"""
    env = {**machine(workdir, "metal", ["package-0"]), **cards(workdir, TWO_CARDS)}
    top, as_captured, _ = capture(workdir, env)
    saved = (top / "nvml.cards").read_text()
    assert "12345678-1234" not in saved and "GPU-00000000-0000-4000-8000-000000000001" in saved, saved
    before, after = ([row for row in seen(workdir, each) if row["sensor"] == "nvml"] for each in (env, as_captured))
    for a, b in zip(before, after, strict=True):
        for moving in ("uuid", "last", "update_period_s", "update_jitter_s"):
            a.pop(moving), b.pop(moving)
        assert a == b, (a, b)


if __name__ == "__main__":
    main()
