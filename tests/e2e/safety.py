"""Failures with limited effect: a killed recorder, a full disk, a removed folder, a reader at the wrong time."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time

from harness import BURNER, NOBODY, WATTLE, Skip, locked_by_a_reader, main, near, test, wait_until


def in_own_mounts(workdir, script, *options):
    """Runs a shell script that may mount in a private mount namespace; $WATTLE and $BURNER are the programs."""
    probe = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True)
    if probe.returncode != 0:
        raise Skip("mounting needs root")
    return workdir.finish(workdir.start("-m", "sh", "-ec", script, *options, program="unshare",
                                  env={"WATTLE": str(WATTLE), "BURNER": str(BURNER)}))


@test
def killed_recorder(workdir):
    """kill -9 of the recorder at many moments: the command continues, the file opens with all rows up to the last
    second"""
    for number, moment_s in enumerate((0.0, 0.03, 0.3, 0.9, 1.02, 1.5, 2.1)):
        name = f"{number}.sqlite"
        process = workdir.start("run", "-q", "-i", "5ms", "-o", name, "--", "sh", "-c",
                             f": > began{number}; sleep 3; : > ended{number}")
        wait_until((workdir.folder / f"began{number}").exists, "the command's start")
        time.sleep(moment_s)
        process.kill()
        killed_ns = time.monotonic_ns()
        process.wait()
        report = json.loads(workdir.wattle("report", "--format", "json", name).stdout)
        assert report["run"]["complete"] is False, report["run"]
        assert workdir.rows("pragma integrity_check", name) == [("ok",)]
        last_ns = workdir.rows("select max(t_ns) from sample", name)[0][0]
        if moment_s > 1:
            assert killed_ns - last_ns < 1.3e9, (moment_s, (killed_ns - last_ns) / 1e9)
    for number in range(7):
        wait_until((workdir.folder / f"ended{number}").exists, "the end of a command whose recorder was killed")


@test
def appended_after_a_kill(workdir):
    """interrupted run: can be appended to; the report counts both segments and is not complete"""
    process = workdir.start("run", "-q", "-o", "run.sqlite", "--", "sh", "-c", "echo $$ > pid; exec sleep 20")
    wait_until(lambda: (workdir.folder / "pid").exists() and (workdir.folder / "pid").read_text(),
               "the command's start")
    wait_until(lambda: workdir.rows("select count(*) from sample")[0][0] > 8, "samples in the file")
    first_s = workdir.rows("select (max(t_ns) - min(t_ns)) / 1e9 from sample")[0][0]
    process.kill()
    process.wait()
    os.kill(int((workdir.folder / "pid").read_text()), signal.SIGKILL)
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--json", "-", "--", "sleep", "0.5")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert report["run"]["segments"] == 2 and report["run"]["complete"] is False, report["run"]
    assert report["run"]["duration_s"] > first_s + 0.5, (report["run"], first_s)


@test
def stopped_recorder(workdir):
    """recorder stopped for a while: reports the number of lost samples, and times stay correct"""
    begin_s = time.monotonic()
    process = workdir.start("run", "-q", "-i", "20ms", "-o", "run.sqlite", "--json", "-", "--", "sh", "-c",
                         ": > began; exec sleep 1.5")
    wait_until((workdir.folder / "began").exists, "the command's start")
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    report = json.loads(workdir.finish(process).stdout)
    assert report["run"]["lost_samples"] >= 15, report["run"]
    assert 1.45 < report["run"]["duration_s"] < time.monotonic() - begin_s, report["run"]
    due = report["run"]["duration_s"] / 0.02
    near(report["run"]["lost_samples"] + report["run"]["samples"], due, absolute=0.15 * due)


@test
def full_disk(workdir):
    """disk full: the command continues with its own status, the loss is reported, stored rows are readable"""
    script = """
        mkdir small; mount -t tmpfs -o size=300k tmpfs small
        status=0
        "$WATTLE" run -i 2ms -o small/run.sqlite -- sh -c '
            sleep 1.2; cat /dev/zero > small/fill 2>/dev/null; sleep 2.5; echo went on; exit 5' || status=$?
        echo "status $status"
        rm -f small/fill
        cp small/run.sqlite* .
    """
    done = in_own_mounts(workdir, script)
    assert done.stdout == "went on\nstatus 5\n", done
    assert "run.sqlite" in done.stderr and ("space" in done.stderr or "full" in done.stderr), done.stderr
    report = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    assert report["run"]["samples"] > 100, report["run"]


@test
def full_from_the_start(workdir):
    """no space for a run file at all: 125, and nothing is started"""
    script = """
        mkdir small; mount -t tmpfs -o size=4k tmpfs small
        cat /dev/zero > small/fill 2>/dev/null || true
        status=0
        "$WATTLE" run -o small/run.sqlite -- touch started || status=$?
        echo "status $status"
    """
    done = in_own_mounts(workdir, script)
    assert done.stdout == "status 125\n" and "run.sqlite" in done.stderr, done
    assert not (workdir.folder / "started").exists()


@test
def read_only_place(workdir):
    """read-only file system: 125 with the file's name"""
    script = """
        mkdir ro; mount -t tmpfs -o ro tmpfs ro
        status=0
        "$WATTLE" run -o ro/run.sqlite -- touch started || status=$?
        "$WATTLE" run -o fine.sqlite --tracking-file ro/track.csv -- touch started || status=$status$?
        echo "status $status"
    """
    done = in_own_mounts(workdir, script)
    assert done.stdout == "status 125125\n", done
    assert "ro/run.sqlite" in done.stderr and "ro/track.csv" in done.stderr, done.stderr
    assert not (workdir.folder / "started").exists() and not (workdir.folder / "fine.sqlite").exists()


@test
def removed_folder(workdir):
    """folder of the run file removed: the command is not affected, its status is returned"""
    (workdir.folder / "out").mkdir()
    done = workdir.wattle("run", "-o", "out/run.sqlite", "--", "sh", "-c",
                       "sleep 0.5; rm -r out; sleep 1.5; echo went on; exit 6")
    assert (done.returncode, done.stdout) == (6, "went on\n"), done
    assert "out/run.sqlite" in done.stderr, done.stderr


@test
def report_that_cannot_be_written(workdir):
    """--json to a path that is gone in the end: reported, and the status is the command's"""
    (workdir.folder / "out").mkdir()
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--json", "out/r.json", "--", "sh", "-c",
                          "rmdir out; exit 7")
    assert done.returncode == 7 and "out/r.json" in done.stderr, done


@test
def sqlite_reads_meanwhile(workdir):
    """sqlite3 program: reads the file during the run, and sees it grow"""
    if shutil.which("sqlite3") is None:
        raise Skip("no sqlite3 program")
    process = workdir.start("run", "-q", "-i", "10ms", "-o", "run.sqlite", "--", "sleep", "4")

    def samples():
        done = subprocess.run(["sqlite3", "-readonly", "run.sqlite", "select count(*) from sample"], cwd=workdir.folder,
                              capture_output=True, text=True)
        return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0

    first = wait_until(samples, "the first rows")
    wait_until(lambda: samples() > first, "more rows")
    assert process.poll() is None
    report = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    assert report["run"]["complete"] is False and report["run"]["samples"] >= first
    assert workdir.finish(process).returncode == 0


@test
def a_reader_that_holds_a_lock(workdir):
    """reader with a transaction open all the time: no sample is lost"""
    process = workdir.start("run", "-q", "-i", "20ms", "-o", "run.sqlite", "--json", "-", "--", "sleep", "3")
    script = ("import sqlite3, sys\n"
              "c = sqlite3.connect('file:run.sqlite?mode=ro', uri=True)\n"
              "c.execute('begin'); c.execute('select count(*) from sample').fetchall()\n"
              "sys.stdin.read()\n")
    wait_until((workdir.folder / "run.sqlite").exists, "the run file")
    time.sleep(0.3)
    reader = workdir.start("-c", script, program="/usr/bin/python3", stdin=subprocess.PIPE)
    done = workdir.finish(process)
    workdir.finish(reader, b"")
    report = json.loads(done.stdout)
    assert report["run"]["complete"] and report["run"]["samples"] > 75, report["run"]
    assert report["run"]["samples"] + report["run"]["lost_samples"] > 130, report["run"]


@test
def two_recorders_one_file(workdir):
    """two recorders for one file: the second is refused"""
    process = workdir.start("run", "-q", "-o", "run.sqlite", "--", "sh", "-c", ": > began; exec sleep 1.5")
    wait_until((workdir.folder / "began").exists, "the first recorder")
    for option in ([], ["--append"], ["--overwrite"]):
        done = workdir.wattle("run", "-q", *option, "-o", "run.sqlite", "--", "touch", "started")
        assert done.returncode == 125 and "run.sqlite" in done.stderr, (option, done)
    assert not (workdir.folder / "started").exists()
    assert workdir.finish(process).returncode == 0
    assert workdir.rows("pragma integrity_check") == [("ok",)]


@test
def appended_under_a_readers_lock(workdir):
    """reader that holds every lock it can on a run file: does not stop --append; a second recorder is still refused"""
    assert workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true").returncode == 0
    lock = workdir.folder / "run.sqlite-lock"
    with locked_by_a_reader(workdir.folder / "run.sqlite"):
        process = workdir.start("run", "-q", "--append", "-o", "run.sqlite", "--", "sh", "-c",
                                ": > began; exec sleep 1")
        wait_until((workdir.folder / "began").exists, "the second segment")
        assert lock.stat().st_mode & 0o777 == 0o600
        for option in ("--append", "--overwrite"):
            done = workdir.wattle("run", "-q", option, "-o", "run.sqlite", "--", "touch", "started")
            assert done.returncode == 125 and "another recorder" in done.stderr, (option, done)
        assert workdir.finish(process).returncode == 0
        assert json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)["run"]["segments"] == 2
    with locked_by_a_reader(workdir.folder / "run.sqlite", all_bytes=True):
        done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", "touch", "started")
        assert done.returncode == 125 and "fuser" in done.stderr and done.stderr.count("\n") == 1, done
    assert not (workdir.folder / "started").exists() and not lock.exists()


@test
def new_recording_holds_the_lock(workdir):
    """recording that creates or replaces a file holds FILE-lock: a second one is refused, also before the file exists
    or while a reader blocks the mark"""
    lock = workdir.folder / "run.sqlite-lock"
    for option in ([], ["--overwrite"]):
        process = workdir.start("run", "-q", *option, "-o", "run.sqlite", "--", "sh", "-c", ": > began; exec sleep 1")
        wait_until((workdir.folder / "began").exists, "the recorder")
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                raise AssertionError("nobody holds the lock")
            except BlockingIOError:
                pass
        assert lock.stat().st_mode & 0o777 == 0o600
        (workdir.folder / "run.sqlite").rename(workdir.folder / "moved.sqlite")  # its mark disappears with it
        done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "touch", "started")
        assert done.returncode == 125 and "another recorder" in done.stderr and done.stderr.count("\n") == 1, done
        (workdir.folder / "moved.sqlite").rename(workdir.folder / "run.sqlite")
        assert workdir.finish(process).returncode == 0 and not lock.exists()
        (workdir.folder / "began").unlink()
    assert not (workdir.folder / "started").exists()


@test
def killed_while_it_appends(workdir):
    """lock file of a killed recorder: taken over; one of another user: named in the refusal"""
    assert workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true").returncode == 0
    lock = workdir.folder / "run.sqlite-lock"
    process = workdir.start("run", "-q", "--append", "-o", "run.sqlite", "--", "sh", "-c", ": > began; exec sleep 1")
    wait_until((workdir.folder / "began").exists, "the second segment")
    process.kill()
    process.wait()
    assert lock.exists()
    assert workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", "true").returncode == 0
    assert not lock.exists()
    lock.symlink_to("elsewhere")
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", "touch", "started")
    assert done.returncode == 125 and "run.sqlite-lock" in done.stderr and done.stderr.count("\n") == 1, done
    assert not (workdir.folder / "elsewhere").exists() and not (workdir.folder / "started").exists()
    if os.geteuid() == 0:
        lock.unlink()
        lock.touch()
        os.chown(lock, NOBODY, NOBODY)
        done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", "touch", "started")
        assert done.returncode == 125 and "run.sqlite-lock" in done.stderr and lock.exists(), done


@test
def few_descriptors(workdir):
    """few file descriptors: a large tree is still followed"""
    done = workdir.finish(workdir.start("-c", f"ulimit -n 40; exec '{WATTLE}' run -q -o run.sqlite --json - -- "
                                  f"'{BURNER}' bomb 6 20", program="/bin/sh"))
    assert done.returncode == 0, done
    expected_values, _, rest = done.stdout.partition("\n")
    expected_values, cpu = json.loads(expected_values), json.loads(rest)["cpu"]
    expected = expected_values["self_cpu_s"] + expected_values["children_cpu_s"]
    assert abs(cpu["target_cpu_s"] - expected) < 0.02 * expected, (cpu, expected)


@test
def short_files_only(workdir):
    """ulimit -f: a run file that cannot be created is reported; one that cannot grow does not affect the command"""
    def limited(blocks, script):
        return workdir.finish(workdir.start("-c",
                                            f"ulimit -f {blocks}; exec '{WATTLE}' run -o run.sqlite -i 1ms -- sh -c "
                                            f"'{script}'",
                                            program="/bin/bash"))
    done = limited(40, "echo started")
    assert done.returncode == 125 and "run.sqlite" in done.stderr and not done.stdout, done
    done = limited(100, "sleep 1; grep SigIgn /proc/self/status; exit 7")
    assert done.returncode == 7 and "run.sqlite" in done.stderr, done
    ignored = int(done.stdout.split()[-1], 16)
    assert ignored & (1 << (signal.SIGXFSZ - 1) | 1 << (signal.SIGPIPE - 1)) == 0, done


@test
def a_command_that_ends_at_once(workdir):
    """true: shorter than any interval, and still a full report"""
    for _ in range(10):
        report, _ = workdir.report("--", "true")
        assert report["run"]["samples"] >= 1 and 0 < report["cpu"]["target_cpu_s"] < 0.2, report
        assert report["memory"]["peak_rss_bytes"] > 0, report["memory"]


@test
def closed_streams(workdir):
    """no stdin, stdout and stderr: the command's output does not end up in the run file"""
    script = (f"exec '{WATTLE}' run -q -o run.sqlite --tracking-file t.csv -- sh -c 'echo a; echo b >&2; exit 3' <&- "
              ">&- 2>&-")
    assert workdir.finish(workdir.start("-c", script, program="/bin/sh")).returncode == 3
    assert workdir.rows("pragma integrity_check") == [("ok",)]
    assert (workdir.folder / "t.csv").read_text().startswith("ram_unit,")


@test
def full_stdout(workdir):
    """report that cannot be written to stdout: reported; run still returns the command's status"""
    with open("/dev/full", "wb") as full:
        done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--json", "-", "--", "sh", "-c", "exit 9", stdout=full)
        assert done.returncode == 9 and done.stderr, done
        done = workdir.wattle("report", "run.sqlite", stdout=full)
        assert done.returncode == 1 and done.stderr, done


@test
def odd_procfs(workdir):
    """empty and invalid /proc: the command runs, its status is returned, unknown values are null"""
    garbled = {"stat": "cpu x y z\n", "meminfo": "\x00\xff", "cpuinfo": "processor : many\n", "1/stat": "("}
    for files in ({}, garbled):
        top = workdir.tree("proc", files)
        report, _ = workdir.report("--", "sh", "-c", "exit 4", status=4, env={"WATTLE_PROCFS": str(top)})
        assert report["resource_usage"]["cpu_utilization"]["system"]["mean_sum_percent"] is None, report


@test
def many_words(workdir):
    """command line of a megabyte: runs and is stored"""
    words = ["x" * 1000] * 1000
    report, _ = workdir.report("--", "true", *words)
    assert report["run"]["command"] == ["true", *words]


@test
def unprivileged(workdir):
    """unprivileged user: the same CPU figures"""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    wattle, burner = workdir.for_everybody()
    done = workdir.finish(workdir.start("run", "-q", "-o", "run.sqlite", "--json", "-", "--", burner, "children", "300",
                                        "2",
                                        program=wattle, user=NOBODY, group=NOBODY))
    expected_values, _, rest = done.stdout.partition("\n")
    expected_values, cpu = json.loads(expected_values), json.loads(rest)["cpu"]
    near(cpu["target_cpu_s"], expected_values["self_cpu_s"] + expected_values["children_cpu_s"], relative=0.01)


if __name__ == "__main__":
    main()
