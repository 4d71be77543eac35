"""Ranks of a job on one machine, each under its own wattle: one of them reads a sensor, and another takes over."""
import json
import math
import os
import shutil
import signal
import subprocess

from harness import BUILD, NOBODY, WATTLE, Skip, main, near, test, wait_until
from job_fixture import (RANGE_UJ, Machine, assert_one_after_the_other, facts, finish_all, has_energy, joined, rows_of,
                      sensor_events)

SPANNER = BUILD / "tests/fakes/spanner"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
CARDS = """
gpu
name H100
uuid GPU-aaaaaaaa-0000-4000-8000-000000000001
power_mw constant 300000
utilization_percent 90 40
process descendants C 80 1500000000
gpu
name H100
uuid GPU-bbbbbbbb-0000-4000-8000-000000000002
power_mw constant 200000
utilization_percent 50 40
process descendants C 40 1000000000
"""


@test
def four_ranks(workdir):
    """four ranks on one machine: each knows its rank, one has the machine's energy, the others name it"""
    machine = Machine(workdir)
    first = machine.start(0, 4, "sleep", "4", options=["--json", "0.json"])
    wait_until(lambda: (workdir.folder / "run-0.sqlite").exists() and sensor_events(workdir, "run-0.sqlite"),
               "rank 0 reads")
    others = [machine.start(rank, 4, "sleep", "1.5", options=["--json", f"{rank}.json"]) for rank in range(1, 4)]
    finish_all(workdir, [*others, first])
    reports = [json.loads((workdir.folder / f"{rank}.json").read_text()) for rank in range(4)]
    for rank, report in enumerate(reports):
        job = report["job"]
        assert (job["id"], job["rank"], job["local_rank"], job["world_size"]) == (None, rank, rank, 4), job
        assert job["node"] == os.uname().nodename and job["launcher"] == "environment"
        assert facts(workdir, f"run-{rank}.sqlite")["rank"] == str(rank)
    for report in reports[1:]:
        words = " ".join(report["warnings"])
        assert report["energy"]["total_j"] is None
        assert all(domain["energy_j"] is None for domain in report["energy"]["domains"])
        assert f"pid {first.pid}, rank 0 of this job" in words and "wattle report DIR" in words, words
        assert report["cpu"]["target_cpu_s"] is not None
    assert not any("read by" in words for words in reports[0]["warnings"]), reports[0]["warnings"]
    start_ns, end_ns = workdir.rows("select start_ns, end_ns from segment", "run-0.sqlite")[0]
    near(reports[0]["energy"]["total_j"], machine.joules("package-0", start_ns, end_ns) +
         machine.joules("package-0/dram", start_ns, end_ns), relative=0.01)
    text = workdir.wattle("report", "run-2.sqlite").stdout
    assert "rank 2 of 4" in text and "another rank of this job read the sensors" in text, text
    assert max(map(len, text.splitlines())) <= 80, text


@test
def counters_mounted_over_those_of_the_kernel(workdir):
    """virtual nodes with counters of their own under /sys: separate machines, though they share a kernel"""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        raise Skip("mounts need root")
    for node in range(2):
        tree = workdir.folder / f"class-{node}"
        (tree / "powercap").mkdir(parents=True)
        inside = (f"mount --make-rprivate / && mount --bind {tree} /sys/class && exec {WATTLE} run -q -o "
                  f"{node}.sqlite -- true")
        done = workdir.finish(workdir.start("--mount", "sh", "-c", inside, program="unshare",
                                            env={"WATTLE_SYSFS": None}))
        assert done.returncode == 0, done
    assert len({facts(workdir, f"{node}.sqlite")["machine"] for node in range(2)}) == 2


@test
def two_launches_in_one_folder(workdir):
    """no job id, only the port distinguishes jobs: the report of both has a note, that of one has none"""
    machine = Machine(workdir)
    for port in ("29500", "29501"):
        finish_all(workdir, [machine.start(0, 1, "sleep", "0.3", name=f"{port}-%r.sqlite", MASTER_ADDR="localhost",
                                           MASTER_PORT=port)])
        said = " ".join(json.loads(workdir.wattle("report", ".", "--format", "json").stdout)["warnings"])
        assert ("several launches" in said) == (port == "29501"), said


@test
def all_end_at_once(workdir):
    """ranks that end together: sensors are handed on in their last moments, and their energies add up to the
    machine's"""
    machine = Machine(workdir)
    finish_all(workdir, [machine.start(rank, 4, "sleep", "3", options=["--json", f"{rank}.json"]) for rank in range(4)])
    reports = [json.loads((workdir.folder / f"{rank}.json").read_text()) for rank in range(4)]
    joules = math.fsum(report["energy"]["total_j"] or 0 for report in reports)
    bounds = [workdir.rows("select start_ns, end_ns from segment", f"run-{rank}.sqlite")[0] for rank in range(4)]
    from_ns, to_ns = min(start for start, _ in bounds), max(end for _, end in bounds)
    near(joules, machine.joules("package-0", from_ns, to_ns) + machine.joules("package-0/dram", from_ns, to_ns),
         relative=0.1)


def assert_report_of_job(workdir, machine, ranks):
    """The folder's report counts the machine once, from the first rank's start to the last one's end."""
    done = workdir.wattle("report", ".", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    bounds = [workdir.rows("select min(start_ns), coalesce(max(end_ns), (select max(t_ns) from sample)) from segment",
                        f"run-{rank}.sqlite")[0] for rank in ranks]
    from_ns, to_ns = min(start for start, _ in bounds), max(end for _, end in bounds)
    true_j = machine.joules("package-0", from_ns, to_ns)
    near(report["energy"]["total_j"], true_j, relative=0.01, absolute=report["energy"]["error_j"])
    assert report["energy"]["error_j"] < 0.1 * true_j, report["energy"]
    assert len(report["nodes"]) == 1 and len(report["ranks"]) == len(ranks)


@test
def readers_killed(workdir):
    """two readers killed with -9: others take over, and the parts add up to the counter's energy, wraps included"""
    machine = Machine(workdir, "--zone", "package-0=50+20*sin@1.3")
    ranks = {rank: machine.start(rank, 4, "sleep", "5") for rank in range(4)}
    killed = []
    for _ in range(2):
        def reader():
            for rank in ranks:
                path = workdir.folder / f"run-{rank}.sqlite"
                if rank not in killed and path.exists() and len(rows_of(workdir, path.name, "package-0")) > 20:
                    return [rank]
        rank, = wait_until(reader, "one of them reads")
        ranks[rank].send_signal(signal.SIGKILL)
        ranks[rank].wait()
        killed.append(rank)
    finish_all(workdir, [process for rank, process in ranks.items() if rank not in killed])
    pieces = [rows_of(workdir, f"run-{rank}.sqlite", "package-0") for rank in ranks]
    assert sum(bool(piece) for piece in pieces) >= 3, [len(piece) for piece in pieces]
    from_ns, to_ns, joules = joined(pieces, RANGE_UJ)
    near(joules, machine.joules("package-0", from_ns, to_ns), relative=0.005)
    assert (to_ns - from_ns) / 1e9 > 4
    assert_report_of_job(workdir, machine, ranks)
    told = [text for rank in ranks for text in sensor_events(workdir, f"run-{rank}.sqlite") if "taken over" in text]
    assert any(f"from pid {ranks[killed[0]].pid}" in text for text in told), told
    assert_one_after_the_other(pieces)


@test
def taken_over_at_the_end(workdir):
    """reader that ends: the remaining rank takes over within a tick and reports its own readings, as exactly as any;
    energy of a block that ended before is unknown to it and known in the job's report"""
    machine = Machine(workdir)
    short = machine.start(0, 2, "sleep", "1.5")
    wait_until(lambda: (workdir.folder / "run-0.sqlite").exists() and sensor_events(workdir, "run-0.sqlite"),
               "rank 0 reads")
    long = machine.start(1, 2, "sh", "-c", f"{SPANNER} nested; sleep 4", options=["--json", "1.json"])
    finish_all(workdir, [short, long])
    first, second = (rows_of(workdir, f"run-{rank}.sqlite", "package-0") for rank in range(2))
    assert 0 <= second[0][0] - first[-1][0] < 250e6, "more than a few ticks without a reader"
    from_ns, to_ns, joules = joined([first, second], RANGE_UJ)
    near(joules, machine.joules("package-0", from_ns, to_ns), relative=0.005)
    report = json.loads((workdir.folder / "1.json").read_text())
    domain = next(domain for domain in report["energy"]["domains"] if domain["domain"] == "package-0")
    near(domain["energy_j"], machine.joules("package-0", second[0][0], to_ns), relative=0.05)
    assert domain["error_j"] < 0.05 * domain["energy_j"] and domain["gaps"] == 0, domain
    near(domain["mean_w"], 50, relative=0.05)
    blocks = [block["energy"]["total_j"] for block in report["blocks"]]
    assert blocks and all(joules is None for joules in blocks), report["blocks"]
    job = json.loads(workdir.wattle("report", ".", "--format", "json").stdout)
    assert all(block["energy"]["total_j"] is not None for block in job["blocks"]), job["blocks"]
    assert any("energy until then is not included in this report" in words
               for words in report["warnings"]), report["warnings"]


@test
def many_at_once(workdir):
    """24 ranks that start at the same time: one reader"""
    machine = Machine(workdir)
    ranks = [machine.start(rank, 24, "sleep", "2") for rank in range(24)]
    finish_all(workdir, ranks)
    assert_one_after_the_other(rows_of(workdir, f"run-{rank}.sqlite", "package-0") for rank in range(24))


@test
def related_recorders_read_every_sensor(workdir):
    """wattle inside a program that wattle measures: the same rank, both report the energy"""
    machine = Machine(workdir)
    inner = [str(WATTLE), "run", "-q", "-o", "inner.sqlite", "--", "sleep", "1.5"]
    finish_all(workdir, [machine.start(0, 2, *inner, name="outer.sqlite")])
    assert has_energy(workdir, "inner.sqlite") and has_energy(workdir, "outer.sqlite")


def gpu_environment(workdir):
    (workdir.folder / "cards").write_text(CARDS)
    return {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"), "CUDA_VISIBLE_DEVICES": None}


@test
def trackers_of_one_program(workdir):
    """two recorders started by a program on itself, no rank set, as in a batch script: related, no conflict"""
    machine = Machine(workdir)
    attach = f"{WATTLE} attach -q -o {{}}.sqlite $$ &"
    script = "\n".join([attach.format("a"), attach.format("b"), "sleep 2"])
    environment = {**machine.environment, "SLURM_JOB_ID": "5", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"}
    done = workdir.finish(workdir.start("-c", script, program="/bin/sh", env=environment))
    assert done.returncode == 0, done
    wait_until(lambda: all(facts(workdir, f"{name}.sqlite")["complete"] == "true" for name in "ab"), "both have ended")
    assert has_energy(workdir, "a.sqlite") and has_energy(workdir, "b.sqlite")
    assert "rank" not in facts(workdir, "a.sqlite")


@test
def a_gpu_each(workdir):
    """each rank reads its visible GPU; one of them reads the machine's own sensors"""
    machine = Machine(workdir)
    ranks = [machine.start(rank, 2, "sleep", "2", **{**gpu_environment(workdir), "CUDA_VISIBLE_DEVICES": str(rank)})
             for rank in range(2)]
    finish_all(workdir, ranks)
    power = ("select count(power_mw) from device_sample join device on device_sample.device = device.id "
             "where device.name = '{}'")
    for rank in range(2):
        assert workdir.rows(power.format(f"gpu-{rank}"), f"run-{rank}.sqlite")[0][0] > 10
        gpus = workdir.rows("select name from device where kind = 'gpu'", f"run-{rank}.sqlite")
        assert gpus == [(f"gpu-{rank}",)], gpus
    assert sum("package-0, dram-0: read here" in sensor_events(workdir, f"run-{rank}.sqlite") for rank in range(2)) == 1


@test
def gpus_for_all(workdir):
    """GPUs visible to every rank: read by one; the others still report their own processes on them"""
    machine = Machine(workdir)
    ranks = [machine.start(rank, 3, "sleep", "2", **gpu_environment(workdir)) for rank in range(3)]
    finish_all(workdir, ranks)
    figures = ("select count(power_mw), count(temperature_c), count(target_utilization_percent), "
               "count(target_memory_bytes) from device_sample join device on device_sample.device = device.id "
               "where device.name = 'gpu-0'")
    readers = 0
    for rank in range(3):
        power, temperature, use, memory = workdir.rows(figures, f"run-{rank}.sqlite")[0]
        reads = any(text.startswith("gpu-0: read here") for text in sensor_events(workdir, f"run-{rank}.sqlite"))
        readers += reads
        assert use > 10 and memory > 10, (rank, use, memory)
        if reads:
            assert power > 10
        else:  # it may have taken over in the last moments
            assert power < 10 and temperature < 10, (rank, power, temperature)
    assert readers == 1


@test
def who_may_not_read(workdir):
    """first rank without permission for the counters: another one reads them, and the job's energy is measured"""
    drop = shutil.which("setpriv")
    if os.geteuid() != 0 or drop is None:
        raise Skip("needs root, to drop its right to read all files, and setpriv (Debian: util-linux)")
    machine = Machine(workdir)
    for counter in machine.top.rglob("energy_uj"):
        os.chown(counter, NOBODY, -1)
        counter.chmod(0o400)
    environment = {**machine.environment, "RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "3"}
    poor = workdir.start("--bounding-set=-all", "--inh-caps=-all", "--", WATTLE, "run", "-q", "-i", "50ms", "-o",
                      "run-%r.sqlite", "--", "sleep", "2", program=drop, env=environment)
    wait_until(lambda: (workdir.folder / "run-0.sqlite").exists() and sensor_events(workdir, "run-0.sqlite"),
               "rank 0 reads")
    others = [machine.start(rank, 3, "sleep", "3") for rank in (1, 2)]
    finish_all(workdir, [poor, *others])
    assert not has_energy(workdir, "run-0.sqlite")
    pieces = [rows_of(workdir, f"run-{rank}.sqlite", "package-0") for rank in (1, 2)]
    assert_one_after_the_other(pieces)
    from_ns, to_ns, joules = joined(pieces, RANGE_UJ)
    near(joules, machine.joules("package-0", from_ns, to_ns), relative=0.01)
    report = json.loads(workdir.wattle("report", ".", "--format", "json").stdout)
    assert report["energy"]["provenance"] == "measured", report["energy"]
    near(report["energy"]["total_j"], machine.joules("package-0", from_ns, to_ns) +
         machine.joules("package-0/dram", from_ns, to_ns), relative=0.02)


if __name__ == "__main__":
    main()
