#!/usr/bin/python3
"""A real Prometheus with the shipped configuration, rules and dashboard, and a real node_exporter."""
import json
import re
import shutil
import signal
import subprocess
import urllib.parse

from harness import BUILD, TESTS, WATTLE, Skip, main, near, test, wait_until
from serving import Server, free_port, get, gpus, job, names_of, powercap, restart, samples, textfile, total
from slurm_fixture import Slurm, needs_slurm

ZONES = ["package-0=40", "package-0/dram=5"]
SHIPPED = TESTS.parent / "packaging/prometheus"


@test
def node_exporter(workdir):
    """node_exporter: accepts the file unchanged, besides its own figures"""
    exporter = shutil.which("prometheus-node-exporter")
    if exporter is None:
        raise Skip("prometheus-node-exporter is not installed")
    environment, _ = powercap(workdir, *ZONES)
    _, path = textfile(workdir, "--cgroups", 5, env=environment)
    port = free_port()
    workdir.start("--collector.disable-defaults", "--collector.textfile",
                  f"--collector.textfile.directory={workdir.folder}",
                  f"--web.listen-address=127.0.0.1:{port}", program=exporter, stderr=subprocess.DEVNULL)
    text = wait_until(lambda: get(port, "/metrics"), "node_exporter's figures").decode()
    assert "node_textfile_scrape_error 0" in text and "wattle_energy_joules_total{" in text, text[-2000:]
    assert "process_cpu_seconds_total" in text and "wattle_self_cpu_seconds_total" in text


class Prometheus:
    def __init__(self, workdir, *targets, every="500ms"):
        if shutil.which("prometheus") is None:
            raise Skip("prometheus is not installed")
        self.port = free_port()
        for name in ("wattle-rules.yml", "wattle-alerts.yml"):
            shutil.copy(SHIPPED / name, workdir.folder)
        (workdir.folder / "targets.yml").write_text(json.dumps([{"targets": targets, "labels": {"cluster": "here"}}]))
        config = (SHIPPED / "prometheus.yml").read_text()
        for old, new in (("scrape_interval: 15s", f"scrape_interval: {every}"),
                         ("evaluation_interval: 1m", "evaluation_interval: 1s"),
                         ("wattle-targets.yml", "targets.yml")):
            assert old in config
            config = config.replace(old, new)
        (workdir.folder / "prometheus.yml").write_text(config)
        workdir.start(f"--config.file={workdir.folder}/prometheus.yml", f"--storage.tsdb.path={workdir.folder}/data",
                   f"--web.listen-address=127.0.0.1:{self.port}", program=shutil.which("prometheus"),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path):
        body = get(self.port, path)
        try:
            return json.loads(body) if body else None
        except ValueError:  # it is not ready yet
            return None

    def query(self, expression):
        return self.ask("/api/v1/query?query=" + urllib.parse.quote(expression, safe=""))

    def value(self, expression):
        answer = self.query(expression) or {}
        results = answer.get("data", {}).get("result", [])
        return float(results[0]["value"][1]) if results else None


def expressions():
    """All queries of the dashboard, with its variables filled in as Grafana would."""
    def walk(item):
        if isinstance(item, dict):
            if "expr" in item:
                yield item["expr"]
            for value in item.values():
                yield from walk(value)
        elif isinstance(item, list):
            for value in item:
                yield from walk(value)
    board = json.loads((SHIPPED / "wattle-dashboard.json").read_text())
    for text in walk(board["panels"]):
        yield text.replace("$node", ".*").replace("$__rate_interval", "5s").replace("$__range", "1h")


@test
def the_real_one(workdir):
    """Prometheus with the shipped configuration: after a kill -9 the increase equals the hardware's energy; every
    dashboard query has a result"""
    environment, top = powercap(workdir, *ZONES)
    raw = top / "class/powercap/intel-rapl:0/energy_uj"
    environment.update(gpus(workdir,
                            "gpu\nname A\npower_mw constant 100000\nutilization_percent 50 10\ntemperature_c 55\n"
                                  "memory_total_bytes 8000000000\nmemory_used_bytes 1000\nthrottle_bits 4\n"
                                  "gpu\nname B\npower_mw constant 30000\nutilization_percent 0 0\n"))
    job(workdir, 5, "while :; do for i in $(seq 5000); do :; done; sleep 0.05; done")  # energy of its own, without a whole core
    options = ("--cgroups", 5, "--interval", "200ms")
    server = Server(workdir, *options, env=environment)
    prometheus = Prometheus(workdir, f"{server.host}:{server.port}")
    domain = 'wattle_domain_energy_joules_total{domain="package-0"}'
    wait_until(lambda: (prometheus.value(f"count_over_time({domain}[1m])") or 0) >= 2, "the first scrapes", 30)
    # Prometheus' first value, and the hardware's at that time.
    begin_j = prometheus.value(f"min_over_time({domain}[1m])")
    begin_raw_j = int(raw.read_text()) / 1e6 - (prometheus.value(domain) - begin_j)
    used_j = lambda: prometheus.value(f"max_over_time({domain}[1m])") - begin_j
    wait_until(lambda: used_j() > 40, "a scrape of the energy used since")
    server = restart(workdir, server, signal.SIGKILL, *options, env=environment)
    server.wait_for_samples(6)
    before_j = used_j()
    wait_until(lambda: used_j() > max(before_j, 40 * 3), "a scrape of the restarted server")
    last_j, raw_j = prometheus.value(f"max_over_time({domain}[1m])"), int(raw.read_text()) / 1e6
    assert prometheus.value(f"resets({domain}[1m])") == 0
    near(last_j - begin_j, raw_j - begin_raw_j, absolute=40 * 2)
    rules = prometheus.ask("/api/v1/rules")["data"]["groups"]
    assert (len(rules) == 6
            and all(rule["health"] in ("ok", "unknown") for group in rules for rule in group["rules"])), rules
    wait_until(lambda: prometheus.value('job:wattle_power_watts:rate5m{jobid="5"}'), "the recording rules", 20)
    empty = []
    for expression in expressions():
        answer = prometheus.query(expression)
        assert answer["status"] == "success", (expression, answer)
        if not answer["data"]["result"]:
            empty.append(expression)
    # No counter was reset or unreadable; all other queries have results, and the second card is always idle.
    assert [e for e in empty if "resets_total" not in e] == [], empty
    idle_w = prometheus.value('rate(wattle_attributed_energy_joules_total{to="idle"}[20s])')
    assert idle_w and idle_w > 0, idle_w


@test
def shipped_rules(workdir):
    """promtool: the configuration, the rules, the alerts and their own tests are valid"""
    if shutil.which("promtool") is None:
        raise Skip("promtool is not installed")
    for words in (["check", "config", "prometheus.yml"], ["check", "rules", "wattle-rules.yml", "wattle-alerts.yml"],
                  ["test", "rules", "wattle-rules-test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=SHIPPED, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


@test
def shipped_units(workdir):
    """systemd: accepts every setting of the units, and the programs they start exist"""
    if shutil.which("systemd-analyze") is None:
        raise Skip("systemd-analyze is not installed")
    programs = {"wattle": WATTLE, "wattled": BUILD / "src/helper/wattled"}
    for made in (BUILD / "packaging").glob("*.service"):
        text = re.sub(r"^ExecStart=\S*/(wattled?) ", lambda found: f"ExecStart={programs[found[1]]} ",
                      made.read_text(), flags=re.M)
        (workdir.folder / made.name).write_text(text)
    shutil.copy(SHIPPED.parent / "systemd/wattled.socket", workdir.folder)
    units = sorted(workdir.folder.glob("wattle*"))
    assert len(units) == 4, units
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "nown" not in done.stderr, done.stderr
    helper = (workdir.folder / "wattled.service").read_text()
    for line in ("ReadOnlyPaths=/proc/sys", "InaccessiblePaths=-/run/systemd/private -/run/dbus"):
        assert f"\n{line}\n" in helper, f"{line}: user 0 could get the machine's rights back there"


@test
def a_real_slurm(workdir):
    """job on two nodes of a real Slurm: each node reports it by its number, with energies of its own"""
    needs_slurm()
    workdir.folder.chmod(0o777)
    with Slurm(workdir) as slurm:
        for node, zone in (("vn0", "package-0=50"), ("vn1", "package-0=80")):
            slurm.power(node, zone)
            slurm.start_on(node, WATTLE, "serve", "--textfile", f"{node}.prom", "--interval", "200ms",
                           env={"WATTLE_STATE": str(workdir.folder / "state")})
        wait_until(lambda: all((workdir.folder / f"{node}.prom").exists() for node in slurm.names), "both files")
        script = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done; echo $SLURM_JOB_ID"
        done = slurm.run("srun", "-N2", "-n2", *slurm.as_user(65534, "sh", "-c", script))
        ids = set(done.stdout.split())
        assert len(ids) == 1, (done, slurm.logs())
        number = ids.pop()

        def told(node):
            text = (workdir.folder / f"{node}.prom").read_text()
            assert f'node="{node}"' in text
            return samples(text)

        for node in slurm.names:
            wait_until(lambda: total(told(node), "wattle_job_energy_joules_total", jobid=number) > 0,
                       f"the job on {node}")
            found = told(node)
            assert names_of(found, "wattle_job_energy_joules_total", "jobid") == {number, "none", "other"}, found
            assert 0 < total(found, "wattle_job_energy_joules_total", jobid=number) < \
                total(found, "wattle_energy_joules_total"), found


main()
