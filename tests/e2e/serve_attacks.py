"""wattle serve under attack: each scrape is answered within a second. A second server without attackers shows how much
a busy machine adds."""
import http.client
import socket
import sys
import time

from harness import TESTS, main, test
from serving import Server, powercap

ATTACKER = TESTS / "e2e/programs/serve_attacker.py"
CONNECTIONS = 100  # more than there are slots
SECONDS = 1.5      # of each attack: longer than the pauses of slow clients
LIMIT_S = 1.0
KINDS = {
    "never-reads": "clients that never read the response",
    "one-byte-read": "clients that read one byte of the response a second",
    "silent": "clients that send nothing",
    "half-request": "clients that send half a request",
    "byte-a-second": "clients that send a byte a second",
    "idle-after-answer": "clients that keep their connection without further requests",
    "many-requests": "clients that send endless requests on each connection",
    "big-head": "clients with an endless header",
    "come-and-go": "clients that connect and disconnect at once",
}


def scrape(server, source, held_up_s=0):
    """Response time in seconds, without a pause between connect and request."""
    begin = time.monotonic() + held_up_s
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30, source_address=(source, 0))
    try:
        connection.connect()
        time.sleep(held_up_s)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        assert answer.read().endswith(b"\n")
    finally:
        connection.close()
    return time.monotonic() - begin


def attacked(workdir, kind, source, connections):
    """A server under attack, and one without."""
    env, _ = powercap(workdir, "package-0=50")
    servers = [Server(workdir, "--interval", "100ms", "--processes", "1000",
                      env={**env, "WATTLE_STATE": str(workdir.folder / state)})
               for state in ("attacked", "left-alone")]
    attacker = workdir.start(ATTACKER, kind, servers[0].host, str(servers[0].port), source, str(connections),
                             program=sys.executable)
    assert attacker.stdout.readline() == b"ready\n"
    return servers


def attack(workdir, kind, source, connections=CONNECTIONS):
    """scrapes from another address and from the attackers': answered in time"""
    server, left_alone = attacked(workdir, kind, source, connections)
    longest = {"127.0.0.1": 0.0, source.partition("+")[0]: 0.0}
    usual_s, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        for address in longest:
            longest[address] = max(longest[address], scrape(server, address))
            usual_s = max(usual_s, scrape(left_alone, address))
    assert max(longest.values()) < LIMIT_S + usual_s, (longest, usual_s)


def add(kind, who):
    def row(workdir):
        attack(workdir, kind, "127.0.0.9")

    row.__doc__ = f"{who}: other clients are answered within {LIMIT_S:g} s, from the same address as well"
    test(row)


for kind, who in KINDS.items():
    add(kind, who)


def add_many(kind, who):
    def row(workdir):
        attack(workdir, kind, "127.1.0.1+200", 500)

    row.__doc__ = f"500 {who}, from 200 addresses of this machine: other clients are answered within {LIMIT_S:g} s"
    test(row)


for kind in ("never-reads", "silent", "many-requests"):
    add_many(kind, KINDS[kind])


@test
def connection_idle_before_request(workdir):
    """client on a busy machine that sends its request 0.2 s after connecting, beside 500 with half requests: answered
    within 1 s"""
    server, left_alone = attacked(workdir, "half-request", "127.0.0.9", 500)
    longest, usual_s = (max(scrape(one, "127.0.0.1", held_up_s=0.2) for _ in range(10)) for one in (server, left_alone))
    assert longest < LIMIT_S + usual_s, (longest, usual_s)


if __name__ == "__main__":
    main()
