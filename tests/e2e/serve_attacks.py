"""wattle serve while others do what they can to keep people out: who scrapes gets each answer within a second."""
import http.client
import socket
import sys
import time

from harness import TESTS, main, test
from serving import Server, powercap

ATTACKER = TESTS / "e2e/programs/serve_attacker.py"
CONNECTIONS = 100  # more than there are places
SECONDS = 3        # of each attack
LIMIT_S = 1.0
KINDS = {
    "never-reads": "clients that ask and never read the answer",
    "one-byte-read": "clients that ask and read a byte a second of the answer",
    "silent": "clients that send nothing",
    "half-request": "clients that send half a request",
    "byte-a-second": "clients that send a byte a second",
    "idle-after-answer": "clients that keep their connection and ask for nothing more",
    "many-requests": "clients that send requests without end on each connection",
    "big-head": "clients whose head never ends",
    "come-and-go": "clients that connect and hang up at once",
}


def scrape(server, source, held_up_s=0):
    """How long an answer took, in seconds, without a pause between connect and request."""
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


def attack(room, kind, source, connections=CONNECTIONS):
    """The longest times that scrapes from another address, and from that of the attackers, took."""
    env, _ = powercap(room, "package-0=50")
    server = Server(room, "--interval", "100ms", "--processes", "1000", env=env)
    attacker = room.start(ATTACKER, kind, server.host, str(server.port), source, str(connections), program=sys.executable)
    assert attacker.stdout.readline() == b"ready\n"
    longest = {"127.0.0.1": 0.0, source.partition("+")[0]: 0.0}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for address in longest:
            longest[address] = max(longest[address], scrape(server, address))
    return longest


def add(kind, who):
    def row(room):
        longest = attack(room, kind, "127.0.0.9")
        assert max(longest.values()) < LIMIT_S, longest

    row.__doc__ = f"{who}: everybody else is answered within {LIMIT_S:g} s, from their address as well"
    test(row)


for kind, who in KINDS.items():
    add(kind, who)


def add_many(kind, who):
    def row(room):
        longest = attack(room, kind, "127.1.0.1+200", 500)
        assert max(longest.values()) < LIMIT_S, longest

    row.__doc__ = f"500 {who}, from 200 addresses of this machine: everybody else is answered within {LIMIT_S:g} s"
    test(row)


for kind in ("never-reads", "silent", "many-requests"):
    add_many(kind, KINDS[kind])


@test
def held_up_before_the_request(room):
    """a client on a busy machine that connects and sends its request 0.2 s later beside 500 that send half of one is answered within 1 s"""
    env, _ = powercap(room, "package-0=50")
    server = Server(room, "--interval", "100ms", env=env)
    attacker = room.start(ATTACKER, "half-request", server.host, str(server.port), "127.0.0.9", "500", program=sys.executable)
    assert attacker.stdout.readline() == b"ready\n"
    longest = max(scrape(server, "127.0.0.1", held_up_s=0.2) for _ in range(10))
    assert longest < LIMIT_S, longest


if __name__ == "__main__":
    main()
