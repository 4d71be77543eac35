"""srun --wattle and sbatch --wattle, the plugin, on a real Slurm of two virtual nodes."""
import json
import os
import re
import shutil
import sqlite3
import subprocess

from harness import BUILD, BURNER, NOBODY, WATTLE, Skip, main, near, test, wait_until
from postgres_server import Server
from slurm_fixture import Cgroup, Slurm, asked, check_nodes, facts, job_report, runs, true_j, watts

PLUGIN = BUILD / "src/spank/wattle_spank.so"
SPANNER = BUILD / "tests/fakes/spanner"
LINE = re.compile(r"^wattle: (.*), (\S+)$", re.MULTILINE)


def plugin(**settings):
    """A line of plugstack.conf: jobs run even if the plugin fails."""
    if not PLUGIN.exists():
        raise Skip("the plugin is not built: no slurm/spank.h")
    settings = {"wattle": WATTLE, "ready": "30s", "wait": "30s", **settings}
    return ["optional " + " ".join([str(PLUGIN), *(f"{key}={value}" for key, value in settings.items())])]


@test
def srun_wattle(workdir):
    """srun --wattle: a run file for each rank, of the command itself, with its spans, exit status and CPU time; one
    line and the job's comment state the job's energy"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N2", "-n3", "--comment=mine", "--wattle=50ms", SPANNER, "pulse", "1")
        assert done.returncode == 0 and done.stdout == "", done
        files = runs(workdir, "wattle-1")
        assert sorted(files) == [0, 1, 2], files
        for path in files.values():
            known = facts(path)
            assert json.loads(known["command"]) == [str(SPANNER), "pulse", "1"], known
            assert (known["job_id"], known["job_step"], known["interval_ns"]) == ("1", "0", "50000000"), known
            assert asked(path, "select exit_code, cpu_method from segment") == [(0, "rusage")], path
            assert asked(path, "select count(*) from span")[0][0] > 50, path
        report = job_report(workdir, "wattle-1")
        check_nodes(workdir, slurm, report, "wattle-1")
        line, folder = LINE.search(done.stderr).groups()
        assert folder == "wattle-1" and "3 ranks on 2 nodes" in line, done.stderr
        assert slurm.show_job(1)["Comment"] == f"mine; wattle: {line}", (slurm.show_job(1), done.stderr)
        near(float(re.match(r"([\d.]+) J", line)[1]), report["energy"]["total_j"], relative=0.01)
        alone = [workdir.wattle("report", path, "--format", "line").stdout for path in files.values()]
        known = r"(energy n/a|[\d.]+ m?J ± [\d.]+ m?J( \?)? measured), [\d.]+ m?s\n"
        assert all(re.fullmatch(known, text) for text in alone) and any("measured" in text for text in alone), alone
        assert slurm.run("srun", "-N2", "true").stderr == "" and not (workdir.folder / "wattle-2").exists()


@test
def as_without_it(workdir):
    """statuses, signals, binding, limits, prologs, environment and streams of a task: unchanged by --wattle"""
    own = "^(SLURM_(JOB_ID|JOBID|STEP|LAUNCH|SRUN|TASK_PID|JOB_(START|END)|.*PORT)|WATTLE_RING|.*SPANK)"
    look = "cat; grep -E 'Cpus_allowed|SigIgn|SigBlk|Seccomp' /proc/self/status; ulimit -a; umask; pwd; " \
           f"env | grep -v -E '{own}' | sort; ls /proc/self/fd | wc -l"
    prolog = workdir.folder / "prolog"
    prolog.write_text("#!/bin/sh\necho export FROM_PROLOG=1\n")
    prolog.chmod(0o755)
    with Slurm(workdir, plugins=plugin(), task="affinity", more=f"TaskProlog={prolog}") as slurm:
        watts(slurm)

        def both(*words, **options):
            return [slurm.run("srun", *more, "-wvn0", "-n1", *words, **options) for more in ([], ["--wattle"])]

        plain, measured = both("sh", "-c", look, input=b"hello\n")
        assert plain.stdout == measured.stdout, (plain.stdout, measured.stdout)
        assert plain.stdout.startswith("hello\n") and "FROM_PROLOG=1" in plain.stdout, plain.stdout
        for script in ("exit 7", "kill -TERM $$", "kill -9 $$", "exec /nowhere"):
            plain, measured = both("sh", "-c", script)
            assert plain.returncode == measured.returncode != 0, (script, plain, measured)
        told = {int(path.parent.name[len("wattle-"):]): asked(path, "select exit_code from segment")[0][0]
                for path in workdir.folder.glob("wattle-*/*.sqlite")}
        assert [told[job] for job in sorted(told)] == [0, 7, 143, 137, 127], told
        plain, measured = both("/nowhere/program")
        assert plain.returncode == measured.returncode != 0, (plain, measured)


@test
def plugin_failure_does_not_fail_the_job(workdir):
    """folder that cannot be created, invalid recorder options, killed recorder: a line reports it, the job runs as
    without wattle"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        (workdir.folder / "file").write_text("")
        done = slurm.run("srun", "-n2", "--wattle", "--wattle-folder=file/x", "sh", "-c", "exit 3")
        assert done.returncode == 3 and "file/x" in done.stderr, done
        done = slurm.run("srun", "-n2", "--wattle", "--wattle-options=--no-such-option", "true")
        assert done.returncode == 0 and "--no-such-option" in done.stderr, done
        step = slurm.start("srun", "-N1", "-n2", "--wattle", "sleep", "3")
        wait_until(lambda: len(list((workdir.folder / "wattle-3").glob("*.sqlite"))) == 2, "they record")
        slurm.on("vn0", "sh", "-c", "kill -9 $(grep -l -- --control-fd /proc/[1-9]*/cmdline | cut -d/ -f3 | head -1)")
        done = workdir.finish(step)
        assert done.returncode == 0, done
        for value in ("50", "abc", "2h", "-1s"):
            done = slurm.run("srun", f"--wattle={value}", "touch", "started")
            assert done.returncode != 0 and "--wattle" in done.stderr and "100ms" in done.stderr, done
        assert not (workdir.folder / "started").exists()


@test
def a_recorder_that_hangs(workdir):
    """recorder that is never ready and never ends: delays a task, its node and the sum no longer than the site's
    limit"""
    slow = workdir.folder / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 100\n")
    slow.chmod(0o755)
    with Slurm(workdir, plugins=plugin(wattle=slow, ready="300ms", wait="300ms")) as slurm:
        done = slurm.run("srun", "-n2", "--wattle", "sh", "-c", "echo done; exit 4")
        assert done.returncode == 4 and done.stdout == "done\ndone\n", done
        for words in ("not ready in time", "2 recorders of this node did not finish in time",
                      "computing the total took too long"):
            assert words in done.stderr, (words, done.stderr)
        wait_until(lambda: slurm.on("vn0", "pgrep", "-x", "-f", "sleep 100").returncode == 1, "no process is left")


@test
def no_recorder_at_all(workdir):
    """wattle not installed on the nodes: a line states where it was searched, and jobs run"""
    with Slurm(workdir, plugins=plugin(wattle="/nowhere/wattle")) as slurm:
        done = slurm.run("srun", "-N2", "-n2", "--wattle", "echo", "done")
        assert done.returncode == 0 and done.stdout == "done\ndone\n" and "/nowhere/wattle" in done.stderr, done


@test
def nodes_without_a_common_folder(workdir):
    """separate folder on each node: the runs are there, and srun reports that they could not be summed"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N2", "-n2", "--wattle", f"--wattle-folder={slurm.sysfs}/%j", "true")
        assert done.returncode == 0 and "no total" in done.stderr and f"{slurm.sysfs}/%j" in done.stderr, done
        for rank, name in enumerate(slurm.names):
            assert (slurm.tree(name) / f"1/1.0-r{rank}-{name}.sqlite").exists(), list(slurm.tree(name).iterdir())


@test
def into_a_store(workdir):
    """site sends all runs to PostgreSQL: the job is there completely; without a server a line states what to do"""
    with Server() as server, Slurm(workdir, plugins=plugin(option=f"--store={server.url()}")) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N2", "-n3", "--wattle", "sleep", "0.5")
        assert done.returncode == 0 and "3 ranks on 2 nodes" in done.stderr, done
        local = {facts(path)["id"]: asked(path, "select count(*) from sample")[0][0]
                 for path in runs(workdir, "wattle-1").values()}
        assert dict(server.rows("SELECT run_id::text, count(*) FROM sample GROUP BY 1")) == local, local
        told = workdir.wattle("report", "--store", server.url(), "--job", "1", "--format", "line").stdout
        assert told.strip() == LINE.search(done.stderr)[1], (told, done.stderr)
        server.kill()
        done = slurm.run("srun", "--wattle", "--wattle-options=--store-wait 100ms", "sh", "-c", "exit 2")
        assert done.returncode == 2 and "wattle push wattle-2/" in done.stderr, done


@test
def batch_jobs(workdir):
    """sbatch --wattle: the script and each step are measured, array jobs by their own names; a node's energy counts
    once, and the comment has the sum"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        burn = f"srun -N2 -n2 {BURNER} cpu 0.5"
        job = slurm.batch(burn, "sleep 0.3", "srun -n1 --wattle=off true", burn, options=["-N2", "--wattle"])
        folder = f"wattle-{job}"
        steps = sorted({path.name.split("-")[0] for path in (workdir.folder / folder).glob("*.sqlite")})
        assert steps == [f"{job}.0", f"{job}.2", f"{job}.batch"], steps
        report = job_report(workdir, folder)
        paths = list((workdir.folder / folder).glob("*.sqlite"))
        nodes = {node["node"]: node for node in report["nodes"]}
        on_vn0 = [path for path in paths if facts(path)["node"] == "vn0"]
        near(nodes["vn0"]["energy_j"], true_j(slurm, "vn0", on_vn0), relative=0.05)
        assert "wattle: " in slurm.show_job(job)["Comment"], slurm.show_job(job)
        array = slurm.batch("sleep 0.2", options=["--array=7,8%1", "--wattle"])
        wait_until(lambda: all("wattle: " in slurm.show_job(f"{array}_{index}").get("Comment", "")
                               for index in (7, 8)), "comments")
        assert (workdir.folder / f"wattle-{array}_7/{array}_7.batch-r0-vn0.sqlite").exists(), list(
            workdir.folder.iterdir())
        # The last one has the array's number: its sum does not count for the other.
        assert slurm.show_job(f"{array}_7")["Comment"] != slurm.show_job(f"{array}_8")["Comment"]


@test
def ranks_with_recorders_of_their_own(workdir):
    """wattle run where the site measures all steps: its run files have the sensors, and so have the site's"""
    with Slurm(workdir, plugins=plugin(default="on")) as slurm:
        watts(slurm)
        own = workdir.folder / "own"
        own.mkdir()
        done = slurm.run("srun", "-N2", "-n4", WATTLE, "run", "-q", "-o", own / "%r.sqlite", "--", BURNER, "cpu", "1")
        assert done.returncode == 0, done
        for folder in ("own", "wattle-1"):
            check_nodes(workdir, slurm, job_report(workdir, folder), folder)


def has_samples(path):
    try:
        return asked(path, "select count(*) from sample")[0][0] > 0
    except sqlite3.Error:  # not created yet
        return False


@test
def cancelled(workdir):
    """scancel: the sum is reported; that Slurm rejects comments of such a job is not reported as an error"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        step = slurm.start("srun", "-N2", "-n2", "--wattle", "sleep", "30")
        wait_until(lambda: sum(map(has_samples, (workdir.folder / "wattle-1").glob("*.sqlite"))) == 2,
                   "samples of both")
        slurm.run("scancel", "1")
        done = workdir.finish(step)
        assert LINE.search(done.stderr) and "2 ranks on 2 nodes" in done.stderr, done.stderr
        assert "comment" not in done.stderr, done.stderr


@test
def a_slow_epilog(workdir):
    """counters are read when a task has ended, not after the site's epilogs: later use by others is not included"""
    epilog = workdir.folder / "epilog"
    epilog.write_text("#!/bin/sh\nsleep 0.6\n")
    epilog.chmod(0o755)
    with Slurm(workdir, plugins=plugin(), more=f"TaskEpilog={epilog}") as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N1", "-n1", "--wattle", BURNER, "cpu", "0.5")
        assert done.returncode == 0, done
        (path,) = runs(workdir, "wattle-1").values()
        late_ns, = asked(path, "select min(t_ns) - end_ns from device_sample, segment where t_ns >= end_ns")[0]
        assert late_ns < 300e6, f"read {late_ns / 1e6} ms after the end"


@test
def heterogeneous_jobs(workdir):
    """heterogeneous step with two components: the last node of both sums up, once, and both have the comment"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-N1", "-n2", "--wattle", BURNER, "cpu", "0.5", ":", "-N1", "-n1", "--wattle", BURNER,
                         "cpu", "1")
        assert done.returncode == 0, done
        (line, folder), = LINE.findall(done.stderr)
        assert "3 ranks on 2 nodes" in line, done.stderr
        check_nodes(workdir, slurm, job_report(workdir, folder), folder)
        assert all(f"wattle: {line}" == slurm.show_job(part)["Comment"] for part in ("1+0", "1+1")), slurm.show_job(1)


@test
def other_users(workdir):
    """job of an unprivileged user: recorders and files are the user's, in the step's folder, wherever slurmd was
    started, and the user writes the comment"""
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        own = workdir.folder / "own"
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        done = slurm.run(*slurm.as_user(NOBODY, "srun", "-N2", "-n2", f"--chdir={own}", "--wattle", "sh", "-c",
                                        "ls -ln /proc/[0-9]*/cmdline >/dev/null; sleep 0.5"))
        assert done.returncode == 0, done
        paths = list((own / "wattle-1").glob("*.sqlite"))
        assert len(paths) == 2 and {path.stat().st_uid for path in paths} == {NOBODY}, paths
        assert {facts(path)["user"] for path in paths} == {"nobody"}, [facts(path) for path in paths]
        assert "wattle: " in slurm.show_job(1)["Comment"], (slurm.show_job(1), done.stderr)


# ---- hostile jobs ----

INTRUDER = BUILD / "tests/fakes/libintruder.so"
# Variables that a recorder may have.
KNOWN = re.compile(r"SLURM_\w+|PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_\w+|TZ|CUDA_VISIBLE_DEVICES|SLURMD_NODENAME|MASTER_ADDR|"
                   r"WATTLE_(SYSFS|HELPER)|WORLD_SIZE|RANK|PGSERVICEFILE")


def recorder_of(slurm, node):
    """The recorder on a node: pid, environment, status, cgroups."""
    look = ("for p in $(pgrep -x wattle); do echo $p; tr '\\0' '\\n' </proc/$p/environ; echo; cat /proc/$p/status; "
            "echo; cat /proc/$p/cgroup; break; done")
    shown = slurm.on(node, "sh", "-c", look).stdout
    if not shown:
        return None
    variables, status, cgroups = shown.split("\n\n")
    pid, *variables = variables.split("\n")
    return (pid, dict(line.split("=", 1) for line in variables),
            dict(re.findall(r"^(\w+):\s*(.*)$", status, re.MULTILINE)),
            cgroups)


@test
def the_jobs_variables(workdir):
    """LD_PRELOAD, WATTLE_NVML and other variables of a job: not in its recorder, which runs as the job's user without
    capabilities"""
    own = workdir.folder / "own"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    names = ("preload.so", "nvml.so", "rocm.so")
    for name in names:
        shutil.copy(INTRUDER, own / name)
        os.chown(own / name, NOBODY, NOBODY)
    chosen = {"LD_PRELOAD": own / "preload.so", "WATTLE_NVML": own / "nvml.so", "WATTLE_ROCM_SMI": own / "rocm.so",
              "LD_LIBRARY_PATH": own, "LD_AUDIT": own / "preload.so", "WATTLE_SYSFS": own, "WATTLE_PROCFS": own,
              "WATTLE_STATE": own, "WATTLE_HELPER": own / "socket", "PYTHONPATH": own, "GCONV_PATH": own,
              "LOCPATH": own,
              "OPENSSL_CONF": own / "ssl.conf", "PATH": f"{own}:{os.environ['PATH']}", "LC_MESSAGES": f"{own}/de",
              "CUDA_VISIBLE_DEVICES": "0", "TZ": "UTC"}
    export = ",".join(["ALL", *(f"{name}={value}" for name, value in chosen.items())])
    with Slurm(workdir, plugins=plugin()) as slurm:
        watts(slurm)
        step = slurm.start(*slurm.as_user(NOBODY, "srun", "-wvn0", "-n1", f"--chdir={own}", f"--export={export}",
                                          "--wattle", "cat"),
                           stdin=subprocess.PIPE)
        wait_until(lambda: list((own / "wattle-1").glob("*.sqlite")), f"it records {slurm.logs()}")
        _, variables, status, _ = recorder_of(slurm, "vn0")
        done = workdir.finish(step, b"")
        assert done.returncode == 0, done
        assert not list(own.glob("*.loaded")), list(own.iterdir())
        assert slurm.on("vn0", "pgrep", "-x", "-f", "sleep 4711").returncode == 1
        assert not [name for name in variables if not KNOWN.fullmatch(name)], variables
        assert variables["WATTLE_SYSFS"] == str(slurm.sysfs) and str(own) not in variables["PATH"], variables
        assert variables["PGSERVICEFILE"] == "/dev/null", variables
        assert (variables["SLURM_JOB_ID"], variables["TZ"], variables["CUDA_VISIBLE_DEVICES"]) == ("1",
            "UTC", "0"), variables
        assert status["Uid"].split() == [str(NOBODY)] * 4 and status["Gid"].split() == [str(NOBODY)] * 4, status
        assert all(int(status[key], 16) == 0 for key in ("CapEff", "CapPrm", "CapInh", "CapAmb")), status
        (path,) = (own / "wattle-1").glob("*.sqlite")
        assert (facts(path)["job_id"], facts(path)["rank"]) == ("1", "0"), facts(path)


# A compromised recorder: processes in new sessions, orphans, an endless chain of forks.
HOSTILE = """#!/usr/bin/python3
import os, sys
if sys.argv[1] == "attach":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.execlp("sleep", "sleep", "4712")
        os.execlp("sleep", "sleep", "4713")
    if os.fork() == 0:
        os.setsid()
        os.nice(19)
        while os.fork() == 0:
            pass
        os._exit(0)
os.execv({wattle!r}, sys.argv)
"""


def hostile(workdir):
    path = workdir.folder / "hostile"
    path.write_text(HOSTILE.format(wattle=str(WATTLE)))
    path.chmod(0o755)
    return plugin(wattle=path)


def left_over(slurm):
    """Recorders, keepers and their processes on the first node."""
    shown = slurm.on("vn0", "sh", "-c",
                     "ps -eo pid,args | grep -E 'sleep 471|hostile|wattle-keeper|--control-fd' | grep -v grep").stdout
    return shown.splitlines()


def survives_nothing(workdir, cgroup):
    with Slurm(workdir, plugins=hostile(workdir), cgroup=cgroup) as slurm:
        watts(slurm)
        done = slurm.run("srun", "-wvn0", "-n2", "--wattle", "sh", "-c", "sleep 0.5; exit 3")
        assert done.returncode == 3 and "2 ranks on 1 node" in done.stderr, done
        assert not left_over(slurm), left_over(slurm)
        step = slurm.start("srun", "-wvn0", "-n1", "--wattle", "cat", stdin=subprocess.PIPE)
        wait_until(lambda: recorder_of(slurm, "vn0"), "it records")
        pid, _, _, cgroups = recorder_of(slurm, "vn0")
        assert ("/wattle-" in cgroups.replace(cgroup.path.name, "")) if cgroup else True, cgroups
        slurm.on("vn0", "kill", "-9", pid)
        wait_until(lambda: not left_over(slurm), "all processes of a killed recorder have ended")
        assert workdir.finish(step, b"").returncode == 0
        for keeper in ("oldest", "newest"):
            step = slurm.start("srun", "-wvn0", "-n1", "--wattle", "cat", stdin=subprocess.PIPE)
            wait_until(lambda: recorder_of(slurm, "vn0"), "it records")
            slurm.on("vn0", "sh", "-c", f"kill -9 $(pgrep --{keeper} -x wattle-keeper)")
            wait_until(lambda: not left_over(slurm), f"all processes have ended after the {keeper} keeper was killed")
            assert workdir.finish(step, b"").returncode == 0
        step = slurm.start("srun", "-wvn0", "-n1", "--wattle", "cat", stdin=subprocess.PIPE)
        wait_until(lambda: recorder_of(slurm, "vn0"), "it records")
        slurm.on("vn0", "sh", "-c", "kill -9 $(pgrep -x slurmstepd)")
        wait_until(lambda: not left_over(slurm), "all processes have ended after slurmstepd was killed")
        assert cgroup is None or not cgroup.below(), cgroup.below()


@test
def nothing_survives_the_step(workdir):
    """orphans, new sessions and fork chains of a recorder: ended with the step, with the recorder, with a keeper and
    with slurmstepd"""
    survives_nothing(workdir, None)


@test
def nothing_survives_its_cgroup(workdir):
    """the same with cgroup v2: each recorder has its own group, which is removed"""
    with Cgroup() as cgroup:
        survives_nothing(workdir, cgroup)


main()
