#!/usr/bin/python3
"""`wattle report DIR` compared with the true values of synthetic jobs (synthetic_jobs.py): energy of machines, domains
and ranks, seconds.

Every row is a job with one failure known from practice: readers that die, counters that wrap between readers,
two readers at once, restarts, missing ranks, clocks seconds apart, equal pids on all nodes, two nodes on one machine.
"""
import contextlib
import dataclasses
import resource
import sqlite3

import synthetic_jobs
from harness import WATTLE, sum_without_none, main, near, test
from job_report_fixture import made, report, report_of

PAIRS = {  # kind: relative deviation of a machine's energy caused by the first and last reading
    "plain": 0.003, "takeover": 0.003, "wraps": 0.003, "many_wraps": 0.003, "overlap": 0.003, "all_read": 0.001,
    "all_visible": 0.001, "shared_gpus": 0.001, "blind": 0.001, "restart": 0.004, "requeued": 0.004, "dead": 0.003,
    "missing": 0.003, "skewed": 0.003, "imbalanced": 0.003, "virtual_nodes": 0.001, "no_gpu": 0.0005, "no_id": 0.003,
    # nested: the outer recorder reads before the first rank and after the last
    "one_rank": 0.003, "nested": 0.025, "two_steps": 0.003}


def ranks_of(document):
    return [rank for rank in document["ranks"] if not rank["nested"]]


def check_energy(document, expected_values, relative):
    near(document["energy"]["total_j"], expected_values["total_j"], relative=relative)
    for node in document["nodes"]:
        if node["same_machine_as"] is None:
            near(node["energy_j"], expected_values["nodes"][node["node"]]["energy_j"], relative=relative)
    counted = [node["energy_j"] for node in document["nodes"] if node["energy_j"] is not None]
    near(sum(counted), document["energy"]["total_j"], relative=1e-9)


def check_ledger(document):
    energy = document["energy"]
    near(sum_without_none(energy["ledger"]), energy["total_j"], relative=1e-9)
    near(energy["ledger"]["target_j"], sum(rank["energy_j"] for rank in ranks_of(document)), relative=1e-9)
    for domain in energy["domains"]:
        if domain["energy_j"] is not None:
            near(sum_without_none(domain["ledger"]), domain["energy_j"], relative=1e-9, absolute=1e-9)
    # No idle power is known in these jobs: idle energy is that of windows in which nobody used a device, or unknown,
    # but not 0.
    idle_j = [domain["ledger"]["idle_j"] for domain in energy["domains"] if domain["in_total"]]
    assert 0 not in idle_j, energy["domains"]
    known_j = [value for value in idle_j if value is not None]
    if known_j:
        near(energy["ledger"]["idle_j"], sum(known_j), relative=1e-9)
    else:
        assert energy["ledger"]["idle_j"] is None, energy["ledger"]


def check_ranks(document, expected_values):
    by_rank = {}
    for rank in ranks_of(document):
        by_rank.setdefault(str(rank["rank"]), []).append(rank)
    assert by_rank.keys() == expected_values["ranks"].keys(), by_rank.keys()
    for number, own in by_rank.items():
        true = expected_values["ranks"][number]
        # A killed recorder loses less than an interval at each end.
        for key in ("energy_j", "duration_s", "cpu_s"):
            near(sum(rank[key] for rank in own), true[key], relative=0.015)
        near(sum(rank["waiting_s"] for rank in own), true["waiting_s"], relative=0.06)


def each(kind):
    def run(workdir):
        document, expected_values = report_of(kind)
        check_energy(document, expected_values, PAIRS[kind])
        check_ledger(document)
        check_ranks(document, expected_values)
    run.__name__ = f"joules_and_seconds_of_{kind}"
    run.__doc__ = f"{synthetic_jobs.KINDS[kind].what}: energies and times of the report are the true ones"
    return test(run)


for _kind in PAIRS:
    each(_kind)


@test
def pause_keeps_energy_at_rank_ends(workdir):
    """energy between a rank's last reading and its end: the rank's own, though the counter is not followed over the
    pause"""
    for kind in ("restart", "two_steps"):
        document, expected_values = report_of(kind)
        for rank, true in expected_values["ranks"].items():
            own = [row["energy_j"] for row in ranks_of(document) if str(row["rank"]) == rank]
            near(sum(own), true["energy_j"], relative=0.002)


@test
def immediate_restart_does_not_overlap(workdir):
    """next launch of a rank on the same GPU, 20 ms after the end: not another process"""
    job = dataclasses.replace(synthetic_jobs.KINDS["restart"], nodes=1, per_node=2, gpus=2, pause_s=0.02, restart_s=1.5,
                              steps=6)
    expected_values = synthetic_jobs.make(WATTLE, workdir.folder / "job", job)
    document = report(workdir, workdir.folder / "job")
    for rank, true in expected_values["ranks"].items():
        own = [row["energy_j"] for row in ranks_of(document) if row["rank"] == rank]
        near(sum(own), true["energy_j"], relative=0.002)


@test
def unseen_wrap_is_counted(workdir):
    """counter restarted between the death of its reader and the next one's first reading: energy in between unknown"""
    document, expected_values = report_of("wraps")
    package = next(d for d in document["energy"]["domains"]
                   if d["domain"] == "package-0" and d["node"] == "node-01")
    assert package["wraps"] >= 1, package
    near(package["energy_j"], expected_values["nodes"]["node-01"]["domains"]["package-0"]["energy_j"], relative=0.003)


@test
def errors_cover_unknown_energy(workdir):
    """GPU of an ended rank: no gap; no wrap is suspected in a tenth of a second"""
    for kind in ("plain", "takeover", "wraps", "many_wraps", "overlap", "missing", "two_steps"):
        document, expected_values = report_of(kind)
        energy = document["energy"]
        assert energy["error_j"] < 0.0015 * energy["total_j"], (kind, energy["error_j"])
        near(energy["total_j"], expected_values["total_j"], absolute=energy["error_j"])


@test
def unknown_is_null(workdir):
    """no sensors: energies are null, waiting and work are known"""
    document, _ = report_of("no_energy")
    assert document["energy"]["total_j"] is None and document["energy"]["error_j"] is None
    assert all(rank["energy_j"] is None for rank in document["ranks"])
    assert document["imbalance"]["energy_j"]["mean"] is None
    assert document["imbalance"]["work_s"]["mean"] > 0


@test
def slowest_rank_and_its_cost(workdir):
    """rank 5 takes half as long again: the loss of the others is the sum of their waiting time"""
    document, expected_values = report_of("imbalanced")
    imbalance = document["imbalance"]
    work = {int(n): r["duration_s"] - r["waiting_s"] for n, r in expected_values["ranks"].items()}
    mean = sum(work.values()) / len(work)
    assert imbalance["slowest"]["rank"] == 5 and imbalance["slowest"]["node"] == "node-03"
    near(imbalance["work_s"]["max"], work[5], relative=1e-6)
    near(imbalance["work_s"]["imbalance_percent"], (work[5] - mean) / work[5] * 100, relative=1e-6)
    near(imbalance["slowest"]["over_mean_s"], work[5] - mean, relative=1e-6)
    near(imbalance["slowest"]["waited_s"], sum(work[5] - w for w in work.values()), relative=1e-6)
    near(imbalance["waiting_s"]["total"], sum(r["waiting_s"] for r in expected_values["ranks"].values()), relative=1e-6)
    assert imbalance["waiting_blocks"] == ["MPI_Allreduce"]


@test
def ranks_that_died_early_are_no_fast_ranks(workdir):
    """two of eight ranks killed: not counted as less work, and the others did not wait"""
    folder, _ = made(workdir, "takeover")
    document, _ = report_of("takeover")
    imbalance = document["imbalance"]
    assert [rank["rank"] for rank in document["ranks"] if rank["ended_early"]] == [0, 1]
    assert imbalance["ended_early"] == 2 and imbalance["work_s"]["count"] == 6
    assert imbalance["slowest"]["over_percent"] < 2 and imbalance["work_s"]["imbalance_percent"] < 2
    text = workdir.wattle("report", folder, "--all").stdout
    assert "2 ranks that ended early are not compared" in text, text


@test
def restarted_rank_is_not_cut_off(workdir):
    """killed rank of a requeued job: complete; the pause is reported, and a wrap in it does not widen the error"""
    folder, _ = made(workdir, "requeued")
    document, expected_values = report_of("requeued")
    node = document["nodes"][0]
    near(node["energy_j"], expected_values["nodes"]["node-01"]["energy_j"], absolute=node["error_j"])
    assert node["error_j"] < 0.0015 * node["energy_j"], node
    assert all(rank["complete"] and rank["runs"] == 2 for rank in ranks_of(document))
    assert [rank["rank"] for rank in ranks_of(document) if rank["cut_off"] == 1] == [4]
    assert all(near(node["paused_s"], 240, absolute=1) is None for node in document["nodes"])
    text = " ".join(workdir.wattle("report", folder, "--all").stdout.split())
    assert "between launches" in text and "Before rank 4 was restarted" in text, text


@test
def a_rank_that_died_is_in_no_spread(workdir):
    """blocks: no load imbalance of killed ranks; with one rank left the text states why nothing is compared"""
    for kind in ("unmeasured", "dead"):
        folder, _ = made(workdir, kind)
        document, _ = report_of(kind)
        text = workdir.wattle("report", folder, "--all").stdout
        left = sum(not rank["ended_early"] for rank in document["ranks"])
        for block in document["blocks"]:
            assert block["rank_time_s"]["count"] == left, (kind, block["name"])
            assert (block["rank_time_s"]["imbalance_percent"] or 0) < 0.1, (kind, block)
        assert "Load imbalance" in text and "1 rank that ended early is not compared" in text, text
        assert "exclude ranks that ended early" in " ".join(text.split()), text


@test
def a_job_has_all_that_a_run_has(workdir):
    """JSON of a job: readable as that of a run; values with parts are their sums"""
    folder, _ = made(workdir, "restart")
    job, run = report(workdir, folder), report(workdir, folder / "job-r000.sqlite")

    def check_keys(whole, other, where):
        for key, value in whole.items():
            assert key in other, (where, key)
            if isinstance(value, dict) and where != "metrics":
                check_keys(value, other[key], key)
    for key in ("energy", "cpu", "memory", "run", "self", "resource_usage"):
        check_keys(run[key], job[key], key)
    for block in job["blocks"]:
        assert run["blocks"][0].keys() <= block.keys(), run["blocks"][0].keys() - block.keys()
        assert run["blocks"][0]["energy"].keys() <= block["energy"].keys()
        assert block["energy"]["method"] in ("interpolated", "folded")
        assert block["resource_usage"].keys() == run["blocks"][0]["resource_usage"].keys()
        near(block["resource_usage"]["main_ram"]["mean"], run["blocks"][0]["resource_usage"]["main_ram"]["mean"],
             relative=0.01)
        near(sum(block["energy"]["domains"].values()), block["energy"]["total_j"], relative=1e-9)
    for rank in job["ranks"]:
        assert rank["runs"] == 2
        near(sum(rank["domains"].values()), rank["energy_j"], relative=1e-9)


def cost_s(workdir, path):
    """CPU seconds of a report."""
    def spent_s():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before_s = spent_s()
    report(workdir, path)
    return spent_s() - before_s


@test
def ranks_share_counter_period(workdir):
    """report of 16 ranks on one machine: a few times the time of one rank, not 16 times"""
    folder = workdir.folder / "sixteen"
    synthetic_jobs.make(WATTLE, folder, synthetic_jobs.Job("one node", nodes=1, per_node=16, gpus=1, steps=100))
    assert cost_s(workdir, folder) < 8 * cost_s(workdir, folder / "job-r000.sqlite")


@test
def units_of_work_of_all_ranks_add_up(workdir):
    """100 tokens for each rank in `setup`: energy per token is that of the block by the tokens of all"""
    folder = workdir.folder / "units"
    synthetic_jobs.make(WATTLE, folder, "plain")
    for path in folder.glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute("INSERT INTO user_metric SELECT begin_ns + 1000, 'tokens', 100, id, pid, tid FROM span "
                         "WHERE name = 'setup'")
            file.commit()
    document = report(workdir, folder)
    block = next(block for block in document["blocks"] if block["name"] == "setup")
    unit, = block["units"]
    assert (unit["name"], unit["count"], unit["sum"]) == ("tokens", len(document["ranks"]), 800)
    near(unit["j_per_unit"], block["energy"]["total_j"] / 800, relative=1e-9)
    near(unit["error_j_per_unit"], block["energy"]["error_j"] / 800, relative=1e-9)


@test
def blocks_shorter_than_a_sample(workdir):
    """ranks that compute while others wait: block energies are within their errors, and the errors are useful"""
    folder, expected_values = made(workdir, "short_blocks")
    for block in report(workdir, folder)["blocks"]:
        true_j = sum(rank["energy_j"] for rank in expected_values["blocks"][block["name"]].values())
        near(block["energy"]["total_j"], true_j, absolute=block["energy"]["error_j"])
        assert block["energy"]["error_j"] < true_j / 4, block


@test
def a_long_job_that_is_read_thinly(workdir):
    """one sample in a second: the same sums as with all samples, with an error for uncertain values"""
    job = synthetic_jobs.Job("long", nodes=1, per_node=2, gpus=2, steps=30, step_s=1.642, is_even=True, times=128,
                        slow={1: 1.2})
    expected_values = synthetic_jobs.make(WATTLE, workdir.folder / "long", job)
    thin, full = report(workdir, workdir.folder / "long"), report(workdir, workdir.folder / "long", "--all-samples")
    assert thin["job"]["read_every_s"] == 1 and full["job"]["read_every_s"] is None
    assert thin["run"]["samples"] == full["run"]["samples"] > 150_000
    near(thin["energy"]["total_j"], expected_values["total_j"], relative=1e-5)
    near(thin["energy"]["total_j"], full["energy"]["total_j"], relative=1e-5)
    near(thin["cpu"]["target_cpu_s"], full["cpu"]["target_cpu_s"], relative=1e-6)
    near(sum_without_none(thin["energy"]["ledger"]), thin["energy"]["total_j"], relative=1e-9)
    for one, all_of_it in zip(thin["ranks"], full["ranks"], strict=True):
        for key in ("duration_s", "cpu_s", "waiting_s", "work_s"):
            near(one[key], all_of_it[key], relative=1e-6)
        near(one["energy_j"], all_of_it["energy_j"], absolute=one["error_j"])
    for one, all_of_it in zip(thin["blocks"], full["blocks"], strict=True):
        assert one["num_calls"] == all_of_it["num_calls"]
        near(one["compute_time"]["total"], all_of_it["compute_time"]["total"], relative=1e-9)
        near(one["energy"]["total_j"], all_of_it["energy"]["total_j"], absolute=one["energy"]["error_j"])


if __name__ == "__main__":
    main()
