"""RAM of targets with several processes: the report and the tracking file against the memory that the processes report
themselves (tests/fakes/memory_tree.c)."""
import csv
import json
import re
import sqlite3
import sys

from harness import BUILD, main, near, test, wait_until

MEMORY_TREE = BUILD / "tests/fakes/memory_tree"
MB = 1000 * 1000
# How long a tree stays unchanged: reading costs several times more with sanitizers, so the budget is used up for a
# while.
HOLD_S = 3
GROUPS = ("main", "descendants", "combined")


def check(actual, expected_values):
    """within 10 % and 10 MB"""
    for group in GROUPS:
        near(actual[group] / MB, expected_values[group] / MB, absolute=0.1 * expected_values[group] / MB + 10)


def rows_of(path):
    """main, descendants and combined RAM of each row of a tracking file, bytes"""
    with open(path, newline="", encoding="ascii") as file:
        names, *rows = list(csv.reader(file))[2:]
    columns = [names.index(f"{group}_ram") for group in GROUPS]
    return [[float(row[column]) for column in columns] for row in rows if all(row[column] for column in columns)]


def check_rows(rows):
    """Combined RAM is at most the sum of main and descendants, and at least the larger of them."""
    for main_bytes, descendants_bytes, combined_bytes in rows:
        assert combined_bytes <= main_bytes + descendants_bytes + 1, (main_bytes, descendants_bytes, combined_bytes)
        assert combined_bytes >= max(main_bytes, descendants_bytes) - 1, (main_bytes, descendants_bytes, combined_bytes)


def measured(workdir, *act):
    report, done = workdir.report("--ram-unit", "bytes", "--tracking-file", "rows.csv", "--", MEMORY_TREE, *act)
    expected_values = json.loads(done.stdout.splitlines()[-1])
    ram = report["resource_usage"]["max_ram"]
    check({group: ram[group]["total_rss"] for group in GROUPS}, expected_values)
    rows = rows_of(workdir.folder / "rows.csv")
    check({group: max(row[i] for row in rows) for i, group in enumerate(GROUPS)}, expected_values)
    check_rows(rows)
    return report, expected_values


@test
def forked_workers_that_only_read(workdir):
    """200 MB and eight forked workers: 200 MB, not 1.8 GB, in the report, its summary and the tracking file"""
    report, expected_values = measured(workdir, "fork", 200 * MB, 8, 0, HOLD_S)
    near(report["memory"]["peak_ram_bytes"] / MB, expected_values["combined"] / MB, absolute=30)
    text = workdir.wattle("report", "run.sqlite").stdout
    memory = next(line for line in text.splitlines() if line.strip().startswith("Memory"))
    near(float(memory.split()[1]), 200, absolute=30)


@test
def forked_workers_that_copy(workdir):
    """100 MB and four forked workers that write to 60 % of it"""
    measured(workdir, "fork", 100 * MB, 4, 60, HOLD_S)


@test
def forked_workers_that_copy_some_pages(workdir):
    """100 MB and four forked workers that write to one page in five"""
    measured(workdir, "scattered", 100 * MB, 8, 20, HOLD_S)


@test
def many_workers(workdir):
    """30 MB and 48 forked workers that write to a tenth of it"""
    measured(workdir, "fork", 30 * MB, 48, 10, HOLD_S)


@test
def shared_segments(workdir):
    """150 MB mapped by four workers: 150 MB, as shared anonymous memory, a memfd, a file on a tmpfs"""
    for kind in ("anonymous", "memfd", "file"):
        measured(workdir, kind, 150 * MB, 4, 1)


@test
def a_tree_that_grows_and_shrinks(workdir):
    """workers with 30 MB of their own in succession"""
    measured(workdir, "waves", 30 * MB, 6, 2)


@test
def workers_that_allocate_and_free(workdir):
    """page faults of memory that is allocated and freed: not counted as copies"""
    measured(workdir, "loop", 100 * MB, 4, 2)


@test
def the_memory_of_another_program(workdir):
    """program executed by a child of a large program: its own memory, from the first sample on"""
    child = "m = bytearray(80_000_000); m[::4096] = b'x' * len(m[::4096]); import time; time.sleep(1)"
    script = ("import subprocess, sys; m = bytearray(150_000_000); m[::4096] = b'x' * len(m[::4096]);"
              f"subprocess.run([sys.executable, '-c', {child!r}], check=True)")
    report, _ = workdir.report("--budget", "0", "--ram-unit", "bytes", "--", sys.executable, "-S", "-c", script)
    ram = report["resource_usage"]["max_ram"]
    near(ram["combined"]["total_rss"] / MB, 245, absolute=25)


@test
def readings_stay_in_the_budget(workdir):
    """cost of reading: at most 1 % of a core plus the start allowance of a short run, whatever there is to read"""
    costs = []
    for budget in (0, 1):
        report, _ = workdir.report("--budget", budget, "--", MEMORY_TREE, "loop", 200 * MB, 16, 5)
        costs.append(report["self"]["cpu_s"])
    assert costs[1] - costs[0] < 0.01 * report["run"]["duration_s"] * 1.5 + 0.03, costs


@test
def the_live_view(workdir):
    """wattle top: shows the target's RAM: 150 MB and four forked workers that write to a third are 350 MB"""
    process = workdir.start("fork", 150 * MB, 4, 33, 60, program=MEMORY_TREE)

    def ram():
        done = workdir.wattle("top", "--once", "--pid", process.pid, "-i", "500ms")
        shown = re.search(r"RAM ([0-9.]+) MB", done.stdout)
        return shown and abs(float(shown[1]) - 348) < 45
    wait_until(ram, "RAM of the target in the live view", 60)


@test
def runs_of_earlier_versions(workdir):
    """no values carried forward in the file: the next reading still corrects earlier ones that were too high"""
    measured(workdir, "fork", 200 * MB, 8, 0, HOLD_S)
    database = sqlite3.connect(workdir.folder / "run.sqlite")
    for group in GROUPS:
        database.execute(f"ALTER TABLE sample DROP COLUMN {group}_ram_bytes")
    database.commit()
    database.close()
    done = workdir.wattle("report", "run.sqlite", "--format", "json")
    assert done.returncode == 0, done.stderr
    ram = json.loads(done.stdout)["resource_usage"]["max_ram"]
    near(ram["combined"]["total_rss"] / MB, 200, absolute=30)


if __name__ == "__main__":
    main()
