"""A store in PostgreSQL: made and updated, who may do what in it, its days and runs, and runs read back from it."""
import contextlib
import dataclasses
import datetime
import json
import re
import sqlite3
import uuid

import synthetic_jobs
import synthetic_runs
from harness import TESTS, WATTLE, main, near, test
from postgres_server import Server, fresh

NOW = datetime.datetime.now(datetime.timezone.utc)
BIG = ("sample", "device_sample", "process_sample", "span", "user_metric", "event")


def wattle(workdir, *arguments, status=0):
    done = workdir.wattle(*arguments)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def made_job(workdir, server, job="plain", name=None):
    """The files of a job, and all of them in the store."""
    folder = workdir.folder / (name or job)
    expected_values = synthetic_jobs.make(WATTLE, folder, job)
    for path in sorted(folder.glob("*.sqlite")):
        wattle(workdir, "push", "-q", path, server.url())
    return expected_values


def made_run(workdir, server, kind, user="owner"):
    path, run = workdir.folder / f"{kind}.sqlite", str(uuid.uuid4())
    synthetic_runs.make(WATTLE, path, synthetic_runs.KINDS[kind])
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE run SET value = ? WHERE key = 'id'", (run,))
    wattle(workdir, "push", "-q", path, server.url(user))
    return run


def report(workdir, *arguments):
    return json.loads(wattle(workdir, "report", *arguments, "--format", "json").stdout)


def refused(server, sql, user):
    """The server's messages to it."""
    try:
        server.run(sql, user=user)
    except Exception as error:  # of psycopg2, which may be missing
        return str(error).splitlines()[0]
    raise AssertionError(f"{user} may: {sql}")


@test
def made_twice(workdir):
    """`store init`: creates a store, nothing the second time; each table and column has a comment"""
    with fresh() as server:
        first, second = (wattle(workdir, "store", "init", server.url()).stdout for _ in range(2))
        assert "version 1, made" in first and "up to date" in second, (first, second)
        assert server.value("SELECT count(*) FROM metric WHERE meaning IS NULL OR meaning = ''") == 0
        silent = server.rows("SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
                             "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum "
                             "> 0 "
                             "AND col_description(c.oid, a.attnum) IS NULL")
        assert silent == [], silent
        status = json.loads(wattle(workdir, "store", "status", server.url(), "--json").stdout)
        assert (status["version"], status["runs"], status["days"]) == (1, 0, 0), status
        assert "runs        0" in wattle(workdir, "store", "status", server.url()).stdout


@test
def printed(workdir):
    """`store init --print`: its output creates the same store with psql"""
    with fresh() as server:
        sql = wattle(workdir, "store", "init", "--print").stdout
        server.run(sql)
        assert "up to date" in wattle(workdir, "store", "init", server.url()).stdout


@test
def first_contact(workdir):
    """user with the right to create: the first push creates the store, eight at a time once; without the right: a
    message for the owner"""
    with Server() as server:
        server.run("CREATE ROLE stranger LOGIN")
        synthetic_jobs.make(WATTLE, workdir.folder / "job", "plain")
        paths = sorted((workdir.folder / "job").glob("*.sqlite"))
        done = wattle(workdir, "push", paths[0], server.url("stranger"), status=1)
        assert "`wattle store init URL`" in done.stderr and done.stderr.count("\n") == 1, done.stderr
        senders = [workdir.start("push", path, server.url()) for path in paths]
        for sender in senders:
            done = workdir.finish(sender)
            assert done.returncode == 0, done.stderr
        assert server.value("SELECT count(*) FROM recording") == len(paths)


@test
def no_store(workdir):
    """database without a store, and missing database: one line with the remedy"""
    with fresh() as server:
        for arguments, words in [(("store", "status", server.url()), "no store of wattle"),
                                 (("list", "--store", server.url()), "no store of wattle"),
                                 (("prune", "--store", server.url(), "--older", "9d"), "no store of wattle"),
                                 (("list", "--store", server.url(database="nowhere")), "nowhere")]:
            done = wattle(workdir, *arguments, status=1)
            assert words in done.stderr and done.stderr.count("\n") == 1, done.stderr
        for url in ("postgresql://me:secret@host/db", "mysql://host/db"):
            done = wattle(workdir, "list", "--store", url, status=2)
            assert "secret" not in done.stderr and done.stderr.count("\n") == 1, done.stderr


@test
def writers_read_nothing(workdir):
    """writer: adds runs, reads none, adds to no other user's, and drops nothing; reader: reads and adds nothing"""
    with Server() as server:
        for name in ("ada", "bob", "eve"):
            server.run(f"CREATE ROLE {name} LOGIN")
        said = wattle(workdir, "store", "init", server.url(), "--writer", "writers", "--reader", "readers").stdout
        assert said.count("created without login") == 2, said
        server.run("GRANT writers TO ada, bob; GRANT readers TO eve")
        run = made_run(workdir, server, "training", user="ada")
        tables = [name for name, in server.rows("SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND "
                                                "relnamespace = 'public'::regnamespace")]
        for table in tables:
            assert "permission denied" in refused(server, f'SELECT count(*) FROM "{table}"', "ada"), table
        for sql in (f"SELECT * FROM wattle_begin('{run}')", f"SELECT wattle_put('{run}', '{{\"run\": []}}')",
                    f"SELECT wattle_mark('{run}', '[]')"):
            assert "belongs to another writer than bob" in refused(server, sql, "bob"), sql
        for sql in ("DELETE FROM recording", "UPDATE run SET value = ''", "DROP TABLE sample", "TRUNCATE event",
                    "INSERT INTO recording (run_id, sent_by) VALUES (gen_random_uuid(), 'bob')",
                    f"SELECT wattle_put_rows('{run}', 'run', '{{key}}', false, '[]')", f"SELECT wattle_lock('{run}')",
                    "SELECT wattle_make_day('2026-01-01', 'sample', true, 'run_id')",
                    "CREATE TABLE mine (x integer)"):
            assert ("permission denied" in refused(server, sql, "bob")
                    or "must be owner" in refused(server, sql, "bob")), sql
        done = wattle(workdir, "push", "training.sqlite", server.url("bob"), status=1)
        assert "belongs to another writer" in done.stderr, done.stderr
        done = wattle(workdir, "list", "--store", server.url("ada"), status=1)
        assert "role ada may not read" in done.stderr and "--reader ada" in done.stderr, done.stderr
        assert run[:8] in wattle(workdir, "list", "--store", server.url("eve")).stdout
        assert report(workdir, "--store", server.url("eve"), "--run", run)["run"]["id"] == run
        done = wattle(workdir, "push", "training.sqlite", server.url("eve"), status=1)
        assert "role eve may not write to" in done.stderr and "--writer eve" in done.stderr, done.stderr
        done = wattle(workdir, "prune", "--store", server.url("eve"), "--older", "1d", status=1)
        assert "only the owner" in done.stderr, done.stderr
        assert server.value("SELECT count(*) FROM recording") == 1


@test
def pinned_path(workdir):
    """tables and functions of a writer with the same names elsewhere: never used by the store's functions"""
    with Server() as server:
        server.run("CREATE ROLE ada LOGIN; CREATE SCHEMA ada AUTHORIZATION ada")
        wattle(workdir, "store", "init", server.url(), "--writer", "ada")
        server.run("CREATE TABLE ada.recording (run_id uuid, sent_by name); CREATE FUNCTION ada.wattle_lock(uuid) "
                   "RETURNS void "
                   "LANGUAGE sql AS 'SELECT'; ALTER ROLE ada SET search_path = ada, public", user="owner")
        server.run("SELECT * FROM wattle_begin('00000000-0000-0000-0000-000000000001')", user="ada")
        assert server.value("SELECT count(*) FROM public.recording") == 1
        assert server.value("SELECT count(*) FROM ada.recording") == 0


@test
def planted_functions(workdir):
    """writer that may create functions in the store's schema: refused, because the store would run them as its owner"""
    with Server() as server:
        # as in PostgreSQL 14
        server.run("CREATE ROLE ada LOGIN; CREATE ROLE bob LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC")
        done = wattle(workdir, "store", "init", server.url(), "--writer", "ada", status=1)
        assert ("`REVOKE CREATE ON SCHEMA public FROM PUBLIC`" in done.stderr
                and done.stderr.count("\n") == 1), done.stderr
        assert "permission denied" in refused(server, "SELECT * FROM wattle_begin(gen_random_uuid())", "ada")
        wattle(workdir, "store", "init", server.url(), "--writer", "a new one", status=1)
        assert server.value("SELECT count(*) FROM pg_roles WHERE rolname = 'a new one'") == 0
        server.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        wattle(workdir, "store", "init", server.url(), "--writer", "ada")
        server.run("SELECT * FROM wattle_begin(gen_random_uuid())", user="ada")
        done = wattle(workdir, "store", "init", server.url("ada"), "--writer", "bob", status=1)
        assert "can grant access" in done.stderr, done.stderr


@test
def strangers_functions(workdir):
    """everybody may create functions (PostgreSQL 14): none of them runs with the store owner's rights"""
    with Server() as server:
        server.run("CREATE ROLE eve LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE TABLE caught (what text); "
                   "GRANT INSERT ON caught TO PUBLIC")
        for head in ("to_char(date, text) RETURNS text", "quote_ident(name) RETURNS text"):
            server.run(f"CREATE FUNCTION public.{head} LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.caught VALUES "
                       f"('{head}'); "
                       "RETURN 'x'; END $$", user="eve")
        made_run(workdir, server, "training")
        wattle(workdir, "prune", "--store", server.url(), "--older", "1d")
        caught = server.rows("SELECT DISTINCT what FROM caught")
        assert caught == [], caught


@test
def namesakes(workdir):
    """tables of another program with the same names in an earlier schema of the search path: neither read nor
    written"""
    with Server() as server:
        server.run("CREATE SCHEMA energy; ALTER ROLE owner SET search_path = energy")
        wattle(workdir, "store", "init", server.url())
        server.run("CREATE SCHEMA app; CREATE TABLE app.sample (run_id uuid, t_ns bigint); CREATE TABLE app.device (x "
                   "integer); "
                   "ALTER ROLE owner SET search_path = app, energy")
        run = made_run(workdir, server, "training")
        assert server.value("SELECT count(*) FROM app.sample") == 0
        assert report(workdir, "--store", server.url(), "--run", run)["run"]["id"] == run
        assert "1 completed run" in wattle(workdir, "prune", "--store", server.url(), "--older", "1d").stdout


@test
def own_schema(workdir):
    """store in the first schema of the search path: found there"""
    with Server() as server:
        server.run("CREATE SCHEMA energy; ALTER ROLE owner SET search_path = energy")
        run = made_run(workdir, server, "training")
        assert server.value("SELECT count(*) FROM energy.recording") == 1
        assert json.loads(wattle(workdir, "store", "status", server.url(), "--json").stdout)["schema"] == "energy"
        assert report(workdir, "--store", server.url(), "--run", run)["run"]["id"] == run


@test
def migrated(workdir):
    """store of an older wattle: gets the newer columns and functions, and keeps its rows; a newer one is reported"""
    with fresh() as server:
        run = made_run(workdir, server, "training")
        before = server.value("SELECT count(*) FROM device_sample")
        said = report(workdir, "--store", server.url(), "--run", run)
        server.run("ALTER TABLE device_sample DROP COLUMN sm_clock_mhz; ALTER TABLE recording DROP COLUMN provenance; "
                   "DROP FUNCTION wattle_mark(uuid, jsonb); UPDATE wattle_schema SET version = 0")
        # Readers work with what exists.
        old = report(workdir, "--store", server.url(), "--run", run)
        near(old["energy"]["total_j"], said["energy"]["total_j"], 1e-12)
        assert "updated" in wattle(workdir, "store", "init", server.url()).stdout
        assert server.value("SELECT version FROM wattle_schema") == 1
        assert server.value("SELECT count(*) FROM device_sample") == before
        assert server.value("SELECT count(*) FROM pg_attribute WHERE attrelid = 'device_sample'::regclass AND attname "
                            "= "
                            "'sm_clock_mhz' AND NOT attisdropped") == 1
        server.run("ALTER TABLE recording DROP COLUMN label")
        assert "its owner must run `wattle store init" in wattle(workdir, "list", "--store", server.url(),
                                                                 status=1).stderr
        made_run(workdir, server, "segments")
        server.run("UPDATE wattle_schema SET version = 9, compatible = 9")
        for arguments in (("push", "segments.sqlite", server.url()), ("list", "--store", server.url()),
                          ("store", "init", server.url())):
            done = wattle(workdir, *arguments, status=1)
            assert "by a newer wattle (schema 9; this wattle supports up to 1)" in done.stderr, done.stderr


@test
def read_back(workdir):
    """run from the store: the same report as its file, to the last digit, by any unique beginning of its id"""
    with fresh() as server:
        for kind in ("training", "segments", "hostile", "holes", "empty"):
            run = made_run(workdir, server, kind)
            here, there = report(workdir, f"{kind}.sqlite"), report(workdir, "--store", server.url(), "--run", run)
            for key in here:
                assert here[key] == there[key], (kind, key, here[key], there[key])
        done = wattle(workdir, "report", "--store", server.url(), "--run", "ffffffff", status=1)
        assert "no run whose ID begins with ffffffff" in done.stderr, done.stderr
        done = wattle(workdir, "report", "--store", server.url(), "--run", "' OR true", status=1)
        assert "is not a run ID" in done.stderr, done.stderr


@test
def job_read_back(workdir):
    """job from the store: equal to that of the folder: same energy by node, rank and domain"""
    with fresh() as server:
        expected_values = made_job(workdir, server, "takeover")
        here = report(workdir, "takeover")
        there = report(workdir, "--store", server.url(), "--job", expected_values["job_id"])
        assert here["energy"] == there["energy"]
        for rank in here["ranks"] + there["ranks"]:
            del rank["where"]  # a file, a run's id
        for part in ("nodes", "ranks", "imbalance"):
            assert here[part] == there[part], (part, here[part], there[part])
        done = wattle(workdir, "report", "--store", server.url(), "--job", "17", status=1)
        assert "no run of job 17" in done.stderr and expected_values["job_id"] in done.stderr, done.stderr


@test
def clusters(workdir):
    """jobs of two clusters with the same number: distinguished, not summed"""
    with fresh() as server:
        expected_values = made_job(workdir, server)
        job, url = expected_values["job_id"], server.url()
        server.run("UPDATE recording SET job_cluster = CASE WHEN rank < 4 THEN 'one' ELSE 'two' END")
        done = wattle(workdir, "report", "--store", url, "--job", job, status=1)
        assert f"--job {job}@one or --job {job}@two" in done.stderr, done.stderr
        parts = [report(workdir, "--store", url, "--job", f"{job}@{cluster}") for cluster in ("one", "two")]
        assert [len(part["ranks"]) for part in parts] == [4, 4] and parts[0]["job"]["id"] == job, parts[0]["job"]
        near(sum(part["energy"]["total_j"] for part in parts), expected_values["total_j"], 1e-2)


@test
def documented(workdir):
    """queries of docs/postgresql.md: return rows"""
    with fresh() as server:
        expected_values = made_job(workdir, server)
        server.run("UPDATE recording SET started = now()")
        text = (TESTS.parent / "docs/postgresql.md").read_text()
        day = server.value("SELECT min(time)::date FROM sample")
        for sql in re.findall(r"```sql\n(.*?)```", text, re.DOTALL):
            sql = sql.replace("'4242'", f"'{expected_values['job_id']}'").replace("'2026-01-31'", f"'{day}'")
            sql = sql.replace("'2026-02-01'", f"'{day + datetime.timedelta(days=1)}'").strip().rstrip(";")
            rows = server.rows(sql)
            assert rows, sql
            if "kwh" in sql:
                near(rows[0][2] * 3.6e6, expected_values["total_j"], 1e-2)  # each run ends a little before the job


@test
def listed(workdir):
    """list: runs by user, job and time, those of a folder as well; ids as long as needed to be unique"""
    with fresh() as server:
        expected_values = made_job(workdir, server)
        lone = made_run(workdir, server, "training")
        url = server.url()
        rows = json.loads(wattle(workdir, "list", "--store", url, "--json").stdout)
        assert len(rows) == expected_values["n_files"] + 1, len(rows)
        starts = [row["start_unix_s"] for row in rows]
        assert starts == sorted(starts)
        job = json.loads(wattle(workdir, "list", "--store", url, "--job", expected_values["job_id"], "--json").stdout)
        assert [row["job"] for row in job] == [expected_values["job_id"]] * expected_values["n_files"]
        assert {row["rank"] for row in job} == {int(rank) for rank in expected_values["ranks"]}
        user = job[0]["user"]
        assert len(json.loads(wattle(workdir, "list", "--store", url, "--user", user,
                                     "--json").stdout)) == expected_values["n_files"]
        assert json.loads(wattle(workdir, "list", "--store", url, "--user", "nobody'", "--json").stdout) == []
        for times, n in ((("--since", "1970-01-01"), len(rows)), (("--until", "1970-01-02"), 0),
                         (("--since", "1s"), 0), (("--until", "1s"), len(rows))):
            assert len(json.loads(wattle(workdir, "list", "--store", url, *times, "--json").stdout)) == n, times
        assert len(json.loads(wattle(workdir, "list", "plain", "--job", expected_values["job_id"],
                                     "--json").stdout)) == expected_values["n_files"]
        assert json.loads(wattle(workdir, "list", "plain", "--job", "17", "--json").stdout) == []
        text = wattle(workdir, "list", "--store", url).stdout.splitlines()
        names = [line.split()[0] for line in text]
        assert len(set(names)) == len(rows) and any(lone.startswith(name) for name in names), names
        done = wattle(workdir, "list", "--store", url, "--since", "yesterday", status=2)
        assert "'yesterday' is not a time" in done.stderr, done.stderr


def aged(server, run, days):
    """Makes a run a number of days older, with all its rows."""
    first = server.value(f"SELECT min(time)::date FROM sample WHERE run_id = '{run}'")
    then = (NOW - datetime.timedelta(days=days)).date()
    server.run(f"SELECT wattle_days('{then}'::date - 1, '{then}'::date + 1)")
    for table in BIG:
        server.run(f"UPDATE {table} SET time = time + ('{then}'::date - '{first}'::date) * interval '1 day' "
                   f"WHERE run_id = '{run}'")
    server.run(f"UPDATE recording SET started = started + ('{then}'::date - '{first}'::date) * interval '1 day', "
               f"ended = ended + ('{then}'::date - '{first}'::date) * interval '1 day' WHERE run_id = '{run}'")


@test
def pruned(workdir):
    """prune: drops old days, and for runs that ended before also their metadata; younger ones keep every row"""
    with fresh() as server:
        old, young = made_run(workdir, server, "training"), made_run(workdir, server, "segments")
        aged(server, old, 100)
        aged(server, young, 50)
        empty = server.rows("SELECT relname FROM pg_class WHERE relname ~ '_[0-9]{8}$' AND relkind IN ('r', 'p')")
        young_rows = {table: server.value(f"SELECT count(*) FROM {table} WHERE run_id = '{young}'") for table in BIG}
        dry = wattle(workdir, "prune", "--store", server.url(), "--older", "90d", "--dry-run").stdout
        assert dry.startswith("would drop") and "1 completed run" in dry, dry
        assert server.value(f"SELECT count(*) FROM sample WHERE run_id = '{old}'") > 0
        said = wattle(workdir, "prune", "--store", server.url(), "--older", "90d").stdout
        assert said.replace("dropped data from", "") == dry.replace("would drop data from", ""), (said, dry)
        left = server.rows("SELECT relname FROM pg_class WHERE relname ~ '_[0-9]{8}$' AND relkind IN ('r', 'p')")
        assert 0 < len(left) < len(empty), (left, empty)
        for table in (*BIG, "recording", "run", "segment", "device", "process", "block", "sent"):
            assert server.value(f"SELECT count(*) FROM {table} WHERE run_id = '{old}'") == 0, table
        assert {table: server.value(f"SELECT count(*) FROM {table} WHERE run_id = '{young}'")
                for table in BIG} == young_rows
        assert "0 days in 0 partitions" in wattle(workdir, "prune", "--store", server.url(), "--older", "90d").stdout
        # A continued run reports that its earlier days are missing.
        assert not [text for text in report(workdir, "--store", server.url(), "--run", young)["warnings"]
                    if "pruned" in text]
        for table in ("sample", "device_sample"):
            server.run(f"DELETE FROM {table} WHERE run_id = '{young}' AND t_ns < (SELECT avg(t_ns) FROM {table} WHERE "
                       f"run_id = '{young}')")
        gone = young_rows["sample"] - server.value(f"SELECT count(*) FROM sample WHERE run_id = '{young}'")
        told = report(workdir, "--store", server.url(), "--run", young)["warnings"]
        assert any(f"{gone} of {young_rows['sample']} samples were pruned from the store" in str(text)
                   for text in told), told
        # Pruned runs can be sent again: they are new to the store.
        wattle(workdir, "push", "training.sqlite", server.url())
        assert server.value(f"SELECT count(*) FROM sample WHERE run_id = '{old}'") > 0
        for wrong in (("--older", "12h"), ("--older", "90"), ()):
            assert wattle(workdir, "prune", "--store", server.url(), *wrong, status=2).stderr.count("\n") >= 1


@test
def pruned_while_used(workdir):
    """long report: delays a prune, and no uploader waits behind it for more than two seconds"""
    with Server() as server:
        old = made_run(workdir, server, "training")
        aged(server, old, 100)
        reader = server.connect()
        reader.autocommit = False
        reader.cursor().execute("SELECT count(*) FROM sample")
        prune = workdir.start("prune", "--store", server.url(), "--older", "90d")
        run = made_run(workdir, server, "segments")
        assert server.value(f"SELECT count(*) FROM recording WHERE run_id = '{run}'") == 1
        assert prune.poll() is None
        reader.rollback()
        reader.close()
        done = workdir.finish(prune)
        assert done.returncode == 0 and "1 completed run" in done.stdout, (done.stdout, done.stderr)


@test
def days(workdir):
    """partitions: one for each day of UTC and level, none by default; days far from now are refused with the likely
    reason"""
    with fresh() as server:
        made_run(workdir, server, "training")
        parts = {name for name, in server.rows(
            "SELECT relname::text FROM pg_class WHERE relname ~ '^sample_' AND relkind = 'r'")}
        assert parts and all(part[-2:] in ("_0", "_1", "_2") for part in parts), parts
        outside = server.rows("SELECT tableoid::regclass::text, level, count(*) FROM sample GROUP BY 1, 2")
        assert all(table.endswith(f"_{level}") for table, level, _ in outside), outside
        for table, day in server.rows(
                "SELECT DISTINCT tableoid::regclass::text, to_char(time AT TIME ZONE 'UTC', 'YYYYMMDD') "
                                      "FROM device_sample"):
            assert f"_{day}_" in table, (table, day)
        assert server.value("SELECT count(*) FROM pg_class WHERE relpartbound IS NOT NULL AND "
                            "pg_get_expr(relpartbound, oid) = 'DEFAULT'") == 0
        for first, last in (("1969-12-31", "1970-01-01"), ("2026-01-01", "2999-01-01"), ("1980-01-01", "2000-01-01")):
            assert "no partitions from" in refused(server, f"SELECT wattle_days('{first}', '{last}')", "owner")


STATISTICS = ("p95_s", "active_s", "self_time_s", "cpu_s")


@test
def thinned(workdir):
    """long job: a part of the samples is read; its energy stays within the stated errors, from the store and from
    files"""
    with fresh() as server:
        # Just over 100,000 spans and 150,000 samples: the limits in src/store/job_runs.h.
        job = dataclasses.replace(synthetic_jobs.KINDS["plain"], per_node=2, gpus=2, times=420, step_s=0.4,
                                  is_even=True)
        expected_values = made_job(workdir, server, job, "long")
        stored = ("--store", server.url(), "--job", expected_values["job_id"])
        whole, part, here = report(workdir, *stored, "--all-samples"), report(workdir, *stored), report(workdir, "long")
        assert not whole["job"]["read_every_s"], whole["job"]
        for said in (part, here):
            assert said["job"]["read_every_s"] >= 1, said["job"]
            near(said["energy"]["total_j"], expected_values["total_j"], absolute=2 * said["energy"]["error_j"])
            for rank, other in zip(said["ranks"], whole["ranks"]):
                near(rank["cpu_s"], other["cpu_s"], 1e-9)
                near(rank["duration_s"], other["duration_s"], 1e-9)
                near(rank["energy_j"], other["energy_j"], absolute=2 * (rank["error_j"] + other["error_j"]))
        # With so many spans the blocks are those in the store: every statistic exists, and is null in tables of an
        # older wattle.
        for block, other in zip(part["blocks"], whole["blocks"], strict=True):
            for key in (*STATISTICS, "num_calls", "num_timepoints", "num_non_empty_calls", "unwound", "cut"):
                near(block[key], other[key], 1e-9)
            for key, value in other["compute_time"].items():
                near(block["compute_time"][key], value, 1e-9)
            assert block["energy"]["self_error_j"] is not None and block["thread_cpu_s"] is None, block
        server.run("ALTER TABLE block DROP COLUMN program_cpu_s, DROP COLUMN timepoints, DROP COLUMN time_p95_s")
        for block, other in zip(report(workdir, *stored)["blocks"], part["blocks"], strict=True):
            assert (block["cpu_s"], block["num_timepoints"], block["p95_s"]) == (None, None, None), block
            assert block["num_calls"] == other["num_calls"] and block["active_s"] == other["active_s"], (block, other)


if __name__ == "__main__":
    main()
