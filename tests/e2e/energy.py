"""Energy of counters that move along a known function of time, and of trees that are not what they should be."""
import json
import math
import os
import pathlib
import shutil
import threading
import time

from harness import BURNER, main, near, test

RANGE_UJ = 262143328850
PACKAGE, DRAM, CORE = "intel-rapl:0", "intel-rapl:0:1", "intel-rapl:0:0"


def zone(name, energy_uj=0, range_uj=RANGE_UJ):
    return {"name": f"{name}\n", "energy_uj": f"{energy_uj}\n", "max_energy_range_uj": f"{range_uj}\n"}


def sysfs(room, zones):
    """A /sys with a powercap class of {id: {file: text}}."""
    return room.tree("sys", {f"class/powercap/{name}/{file}": text for name, files in zones.items()
                             for file, text in files.items()})


class Mover:
    """Writes energy_uj of some zones once a millisecond: {id: (start µJ, power W, range µJ)}."""

    def __init__(self, top, zones):
        self.zones = [(os.open(top / "class/powercap" / name / "energy_uj", os.O_WRONLY), *function)
                      for name, function in zones.items()]
        self.origin_ns = time.monotonic_ns()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.move)

    def move(self):
        while not self.stopping.is_set():
            elapsed_ns = time.monotonic_ns() - self.origin_ns
            for fd, start_uj, power_w, range_uj in self.zones:
                raw_uj = (start_uj + int(power_w * elapsed_ns / 1000)) % (range_uj + 1)
                os.pwrite(fd, b"%020d\n" % raw_uj, 0)
            time.sleep(0.001)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for fd, *_ in self.zones:
            os.close(fd)


def domains(report):
    return {domain["domain"]: domain for domain in report["energy"]["domains"]}


def measure(room, zones, functions, seconds, *options):
    """A run of so many seconds over moving counters."""
    top = sysfs(room, zones)
    with Mover(top, functions):
        report, _ = room.report(*options, "--", "sleep", seconds, env={"WATTLE_SYSFS": str(top)})
    return report


@test
def constant_power(room):
    """50 W package and 5 W DRAM over 4 s: both within 1 %, measured, and the total is their sum"""
    report = measure(room, {PACKAGE: zone("package-0"), DRAM: zone("dram")},
                     {PACKAGE: (0, 50, RANGE_UJ), DRAM: (7, 5, RANGE_UJ)}, 4)
    found, seconds = domains(report), report["run"]["duration_s"]
    near(found["package-0"]["energy_j"], 50 * seconds, relative=0.01)
    near(found["dram-0"]["energy_j"], 5 * seconds, relative=0.01)
    near(found["package-0"]["mean_w"], 50, relative=0.01)
    near(report["energy"]["total_j"], 55 * seconds, relative=0.01)
    assert found["package-0"]["provenance"] == report["energy"]["provenance"] == "measured"
    assert found["package-0"]["source"] == "powercap" and found["dram-0"]["kind"] == "dram"
    error_j = report["energy"]["error_j"]
    assert 0 < error_j and abs(report["energy"]["total_j"] - 55 * seconds) <= error_j + 1e-3 * 55 * seconds, report["energy"]


@test
def wraps(room):
    """a counter with a range of 60 J at 50 W wraps three or four times in 4 s: no joule is lost"""
    report = measure(room, {PACKAGE: zone("package-0", range_uj=60_000_000)}, {PACKAGE: (30_000_000, 50, 60_000_000)}, 4)
    package = domains(report)["package-0"]
    near(package["energy_j"], 50 * report["run"]["duration_s"], relative=0.01)
    assert package["wraps"] in (3, 4), package


@test
def core_lies_in_the_package(room):
    """core and psys are shown; the total is the package alone"""
    report = measure(room, {PACKAGE: zone("package-0"), CORE: zone("core"), "intel-rapl:1": zone("psys")},
                     {PACKAGE: (0, 40, RANGE_UJ), CORE: (0, 30, RANGE_UJ), "intel-rapl:1": (0, 60, RANGE_UJ)}, 2)
    found = domains(report)
    assert found["core-0"]["inside"] == "package-0", found
    near(found["psys"]["mean_w"], 60, relative=0.02)
    near(report["energy"]["total_j"], found["package-0"]["energy_j"], relative=1e-12)


@test
def ledger(room):
    """each joule stands in one row, and a busy target gets more than an idle one"""
    shares = {}
    for name, command in (("busy", [BURNER, "cpu", "2"]), ("idle", ["sleep", "2"])):
        top = sysfs(room, {PACKAGE: zone("package-0")})
        with Mover(top, {PACKAGE: (0, 50, RANGE_UJ)}):
            report, _ = room.report("--", *command, env={"WATTLE_SYSFS": str(top)})
        energy = report["energy"]
        near(math.fsum(energy["ledger"].values()), energy["total_j"], relative=1e-9)
        assert all(row >= 0 for row in energy["ledger"].values()), energy
        shares[name] = energy["ledger"]["target_j"] / energy["total_j"]
        shutil.rmtree(top)
    assert shares["busy"] > 0.3 > 0.05 > shares["idle"], shares


@test
def a_gap(room):
    """a counter that cannot be read for a second: the energy is whole, the gap is counted"""
    top = sysfs(room, {PACKAGE: zone("package-0")})
    counter = top / "class/powercap" / PACKAGE / "energy_uj"
    hidden = counter.with_name("hidden")
    with Mover(top, {PACKAGE: (0, 50, RANGE_UJ)}):
        process = room.start("run", "-q", "-i", "50ms", "-o", "run.sqlite", "--json", "-", "--", "sleep", "3",
                             env={"WATTLE_SYSFS": str(top)})
        time.sleep(1)
        counter.rename(hidden)
        counter.mkdir()
        time.sleep(1)
        counter.rmdir()
        hidden.rename(counter)
        report = json.loads(room.finish(process).stdout)
    package = domains(report)["package-0"]
    near(package["energy_j"], 50 * report["run"]["duration_s"], relative=0.02)


@test
def no_sensor_at_all(room):
    """an empty /sys: the package is estimated and says so, or unknown; never measured, never 0"""
    top = room.tree("empty", {})
    report, _ = room.burn("cpu", "1", env={"WATTLE_SYSFS": str(top)})
    energy = report["energy"]
    assert energy["total_j"] is None or energy["total_j"] > 0, energy
    for domain in energy["domains"]:
        assert domain["provenance"] == "estimated" and domain["source"] == "model", domain
        assert domain["energy_j"] is None or domain["error_j"] > 0.1 * domain["energy_j"], domain


GARBAGE = {
    "empty files": zone("", ""),
    "a word": {**zone("package-0"), "energy_uj": "N/A\n"},
    "a negative number": {**zone("package-0"), "energy_uj": "-5\n"},
    "more than 64 bits": {**zone("package-0"), "energy_uj": "99999999999999999999999\n"},
    "a range of zero": {**zone("package-0"), "max_energy_range_uj": "0\n"},
    "no range": {"name": "package-0\n", "energy_uj": "5\n"},
    "no name": {"energy_uj": "5\n", "max_energy_range_uj": "100\n"},
    "a long name": {**zone("package-0"), "name": "x" * 5000},
    "binary": {**zone("package-0"), "energy_uj": "\x00\x01\x02"},
    "format characters": {**zone("package-0"), "name": "%s%n%d\n", "energy_uj": "%n"},
    "two lines": {**zone("package-0"), "energy_uj": "5\n6\n"},
    "a large file": {**zone("package-0"), "energy_uj": "1" * 1_000_000},
    "a quote in the name": {**zone("package-0"), "name": "\"'<&>\n"},
}


@test
def garbage(room):
    """zones with garbage in them: the run goes on, the report is valid, nothing is invented"""
    for what, files in GARBAGE.items():
        top = sysfs(room, {PACKAGE: files, "intel-rapl:1": zone("package-1", 1000)})
        report, done = room.report("--", "sleep", "0.2", env={"WATTLE_SYSFS": str(top)})
        for domain in report["energy"]["domains"]:
            energy_j = domain["energy_j"]
            assert energy_j is None or 0 <= energy_j < 1e6, (what, domain)
        assert "package-1" in domains(report), (what, report["energy"])
        assert room.wattle("sensors", "--json", env={"WATTLE_SYSFS": str(top)}).returncode == 0, what
        shutil.rmtree(top)


@test
def odd_shapes(room):
    """folders where files should be, loops of symlinks, fifos: no crash, no hang"""
    top = room.tree("sys", {"class/powercap/intel-rapl:0/name": "package-0\n"})
    base = top / "class/powercap"
    (base / "intel-rapl:0/energy_uj").mkdir()
    (base / "intel-rapl:0/loop").symlink_to("..")
    (base / "intel-rapl:1").symlink_to("intel-rapl:1")
    (base / "intel-rapl:2").symlink_to("../../class")
    (base / "intel-rapl:3").mkdir()
    os.mkfifo(base / "intel-rapl:3/energy_uj")
    os.mkfifo(base / "intel-rapl:3/name")
    (base / "intel-rapl:4").symlink_to("/etc")
    (base / "intel-rapl:5").write_text("a file")
    started = time.monotonic()
    report, _ = room.report("--", "sleep", "0.2", env={"WATTLE_SYSFS": str(top)})
    assert time.monotonic() - started < 5
    assert all(domain["provenance"] == "estimated" for domain in report["energy"]["domains"]), report["energy"]


@test
def a_tree_that_vanishes(room):
    """the whole tree goes away during the run, and comes back: the run is finished, energy is never negative"""
    top = sysfs(room, {PACKAGE: zone("package-0", 1000), DRAM: zone("dram", 5)})
    process = room.start("run", "-q", "-i", "20ms", "-o", "run.sqlite", "--json", "-", "--", "sleep", "2",
                         env={"WATTLE_SYSFS": str(top)})
    time.sleep(0.7)
    shutil.rmtree(top)
    time.sleep(0.6)
    sysfs(room, {PACKAGE: zone("package-0", 2000), DRAM: zone("dram", 5)})
    done = room.finish(process)
    assert done.returncode == 0, done
    for domain in json.loads(done.stdout)["energy"]["domains"]:
        assert domain["energy_j"] is None or 0 <= domain["energy_j"] < 1, domain


@test
def a_wrong_root(room):
    """WATTLE_SYSFS that names no folder is refused with its name"""
    done = room.wattle("run", "-o", "run.sqlite", "--", "touch", "started", env={"WATTLE_SYSFS": "/not/there"})
    assert done.returncode == 125 and "WATTLE_SYSFS" in done.stderr, done
    assert not (room.folder / "started").exists()


@test
def unreadable_for_others(room):
    """a counter for root only: sensors says why not and what mends it"""
    if os.geteuid() != 0:
        return
    top = sysfs(room, {PACKAGE: zone("package-0", 1000)})
    for path in [room.folder, *room.folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (top / "class/powercap" / PACKAGE / "energy_uj").chmod(0o400)
    done = room.wattle("sensors", "--json", env={"WATTLE_SYSFS": str(top)}, user=65534, group=65534, cwd="/")
    rows = [row for row in json.loads(done.stdout)["sensors"] if row["sensor"] == "powercap"]
    assert len(rows) == 1 and not rows[0]["readable"] and not rows[0]["used"], rows
    assert rows[0]["why"] and rows[0]["remedy"], rows


if __name__ == "__main__":
    main()
