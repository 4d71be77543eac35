"""The meter of include/wattle.h in C programs (programs/meter.c), with counters of known energy."""
import errno
import math
import sys

from c_programs import build
from harness import BUILD, TESTS, main, near, test

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
FIELDS = ("began_ns", "from_ns", "to_ns", "ended_ns", "seconds", "cpu_j", "dram_j", "gpu_j", "total_j",
          "error_j", "estimated")


def built(workdir):
    program = workdir.folder / "program"
    return program if program.exists() else build(workdir, "meter")


class Acted:
    """Output of an act over a /sys: single numbers, and readings as {field: value}."""

    def __init__(self, workdir, act, seconds, sysfs, status=0, env=None):
        self.done = workdir.finish(workdir.start(act, seconds, program=built(workdir),
                                           env={"WATTLE_SYSFS": str(sysfs), "WATTLE_NVML": "/nowhere", **(env or {})}))
        assert self.done.returncode == status and not self.done.stderr, self.done
        lines = [line.split() for line in self.done.stdout.splitlines()]
        self.said = {words[0]: int(words[1]) for words in lines if len(words) == 2}
        self.readings = [dict(zip(FIELDS, map(float, words[1:]))) for words in lines if len(words) > 2]


class Simulated(Acted):
    """The same with moving zones."""

    def __init__(self, workdir, act, seconds, options):
        self.top = workdir.folder / "sim"
        built(workdir)  # before the counters start
        simulator = workdir.start(self.top, *options, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        super().__init__(workdir, act, seconds, self.top)
        simulator.terminate()
        simulator.wait()
        self.truth = expected_values.load(self.top)

    def true_j(self, from_ns, to_ns, *zones):
        return sum(expected_values.energy_j(self.truth, zone, int(from_ns), int(to_ns)) for zone in zones)

    def check(self, reading, field, *zones):
        """Whenever within its two calls the meter read the counters: the energy is within twice the stated error, which
        is half of a 95 % interval."""
        late_ns = self.truth["late_ns"]
        least_j = self.true_j(reading["from_ns"], reading["to_ns"] - late_ns, *zones)
        most_j = self.true_j(reading["began_ns"] - late_ns, reading["ended_ns"], *zones)
        error_j = 2 * reading["error_j"]
        assert least_j - error_j <= reading[field] <= most_j + error_j, (field, reading, least_j, most_j)

    def late_j(self, reading, *zones):
        """The zones' energy in the time by which the two calls, and the simulator at both, were late."""
        late_ns = reading["from_ns"] - reading["began_ns"] + reading["ended_ns"] - reading["to_ns"]
        late_ns += 2 * self.truth["late_ns"]
        return late_ns / 1e9 * sum(expected_values.max_w(self.truth, zone) for zone in zones)


@test
def known_power(workdir):
    """a sine of 50 ± 20 W and 5 W of DRAM: each within its error, which is small; the total is the sum"""
    acted = Simulated(workdir, "once", 2, ["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5"])
    reading, = acted.readings
    assert acted.said["stop"] == 0 and acted.said["stop_early"] == acted.said["read_late"] == -errno.EPERM, acted.said
    acted.check(reading, "cpu_j", "package-0")
    acted.check(reading, "dram_j", "package-0/dram")
    near(reading["total_j"], reading["cpu_j"] + reading["dram_j"], relative=1e-8)
    least_s, most_s = ((reading[b] - reading[a]) / 1e9 for a, b in (("from_ns", "to_ns"), ("began_ns", "ended_ns")))
    assert 1.99 <= least_s <= reading["seconds"] <= most_s, reading
    assert math.isnan(reading["gpu_j"]) and reading["estimated"] == 0, reading
    # else a busy machine may not give it the milliseconds in which it measures the update period
    if acted.said["is_first"]:
        assert reading["error_j"] < max(0.02 * reading["total_j"],
                                        acted.late_j(reading, "package-0", "package-0/dram")), reading


@test
def each_domain(workdir):
    """wattle_meter_domain: the energy of package, core and DRAM by name; too early, past the last and without a size: a
    code"""
    acted = Simulated(workdir, "domains", 2, ["--zone", "package-0=50", "--zone", "package-0/core=20", "--zone",
                                              "package-0/dram=5"])
    reading, = acted.readings
    near(acted.said["package-0"], 1e3 * reading["cpu_j"], absolute=1)
    near(acted.said["dram-0"], 1e3 * reading["dram_j"], absolute=1)
    near(acted.said["core-0"], 1e3 * acted.true_j(reading["from_ns"], reading["to_ns"], "package-0/core"),
         absolute=1e3 * (reading["error_j"] + acted.late_j(reading, "package-0/core")))
    assert 0 < acted.said["error_mj"] < 5000 and {"n_in_total", "n_inside"} <= acted.said.keys(), acted.said
    assert acted.said["domain_early"] == acted.said["domain_again"] == -errno.EPERM, acted.said
    assert acted.said["past"] == -errno.ENOENT and acted.said["no_size"] == -errno.EINVAL, acted.said
    assert acted.said["older"] == 0 and acted.said["untouched"] == -1, acted.said


@test
def again_and_again(workdir):
    """one meter started five times, read in between: every reading is within its error"""
    acted = Simulated(workdir, "often", 1, ["--zone", "package-0=50+30*sin@0.7"])
    assert len(acted.readings) == 10, acted.done
    for reading in acted.readings:
        acted.check(reading, "cpu_j", "package-0")


@test
def a_slow_counter(workdir):
    """updates every 100 ms: an interval of 30 ms has a large stated error"""
    acted = Simulated(workdir, "often", 0.15, ["--zone", "package-0=50", "--tick", "100000"])
    for reading in acted.readings:
        acted.check(reading, "cpu_j", "package-0")
        assert reading["error_j"] > reading["seconds"] * 25, reading


@test
def one_wrap(workdir):
    """counter that wraps in between: no energy is lost"""
    acted = Simulated(workdir, "once", 1, ["--zone", "package-0=50", "--range", "package-0=6000000000", "--start",
                                        "package-0=5980000000"])
    acted.check(acted.readings[0], "cpu_j", "package-0")


@test
def perhaps_two_wraps(workdir):
    """counter that may have wrapped twice: unknown, and so is the total; other domains are known"""
    acted = Simulated(workdir, "once", 1, ["--zone", "package-0=50", "--zone", "package-0/dram=5", "--range",
                                        "package-0=60000000"])
    reading, = acted.readings
    assert math.isnan(reading["cpu_j"]) and math.isnan(reading["total_j"]), reading
    near(reading["dram_j"], acted.true_j(reading["from_ns"], reading["to_ns"], "package-0/dram"), relative=0.05,
         absolute=acted.late_j(reading, "package-0/dram"))


@test
def a_reset(workdir):
    """counter that restarts: unknown"""
    acted = Simulated(workdir, "once", 2.5, ["--zone", "package-0=50", "--reset", "package-0=2", "--start",
                                          "package-0=200000000000"])
    assert math.isnan(acted.readings[0]["total_j"]) and math.isnan(acted.readings[0]["error_j"]), acted.readings


@test
def two_packages(workdir):
    """total: the sum of the packages, without core and psys"""
    acted = Simulated(workdir, "once", 1, ["--zone", "package-0=20", "--zone", "package-0/core=10", "--zone",
                                        "package-1=30", "--zone", "psys=80"])
    acted.check(acted.readings[0], "cpu_j", "package-0", "package-1")
    acted.check(acted.readings[0], "total_j", "package-0", "package-1")


@test
def in_a_forked_child(workdir):
    """meter opened before fork: works in both processes"""
    acted = Simulated(workdir, "forked", 0.5, ["--zone", "package-0=50"])
    assert acted.said["child"] == acted.said["parent"] == 0, acted.said
    for reading in acted.readings:
        acted.check(reading, "cpu_j", "package-0")


@test
def one_package_unreadable(workdir):
    """one of two packages unreadable: the total is unknown, not half of it"""
    acted = Acted(workdir, "once", 0.1, TESTS / "machines/one-unreadable/sys")
    assert math.isnan(acted.readings[0]["cpu_j"]), acted.readings


CARD = "gpu\npower_mw constant 300000\n"
NO_COUNTER = "error nvmlDeviceGetTotalEnergyConsumption 3\n"


def read_gpus(workdir, cards):
    (workdir.folder / "cards").write_text(cards)
    acted = Acted(workdir, "once", 1, workdir.tree("empty", {}), env={
        "WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
        "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
        "CUDA_VISIBLE_DEVICES": None})
    return acted.readings[0]


@test
def gpus(workdir):
    """two GPUs with counters: summed; one with power only: the sum is unknown"""
    both = read_gpus(workdir, CARD * 2)
    near(both["gpu_j"], 600 * both["seconds"], relative=0.2)
    near(both["total_j"], both["cpu_j"] + both["gpu_j"], relative=1e-8)
    assert math.isnan(read_gpus(workdir, CARD + CARD + NO_COUNTER)["gpu_j"])


@test
def no_sensor(workdir):
    """empty /sys: the load model estimates, and the reading is marked; or open fails with the reason"""
    acted = Acted(workdir, "once", 0.5, workdir.tree("empty", {}))
    reading, = acted.readings
    assert reading["estimated"] == 1 and reading["error_j"] > 0.3 * reading["total_j"] > 0, reading


@test
def no_sensor_and_no_cpu(workdir):
    """no sensors and no model: open fails"""
    workdir.environment["WATTLE_PROCFS"] = str(workdir.tree("proc", {"stat": "cpu 1 2 3 4\n"}))
    acted = Acted(workdir, "once", 0.1, workdir.tree("empty", {}), status=1)
    assert acted.said["open"] == -errno.ENODEV, acted.said


@test
def sizes(workdir):
    """structs of older programs: filled up to their size; without a size refused"""
    acted = Simulated(workdir, "sizes", 0, ["--zone", "package-0=50"])
    assert acted.said == {"no_size": -errno.EINVAL, "untouched": 1, "open": 0, "older": 0, "total": -1,
                          "reading_size": -errno.EINVAL}, acted.said


@test
def wrong_options(workdir):
    """unknown GPU brand, and GPU that does not exist: refused"""
    acted = Simulated(workdir, "wrong_options", 0, ["--zone", "package-0=50"])
    assert acted.said == {"brand": -errno.EINVAL, "gpus": -errno.EINVAL, "untouched": 1}, acted.said


@test
def disabled(workdir):
    """WATTLE_DISABLE=1: opens, time passes, energy is unknown"""
    workdir.environment["WATTLE_DISABLE"] = "1"
    acted = Acted(workdir, "once", 0.1, workdir.tree("empty", {}))
    assert acted.readings[0]["seconds"] > 0.09 and math.isnan(acted.readings[0]["total_j"]), acted.readings


@test
def cost(workdir):
    """start and stop: cost microseconds beside reading two zones"""
    acted = Simulated(workdir, "cost", 0, ["--zone", "package-0=50", "--zone", "package-0/dram=5"])
    assert acted.said["pair_ns"] < 1_000_000, acted.said


if __name__ == "__main__":
    main()
