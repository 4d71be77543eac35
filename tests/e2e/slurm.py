"""wattle on a real Slurm of two virtual nodes: srun wattle run, and srun --wattle, the plugin. Each node has counters of its own
whose truth is known, host names, addresses and the same pids as the other."""
import json
import os
import re
import signal
import sqlite3
import time

from harness import BUILD, BURNER, NOBODY, WATTLE, Skip, is_alive, main, near, test, wait_until
from slurm_room import Slurm
import truth  # noqa: E402  (slurm_room knows where)

PLUGIN = BUILD / "src/spank/wattle_spank.so"
SPANNER = BUILD / "tests/fakes/spanner"
LINE = re.compile(r"^wattle: (.*), (\S+)$", re.MULTILINE)


def plugin(**settings):
    """A line of plugstack.conf: whatever becomes of the plugin, jobs run."""
    if not PLUGIN.exists():
        raise Skip("the plugin is not built: no slurm/spank.h")
    settings = {"wattle": WATTLE, "ready": "30s", "wait": "30s", **settings}
    return ["optional " + " ".join([str(PLUGIN), *(f"{key}={value}" for key, value in settings.items())])]


def watts(slurm, **options):
    """50 W on one node, 80 W on the other."""
    for node, load in zip(slurm.names, ("50", "80")):
        slurm.power(node, f"package-0={load}", "package-0/dram=4", **options)


def asked(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def facts(path):
    return dict(asked(path, "select key, value from run"))


def runs(room, folder):
    """The run files of a folder by rank: {rank: path}."""
    return {int(facts(path)["rank"]): path for path in (room.folder / folder).glob("*.sqlite")}


def job_report(room, folder, *options):
    done = room.wattle("report", room.folder / folder, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def true_j(slurm, node, paths):
    """What a node's package and memory used from the first start to the last end of the runs in those files."""
    spans = [row for path in paths for row in asked(path, "select start_ns, end_ns from segment")]
    begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
    return sum(truth.energy_j(slurm.truths[node], zone, begin, end) for zone in ("package-0", "package-0/dram"))


def check_nodes(room, slurm, report, folder, relative=0.02):
    """Each node's energy is what its counters counted, once, however many ranks it has, and the total is their sum."""
    files = runs(room, folder)
    nodes = {node["node"]: node for node in report["nodes"]}
    assert set(nodes) == {facts(path)["node"] for path in files.values()}, (nodes, files)
    for name, node in nodes.items():
        near(node["energy_j"], true_j(slurm, name, [p for p in files.values() if facts(p)["node"] == name]), relative)
    near(report["energy"]["total_j"], sum(node["energy_j"] for node in nodes.values()), relative=1e-9)


# ---- wattle run under srun ----

@test
def ranks_of_two_nodes(room):
    """srun -N2 -n5 wattle run: five files, ranks and nodes known, each node's joules once and right, the same pids on both nodes"""
    with Slurm(room) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N2", "-n5", WATTLE, "run", "-q", "-o", "job/%j-%r.sqlite", "--", BURNER, "cpu", "1")
        if done.returncode != 0:  # the folder is the user's to make
            (room.folder / "job").mkdir()
            done = slurm.run("srun", "-N2", "-n5", WATTLE, "run", "-q", "-o", "job/%j-%r.sqlite", "--", BURNER, "cpu", "1")
        assert done.returncode == 0, done.stderr
        files = runs(room, "job")
        assert sorted(files) == [0, 1, 2, 3, 4], files
        known = [facts(files[rank]) for rank in sorted(files)]
        assert {one["world_size"] for one in known} == {5} or {one["world_size"] for one in known} == {"5"}, known
        by_node = {name: [one for one in known if one["node"] == name] for name in slurm.names}
        assert all(by_node.values()) and len({one["machine"] for one in known}) == 2, known
        pids = {name: {row[0] for path in files.values() if facts(path)["node"] == name
                       for row in asked(path, "select pid from segment")} for name in slurm.names}
        assert pids["vn0"] & pids["vn1"], f"pids of two hosts are equal as often as not: {pids}"
        report = job_report(room, "job")
        check_nodes(room, slurm, report, "job")
        assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3, 4], report["ranks"]


@test
def the_reader_is_killed(room):
    """the rank that reads a node's counters dies by kill -9, recorder and all, in mid-run: another one takes over, the job runs on, and
    no joule of the node is lost or counted twice"""
    with Slurm(room) as slurm:
        watts(slurm)
        (room.folder / "job").mkdir()
        step = slurm.start("srun", "-N2", "-n5", "--no-kill", "--kill-on-bad-exit=0", WATTLE, "run", "-q", "-o", "job/%r.sqlite",
                           "--", "sleep", "5")
        wait_until(lambda: len(list((room.folder / "job").glob("?.sqlite"))) == 5, "all ranks record")

        def reader():
            for path in (room.folder / "job").glob("?.sqlite"):
                try:
                    known = facts(path)
                    told = asked(path, "select text from event where kind = 'sensors'")
                except (sqlite3.Error, KeyError):
                    continue
                if known.get("node") == "vn0" and any("read here" in text for text, in told):
                    return path
            return None

        first = wait_until(reader, "somebody reads the counters of vn0")
        time.sleep(1)
        pids = slurm.on("vn0", "sh", "-c", "grep -l '^PPid:' /proc/[0-9]*/status | cut -d/ -f3 | while read p; do "
                        f"tr '\\0' ' ' < /proc/$p/environ 2>/dev/null | grep -q 'SLURM_PROCID={facts(first)['rank']} ' && "
                        "grep -q wattle /proc/$p/cmdline && echo $p; done").stdout.split()
        assert pids, "no recorder found"
        slurm.on("vn0", "kill", "-9", *pids)
        room.finish(step)
        texts = [text for path in (room.folder / "job").glob("?.sqlite")
                 for text, in asked(path, "select text from event where kind = 'sensors'")]
        assert any("taken over" in text for text in texts), texts
        report = job_report(room, "job")
        vn0 = next(node for node in report["nodes"] if node["node"] == "vn0")
        others = [path for path in runs(room, "job").values() if facts(path)["node"] == "vn0" and path != first]
        near(vn0["energy_j"], true_j(slurm, "vn0", others), relative=0.05)
        assert not next(rank for rank in report["ranks"] if rank["rank"] == int(facts(first)["rank"]))["complete"]


# ---- the plugin ----

@test
def srun_wattle(room):
    """srun --wattle: a run file a rank, of the command itself, spans arrive; what the program prints and returns is its own; one line tells
    the job's energy, and so does the job's comment"""
    with Slurm(room, plugins=plugin()) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N2", "-n3", "--comment=mine", "--wattle=50ms", SPANNER, "pulse", "1")
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 3, done
        files = runs(room, "wattle-1")
        assert sorted(files) == [0, 1, 2], files
        for path in files.values():
            known = facts(path)
            assert json.loads(known["command"]) == [str(SPANNER), "pulse", "1"], known
            assert known["job_id"] == "1" and known["job_step"] == "0" and int(known["interval_ns"]) == 50_000_000, known
            assert asked(path, "select count(*) from span")[0][0] > 50, path
        report = job_report(room, "wattle-1")
        check_nodes(room, slurm, report, "wattle-1")
        line, folder = LINE.search(done.stderr).groups()
        assert folder == "wattle-1" and "3 ranks on 2 nodes" in line, done.stderr
        assert slurm.show_job(1)["Comment"] == f"mine; wattle: {line}", (slurm.show_job(1), done.stderr)
        near(float(re.match(r"([\d.]+) J", line)[1]), report["energy"]["total_j"], relative=0.01)
        assert slurm.run("srun", "-N2", "true").stderr == "" and not (room.folder / "wattle-2").exists()


@test
def as_without_it(room):
    """statuses, signals, binding, limits, environment and standard streams of a task are the same with --wattle"""
    look = "cat; grep -E 'Cpus_allowed|SigIgn|SigBlk|Seccomp' /proc/self/status; ulimit -a; umask; pwd; env | " \
           "grep -v -E '^(SLURM_(JOB_ID|JOBID|STEP|LAUNCH|SRUN|TASK_PID|JOB_(START|END)|.*PORT)|WATTLE_RING|.*SPANK)' | sort; " \
           "ls /proc/self/fd | wc -l"
    with Slurm(room, plugins=plugin(), task="affinity") as slurm:
        watts(slurm)

        def both(*words, **options):
            return [slurm.run("srun", *more, "-n1", *words, **options) for more in ([], ["--wattle"])]

        plain, measured = both("sh", "-c", look, input=b"hello\n")
        assert plain.stdout == measured.stdout and plain.stdout.startswith("hello\n"), (plain.stdout, measured.stdout)
        for script in ("exit 7", "kill -TERM $$", "kill -9 $$", "exec /nowhere"):
            plain, measured = both("sh", "-c", script)
            assert plain.returncode == measured.returncode != 0, (script, plain, measured)
        plain, measured = both("/nowhere/program")
        assert plain.returncode == measured.returncode != 0, (plain, measured)


@test
def what_fails_fails_no_job(room):
    """a recorder that can't be had or is killed, a folder that can't be made: one line says so, and the job is as it would have been"""
    with Slurm(room, plugins=plugin()) as slurm:
        watts(slurm)
        (room.folder / "file").write_text("")
        done = slurm.run("srun", "-n2", "--wattle", "--wattle-folder=file/x", "sh", "-c", "exit 3")
        assert done.returncode == 3 and "file/x" in done.stderr, done
        done = slurm.run("srun", "-n2", "--wattle", "--wattle-options=--no-such-option", "true")
        assert done.returncode == 0 and "--no-such-option" in done.stderr, done
        step = slurm.start("srun", "-N1", "-n2", "--wattle", "sleep", "3")
        wait_until(lambda: len(list((room.folder / "wattle-3").glob("*.sqlite"))) == 2, "they record")
        slurm.on("vn0", "sh", "-c", "kill -9 $(grep -l -- --control-fd /proc/[0-9]*/cmdline | cut -d/ -f3 | sort -n | head -1)")
        done = room.finish(step)
        assert done.returncode == 0, done
        for value in ("50", "abc", "2h", "-1s"):
            done = slurm.run("srun", f"--wattle={value}", "touch", "started")
            assert done.returncode != 0 and "--wattle" in done.stderr and "100ms" in done.stderr, done
        assert not (room.folder / "started").exists()


@test
def no_recorder_at_all(room):
    """where wattle is not installed on the nodes, a line says where it was looked for, and jobs run"""
    with Slurm(room, plugins=plugin(wattle="/nowhere/wattle")) as slurm:
        done = slurm.run("srun", "-N2", "-n2", "--wattle", "echo", "done")
        assert done.returncode == 0 and done.stdout == "done\ndone\n" and "/nowhere/wattle" in done.stderr, done


@test
def batch_jobs(room):
    """sbatch --wattle: the script and each step of it are measured, an array's jobs by their own names; energy of the steps is not
    counted beside the script's, and the comment has the sum"""
    with Slurm(room, plugins=plugin()) as slurm:
        watts(slurm)
        job = slurm.batch(f"srun -N2 -n2 {BURNER} cpu 0.5", "sleep 0.3", "srun -n1 --wattle=off true", f"srun -N2 {BURNER} cpu 0.5",
                          options=["-N2", "--wattle"])
        folder = f"wattle-{job}"
        steps = sorted({path.name.split("-")[0] for path in (room.folder / folder).glob("*.sqlite")})
        assert steps == [f"{job}.0", f"{job}.2", f"{job}.batch"], steps
        report = job_report(room, folder)
        paths = list((room.folder / folder).glob("*.sqlite"))
        nodes = {node["node"]: node for node in report["nodes"]}
        near(nodes["vn0"]["energy_j"], true_j(slurm, "vn0", [p for p in paths if facts(p)["node"] == "vn0"]), relative=0.05)
        assert "wattle: " in slurm.show_job(job)["Comment"], slurm.show_job(job)
        array = slurm.batch("true", options=["--array=7", "--wattle"])
        assert (room.folder / f"wattle-{array}_7" / f"{array}_7.batch-r0-vn0.sqlite").exists(), list(room.folder.iterdir())


@test
def other_users(room):
    """a job of an unprivileged user: recorders are his, files are his, and the comment is written by him"""
    with Slurm(room, plugins=plugin()) as slurm:
        watts(slurm)
        done = slurm.run(*slurm.as_user(NOBODY, "srun", "-N2", "-n2", "--wattle", "sh", "-c",
                                        "ls -ln /proc/[0-9]*/cmdline >/dev/null; sleep 0.5"))
        assert done.returncode == 0, done
        paths = list((room.folder / "wattle-1").glob("*.sqlite"))
        assert len(paths) == 2 and {path.stat().st_uid for path in paths} == {NOBODY}, paths
        assert {facts(path)["user"] for path in paths} == {"nobody"}, [facts(path) for path in paths]
        assert "wattle: " in slurm.show_job(1)["Comment"], (slurm.show_job(1), done.stderr)


main()
