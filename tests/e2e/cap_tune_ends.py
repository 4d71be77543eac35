"""`wattle cap tune`: failures before and during the search. After each test the limit is the previous one, or the one
set by another program."""
import os
import pathlib
import shutil
import signal
import time

from gpu_card import Card
from harness import NOBODY, is_alive, main, test, wait_until
from tune_fixture import (CARD, LIBRARY, SHARP, WORK, WORKER, calls, is_as_before, leases, limit_w, program, put, start,
                       tune)


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_at_work(workdir):
    """A limit below the previous one, not the one that is tested before the program starts."""
    wait_until(lambda: len(calls(workdir)) >= 3 and limit_w(workdir) < 400, "a lower limit")


@test
def ctrl_c(workdir):
    """SIGTERM: the limit is restored at once, the command gets the signal, the status reports it"""
    put(workdir, CARD)
    process = start(workdir, "--step", "step", "--", *WORK)
    is_at_work(workdir)
    process.send_signal(signal.SIGTERM)
    done = workdir.finish(process)
    assert done.returncode == 128 + signal.SIGTERM, done
    assert "interrupted" in done.stderr and '"steps"' in done.stdout, (done.stdout, done.stderr)
    is_as_before(workdir)


@test
def killed(workdir):
    """kill -9 of the tuner: the limit is restored within a second, and the command continues"""
    put(workdir, CARD)
    process = start(workdir, "--step", "step", "--", *WORK)
    is_at_work(workdir)
    pid = program(workdir)
    process.kill()
    process.wait()
    wait_until(lambda: limit_w(workdir) == 400, "the limit is back", 10)
    assert is_alive(pid)
    recorder = parent(pid)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not is_alive(pid) and not is_alive(recorder), "the command and its recorder end")


@test
def killed_recorder(workdir):
    """kill -9 of the recorder: the search ends with its status, the limit is restored"""
    put(workdir, CARD)
    process = start(workdir, "--step", "step", "--", *WORK)
    is_at_work(workdir)
    pid = program(workdir)
    os.kill(parent(pid), signal.SIGKILL)
    wait_until(lambda: process.poll() is not None, "the end")
    if is_alive(pid):  # the command holds the pipes
        os.kill(pid, signal.SIGTERM)
    done = workdir.finish(process)
    assert done.returncode == 128 + signal.SIGKILL and "could not be measured" not in done.stderr, done
    is_as_before(workdir)


@test
def another_user(workdir):
    """limit changed by another program: the search stops, that limit stays, the command runs to its end"""
    put(workdir, CARD)
    process = start(workdir, "--step", "step", "--", *WORK, "--seconds", 3)
    wait_until(lambda: len(calls(workdir)) >= 3, "the third limit")
    with open(workdir.folder / "cards.limits", "a") as file:
        file.write(f"{time.monotonic_ns()} 0 245000 1\n")
    done = workdir.finish(process)
    assert done.returncode == 1 and "changed" in done.stderr and "245 W" in done.stderr, done
    assert limit_w(workdir) == 245 and '"seconds": 3' in done.stdout, done.stdout
    assert leases(workdir) == []


@test
def lost_card(workdir):
    """card lost while limited: reported, the command continues; when it is back, the next start of wattle restores the
    limit"""
    put(workdir, Card(more=(*SHARP, "lost_when_file lost")))
    process = start(workdir, "--step", "step", "--", *WORK, "--seconds", 3)
    is_at_work(workdir)
    (workdir.folder / "lost").touch()
    done = workdir.finish(process)
    assert done.returncode == 1 and "gpu-0" in done.stderr and '"seconds": 3' in done.stdout, done
    (workdir.folder / "lost").unlink()
    assert "restored to 400 W" in workdir.wattle("cap", "list").stderr
    is_as_before(workdir)


@test
def failing_command(workdir):
    """failing command: the search ends with its status, and the limit is restored"""
    put(workdir, CARD)
    _, done = tune(workdir, "--step", "step", "--", "sh", "-c", f"{WORKER} --step-ms 2 --seconds 1.2; exit 7", status=7)
    assert "failed with status 7" in done.stderr, done.stderr
    is_as_before(workdir)


@test
def runs_without_steps(workdir):
    """command that ends each time without a step: after three times a message with remedies"""
    put(workdir, CARD)
    _, done = tune(workdir, "--step", "step", "--", "sh", "-c", "echo ran >> runs", status=1)
    assert "ended 3 times" in done.stderr and "omit --step" in done.stderr, done.stderr
    assert (workdir.folder / "runs").read_text() == "ran\n" * 3
    is_as_before(workdir)


@test
def no_such_step(workdir):
    """no step of that name: the message lists the names; the command continues"""
    put(workdir, CARD)
    process = start(workdir, "--step", "stpe", "--patience", "500ms", "--", *WORK, "--seconds", 1.5)
    done = workdir.finish(process)
    assert done.returncode == 1 and '"seconds": 1.5' in done.stdout, done
    assert "no step named stpe" in done.stderr and "names recorded so far: step" in done.stderr, done.stderr
    is_as_before(workdir)


@test
def refused(workdir):
    """impossible requests: refused with one line before anything runs"""
    put(workdir, CARD)
    holder = workdir.start("cap", "set", "gpu-0", 300, "--", "sleep", 60)
    wait_until(lambda: limit_w(workdir) == 300, "the other program's lease")
    (workdir.folder / "there.sqlite").write_text("")
    run = ["--", "touch", "it-ran"]
    for status, word, options in [
            (1, "wattle cap set", ["gpu-0", *run]),
            (1, "gpu-7", ["gpu-7", *run]),
            (2, "--objective", ["gpu-0", "--objective", "speed", *run]),
            (2, "--caps", ["gpu-0", "--caps", "1", *run]),
            (2, "--pid", ["gpu-0", "--pid", "1", *run]),
            (2, "--pid", ["gpu-0", "--pid", "1"]),
            (2, "no command", ["gpu-0"]),
            (2, "no device", run),
            (2, "--nvtx", ["gpu-0", "--nvtx", *run]),
            (2, "Is a directory", ["gpu-0", "--csv", ".", *run]),
            (2, "/proc/x", ["gpu-0", "--html", "/proc/x", *run]),
            (2, "--json", ["gpu-0", "--json", "nowhere/x", *run]),
            (1, "there.sqlite", ["gpu-0", "-o", "there.sqlite", *run]),
            (127, "not found", ["gpu-0", "--", "no-such-command"])]:
        done = workdir.wattle("cap", "tune", *options)
        assert done.returncode == status and word in done.stderr and done.stderr.count("\n") == 1, (options, done)
    assert limit_w(workdir) == 300 and not (workdir.folder / "it-ran").exists()
    holder.terminate()
    holder.wait()


@test
def not_allowed(workdir):
    """user without permission, and machine without devices: one line with the remedy; nothing runs"""
    put(workdir, Card(more=("set_uid 0",)))
    wattle, _ = workdir.for_everybody()
    library = shutil.copy2(LIBRARY, workdir.folder / "nvml.so")
    if os.geteuid() == 0:
        done = workdir.finish(workdir.start("cap", "tune", "gpu-0", "--", "touch", "it-ran", program=wattle,
                                            user=NOBODY,
                                            env={"WATTLE_NVML": str(library), "XDG_STATE_HOME": str(workdir.folder),
                                                 "WATTLE_STATE": None}))
        assert done.returncode == 1 and "sudo" in done.stderr and done.stderr.count("\n") == 1, done
    done = workdir.wattle("cap", "tune", "gpus", "--", "touch", "it-ran", env={"WATTLE_NVML": "/nonexistent.so"})
    assert done.returncode == 1 and "has a limit of power" in done.stderr, done
    assert not (workdir.folder / "it-ran").exists() and calls(workdir) == []


@test
def refused_by_the_driver(workdir):
    """driver that refuses changes of any of the cards: one line, and nothing runs"""
    put(workdir, CARD, Card(more=("error nvmlDeviceSetPowerManagementLimit 4",)))
    for device, *options in (["gpu-1"], ["gpus"], ["gpus", "--each"]):
        done = workdir.wattle("cap", "tune", device, *options, "--step", "step", "--", "touch", "it-ran")
        assert done.returncode == 1 and "gpu-1" in done.stderr and done.stderr.count("\n") == 1, done
        assert limit_w(workdir) == 400 and leases(workdir) == [], (calls(workdir), leases(workdir))
    assert not (workdir.folder / "it-ran").exists() and {gpu for gpu, _ in calls(workdir)} == {0}, calls(workdir)


main()
