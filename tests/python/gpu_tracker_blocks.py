"""gpu_tracker's code blocks on wattle: written files, and their analysis with hand-made rows."""
import contextlib
import json
import math
import os
import pickle
import sqlite3
import sys

from gpu_tracker_common import (COLUMNS, MARKS, METRICS, STATIC, TRACKING, as_sqlite, need_pandas, pandas, refused,
                                rows_of, write)
from harness import main, near, test

import wattle.compat.gpu_tracker as gput
from wattle import _sqlite
from wattle.compat.gpu_tracker.sub_tracker import CodeBlockResults, SubTrackingResults


def run(workdir, program, **options):
    imports = "import os, threading\nimport wattle.compat.gpu_tracker as gput\n"
    (workdir.folder / "program.py").write_text(imports + program)
    done = workdir.finish(workdir.start("program.py", program=sys.executable, **options))
    assert done.returncode == 0, done
    return done


# ---- hostile files ----

@test
def endless_view_as_data(workdir):
    """tracking file whose table is an endless view: refused within seconds"""
    need_pandas()
    path = workdir.folder / "hostile.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in ("data", "static_data"):
            connection.execute(f"CREATE VIEW {table} AS WITH RECURSIVE n(timestamp) AS "
                               "(SELECT 1 UNION ALL SELECT timestamp + 1 FROM n) SELECT timestamp FROM n")
        connection.commit()
    analyzer = gput.SubTrackingAnalyzer(path, workdir.folder / "blocks.csv")
    for read in (analyzer.overall_timepoint_results, analyzer.read_static_data):
        refused(sqlite3.DatabaseError, read, "is a view or a virtual table")


COMPUTED = [  # columns of table run, whether a reader refuses it, the reason
    ("key TEXT, value TEXT GENERATED ALWAYS AS (zeroblob(1000000000))", True, "has computed columns"),
    ("key TEXT, value TEXT, more BLOB AS (zeroblob(1000)) STORED", True, "has computed columns"),
    ("key TEXT, value TEXT DEFAULT (randomblob(1000000000))", False, "has computed default values"),
    ("key TEXT, value TEXT); CREATE INDEX i ON run (length(value)", False, "has an index of computed values"),
]


@test
def computed_values(workdir):
    """table that computes columns, default values or an index: refused as by the program: no code of a file runs"""
    for number, (columns, is_readers, fault) in enumerate(COMPUTED):
        path = workdir.folder / f"computed{number}.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(
                f"CREATE TABLE run ({columns}); CREATE TABLE data (n); CREATE TABLE other (a, b AS (a + 1))")
        refused(sqlite3.DatabaseError, lambda: _sqlite.connect(path, ("data", "run")), fault)
        if is_readers:
            refused(sqlite3.DatabaseError, lambda: _sqlite.connect(path, ("RUN",), read_only=True), fault)
        for tables, options in ((("data", "none"), {}), *[(("run",), {"read_only": True})] * (not is_readers)):
            with contextlib.closing(_sqlite.connect(path, tables, **options)) as connection:
                assert connection.execute("SELECT count(*) FROM data").fetchone() == (0,)


@test
def query_without_end(workdir):
    """query of a small file that is only read: ends after some seconds"""
    path = workdir.folder / "small.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE data (n INTEGER)")
        connection.executemany("INSERT INTO data VALUES (?)", [(n,) for n in range(1000)])
    with contextlib.closing(_sqlite.connect(path, ("data",), read_only=True)) as connection:
        refused(sqlite3.OperationalError, lambda: connection.execute(
            "SELECT count(a.n) FROM data a, data b, data c, data d WHERE a.n + b.n + c.n + d.n < 0").fetchall(),
                "interrupted")


@test
def triggers_of_a_file(workdir):
    """trigger of a file: does not fire; the statement that would start it is refused"""
    path = workdir.folder / "hostile.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE fired (n INTEGER)")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON run BEGIN INSERT INTO fired VALUES (1); END")
    with contextlib.closing(_sqlite.connect(path, ("run",))) as connection:
        refused(sqlite3.DatabaseError, lambda: connection.execute(
            "INSERT OR REPLACE INTO run (key, value) VALUES ('a', 'b')"), "not authorized")
        assert connection.execute("SELECT count(*) FROM fired").fetchone() == (0,)
        connection.rollback()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER t")
    with contextlib.closing(_sqlite.connect(path, ("run",))) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO run (key, value) VALUES ('a', 'b')")
        assert connection.execute("SELECT value FROM run").fetchall() == [("b",)]


# ---- written files ----

@test
def default_names(workdir):
    """SubTracker: relative path and line; sub_track: absolute path and function; the file is PID.csv with gpu_tracker's
    columns"""
    pid = run(workdir, """
with gput.SubTracker() as block: pass
with gput.SubTracker(code_block_attribute='here'): pass
@gput.sub_track()
def work(a, *, b): return a - b
@gput.sub_track(code_block_attribute='there')
def other(): pass
assert work(5, b=3) == 2 and work.__name__ == 'work'
other()
assert block.code_block_name == 'program.py:4' and block.process_id == os.getpid(), vars(block)
assert block.sub_tracking_file == f'{os.getpid()}.csv'
print(os.getpid())
""").stdout.strip()
    with open(workdir.folder / f"{pid}.csv", newline="", encoding="utf-8") as file:
        assert file.readline() == COLUMNS + "\r\n"
    rows = rows_of(workdir.folder / f"{pid}.csv")
    program = str(workdir.folder / "program.py")
    assert [row[:3] for row in rows] == [(pid, name, position) for name in ("program.py:4", "program.py:here",
                                         f"{program}:work", f"{program}:there") for position in "01"], rows
    stamps = [float(row[3]) for row in rows]
    assert stamps == sorted(stamps) and stamps[0] > 1.6e9


@test
def one_name_each(workdir):
    """one decorator used for two functions: each has its own name"""
    path = str(workdir.folder / "marks.csv")
    decorate = gput.sub_track(sub_tracking_file=path)

    def a():
        pass

    def b():
        pass
    decorate(a)()
    decorate(b)()
    assert [row[1].rpartition(":")[2] for row in rows_of(path)] == ["a", "a", "b", "b"], rows_of(path)


@test
def existing_files(workdir):
    """existing file: kept unless overwrite is set; one that vanishes while it is written is reported; invalid suffixes
    are refused"""
    for ending in "csv", "sqlite":
        path = write(workdir, f"mine.{ending}", "mine")
        block = gput.SubTracker("x", sub_tracking_file=path)
        refused(FileExistsError, block.__enter__, f"mine.{ending} already exists", "overwrite")
        assert open(path, encoding="utf-8").read() == "mine"
        for _ in range(2):  # the second time it is the program's own
            with gput.SubTracker("x", sub_tracking_file=path, overwrite=True):
                pass
        assert len(rows_of(path)) == 4
        os.remove(path)
        refused(FileNotFoundError, gput.SubTracker("x", sub_tracking_file=path).__enter__, "removed in the middle")
    refused(ValueError, lambda: gput.SubTracker("x", sub_tracking_file="x.txt"), '".csv" and ".sqlite"')


@test
def threads_and_processes(workdir):
    """four threads and three forked children, 200 calls each, into one file: complete rows, and every call has its own
    end"""
    program = """
import time
def work():
    for i in range(200):
        with gput.SubTracker('a "b", c', sub_tracking_file='{0}'): pass
with gput.SubTracker('main', sub_tracking_file='{0}'): pass
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    children.append(child)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""
    for name in "marks.csv", "marks.sqlite":
        run(workdir, program.format(name))
        rows = rows_of(workdir.folder / name)
        assert len(rows) == 2 * (7 * 200 + 1), len(rows)
        assert len({row[0] for row in rows}) == 8, "a thread has a number of its own"
        pairs = gput.SubTrackingAnalyzer(None, workdir.folder / name).load_timestamp_pairs('a "b", c')
        assert len(pairs) == 1400 and all(0 <= stop - start < 20 for start, stop in pairs)


@test
def forked_inside(workdir):
    """child forked inside a block: leaves its end to the parent; an exception ends the block"""
    path = str(workdir.folder / "marks.csv")
    try:
        with gput.SubTracker("block", sub_tracking_file=path) as block:
            child = os.fork()
            if child == 0:
                block.__exit__(None, None, None)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            raise KeyError("mine")
    except KeyError:
        pass
    assert [row[2] for row in rows_of(path)] == ["0", "1"], rows_of(path)


@test
def coroutines(workdir):
    """decorated coroutine function: a block from its first step to its last, while other tasks run"""
    run(workdir, """
import asyncio
@gput.sub_track('step', sub_tracking_file='marks.csv')
async def step(seconds):
    await asyncio.sleep(seconds)
    return seconds
async def both(): return await asyncio.gather(step(0.2), step(0.1))
assert asyncio.run(both()) == [0.2, 0.1]
""")
    pairs = gput.SubTrackingAnalyzer(None, workdir.folder / "marks.csv").load_timestamp_pairs("step")
    near(sum(stop - start for start, stop in pairs), 0.3, relative=0.5)


@test
def spans_of_a_run(workdir):
    """`wattle run`: sees the blocks without reading any file"""
    (workdir.folder / "program.py").write_text("import time, wattle.compat.gpu_tracker as gput\nfor _ in range(3):\n"
                                            "    with gput.SubTracker('block'): time.sleep(0.05)\n")
    report, _ = workdir.report("--", sys.executable, "program.py")
    [block] = report["blocks"]
    assert (block["name"], block["num_calls"]) == ("block", 3) and block["energy"]["total_j"] is not None, block
    near(block["compute_time"]["total"], 0.15, absolute=0.1)


# ---- analysis ----

@test
def pieces(workdir):
    """the analyzer's parts: names, pairs (nested and recursive ones correct), timepoints inclusive at both ends, static
    data"""
    need_pandas()
    tables = {"static_data": STATIC, "data": TRACKING.split("\n", 2)[2]}
    tracking = write(workdir, "t.csv", TRACKING), as_sqlite(workdir, "t.sqlite", tables)
    marks = write(workdir, "s.csv", MARKS), as_sqlite(workdir, "s.sqlite", {"data": MARKS})
    for tracking_file, sub_tracking_file in zip(tracking, marks):
        analyzer = gput.SubTrackingAnalyzer(tracking_file, sub_tracking_file)
        assert analyzer.load_code_block_names() == ["inner", "lost", "outer"]
        assert analyzer.load_timestamp_pairs("inner") == [(1002.0, 1003.0), (1002.25, 1002.75), (1005.0, 1005.5),
                                                          (1007.0, 1007.25)]
        assert analyzer.load_timestamp_pairs("lost") == [] and analyzer.load_timestamp_pairs("no such") == []
        timepoints = analyzer.load_timepoints([(1002.0, 1003.0), (1002.5, 1004.0), (1020.0, 1030.0)])
        assert list(timepoints["timestamp"]) == [1002, 1003, 1004] and len(analyzer.load_timepoints([])) == 0
        static = analyzer.read_static_data()
        assert static["ram_unit"] == "gigabytes" and static["ram_system_capacity"] == 64.5, static
        assert static["n_expected_cores"] == 4, static
        overall = analyzer.overall_timepoint_results()
        assert list(overall.index) == METRICS and list(overall.columns) == ["min", "max", "mean", "std"]
        assert list(overall.loc["combined_ram"]) == [2, 11, 6.5, math.sqrt(8.25)], overall.loc["combined_ram"]


@test
def results(workdir):
    """sub_tracking_results: figures calculated by hand, as objects, JSON, text and pickle"""
    need_pandas()
    found = gput.SubTrackingAnalyzer(write(workdir, "t.csv", TRACKING),
                                     write(workdir, "s.csv", MARKS)).sub_tracking_results()
    assert isinstance(found, SubTrackingResults)
    assert all(isinstance(block, CodeBlockResults) for block in found.code_block_results)
    inner, lost, outer = found.code_block_results
    assert (inner.name, inner.num_calls, inner.num_timepoints, inner.num_non_empty_calls) == ("inner", 4, 4, 3), inner
    assert (lost.num_calls, lost.num_timepoints) == (0, 0) and math.isnan(lost.compute_time["mean"]), lost
    assert (outer.num_calls, outer.num_timepoints) == (1, 8), outer
    assert dict(inner.compute_time) == {"min": 0.25, "max": 1.0, "mean": 0.5625, "std": math.sqrt(0.07421875),
                                        "total": 2.25}
    assert list(inner.resource_usage.loc["main_ram"]) == [2, 7, 4.25, math.sqrt(3.6875)], inner.resource_usage
    values = found.to_json()
    assert values["static_data"]["time_unit"] == "hours" and list(values["overall"]) == METRICS
    assert values["code_block_results"][0]["compute_time"]["total"] == 2.25
    assert "\tName:                inner\n\tNum Timepoints:      4\n" in str(found)
    assert "Static Data:\n\t   ram_unit" in str(found)
    json.dumps(values)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@test
def invalid_pairs(workdir):
    """stop before its start, or in another process than its start: an error with both timestamps and processes"""
    for rows, *parts in (("1,X,0,30.5\n1,X,1,20.5\n", "20.5", "30.5", "1"),
                         ("1,X,0,1.5\n1,X,1,2.5\n1,X,1,9.5\n2,X,0,3.5\n2,X,1,4.5\n", "9.5", "3.5", "1", "2")):
        analyzer = gput.SubTrackingAnalyzer(None, write(workdir, "bad.csv", f"{COLUMNS}\n{rows}"))
        refused(ValueError, lambda a=analyzer: a.load_timestamp_pairs("X"), "bad.csv", *parts)
    refused(ValueError, gput.SubTrackingAnalyzer(None, workdir.folder / "bad.csv").read_static_data, "no tracking file")


@test
def combined(workdir):
    """combine_sub_tracking_files: all rows into a file that must be new and of the same kind"""
    one = write(workdir, "1.csv", f"{COLUMNS}\n1,X,0,1.5\n1,X,1,2.5\n")
    two = write(workdir, "2.csv", f"{COLUMNS}\n2,X,0,1.25\n2,X,1,3.5\n")
    analyzer = gput.SubTrackingAnalyzer(None, workdir.folder / "all.csv")
    analyzer.combine_sub_tracking_files([one, two])
    assert [tuple(map(str, row)) for row in rows_of(workdir.folder / "all.csv")] == rows_of(one) + rows_of(two)
    refused(ValueError, lambda: analyzer.combine_sub_tracking_files([one, two]), "all.csv", "already exists")
    other = gput.SubTrackingAnalyzer(None, workdir.folder / "all.sqlite")
    refused(ValueError, lambda: other.combine_sub_tracking_files([one]), "1.csv", 'Must end in ".sqlite"')


if __name__ == "__main__":
    main()
