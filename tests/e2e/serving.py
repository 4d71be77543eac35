"""Shared by tests of wattle serve: a running server and requests to it."""
import http.client
import json
import os
import re
import signal
import socket
import urllib.parse

from harness import BUILD, Skip, wait_until

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


BUSY = "while :; do :; done"
SIMULATOR = BUILD / "tests/fakes/powercap_sim"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ADDRESS = re.compile(rb"serving at (http://\S+/|unix:\S+)")


class Server:
    """A running server: `url`, `host`, `port`; its stderr until then."""

    def __init__(self, workdir, *options, listen="127.0.0.1:0", env=None, **keywords):
        # State continued from an earlier start belongs to this test only.
        state = {"WATTLE_STATE": str(workdir.folder / "state")}
        self.process = workdir.start("serve", "--listen", listen, *options, env={**state, **(env or {})}, **keywords)
        self.said = b""
        while not (found := ADDRESS.search(self.said)):
            line = self.process.stderr.readline()
            assert line, f"it did not start: {self.said.decode()}"
            self.said += line
        self.url = found[1].decode()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=10)

    def ask(self, path="/", method="GET", headers=(), body=None):
        """The status, the headers and the body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def now(self):
        return json.loads(self.ask("/now.json")[2])

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def looks(self):
        return self.now()["sample"]

    def wait_for_samples(self, n, seconds=20):
        wait_until(lambda: self.looks() >= n, f"look {n}", seconds)


def raw(server, data, until_closed=True):
    """Sends bytes unchanged and returns the whole response."""
    with server.connect() as connection:
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
            if not until_closed and answer:
                break
        return answer


def powercap(workdir, *zones):
    """A simulated machine of moving counters; the environment that selects it, and its folder."""
    top = workdir.folder / "sim"
    simulator = workdir.start(top, *(word for zone in zones for word in ("--zone", zone)), program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top)}, top


def gpus(workdir, cards):
    (workdir.folder / "cards").write_text(cards)
    return {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "cards")}


def samples(text):
    """{(name, frozenset of labels without node)}: value} of a document in the classic format; each occurs once."""
    if text_string_to_metric_families is None:
        raise Skip("python3-prometheus-client is not installed")
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset((k, v) for k, v in sample.labels.items() if k != "node"))
            assert key not in found, f"{key} stands twice"
            found[key] = sample.value
    return found


def scrape(server, agent="test"):
    status, _, body = server.ask("/metrics", headers={"User-Agent": agent})
    assert status == 200
    return samples(body.decode())


def rows(found, name, /, **labels):
    return {key[1]: value for key, value in found.items() if key[0] == name and set(labels.items()) <= key[1]}


def total(found, name, /, **labels):
    return sum(rows(found, name, **labels).values())


def names_of(found, name, label):
    return {value for labels in rows(found, name) for key, value in labels if key == label}


def job(workdir, number, words=BUSY):
    """A process as a scheduler without cgroups would start it."""
    return workdir.start("-c", words, program="/bin/sh", env={"SLURM_JOB_ID": str(number), "SLURM_JOB_UID": "65534"})


def stop(process, how=signal.SIGKILL):
    process.send_signal(how)
    process.wait()


def restart(workdir, server, how, *options, **keywords):
    stop(server.process, how)
    return Server(workdir, *options, listen=f"{server.host}:{server.port}", **keywords)


def textfile(workdir, *options, env=None, name="wattle.prom"):
    """wattle serve --textfile, once the file is there."""
    path = workdir.folder / name
    process = workdir.start("serve", "--textfile", path, "--interval", "100ms", *options,
                         env={"WATTLE_STATE": str(workdir.folder / "state"), **(env or {})}, umask=0o077)
    process.said = b""
    while b"writing" not in process.said:
        line = process.stderr.readline()
        assert line, process.said
        process.said += line
    return process, path


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    except OSError:
        return None
    finally:
        connection.close()
