"""Every machine of tests/machines/ against its sensors.json, the expected output of `wattle sensors --json`.

	machines.py [NAME…]            compares; prints TAP
	machines.py --write [NAME…]    writes the current output; read the difference before you commit it

Values that vary are null in the file: readings and periods of NVML's fake and of perf's counters, which come from the
kernel of the test machine. MACHINE stands for the machine's folder. tests/machines/README.md describes how to add a
machine.
"""
import difflib
import json
import os
import pathlib
import shutil
import sys
import tempfile

from harness import BUILD, TESTS, WorkDir, Skip, main, test

MACHINES = TESTS / "machines"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
VISIBLE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
MOVING = ("last", "update_period_s", "update_jitter_s")


def machines():
    return sorted(path for path in MACHINES.iterdir() if (path / "sys").is_dir())


def environment(workdir, machine):
    cards = machine / "nvml.cards"
    return {"WATTLE_SYSFS": str(machine / "sys"), "WATTLE_PROCFS": str(machine / "proc"),
            "WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_ROCM_SMI": "/nonexistent/librocm_smi64.so",
            "WATTLE_NVML": str(FAKE_NVML) if cards.exists() else "/nonexistent/libnvidia-ml.so.1",
            "WATTLE_FAKE_NVML": str(cards), **{name: None for name in VISIBLE}}


def look(workdir, machine):
    """The program's output, without parts that depend on time and path, and whether its status fits."""
    done = workdir.wattle("sensors", "--json", env=environment(workdir, machine))
    listing = json.loads(done.stdout.replace(str(machine), "MACHINE"))
    for row in listing["sensors"]:
        if row["sensor"] in ("nvml", "perf"):
            row.update((key, None) for key in MOVING)
    assert done.returncode == (0 if listing["measures"] else 1), done.returncode
    return json.dumps(listing, indent=2, ensure_ascii=False) + "\n"


def add_test(machine):
    def compare(workdir):
        path = machine / "sensors.json"
        assert path.exists(), f"{path} is missing: write it with `machines.py --write {machine.name}`, and read it"
        expected, actual = path.read_text(), look(workdir, machine)
        if "perf_event_" in actual and "perf_event_" not in expected:
            raise Skip("perf events are refused here")
        difference = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="")
        assert expected == actual, "\n".join(difference)
    compare.__doc__ = f"{machine.name}: sensors --json as expected"
    compare.__name__ = machine.name
    test(compare)


def write(names):
    for machine in machines():
        if names and machine.name not in names:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="wattle-e2e-", dir=os.environ.get("TMPDIR")))
        try:
            (machine / "sensors.json").write_text(look(WorkDir(folder), machine))
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2:])
    else:
        for each in machines():
            add_test(each)
        main()
