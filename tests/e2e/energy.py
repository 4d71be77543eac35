"""Energy of counters that move along a known function of time, and of irregular trees."""
import json
import math
import os
import shutil
import sys
import time

from harness import BUILD, BURNER, NOBODY, TESTS, Skip, gap_s, main, near, sum_without_none, test

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
RANGE_UJ = 262143328850
PACKAGE, DRAM = "intel-rapl:0", "intel-rapl:0:1"


def zone(name, energy_uj=0, range_uj=RANGE_UJ):
    return {"name": f"{name}\n", "energy_uj": f"{energy_uj}\n", "max_energy_range_uj": f"{range_uj}\n"}


def sysfs(workdir, zones):
    """A static /sys with a powercap class of {id: {file: text}}."""
    return workdir.tree("sys", {f"class/powercap/{name}/{file}": text for name, files in zones.items()
                             for file, text in files.items()})


def domains(report):
    return {domain["domain"]: domain for domain in report["energy"]["domains"]}


class Measured:
    """A run over moving counters, and each zone's true energy between its start and its end."""

    def __init__(self, workdir, simulator_options, command, options=()):
        self.top = workdir.folder / "sim"
        shutil.rmtree(self.top, ignore_errors=True)
        simulator = workdir.start(self.top, *simulator_options, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        self.report, _ = workdir.report(*options, "--", *command, env={"WATTLE_SYSFS": str(self.top)})
        simulator.terminate()
        simulator.wait()
        self.truth = expected_values.load(self.top)
        self.late_s = expected_values.late_s(self.truth)
        self.start_ns, self.end_ns = workdir.rows("select start_ns, end_ns from segment")[0]
        self.times_ns = workdir.reading_times_ns()
        inside = [t for t in self.times_ns if self.start_ns <= t <= self.end_ns]
        self.longest_gap_s = max(b - a for a, b in zip(inside, inside[1:])) / 1e9
        self.domains = domains(self.report)
        self.total_j, self.seconds = self.report["energy"]["total_j"], self.report["run"]["duration_s"]

    def expected_j(self, name):
        return expected_values.energy_j(self.truth, name, self.start_ns, self.end_ns)

    def check(self, domain, name, relative=0.005, period_s=0.001):
        """The true energy is within twice the stated error, which is half of a 95 % interval (and of what the simulator
        was late). That error is small: `relative`, or the energy between the readings around both ends, which a busy
        machine delays."""
        found, true_j, max_w = self.domains[domain], self.expected_j(name), expected_values.max_w(self.truth, name)
        near(found["energy_j"], true_j, absolute=2 * found["error_j"] + self.late_s * max_w)
        unread_s = period_s + gap_s(self.times_ns, self.start_ns) + gap_s(self.times_ns, self.end_ns)
        assert found["error_j"] <= max(relative * true_j, unread_s * max_w), (found, true_j, unread_s)

    def check_wraps(self, start_uj, range_uj):
        """As often as the true counter between the ends; a wrap that is late at an end may count or not."""
        def wraps(t_ns):
            j = expected_values.energy_j(self.truth, "package-0", self.truth["origin_ns"], t_ns)
            return math.floor((start_uj + 1e6 * j) / (range_uj + 1))
        late_ns = self.late_s * 1e9
        least = wraps(self.end_ns - late_ns) - wraps(self.start_ns)
        most = wraps(max(self.times_ns)) - wraps(self.start_ns - late_ns)
        assert least >= 3 and least <= self.domains["package-0"]["wraps"] <= most, (self.domains, least, most)


@test
def known_power(workdir):
    """a sine of 50 ± 20 W in the package, 5 W of DRAM: both within their errors, which are small, measured, the total
    is their sum"""
    run = Measured(workdir, ["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5"], ["sleep", "4"])
    run.check("package-0", "package-0")
    run.check("dram-0", "package-0/dram")
    near(run.total_j, run.domains["package-0"]["energy_j"] + run.domains["dram-0"]["energy_j"], relative=1e-12)
    assert run.domains["package-0"]["provenance"] == run.report["energy"]["provenance"] == "measured"
    assert run.domains["package-0"]["source"] == "powercap" and run.domains["dram-0"]["kind"] == "dram"
    near(run.domains["package-0"]["mean_w"], run.domains["package-0"]["energy_j"] / run.seconds, relative=1e-6)


@test
def wraps(workdir):
    """counter with a range of 60 J at 50 W wraps three or four times in 4 s: no energy is lost"""
    run = Measured(workdir, ["--zone", "package-0=50", "--range", "package-0=60000000", "--start",
                             "package-0=30000000"],
                   ["sleep", "4"])
    run.check("package-0", "package-0")
    run.check_wraps(30000000, 60000000)


@test
def wraps_between_samples(workdir):
    """sampled every 5 s, counter wraps every 1.2 s: extra readings in between, no energy is lost"""
    run = Measured(workdir, ["--zone", "package-0=50", "--range", "package-0=60000000", "--start",
                             "package-0=30000000"],
                   ["sleep", "4"], ["-i", "5s"])
    run.check("package-0", "package-0")
    run.check_wraps(30000000, 60000000)


@test
def core_lies_in_the_package(workdir):
    """core and psys: listed; the total is the package alone"""
    run = Measured(workdir, ["--zone", "package-0=40", "--zone", "package-0/core=30", "--zone", "psys=60"],
                   ["sleep", "2"])
    assert run.domains["core-0"]["inside"] == "package-0", run.domains
    run.check("psys", "psys", relative=0.01)
    near(run.total_j, run.domains["package-0"]["energy_j"], relative=1e-12)


@test
def two_packages(workdir):
    """two packages with cores and DRAM of their own: the total is packages and DRAM"""
    zones = [word for package in (0, 1) for part in ("=20", "/core=10", "/dram=3")
             for word in ("--zone", f"package-{package}{part}")]
    run = Measured(workdir, zones, ["sleep", "2"])
    assert {"package-0", "package-1", "core-0", "core-1", "dram-0", "dram-1"} <= set(run.domains), run.domains
    parts = {f"{kind}-{i}": name for i in (0, 1) for kind, name in (("package", f"package-{i}"),
                                                                    ("dram", f"package-{i}/dram"))}
    for domain, name in parts.items():
        run.check(domain, name, relative=0.01)
    near(run.total_j, sum(run.domains[domain]["energy_j"] for domain in parts), relative=1e-12)


@test
def ledger(workdir):
    """each joule is in one row, and a busy target gets more than an idle one"""
    shares, cpu_shares = {}, {}
    for name, command in (("busy", [BURNER, "cpu", "2"]), ("idle", ["sleep", "2"])):
        energy = Measured(workdir, ["--zone", "package-0=50"], command).report["energy"]
        (cpu_shares[name],), = workdir.rows("select 1.0 * (max(main_cpu_ns) - min(main_cpu_ns)) /"
                                            " (max(system_cpu_busy_ns) - min(system_cpu_busy_ns)) from sample")
        near(sum_without_none(energy["ledger"]), energy["total_j"], relative=1e-9)
        assert all(row is None or row >= 0 for row in energy["ledger"].values()), energy
        shares[name] = energy["ledger"]["target_j"] / energy["total_j"]
    assert shares["busy"] > 0.5 * cpu_shares["busy"] and shares["busy"] > 5 * shares["idle"], (shares, cpu_shares)


@test
def a_gap(workdir):
    """counter missing for a second: the energy is complete, and the gap is counted"""
    run = Measured(workdir, ["--zone", "package-0=50", "--vanish", "package-0=1:2"], ["sleep", "3"])
    run.check("package-0", "package-0", relative=0.02)
    assert run.domains["package-0"]["gaps"] >= 1, run.domains


@test
def no_number_for_a_while(workdir):
    """counter file with garbage for a second: the energy is complete, and the gap is counted"""
    run = Measured(workdir, ["--zone", "package-0=50", "--garbage", "package-0=1:1.5"], ["sleep", "3"])
    run.check("package-0", "package-0", relative=0.02)


@test
def a_reset(workdir):
    """counter that restarts at 0: at most the energy around it is unknown, none is added"""
    run = Measured(workdir, ["--zone", "package-0=50", "--reset", "package-0=1.5"], ["sleep", "3"])
    found, expected_j = run.domains["package-0"], run.expected_j("package-0")
    surplus_j, unread_j = found["energy_j"] - expected_j, 50 * run.longest_gap_s
    allowed_j = 2 * found["error_j"] + 50 * run.late_s
    assert (-allowed_j - unread_j <= surplus_j <= allowed_j
            and found["error_j"] < 0.005 * expected_j + unread_j), (found, expected_j)


@test
def a_slow_counter(workdir):
    """counter updated every 100 ms, sampled every 20 ms: energy within its error, the period is measured"""
    run = Measured(workdir, ["--zone", "package-0=50+30*sin@2", "--tick", "100000"], ["sleep", "3"], ["-i", "20ms"])
    run.check("package-0", "package-0", relative=0.02, period_s=0.1)
    near(run.domains["package-0"]["update_period_s"], 0.1, absolute=max(0.03, run.longest_gap_s))


@test
def no_sensor_at_all(workdir):
    """empty /sys: the package is estimated and marked, or unknown; never measured, never 0"""
    top = workdir.tree("empty", {})
    report, _ = workdir.burn("cpu", "1", env={"WATTLE_SYSFS": str(top)})
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
def shorter_than_its_interval(workdir):
    """0.3 s at an interval of 10 s: one reading of the model, over that time, gives its energy"""
    report, _ = workdir.burn("cpu", "0.3", options=["-i", "10s"], env={"WATTLE_SYSFS": sysfs(workdir, {})})
    energy = report["energy"]
    assert energy["provenance"] in ("estimated", None), energy
    if energy["provenance"]:
        (domain,) = energy["domains"]
        near(energy["total_j"], domain["mean_w"] * report["run"]["duration_s"], relative=0.05)
        assert energy["total_j"] > 0 and energy["error_j"] > 0.5 * energy["total_j"], energy


@test
def garbage(workdir):
    """zones with garbage: the run continues, the report is valid, no energy is added"""
    for what, files in GARBAGE.items():
        top = sysfs(workdir, {PACKAGE: files, "intel-rapl:1": zone("package-1", 1000)})
        report, done = workdir.report("--", "sleep", "0.2", env={"WATTLE_SYSFS": str(top)})
        for domain in report["energy"]["domains"]:
            energy_j = domain["energy_j"]
            assert energy_j is None or 0 <= energy_j < 1e6, (what, domain)
        assert "package-1" in domains(report), (what, report["energy"])
        assert workdir.wattle("sensors", "--json", env={"WATTLE_SYSFS": str(top)}).returncode == 0, what
        shutil.rmtree(top)


@test
def odd_shapes(workdir):
    """folders in place of files, loops of symlinks, fifos: no crash, no hang"""
    top = workdir.tree("sys", {"class/powercap/intel-rapl:0/name": "package-0\n"})
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
    report, _ = workdir.report("--", "sleep", "0.2", env={"WATTLE_SYSFS": str(top)})
    assert time.monotonic() - started < 5
    assert all(domain["provenance"] == "estimated" for domain in report["energy"]["domains"]), report["energy"]


@test
def a_tree_that_vanishes(workdir):
    """whole tree disappears during the run and returns: the run completes, energy is never negative"""
    top = sysfs(workdir, {PACKAGE: zone("package-0", 1000), DRAM: zone("dram", 5)})
    process = workdir.start("run", "-q", "-i", "20ms", "-o", "run.sqlite", "--json", "-", "--", "sleep", "2",
                         env={"WATTLE_SYSFS": str(top)})
    time.sleep(0.7)
    shutil.rmtree(top)
    time.sleep(0.6)
    sysfs(workdir, {PACKAGE: zone("package-0", 2000), DRAM: zone("dram", 5)})
    done = workdir.finish(process)
    assert done.returncode == 0, done
    for domain in json.loads(done.stdout)["energy"]["domains"]:
        assert domain["energy_j"] is None or 0 <= domain["energy_j"] < 1, domain


@test
def an_unreadable_package(workdir):
    """one of two packages unreadable: the other is measured, and the run reports what its total lacks"""
    top = TESTS / "machines/one-unreadable/sys"
    report = json.loads(workdir.wattle("run", "-q", "-o", "run.sqlite", "--json", "-", "--", "sleep", "0.2",
                                    env={"WATTLE_SYSFS": top}).stdout)
    assert "package-0" in domains(report) and "package-1" not in domains(report), domains(report)
    assert report["energy"]["provenance"] == "measured", report["energy"]
    assert any(text.startswith("package-1 (powercap) is not in the total") for text in report["warnings"]), report


@test
def a_wrong_root(workdir):
    """WATTLE_SYSFS that names no folder: refused with the name"""
    done = workdir.wattle("run", "-o", "run.sqlite", "--", "touch", "started", env={"WATTLE_SYSFS": "/not/there"})
    assert done.returncode == 125 and "WATTLE_SYSFS" in done.stderr, done
    assert not (workdir.folder / "started").exists()


@test
def unreadable_for_others(workdir):
    """counter readable by root only: sensors reports the reason and the remedy"""
    if os.geteuid() != 0:
        raise Skip("needs root, to be refused as another user")
    top = sysfs(workdir, {PACKAGE: zone("package-0", 1000)})
    (top / "class/powercap" / PACKAGE / "energy_uj").chmod(0o400)
    wattle, _ = workdir.for_everybody()
    done = workdir.finish(workdir.start("sensors", "--json", program=wattle, env={"WATTLE_SYSFS": str(top)},
                                        user=NOBODY,
                                        group=NOBODY))
    rows = [row for row in json.loads(done.stdout)["sensors"] if row["sensor"] == "powercap"]
    assert len(rows) == 1 and not rows[0]["readable"] and not rows[0]["used"], rows
    assert rows[0]["why"] and rows[0]["remedy"], rows


if __name__ == "__main__":
    main()
