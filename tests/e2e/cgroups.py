"""wattle attach --cgroup: measuring a cgroup. Real ones of this machine, and simulated trees."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from harness import BURNER, WATTLE, Skip, is_alive, main, near, test, wait_until

MACHINE = pathlib.Path("/sys/fs/cgroup")
UNIFIED = MACHINE if (MACHINE / "cgroup.controllers").exists() else MACHINE / "unified"
HIERARCHIES = {"cgroup cpu.stat": UNIFIED, "cgroup cpuacct": MACHINE / "cpuacct"}


@contextlib.contextmanager
def cgroup(top, name, *below):
    """Creates a cgroup with sub-cgroups, and removes them again; skips where this user may not."""
    folder = top / f"wattle-{os.getpid()}-{name}"
    folders = [folder, *(folder / part for part in below)]
    try:
        for path in folders:
            path.mkdir()
    except OSError as error:
        raise Skip(f"no cgroup can be made in {top}: {error.strerror}")
    try:
        yield folder
    finally:
        for path in reversed(folders):
            with contextlib.suppress(OSError):
                wait_until(lambda: not (path / "cgroup.procs").read_text(), "the cgroup's end", 5)
                path.rmdir()


def start_in(workdir, folder, *command, **options):
    """Starts a program that is in the cgroup before its first instruction."""
    return workdir.start("-c", f"echo $$ > {folder}/cgroup.procs; exec \"$@\"", "sh", *command, program="/bin/sh",
                      **options)


def account_s(folder):
    if (folder / "cpuacct.usage").exists():
        return int((folder / "cpuacct.usage").read_text()) / 1e9
    return int((folder / "cpu.stat").read_text().split()[1]) / 1e6


def attach(workdir, path, *options, **keywords):
    done = workdir.wattle("attach", "-q", "-o", "run.sqlite", "--json", "-", *options, "--cgroup", path, **keywords)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def began(workdir):
    return wait_until(lambda: (workdir.folder / "run.sqlite").exists() and
                      workdir.rows("select count(*) from sample")[0][0] > 0, "the first sample")


# 300 children of a millisecond or two, which no sample sees, then a second of burning.
STORM = f"for i in $(seq 300); do /bin/true; done; exec '{BURNER}' cpu 1"


@test
def exact_cpu_time(workdir):
    """cgroup v1 and v2: CPU time is the kernel's accounting, with short-lived children; the run ends by itself"""
    measured = 0
    for method, top in HIERARCHIES.items():
        if not (top / "cgroup.procs").exists():
            continue
        with cgroup(top, "exact", "below") as folder:
            start_in(workdir, folder / "below", "sh", "-c", f"read line; {STORM}", stdin=subprocess.PIPE)
            wait_until(lambda: (folder / "below/cgroup.procs").read_text(), "the process in the cgroup")
            before_s = account_s(folder)
            process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--cgroup", folder)
            began(workdir)
            workdir.started[-2].communicate(b"go\n")
            report = json.loads(workdir.finish(process).stdout)
            used_s = account_s(folder) - before_s
        (workdir.folder / "run.sqlite").unlink()
        assert report["cpu"]["method"] == method, report["cpu"]
        near(report["cpu"]["target_cpu_s"], used_s, relative=0.02)
        assert report["cpu"]["target_cpu_s"] > 1.05, report["cpu"]
        assert report["run"]["command"] == [f"/{folder.name}"] and report["run"]["complete"] is True, report["run"]
        measured += 1
    if measured == 0:
        raise Skip("no cgroup hierarchy with CPU accounting")


@test
def by_its_path(workdir):
    """path from /proc/PID/cgroup: accepted, and stored with the run"""
    with cgroup(UNIFIED, "path") as folder:
        burner = start_in(workdir, folder, BURNER, "cpu", "20")
        wait_until(lambda: (folder / "cgroup.procs").read_text(), "the process in the cgroup")
        shown = next(line.partition("::")[2] for line in open(f"/proc/{burner.pid}/cgroup").read().splitlines()
                     if line.startswith("0::"))
        process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--cgroup", shown)
        began(workdir)
        began_s = account_s(folder)
        wait_until(lambda: account_s(folder) - began_s > 0.5, "the burner's work")
        process.send_signal(signal.SIGINT)
        report = json.loads(workdir.finish(process).stdout)
        assert is_alive(burner.pid), "attach ended the measured process"
        burner.kill()
        burner.wait()
    assert workdir.rows("select value from run where key = 'cgroup'") == [(shown,)]
    assert report["run"]["pid"] == burner.pid and report["cpu"]["main_cpu_s"] > 0.3, report["cpu"]


@test
def in_and_out(workdir):
    """process that moves in counts from then, one that moves out until then; neither is changed"""
    with cgroup(UNIFIED, "move") as folder:
        start_in(workdir, folder, "sleep", "20")
        inside = start_in(workdir, folder, BURNER, "cpu", "20")
        outside = workdir.start("cpu", "20", program=BURNER)
        wait_until(lambda: len((folder / "cgroup.procs").read_text().split()) == 2, "the processes in the cgroup")
        before_s = account_s(folder)
        process = workdir.start("attach", "-q", "-o", "run.sqlite", "-i", "20ms", "--json", "-", "--cgroup", folder)
        began(workdir)
        began_s = account_s(folder)
        time.sleep(0.3)
        (folder / "cgroup.procs").write_text(str(outside.pid))
        (UNIFIED / "cgroup.procs").write_text(str(inside.pid))
        time.sleep(0.3)
        (UNIFIED / "cgroup.procs").write_text(str(outside.pid))
        ended_s = account_s(folder)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        report = json.loads(workdir.finish(process).stdout)
        for burner in workdir.started[:3]:
            burner.kill()
            burner.wait()
    assert ended_s - began_s <= report["cpu"]["target_cpu_s"] <= ended_s - before_s + 0.01, (report["cpu"], began_s,
                                                                                             before_s, ended_s)
    met = dict(workdir.rows("select pid, end_ns is not null from process"))
    assert met[inside.pid] == met[outside.pid] == 1 and len(met) == 3, met


@test
def version_2_alone(workdir):
    """machine with cgroup v2 only, as is usual: simulated by a mount namespace"""
    with cgroup(UNIFIED, "pure") as folder:
        start_in(workdir, folder, BURNER, "cpu", "1.5")
        wait_until(lambda: (folder / "cgroup.procs").read_text(), "the process in the cgroup")
        script = ('mount -t cgroup2 none /sys/fs/cgroup || exit 77\n'
                  'exec "$0" attach -q -o run.sqlite --json - --cgroup "$1"')
        done = workdir.finish(workdir.start("--mount", "sh", "-c", script, WATTLE, f"/{folder.name}",
                                            program="unshare"))
        if done.returncode in (1, 77) and "attach" not in done.stderr and not done.stdout:
            raise Skip(f"no mount namespace of our own: {done.stderr.strip()}")
        assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert report["cpu"]["method"] == "cgroup cpu.stat" and report["cpu"]["target_cpu_s"] > 0.5, report["cpu"]


@test
def removed(workdir):
    """cgroup killed and removed during the run: the run is complete, with its use up to then"""
    with cgroup(UNIFIED, "removed") as folder:
        burner = start_in(workdir, folder, BURNER, "cpu", "20")
        wait_until(lambda: (folder / "cgroup.procs").read_text(), "the process in the cgroup")
        process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--cgroup", folder)
        began(workdir)
        began_s = account_s(folder)
        wait_until(lambda: account_s(folder) - began_s > 0.7, "the burner's work")
        burner.kill()
        burner.wait()
        wait_until(lambda: not (folder / "cgroup.procs").read_text(), "the empty cgroup")
        folder.rmdir()
        report = json.loads(workdir.finish(process).stdout)
    assert report["run"]["complete"] is True and report["cpu"]["target_cpu_s"] > 0.4, report


@test
def wrong_paths(workdir):
    """path that is no cgroup, or an empty cgroup: one line with the reason, status 1, no file"""
    (workdir.folder / "none").mkdir()
    for path, words in (("/no/such.slice", "/no/such.slice"), (workdir.folder / "none", "is not a cgroup")):
        done = workdir.wattle("attach", "-o", "run.sqlite", "--cgroup", path)
        assert done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1, done
    with cgroup(UNIFIED, "empty") as folder:
        done = workdir.wattle("attach", "-o", "run.sqlite", "--cgroup", folder)
        assert done.returncode == 1 and "is empty" in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert not (workdir.folder / "run.sqlite").exists()


@test
def wrong_usage(workdir):
    """process and cgroup together, neither of them, or a cgroup for run: usage error, with its status"""
    for words in (["--cgroup", "/", str(os.getpid())], ["--cgroup", ""], []):
        done = workdir.wattle("attach", *words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done
    done = workdir.wattle("run", "--cgroup", "/", "--", "true")
    assert done.returncode == 125 and "--cgroup" in done.stderr, done


@test
def made_trees(workdir):
    """WATTLE_SYSFS and WATTLE_PROCFS: nothing of the real machine is read; the run ends when the process list is
    empty"""
    stat = "{} (job) S 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 3 0 {} 0 100 0 0\n"
    sysfs = workdir.tree("sys", {"fs/cgroup/cpuacct/cgroup.procs": "1\n",
                              "fs/cgroup/cpuacct/slurm/job_7/cgroup.procs": "4001\n4002\n",
                              "fs/cgroup/cpuacct/slurm/job_7/cpuacct.usage": "5000000000\n"})
    procfs = workdir.tree("proc", {"4001/stat": stat.format(4001, 100, 2000), "4002/stat": stat.format(4002, 100, 1000),
                                "stat": "cpu 100 0 0 100 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\n"})
    job = sysfs / "fs/cgroup/cpuacct/slurm/job_7"
    process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--cgroup", "/slurm/job_7",
                         env={"WATTLE_SYSFS": str(sysfs), "WATTLE_PROCFS": str(procfs)})
    began(workdir)
    (job / "cpuacct.usage").write_text("7250000000\n")
    time.sleep(0.3)
    (job / "cgroup.procs").write_text("")
    report = json.loads(workdir.finish(process).stdout)
    assert report["run"]["pid"] == 4002 and report["run"]["command"] == ["/slurm/job_7"], report["run"]
    assert report["cpu"]["method"] == "cgroup cpuacct", report["cpu"]
    near(report["cpu"]["target_cpu_s"], 2.25, absolute=1e-9)


@test
def a_storm(workdir):
    """20,000 processes of a millisecond: all their time counts, and the recorder does not grow"""
    storm = 'read go; for i in $(seq 200); do "$0" zombies 100 1; done'
    with cgroup(UNIFIED, "storm") as folder:
        target = start_in(workdir, folder, "sh", "-c", storm, BURNER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        wait_until(lambda: (folder / "cgroup.procs").read_text(), "the process in the cgroup")
        # A sanitizer keeps freed memory to detect its use; that would look like growth.
        process = workdir.start("attach", "-q", "-o", "run.sqlite", "-i", "10ms", "--json", "-", "--cgroup", folder,
                             env={"ASAN_OPTIONS": "quarantine_size_mb=1"})
        began(workdir)
        before_s = account_s(folder)
        target.stdin.write(b"go\n")
        target.stdin.flush()
        target.wait()
        used_s = account_s(folder) - before_s
        report = json.loads(workdir.finish(process).stdout)
    near(report["cpu"]["target_cpu_s"], used_s, relative=0.02)
    rss = [value for value, in workdir.rows("select self_rss_bytes from sample where self_rss_bytes is not null")]
    assert len(rss) >= 3, rss  # one a second, and at both ends
    third = len(rss) // 3
    assert max(rss[-third:]) < max(rss[:third]) + 4e6, (rss[0], max(rss[:third]), max(rss[-third:]))


if __name__ == "__main__":
    main()
