#!/usr/bin/python3
"""`wattle report DIR` against what is true of made jobs (made_jobs.py): joules of machines, domains and ranks, seconds.

Every row is a job that went wrong in one way that the field knows: readers that die, counters that wrap while nobody
looks, two that read at once, restarts, missing ranks, clocks apart by seconds, equal pids on all nodes, two nodes on one machine.
"""
import contextlib
import json
import resource
import shutil
import sqlite3

import made_jobs
from harness import WATTLE, main, near, test

PAIRS = {  # kind: relative deviation of a machine's energy that the ends of counters explain
    "plain": 0.003, "takeover": 0.003, "wraps": 0.003, "many_wraps": 0.003, "overlap": 0.003, "all_read": 0.001,
    "all_visible": 0.001, "shared_gpus": 0.001, "blind": 0.001, "restart": 0.004, "requeued": 0.004, "dead": 0.003,
    "missing": 0.003, "skewed": 0.003, "imbalanced": 0.003, "virtual_nodes": 0.001, "no_gpu": 0.0005, "no_id": 0.003,
    "one_rank": 0.003, "nested": 0.025, "two_steps": 0.003}  # nested: the recorder around reads before the first rank and after the last


def made(room, kind):
    folder = room.folder / kind
    if not folder.exists():
        folder.mkdir()
        (room.folder / f"{kind}.truth").write_text(json.dumps(made_jobs.make(WATTLE, folder, kind)))
    return folder, json.loads((room.folder / f"{kind}.truth").read_text())


def report(room, *arguments, status=0):
    result = room.wattle("report", *arguments, "--format", "json")
    assert result.returncode == status, result.stderr
    return json.loads(result.stdout) if status == 0 else result.stderr


def ranks_of(document):
    return [rank for rank in document["ranks"] if not rank["nested"]]


def check_energy(document, truth, relative):
    near(document["energy"]["total_j"], truth["total_j"], relative=relative)
    for node in document["nodes"]:
        if node["same_machine_as"] is None:
            near(node["energy_j"], truth["nodes"][node["node"]]["energy_j"], relative=relative)
    counted = [node["energy_j"] for node in document["nodes"] if node["energy_j"] is not None]
    near(sum(counted), document["energy"]["total_j"], relative=1e-9)


def check_ledger(document):
    energy = document["energy"]
    near(sum(energy["ledger"].values()), energy["total_j"], relative=1e-9)
    near(energy["ledger"]["target_j"], sum(rank["energy_j"] for rank in ranks_of(document)), relative=1e-9)
    for domain in energy["domains"]:
        if domain["energy_j"] is not None:
            near(sum(domain["ledger"].values()), domain["energy_j"], relative=1e-9, absolute=1e-9)


def check_ranks(document, truth):
    by_rank = {}
    for rank in ranks_of(document):
        by_rank.setdefault(str(rank["rank"]), []).append(rank)
    assert by_rank.keys() == truth["ranks"].keys(), by_rank.keys()
    for number, own in by_rank.items():
        true = truth["ranks"][number]
        # What a killed recorder had not stored yet is less than an interval at each end.
        for key in ("energy_j", "duration_s", "cpu_s"):
            near(sum(rank[key] for rank in own), true[key], relative=0.015)
        near(sum(rank["waiting_s"] for rank in own), true["waiting_s"], relative=0.06)


def each(kind):
    def run(room):
        folder, truth = made(room, kind)
        document = report(room, folder)
        check_energy(document, truth, PAIRS[kind])
        check_ledger(document)
        check_ranks(document, truth)
    run.__name__ = f"joules_and_seconds_of_{kind}"
    run.__doc__ = made_jobs.KINDS[kind].what
    return test(run)


for _kind in PAIRS:
    each(_kind)


@test
def a_wrap_that_nobody_saw_is_counted(room):
    """The counter began again between the death of its reader and the first reading of the next one."""
    _, truth = made(room, "wraps")
    package = next(d for d in report(room, room.folder / "wraps")["energy"]["domains"]
                   if d["domain"] == "package-0" and d["node"] == "node-01")
    assert package["wraps"] >= 1, package
    near(package["energy_j"], truth["nodes"]["node-01"]["domains"]["package-0"]["energy_j"], relative=0.003)


@test
def errors_cover_what_is_not_known_and_no_more(room):
    """A GPU that one rank saw is no hole once that rank has ended; nobody doubts a wrap in a tenth of a second."""
    for kind in ("plain", "takeover", "wraps", "many_wraps", "overlap", "missing", "two_steps"):
        folder, truth = made(room, kind)
        energy = report(room, folder)["energy"]
        assert energy["error_j"] < 0.0015 * energy["total_j"], (kind, energy["error_j"])
        near(energy["total_j"], truth["total_j"], absolute=energy["error_j"])


@test
def unknown_is_null(room):
    made(room, "no_energy")
    document = report(room, room.folder / "no_energy")
    assert document["energy"]["total_j"] is None and document["energy"]["error_j"] is None
    assert all(rank["energy_j"] is None for rank in document["ranks"])
    assert document["imbalance"]["energy_j"]["mean"] is None
    assert document["imbalance"]["work_s"]["mean"] > 0


@test
def the_slowest_rank_and_what_it_cost(room):
    """Rank 5 computes half as long again; what the others lose is the sum of what they work less."""
    _, truth = made(room, "imbalanced")
    imbalance = report(room, room.folder / "imbalanced")["imbalance"]
    work = {int(n): r["duration_s"] - r["waiting_s"] for n, r in truth["ranks"].items()}
    mean = sum(work.values()) / len(work)
    assert imbalance["slowest"]["rank"] == 5 and imbalance["slowest"]["node"] == "node-03"
    near(imbalance["work_s"]["max"], work[5], relative=1e-6)
    near(imbalance["work_s"]["imbalance_percent"], (work[5] - mean) / work[5] * 100, relative=1e-6)
    near(imbalance["slowest"]["over_mean_s"], work[5] - mean, relative=1e-6)
    near(imbalance["slowest"]["waited_s"], sum(work[5] - w for w in work.values()), relative=1e-6)
    near(imbalance["waiting_s"]["total"], sum(r["waiting_s"] for r in truth["ranks"].values()), relative=1e-6)
    assert imbalance["waiting_blocks"] == ["MPI_Allreduce"]


@test
def ranks_that_died_early_are_no_fast_ranks(room):
    """Two of eight are killed: they have not worked less, and the others have not waited for anybody."""
    made(room, "takeover")
    document = report(room, room.folder / "takeover")
    imbalance = document["imbalance"]
    assert [rank["rank"] for rank in document["ranks"] if rank["ended_early"]] == [0, 1]
    assert imbalance["ended_early"] == 2 and imbalance["work_s"]["count"] == 6
    assert imbalance["slowest"]["over_percent"] < 2 and imbalance["work_s"]["imbalance_percent"] < 2
    text = room.wattle("report", room.folder / "takeover").stdout
    assert "2 ranks that ended early are not compared" in text, text


@test
def who_was_started_again_is_not_cut_off(room):
    """A rank was killed, but is complete since the job was requeued; how long nobody ran is told, and no wrap in
    that time is a doubt of the job's."""
    folder, truth = made(room, "requeued")
    document = report(room, folder)
    node = document["nodes"][0]
    near(node["energy_j"], truth["nodes"]["node-01"]["energy_j"], absolute=node["error_j"])
    assert node["error_j"] < 0.0015 * node["energy_j"], node
    assert all(rank["complete"] and rank["runs"] == 2 for rank in ranks_of(document))
    assert [rank["rank"] for rank in ranks_of(document) if rank["cut_off"] == 1] == [4]
    assert all(near(node["paused_s"], 240, absolute=1) is None for node in document["nodes"])
    text = " ".join(room.wattle("report", folder).stdout.split())
    assert "between launches" in text and "Before rank 4 was started again" in text, text


@test
def a_rank_that_died_is_in_no_spread(room):
    """Neither in that of blocks; where one rank is left the text says why nothing is compared."""
    for kind in ("unmeasured", "dead"):
        made(room, kind)
        document = report(room, room.folder / kind)
        text = room.wattle("report", room.folder / kind).stdout
        left = sum(not rank["ended_early"] for rank in document["ranks"])
        for block in document["blocks"]:
            assert block["rank_time_s"]["count"] == left, (kind, block["name"])
            assert (block["rank_time_s"]["imbalance_percent"] or 0) < 0.1, (kind, block)
        assert "How even the ranks were" in text and "1 rank that ended early is not compared" in text, text
        assert "are of ranks that did not end early" in text, text


@test
def a_rank_that_stored_nothing_is_unknown(room):
    """Killed before its first flush: what it used is n/a, not 0 J."""
    folder, _ = made(room, "dead")
    change(folder / "job-r001.sqlite", *((f"delete from {table}",) for table in ("sample", "device_sample", "span")))
    rank = report(room, folder)["ranks"][1]
    for key in ("energy_j", "error_j", "duration_s", "cpu_s"):
        assert rank[key] is None, (key, rank)
    assert set(rank["domains"].values()) <= {None} and rank["ended_early"]
    text = room.wattle("report", folder).stdout
    row = next(line for line in text.splitlines() if line.startswith("  1 "))
    assert "n/a" in row and "0 J" not in row, row


@test
def steps_in_the_text(room):
    """Ranks of two steps are told apart; a batch script's own recording is no rank."""
    folder, _ = made(room, "two_steps")
    text = room.wattle("report", folder).stdout
    assert "4 ranks in each of 2 steps on 2 nodes" in text and "step  rank  node" in text, text
    paths = sorted(folder.glob("*.sqlite"))
    change(paths[0], ("delete from run where key in ('rank', 'local_rank', 'job_step')",))
    text = room.wattle("report", folder).stdout
    assert "7 ranks in 2 steps together and 1 recording without a rank" in " ".join(text.split()), text
    assert max(map(len, text.splitlines())) <= 80


@test
def a_list_says_whose_runs_they_are(room):
    folder, _ = made(room, "one_rank")
    lines = room.wattle("list", folder).stdout.splitlines()
    assert len(lines) == 1 and "ada@node-01 job 4242 rank 0  " in lines[0], lines


@test
def jobs_without_an_id(room):
    """Beside one that has an id `--job none` chooses that one."""
    folder, _ = made(room, "one_rank")
    other, _ = made(room, "no_id")
    for path in other.glob("*.sqlite"):
        shutil.copy(path, folder / f"other-{path.name}")
    said = report(room, folder, status=1)
    assert "choose one with --job" in said and "none (without an id)" in said, said
    assert report(room, folder, "--job", "none")["job"]["id"] is None
    assert report(room, folder, "--job", "4242")["job"]["id"] == "4242"


def change(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(*statement)


@test
def what_all_recorders_say_is_told_once(room):
    folder, _ = made(room, "plain")
    note = "insert into event (t_ns, kind, text) values (5005000000000, 'note', ?)"
    for number, path in enumerate(sorted(folder.glob("*.sqlite"))):
        change(path, (note, ("this container is not shown the sensors",)))
        if number % 4 == 0:
            change(path, (note, ("the clock was set",)))
        if number == 3:
            change(path, (note, ("perf was refused",)), (note.replace("note", "mark"), ("a very long mark " * 1000,)))
    expected = ["all 8 ranks: this container is not shown the sensors",
                "rank 0 on node-01 and 1 more of 8 ranks: the clock was set", "rank 3 on node-01: perf was refused"]
    assert sorted(report(room, folder)["warnings"]) == expected
    text = room.wattle("report", folder).stdout
    assert all(text.count(words) == 1 for words in ("all 8 ranks", "and 1 more of 8 ranks", "perf was refused")), text


@test
def a_batch_script_that_was_requeued_is_one_row(room):
    """It has no rank; two commands of one script stay two rows."""
    folder, _ = made(room, "one_rank")
    first = folder / "job-r000.sqlite"
    again, other = folder / "again.sqlite", folder / "other.sqlite"
    no_rank = ("delete from run where key in ('rank', 'local_rank', 'world_size', 'local_size')",)
    change(first, no_rank)
    for path in (again, other):
        shutil.copy(first, path)
        change(path, ("update run set value = replace(value, '7e57ab1e', ?) where key = 'id'",
                      (path.name[0].encode().hex() * 4,)))
    minute = 60 * 10**9
    change(again, ("insert into run values ('restart', '1')",), (f"update segment set start_ns = start_ns + {minute}, "
           f"end_ns = end_ns + {minute}, wall_start_ns = wall_start_ns + {minute}",),
           *((f"update {table} set t_ns = t_ns + {minute}",) for table in ("sample", "device_sample")))
    change(other, ("update segment set command = '[\"./post\"]'",))
    document = report(room, folder)
    rows = sorted((rank["runs"], rank["restart"]) for rank in document["ranks"])
    assert rows == [(1, None), (2, 1)], rows


@test
def a_copy_of_a_file_is_no_second_run(room):
    """Of two files of one run the one that goes on longer counts; a rank beyond its world is told."""
    folder, truth = made(room, "one_rank")
    copy = folder / "a-copy.sqlite"
    shutil.copy(folder / "job-r000.sqlite", copy)
    change(copy, ("delete from sample where t_ns > (select avg(t_ns) from sample)",))
    document = report(room, folder)
    near(document["energy"]["ledger"]["target_j"], truth["ranks"]["0"]["energy_j"], relative=0.01)
    assert [rank["where"] for rank in document["ranks"]] == [str(folder / "job-r000.sqlite")]
    assert len(document["warnings"]) == 1 and "counts once" in document["warnings"][0], document["warnings"]
    change(folder / "job-r000.sqlite", ("update run set value = '7' where key = 'rank'",))
    assert any("beyond the 1 that" in words for words in report(room, folder)["warnings"])


@test
def a_job_has_all_that_a_run_has(room):
    """Whoever reads the JSON of a run reads that of a job; what has parts is their sum."""
    folder, _ = made(room, "restart")
    job, run = report(room, folder), report(room, folder / "job-r000.sqlite")

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


def cost_s(room, path):
    """CPU seconds of a report."""
    def spent_s():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before_s = spent_s()
    report(room, path)
    return spent_s() - before_s


@test
def ranks_share_what_one_found_out_about_a_counter(room):
    """The report of 16 ranks that read one machine costs a few times that of one of them, not 16 times."""
    folder = room.folder / "sixteen"
    made_jobs.make(WATTLE, folder, made_jobs.Job("one node", nodes=1, per_node=16, gpus=1, steps=100))
    assert cost_s(room, folder) < 8 * cost_s(room, folder / "job-r000.sqlite")


@test
def units_of_work_of_all_ranks_add_up(room):
    """Each rank tells 100 tokens in `setup`: its joules a token are those of the block by the tokens of all."""
    folder = room.folder / "units"
    made_jobs.make(WATTLE, folder, "plain")
    for path in folder.glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute("INSERT INTO user_metric SELECT begin_ns + 1000, 'tokens', 100, id, pid, tid FROM span "
                         "WHERE name = 'setup'")
            file.commit()
    document = report(room, folder)
    block = next(block for block in document["blocks"] if block["name"] == "setup")
    unit, = block["units"]
    assert (unit["name"], unit["count"], unit["sum"]) == ("tokens", len(document["ranks"]), 800)
    near(unit["j_per_unit"], block["energy"]["total_j"] / 800, relative=1e-9)
    near(unit["error_j_per_unit"], block["energy"]["error_j"] / 800, relative=1e-9)


@test
def a_long_job_that_is_read_thinly(room):
    """One sample in a second gives the sums of all samples; what it can't know as well has an error that says so."""
    job = made_jobs.Job("long", nodes=1, per_node=2, gpus=2, steps=30, step_s=1.642, is_even=True, times=128,
                        slow={1: 1.2})
    truth = made_jobs.make(WATTLE, room.folder / "long", job)
    thin, full = report(room, room.folder / "long"), report(room, room.folder / "long", "--full")
    assert thin["job"]["read_every_s"] == 1 and full["job"]["read_every_s"] is None
    assert thin["run"]["samples"] == full["run"]["samples"] > 150_000
    near(thin["energy"]["total_j"], truth["total_j"], relative=1e-5)
    near(thin["energy"]["total_j"], full["energy"]["total_j"], relative=1e-5)
    near(thin["cpu"]["target_cpu_s"], full["cpu"]["target_cpu_s"], relative=1e-6)
    near(sum(thin["energy"]["ledger"].values()), thin["energy"]["total_j"], relative=1e-9)
    for one, all_of_it in zip(thin["ranks"], full["ranks"], strict=True):
        for key in ("duration_s", "cpu_s", "waiting_s", "work_s"):
            near(one[key], all_of_it[key], relative=1e-6)
        near(one["energy_j"], all_of_it["energy_j"], absolute=one["error_j"])
    for one, all_of_it in zip(thin["blocks"], full["blocks"], strict=True):
        assert one["num_calls"] == all_of_it["num_calls"]
        near(one["compute_time"]["total"], all_of_it["compute_time"]["total"], relative=1e-9)
        near(one["energy"]["total_j"], all_of_it["energy"]["total_j"], absolute=one["energy"]["error_j"])


@test
def blocks_that_wait_are_what_the_user_says(room):
    made(room, "plain")
    document = report(room, room.folder / "plain", "--waiting", "setu?")
    assert document["imbalance"]["waiting_blocks"] == ["setup"]
    near(document["imbalance"]["waiting_s"]["total"], 8 * 0.5, relative=1e-6)
    document = report(room, room.folder / "plain", "--waiting", "nothing")
    assert document["imbalance"]["waiting_s"]["mean"] is None


@test
def what_is_wrong_is_told(room):
    for kind, words in (("missing", "2 of 8 ranks left no run: 5 and 6"), ("takeover", "were not finished"),
                        ("skewed", "their clocks are apart"), ("virtual_nodes", "are one machine"),
                        ("unmeasured", "Nobody read the sensors of node-01"), ("nested", "wattle run around wattle run")):
        folder, _ = made(room, kind)
        warnings = report(room, folder)["warnings"]
        assert any(words in warning for warning in warnings), (kind, warnings)


@test
def nothing_is_told_of_a_job_that_went_well(room):
    made(room, "plain")
    assert report(room, room.folder / "plain")["warnings"] == []


@test
def ranks_of_the_report_stand_in_its_text(room):
    made(room, "imbalanced")
    result = room.wattle("report", room.folder / "imbalanced")
    assert result.returncode == 0, result.stderr
    assert "Job 4242" in result.stdout and "8 ranks on 4 nodes" in result.stdout
    assert "Slowest: rank 5 on node-03" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@test
def names_of_strangers_do_no_harm(room):
    """Control characters of nodes, jobs and blocks never reach a terminal."""
    made(room, "hostile")
    result = room.wattle("report", room.folder / "hostile")
    assert result.returncode == 0 and not any(ord(c) < 32 and c != "\n" for c in result.stdout)


@test
def jobs_side_by_side(room):
    a, truth_a = made(room, "plain")
    b, truth_b = made(room, "imbalanced")
    result = room.wattle("compare", f"a={a}", f"b={b}", "--format", "json")
    assert result.returncode == 0, result.stderr
    total = json.loads(result.stdout)["energy"]["total_j"]
    near(total["a"], truth_a["total_j"], relative=0.003)
    near(total["b"], truth_b["total_j"], relative=0.003)


@test
def refusals_say_what_would_be_right(room):
    made(room, "plain")
    for arguments, words in (((room.folder / "plain", "--job", "77"), "it has 4242"),
                             ((room.folder / "plain" / "job-r000.sqlite", "--job", "1"), "are of jobs"),
                             (("--store", "postgresql:///x"), "--job ID or --run ID"),
                             ((room.folder / "plain", "--run", "1"), "--store URL")):
        result = room.wattle("report", *arguments)
        assert result.returncode in (1, 2) and words in result.stderr, (arguments, result.stderr)


if __name__ == "__main__":
    main()
