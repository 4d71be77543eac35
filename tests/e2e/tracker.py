"""The tracker of include/wattle.h in C programs: each run of programs/tracker.c is one scenario."""
import csv
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from c_programs import build
from harness import BUILD, TESTS, main, near, test, wait_until


class Acted:
    """Output of an act: its lines, and the report if it left one."""

    def __init__(self, workdir, act, status=0, **options):
        self.workdir = workdir
        self.done = workdir.finish(workdir.start(act, program=build(workdir, "tracker"), **options))
        assert self.done.returncode == status, self.done
        self.lines = [line.split(" ", 1) for line in self.done.stdout.splitlines()]
        self.said = dict(self.lines)
        report = workdir.folder / "report.json"
        self.report = json.loads(report.read_text()) if report.exists() else None

    def all(self, name):
        return [value for key, value in self.lines if key == name]

    def expect(self, **expected):
        for name, value in expected.items():
            assert self.said.get(name) == str(value), (name, self.said.get(name), value, self.done)


def leftovers(workdir):
    return [path.name for path in workdir.folder.iterdir() if path.name.startswith("wattle-")]


def whole(workdir, name="run.sqlite"):
    """Waits for the recorder to end its run file, and returns its report."""
    def ended():
        done = workdir.wattle("report", name, "--format", "json")
        return done.returncode == 0 and json.loads(done.stdout)["run"]["complete"] and json.loads(done.stdout)
    return wait_until(ended, "the end of the run file")


def recorder_of(pid):
    """Pid of the wattle that measures a process; others may run beside this test."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"attach" in words and str(pid).encode() in words:
            return int(process.name)
    return None


@test
def states_and_codes(workdir):
    """new, started, stopped, and the calls refused in each; the temporary run file exists until free"""
    acted = Acted(workdir, "states")
    assert acted.all("state") == ["0", "1", "2"], acted.done
    acted.expect(new=0, stop_early=-errno.EPERM, report_early=-errno.EPERM, file_early=0, start=0, error_after="none",
                 start_again=-errno.EALREADY, report_during=-errno.EPERM, exists=1, stop=0, stop_again=-errno.EPERM,
                 start_late=-errno.EPERM, report=0, report_again=0, null=-errno.EINVAL)
    assert acted.said["error"] and not acted.done.stderr and not leftovers(workdir), (acted.done, leftovers(workdir))


@test
def options_that_are_no_options(workdir):
    """invalid units, suffixes, numbers and sizes: new reports them and returns nothing"""
    acted = Acted(workdir, "refused")
    assert {value for key, value in acted.lines if key != "untouched"} == {str(-errno.EINVAL)}, acted.done
    assert set(acted.all("untouched")) == {"1"}, acted.done


@test
def what_the_recorder_refuses(workdir):
    """failure to start: the recorder's message and code, nothing on stderr, no child, no file left; the tracker stays
    new"""
    acted = Acted(workdir, "refused_by_recorder")
    acted.expect(exists=-errno.EEXIST, no_folder=-errno.ENOENT, gpus=-errno.EINVAL, gone=-errno.ESRCH,
                 arguments=-errno.EINVAL, program=-errno.ENOENT, other_program=-errno.EIO, wait=-1, echild=1)
    named = ["there.sqlite", "no/such/folder", "GPU-of-nobody", "2147483646", "--no-such-option", "/no/such/wattle",
             "wattle"]
    assert all(name in error for name, error in zip(named, acted.all("error"), strict=True)), acted.all("error")
    assert set(acted.all("state")) == {"0"} and not acted.done.stderr and not leftovers(workdir), acted.done


@test
def the_report(workdir):
    """CPU time and the report's structure: those of wattle attach; nothing is printed"""
    acted = Acted(workdir, "usage")
    report = acted.report
    assert report["schema"] == "wattle-report/1" and report["run"]["complete"] is True, report["run"]
    assert report["run"]["command"] == [str(workdir.folder / "program"), "usage"], report["run"]
    near(report["cpu"]["target_cpu_s"], 0.7, absolute=0.03)
    assert report["cpu"]["processes_seen"] == 1, report["cpu"]
    assert not acted.done.stderr, acted.done


@test
def a_program_that_waits_for_its_children(workdir):
    """wait(-1) and SIGCHLD: do not see the recorder"""
    acted = Acted(workdir, "waits")
    acted.expect(sigchld_start=0, wait_start=-1, echild=1, met=3, stop=0, sigchld_stop=0, wait_stop=-1)
    assert acted.report["cpu"]["processes_seen"] == 4, acted.report["cpu"]


@test
def a_program_that_ignores_them(workdir):
    """SIGCHLD ignored and all signals blocked: the recorder inherits neither, the program keeps both"""
    Acted(workdir, "ignores_children").expect(stop=0, still_blocked=1)


@test
def a_program_that_inherits_orphans(workdir):
    """recorder: becomes the child of a subreaper, is no part of the target, and leaves no zombie"""
    acted = Acted(workdir, "subreaper")
    acted.expect(stop=0, wait=-1, echild=1)
    assert acted.report["cpu"]["processes_seen"] == 1, acted.report["cpu"]
    near(acted.report["cpu"]["target_cpu_s"], 0.3, absolute=0.03)


@test
def a_program_with_threads(workdir):
    """started while threads burn and fork: all their use from then on counts"""
    acted = Acted(workdir, "threads")
    acted.expect(stop=0)
    assert 0.55 < acted.report["cpu"]["target_cpu_s"] < 1.25, acted.report["cpu"]


@test
def threads_on_one_tracker(workdir):
    """eight threads start and stop it at once: it is stopped in the end"""
    Acted(workdir, "race").expect(state=2)


@test
def a_forked_child(workdir):
    """handle in a forked child: refused, and its free has no effect; the child's CPU time counts"""
    acted = Acted(workdir, "forks")
    acted.expect(child_start=-errno.EBADF, child_stop=-errno.EBADF, child_report=-errno.EBADF, stop=0, report=0)
    near(acted.report["cpu"]["target_cpu_s"], 0.4, absolute=0.04)


@test
def a_crash(workdir):
    """kill -9 of the program: the run file is complete"""
    Acted(workdir, "crash", status=-signal.SIGKILL)
    report = whole(workdir)
    near(report["cpu"]["target_cpu_s"], 0.5, absolute=0.25)  # the process is not waited for: values of the last sample


@test
def an_exit_without_stop(workdir):
    """program exits without stop: the recorder ends too, and the run file is complete"""
    Acted(workdir, "exits", status=3)
    program = workdir.started[-1].pid
    near(whole(workdir)["cpu"]["target_cpu_s"], 0.2, absolute=0.15)
    wait_until(lambda: recorder_of(program) is None, "the end of the recorder")


@test
def an_exec(workdir):
    """exec: closes the descriptor, the recording continues until the process ends"""
    acted = Acted(workdir, "execs")
    acted.expect(burnt=1)
    near(whole(workdir)["cpu"]["target_cpu_s"], 0.8, absolute=0.25)


@test
def all_descriptors_closed(workdir):
    """closefrom(3): stop reports it and writes to no descriptor reused by the program; the run file becomes complete"""
    acted = Acted(workdir, "closes")
    acted.expect(stop=-errno.EIO, leaked=-1, open=1)
    assert "closed" in acted.said["error"], acted.done
    near(whole(workdir)["cpu"]["target_cpu_s"], 0.3, absolute=0.15)


@test
def no_stdio(workdir):
    """program without stdin, stdout and stderr"""
    Acted(workdir, "without_stdio").expect(start=0, stop=0)
    assert whole(workdir)


@test
def a_low_limit(workdir):
    """limit of 24 descriptors: the program keeps it, the recorder uses the hard limit"""
    acted = Acted(workdir, "few_descriptors")
    acted.expect(stop=0, limit=24)
    near(acted.report["cpu"]["target_cpu_s"], 0.2, absolute=0.04)


@test
def two_trackers(workdir):
    """two trackers at once, the first stopped first: each has its own time, the second the spans, neither the other's
    recorder"""
    acted = Acted(workdir, "two")
    acted.expect(stop_first=0, stop=0, environment=0, recording=0)
    near(whole(workdir, "first.sqlite")["cpu"]["target_cpu_s"], 0.3, absolute=0.04)
    near(whole(workdir, "second.sqlite")["cpu"]["target_cpu_s"], 0.5, absolute=0.05)
    assert acted.report["cpu"]["processes_seen"] == 1, acted.report["cpu"]
    assert workdir.rows("select name from span", "first.sqlite") == []
    assert workdir.rows("select name from span order by begin_ns", "second.sqlite") == [("both",), ("one",)]


@test
def the_environment(workdir):
    """WATTLE_RING: set while it runs and removed afterwards, unless an option forbids it"""
    Acted(workdir, "environment").expect(set=1, after=0, kept=0)


@test
def spans_of_the_program(workdir):
    """spans and metrics: go to the tracker's recorder, those of forked children too"""
    acted = Acted(workdir, "spans")
    acted.expect(before=0, during=1, after=0, stop=0)
    rows = dict(workdir.rows("select name, count(*) from span group by name"))
    assert rows == {"step": 10, "child": 1}, rows
    assert workdir.rows("select name, value from user_metric") == [("tokens", 100.0)]


@test
def inside_wattle_run(workdir):
    """tracker under wattle run: gets the spans while it runs, the outer recorder before and after"""
    done = workdir.wattle("run", "-q", "-o", "outer.sqlite", "--", build(workdir, "tracker"), "inside")
    assert done.returncode == 0, done
    assert workdir.rows("select name from span", "run.sqlite") == [("inside",)]
    assert workdir.rows("select name from span order by begin_ns", "outer.sqlite") == [("before",), ("after",)]


@test
def a_tracking_file(workdir):
    """gpu_tracker's file with the requested units; a label that looks like an option"""
    acted = Acted(workdir, "tracking_file")
    with open(workdir.folder / "tracking.csv", newline="") as file:
        rows = list(csv.reader(file))
    static = dict(zip(rows[0], rows[1]))
    assert static["ram_unit"] == "megabytes" and static["time_unit"] == "seconds", static
    assert float(static["n_expected_cores"]) == 1 and len(rows) > 5, rows
    assert acted.report["run"]["labels"]["label"] == "-x a label", acted.report["run"]


@test
def another_process(workdir):
    """options.pid: that process's time counts, its spans and environment are not touched"""
    acted = Acted(workdir, "other")
    acted.expect(recording=0, environment=0, stop=0)
    near(acted.report["cpu"]["target_cpu_s"], 0.6, absolute=0.06)


@test
def a_recorder_that_dies(workdir):
    """kill -9 of the recorder: stop reports it, the tracker is stopped, and written rows are readable"""
    program = build(workdir, "tracker")
    process = workdir.start("killed_recorder", program=program, stdin=subprocess.PIPE)
    pid = wait_until(lambda: (workdir.folder / "run.sqlite").exists() and recorder_of(process.pid), "the recorder")
    wait_until(lambda: workdir.rows("select count(*) from sample")[0][0] > 10, "samples in the file")
    os.kill(pid, signal.SIGKILL)
    done = workdir.finish(process, b"\n")
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said["stop"] == str(-errno.EIO) and said["state"] == "2" and said["report"] == str(-errno.EIO), done
    assert "died" in said["error"], said
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    assert report["run"]["complete"] is False and report["run"]["samples"] > 10, report["run"]


@test
def a_large_program(workdir):
    """program of half a GB: nothing is copied, start and stop take milliseconds of CPU time"""
    said = Acted(workdir, "large").said
    assert int(said["start_us"]) < 20_000 and int(said["stop_us"]) < 20_000, said


@test
def sigint_at_the_terminal(workdir):
    """signal to the program's process group: does not reach the recorder, which ends with the program"""
    program = build(workdir, "tracker")
    process = workdir.start("killed_recorder", program=program, stdin=subprocess.PIPE, start_new_session=True)
    pid = wait_until(lambda: (workdir.folder / "run.sqlite").exists() and recorder_of(process.pid), "the recorder")
    assert os.getpgid(pid) != os.getpgid(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    workdir.finish(process)
    assert whole(workdir)


@test
def disabled(workdir):
    """WATTLE_DISABLE=1: every call succeeds, nothing is started"""
    acted = Acted(workdir, "disabled", env={"WATTLE_DISABLE": "1"})
    acted.expect(new=0, start=0, stop=0, report=0, text="null")


@test
def installed_elsewhere(workdir):
    """no wattle beside the library: found in $PATH"""
    shutil.copy2(BUILD / "src/libwattle.so.0", workdir.folder / "libwattle.so.0")
    folder = workdir.folder / "bin"
    folder.mkdir()
    shutil.copy2(BUILD / "src/cli/wattle", folder / "wattle")
    acted = Acted(workdir, "usage", env={"LD_LIBRARY_PATH": str(workdir.folder),
                                         "PATH": f"/nowhere::{folder}:/usr/bin"})
    acted.expect(start=0, stop=0)


@test
def the_manual(workdir):
    """the examples of docs/tracker.md compile"""
    text = (TESTS.parent / "docs/tracker.md").read_text()
    examples = re.findall(r"^```c\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(examples) == 2, len(examples)
    for example in examples:
        body = example.replace("#include <wattle.h>\n", "")
        source = ("#include <stdio.h>\n#include <stdlib.h>\n#include <wattle.h>\n"
                  f"void train(void), solve(void), f(void);\nvoid f(void)\n{{{body}}}\n")
        subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                        TESTS.parent / "include",
                        "-xc", "-"], input=source.encode(), check=True)


if __name__ == "__main__":
    main()
