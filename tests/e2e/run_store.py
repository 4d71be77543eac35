"""run --store: the run is in PostgreSQL at the end, whatever happens to the server, the uploader or the recorder."""
import os
import pathlib
import shlex
import shutil
import signal
import sqlite3
import time

from harness import BUILD, WATTLE, Skip, children_of, is_alive, main, test, wait_until
from postgres_server import Server, fresh
from store_fixture import run_id, same_run

SPANNER = BUILD / "tests/fakes/spanner"


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def sender_of(recorder):
    """The uploader process beside the recorder; waits until it exists."""
    return wait_until(lambda: [pid for pid in children_of(recorder.pid) if name_of(pid) == "wattle-sender"
                               and is_alive(pid)],
                      "a sender")[0]


def rows_of(server, table="sample"):
    try:
        return server.value(f"SELECT count(*) FROM {table}")
    except Exception:  # of a library that may be missing: there is no store yet, or no server
        return 0


def started(workdir, server, *words, options=()):
    return workdir.start("run", "--store", server.url(), "-o", "run.sqlite", "--per-process", *options, "--", *words)


def finished(workdir, server, recording, status=0):
    done = workdir.finish(recording)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert "wattle push" not in done.stderr, done.stderr
    rows = same_run(server, workdir.folder / "run.sqlite")
    lost, = workdir.rows("SELECT sum(lost_samples) FROM segment")[0]
    return done, rows, lost


@test
def store_alone(workdir):
    """no -o: the run is only in the store; the status is the command's"""
    with fresh() as server:
        done = workdir.wattle("run", "--store", server.url(), "--", "sh", "-c", f"{SPANNER} nested; exit 7")
        assert done.returncode == 7, done.stderr
        assert not list(workdir.folder.iterdir()), list(workdir.folder.iterdir())
        run, complete, status = server.rows("SELECT run_id::text, complete, exit_code FROM recording")[0]
        assert complete and status == 7 and f"run {run} at " in done.stderr, done.stderr
        last = done.stderr.splitlines()[-1]
        assert len(last) <= 80, last
        assert rows_of(server) > 1 and rows_of(server, "span") == 3 and rows_of(server, "block") == 2


@test
def store_and_file(workdir):
    """-o: the file is kept, and both have the same rows"""
    with fresh() as server:
        done, rows, _ = finished(workdir, server, started(workdir, server, SPANNER, "nested"))
        assert (rows["span"] == 3
                and f"run.sqlite, and run {run_id(workdir.folder / 'run.sqlite')[:8]} at " in done.stderr), done.stderr


@test
def goes_on_meanwhile(workdir):
    """rows arrive during the run; the uploader is not part of the target, and its cost is measurement overhead"""
    with fresh() as server:
        recording = started(workdir, server, "sh", "-c", "sleep 4; sleep 0.5", options=["--wait-all"])
        sender = sender_of(recording)
        wait_until(lambda: rows_of(server) > 5, "rows")
        assert recording.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, sender) == 10 and os.getpgid(sender) != os.getpgid(recording.pid)
        cpu = pathlib.Path(f"/proc/{sender}/stat").read_text().rpartition(")")[2].split()
        sender_s = (int(cpu[11]) + int(cpu[12])) / os.sysconf("SC_CLK_TCK")
        _, rows, _ = finished(workdir, server, recording)
        seen, self_s = workdir.rows("SELECT processes_seen, self_cpu_ns / 1e9 FROM segment")[0]
        assert seen == rows["process"] == 3, (seen, rows)  # sh and its two sleeps
        assert self_s >= sender_s, (self_s, sender_s)
        assert not is_alive(sender)


@test
def server_killed(workdir):
    """kill -9 of the server during the run, then a silent server for a while: nothing is lost, and all rows arrive"""
    with fresh() as server:
        recording = started(workdir, server, "sleep", "8", options=["-i", "20ms", "--store-wait", "60s"])
        wait_until(lambda: rows_of(server) > 50, "rows")
        server.kill()
        time.sleep(1.5)
        server.start()
        wait_until(lambda: rows_of(server) > 150, "rows after the restart")
        server.pause()
        time.sleep(1.5)
        server.pause(False)
        done, rows, lost = finished(workdir, server, recording)
        assert done.stderr.count("the run continues") == 1, done.stderr
        assert rows["sample"] > 300, (rows, lost)
        print(f"# {rows['sample']} samples, {lost} lost")
        # of a busy machine; in three seconds of silence there were 150
        assert lost <= rows["sample"] // 20, (lost, rows)


@test
def server_away(workdir):
    """no server: the run is measured, its file is kept, and a line states how to send it; that works later"""
    with fresh() as server:
        url = server.url()
        server.stop()
        done = workdir.wattle("run", "--store", url, "--store-wait", "300ms", "-o", "a run.sqlite", "--", SPANNER,
                              "nested")
        assert done.returncode == 0 and done.stderr.count("send the rest with: wattle push ") == 1, done.stderr
        command = shlex.split(done.stderr.split("send the rest with: wattle ")[1].splitlines()[0])
        left = workdir.folder / "a run.sqlite"
        server.start()
        push = workdir.wattle(*command)
        assert push.returncode == 0, push.stderr
        assert same_run(server, left)["span"] == 3


@test
def sender_killed(workdir):
    """kill -9 of the uploader, twice: restarted during the run, as a separate program without the recorder's resources,
    and no row is doubled"""
    with fresh() as server:
        recording = started(workdir, server, "sleep", "60", options=["-i", "20ms", "--store-wait", "60s"])
        senders = [sender_of(recording)]
        command, = [pid for pid in children_of(recording.pid) if pid not in senders]
        for _ in range(2):
            before = wait_until(lambda: rows_of(server), "rows")
            os.kill(senders[-1], signal.SIGKILL)
            wait_until(lambda: not is_alive(senders[-1]), "its end")
            senders.append(sender_of(recording))
            wait_until(lambda: rows_of(server) > before + 50, "more rows")
            own_alone(recording, senders[-1], server)
        os.kill(command, signal.SIGTERM)
        _, rows, _ = finished(workdir, server, recording, status=143)
        assert rows["process"] == 1 and len(set(senders)) == 3, (rows, senders)


def own_alone(recording, sender, server):
    """Its command line is neutral, it has no descriptor of the recorder's but the pipe, and is no child of the
    command."""
    folder = pathlib.Path(f"/proc/{sender}")
    assert (folder / "cmdline").read_bytes() == b"wattle\0--sender\0"
    assert str(server.folder).encode() not in (folder / "environ").read_bytes()
    for number in range(3):
        assert os.readlink(folder / f"fd/{number}") == "/dev/null"
    theirs = {os.readlink(path) for path in pathlib.Path(f"/proc/{recording.pid}/fd").iterdir()}
    ours = set()
    for path in list((folder / "fd").iterdir()):
        try:
            ours.add(os.readlink(path))
        except OSError:  # the run file, between two batches
            pass
    assert {one for one in ours & theirs if "run.sqlite" not in one} <= {"/dev/null"}, ours & theirs
    assert recording.pid == int((folder / "stat").read_text().rpartition(")")[2].split()[1])


@test
def recorder_killed(workdir):
    """kill -9 of the recorder: the uploader sends the stored rows, and ends"""
    with fresh() as server:
        recording = started(workdir, server, "sleep", "30", options=["-i", "20ms"])
        sender = sender_of(recording)
        wait_until(lambda: rows_of(server) > 50, "rows")
        command, = [pid for pid in children_of(recording.pid) if pid != sender]
        recording.kill()
        recording.wait()
        os.kill(command, signal.SIGKILL)
        wait_until(lambda: not is_alive(sender), "the uploader ends", 30)
        rows = same_run(server, workdir.folder / "run.sqlite")
        assert rows["sample"] > 50 and server.value("SELECT complete FROM recording") is False, rows


@test
def terminal_signals(workdir):
    """Ctrl-C: ends the command as usual; the uploader still sends the rest"""
    with fresh() as server:
        recording = workdir.start("run", "--store", server.url(), "-o", "run.sqlite", "--", "sleep", "30",
                                  start_new_session=True)
        wait_until(lambda: rows_of(server) > 3, "rows")
        os.killpg(recording.pid, signal.SIGINT)
        finished(workdir, server, recording, status=130)


@test
def disk_full(workdir):
    """server's disk full for a while: the rows wait in the file, and arrive in the end"""
    with Server(disk_mb=130) as server:
        recording = started(workdir, server, "sleep", "7", options=["-i", "20ms", "--store-wait", "60s"])
        wait_until(lambda: rows_of(server) > 50, "rows")
        server.fill()
        time.sleep(2.5)
        server.free()
        if server.process.poll() is not None:  # no space for its log: it has given up
            server.start()
        finished(workdir, server, recording)


@test
def attached(workdir):
    """attach --store, and two recordings in one run"""
    with fresh() as server:
        for append in ([], ["--append"]):
            target = workdir.start("sleep", "1.5", program=shutil.which("env"))
            done = workdir.wattle("attach", "--store", server.url(), *append, "-o", "run.sqlite", str(target.pid))
            assert done.returncode == 0, done.stderr
        same_run(server, workdir.folder / "run.sqlite")
        assert server.rows("SELECT segments, complete FROM recording") == [(2, True)]


@test
def no_library(workdir):
    """--store without libpq: refused with the package's name before anything starts; everything else works"""
    libraries = [path for path in pathlib.Path("/usr/lib").glob("*/libpq.so.5")]
    if os.geteuid() != 0 or not libraries:
        raise Skip("hiding libpq needs root")
    hide = "; ".join(f"mount --bind /dev/null {path.resolve()}" for path in libraries)
    for options, status in ((["--store", "postgresql:///db"], 125), ([], 0)):
        done = workdir.wattle("-m", "sh", "-c", f'{hide}; exec "$@"', "sh", WATTLE, "run", "-q", *options, "--",
                              "touch", "here",
                              program=shutil.which("unshare"))
        assert done.returncode == status, (options, done)
        if status:
            assert "libpq5" in done.stderr and not list(workdir.folder.iterdir()), done.stderr


if __name__ == "__main__":
    main()
