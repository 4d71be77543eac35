"""wattle push: each row of a run file is in PostgreSQL exactly once, however often it is sent and wherever it was
interrupted."""
import contextlib
import dataclasses
import json
import random
import shutil
import sqlite3
import time

import synthetic_runs
from harness import BUILD, main, near, test, wait_until
from postgres_server import Server, fresh
from store_fixture import columns_of, made, same_counts, same_run

SPANNER = BUILD / "tests/fakes/spanner"
NO_LOCKS = BUILD / "tests/fakes/libno_locks.so"
LONG = dataclasses.replace(synthetic_runs.KINDS["eight_gpus"], times=3,
                           steps=30)  # 44,000 rows; blocks too rare to be deconvolved


def push(workdir, server, path="run.sqlite", *options, status=0, **how):
    done = workdir.wattle("push", *options, path, server.url(), **how)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


@test
def every_value(workdir):
    """each value of each row arrives: a run with a GPU, spans and metrics, one of hostile names, and empty runs"""
    with fresh() as server:
        for kind in ("training", "hostile", "empty", "one_sample"):
            made(workdir, kind)
            push(workdir, server)
            rows = same_run(server, workdir.folder / "run.sqlite")
            assert rows["run"] > 10 and rows["segment"] >= 1, (kind, rows)
            (workdir.folder / "run.sqlite").unlink()


@test
def twice_is_once(workdir):
    """rows that exist already: not sent again, and reported"""
    with fresh() as server:
        made(workdir, "training")
        first, second = push(workdir, server), push(workdir, server)
        assert " rows of run " in first.stdout and "is already complete" in second.stdout, (first, second)
        same_run(server, workdir.folder / "run.sqlite")
        assert server.value("SELECT count(*) FROM recording") == 1


@test
def recording_and_blocks(workdir):
    """rows of the run and of its code blocks: equal to the report"""
    with fresh() as server:
        made(workdir, "training")
        push(workdir, server)
        report = workdir.wattle("report", "run.sqlite", "--format", "json")
        assert report.returncode == 0, report.stderr
        said = json.loads(report.stdout)
        energy, error, provenance, duration, complete, started = server.rows(
            "SELECT energy_j, error_j, provenance, duration_s, complete, started FROM recording")[0]
        near(energy, said["energy"]["total_j"], 1e-9)
        near(error, said["energy"]["error_j"], 1e-9)
        near(duration, said["run"]["duration_s"], 1e-9)
        assert (provenance, complete) == (said["energy"]["provenance"], True), (provenance, complete)
        near(started.timestamp(), server.value("SELECT extract(epoch FROM min(time))::float8 FROM sample"),
             absolute=0.5)
        blocks = {row[0]: row[1:] for row in server.rows("SELECT name, calls, time_total_s, energy_j FROM block")}
        assert blocks and set(blocks) == {block["name"] for block in said["blocks"]}, blocks
        for block in said["blocks"]:
            calls, total_s, energy_j = blocks[block["name"]]
            assert calls == block["num_calls"], (block["name"], calls)
            near(total_s, block["compute_time"]["total"], 1e-9)
            near(energy_j, block["energy"]["total_j"], 1e-9)


@test
def levels(workdir):
    """level 0 is the first sample of each minute, 1 of each second, for each device; rows where counting begins or ends
    have level 0"""
    with fresh() as server:
        made(workdir, "segments")
        push(workdir, server)
        starts = [start for start, in workdir.rows("SELECT start_ns FROM segment ORDER BY id")]
        for table, device in (("sample", "0"), ("device_sample", "device")):
            before = {}
            rows = server.rows(f"SELECT {device}, t_ns, level FROM {table} ORDER BY t_ns")
            last = [max(t for _, t, _ in rows if t < end) for end in [*starts[1:], float("inf")]]
            for one, t_ns, level in rows:
                was = before.get(one)
                first = was is None or any(was < start <= t_ns for start in starts)
                wanted = 0 if first or t_ns in last or was // 60_000_000_000 != t_ns // 60_000_000_000 else \
                    1 if was // 1_000_000_000 != t_ns // 1_000_000_000 else 2
                assert level == wanted, (table, one, t_ns, level, wanted)
                before[one] = t_ns
            assert {level for _, _, level in rows} == {0, 1, 2}


@test
def wall_clock(workdir):
    """`time`: the wall clock of the row, after long pauses too, and in its day's partition"""
    with fresh() as server:
        made(workdir, "segments")
        push(workdir, server)
        for start_ns, wall_ns in workdir.rows("SELECT start_ns, wall_start_ns FROM segment"):
            there = server.value(f"SELECT extract(epoch FROM min(time)) * 1000000 FROM sample WHERE t_ns >= {start_ns}")
            near(float(there), wall_ns / 1000, absolute=1_000_000)
        assert server.value("SELECT count(*) FROM sample WHERE tableoid::regclass::text NOT LIKE 'sample_' || "
                            "to_char(time AT TIME ZONE 'UTC', 'YYYYMMDD') || '%'") == 0


@test
def wrong_clock(workdir):
    """run of a host whose clock is decades off: refused with one line, and the store is unchanged"""
    with fresh() as server:
        push(workdir, server, made(workdir, "short", "other.sqlite"))
        made(workdir, "training")
        with contextlib.closing(sqlite3.connect(workdir.folder / "run.sqlite")) as file, file:
            file.execute("UPDATE segment SET wall_start_ns = 4000000000000000000")
        done = push(workdir, server, status=1)
        assert len(done.stderr.splitlines()) == 1 and "check the clock of the host" in done.stderr, done
        assert server.value("SELECT count(*) FROM recording") == 1


@test
def server_killed(workdir):
    """kill -9 of the server repeatedly during a push: it waits, and no row is lost or doubled"""
    with fresh() as server:
        made(workdir, LONG)
        pushing = workdir.start("push", "--wait", "60s", "run.sqlite", server.url())
        kills = 0
        while pushing.poll() is None and kills < 4:
            time.sleep(random.uniform(0.02, 0.35))
            server.kill()
            kills += 1
            server.start()
        done = workdir.finish(pushing)
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert kills >= 2, kills
        print(f"# {kills} kills")
        same_counts(server, workdir.folder / "run.sqlite")


@test
def push_killed(workdir):
    """kill -9 of the push: the next one continues at the server's last row"""
    with fresh() as server:
        made(workdir, LONG)
        for _ in range(3):
            pushing = workdir.start("push", "run.sqlite", server.url())
            time.sleep(random.uniform(0.05, 0.3))
            pushing.kill()
            pushing.wait()
        push(workdir, server)
        same_counts(server, workdir.folder / "run.sqlite")


@test
def two_at_once(workdir):
    """four pushes of the same run at the same time: sent once"""
    with fresh() as server:
        made(workdir, LONG)
        push(workdir, server, made(workdir, "short", "other.sqlite"))  # the store exists
        pushing = [workdir.start("push", "--wait", "30s", "run.sqlite", server.url()) for _ in range(4)]
        for one in pushing:
            done = workdir.finish(one)
            assert done.returncode == 0, (done.stdout, done.stderr)
        same_counts(server, workdir.folder / "run.sqlite")
        same_run(server, workdir.folder / "other.sqlite")


@test
def other_copies(workdir):
    """older copy of a run, and one that was continued elsewhere: the store's rows are unchanged"""
    with fresh() as server:
        def record(name, *options):
            assert workdir.wattle("run", *options, "-o", name, "--", SPANNER, "nested").returncode == 0
        record("run.sqlite")
        push(workdir, server)
        for copy in ("older.sqlite", "fork.sqlite"):
            shutil.copy(workdir.folder / "run.sqlite", workdir.folder / copy)
        record("run.sqlite", "--append")
        push(workdir, server)
        told = server.rows("SELECT segments, samples, started, ended, complete FROM recording")
        record("fork.sqlite", "--append")
        for copy in ("older.sqlite", "fork.sqlite"):
            assert "older copy" in push(workdir, server, copy, status=1).stderr
        assert server.rows("SELECT segments, samples, started, ended, complete FROM recording") == told
        same_run(server, workdir.folder / "run.sqlite")
        shutil.copy(workdir.folder / "run.sqlite", workdir.folder / "same.sqlite")
        assert "is already complete" in push(workdir, server, "same.sqlite").stdout


@test
def disk_full(workdir):
    """server whose disk is full: accepts nothing, loses nothing, reported in one line; with space again all arrives"""
    with Server(disk_mb=130) as server:
        made(workdir, LONG)
        push(workdir, server, made(workdir, "short", "other.sqlite"))
        server.fill(leave_mb=4)
        done = push(workdir, server, "run.sqlite", "--wait", "500ms", status=1)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        server.free()

        def is_back():
            if server.process.poll() is not None:  # it has given up, or does so now: no space for its log
                server.start()
            with contextlib.suppress(AssertionError):
                return server._answers()

        wait_until(is_back, "the server is back", 30)
        push(workdir, server, "run.sqlite", "--wait", "30s")
        same_counts(server, workdir.folder / "run.sqlite")


@test
def no_locks(workdir):
    """recorder of unknown state: an incomplete run may continue, and its spans are not final"""
    blind = {"LD_PRELOAD": str(NO_LOCKS), "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    with fresh() as server:
        running = workdir.start("run", "-q", "--flush", "100ms", "-i", "20ms", "-o", "run.sqlite", "--", "sleep", "1.5")
        wait_until(lambda: (workdir.folder / "run.sqlite").exists(), "a run file")
        done = push(workdir, server, env=blind)
        assert "the run is in progress" in done.stdout and "preload" not in done.stderr, done
        workdir.finish(running)
        assert "the run is in progress" not in push(workdir, server, env=blind).stdout
        same_counts(server, workdir.folder / "run.sqlite")


@test
def growing(workdir):
    """run pushed repeatedly while it grows: stored rows are final, and at the end each is there once"""
    with fresh() as server:
        running = workdir.start("run", "-q", "--per-process", "--flush", "100ms", "-i", "20ms", "-o", "run.sqlite",
                                "--", "sh", "-c",
                             f"for i in 1 2 3 4; do {SPANNER} nested; {SPANNER} flood 2 2000 0.5 >s; sleep 0.2; done")
        wait_until(lambda: (workdir.folder / "run.sqlite").exists(), "a run file")
        seen = []
        while running.poll() is None:
            done = push(workdir, server)
            assert running.poll() is not None or "the run is in progress" in done.stdout, done.stdout
            seen.append(server.value("SELECT count(*) FROM sample"))
            time.sleep(0.1)
        workdir.finish(running)
        push(workdir, server)
        rows = same_run(server, workdir.folder / "run.sqlite")
        assert len(set(seen)) > 3 and rows["span"] > 5000 and rows["process_sample"] > 50, (seen, rows)


@test
def recorder_died(workdir):
    """run of a killed recorder with its spool: pushed completely; later segments are added"""
    with fresh() as server:
        recording = workdir.start("run", "-q", "--disable-logs", "-o", "run.sqlite", "--", SPANNER, "flood", 4, 30000,
                                  20)
        spool = workdir.folder / "run.sqlite-spans"
        wait_until(lambda: spool.exists() and spool.stat().st_size > 4_000_000, "a spool")
        push(workdir, server)
        recording.kill()
        recording.wait()
        push(workdir, server)
        assert not spool.exists()
        same_counts(server, workdir.folder / "run.sqlite")
        assert server.value("SELECT complete FROM recording") is False
        done = workdir.wattle("run", "-q", "--disable-logs", "--append", "-o", "run.sqlite", "--", SPANNER, "nested")
        assert done.returncode == 0, done.stderr
        push(workdir, server)
        same_counts(server, workdir.folder / "run.sqlite")
        assert server.value("SELECT segments FROM recording") == 2
        assert server.value("SELECT count(*) FROM block WHERE name = 'outer'") == 1


@test
def other_versions(workdir):
    """server with one column or table more or fewer: the common ones are sent"""
    with fresh() as server:
        push(workdir, server, made(workdir, "short", "other.sqlite"))
        server.run("ALTER TABLE device_sample ADD COLUMN of_the_future bigint; ALTER TABLE sample ADD COLUMN another "
                   "text; "
                   "INSERT INTO sent (run_id, table_name, mark, n) SELECT run_id, 'of_the_future', 1, 1 FROM recording")
        assert "is already complete" in push(workdir, server, "other.sqlite").stdout
        made(workdir, "training")
        push(workdir, server)
        same_run(server, workdir.folder / "run.sqlite")
        file = workdir.folder / "run.sqlite"
        file.unlink()
        made(workdir, "training")
        with sqlite3.connect(file) as old:
            old.execute("ALTER TABLE sample DROP COLUMN main_pss_bytes"
                        if "main_pss_bytes" in columns_of(server, "sample")
                        else "ALTER TABLE event DROP COLUMN slept_ns")
            old.execute("UPDATE run SET value = '11111111-2222-4333-8444-555555555555' WHERE key = 'id'")
        old.close()
        push(workdir, server)
        same_run(server, file)


if __name__ == "__main__":
    main()
