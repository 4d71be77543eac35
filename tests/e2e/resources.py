"""Memory, I/O, percentages and time of the report, compared with the program's known use."""
import os
import sys
import time

from harness import BURNER, main, near, test

MB = 1000 * 1000


@test
def duration(workdir):
    """duration: the command's, from its start to its end"""
    begin_s = time.monotonic()
    report, _ = workdir.report("--", "sleep", "0.8")
    assert 0.8 <= report["run"]["duration_s"] < time.monotonic() - begin_s, report["run"]
    near(report["resource_usage"]["compute_time"]["time"], report["run"]["duration_s"] / 3600, relative=1e-9)


@test
def start_is_a_wall_clock_time(workdir):
    """start: RFC 3339 with at least milliseconds, and now"""
    import datetime
    before = time.time()
    report, _ = workdir.report("--", "true")
    text = report["run"]["start"]
    start = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    assert "." in text and start.tzinfo is not None, text
    assert before - 0.1 <= start.timestamp() <= time.time(), text


@test
def rss_of_a_known_allocation(workdir):
    """200 MB touched: 200 MB of RSS, private memory and PSS (plus C library and stack)"""
    report, _ = workdir.burn("memory", 200 * MB, "2")
    near(report["memory"]["peak_rss_bytes"], 201 * MB, absolute=4 * MB)
    near(report["memory"]["main_peak_rss_bytes"], 201 * MB, absolute=4 * MB)
    ram = report["resource_usage"]["max_ram"]
    assert ram["unit"] == "gigabytes"
    near(ram["main"]["total_rss"], 0.201, absolute=0.004)
    near(ram["main"]["private_rss"], 0.2, absolute=0.004)
    assert workdir.rows("select max(main_pss_bytes) from sample")[0][0] > 199 * MB


@test
def a_peak_between_two_samples(workdir):
    """peak shorter than the interval: in main_peak_rss_bytes (VmHWM)"""
    script = ("import mmap; m = mmap.mmap(-1, 150_000_000); m.write(b'x' * 0); [m.__setitem__(i, 1) for i in range(0, "
              "150_000_000, 4096)]; m.close()")
    report, _ = workdir.report("-i", "30s", "--", sys.executable, "-c", script)
    assert report["memory"]["main_peak_rss_bytes"] > 150 * MB, report["memory"]


@test
def budget_zero(workdir):
    """--budget 0: PSS and related values are never read, and null"""
    report, _ = workdir.burn("memory", 50 * MB, "0.5", options=["--budget", "0"])
    assert workdir.rows("select count(main_pss_bytes), count(main_rss_bytes) > 0 from sample") == [(0, 1)]
    assert report["resource_usage"]["max_ram"]["main"]["private_rss"] is None, report["resource_usage"]["max_ram"]


@test
def read_and_written_bytes(workdir):
    """bytes read from and written to storage: counted where the file system is on a disk"""
    script = "f = open('data', 'wb'); f.write(b'x' * 20_000_000); f.flush(); import os; os.fsync(f.fileno())"
    report, _ = workdir.report("--", sys.executable, "-c", script)
    with open("/proc/self/mountinfo") as mounts:
        on_tmpfs = any(" - tmpfs " in line and str(workdir.folder).startswith(line.split()[4])
                       and line.split()[4] != "/"
                       for line in mounts)
    if not on_tmpfs:
        assert report["memory"]["written_bytes"] >= 20 * MB, report["memory"]


@test
def utilisation_of_one_busy_core(workdir):
    """one busy core: 100 % as a sum over cores, and divided by the expected cores"""
    report, _ = workdir.burn("cpu", "1.5", options=["--expected-cores", "4"])
    usage = report["resource_usage"]["cpu_utilization"]
    assert usage["n_expected_cores"] == 4 and usage["system_core_count"] == os.cpu_count()
    busy = report["cpu"]["target_cpu_s"] / report["run"]["duration_s"] * 100
    near(usage["main"]["mean_sum_percent"], busy, absolute=15)
    near(usage["main"]["mean_hardware_percent"], usage["main"]["mean_sum_percent"] / 4, relative=1e-9)
    assert usage["main"]["max_sum_percent"] >= usage["main"]["mean_sum_percent"], usage


@test
def units(workdir):
    """--ram-unit and --time-unit: scale the values that they name"""
    report, _ = workdir.burn("memory", 100 * MB, "0.5", options=["--ram-unit", "megabytes", "--time-unit", "seconds"])
    usage = report["resource_usage"]
    assert usage["max_ram"]["unit"] == "megabytes" and usage["compute_time"]["unit"] == "seconds"
    near(usage["max_ram"]["main"]["total_rss"], 101, absolute=4)
    near(usage["compute_time"]["time"], report["run"]["duration_s"], relative=1e-9)
    with open("/proc/meminfo") as meminfo:
        total_kib = int(meminfo.readline().split()[1])
    near(usage["max_ram"]["system_capacity"], total_kib * 1024 / 1e6, relative=1e-6)


@test
def self_cost(workdir):
    """measurement overhead: below 5 % of a core even with sanitizers, with its energy if any is known"""
    report, _ = workdir.report("--", "sleep", "2")
    own = report["self"]
    assert 0 < own["cpu_s"] < 1 and own["max_rss_bytes"] > 1 * MB and own["wakeups"] >= 5, own
    near(own["cpu_percent"], own["cpu_s"] / report["run"]["duration_s"] * 100, relative=0.05)


@test
def self_memory_is_its_own(workdir):
    """peak memory of the starting process, which the kernel keeps over exec: not reported as wattle's"""
    ballast = bytearray(300 * MB)
    ballast[::4096] = b"x" * len(ballast[::4096])
    report, _ = workdir.report("--", "true")
    assert report["self"]["max_rss_bytes"] < 150 * MB, report["self"]
    assert report["memory"]["peak_rss_bytes"] < 50 * MB, report["memory"]


@test
def samples_are_regular(workdir):
    """samples: one interval apart, on CLOCK_MONOTONIC, from the command's start on"""
    workdir.report("-i", "20ms", "--", "sleep", "1")
    times = [row[0] for row in workdir.rows("select t_ns from sample order by t_ns")]
    gaps = sorted(b - a for a, b in zip(times, times[1:]))
    near(gaps[len(gaps) // 2], 20e6, relative=0.02)
    assert abs(times[0] - time.monotonic_ns()) < 60e9


@test
def counters_never_fall(workdir):
    """CPU counters of the samples: never decrease, also while children start and end"""
    workdir.burn("children", "200", "5", options=["-i", "10ms"])
    for column in ("main_cpu_ns", "descendants_cpu_ns", "system_cpu_busy_ns", "self_cpu_ns"):
        values = [row[0] for row in workdir.rows(
            f"select {column} from sample where {column} is not null order by t_ns")]
        assert values == sorted(values), column


if __name__ == "__main__":
    main()
