"""wattle serve and its clients: permissions, responses, and the effect of hostile clients."""
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from harness import TESTS, WATTLE, Skip, main, near, test, wait_until
from serving import Server, gpus, powercap, raw

TOKEN = "kq3vVUmbXhfdF0eX8aCXTVYgW6w4c1yQ"
ZONES = ["package-0=50+20*sin@0.7", "package-0/dram=5"]
SEED_NAMES = ["power_draw_cpu", "intel_power", "mem_used_cpu", "mem_used_gpu", "power_draw_gpu"]
CARDS = """gpu
name NVIDIA H100 "80GB" \\HBM3
uuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
memory_total_bytes 85520809984
memory_used_bytes 2000000000
power_mw constant 300000
utilization_percent 90 40
temperature_c 55
throttle_bits 4
limits_mw 200000 700000 700000 650000
"""


def token_file(workdir, text=TOKEN + "\n", mode=0o600):
    path = workdir.folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


def basic(name, password):
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@test
def start_and_stop(workdir):
    """start: prints its address, serves a page, metrics and JSON there, and ends with status 0 on SIGTERM and SIGINT"""
    for number in (signal.SIGTERM, signal.SIGINT):
        server = Server(workdir)
        status, headers, page = server.ask("/")
        assert status == 200 and headers["Content-Type"].startswith("text/html"), headers
        assert b"<!DOCTYPE html>" in page and b"Power now" in page
        assert server.ask("/metrics")[0] == 200
        assert server.now()["schema"] == "wattle-now/1"
        server.process.send_signal(number)
        done = workdir.finish(server.process)
        assert done.returncode == 0 and done.stdout == "" and done.stderr == "", done


@test
def ends_with_another(workdir):
    """--exit-with: when that process is killed, the server ends as on a signal"""
    other = workdir.start("60", program="sleep")
    server = Server(workdir, "--exit-with", str(other.pid))
    assert server.ask("/metrics")[0] == 200
    other.kill()
    done = workdir.finish(server.process)
    assert done.returncode == 0 and done.stderr == "", done


@test
def wrong_options(workdir):
    """invalid address, interval, token file or process: one line that names the option, and nothing is served"""
    open_file, empty = token_file(workdir, mode=0o644), workdir.folder / "empty"
    empty.touch(mode=0o600)
    taken = Server(workdir)
    rows = [
        (["--listen", "0.0.0.0:0"], 2, "--token-file"),
        (["--listen", ":0"], 2, "--token-file"),
        (["--listen", "[::]:0"], 2, "--token-file"),
        (["--listen", "9095"], 2, "HOST:PORT"),
        (["--listen", f"127.0.0.1:{taken.port}"], 1, "another program uses this port"),
        (["--listen", "0.0.0.0:0", "--token-file", open_file], 1, f"chmod 600 {open_file}"),
        (["--token-file", empty], 2, "is empty"),
        (["--token-file", workdir.folder / "none"], 1, "No such file"),
        (["--interval", "1ms"], 2, "100ms to 1m"),
        (["--pid", "0"], 2, "--pid"),
        (["--pid", "4194303"], 1, "4194303"),
        (["--exit-with", "4194303"], 1, "--exit-with 4194303: No such process"),
        (["somebody"], 2, "'somebody'"),
    ]
    for options, status, says in rows:
        done = workdir.wattle("serve", *options)
        assert done.returncode == status and says in done.stderr, (options, done)
        assert done.stderr.count("\n") == 1 and "serving" not in done.stderr, done.stderr


@test
def who_may_ask(workdir):
    """names that others can make resolve here, other sites' scripts and other methods: refused, each with a reason"""
    server = Server(workdir)
    here = f"{server.host}:{server.port}"
    rows = [
        ("GET", "/", {}, 200),
        ("HEAD", "/metrics", {}, 200),
        ("GET", "/now.json?history=1", {}, 200),
        ("GET", f"http://{here}/metrics", {}, 200),
        ("GET", "http://attacker.example/metrics", {"Host": "attacker.example"}, 403),
        ("GET", "/nothing", {}, 404),
        ("GET", "/../../etc/passwd", {}, 404),
        ("POST", "/", {}, 405),
        ("DELETE", "/metrics", {}, 405),
        ("OPTIONS", "/", {}, 405),
        ("GET", "/", {"Host": "attacker.example"}, 403),
        ("GET", "/metrics", {"Host": f"attacker.example:{server.port}"}, 403),
        ("GET", "/", {"Host": f"localhost:{server.port}"}, 200),
        ("GET", "/", {"Host": here, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("GET", "/now.json", {"Host": here, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", "/now.json", {"Host": here, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ]
    for method, path, headers, expected in rows:
        status, answer, body = server.ask(path, method, headers)
        assert status == expected, (method, path, headers, status, body)
        assert answer["X-Content-Type-Options"] == "nosniff" and answer["Cache-Control"] == "no-store", answer
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"], answer
        assert "Access-Control-Allow-Origin" not in answer
        assert body if method != "HEAD" else not body
    assert b"400" in raw(server, b"GET / HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    twice = f"GET / HTTP/1.1\r\nHost: {here}\r\nHost: attacker.example\r\nConnection: close\r\n\r\n".encode()
    assert b"400" in raw(server, twice).split(b"\r\n")[0]
    assert b"200" in raw(server, b"GET /metrics HTTP/1.0\r\n\r\n").split(b"\r\n")[0]


@test
def tokens(workdir):
    """token: other addresses are served; without it 401, for any path and name"""
    server = Server(workdir, "--token-file", token_file(workdir), listen="0.0.0.0:0")
    server.host = "127.0.0.1"
    rows = [
        (None, 401),
        (f"Bearer {TOKEN}", 200),
        (basic("", TOKEN), 200),
        (basic("anybody", TOKEN), 200),
        (basic(TOKEN, ""), 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Bearer {TOKEN}x", 401),
        ("Bearer ", 401),
        ("Basic ====", 401),
    ]
    for path in ("/", "/metrics", "/now.json", "/figures", "/nothing"):
        for authorization, expected in rows:
            expected = 404 if expected == 200 and path == "/nothing" else expected
            status, headers, _ = server.ask(path, headers={"Authorization": authorization} if authorization else {})
            assert status == expected, (path, authorization, status)
            assert ("WWW-Authenticate" in headers) == (status == 401)
    # A browser that was led here by another name sends no password to it, so with a token any name is accepted.
    assert server.ask("/", headers={"Host": "node7.example", "Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert TOKEN.encode() not in server.said


@test
def unix_socket(workdir):
    """Unix socket: accessible to its owner only, removed with the server"""
    path = workdir.folder / "serve.sock"
    server = Server(workdir, listen=f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk
    assert b"200 OK" in answer and b"wattle_cpu_busy_cores" in answer
    server.process.terminate()
    assert workdir.finish(server.process).returncode == 0
    assert not path.exists()


@test
def figures(workdir):
    """energy between two polls: equal to the hardware's; page, JSON and metrics show the same poll"""
    environment, top = powercap(workdir, *ZONES)
    server = Server(workdir, "--interval", "100ms", env={**environment, **gpus(workdir, CARDS)})
    first = server.now()
    server.wait_for_samples(first["sample"] + 25)
    last = server.now()
    moved = {domain["domain"]: domain["energy_j"] - before["energy_j"]
             for domain, before in zip(last["domains"], first["domains"])}
    seconds = last["unix_s"] - first["unix_s"]
    near(moved["package-0"], 50 * seconds, relative=0.5)
    near(moved["dram-0"], 5 * seconds, relative=0.1)
    near(moved["gpu-0"], 300 * seconds, relative=0.1)
    near(last["total_j"] - first["total_j"], sum(moved.values()), relative=1e-6)
    near(sum(watts or 0 for watts in last["ledger"].values()), last["total_w"], relative=0.01, absolute=0.1)
    gpu = last["domains"][-1]
    assert gpu["throttling"] == "power limit" and gpu["cap_w"] == 650 and gpu["temperature_c"] == 55, gpu
    assert last["provenance"] == "measured" and last["problem"] is None


@test
def unknown_idle_energy(workdir):
    """unknown idle power: idle energy has no series, and is null in JSON"""
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--interval", "100ms", env=environment)
    server.wait_for_samples(server.now()["sample"] + 5)
    body = server.ask("/metrics")[2].decode()
    owners = set(re.findall(r'^wattle_attributed_energy_joules_total\{to="(\w+)"', body, re.MULTILINE))
    assert {"others", "wattle"} <= owners and "idle" not in owners, body
    assert server.now()["ledger"]["idle_w"] is None, server.now()["ledger"]


@test
def same_look(workdir):
    """requests between two polls: the same figures, however many there are"""
    server = Server(workdir, "--interval", "60s")
    assert len({server.ask("/now.json")[2] for _ in range(50)}) == 1
    assert len({server.ask("/metrics")[2] for _ in range(50)}) == 1


def strict_families(text):
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError as error:
        raise Skip("python3-prometheus-client is not installed") from error
    return {family.name: family for family in text_string_to_metric_families(text)}


@test
def metrics_formats(workdir):
    """OpenMetrics on request, checked by the strict parser; otherwise the classic format, by promtool;
    gpu_tracker-style names"""
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--seed-names", "--processes", "5", env={**environment, **gpus(workdir, CARDS)})
    status, headers, body = server.ask("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = strict_families(body.decode())
    assert families["wattle_domain_energy_joules"].type == "counter"
    assert families["wattle_domain_energy_joules"].unit == "joules"
    seeds = {name: families[name].samples[0].value for name in SEED_NAMES}
    assert seeds["power_draw_gpu"] > 250 and seeds["intel_power"] > 10 and seeds["mem_used_cpu"] > 1e6, seeds
    _, headers, body = server.ask("/metrics")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# EOF" not in body and b"\\\\HBM3" in body
    if shutil.which("promtool") is None:
        raise Skip("prometheus is not installed")
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
    # Its complaints about AIPowerMeter's names concern AIPowerMeter.
    against = [line for line in (done.stdout + done.stderr).decode().splitlines()
               if not line.startswith(tuple(SEED_NAMES))]
    assert not against, against


@test
def no_seed_names(workdir):
    """no --seed-names: every name begins with wattle_, except those of the process itself"""
    names = {line.split("{")[0].split()[0] for line in Server(workdir).ask("/metrics")[2].decode().splitlines()
             if not line.startswith("#")}
    assert names and not [name for name in names if not name.startswith(("wattle_", "process_"))], names


@test
def the_target(workdir):
    """--pid: reports a process and its descendants separately, and when it has ended"""
    environment, _ = powercap(workdir, *ZONES)
    busy = workdir.start("-c", "while :; do :; done", program="/bin/sh")
    server = Server(workdir, "--pid", busy.pid, "--interval", "200ms", env=environment)
    now = wait_until(lambda: (n := server.now())["ledger"]["target_w"] and n["ledger"]["target_w"] > 1 and n,
                     "power of the target")
    mine = [process for process in now["processes"] if process["is_target"]]
    assert [process["pid"] for process in mine] == [busy.pid], mine
    assert b'wattle_attributed_power_watts{to="target",' in server.ask("/metrics")[2]
    busy.kill()
    busy.wait()
    wait_until(lambda: b"has ended" in server.ask("/")[2], "the page shows that the target has ended")


@test
def no_energy(workdir):
    """machine without sensors: serves what exists, states why there is no energy, and no figure is nan"""
    server = Server(workdir, env={"WATTLE_SYSFS": str(workdir.tree("empty", {}))})
    page = server.ask("/")[2]
    assert b">nan" not in page
    for line in server.ask("/metrics")[2].decode().splitlines():
        assert line.startswith("#") or not line.endswith("NaN"), line
    now = server.now()
    assert now["cores"] > 0


@test
def hostile_requests(workdir):
    """garbage, endless headers and bodies, half a request: others are served"""
    server = Server(workdir)
    here = f"Host: {server.host}:{server.port}\r\n".encode()
    rows = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(400) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + here + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + here + b"\r\n",
        b"GET / HTTP/1.1\r\n" + here + b"X: y\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\n" + here + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100_000,
        b"POST / HTTP/1.1\r\n" + here + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b"x" * 65535,
        b"GET / HTTP/1.1\r\n" + here + b"Content-Length: -1\r\nConnection: close\r\n\r\n",
        b"GET /%00%ff%2e%2e/ HTTP/1.1\r\n" + here + b"Connection: close\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + here + b"Connection: close\r\n\r\n",
    ]
    for row in rows:
        # It may disconnect before everything was sent; others are served all the same.
        with server.connect() as connection, contextlib.suppress(OSError):
            connection.settimeout(2)
            connection.sendall(row)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        assert server.ask("/metrics")[0] == 200, row[:60]
    server.process.terminate()
    done = workdir.finish(server.process)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@test
def crowd(workdir):
    """hundreds of silent connections and dozens of clients that never read: other clients are served"""
    server = Server(workdir, "--interval", "100ms")
    before = server.rss_bytes()
    ask = f"GET / HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        for i in range(300):
            connection = stack.enter_context(server.connect())
            if i % 5 == 0:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(ask * 20)
            if i % 25 == 0:
                assert server.ask("/metrics")[0] == 200, i
        server.wait_for_samples(server.looks() + 3)
        assert server.ask("/")[0] == 200
    # 64 connections with one page each that is being sent, and no more.
    assert server.rss_bytes() - before < 64 << 20, server.rss_bytes() - before


@test
def pipelined(workdir):
    """pipelined requests on one connection: answered in order"""
    server = Server(workdir)
    ask = f"GET /now.json HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n".encode()
    answer = raw(server, (ask + b"\r\n") * 199 + ask + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 200, answer.count(b"HTTP/1.1 200 OK")


@test
def no_growth(workdir):
    """thousands of responses on persistent connections over many polls: constant memory"""
    # In a build with sanitizers freed memory is kept for a while, which is no growth of the program.
    asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    server = Server(workdir, "--interval", "100ms", env={"ASAN_OPTIONS": asan})
    connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
    paths = ["/", "/figures", "/now.json", "/now.json?history=1", "/metrics", "/nothing"]

    def ask(times):
        for i in range(times):
            connection.request("GET", paths[i % len(paths)])
            connection.getresponse().read()

    def many(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ask(60)

    many(3)
    before, looks = server.rss_bytes(), server.looks()
    many(6)
    grown, seen = server.rss_bytes() - before, server.looks() - looks
    connection.close()
    assert seen > 10
    # Memory of the history until it is full: 600 polls of 6 columns and more; and the allocator's own.
    assert grown < 2 << 20, f"{grown} bytes in {seen} looks"


@test
def allowed_by_its_unit(workdir):
    """system-call filter of the unit: allows everything from start to end, perf's counters too"""
    tools = [shutil.which(name) for name in ("strace", "systemd-analyze")]
    if None in tools:
        raise Skip("strace or systemd-analyze is not installed")
    strace, analyze = tools
    groups = {}
    known = subprocess.run([analyze, "syscall-filter"], capture_output=True, text=True, check=True).stdout
    for line in known.splitlines():
        if line.startswith("@"):
            group = groups.setdefault(line.strip(), [])
        elif line.startswith("    ") and not line.lstrip().startswith("#"):
            group.append(line.strip())

    def calls(name):
        return set().union(*map(calls, groups[name])) if name in groups else {name}

    allowed = set()
    for line in (TESTS.parent / "packaging/systemd/wattle-serve.service.in").read_text().splitlines():
        key, _, names = line.partition("=")
        if key == "SystemCallFilter" and names.startswith("~"):
            allowed -= set().union(*map(calls, names[1:].split()))
        elif key == "SystemCallFilter":
            allowed |= set().union(*map(calls, names.split()))
    traced = workdir.start("-f", "-o", workdir.folder / "calls", WATTLE, "serve", "--listen", "127.0.0.1:0",
                        "--interval", "100ms", program=strace,
                        env={"WATTLE_SYSFS": str(TESTS / "machines/perf-only/sys"), "ASAN_OPTIONS": "detect_leaks=0"})
    url = next(line for line in traced.stderr if b"serving at " in line).decode().split("serving at ")[1].split()[0]
    for _ in range(3):
        with urllib.request.urlopen(url + "metrics", timeout=20) as answer:
            assert answer.status == 200
    os.kill(int((workdir.folder / "calls").read_text().split(maxsplit=1)[0]), signal.SIGTERM)
    workdir.finish(traced)
    done = set(re.findall(r"^\d+ +(\w+)\(", (workdir.folder / "calls").read_text(), re.M))
    # The filter is not yet active while a program is started.
    assert "perf_event_open" in done and done - {"execve"} <= allowed, done - allowed


@test
def real_prometheus(workdir):
    """Prometheus: scrapes with the token as its password file, and knows names, types and units"""
    if shutil.which("prometheus") is None:
        raise Skip("prometheus is not installed")
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--token-file", token_file(workdir), env=environment)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (workdir.folder / "prometheus.yml").write_text(f"""
scrape_configs:
  - job_name: wattle
    scrape_interval: 1s
    authorization: {{credentials_file: {workdir.folder}/token}}
    static_configs: [{{targets: ["{server.host}:{server.port}"]}}]
""")
    workdir.start(f"--config.file={workdir.folder}/prometheus.yml", f"--storage.tsdb.path={workdir.folder}/data",
               f"--web.listen-address=127.0.0.1:{port}", program=shutil.which("prometheus"), stderr=subprocess.DEVNULL)

    def query(path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())["data"]
        except (OSError, ValueError):  # it is not ready yet
            return None
        finally:
            connection.close()

    def scraped():
        data = query("/api/v1/query?query=wattle_domain_energy_joules_total") or {}
        return data.get("result")

    rows = wait_until(scraped, "the first scrape", 30)
    assert {row["metric"]["domain"] for row in rows} == {"package-0", "dram-0"}, rows
    metadata = query("/api/v1/metadata?metric=wattle_domain_energy_joules")
    assert metadata["wattle_domain_energy_joules"][0]["type"] == "counter", metadata
    assert metadata["wattle_domain_energy_joules"][0]["unit"] == "joules", metadata
    targets = query("/api/v1/targets")["activeTargets"]
    assert targets[0]["health"] == "up" and targets[0]["lastError"] == "", targets


if __name__ == "__main__":
    main()
