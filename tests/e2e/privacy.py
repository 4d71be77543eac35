"""Privacy: permissions of files, and secrets and arguments in stored and displayed command lines."""
import json
import os
import pathlib
import re
import signal
import stat

from harness import BUILD, NOBODY, Skip, main, test, wait_until
from serving import Server, restart, stop, textfile

SPANNER = BUILD / "tests/fakes/spanner"
SECRET = "hunter2-s3cr3t"
WORDS = ["sh", "-c", "sleep 0.3", "train.py", f"--password={SECRET}", "--api-key", SECRET, f"DB_TOKEN={SECRET}",
         f"postgresql://me:{SECRET}@db/x", "--key-file", "/etc/key", "--max-tokens=5"]
SHOWN = ["sh", "-c", "sleep 0.3", "train.py", "--password=***", "--api-key", "***", "DB_TOKEN=***",
         "postgresql://me:***@db/x", "--key-file", "/etc/key", "--max-tokens=5"]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def has_secret(path):
    return SECRET.encode() in path.read_bytes()


@test
def files_of_their_owner(workdir):
    """run file, its side files and tracking files: accessible to their owner only, whatever the umask; --mode changes
    it"""
    for number, (umask, options, wanted) in enumerate(((0o000, (), 0o600), (0o077, (), 0o600),
                                                       (0o077, ("--mode", "640"), 0o640),
                                                       (0o077, ("--mode=0644",), 0o644))):
        begun = workdir.folder / f"began{number}"
        process = workdir.start("run", "-q", "-o", f"{number}.sqlite", "--tracking-file", f"t{number}.csv", *options,
                                "--", "sh", "-c",
                                f": > {begun.name}; sleep 1.3", umask=umask)
        wait_until(begun.exists, "the command")
        beside = [workdir.folder / f"{number}.sqlite{ending}"
                  for ending in ("", "-wal", "-shm")] + [workdir.folder / f"t{number}.csv"]
        wait_until(lambda: all(path.exists() for path in beside), "all files")
        assert {path.name: oct(mode(path)) for path in beside if mode(path) != wanted} == {}
        assert workdir.finish(process).returncode == 0
        assert mode(beside[0]) == wanted and mode(beside[-1]) == wanted


@test
def files_that_are_there(workdir):
    """--append keeps a file's mode, --overwrite makes a new file"""
    def run(*options):
        assert workdir.wattle("run", "-q", "-o", "run.sqlite", *options, "--", "true").returncode == 0
        return mode(workdir.folder / "run.sqlite")
    assert run() == 0o600
    (workdir.folder / "run.sqlite").chmod(0o644)
    assert run("--append") == 0o644
    assert run("--overwrite") == 0o600
    (workdir.folder / "config.json").write_text('{"mode": "0640"}')
    assert run("--overwrite", "--config", "config.json") == 0o640


@test
def saved_copies(workdir):
    """saved copy of a removed run file: has that file's mode"""
    folder = workdir.folder / "gone"
    folder.mkdir()
    done = workdir.wattle("run", "-q", "-o", "gone/run.sqlite", "--", "rm", "-r", "gone", umask=0)
    (copy,) = re.findall(r"saved as (\S+)", done.stderr)
    assert mode(pathlib.Path(copy)) == 0o600


@test
def wrong_modes(workdir):
    """invalid mode, executable files, owner without access: refused, and nothing is started"""
    for text in ("", "6", "60", "0o600", "rw", "888", "0755", "01600", "400", "060", "00600", "-600", "600 "):
        done = workdir.wattle("run", "-q", "--mode", text, "--", "touch", "started")
        assert done.returncode == 125 and "--mode" in done.stderr and done.stderr.count("\n") == 1, (text, done)
    assert [path.name for path in workdir.folder.iterdir()] == []


@test
def spool(workdir):
    """spool of spans that arrive too fast: has the mode of the run file"""
    for wanted in (0o600, 0o640):
        name = f"{wanted:o}.sqlite"
        process = workdir.start("run", "-q", "--mode", f"{wanted:o}", "-o", name, "--", SPANNER, "flood", 8, 30000, 2,
                                umask=0)
        path = workdir.folder / f"{name}-spans"
        wait_until(lambda: path.exists() and mode(path) == wanted, "a spool of that mode")
        workdir.finish(process)


@test
def secrets_of_a_run(workdir):
    """arguments that look like secrets: *** in the run file, the report and its exports; the other words are kept"""
    report, done = workdir.report("--", *WORDS)
    assert report["run"]["command"] == SHOWN
    (command,) = workdir.rows("select value from run where key = 'command'")[0]
    assert json.loads(command) == SHOWN
    assert json.loads(workdir.rows("select command from segment")[0][0]) == SHOWN
    assert workdir.wattle("report", "run.sqlite", "-o", "page.html", "--format", "html").returncode == 0
    assert workdir.wattle("export", "run.sqlite", "--format", "jsonl", "-o", "run.jsonl").returncode == 0
    assert [path.name for path in workdir.folder.iterdir() if path.is_file() and has_secret(path)] == []


@test
def secrets_of_a_process(workdir):
    """secrets in the command of an attached process and of a bench: ***"""
    target = workdir.start("-c", "sleep 3", *WORDS[3:], program="sh")
    assert workdir.wattle("attach", "-q", "-o", "run.sqlite", target.pid).returncode == 0
    assert json.loads(workdir.rows("select command from segment")[0][0])[3:] == SHOWN[3:]
    done = workdir.wattle("bench", "--runs", "2", "--warmup", "0", "--json", "bench.json", "--settle", "0", "--",
                          *WORDS)
    assert done.returncode == 0 and SECRET not in done.stdout + done.stderr, done
    assert json.loads((workdir.folder / "bench.json").read_text())["commands"][0]["argv"] == SHOWN
    assert [path.name for path in workdir.folder.iterdir() if path.is_file() and has_secret(path)] == []


@test
def names_of_jobs(workdir):
    """job name, by default its command line: stored without secrets; with --hide-command the program's name only"""
    environment = {"LSB_JOBID": "7", "LSB_JOBNAME": f"/opt/train --password={SECRET} -n 4"}
    for options, wanted in (((), "/opt/train --password=*** -n 4"), (("--hide-command",), "train")):
        done = workdir.wattle("run", "-q", "--overwrite", "-o", "job.sqlite", *options, "--", "true", env=environment)
        assert done.returncode == 0, done
        assert workdir.rows("select value from run where key = 'job_name'", "job.sqlite") == [(wanted,)]


@test
def hidden_commands(workdir):
    """--hide-command: stores the program's name only, of a run and of a process"""
    report, _ = workdir.report("--hide-command", "--", "/bin/sh", *WORDS[1:])
    assert report["run"]["command"] == ["sh"]
    target = workdir.start("-c", "sleep 3", *WORDS[3:], program="/bin/sh")
    assert workdir.wattle("attach", "-q", "--hide-command", "-o", "other.sqlite", target.pid).returncode == 0
    assert workdir.rows("select command from segment", "other.sqlite") == [('["sh"]',)]
    for name in ("run.sqlite", "other.sqlite"):
        assert b"train.py" not in (workdir.folder / name).read_bytes()
    assert workdir.wattle("list").returncode == 0


def command_of(server, pid, headers=()):
    status, _, body = server.ask("/now.json", headers=headers)
    assert status == 200
    found = [p["command"] for p in json.loads(body)["processes"] if p["pid"] == pid]
    return found[0] if found else None


def shows(server, path, headers):
    """Whether arguments of the own process and of another user's are shown; no secret may be."""
    text = server.ask(path, headers=headers)[2].decode()
    assert SECRET not in text, path
    return "own-argument" in text, "other-argument" in text


@test
def arguments_of_others(workdir):
    """root without a token: page, JSON, metrics and state file show program names only; with a token arguments without
    secrets; a textfile, which others read, never has arguments"""
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    script = "while :; do :; done"
    own = workdir.start("-c", script, "own-argument", f"--password={SECRET}", program="/bin/sh")
    other = workdir.start("-c", script, "other-argument", f"--password={SECRET}", program="/bin/sh", user=NOBODY,
                          group=NOBODY)
    token = workdir.folder / "token"
    token.write_text("kq3vVUmbXhfdF0eX8aCXTVYgW6w4c1yQ\n")
    token.chmod(0o600)
    asks = {"Authorization": f"Bearer {token.read_text().strip()}"}
    for options, headers, own_shown, other_shown in (((), {}, False, False),
                                                     (("--token-file", token), asks, True, True),
                                                     (("--hide-command",), {}, False, False),
                                                     (("--token-file", token, "--hide-command"), asks, False, False),
                                                     (("--token-file", token, "--textfile", "x.prom"),
                                                      asks, False, False)):
        server = Server(workdir, "--interval", "100ms", "--processes", "100", *options)
        # The first sample may be between fork and exec: the command lines are known from the second one on.
        wait_until(lambda: all(("argument" in (command_of(server, process.pid, headers) or "none")) == shown
                               for process, shown in ((own, own_shown), (other, other_shown))), "both commands")
        for path in ("/now.json", "/metrics", "/"):
            # Only the busiest processes are listed, and on a busy machine these two come and go.
            wait_until(lambda: shows(server, path, headers) == (own_shown, other_shown), f"{options} {path}")
        if not other_shown:
            assert command_of(server, other.pid, headers) in (None, "sh")
        stop(server.process, signal.SIGTERM)
        for state in (workdir.folder / "state").iterdir():
            assert (SECRET not in state.read_text()
                    and (other_shown or "other-argument" not in state.read_text())), options
    process, path = textfile(workdir, "--processes", "100")
    wait_until(lambda: 'command="sh"' in path.read_text(), "the process")
    assert not any(word in path.read_text() for word in ("own-argument", "other-argument", SECRET))
    stop(process, signal.SIGTERM)


@test
def arguments_of_its_user(workdir):
    """unprivileged server without a token: shows arguments of that user's programs only"""
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    wattle, _ = workdir.for_everybody()
    words = "-c", "while :; do :; done"
    own = workdir.start(*words, "own-argument", f"--password={SECRET}", program="/bin/sh", user=NOBODY, group=NOBODY)
    other = workdir.start(*words, "other-argument", program="/bin/sh")
    server = Server(workdir, "--interval", "100ms", "--processes", "100", program=wattle, user=NOBODY, group=NOBODY)
    wait_until(lambda: "own-argument --password=***" in (command_of(server, own.pid) or ""), "its user's command")
    wait_until(lambda: command_of(server, other.pid) == "sh", "root's command")
    assert shows(server, "/now.json", {}) == (True, False)


@test
def state_of_an_earlier_version(workdir):
    """state file with commands from an earlier version or a server with a token: shown by the rules of the current
    server"""
    own = "/bin/prog1 one --token ***" if os.geteuid() != 0 else "prog1"
    server = Server(workdir, "--interval", "100ms", "--processes", "5")
    server.wait_for_samples(2)
    stop(server.process, signal.SIGTERM)
    (path,) = (workdir.folder / "state").glob("serve-*.json")
    kept = json.loads(path.read_text())
    kept["processes"] = [{"pid": 2 ** 22 - n, "start_ticks": 1, "command": f"/bin/prog{n} one --token {SECRET}",
                          "told": True,
                          "ended": True, "target": False, "energy_j": 5.0, "cpu_ns": 10 ** 9, **uid}
                         for n, uid in enumerate(({}, {"uid": os.geteuid()}, {"uid": 12345}))]
    path.write_text(json.dumps(kept))
    server = restart(workdir, server, signal.SIGKILL, "--interval", "100ms", "--processes", "5")
    text = server.ask("/metrics")[2].decode()
    assert 'command="prog0"' in text and f'command="{own}"' in text and 'command="prog2"' in text, text
    assert SECRET not in text


if __name__ == "__main__":
    main()
