"""What tests of wattle serve share: a server that has started, and how to ask it."""
import http.client
import json
import os
import re
import socket
import urllib.parse

from harness import BUILD, wait_until


SIMULATOR = BUILD / "tests/fakes/powercap_sim"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ADDRESS = re.compile(rb"serving at (http://\S+/|unix:\S+)")


class Server:
    """A started server: `url`, `host`, `port`; what it said on stderr until then."""

    def __init__(self, room, *options, listen="127.0.0.1:0", env=None):
        # What counts on from an earlier start is of this test alone.
        state = {"WATTLE_STATE": str(room.folder / "state")}
        self.process = room.start("serve", "--listen", listen, *options, env={**state, **(env or {})})
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
        return self.now()["look"]

    def wait_for_looks(self, n, seconds=20):
        wait_until(lambda: self.looks() >= n, f"look {n}", seconds)


def raw(server, data, until_closed=True):
    """Sends bytes as they are and returns all that comes back."""
    with server.connect() as connection:
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
            if not until_closed and answer:
                break
        return answer


def powercap(room, *zones):
    """A simulated machine of moving counters; the environment that shows it to wattle, and its folder."""
    top = room.folder / "sim"
    simulator = room.start(top, *(word for zone in zones for word in ("--zone", zone)), program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top)}, top


def gpus(room, cards):
    (room.folder / "cards").write_text(cards)
    return {"WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(room.folder / "cards")}
