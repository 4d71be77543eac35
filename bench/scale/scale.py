"""A fleet's samples into one PostgreSQL, and the time of a job's report: the figures of docs/scale.md.

usage: scale.py BUILD [--hosts N] [--seconds N] [--batch N] [--connections N] [--wait] [--reports N] [--json FILE]

BUILD is an optimised build folder with -Dbench=true. The hosts are simulated (host.c): two packages with DRAM and eight
GPUs each, at 10 Hz, 64 of them in a job. A private server is created and removed by the program; 1,000 hosts for ten
minutes need 20 GB in /tmp. Seconds are simulated: the server gets as much as it accepts.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS / "e2e"))
os.environ.setdefault("WATTLE_BUILD", str(TESTS.parent / "build"))  # required by the tests' WorkDir; not used here
os.environ.setdefault("WATTLE_TESTS", str(TESTS))
from harness import children_of  # noqa: E402
from postgres_server import Server  # noqa: E402

# Settings for a server with this load; all others are PostgreSQL's defaults.
SETTINGS = {"fsync": "on", "shared_buffers": "2GB", "max_wal_size": "4GB", "min_wal_size": "1GB",
            "wal_level": "replica",
            "wal_compression": "lz4", "checkpoint_timeout": "15min", "max_connections": "1100", "work_mem": "64MB",
            "maintenance_work_mem": "256MB", "autovacuum_naptime": "15s", "autovacuum_vacuum_cost_limit": "2000"}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
DAY_S = 86400
TABLES = ("sample", "device_sample")


def cpu_s(server: Server) -> float:
    """CPU time of all its processes, ended ones included."""
    pid = server.process.pid

    def fields(of: int) -> list[int]:
        try:
            text = pathlib.Path(f"/proc/{of}/stat").read_text()
        except FileNotFoundError:
            return [0, 0, 0, 0]
        return [int(word) for word in text.rpartition(")")[2].split()[11:15]]
    ticks = sum(fields(pid)) + sum(sum(fields(child)[:2]) for child in children_of(pid))
    return ticks / TICKS_PER_S


def memory_mb(server: Server) -> float:
    """Memory of all its processes, shared pages counted once."""
    total_kb = 0
    for pid in [server.process.pid, *children_of(server.process.pid)]:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total_kb += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total_kb / 1e3


def sizes(server: Server) -> dict[str, dict[str, int]]:
    """Bytes of each table of samples and level: of its rows, and of its indexes."""
    found = server.rows("SELECT c.relname, pg_table_size(c.oid)::bigint, pg_indexes_size(c.oid)::bigint FROM pg_class "
                        "c "
                        r"WHERE c.relkind = 'r' AND c.relname ~ '^(device_)?sample_\d+_\d$' ORDER BY 1")
    told: dict[str, dict[str, int]] = {}
    for name, rows, indexes in found:
        table, _, level = name.rsplit("_", 2)
        one = told.setdefault(f"{table}, level {level}", {"rows": 0, "indexes": 0})
        one["rows"] += rows
        one["indexes"] += indexes
    return told


class Load:
    """The sending program, and the server's activity meanwhile."""

    def __init__(self, build: pathlib.Path, server: Server, chosen: argparse.Namespace):
        self.server = server
        self.cpu_s, self.lsn = cpu_s(server), server.value("SELECT pg_current_wal_insert_lsn()")
        self.memory_mb = 0.0
        words = [f"{name}={value}" for name, value in (
            ("hosts", chosen.hosts), ("seconds", chosen.seconds), ("batch", chosen.batch), ("workers", chosen.workers),
            ("connections", chosen.connections), ("wait", int(chosen.wait)))]
        self.process = subprocess.Popen([build / "bench/scale", server.url(), *words], stdout=subprocess.PIPE)

    def finish(self) -> dict:
        while self.process.poll() is None:
            self.memory_mb = max(self.memory_mb, memory_mb(self.server))
            time.sleep(1)
        if self.process.returncode != 0:
            raise SystemExit("scale.py: the program that sends has failed")
        told = json.loads(self.process.stdout.read())
        told["server_cpu_s"] = cpu_s(self.server) - self.cpu_s
        told["wal_bytes"] = int(self.server.value(
            f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{self.lsn}')::bigint"))
        told["server_memory_mb"] = self.memory_mb
        return told


def count(server: Server, loaded: dict) -> None:
    """Every row once."""
    found = sum(server.value(f"SELECT count(*) FROM {table}") for table in TABLES)
    if found != loaded["rows"]:
        raise SystemExit(f"scale.py: {loaded['rows']} rows were sent, {found} are there")


def seconds_of(function, times: int) -> tuple[float, object]:
    taken, value = [], None
    for _ in range(times):
        begin = time.perf_counter()
        value = function()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken), value


def queries(build: pathlib.Path, server: Server, loaded: dict, times: int) -> dict[str, float]:
    """Seconds of typical queries."""
    wattle, url = build / "src/cli/wattle", server.url()

    def ask(*words: str) -> bytes:
        return subprocess.run([wattle, *words], check=True, capture_output=True).stdout
    told = {}
    told["report of a job"], report = seconds_of(
        lambda: json.loads(ask("report", "--store", url, "--job", "job-0", "--format", "json")), times)
    found_j = report["energy"]["total_j"]
    if abs(found_j / loaded["job_0_j"] - 1) > 1e-6:
        raise SystemExit(f"scale.py: the job's report says {found_j} J, sent were {loaded['job_0_j']} J")
    run = server.value("SELECT run_id::text FROM recording WHERE job_id = 'job-0' AND rank = 0")
    told["report of one run, all samples"], _ = seconds_of(
        lambda: ask("report", "--store", url, "--run", run, "--format", "json"), times)
    told["list of all runs"], _ = seconds_of(lambda: ask("list", "--store", url), times)
    told["energy of each job, in SQL"], _ = seconds_of(lambda: server.rows(
        "SELECT r.job_id, sum(e.uj) FROM recording r, LATERAL (SELECT sum(d.uj) AS uj FROM (SELECT max(energy_uj) - "
        "min(energy_uj) "
        "AS uj FROM device_sample WHERE run_id = r.run_id AND level = 0 GROUP BY device) d) e GROUP BY 1"), times)
    told["power of each host by the minute, in SQL"], _ = seconds_of(lambda: server.rows(
        "SELECT run_id, date_trunc('minute', time) AS at, sum(power_mw) / 60e3 FROM device_sample WHERE level < 2 "
        "GROUP BY 1, 2"), 1)
    return told


def tell(figures: dict, chosen: argparse.Namespace) -> None:
    load = figures["load"]
    rows, per_host = load["rows"], load["rows"] / chosen.hosts / chosen.seconds
    disk = sum(part["rows"] + part["indexes"] for part in figures["disk"].values())
    of_day = DAY_S / chosen.seconds * 1e-9

    def line(what: str, value: str) -> None:
        print(f"{what:52} {value}")
    line("hosts, simulated seconds", f"{chosen.hosts}, {chosen.seconds}")
    line("rows, of them a host and second", f"{rows:,}, {per_host:.0f}")
    line("rows a second", f"{rows / load['seconds']:,.0f}, that is {rows / load['seconds'] / per_host:,.0f} hosts")
    line("rows per CPU second of the server", f"{rows / load['server_cpu_s']:,.0f}")
    line("CPU of the server for these hosts in real time", f"{load['server_cpu_s'] / chosen.seconds:.2f} cores")
    line("CPU of all senders' encoders in real time", f"{load['client_cpu_s'] / chosen.seconds:.2f} cores")
    line("memory of the server, most", f"{load['server_memory_mb']:,.0f} MB")
    line("slowest transaction", f"{load['slowest_s'] * 1e3:,.0f} ms of {load['transactions']:,}")
    line("sent, WAL, disk: bytes a row",
         f"{load['bytes'] / rows:.0f}, {load['wal_bytes'] / rows:.0f}, {disk / rows:.0f}")
    line("WAL, disk a day", f"{load['wal_bytes'] * of_day:,.0f} GB, {disk * of_day:,.0f} GB")
    for name, part in figures["disk"].items():
        line(f"  of it {name}", f"{part['rows'] * of_day:,.1f} GB, indexes {part['indexes'] * of_day:,.2f} GB")
    line("vacuum of the rest, afterwards: CPU", f"{figures['vacuum_cpu_s']:.1f} s")
    for name, seconds in figures["queries"].items():
        line(name, f"{seconds:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    for name, usual in (("hosts", 1000), ("seconds", 600), ("batch", 2), ("workers", 2), ("connections", 0),
                        ("reports", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--wait", action="store_true", help="every commit waits for the disk")
    parser.add_argument("--json", type=pathlib.Path)
    chosen = parser.parse_args()
    build = chosen.build.resolve()
    with Server(wal_segment_mb=64, **SETTINGS) as server:
        figures: dict = {"load": Load(build, server, chosen).finish(), "disk": sizes(server)}
        before_s = cpu_s(server)
        for table in TABLES:
            server.run(f"VACUUM (ANALYZE) {table}")
        figures["vacuum_cpu_s"] = cpu_s(server) - before_s
        count(server, figures["load"])
        figures["queries"] = queries(build, server, figures["load"], chosen.reports) if chosen.reports else {}
        tell(figures, chosen)
        if chosen.json:
            chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
