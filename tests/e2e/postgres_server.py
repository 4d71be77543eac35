"""A private PostgreSQL: created, started, killed, restarted and removed by a test.

    with Server() as server:
        server.url()                        # postgresql:///wattle?host=…&port=…&user=owner
        server.rows("SELECT 1")             # as the superuser; user="writer" for another role
        server.kill(); server.start()       # -9 of all its processes, and the recovery

initdb runs once for each program and WAL segment size; further servers begin with a copy of its folder.
fresh() uses one server for all tests of a program, each with an empty database of its own; tests may kill and restart
it. Roles belong to the server, so a test that creates some needs a Server().
Server(disk_mb=120) has its data on a file system of that size: fill() uses up its space, free() frees it.
Server(auth="scram-sha-256") requires a password from all but the superuser. It listens only on a Unix socket, unless
tcp=True; with host="hostssl" TCP needs TLS, after take_certificate(certificate, key).
PostgreSQL refuses to run as root, so it runs as user postgres then. It ends with the test in every case.
"""
import atexit
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import Skip, children_of, is_alive, wait_until

SUPERUSER, DATABASE = "owner", "wattle"
SETTINGS = {"fsync": "off", "listen_addresses": "", "max_connections": "60", "shared_buffers": "32MB",
            "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "64MB", "min_wal_size": "2MB",
            "log_timezone": "UTC", "timezone": "UTC", "lc_messages": "C", "log_destination": "stderr"}


clusters = {}  # MB of a WAL segment: folder


def find_programs():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    beside = shutil.which("initdb")
    if beside is None:
        raise Skip("PostgreSQL's server is not installed (apt install postgresql-15)")
    return pathlib.Path(beside).resolve().parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, disk_mb=None, auth="trust", tcp=False, host="host", wal_segment_mb=1, **settings):
        self.programs = find_programs()
        self.wal_segment_mb = wal_segment_mb
        self.process = None
        self.database = DATABASE
        self.mounted = False
        self.port = free_port() if tcp else 5432
        self.tcp = tcp
        # Every folder above it must be accessible to user postgres: the runner's is, those of tests are not.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.settings = {**SETTINGS, "unix_socket_directories": str(self.folder), "port": str(self.port), **settings}
        if tcp:
            self.settings["listen_addresses"] = "127.0.0.1"
        try:
            self._make(disk_mb, auth, host)
            self.start()
        except BaseException:
            self.remove()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # ---- creation and removal ----

    def _as_postgres(self, program, *arguments):
        command = [str(program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT",
                       *command]
        return command

    def _make(self, disk_mb, auth, host):
        self.folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        if disk_mb is not None:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk_mb}m,mode=0700", "tmpfs",
                                   str(self.data)], capture_output=True)
            if done.returncode != 0:
                raise Skip("no file system of a given size can be mounted here: " + done.stderr.decode().strip())
            self.mounted = True
        if os.geteuid() == 0:
            for path in (self.folder, self.data):
                shutil.chown(path, "postgres", "postgres")
        done = subprocess.run(self._as_postgres("cp", "-a", "--reflink=auto", f"{self._made_cluster()}/.", self.data),
                              capture_output=True)
        if done.returncode != 0:
            raise AssertionError("cp: " + done.stderr.decode("utf-8", "replace"))
        lines = [f"local all {SUPERUSER} trust", f"local all all {auth}", f"{host} all all 127.0.0.1/32 {auth}"]
        (self.data / "pg_hba.conf").write_text("\n".join(lines) + "\n")

    def _made_cluster(self):
        """The folder of a cluster without databases of its own, which initdb has made."""
        if self.wal_segment_mb not in clusters:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            if os.geteuid() == 0:
                shutil.chown(folder, "postgres", "postgres")
            initdb = self._as_postgres(self.programs / "initdb", "-D", folder, "-A", "trust", "-U",
                                       SUPERUSER, "--no-sync", "-E", "UTF8",
                                       "--locale=C", f"--wal-segsize={self.wal_segment_mb}")
            done = subprocess.run(initdb, env={"PATH": "/usr/bin:/bin", "LANG": "C"}, capture_output=True)
            if done.returncode != 0:
                raise AssertionError("initdb: " + done.stderr.decode("utf-8", "replace"))
            clusters[self.wal_segment_mb] = folder
        return clusters[self.wal_segment_mb]

    def remove(self):
        if self.process is not None:
            self.stop()
        self._forget_shared_memory()
        if self.mounted:
            wait_until(lambda: subprocess.run(["umount", str(self.data)], capture_output=True).returncode
                       == 0, "umount")
            self.mounted = False
        shutil.rmtree(self.folder, ignore_errors=True)

    def _forget_shared_memory(self):
        """Kernel objects left by a killed server, if no later one has taken them over."""
        try:
            words = (self.data / "postmaster.pid").read_text().splitlines()[6].split()
        except (OSError, IndexError):
            return
        subprocess.run(["ipcrm", "-m", words[1]], capture_output=True)

    # ---- start and stop ----

    def start(self, wait=True):
        arguments = [word for key, value in self.settings.items() for word in ("-c", f"{key}={value}")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self._as_postgres(self.programs / "postgres", "-D",
                                                              self.data, *arguments), stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, cwd="/",
                                            env={"PATH": "/usr/bin:/bin", "LANG": "C"})
        if wait:
            wait_until(self._answers, "PostgreSQL answers", 30)
            if not self.rows(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'", database="postgres"):
                self.run(f"CREATE DATABASE {DATABASE}", database="postgres")

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError("PostgreSQL ended: " + self.log.read_text(errors="replace")[-2000:])
        try:
            self.connect(database="postgres").close()
            return True
        except Exception as error:  # of a library that may be missing
            if isinstance(error, Skip):
                raise
            return False

    def stop(self, how=signal.SIGINT):
        """SIGINT: clients are disconnected, nothing is lost; SIGQUIT: as after a power failure."""
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self):
        """-9 of all its processes at once."""
        pids = [self.process.pid, *children_of(self.process.pid)]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for pid in pids[1:]:
            wait_until(lambda pid=pid: not is_alive(pid), "its processes end")
        self.process = None

    def take_certificate(self, certificate, key):
        for path, name in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(path, self.data / name)
            (self.data / name).chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(self.data / name, "postgres", "postgres")
        self.run("ALTER SYSTEM SET ssl = on")
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.value("SHOW ssl") == "on", "TLS is on")

    def pause(self, on=True):
        """The server exists and does not answer."""
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):  # the back end has just ended: its client had left
                os.kill(pid, signal.SIGSTOP if on else signal.SIGCONT)

    # ---- its disk ----

    def fill(self, leave_mb=0):
        disk = os.statvfs(self.data)
        with open(self.data / "ballast", "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, max(disk.f_bavail * disk.f_bsize - leave_mb * 1_000_000, 4096))

    def free(self):
        (self.data / "ballast").unlink()

    # ---- queries ----

    def url(self, user=SUPERUSER, database=None):
        if self.tcp:
            return f"postgresql://{user}@127.0.0.1:{self.port}/{database or self.database}"
        return f"postgresql://{user}@/{database or self.database}?host={self.folder}&port={self.port}"

    def connect(self, user=SUPERUSER, database=None, **options):
        try:
            import psycopg2
        except ImportError as error:
            raise Skip("psycopg2 is not installed (apt install python3-psycopg2)") from error
        connection = psycopg2.connect(host=str(self.folder), port=self.port, user=user,
                                      dbname=database or self.database,
                                      connect_timeout=10, **options)
        connection.autocommit = True
        return connection

    def run(self, sql, user=SUPERUSER, database=None):
        connection = self.connect(user, database)
        try:
            connection.cursor().execute(sql)
        finally:
            connection.close()

    def rows(self, sql, user=SUPERUSER, database=None):
        connection = self.connect(user, database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall()
        finally:
            connection.close()

    def value(self, sql, **options):
        return self.rows(sql, **options)[0][0]

    def backends(self):
        """Process ids of back ends with a client, other than the one that asks."""
        return [pid for pid, in self.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND "
                                          "pid <> pg_backend_pid()")]


shared = []


@contextlib.contextmanager
def fresh():
    if not shared:
        shared.append(Server())
        atexit.register(shared[0].remove)
    server = shared[0]
    if server.process is None or server.process.poll() is not None:
        server.start()
    server.database = f"{DATABASE}_{int(server.database.partition('_')[2] or 0) + 1}"
    server.run(f"CREATE DATABASE {server.database}", database="postgres")
    yield server


def main():
    """Self-test: created, filled, killed, restarted."""
    begin = time.monotonic()
    with Server(disk_mb=150) as server:
        print(f"made in {time.monotonic() - begin:.2f} s", server.url())
        server.run("CREATE TABLE t AS SELECT generate_series(1, 100000) AS x")
        server.kill()
        server.start()
        print(server.value("SELECT count(*) FROM t"), "rows after -9")
        server.fill()
        try:
            server.run("INSERT INTO t SELECT generate_series(1, 3000000)")
        except Exception as error:
            print("full:", str(error).splitlines()[0])
        server.free()
        server.run("INSERT INTO t VALUES (1)")
        folder = server.folder
    print(f"gone: {not folder.exists()}, {time.monotonic() - begin:.2f} s")


if __name__ == "__main__":
    main()
