"""wattle run on a real Slurm of two virtual nodes, each with its own counters of known energy, host name and address,
and with overlapping pids."""
import json
import sqlite3

from harness import BURNER, WATTLE, main, near, test, wait_until
from postgres_server import Server
from slurm_fixture import Slurm, asked, check_nodes, facts, job_report, runs, true_j, watts


def stored(server, table):
    """Rows of a table by run, in PostgreSQL; nothing while there is no such table."""
    if not server.value(f"SELECT to_regclass('{table}') IS NOT NULL"):
        return {}
    return dict(server.rows(f"SELECT run_id::text, count(*) FROM {table} GROUP BY 1"))


def n_samples(files):
    """Runs that are still being recorded."""
    return sum(asked(path, "select count(*) from sample")[0][0] for path in files)


@test
def ranks_of_two_nodes(workdir):
    """srun -N2 -n4 wattle run: a file for each rank, ranks and nodes known, each node's energy once and correct"""
    with Slurm(workdir) as slurm:
        watts(slurm)
        (workdir.folder / "job").mkdir()
        done = slurm.run("srun", "-N2", "-n4", WATTLE, "run", "-q", "-o", "job/%j-%r.sqlite", "--", BURNER, "cpu", "1")
        assert done.returncode == 0, done.stderr
        files = runs(workdir, "job")
        assert sorted(path.name for path in files.values()) == [f"1-{rank}.sqlite" for rank in range(4)], files
        known = [facts(files[rank]) for rank in range(4)]
        assert {(one["world_size"], one["job_id"], one["job_step"]) for one in known} == {("4", "1", "0")}, known
        assert {one["node"] for one in known} == set(slurm.names), known
        assert len({(one["node"], one["machine"]) for one in known}) == 2, known
        report = job_report(workdir, "job")
        check_nodes(workdir, slurm, report, "job")
        assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3], report["ranks"]
        assert report["energy"]["provenance"] == "measured", report["energy"]
        near(report["cpu"]["target_cpu_s"], 4, relative=0.1)


@test
def the_reader_is_killed(workdir):
    """kill -9 of the recorder that reads a node's counters: another takes over, the job continues, and no energy is
    lost or counted twice"""
    with Slurm(workdir) as slurm:
        watts(slurm)
        (workdir.folder / "job").mkdir()
        step = slurm.start("srun", "-N2", "-n5", "--no-kill", "--kill-on-bad-exit=0", WATTLE, "run", "-q",
                           "-o", "job/%r.sqlite", "--", "sleep", "5")
        wait_until(lambda: len(list((workdir.folder / "job").glob("?.sqlite"))) == 5, "all ranks record")

        def reader():
            for path in (workdir.folder / "job").glob("?.sqlite"):
                try:
                    known = facts(path)
                    told = asked(path, "select text from event where kind = 'sensors'")
                except (sqlite3.Error, KeyError):
                    continue
                if known.get("node") == "vn0" and any("read here" in text for text, in told):
                    return path
            return None

        first = wait_until(reader, "a recorder reads the counters of vn0")
        wait_until(lambda: n_samples([first]) >= 10, "it has read for a while")
        rank = facts(first)["rank"]
        find = f"for p in $(grep -l -- {WATTLE} /proc/[0-9]*/cmdline | cut -d/ -f3); do " \
               f"tr '\\0' ' ' < /proc/$p/environ | grep -q 'SLURM_PROCID={rank} ' && echo $p; done"
        pids = slurm.on("vn0", "sh", "-c", find).stdout.split()
        assert pids, "no recorder found"
        slurm.on("vn0", "kill", "-9", *pids)
        workdir.finish(step)
        texts = [text for path in (workdir.folder / "job").glob("?.sqlite")
                 for text, in asked(path, "select text from event where kind = 'sensors'")]
        assert any("taken over" in text for text in texts), texts
        report = job_report(workdir, "job")
        vn0 = next(node for node in report["nodes"] if node["node"] == "vn0")
        others = [path for path in runs(workdir, "job").values() if facts(path)["node"] == "vn0" and path != first]
        near(vn0["energy_j"], true_j(slurm, "vn0", others), relative=0.05)
        assert not next(rank for rank in report["ranks"] if rank["rank"] == int(facts(first)["rank"]))["complete"]


@test
def database_restart(workdir):
    """ranks of two nodes send their rows while PostgreSQL is killed and restarted: each row is there once, and the job
    in the store equals that in the files"""
    with Server() as server, Slurm(workdir) as slurm:
        watts(slurm)
        (workdir.folder / "job").mkdir()
        step = slurm.start("srun", "-N2", "-n4", WATTLE, "run", "-q", "-i", "20ms", "-o", "job/%r.sqlite",
                           "--store", server.url(), "--store-wait", "40s", "--", "sleep", "6")
        wait_until(lambda: stored(server, "sample"), "the first rows are there")
        server.kill()
        files = list((workdir.folder / "job").glob("?.sqlite"))
        before = n_samples(files)
        wait_until(lambda: n_samples(files) >= before + 40 * len(files), "they record without it")
        server.start()
        done = workdir.finish(step)
        assert done.returncode == 0, done.stderr
        files = runs(workdir, "job")
        for table in ("sample", "device_sample", "process", "segment"):
            local = {facts(path)["id"]: asked(path, f"select count(*) from {table}")[0][0] for path in files.values()}
            assert stored(server, table) == {run: n for run, n in local.items() if n > 0}, (table, local)
        of_files = job_report(workdir, "job")
        check_nodes(workdir, slurm, of_files, "job")
        done = workdir.wattle("report", "--store", server.url(), "--job", "1", "--format", "json")
        assert done.returncode == 0, done.stderr
        near(json.loads(done.stdout)["energy"]["total_j"], of_files["energy"]["total_j"], relative=1e-6)


main()
