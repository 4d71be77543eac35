"""wattle cap set and reset: lifetime of limits, statuses, signals, messages."""
import os
import pathlib
import pty
import signal
import subprocess

import harness
from harness import BUILD, WATTLE, guards_of, test, wait_until

CARDS = ("gpu\nlimits_mw 100000 400000 400000 300000\nlimit_step_mw 1000\n"
         "gpu\nlimits_mw 100000 400000 400000 400000\n")
PACKAGE = "class/powercap/intel-rapl:0"
LONG, SHORT = (f"{PACKAGE}/constraint_{number}_power_limit_uw" for number in (0, 1))
ENABLED = f"{PACKAGE}/enabled"


def furnish(workdir):
    (workdir.folder / "cards").write_text(CARDS)
    tree = workdir.tree("sys", {f"{PACKAGE}/name": "package-0\n", f"{PACKAGE}/energy_uj": "1000\n",
                             f"{PACKAGE}/max_energy_range_uj": "262143328850\n", ENABLED: "0\n",
                             f"{PACKAGE}/constraint_0_name": "long_term\n", LONG: "65000000\n",
                             f"{PACKAGE}/constraint_0_max_power_uw": "65000000\n",
                             f"{PACKAGE}/constraint_1_name": "short_term\n", SHORT: "90000000\n"})
    workdir.environment.update(WATTLE_SYSFS=str(tree), WATTLE_STATE=str(workdir.folder / "state"), WATTLE_HELPER="off",
                            WATTLE_FAKE_NVML=str(workdir.folder / "cards"),
                            WATTLE_NVML=str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"))
    return tree


def calls(workdir, name="cards.limits"):
    """(index, mW or MHz) of each set call."""
    path = workdir.folder / name
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(line.split()[1]), int(line.split()[2])) for line in lines]


def journal(workdir):
    return [path.name for path in (workdir.folder / "state/caps").glob("*") if path.suffix in (".lease", ".standing")]


@test
def statuses(workdir):
    """exit status: the command's; 125, 126, 127 as in `wattle run`; the limit is restored each time"""
    furnish(workdir)
    for command, status in (("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        assert workdir.wattle("cap", "set", "-q", "gpu-0", "200", "--", "sh", "-c", command).returncode == status
    assert workdir.wattle("cap", "set", "gpu-0", "200", "--", "./nowhere").returncode == 127
    assert workdir.wattle("cap", "set", "gpu-0", "200", "--", "/etc/passwd").returncode == 126
    before = calls(workdir)
    for words in (("gpu-0", "20", "--", "touch", "ran"), ("gpu-7", "200", "--", "touch", "ran"), ("gpu-0", "200", "--"),
                  ("gpu-0", "--", "touch", "ran"), ("gpu-0", "200", "--for", "1s", "--", "touch", "ran")):
        assert workdir.wattle("cap", "set", *words).returncode == 125, words
    assert calls(workdir) == before and not (workdir.folder / "ran").exists()
    assert before == [(0, 200000), (0, 300000)] * 5
    assert journal(workdir) == []


@test
def wrong_words(workdir):
    """invalid arguments: refused before any change: 1 with the range, 2 for usage, one line each"""
    furnish(workdir)
    for words, status, says in ((("gpu-0", "20"), 1, "give 100 to 400 W"), (("gpu-0", "401"), 1, "100 to 400 W"),
                                (("gpu-0", "-5"), 2, "unknown option"),
                                (("gpu-0", "much"), 2, "WATTS: 'much' is not valid"),
                                (("gpu-0",), 2, "no limit given"), ((), 2, "no device given"),
                                (("gpu-9", "200"), 1, "gpu-1"), (("gpu-0,gpu-0", "200"), 1, "named twice"),
                                (("gpu-0", "nan"), 2, "WATTS: 'nan' is not valid"),
                                (("gpu-0", "200", "true"), 2, "write --"),
                                (("gpu-0", "200", "--for", "never"), 2, "--for")):
        done = workdir.wattle("cap", "set", *words)
        assert done.returncode == status and says in done.stderr and done.stderr.count("\n") == 1, (words, done)
    for words, status in (((), 2), (("gpu-9",), 1), (("gpu-0", "gpu-1"), 2)):
        assert workdir.wattle("cap", "reset", *words).returncode == status
    assert calls(workdir) == [] and journal(workdir) == []


@test
def streams_are_the_commands(workdir):
    """standard input and output: the command's own; wattle prints one line on standard error, none with --quiet"""
    furnish(workdir)
    done = workdir.wattle("cap", "set", "gpu-0", "200.5", "--", "cat", input=b"\0text")
    assert done.stdout == "\0text"
    assert done.stderr.count("\n") == 1 and "gpu-0: 200 W" in done.stderr and "before 300 W" in done.stderr, done.stderr
    assert workdir.wattle("cap", "set", "-q", "gpu-0", "200", "--", "true").stderr == ""
    assert calls(workdir)[-1] == (0, 300000)


@test
def persistent_limits(workdir):
    """reset: restores the limit from before the first one; --default the device's own; no limit is set twice"""
    furnish(workdir)
    for watts in ("250", "220", "220"):
        assert workdir.wattle("cap", "set", "gpu-0", watts).returncode == 0
    assert workdir.wattle("cap", "reset", "gpu-0").returncode == 0
    assert calls(workdir) == [(0, 250000), (0, 220000), (0, 300000)]
    again = workdir.wattle("cap", "reset", "gpu-0")
    assert again.returncode == 0 and "nothing to reset" in again.stderr
    workdir.wattle("cap", "set", "gpu-0", "250")
    assert workdir.wattle("cap", "reset", "gpu-0", "--default").returncode == 0
    assert calls(workdir)[3:] == [(0, 250000), (0, 400000)] and journal(workdir) == []
    workdir.wattle("cap", "set", "gpu-0", "250")
    assert '"is_persistent": true,\n  "stands": true,\n  "settable"' in workdir.wattle("cap", "get", "gpu-0",
                                                                                       "--json").stdout
    with (workdir.folder / "cards.limits").open("a") as log:
        log.write("1 0 180000 1\n")
    assert '"is_persistent": false,\n  "stands": false,\n  "settable"' in workdir.wattle("cap", "get", "gpu-0",
                                                                                         "--json").stdout
    told = workdir.wattle("cap", "reset", "gpu-0")
    assert "left at 180 W" in told.stderr and calls(workdir)[-1] == (0, 180000) and journal(workdir) == []


@test
def near_limits(workdir):
    """Half a watt is another limit: of wattle's it goes back, of another program's it stays; cards of few limits
    round"""
    furnish(workdir)
    (workdir.folder / "cards").write_text("gpu\nlimits_mw 100000 400000 400000 300000\n")
    workdir.wattle("cap", "set", "gpu-0", "299.5")
    assert workdir.wattle("cap", "reset", "gpu-0").returncode == 0
    assert calls(workdir) == [(0, 299500), (0, 300000)]
    for foreign_mw, says in ((200500, "left at 200.5 W"), (299500, "left at 299.5 W"),
                             (299500, "back to the previous 299.5 W")):
        told = workdir.wattle("cap", "set", "gpu-0", "200", "--", "sh", "-c",
                              f"echo 1 0 {foreign_mw} 1 >> cards.limits")
        assert says in told.stderr, told
        assert calls(workdir)[-1] == (0, foreign_mw)
    (workdir.folder / "cards").write_text("gpu\nlimits_mw 100000 400000 400000 300000\nlimit_step_mw 5000\n")
    told = workdir.wattle("cap", "set", "gpu-0", "253", "--", "true")
    assert told.returncode == 0 and "250 W (rounded by the device)" in told.stderr, told


@test
def persistence_off(workdir):
    """persistent limit on a card that forgets it: a warning; a lease lasts as long as its command"""
    furnish(workdir)
    (workdir.folder / "cards").write_text(CARDS.replace("gpu\n", "gpu\npersistence_off\n", 1))
    for words, says in ((("gpu-0", "200"), True), (("gpu-1", "200"), False), (("gpu-0", "210", "--", "true"), False)):
        told = workdir.wattle("cap", "set", *words)
        assert told.returncode == 0 and ("persistence mode is off" in told.stderr) == says, told


@test
def refused_for_some_time(workdir):
    """several devices, the second refused: the first gets its previous limit back"""
    furnish(workdir)
    assert workdir.wattle("cap", "set", "gpu-0", "250").returncode == 0
    assert workdir.wattle("cap", "set", "gpu-1", "300").returncode == 0
    with workdir.start("cap", "set", "gpu-1", "200", "--", "cat", stdin=subprocess.PIPE) as process:
        wait_until(lambda: (1, 200000) in calls(workdir), "the limit")
        assert workdir.wattle("cap", "set", "gpus", "220", "--for", "60s").returncode == 1
        process.stdin.close()
        process.wait(timeout=harness.TIMEOUT_S)
    assert [mw for index, mw in calls(workdir) if index == 0] == [250000, 220000, 250000]  # which was not removed
    assert workdir.wattle("cap", "reset", "gpu-0").returncode == 0
    assert calls(workdir)[-1] == (0, 300000)


@test
def several_devices(workdir):
    """several devices: all or none, one guard; and clocks beside power"""
    furnish(workdir)
    with workdir.start("cap", "set", "gpus", "200", "--clocks", "900", "--", "cat", stdin=subprocess.PIPE) as process:
        wait_until(lambda: len(calls(workdir)) == 2 and len(calls(workdir, "cards.clocks")) == 2, "the limits")
        assert len(guards_of(process.pid)) == 1
        process.stdin.close()
        process.wait(timeout=harness.TIMEOUT_S)
    assert sorted(calls(workdir)[2:]) == [(0, 300000), (1, 400000)]
    assert sorted(calls(workdir, "cards.clocks")[2:]) == [(0, 0), (1, 0)]
    (workdir.folder / "cards").write_text(CARDS + "error nvmlDeviceSetPowerManagementLimit 4\n")  # of gpu-1
    before = calls(workdir)
    assert workdir.wattle("cap", "set", "gpus", "250").returncode == 1
    assert calls(workdir) == before + [(0, 250000), (0, 300000)] and journal(workdir) == []


@test
def packages(workdir):
    """package: registers are changed together and restored one by one, `enabled` too, also after a kill"""
    tree = furnish(workdir)

    def registers():
        return [int((tree / path).read_text()) for path in (LONG, SHORT, ENABLED)]

    before = registers()
    done = workdir.wattle("cap", "set", "package-0", "40", "--", "cat", tree / LONG, tree / SHORT, tree / ENABLED)
    assert [int(word) for word in done.stdout.split()] == [40000000, 40000000, 1], done
    assert registers() == before
    process = workdir.start("cap", "set", "package-0", "40", "--", "cat", stdin=subprocess.PIPE)
    wait_until(lambda: registers() == [40000000, 40000000, 1], "the limit")
    process.kill()
    wait_until(lambda: registers() == before, "back")
    wait_until(lambda: journal(workdir) == [], "struck")
    workdir.wattle("cap", "set", "package-0", "40")
    (tree / SHORT).write_text("50000000")  # by another program, this one only
    told = workdir.wattle("cap", "reset", "package-0")
    assert registers() == [65000000, 50000000, 0] and "another program" in told.stderr, (registers(), told.stderr)


@test
def refusals_change_nothing(workdir):
    """clocks refused by the driver: no entry in the journal; reset continues after a device that is in use"""
    furnish(workdir)
    cards = workdir.folder / "cards"
    cards.write_text(CARDS.replace("gpu\n", "gpu\nerror nvmlDeviceSetGpuLockedClocks 4\n", 1))
    assert workdir.wattle("cap", "set", "gpu-0", "--clocks", "900").returncode == 1 and journal(workdir) == []
    assert workdir.wattle("cap", "set", "gpu-0", "--clocks", "900", "--",
                          "true").returncode == 125 and journal(workdir) == []
    assert workdir.wattle("cap", "set", "gpu-1", "250").returncode == 0
    holder = workdir.start("cap", "set", "-q", "gpu-0", "200", "--", "cat", stdin=subprocess.PIPE)
    wait_until(lambda: (0, 200000) in calls(workdir), "the limit")
    done = workdir.wattle("cap", "reset", "gpu-0,gpu-1")
    assert done.returncode == 1 and f"pid {holder.pid}" in done.stderr, done.stderr
    assert calls(workdir)[-1] == (1, 400000), "the other limit is restored"
    holder.communicate(timeout=harness.TIMEOUT_S)


@test
def signals_go_on(workdir):
    """SIGTERM and similar signals to wattle: passed to the command, which decides; the limit ends with it"""
    furnish(workdir)
    for name, status in (("TERM", 3), ("HUP", 4), ("USR1", 5), ("INT", 6)):
        script = f"trap 'exit {status}' {name}; echo ready; while :; do sleep 0.01; done"
        process = workdir.start("cap", "set", "-q", "gpu-0", "200", "--", "sh", "-c", script)
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.Signals[f"SIG{name}"])
        assert workdir.finish(process).returncode == status, name
        assert calls(workdir)[-1] == (0, 300000)


@test
def terminal(workdir):
    """Ctrl-C ends the command once; Ctrl-Z stops both and the limit stays until the command ends"""
    furnish(workdir)
    pid, terminal_fd = pty.fork()
    if pid == 0:
        os.chdir(workdir.folder)
        os.execve(WATTLE, [str(WATTLE), "cap", "set", "-q", "gpu-0", "200", "--", "cat"], workdir.environment)
    os.write(terminal_fd, b"go\n")
    seen = b""
    # The terminal's echo, and cat: not a shell, which may take a Ctrl-C itself between two commands.
    while seen.count(b"go") < 2:
        seen += os.read(terminal_fd, 100)
    # The group is an orphan (no parent could continue it): a typed Ctrl-Z has no effect here, SIGSTOP is equivalent.
    os.killpg(pid, signal.SIGSTOP)
    wait_until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T",
               "both stopped")
    assert calls(workdir)[-1] == (0, 200000)
    os.killpg(pid, signal.SIGCONT)
    os.write(terminal_fd, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal_fd)
    assert os.waitstatus_to_exitcode(status) == 130, status
    assert calls(workdir)[-1] == (0, 300000) and journal(workdir) == []


@test
def closed_terminal(workdir):
    """closed terminal: signals only the session leader, wattle, which passes the signal to the command"""
    furnish(workdir)
    pid, terminal_fd = pty.fork()
    if pid == 0:
        os.chdir(workdir.folder)
        os.execve(WATTLE, [str(WATTLE), "cap", "set", "-q", "gpu-0", "200", "--", "sleep", "60"], workdir.environment)
    wait_until(lambda: calls(workdir) != [], "the limit")
    os.close(terminal_fd)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 129, status
    assert calls(workdir)[-1] == (0, 300000) and journal(workdir) == []


@test
def journal_cannot_be_written(workdir):
    """no journal possible: nothing is changed, and the folder is named"""
    furnish(workdir)
    (workdir.folder / "state").write_text("a file")
    for words in (("200",), ("200", "--", "touch", "ran"), ("200", "--for", "5s")):
        done = workdir.wattle("cap", "set", "gpu-0", *words)
        assert done.returncode in (1, 125) and "wattle changes no limit without a journal" in done.stderr, done
    assert calls(workdir) == [] and not (workdir.folder / "ran").exists()


@test
def guard_by_hand(workdir):
    """--cap-guard by hand: refused silently, without effect"""
    furnish(workdir)
    assert workdir.wattle("--cap-guard", "1").returncode == 2
    assert calls(workdir) == [] and not (workdir.folder / "state").exists()


@test
def lost_card(workdir):
    """card lost while limited: the command continues, the journal keeps its limit until the card is back"""
    furnish(workdir)
    (workdir.folder / "cards").write_text(CARDS.replace("limit_step_mw 1000", "lost_when_file lost"))
    process = workdir.start("cap", "set", "gpu-0", "200", "--", "sh", "-c", "touch lost; exit 3")
    done = workdir.finish(process)
    assert done.returncode == 3 and journal(workdir) != [], done
    told = workdir.wattle("cap", "list").stderr
    assert "gpu-0" in told and calls(workdir)[-1] == (0, 200000), told
    (workdir.folder / "lost").unlink()
    told = workdir.wattle("cap", "list").stderr
    assert "gpu-0: restored to 300 W" in told and calls(workdir)[-1] == (0, 300000) and journal(workdir) == [], told


if __name__ == "__main__":
    harness.main()
