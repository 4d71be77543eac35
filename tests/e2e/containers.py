"""wattle inside namespaces and containers, and outside measuring them: CPU time, status and run file are as usual.

The container is a real one, of crun, in a mount namespace where /sys/fs/cgroup is version 2 (crun does not support a
mixture).
"""
import json
import os
import pathlib
import shutil
import subprocess

from harness import BURNER, NOBODY, WATTLE, Skip, main, near, test, wait_until

MACHINE = pathlib.Path("/sys/fs/cgroup")
UNIFIED = MACHINE if (MACHINE / "cgroup.controllers").exists() else MACHINE / "unified"
VERSION_2 = "mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\""
BOUND = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")


def need(workdir, *command):
    """Skips where the machine does not allow this."""
    if shutil.which(command[0]) is None:
        raise Skip(f"{command[0]} is not installed")
    done = workdir.finish(workdir.start(*command[1:], "true", program=command[0]))
    if done.returncode != 0:
        raise Skip(f"{' '.join(map(str, command[:-1]))} does not work here: {done.stderr.strip()}")


def bundle(workdir, *command):
    """An OCI bundle with this machine's programs, the build at its own path, and the test's folder as /room."""
    top = workdir.folder / "bundle"
    (top / "rootfs").mkdir(parents=True, exist_ok=True)
    subprocess.run(["crun", "spec", "-f", top / "config.json"], cwd=top, check=True)
    config = json.loads((top / "config.json").read_text())
    config["linux"].pop("resources", None)  # calls that fail on a machine without root's full rights
    config["process"].pop("rlimits", None)
    config["process"] |= {"terminal": False, "args": [str(word) for word in command], "cwd": "/room"}
    config["process"]["env"].append("TMPDIR=/room")
    config["root"]["readonly"] = False
    config["linux"]["cgroupsPath"] = f"/wattle-{os.getpid()}/container"
    bound = {path: path for path in BOUND if os.path.exists(path)}
    bound |= {str(program.parent): str(program.parent) for program in (WATTLE, BURNER)} | {str(workdir.folder): "/room"}
    config["mounts"] += [{"type": "bind", "source": source, "destination": target, "options": ["rbind", "rw"]}
                         for source, target in bound.items()]
    (top / "config.json").write_text(json.dumps(config))
    return top


def container(workdir, *command):
    """The words that run a command in a container."""
    if shutil.which("crun") is None:
        raise Skip("crun is not installed")
    need(workdir, "unshare", "--mount", "sh", "-c", VERSION_2, "sh")
    return ["unshare", "--mount", "sh", "-c", VERSION_2, "sh", "crun", "--root", workdir.folder / "state",
            "--cgroup-manager=cgroupfs", "run", "--bundle", bundle(workdir, *command), f"wattle-{os.getpid()}"]


def tidy():
    for name in ("container", ""):
        folder = UNIFIED / f"wattle-{os.getpid()}" / name
        if folder.exists():
            folder.rmdir()


def check_inside(workdir, wrap, where):
    """Runs `wrap(wattle run burner, then status 7)`: the run agrees with the burner's own figures."""
    done = workdir.finish(workdir.start(*wrap[1:], program=wrap[0]))
    assert done.returncode == 7, done
    said = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    report = json.loads((where / "report.json").read_text())
    assert report["run"]["complete"] is True and report["run"]["exit_code"] == 7, report["run"]
    near(report["cpu"]["target_cpu_s"], said["self_cpu_s"], relative=0.02, absolute=0.03)
    assert report["cpu"]["method"] == "rusage" and report["cpu"]["processes_seen"] >= 2, report["cpu"]
    assert (where / "run.sqlite").exists()


def measured(top, programs=(WATTLE, BURNER)):
    wattle, burner = programs
    return [wattle, "run", "-q", "-o", f"{top}/run.sqlite", "--json", f"{top}/report.json", "--", "sh", "-c",
            f"'{burner}' cpu 1; exit 7"]


@test
def pid_namespace(workdir):
    """in a pid namespace with its own /proc, as its first process"""
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    need(workdir, *prefix)
    check_inside(workdir, prefix + measured(workdir.folder), workdir.folder)


@test
def a_stranger_s_proc(workdir):
    """in a pid namespace that still has the machine's /proc, where pids belong to others: no wrong figure"""
    prefix = ["unshare", "--pid", "--fork"]
    need(workdir, *prefix)
    done = workdir.finish(workdir.start(*prefix[1:], *measured(workdir.folder), program=prefix[0]))
    assert done.returncode == 7, done
    said = json.loads(done.stdout.splitlines()[0])
    report = json.loads((workdir.folder / "report.json").read_text())
    near(report["cpu"]["target_cpu_s"], said["self_cpu_s"], relative=0.02, absolute=0.03)
    assert report["memory"]["peak_rss_bytes"] < 3e7 and report["cpu"]["processes_sampled"] == 2, report


@test
def user_namespace(workdir):
    """an unprivileged user who is root in a user namespace"""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "unshare",
              "--user", "--map-root-user",
              "--pid", "--fork", "--mount-proc"]
    need(workdir, *prefix)
    check_inside(workdir, prefix + measured(workdir.folder, workdir.for_everybody()), workdir.folder)


@test
def bubblewrap(workdir):
    """in bubblewrap, as Flatpak and others use it: a read-only machine, only the test's folder writable"""
    prefix = ["bwrap", "--ro-bind", "/", "/", "--bind", workdir.folder, workdir.folder, "--proc", "/proc", "--dev",
              "/dev",
              "--unshare-pid", "--die-with-parent"]
    need(workdir, *prefix)
    check_inside(workdir, prefix + measured(workdir.folder), workdir.folder)


@test
def inside_a_container(workdir):
    """in an OCI container"""
    try:
        check_inside(workdir, container(workdir, *measured("/room")), workdir.folder)
    finally:
        tidy()


@test
def a_container_s_cgroup(workdir):
    """attach --cgroup to a container from outside: only its processes count"""
    try:
        words = container(workdir, "sh", "-c",
                          f"read line; for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done; '{BURNER}' cpu 1")
        inside = workdir.start(*words[1:], program=words[0], stdin=subprocess.PIPE)
        folder = UNIFIED / f"wattle-{os.getpid()}" / "container"
        procs = folder / "cgroup.procs"
        try:
            wait_until(lambda: procs.exists() and procs.read_text(), "the container")
        except AssertionError:
            inside.kill()
            raise AssertionError(inside.communicate())
        process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--cgroup", folder)
        wait_until(lambda: (workdir.folder / "run.sqlite").exists()
                   and workdir.rows("select count(*) from sample")[0][0] > 0,
                   "the first sample")
        out, _ = inside.communicate(b"go\n")
        report = json.loads(workdir.finish(process).stdout)
    finally:
        tidy()
    said = json.loads(next(line for line in out.splitlines() if line.startswith(b"{")))
    # crun removes the cgroup as fast as it can; on a busy machine the last sample is the final value.
    near(report["cpu"]["target_cpu_s"], said["self_cpu_s"], absolute=0.35)
    assert report["cpu"]["method"] == "cgroup cpu.stat", report["cpu"]


def check_before(workdir, *command):
    """`wattle run -- namespace or container -- burner`: the CPU time of the processes inside is in the run's."""
    report, done = workdir.report("--", *command)
    said = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert said["self_cpu_s"] * 0.99 <= report["cpu"]["target_cpu_s"] <= said["self_cpu_s"] + 0.6, (said, report["cpu"])
    return report


@test
def before_a_pid_namespace(workdir):
    """wattle run -- unshare --pid: the processes inside are found and counted"""
    need(workdir, "unshare", "--pid", "--fork", "--mount-proc")
    report = check_before(workdir, "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", f"'{BURNER}' cpu 1; true")
    assert report["cpu"]["processes_sampled"] >= 3, report["cpu"]


@test
def orphans_of_a_pid_namespace(workdir):
    """orphan inside a namespace: reaped by the namespace's init, not by wattle, and still counted"""
    prefix = ["unshare", "--pid", "--fork", "--mount-proc"]
    need(workdir, *prefix)
    check_before(workdir, *prefix, "sh", "-c",
                 f"(setsid '{BURNER}' cpu 1 >said &); until [ -s said ]; do sleep 0.05; done; cat said")


@test
def before_a_container(workdir):
    """wattle run -- crun run: the processes in the container are found and counted"""
    try:
        check_before(workdir, *container(workdir, BURNER, "cpu", "1"))
    finally:
        tidy()


if __name__ == "__main__":
    main()
