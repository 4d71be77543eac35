"""Run files made or changed by others, and files left beside them: nothing in them runs, every read ends, and no other
user's file is written."""
import json
import os
import shutil
import signal
import sqlite3
import struct
import time

from harness import BUILD, NOBODY, Skip, cpu_s, main, test, wait_until

SPANNER = BUILD / "tests/fakes/spanner"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
READERS = [("report", "bad.sqlite"), ("blocks", "bad.sqlite"),
           ("export", "bad.sqlite", "--format", "jsonl", "-o", "out"),
           ("push", "bad.sqlite", "postgresql://nobody@127.0.0.1:1/none")]


def good_file(workdir):
    done = workdir.wattle("run", "-q", "--disable-logs", "--overwrite", "-o", "good.sqlite", "-i", "20ms", "--",
                          SPANNER, "pulse", 0.3)
    assert done.returncode == 0, done
    return workdir.folder / "good.sqlite"


def changed(workdir, change):
    """A copy of a good run file with the change made by a function."""
    bad = workdir.folder / "bad.sqlite"
    shutil.copy(workdir.folder / "good.sqlite", bad)
    connection = sqlite3.connect(bad, isolation_level=None)
    change(connection)
    connection.close()
    return bad


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def refused(workdir, reader, words, seconds=20):
    (workdir.folder / "out").unlink(missing_ok=True)
    began_s = cpu_s()
    done = workdir.wattle(*reader)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, (reader, done)
    assert all(word in done.stderr for word in words), (reader, words, done.stderr)
    assert cpu_s() - began_s < seconds, (reader, cpu_s() - began_s)


@test
def endless_views(workdir):
    """table replaced by an endless view: refused by every reader"""
    good_file(workdir)
    for table in ("run", "sample", "device_sample", "segment", "span", "event"):
        def change(connection):
            names = columns(connection, table)
            connection.execute(f"ALTER TABLE {table} RENAME TO old")
            connection.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT "
                               f"{', '.join('i AS ' + name for name in names)} FROM n")
        changed(workdir, change)
        for reader in READERS[:3] if table != "segment" else READERS:
            refused(workdir, reader, ["bad.sqlite", table, "view"])
        done = workdir.wattle("list", ".")
        assert "good.sqlite" in done.stdout and done.returncode in (0, 1), done


@test
def views_of_the_users_own(workdir):
    """additional view of the file's owner: harmless"""
    good_file(workdir)
    changed(workdir, lambda connection: connection.execute("CREATE VIEW mine AS SELECT * FROM span"))
    assert workdir.wattle("report", "bad.sqlite").returncode == 0


@test
def computed_tables(workdir):
    """computed columns and virtual tables: refused before a row is read"""
    good_file(workdir)

    def compute(connection):
        names = columns(connection, "sample")[1:]
        connection.execute("ALTER TABLE sample RENAME TO old")
        connection.execute("CREATE TABLE sample (t_ns INTEGER PRIMARY KEY, " + ", ".join(
            f"{name} INTEGER AS (length(hex(zeroblob(1000000)))) VIRTUAL" for name in names) + ")")
        connection.execute("INSERT INTO sample (t_ns) SELECT t_ns FROM old")

    def imagine(connection):
        names = columns(connection, "span")
        connection.execute("ALTER TABLE span RENAME TO old")
        connection.execute(f"CREATE VIRTUAL TABLE span USING fts4({', '.join(names)})")

    for change, table in ((compute, "sample"), (imagine, "span")):
        changed(workdir, change)
        for reader in READERS[:3]:
            refused(workdir, reader, ["bad.sqlite", table])


@test
def computed_tables_however_written(workdir):
    """SQL keywords: recognised in upper and lower case, next to brackets and comments"""
    good_file(workdir)
    for column, append, words in (("extra INTEGER/**/aS/**/(1) VIRTUAL", False, "computed columns"),
                                  ("extra INTEGER\nGENERATED ALWAYS\tAS(1)", False, "computed columns"),
                                  ("extra TEXT deFAULT(hex(zeroblob(1000)))", True, "computed default values")):
        def compute(connection):
            names = columns(connection, "sample")[1:]
            connection.execute("DROP TABLE sample")
            connection.execute(f"CREATE TABLE sample (t_ns INTEGER PRIMARY KEY, {' INTEGER, '.join(names)} INTEGER, "
                               f"{column})")
        changed(workdir, compute)
        if append:
            done = workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "touch", "started")
            assert done.returncode == 125 and words in done.stderr and not (workdir.folder / "started").exists(), done
        else:
            refused(workdir, READERS[0], ["bad.sqlite", "sample", words])


def append_pages(path, table, depth):
    """The table's tree gets `depth` levels of pages, each of which has all its children at the one page below: each
    page is valid, and reading all rows would practically never end."""
    connection = sqlite3.connect(path)
    root, = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    size, = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    data = bytearray(path.read_bytes())
    count = len(data) // size
    child = count + 1
    data += data[(root - 1) * size:root * size]  # the leaf with the rows
    for level in range(depth):
        cells = [struct.pack(">I", child) + bytes([0x81, i % 128]) for i in range(200)]
        begin = size - sum(map(len, cells))
        pointers = b"".join(struct.pack(">H", begin + 6 * i) for i in range(len(cells)))
        head = struct.pack(">BHHHBI", 5, 0, len(cells), begin, 0, child)
        page = head + pointers + bytes(begin - len(head) - len(pointers)) + b"".join(cells)
        assert len(page) == size
        if level == depth - 1:
            data[(root - 1) * size:root * size] = page
        else:
            data += page
            child += 1
    data[28:32] = struct.pack(">I", len(data) // size)
    path.write_bytes(data)


@test
def endless_trees(workdir):
    """tree of pages that leads to the same page again and again: ends within seconds, and with bounded memory"""
    good_file(workdir)
    for table in ("event", "user_metric", "span", "sample"):
        bad = changed(workdir, lambda connection: connection.execute(
            "INSERT INTO event (t_ns, kind, text) VALUES (1, 'note', 'endless')"))
        append_pages(bad, table, 7)
        for reader in READERS[:3]:
            began_s = cpu_s()
            done = workdir.wattle(*reader)
            assert done.returncode in (0, 1) and done.stderr.count("\n") <= 1, (table, reader, done)
            assert cpu_s() - began_s < 40, (table, reader, cpu_s() - began_s)
            (workdir.folder / "out").unlink(missing_ok=True)


@test
def sparse_endless_tree(workdir):
    """hole at the end of a file: increases neither the time nor the memory limit"""
    good_file(workdir)
    bad = changed(workdir, lambda connection: connection.execute(
        "INSERT INTO event (t_ns, kind, text) VALUES (1, 'note', 'endless')"))
    append_pages(bad, "event", 7)
    os.truncate(bad, 1 << 40)
    refused(workdir, READERS[0], ["bad.sqlite", "a file of this size"], seconds=80)


@test
def triggers(workdir):
    """triggers of a file: do not run when a segment is appended"""
    good_file(workdir)
    changed(workdir, lambda connection: connection.executescript(
        "CREATE TABLE seen (x); CREATE TRIGGER t AFTER INSERT ON segment BEGIN INSERT INTO seen VALUES (1); END;"
        "CREATE TRIGGER u AFTER INSERT ON sample BEGIN INSERT INTO seen VALUES (2); END"))
    done = workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "true")
    assert done.returncode == 0, done
    assert workdir.rows("SELECT count(*) FROM segment", "bad.sqlite") == [(2,)]
    assert workdir.rows("SELECT * FROM seen", "bad.sqlite") == []


def made_again(connection, table, addition):
    """The table with a further column or constraint, and its rows."""
    names = columns(connection, table)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"ALTER TABLE {table} RENAME TO old")
    connection.execute(f"CREATE TABLE {table} ({', '.join(names)}, {addition})")
    connection.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT * FROM old")


SLOW = "length(hex(zeroblob(1000000)))"


@test
def computed_on_insert(workdir):
    """index or default value that computes something at each insert: refused by --append, before the command starts"""
    good_file(workdir)
    for change, word in (
            (lambda file: file.execute("CREATE INDEX slow ON sample(length(hex(zeroblob(t_ns % 1000000))))"), "index"),
                         (lambda file: file.execute("CREATE INDEX part ON sample(t_ns) WHERE length(hex(t_ns)) > 0"),
                          "index"),
                         (lambda file: made_again(file, "sample", f"more DEFAULT ({SLOW})"), "default")):
        changed(workdir, change)
        done = workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "touch", "started")
        assert done.returncode == 125 and "sample" in done.stderr and word in done.stderr, done
        assert not (workdir.folder / "started").exists()


@test
def checked_on_insert(workdir):
    """constraints of a file: not computed when a segment is appended"""
    good_file(workdir)
    changed(workdir, lambda connection: made_again(connection, "sample", f"CHECK ({SLOW} < 0)"))
    before, = workdir.rows("SELECT count(*) FROM sample", "bad.sqlite")[0]
    done = workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "true")
    assert done.returncode == 0 and done.stderr == "", done
    assert workdir.rows("SELECT count(*) FROM sample", "bad.sqlite")[0][0] > before


def with_spool(workdir):
    """A run whose recorder was killed while spans arrived too fast for the tables: the spool is still beside it."""
    workdir.wattle("run", "-q", "--overwrite", "-o", "good.sqlite", "--", "true")
    process = workdir.start("run", "-q", "--overwrite", "-o", "good.sqlite", "--", BUILD / "tests/fakes/ring_liar",
                            "cross", 20)
    spool = workdir.folder / "good.sqlite-spans"
    wait_until(lambda: spool.exists() and spool.stat().st_size > 1 << 20, "a spool")
    child = process.pid
    os.kill(child, signal.SIGKILL)
    process.wait()
    return spool


@test
def impossible_marks(workdir):
    """any stored spool position: reading and appending agree, and no sum overflows"""
    with_spool(workdir)
    everything = None
    for mark in ("NULL", "-1", "-9223372036854775807", "-9223372036854775808", "9223372036854775807",
                 "'all'", "4611686018427387903"):
        for ending in ("", "-wal", "-spans"):
            if (workdir.folder / f"good.sqlite{ending}").exists():
                shutil.copy(workdir.folder / f"good.sqlite{ending}", workdir.folder / f"bad.sqlite{ending}")
        connection = sqlite3.connect(workdir.folder / "bad.sqlite", isolation_level=None)
        connection.execute(f"UPDATE segment SET spool_bytes = {mark}")
        connection.close()
        done = workdir.wattle("report", "bad.sqlite")
        assert done.returncode == 0, (mark, done)
        done = workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "true")
        assert done.returncode == 0, (mark, done)
        spans, = workdir.rows("SELECT count(*) FROM span", "bad.sqlite")[0]
        everything = everything or spans
        # The last one is possible, and states that everything was merged.
        assert (spans < everything) if mark.startswith("46") else (spans == everything), (mark, spans, everything)
        for ending in ("", "-wal", "-shm", "-spans"):
            (workdir.folder / f"bad.sqlite{ending}").unlink(missing_ok=True)


@test
def far_numbers(workdir):
    """numbers at the limits of 64 bits: no sum overflows"""
    good_file(workdir)
    for number in ("9223372036854775807", "-9223372036854775808", "4611686018427387904"):
        for table, column in (("segment", "start_ns"), ("segment", "shift_ns"), ("segment", "end_ns"),
                              ("segment", "wall_start_ns"),
                              ("device_sample", "energy_uj"), ("span", "begin_ns"), ("span", "end_ns"),
                              ("process", "cpu_ns"),
                              ("event", "t_ns"), ("user_metric", "t_ns")):
            changed(workdir, lambda connection: connection.execute(f"UPDATE {table} SET {column} = {number}"))
            done = workdir.wattle("report", "bad.sqlite")
            assert done.returncode in (0, 1), (table, column, number, done)
        changed(workdir, lambda connection: connection.execute(
            f"UPDATE run SET value = '{number}' WHERE key IN ('anchor_mono_ns', 'anchor_wall_ns', 'boot_id', "
            "'interval_ns')"))
        assert workdir.wattle("report", "bad.sqlite").returncode in (0, 1)
        assert workdir.wattle("run", "-q", "--append", "-o", "bad.sqlite", "--", "true").returncode in (0, 125)


@test
def planted_companions(workdir):
    """files beside a new file: removed; a link or a second name beside an existing file: refused"""
    victim = workdir.folder / "victim"
    victim.write_text("precious")
    for ending in ("-wal", "-shm", "-journal", "-spans"):
        (workdir.folder / f"new.sqlite{ending}").symlink_to(victim)
    done = workdir.wattle("run", "-q", "-o", "new.sqlite", "--", "true")
    assert done.returncode == 0 and victim.read_text() == "precious", done
    assert workdir.rows("SELECT complete FROM segment", "new.sqlite") == [(1,)]
    for ending in ("-wal", "-shm", "-journal"):
        planted = workdir.folder / f"new.sqlite{ending}"
        for plant in (lambda: planted.symlink_to(victim), lambda: os.link(victim, planted), lambda: os.mkfifo(planted)):
            plant()
            for command in (("run", "-q", "--append", "-o", "new.sqlite", "--", "touch", "started"),
                            ("report", "new.sqlite")):
                done = workdir.wattle(*command)
                assert done.returncode == (125 if command[0] == "run" else 1), (ending, done)
                assert f"new.sqlite{ending}" in done.stderr and "remove it" in done.stderr, (ending, done)
            planted.unlink()
    assert victim.read_text() == "precious" and not (workdir.folder / "started").exists()


@test
def journals_that_name_a_file(workdir):
    """journal that names another file, which SQLite would open and remove: refused"""
    good_file(workdir)
    # https://www.sqlite.org/tempfiles.html section 2.4, super-journal files
    (workdir.folder / "good.sqlite-journal").write_bytes(b"victim".ljust(512) + bytes.fromhex("d9d505f920a163d7"))
    for command in (("run", "-q", "--append", "-o", "good.sqlite", "--", "touch", "started"),
                    ("report", "good.sqlite")):
        done = workdir.wattle(*command)
        assert done.returncode == (125 if command[0] == "run" else 1), done
        assert "good.sqlite-journal refers to another file" in done.stderr and "remove it" in done.stderr, done
    assert not (workdir.folder / "started").exists()


@test
def companions_of_strangers(workdir):
    """another user's file beside an own one: refused; where it cannot be removed a new file is refused too"""
    if os.geteuid() != 0:
        raise Skip("giving files to another user needs root")
    workdir.wattle("run", "-q", "-o", "ours.sqlite", "--", "true")
    for ending in ("-wal", "-shm", "-journal", "-spans"):
        planted = workdir.folder / f"ours.sqlite{ending}"
        planted.write_bytes(b"")
        os.chown(planted, NOBODY, NOBODY)
        for command in (("run", "-q", "--append", "-o", "ours.sqlite", "--", "true"), ("report", "ours.sqlite")):
            done = workdir.wattle(*command)
            assert done.returncode == (125 if command[0] == "run" else 1), (ending, done)
            assert f"belongs to user {NOBODY}" in done.stderr, (ending, done)
        planted.unlink()
    # In a folder like /tmp nobody can remove another user's file.
    shared = workdir.folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "new.sqlite-wal").write_bytes(b"")
    (shared / "new.sqlite-wal").chmod(0o666)
    workdir.for_everybody()
    done = workdir.wattle("run", "-q", "-o", shared / "new.sqlite", "--", "touch", shared / "started", user=NOBODY)
    assert done.returncode == 125 and "can't be replaced" in done.stderr, done
    assert not (shared / "started").exists() and not (shared / "new.sqlite").exists()


@test
def rescued_into_a_folder_of_its_own(workdir):
    """run file removed during the run: saved where nobody can have planted a link"""
    victim = workdir.folder / "victim"
    victim.write_text("precious")
    (workdir.folder / "runs").mkdir()
    process = workdir.start("run", "-q", "-o", "runs/run.sqlite", "--", "sleep", "1.5")
    for pid in (process.pid, process.pid + 1):
        (workdir.folder / f"saved-{pid}-run.sqlite").symlink_to(victim)
    wait_until((workdir.folder / "runs/run.sqlite").exists, "the run file")
    time.sleep(0.3)
    (workdir.folder / "runs/run.sqlite").unlink()
    done = workdir.finish(process)
    assert victim.read_text() == "precious"
    saved, = workdir.folder.glob("wattle-saved-*/run.sqlite")
    assert str(saved) in done.stderr and saved.parent.stat().st_mode & 0o077 == 0, done.stderr
    assert workdir.wattle("report", saved).returncode == 0


# argv: a run file, and whether it gets the mark of a living recorder. Writes into the log, then truncates its index
# endlessly.
CUTTER = """
import fcntl, os, sqlite3, struct, sys, time
path, has_mark = sys.argv[1], sys.argv[2] == "True"
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("INSERT OR REPLACE INTO run (key, value) VALUES ('host', 'seen')")
file = os.open(path + "-spans", os.O_RDWR | os.O_CREAT) if not has_mark else os.open(path, os.O_RDWR)
if has_mark:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0x57544c31, 1, 0))
print("ready", flush=True)
while True:
    os.truncate(path + "-shm", 0)
    time.sleep(0.0002)
"""


@test
def index_that_is_cut(workdir):
    """owner of a run file truncates its log's index while others read: they read the file, without SIGBUS"""
    if os.geteuid() != 0:
        raise Skip("giving files to another user needs root")
    good_file(workdir)
    workdir.folder.chmod(0o755)
    hostile = workdir.folder / "hostile"
    hostile.mkdir()
    for has_mark in (True, False):
        path = hostile / f"bad{has_mark}.sqlite"
        shutil.copy(workdir.folder / "good.sqlite", path)
        for owned in (hostile, path):
            os.chown(owned, NOBODY, NOBODY)
        cutter = workdir.start("-c", CUTTER, path, has_mark, program="/usr/bin/python3", user=NOBODY, group=NOBODY)
        assert cutter.stdout.readline() == b"ready\n", cutter.stderr.read()
        for _ in range(5):
            for command in (("report", path), ("blocks", path),
                            ("export", path, "--format", "jsonl", "-o", "out", "--overwrite"), ("list", hostile)):
                done = workdir.wattle(*command)
                assert done.returncode == 0, (has_mark, command, done)
        assert '"seen"' in workdir.wattle("report", "--format", "json", path).stdout
        cutter.kill()
        cutter.wait()


@test
def live_run_of_another_user(workdir):
    """run that another user records: readable as it grows, and the recorder loses nothing"""
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    wattle, _ = workdir.for_everybody()
    path = workdir.folder / "run.sqlite"
    recorder = workdir.start("run", "-q", "-i", "50ms", "-o", path, "--", "sleep", "3", program=wattle, user=NOBODY,
                             group=NOBODY)
    wait_until(path.exists, "the run file")
    found = []
    while recorder.poll() is None:
        done = workdir.wattle("report", "--format", "json", path)
        assert done.returncode == 0, done
        found.append(json.loads(done.stdout)["run"]["samples"])
    done = workdir.finish(recorder)
    assert done.returncode == 0 and done.stderr == "", done
    assert found == sorted(found) and len(set(found)) > 2, found
    last = json.loads(workdir.wattle("report", "--format", "json", path).stdout)["run"]
    assert last["complete"] and last["samples"] >= found[-1], last


main()
