"""Spans on their way from a program into the run file, whatever ends the program or the recorder."""
import json
import os
import signal
import sqlite3
import time

from harness import BUILD, main, near, test, wait_until

SPANNER = BUILD / "tests/fakes/spanner"
FILE = ["run", "-q", "--disable-logs", "--overwrite", "-o", "run.sqlite", "--"]


def record(workdir, *act, options=()):
    done = workdir.wattle(*FILE[:-1], *options, "--", SPANNER, *act)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done


def counted(workdir, path="run.sqlite"):
    return dict(workdir.rows("SELECT name || ' ' || close, count(*) FROM span GROUP BY 1", path))


@test
def nested(workdir):
    """spans nest: parents, times, the metric and the mark that were inside"""
    record(workdir, "nested")
    outer, first, second = workdir.rows(
        "SELECT id, parent, name, begin_ns, end_ns, kind, pid, tid FROM span ORDER BY id")
    assert (outer[2], first[2], second[2]) == ("outer", "inner", "inner")
    assert outer[1] is None and first[1] == second[1] == outer[0]
    assert outer[3] <= first[3] < first[4] <= second[3] < second[4] <= outer[4]
    assert (second[4] - second[3]) / 1e9 > 0.015, second
    pid, = workdir.rows("SELECT pid FROM segment")[0]
    assert outer[6] == outer[7] == pid
    assert workdir.rows("SELECT name, value, span, pid FROM user_metric") == [("tokens", 128.0, outer[0], pid)]
    assert workdir.rows("SELECT text FROM event WHERE kind = 'mark'") == [("here",)]
    start, end = workdir.rows("SELECT start_ns, end_ns FROM segment")[0]
    assert start <= outer[3] and outer[4] <= end
    assert workdir.rows("SELECT lost_spans, unwound_spans FROM segment") == [(0, 0)]


@test
def steps_of_the_progress(workdir):
    """--progress: counts the spans that --step names as they end, in all processes"""
    program = f"{SPANNER} nested; {SPANNER} nested; sleep 1.2"
    done = workdir.wattle(*FILE[:-1], "--progress", "--step", "inner", "--steps", "8", "--", "sh", "-c", program)
    assert ", step 4/8\n" in done.stderr, done.stderr  # four spans that end almost at once give no forecast
    rows = """printf 'process_id,code_block_name,position,timestamp\\r\\n1,"a ""b"", c",1,2.5\\r\\n' > s.csv; sleep 1.2"""
    done = workdir.wattle(*FILE[:-1], "--progress", "--step", 'a "b", c', "--sub-tracking-file", "s.csv", "--", "sh",
                          "-c", rows)
    assert ", step 1\n" in done.stderr, done.stderr
    done = workdir.wattle(*FILE[:-1], "--progress", "--step", "no such span", "--", "sh", "-c", program)
    assert "wattle: 1.0" in done.stderr and ", step 0\n" in done.stderr, done.stderr


@test
def threads(workdir):
    """each thread has spans of its own"""
    record(workdir, "threads", 5, 300)
    assert workdir.rows("SELECT count(*), count(DISTINCT tid), count(parent) FROM span") == [(1500, 5, 0)]


@test
def forked(workdir):
    """children of a millisecond: leave their spans"""
    record(workdir, "forks", 60)
    assert counted(workdir) == {"inner ended": 60, "outer ended": 1}
    assert workdir.rows("SELECT count(DISTINCT pid) FROM span") == [(61,)]


@test
def replaced(workdir):
    """exec: closes open spans, and the new program has spans of its own"""
    record(workdir, "exec")
    assert counted(workdir) == {"outer exec": 1, "outer ended": 1, "inner ended": 2}
    length, = workdir.rows("SELECT end_ns - begin_ns FROM span WHERE close = 'exec'")[0]
    assert length / 1e9 > 0.01, length


@test
def ranges(workdir):
    """range: begins in one thread and ends in another"""
    record(workdir, "range")
    assert workdir.rows("SELECT name, kind, close, parent FROM span WHERE kind = 'range'") == [("inner", "range",
                                                                                                "ended", 1)]


@test
def killed(workdir):
    """killed program: its spans end with it, and are marked"""
    process = workdir.start(*FILE, SPANNER, "wait")
    pid = int(process.stdout.readline())
    time.sleep(0.3)
    os.kill(pid, signal.SIGKILL)
    done = workdir.finish(process)
    assert done.returncode == 128 + signal.SIGKILL
    assert counted(workdir) == {"outer death": 1, "inner death": 1}
    end, = workdir.rows("SELECT end_ns FROM segment")[0]
    for died, in workdir.rows("SELECT end_ns FROM span"):
        near(died / 1e9, end / 1e9, absolute=1)


@test
def a_child_is_killed(workdir):
    """killed child: its spans end long before the run does"""
    process = workdir.start(*FILE, "sh", "-c", f"{SPANNER} wait & echo $!; wait $!; sleep 1.5")
    pid = int(process.stdout.readline())
    process.stdout.readline()
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    workdir.finish(process)
    before = workdir.rows("SELECT (SELECT end_ns FROM segment) - max(end_ns) FROM span WHERE close = 'death'")[0][0]
    assert before / 1e9 > 0.7, before


@test
def recorder_killed(workdir):
    """kill of the recorder: loses at most the last second, and no span that was open for long"""
    process = workdir.start(*FILE, SPANNER, "pulse", 20)
    time.sleep(3.2)
    process.kill()
    process.wait()
    n, last = workdir.rows("SELECT count(*), (max(end_ns) - min(begin_ns)) / 1e9 FROM span WHERE name = 'inner'")[0]
    assert n > 30 and last > 1, (n, last)
    assert workdir.rows("SELECT close, end_ns FROM span WHERE name = 'outer'") == [("open", None)]
    done = workdir.wattle("report", "run.sqlite", "--format", "json")
    assert done.returncode == 0, done.stderr


@test
def read_while_running(workdir):
    """run in progress: readable by others, with open spans"""
    process = workdir.start(*FILE, SPANNER, "pulse", 6)

    def stored():
        try:
            return workdir.rows("SELECT count(*) FROM span")[0][0] > 30
        except sqlite3.Error:
            return False
    wait_until(stored, "spans in the file")
    assert workdir.rows("SELECT close FROM span WHERE name = 'outer'") == [("open",)]
    assert process.poll() is None
    workdir.finish(process)
    assert workdir.rows("SELECT close FROM span WHERE name = 'outer'") == [("ended",)]
    assert workdir.rows("SELECT count(*) FROM span WHERE name = 'outer'") == [(1,)]


@test
def fast(workdir):
    """more spans than SQLite can take live: a spool is used and removed; spans that did not fit into the rings are
    reported"""
    done = record(workdir, "flood", 8, 30000, 2)
    told = json.loads(done.stdout)
    n, least = workdir.rows("SELECT count(*), min(end_ns >= begin_ns) FROM span")[0]
    assert (n, least) == (told["begun"], 1) and n > 50_000, (n, least, told)
    assert workdir.rows("SELECT lost_spans FROM segment") == [(told["lost"],)], told
    assert workdir.rows("SELECT count(*) FROM span WHERE name <> 'inner' OR close <> 'ended'") == [(0,)]
    assert not (workdir.folder / "run.sqlite-spans").exists()


@test
def fast_recorder_killed(workdir):
    """spool of a killed recorder: read by the report, and merged by the next --append"""
    process = workdir.start(*FILE, SPANNER, "flood", 8, 30000, 20)
    spool = workdir.folder / "run.sqlite-spans"
    wait_until(lambda: spool.exists() and spool.stat().st_size > 8_000_000, "a spool")
    process.kill()
    process.wait()
    live = workdir.rows("SELECT count(*) FROM span")[0][0]
    with spool.open("r+b") as torn:  # in the middle of a chunk
        torn.truncate(spool.stat().st_size - 1000)
    jsonl = workdir.wattle("export", "run.sqlite", "--format", "jsonl", "-o", "run.jsonl")
    assert jsonl.returncode == 0, jsonl.stderr
    ids = [json.loads(line)["id"] for line in (workdir.folder / "run.jsonl").open()
           if line.startswith('{"type": "span"')]
    assert len(ids) == len(set(ids)) > live + 80_000, (len(ids), live)
    done = workdir.wattle("run", "-q", "--disable-logs", "--append", "-o", "run.sqlite", "--", SPANNER, "nested")
    assert done.returncode == 0, done.stderr
    assert not spool.exists()
    assert workdir.rows("SELECT count(*) FROM span") == [(len(ids) + 3,)]
    again = {r[0] for r in workdir.rows("SELECT id FROM span")}
    assert set(ids) < again
    assert workdir.rows("SELECT count(*) FROM span a JOIN span b ON a.parent = b.id "
                     "WHERE b.name = 'outer'") == [(2,)]


@test
def replaced_file(workdir):
    """spool of an overwritten run: not part of the new run"""
    process = workdir.start(*FILE, SPANNER, "flood", 4, 30000, 20)
    spool = workdir.folder / "run.sqlite-spans"
    wait_until(lambda: spool.exists() and spool.stat().st_size > 1_000_000, "a spool")
    process.kill()
    process.wait()
    record(workdir, "nested")
    assert not spool.exists()
    assert counted(workdir) == {"outer ended": 1, "inner ended": 2}


@test
def attached_other(workdir):
    """running program: has no ring for a later recorder; one run inside another has its own"""
    done = workdir.wattle(*FILE, BUILD / "src/cli/wattle", "run", "-q", "--disable-logs", "-o", "inner.sqlite", "--",
                          SPANNER,
                          "nested")
    assert done.returncode == 0, done.stderr
    assert workdir.rows("SELECT count(*) FROM span") == [(0,)]
    assert workdir.rows("SELECT count(*) FROM span", "inner.sqlite") == [(3,)]


main()
