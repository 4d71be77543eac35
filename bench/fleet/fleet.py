"""1,000 hosts with 8 GPUs and 4 jobs each, encoded by wattle serve's own encoder in one process, scraped by one real
Prometheus with the shipped configuration: cost of a scrape, and resources of Prometheus. The table is that of
docs/scale.md.

usage: fleet.py BUILD [HOSTS [SECONDS]]     BUILD with -Dbench=true; default 1000 hosts, 300 s
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "packaging/prometheus"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def targets(port, hosts):
    return [{"targets": [f"127.0.0.1:{port}"],
             "labels": {"__metrics_path__": f"/{n}/metrics", "instance": f"node{n:04}", "cluster": f"c{n // 500}"}}
            for n in range(hosts)]


def write_config(folder, port, hosts):
    for name in ("wattle-rules.yml", "wattle-alerts.yml"):
        shutil.copy(SHIPPED / name, folder)
    (folder / "wattle-targets.yml").write_text(json.dumps(targets(port, hosts)))
    config = (SHIPPED / "prometheus.yml").read_text()
    cut = config.index("    relabel_configs:"), config.index("  # Hosts where node_exporter")
    (folder / "prometheus.yml").write_text(config[:cut[0]] + config[cut[1]:])  # all of them have one address


def used(pid):
    """CPU seconds and resident bytes of a process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) * TICK_S, int(stat[21]) * os.sysconf("SC_PAGE_SIZE")


class Prometheus:
    def __init__(self, folder):
        self.folder = folder
        log = folder / "log"
        with open(log, "w") as said:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 "--web.listen-address=127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=said)
        self.url = None
        while self.url is None and self.process.poll() is None:
            time.sleep(0.1)
            for line in log.read_text().splitlines():
                if "Listening on" in line:
                    self.url = "http://" + line.rpartition("address=")[2].strip()
        assert self.url, log.read_text()

    def query(self, expression):
        begin = time.monotonic()
        with urllib.request.urlopen(f"{self.url}/api/v1/query?query={urllib.parse.quote(expression)}",
                                    timeout=60) as answer:
            result = json.loads(answer.read())["data"]["result"]
        return result, time.monotonic() - begin

    def value(self, expression):
        result, _ = self.query(expression)
        return float(result[0]["value"][1]) if result else float("nan")


QUERIES = [
    ("power of each host", "node:wattle_power_watts:rate5m"),
    ("the same without a recording rule", "rate(wattle_energy_joules_total[1m])"),
    ("power of each cluster", "sum by (cluster) (rate(wattle_energy_joules_total[1m]))"),
    ("the 20 hottest of all GPUs", "topk(20, wattle_domain_temperature_celsius)"),
    ("joules of each job over its hosts",
     'sum by (jobid, user) (max_over_time(wattle_job_energy_joules_total{jobid!~"none|other"}[1h]))'),
]


ALL = 'count({__name__=~".+"})'


def row(what, value):
    print(f"| {what} | {value} |", flush=True)


def report(prometheus, simulator, hosts, seconds, before):
    cpu_s, rss = used(prometheus.process.pid)
    own_s, own_rss = used(simulator.pid)
    samples = prometheus.value('sum(scrape_samples_scraped{job="wattle"})')
    row("hosts scraped", f"{prometheus.value('count(up == 1)'):.0f} of {hosts}")
    row("series a host", f"{samples / hosts:.0f}")
    row("series in memory", f"{prometheus.value(ALL):,.0f}")
    for name, q in (("median", 0.5), ("99 %", 0.99), ("slowest", 1)):
        took_s = prometheus.value(f"quantile({q}, avg_over_time(scrape_duration_seconds[5m]))")
        row(f"a scrape takes, {name}", f"{took_s * 1e3:.1f} ms")
    row("CPU of Prometheus, rules included", f"{(cpu_s - before[0]) / seconds * 100:.0f} % of a core")
    row("memory of Prometheus", f"{rss / 1e6:.0f} MB")
    row("CPU of 1,000 encoders", f"{(own_s - before[1]) / seconds * 100:.1f} % of a core")
    row("disk so far (write-ahead log)",
        f"{sum(f.stat().st_size for f in prometheus.folder.rglob('*') if f.is_file()) / 1e6:.0f} MB")
    for what, expression in QUERIES:
        took = sorted(prometheus.query(expression)[1] for _ in range(5))[2]
        row(what, f"{len(prometheus.query(expression)[0]):,} rows in {took * 1e3:.0f} ms")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    hosts, seconds = int((sys.argv[2:] or [1000])[0]), float((sys.argv[3:] or [300])[0])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wattle-fleet-"))
    simulator = subprocess.Popen([build / "bench/fleet", str(hosts)], stdout=subprocess.PIPE, text=True)
    prometheus = None
    try:
        write_config(folder, int(simulator.stdout.readline()), hosts)
        prometheus = Prometheus(folder)
        time.sleep(40)  # until all are known and have been scraped once: the steady state follows
        before = used(prometheus.process.pid)[0], used(simulator.pid)[0]
        begin = time.monotonic()
        time.sleep(seconds)
        report(prometheus, simulator, hosts, time.monotonic() - begin, before)
    finally:
        for process in (prometheus and prometheus.process, simulator):
            if process:
                process.terminate()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
