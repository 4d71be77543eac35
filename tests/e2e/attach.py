"""wattle attach: measuring a running process."""
import json
import os
import signal
import subprocess
import sys
import time

from harness import BURNER, Skip, is_alive, main, test, wait_until


def start_burner(workdir, *act):
    process = workdir.start(*act, program=BURNER)
    wait_until(lambda: is_alive(process.pid), "the burner")
    return process


def cpu_s_of(pid):
    """The kernel's CPU time of a process so far, in its ticks."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_sample(workdir):
    return wait_until(lambda: (workdir.folder / "run.sqlite").exists() and
                      workdir.rows("select count(*) from sample")[0][0] > 0, "the first sample")


def between(actual, least, most):
    """CPU times come in ticks of 10 ms, and several are compared."""
    assert least - 0.05 <= actual <= most + 0.05, (actual, least, most)


@test
def until_it_ends(workdir):
    """attach: ends with its process; only use after attaching counts"""
    burner = start_burner(workdir, "cpu", "1.2")
    wait_until(lambda: cpu_s_of(burner.pid) > 0.3, "the burner's work")
    before_s = cpu_s_of(burner.pid)
    process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", burner.pid)
    began_s = first_sample(workdir) and cpu_s_of(burner.pid)
    done = workdir.finish(process)
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert report["run"]["pid"] == burner.pid and report["run"]["exit_code"] is None, report["run"]
    assert report["run"]["command"] == [str(BURNER), "cpu", "1.2"]
    between(report["cpu"]["target_cpu_s"], 1.2 - began_s, 1.2 - before_s)


@test
def several_processes(workdir):
    """--also: two processes and their children are one target until the last has ended; each invalid word is named"""
    first, second = start_burner(workdir, "cpu", "0.3"), start_burner(workdir, "cpu", "1")
    idle = workdir.start("60", program="sleep")
    process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", "--also", f"{second.pid},{first.pid}",
                            first.pid)
    began_s = first_sample(workdir) and cpu_s_of(second.pid)
    report = json.loads(workdir.finish(process).stdout)
    assert report["run"]["pid"] == first.pid and report["cpu"]["processes_seen"] == 2, report
    between(report["cpu"]["target_cpu_s"], 1 - began_s, 1.3)
    for words, status, text in ((["--also", "x", idle.pid], 2, "'x' is not a process ID"),
                                (["--also", "999999999", idle.pid], 1, "can't watch process 999999999"),
                                (["--also", idle.pid, "--cgroup", "/"], 2, "--also and --cgroup")):
        done = workdir.wattle("attach", "-q", "-o", "wrong.sqlite", *words)
        assert done.returncode == status and text in done.stderr, done


def attach_for(workdir, pid, cpu_s, number):
    """Attaches until the process has computed for a while: the report, and bounds for its use meanwhile."""
    before_s = cpu_s_of(pid)
    process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", pid)
    began_s = first_sample(workdir) and cpu_s_of(pid)
    wait_until(lambda: cpu_s_of(pid) - began_s >= cpu_s, "the burner's work")
    least_s = cpu_s_of(pid) - began_s
    process.send_signal(number)
    done = workdir.finish(process)
    assert done.returncode == 0, done
    return json.loads(done.stdout), least_s, cpu_s_of(pid) - before_s


def written_bytes():
    with open("/proc/self/io") as file:
        return int(file.read().split("\nwrite_bytes: ")[1].split()[0])


@test
def an_end_without_account(workdir):
    """root's I/O when its parent reaps it before wattle reads it: unknown, never 0"""
    before = written_bytes()
    with open(workdir.folder / "probe", "wb") as probe:
        probe.write(bytes(1 << 20))
        os.fsync(probe.fileno())
    if written_bytes() == before:
        raise Skip("the temporary folder is not on a disk: no I/O is counted")
    inner = f"sleep 1; dd if=/dev/zero of={workdir.folder}/data bs=1M count=8 conv=fsync 2>/dev/null; sleep 0.5"
    outer = workdir.start("-c", f"sh -c '{inner}' & echo $!; wait; exec sleep 20", program="/bin/sh")
    done = workdir.wattle("attach", "-q", "-o", "run.sqlite", "--json", "-", int(outer.stdout.readline()))
    written = json.loads(done.stdout)["memory"]["written_bytes"]
    assert written is None or written >= 8 << 20, written


@test
def until_a_signal(workdir):
    """SIGINT and SIGTERM: end the measurement, not the process; the run is complete"""
    for number in (signal.SIGINT, signal.SIGTERM):
        burner = start_burner(workdir, "cpu", "20")
        report, least_s, most_s = attach_for(workdir, burner.pid, 0.4, number)
        assert is_alive(burner.pid), "the process was ended"
        assert report["run"]["complete"] is True
        between(report["cpu"]["target_cpu_s"], least_s, most_s)
        (workdir.folder / "run.sqlite").unlink()
        burner.kill()


@test
def with_its_children(workdir):
    """children: existing ones and those that start and end later count"""
    script = f"'{BURNER}' cpu 1.5 & echo $!; read line; '{BURNER}' cpu 0.2; '{BURNER}' cpu 0.2; wait"
    shell = workdir.start("-c", script, program="/bin/sh", stdin=subprocess.PIPE)
    burner = int(shell.stdout.readline())
    wait_until(lambda: cpu_s_of(burner) > 0.2, "the burner's work")
    before_s = cpu_s_of(burner)
    process = workdir.start("attach", "-q", "-i", "20ms", "-o", "run.sqlite", "--json", "-", shell.pid)
    began_s = first_sample(workdir) and cpu_s_of(burner)
    shell.stdin.write(b"go\n")
    shell.stdin.flush()
    report = json.loads(workdir.finish(process).stdout)
    between(report["cpu"]["target_cpu_s"], 1.9 - began_s, 1.9 - before_s + 0.1)
    assert report["cpu"]["processes_seen"] >= 4, report["cpu"]


@test
def no_such_process(workdir):
    """pid that does not exist: status 1, one line with the pid, no file"""
    pid = int(open("/proc/sys/kernel/pid_max").read()) - 1
    done = workdir.wattle("attach", "-o", "run.sqlite", pid)
    assert done.returncode == 1 and str(pid) in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert not list(workdir.folder.iterdir())


@test
def no_pid(workdir):
    """words that are no pid: usage error"""
    for word in ("abc", "-1", "0", "12x", "99999999999999999999"):
        done = workdir.wattle("attach", "-o", "run.sqlite", "--", word)
        assert done.returncode == 2 and word in done.stderr, (word, done)


@test
def wrong_options(workdir):
    """invalid options, whatever the process: status 2, one line that names the option, no file"""
    for words, named in ((["--sub-tracking-file", "x.txt"], "--sub-tracking-file: x.txt"), (["--meta", "x"], "--meta"),
                         (["--tracking-file", "x.txt"], "--tracking-file: x.txt"),
                         (["--overwrite", "--append"], "--append")):
        done = workdir.wattle("attach", "-o", "run.sqlite", *words, os.getpid())
        assert done.returncode == 2 and named in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert not list(workdir.folder.iterdir())


@test
def a_zombie(workdir):
    """zombie process: reported, status 1, no hang"""
    script = ("import os, sys, time\npid = os.fork()\nif pid == 0: os._exit(0)\nprint(pid, "
              "flush=True)\nsys.stdin.read()\n")
    parent = workdir.start("-c", script, program=sys.executable, stdin=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    wait_until(lambda: not is_alive(pid), "the zombie")
    started = time.monotonic()
    done = workdir.wattle("attach", "-q", "-o", "run.sqlite", pid)
    assert time.monotonic() - started < 30 and done.returncode in (0, 1), done
    workdir.finish(parent, b"")


@test
def killed_while_attached(workdir):
    """kill -9 of the process: attach ends normally"""
    burner = start_burner(workdir, "cpu", "20")
    process = workdir.start("attach", "-q", "-o", "run.sqlite", "--json", "-", burner.pid)
    began_s = first_sample(workdir) and cpu_s_of(burner.pid)
    wait_until(lambda: cpu_s_of(burner.pid) - began_s > 0.4, "the burner's work")
    os.kill(burner.pid, signal.SIGKILL)
    burner.wait()
    report = json.loads(workdir.finish(process).stdout)
    assert report["run"]["complete"] is True and report["cpu"]["target_cpu_s"] > 0.02, report["cpu"]


if __name__ == "__main__":
    main()
