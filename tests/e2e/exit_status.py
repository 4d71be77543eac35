"""Exit statuses, streams and signals: wattle run must be transparent to the command."""
import os
import signal
import subprocess
import sys

from harness import BURNER, WATTLE, is_alive, main, test, wait_until


@test
def the_command_s_own_status(workdir):
    """exit status: that of the command"""
    for status in (0, 1, 7, 124, 125, 126, 127, 128, 255):
        done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--", "sh", "-c", f"exit {status}")
        assert done.returncode == status, (status, done)


@test
def killed_by_a_signal(workdir):
    """command ended by signal N: 128+N, also in the report"""
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP, signal.SIGRTMIN):
        report, _ = workdir.report("--", "sh", "-c", f"kill -{int(number)} $$", status=128 + number)
        assert report["run"]["exit_code"] == 128 + number, report["run"]


@test
def not_found(workdir):
    """command that does not exist: 127, one line that names it, and no file remains"""
    for command in ("wattle-no-such-program", "./nor-this", "/not/this/either"):
        done = workdir.wattle("run", "-o", "run.sqlite", "--", command)
        assert done.returncode == 127, done
        assert command in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert not list(workdir.folder.iterdir()), list(workdir.folder.iterdir())


@test
def not_executable(workdir):
    """file without execute permission, and a folder: 126"""
    (workdir.folder / "data").write_text("no program\n")
    for command in ("./data", "/usr"):
        done = workdir.wattle("run", "-o", "run.sqlite", "--", command)
        assert done.returncode == 126, done
        assert command in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert not (workdir.folder / "run.sqlite").exists()


@test
def own_failures(workdir):
    """wattle fails before the start: 125, and nothing was started"""
    for arguments in (["--no-such-option"], ["-i", "0"], ["-o", "/no/such/folder/x.sqlite"], []):
        command = ["--", "touch", "started"] if arguments else []
        done = workdir.wattle("run", *arguments, *command)
        assert done.returncode == 125, (arguments, done)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert not (workdir.folder / "started").exists()


@test
def usage_of_the_rest(workdir):
    """other commands: 2 for a usage error, 1 for a failure, and stdout stays empty"""
    for arguments, status in ((["report"], 2), (["nonsense"], 2), ([], 2), (["report", "--nonsense", "x"], 2),
                              (["report", "not-there.sqlite"], 1), (["attach", "not-a-pid"], 2)):
        done = workdir.wattle(*arguments)
        assert done.returncode == status, (arguments, done)
        assert done.stdout == "" and done.stderr, done


@test
def version_and_help(workdir):
    """--version and --help: on stdout with status 0; each command has a help of its own"""
    for arguments in (["--version"], ["--help"], ["run", "--help"], ["attach", "--help"], ["report", "--help"],
                      ["list", "--help"], ["sensors", "--help"], ["export", "--help"], ["bench", "--help"]):
        done = workdir.wattle(*arguments)
        assert done.returncode == 0 and done.stdout and not done.stderr, (arguments, done)
        with open("/dev/full", "wb") as full:
            process = workdir.start(*arguments, stdout=full)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 1 and b"standard output" in said, (arguments, said)
    assert "--interval" in workdir.wattle("run", "--help").stdout


@test
def streams_are_the_command_s(workdir):
    """stdin, stdout and stderr: the command's own, byte for byte; wattle's summary is on stderr only"""
    data = bytes(range(256)) * 1000
    done = workdir.start("run", "-q", "-o", "run.sqlite", "--", "cat", stdin=subprocess.PIPE)
    out, err = done.communicate(data, timeout=60)
    assert (done.returncode, out, err) == (0, data, b"")
    done = workdir.wattle("run", "-o", "second.sqlite", "--", "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n") and len(done.stderr.splitlines()) > 3, done.stderr


@test
def json_on_stdout(workdir):
    """--json -: the report is on stdout after the command's output"""
    import json
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--json", "-", "--", "echo", "first")
    first, _, rest = done.stdout.partition("\n")
    assert first == "first" and json.loads(rest)["schema"] == "wattle-report/1"


@test
def a_closed_stdout(workdir):
    """reader that exits: ends the command by SIGPIPE, as without wattle"""
    pipeline = f"'{WATTLE}' run -q -o run.sqlite -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = workdir.finish(workdir.start("-c", pipeline, program="/bin/bash"))
    assert done.stdout == f"y\n{128 + signal.SIGPIPE}\n", done


@test
def descriptors_are_not_leaked(workdir):
    """descriptors: the command gets those that wattle was given and no others"""
    read, write = os.pipe()
    script = "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd') if int(f) > 2))"
    plain = subprocess.run([sys.executable, "-c", script], pass_fds=[read], capture_output=True, text=True)
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", sys.executable, "-c", script, pass_fds=[read])
    os.close(read)
    os.close(write)
    assert done.stdout == plain.stdout, (done.stdout, plain.stdout)


@test
def the_child_s_signals_are_as_they_were(workdir):
    """signals: the command starts with the signal mask and the ignored signals of wattle's start"""
    script = ["sh", "-c", "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"]
    plain = subprocess.run(script, capture_output=True, text=True)
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", *script)
    assert done.stdout == plain.stdout, (done.stdout, plain.stdout)
    script = ["sh", "-c", "trap '' INT CHLD; exec \"$@\"", "sh"]
    look = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    plain = subprocess.run([*script, *look], capture_output=True, text=True)
    done = workdir.finish(workdir.start(*script[1:], WATTLE, "run", "-q", "-o", "2.sqlite", "--", *look,
                                        program="/bin/sh"))
    assert done.stdout == plain.stdout, (done.stdout, plain.stdout)


def forwarded(workdir, number, status):
    marker = workdir.folder / "ready"
    process = workdir.start("run", "-o", "run.sqlite", "--json", "report.json", "--", "sh", "-c",
                         "trap 'echo got INT; exit 3' INT; trap 'echo got TERM; exit 4' TERM; : > ready; "
                         "while :; do sleep 0.05; done")
    wait_until(marker.exists, "the command's start")
    process.send_signal(number)
    done = workdir.finish(process)
    assert done.returncode == status, done
    return done


@test
def sigint_is_passed_on(workdir):
    """SIGINT: reaches the command; the run completes with a summary and the command's status"""
    done = forwarded(workdir, signal.SIGINT, 3)
    assert done.stdout == "got INT\n" and done.stderr, done
    assert (workdir.folder / "report.json").exists()
    assert dict(workdir.rows("select key, value from run")), "table run is empty"


@test
def sigterm_is_passed_on(workdir):
    """SIGTERM: reaches the command; the run completes with a summary and the command's status"""
    assert forwarded(workdir, signal.SIGTERM, 4).stdout == "got TERM\n"


@test
def an_untrapped_sigint(workdir):
    """SIGINT to a command without a handler: ends it with 130, and the run is complete"""
    process = workdir.start("run", "-q", "-o", "run.sqlite", "--json", "-", "--", BURNER, "tree", "0", "30")
    wait_until(lambda: (workdir.folder / "run.sqlite").exists() and children_of(process.pid), "the command's start")
    process.send_signal(signal.SIGINT)
    done = workdir.finish(process)
    assert done.returncode == 128 + signal.SIGINT, done
    assert '"complete": true' in done.stdout, done.stdout


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [int(child) for child in children.read().split()]
    except OSError:
        return []


@test
def run_ends_with_its_command(workdir):
    """run: ends with the command; a descendant that continues is not touched"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!")
    survivor = int(done.stdout)
    try:
        assert is_alive(survivor), "the descendant was ended"
    finally:
        os.kill(survivor, signal.SIGKILL)


@test
def wait_all(workdir):
    """--wait-all: waits for the last descendant"""
    done = workdir.wattle("run", "-q", "--wait-all", "-o", "run.sqlite", "--json", "-", "--", "sh", "-c",
                       "(sleep 0.7; echo last) & echo first")
    assert done.stdout.startswith("first\nlast\n"), done.stdout


if __name__ == "__main__":
    main()
