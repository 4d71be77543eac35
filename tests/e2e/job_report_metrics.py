"""Texts of `wattle report DIR` for synthetic jobs: warnings, refusals, owners of runs, runs without a rank."""
import json
import shutil

from harness import main, near, test
from job_report_fixture import change, made, report, report_of


@test
def steps_in_the_text(workdir):
    """ranks of two steps: distinguished; a batch script's own recording: no rank"""
    folder, _ = made(workdir, "two_steps")
    text = workdir.wattle("report", folder, "--all").stdout
    assert "4 ranks in each of 2 steps on 2 nodes" in text and "step  rank  node" in text, text
    paths = sorted(folder.glob("*.sqlite"))
    change(paths[0], ("delete from run where key in ('rank', 'local_rank', 'job_step')",))
    text = workdir.wattle("report", folder, "--all").stdout
    assert "7 ranks in 2 steps together and 1 recording without a rank" in " ".join(text.split()), text
    assert max(map(len, text.splitlines())) <= 80


@test
def list_shows_run_owners(workdir):
    """list: names user, node, job and rank of a run"""
    folder, _ = made(workdir, "one_rank")
    lines = workdir.wattle("list", folder).stdout.splitlines()
    assert len(lines) == 1 and "ada@node-01 job 4242 rank 0  " in lines[0], lines


@test
def common_warning_is_listed_once(workdir):
    """same note from all or several ranks: printed once, with the number of ranks"""
    folder, _ = made(workdir, "plain")
    note = "insert into event (t_ns, kind, text) values (5005000000000, 'note', ?)"
    for number, path in enumerate(sorted(folder.glob("*.sqlite"))):
        change(path, (note, ("this container is not shown the sensors",)))
        if number % 4 == 0:
            change(path, (note, ("the clock was set",)))
        if number == 3:
            change(path, (note, ("perf was refused",)), (note.replace("note", "mark"), ("a very long mark " * 1000,)))
    expected = ["all 8 ranks: this container is not shown the sensors",
                "rank 0 on node-01 and 1 more of 8 ranks: the clock was set", "rank 3 on node-01: perf was refused"]
    assert sorted(report(workdir, folder)["warnings"]) == expected
    text = workdir.wattle("report", folder, "--all").stdout
    assert all(text.count(words) == 1 for words in ("all 8 ranks", "and 1 more of 8 ranks", "perf was refused")), text


@test
def waiting_blocks_by_option(workdir):
    """--waiting PATTERN: selects the blocks that count as waiting; without a match waiting is unknown"""
    made(workdir, "plain")
    document = report(workdir, workdir.folder / "plain", "--waiting", "setu?")
    assert document["imbalance"]["waiting_blocks"] == ["setup"]
    near(document["imbalance"]["waiting_s"]["total"], 8 * 0.5, relative=1e-6)
    document = report(workdir, workdir.folder / "plain", "--waiting", "nothing")
    assert document["imbalance"]["waiting_s"]["mean"] is None
    for pattern, told in (("setpu", "matches 'setpu' (did you mean 'setup'?)"), ("nothing", "matches 'nothing'")):
        done = workdir.wattle("report", workdir.folder / "plain", "--waiting", "setup", "--waiting", pattern,
                              "--format", "line")
        assert done.returncode == 0 and done.stderr == f"wattle: warning: --waiting: no code block {told}\n", done


@test
def problems_are_reported(workdir):
    """jobs with a defect: the warning names it"""
    for kind, words in (("missing", "2 of 8 ranks have no run: 5 and 6"), ("takeover", "were not finished"),
                        ("skewed", "their clocks differ"), ("virtual_nodes", "are the same machine"),
                        ("unmeasured", "No rank read the sensors of node-01"), ("nested", "nested wattle run")):
        warnings = report_of(kind)[0]["warnings"]
        assert any(words in warning for warning in warnings), (kind, warnings)
    for kind, is_reported in (("skewed", True), ("plain", False)):  # concurrent as well: they are included in it
        said = " ".join(workdir.wattle("report", made(workdir, kind)[0], "--all").stdout.split())
        assert ("up to 4.90 s of it may come from clock differences between nodes" in said) == is_reported, said


@test
def unreadable_counter_is_reported(workdir):
    """dram readable by rank 0 only, which ends: a warning, and an error that covers the missing energy"""
    folder, expected_values = made(workdir, "takeover")
    for number in (1, 2, 3):
        change(folder / f"job-r00{number}.sqlite",
               ("delete from device_sample where device in (select id from device where kind = 'dram')",),
               ("delete from device where kind = 'dram'",), ("delete from event where text like '%dram%'",))
    document = report(workdir, folder)
    dram = next(d for d in document["energy"]["domains"] if d["kind"] == "dram" and d["node"] == "node-01")
    missing_j = expected_values["nodes"]["node-01"]["domains"]["dram-0"]["energy_j"] - dram["energy_j"]
    assert dram["gaps"] == 1 and dram["energy_j"] < missing_j < dram["error_j"], (dram, missing_j)
    assert any("No rank read dram-0 of node-01 for 7.4 s" in text
               for text in document["warnings"]), document["warnings"]


@test
def numbers_that_no_machine_has_do_no_harm(workdir):
    """times and counters at the limits of 64 bits: a report, or one line; sanitizers check the rest"""
    folder, _ = made(workdir, "takeover")
    most = 2**63 - 1
    for number, value in ((1, most), (5, 1 - most)):
        change(folder / f"job-r00{number}.sqlite",
               ("update sample set t_ns = ? where t_ns = (select max(t_ns) from sample)", (value,)),
               ("update sample set main_rss_bytes = ?, main_cpu_ns = ?", (value, value)),
               ("update segment set wall_start_ns = ?", (value,)), ("update event set t_ns = ?", (value,)),
               ("update device set update_period_ns = ?, energy_range_uj = ?", (value, value)),
               ("update run set value = ? where key in ('interval_ns', 'n_cores', 'expected_cores')", (str(value),)))
    result = workdir.wattle("report", folder)
    assert result.returncode == 0 or len(result.stderr.splitlines()) == 1, result.stderr


@test
def complete_job_has_no_warning(workdir):
    """job without a defect: no warnings"""
    assert report_of("plain")[0]["warnings"] == []


@test
def text_lists_all_ranks(workdir):
    """text of a job: names job, ranks, nodes and the slowest rank in at most 80 columns"""
    made(workdir, "imbalanced")
    result = workdir.wattle("report", workdir.folder / "imbalanced")
    assert result.returncode == 0, result.stderr
    assert "Job 4242" in result.stdout and "8 ranks on 4 nodes" in result.stdout
    assert "Slowest: rank 5 on node-03" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@test
def names_of_strangers_do_no_harm(workdir):
    """control characters in names of nodes, jobs and blocks: never reach a terminal"""
    made(workdir, "hostile")
    result = workdir.wattle("report", workdir.folder / "hostile")
    assert result.returncode == 0 and not any(ord(c) < 32 and c != "\n" for c in result.stdout)


@test
def jobs_side_by_side(workdir):
    """compare of two jobs: the total energy of each"""
    a, expected_a = made(workdir, "plain")
    b, expected_b = made(workdir, "imbalanced")
    result = workdir.wattle("compare", f"a={a}", f"b={b}", "--format", "json")
    assert result.returncode == 0, result.stderr
    total = json.loads(result.stdout)["energy"]["total_j"]
    near(total["a"], expected_a["total_j"], relative=0.003)
    near(total["b"], expected_b["total_j"], relative=0.003)


@test
def refusals_suggest_valid_values(workdir):
    """wrong job, run or store: refused, and the message states the correct form"""
    made(workdir, "plain")
    for arguments, words in (((workdir.folder / "plain", "--job", "77"), "it has jobs 4242"),
                             ((workdir.folder / "plain" / "job-r000.sqlite", "--job", "1"), "apply to jobs"),
                             (("--store", "postgresql:///x"), "--job ID or --run ID"),
                             ((workdir.folder / "plain", "--run", "1"), "--store URL")):
        result = workdir.wattle("report", *arguments)
        assert result.returncode in (1, 2) and words in result.stderr, (arguments, result.stderr)


@test
def jobs_without_an_id(workdir):
    """job without an id beside one with an id: `--job none` selects it"""
    folder, _ = made(workdir, "one_rank")
    other, _ = made(workdir, "no_id")
    for path in other.glob("*.sqlite"):
        shutil.copy(path, folder / f"other-{path.name}")
    said = report(workdir, folder, status=1)
    assert "choose one with --job" in said and "none (without an ID)" in said, said
    assert report(workdir, folder, "--job", "none")["job"]["id"] is None
    assert report(workdir, folder, "--job", "4242")["job"]["id"] == "4242"
    compared = workdir.wattle("compare", f"a={folder}", f"b={other}")  # a run without --job
    assert (compared.returncode == 1 and "use a separate folder for each job: " in compared.stderr
            and "--job" not in compared.stderr), compared


@test
def rank_without_samples_is_unknown(workdir):
    """run killed before its first flush: its energy is n/a, not 0 J"""
    folder, _ = made(workdir, "dead")
    change(folder / "job-r001.sqlite", *((f"delete from {table}",) for table in ("sample", "device_sample", "span")))
    rank = report(workdir, folder)["ranks"][1]
    for key in ("energy_j", "error_j", "duration_s", "cpu_s"):
        assert rank[key] is None, (key, rank)
    assert set(rank["domains"].values()) <= {None} and rank["ended_early"]
    text = workdir.wattle("report", folder, "--all").stdout
    row = next(line for line in text.splitlines() if line.startswith("  1 "))
    assert "n/a" in row and "0 J" not in row, row


@test
def a_copy_of_a_file_is_no_second_run(workdir):
    """two files of one run: the longer one counts; a rank beyond its world size is reported"""
    folder, expected_values = made(workdir, "one_rank")
    copy = folder / "a-copy.sqlite"
    shutil.copy(folder / "job-r000.sqlite", copy)
    change(copy, ("delete from sample where t_ns > (select avg(t_ns) from sample)",))
    document = report(workdir, folder)
    near(document["energy"]["ledger"]["target_j"], expected_values["ranks"]["0"]["energy_j"], relative=0.01)
    assert [rank["where"] for rank in document["ranks"]] == [str(folder / "job-r000.sqlite")]
    assert len(document["warnings"]) == 1 and "is counted once" in document["warnings"][0], document["warnings"]
    change(folder / "job-r000.sqlite", ("update run set value = '7' where key = 'rank'",))
    assert any("beyond the launcher's 1:" in words for words in report(workdir, folder)["warnings"])


@test
def a_batch_script_that_was_requeued_is_one_row(workdir):
    """runs without a rank: two commands of one script stay two rows"""
    folder, _ = made(workdir, "one_rank")
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
    document = report(workdir, folder)
    rows = sorted((rank["runs"], rank["restart"]) for rank in document["ranks"])
    assert rows == [(1, None), (2, 1)], rows


if __name__ == "__main__":
    main()
