"""Ctrl-Z, kill -STOP and signals to whole groups: the run survives, counts correctly, and ends properly."""
import json
import os
import pty
import signal
import sys
import time

from harness import BUILD, BURNER, TESTS, WATTLE, main, near, test, wait_until

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
COMMAND = ["run", "-q", "-o", "run.sqlite", "--json", "report.json", "--", BURNER, "cpu", "1.5"]


def state_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0].decode()


def child_of(pid):
    def find():
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [int(word) for word in children.read().split()]
    return wait_until(find, "the command")[0]


def burns(pid):
    """Whether the command has begun to compute: wattle has started it and finished its own preparations."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return b"(burner)" in stat.read()


def check(workdir, stopped_s):
    report = json.loads((workdir.folder / "report.json").read_text())
    near(report["cpu"]["target_cpu_s"], 1.5, absolute=0.05)
    assert report["run"]["complete"] is True and report["run"]["exit_code"] == 0, report["run"]
    assert report["run"]["duration_s"] > 1.5 + stopped_s * 0.9, report["run"]
    return report


def stop_and_go(send, pids, seconds=1.5):
    """Stops all of the processes, checks that they are stopped, and continues them."""
    send(signal.SIGSTOP)
    wait_until(lambda: all(state_of(pid) == "T" for pid in pids), "the stop")
    time.sleep(seconds)
    send(signal.SIGCONT)


@test
def a_stopped_group(workdir):
    """kill -STOP and -CONT of wattle's group: no energy and no CPU time is lost, missing samples are counted as lost"""
    top = workdir.folder / "sim"
    simulator = workdir.start(top, "--zone", "package-0=50", "--range", "package-0=40000000", program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    process = workdir.start(*COMMAND, env={"WATTLE_SYSFS": str(top)}, start_new_session=True)
    command = child_of(process.pid)
    wait_until(lambda: burns(command), "the burner")
    time.sleep(0.4)
    stop_and_go(lambda number: os.killpg(process.pid, number), [process.pid, command])
    assert workdir.finish(process).returncode == 0
    report = check(workdir, 1.5)
    simulator.terminate()
    simulator.wait()
    start_ns, end_ns = workdir.rows("select start_ns, end_ns from segment")[0]
    near(report["energy"]["total_j"], expected_values.energy_j(expected_values.load(top), "package-0", start_ns,
                                                               end_ns), relative=0.02)
    assert report["run"]["lost_samples"] >= 10, report["run"]


@test
def a_killed_recorder(workdir):
    """kill -9 of wattle: the report has wattle's own figures from its samples, and null for the others"""
    process = workdir.start(*COMMAND[:-1], "60")
    command = child_of(process.pid)
    try:
        wait_until(lambda: (workdir.folder / "run.sqlite").exists() and
                   workdir.rows("select count(*) from sample where self_rss_bytes is not null")[0][0] >= 2, "samples")
        process.kill()
        process.wait()
    finally:
        os.kill(command, signal.SIGKILL)
    cpu_ns, rss_bytes = workdir.rows("select max(self_cpu_ns), max(self_rss_bytes) from sample")[0]
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    assert report["run"]["complete"] is False, report["run"]
    assert report["self"]["max_rss_bytes"] == rss_bytes > 1e6 and report["self"]["wakeups"] is None, report["self"]
    near(report["self"]["cpu_s"], cpu_ns / 1e9, relative=1e-9)
    near(report["self"]["cpu_percent"], 100 * cpu_ns / 1e9 / report["run"]["duration_s"], relative=1e-6)


@test
def a_stopped_command(workdir):
    """only the command is stopped: wattle continues sampling"""
    process = workdir.start(*COMMAND)
    command = child_of(process.pid)
    wait_until(lambda: burns(command), "the burner")
    stop_and_go(lambda number: os.kill(command, number), [command])
    assert workdir.finish(process).returncode == 0
    report = check(workdir, 1.5)
    assert report["run"]["samples"] > 20 and report["run"]["lost_samples"] < report["run"]["samples"] / 2, report["run"]


@test
def stopped_before_it_ends(workdir):
    """only wattle is stopped while its command ends: the end is detected afterwards, the status is the command's"""
    process = workdir.start("run", "-q", "-o", "run.sqlite", "--json", "report.json", "--", "sh", "-c",
                            "sleep 0.5; exit 9")
    command = child_of(process.pid)
    wait_until(lambda: b"(sh)" in open(f"/proc/{command}/stat", "rb").read(), "the shell")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(command) == "Z", "the end of the command")
    process.send_signal(signal.SIGCONT)
    assert workdir.finish(process).returncode == 9
    assert json.loads((workdir.folder / "report.json").read_text())["run"]["complete"] is True


@test
def a_signal_to_the_group(workdir):
    """SIGTERM and SIGINT to the whole group, as `timeout` and `kill -- -PID` send them: the run ends and is complete"""
    for number in (signal.SIGTERM, signal.SIGINT):
        process = workdir.start("run", "-q", "--overwrite", "-o", "run.sqlite", "--json", "report.json", "--", BURNER,
                                "cpu",
                                "20", start_new_session=True)
        command = child_of(process.pid)
        wait_until(lambda: burns(command), "the burner")
        time.sleep(0.3)
        os.killpg(process.pid, number)
        assert workdir.finish(process).returncode == 128 + number
        report = json.loads((workdir.folder / "report.json").read_text())
        assert report["run"]["complete"] is True and report["run"]["exit_code"] == 128 + number, report["run"]


@test
def the_stop_key(workdir):
    """Ctrl-Z in a shell with job control: stops wattle and its command, and fg continues both"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workdir.folder)
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"],
                  {**workdir.environment, "TERM": "dumb", "PS1": "$ "})
    shown = b""

    def see(words, typed=None):
        nonlocal shown
        if typed is not None:
            os.write(terminal, typed)
        end = time.monotonic() + 30
        while words not in shown and time.monotonic() < end:
            shown += os.read(terminal, 65536)
        assert words in shown, shown.decode()
        shown = shown[shown.index(words) + len(words):]

    try:
        see(b"$ ", b"\n")
        line = " ".join(f"'{word}'" for word in [WATTLE, *COMMAND])
        os.write(terminal, f"{line}; echo status $?\n".encode())
        wattle = child_of(pid)
        command = child_of(wattle)
        wait_until(lambda: burns(command), "the burner")
        see(b"Stopped", b"\x1a")
        wait_until(lambda: state_of(wattle) == state_of(command) == "T", "the stop of both")
        time.sleep(1)
        see(b"self_cpu_s", b"fg\n")
        wait_until((workdir.folder / "report.json").exists, "the report")
        see(b"$ ", b"\n")
        os.write(terminal, b"exit\n")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    check(workdir, 1)


if __name__ == "__main__":
    main()
