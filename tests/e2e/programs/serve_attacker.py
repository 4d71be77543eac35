"""Hostile clients: KIND HOST PORT SOURCE N keeps N connections from address SOURCE (- for a Unix socket, ADDRESS+M:
from M addresses in turn) as KIND states, replaces closed ones, and prints `ready` when all have been opened once. Runs
until it is killed."""
import contextlib
import ipaddress
import itertools
import selectors
import socket
import sys
import time

KIND, HOST, PORT, SOURCE, N = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
FIRST, _, ADDRESSES = SOURCE.partition("+")
SOURCES = itertools.cycle([SOURCE] if not ADDRESSES else
                          [str(ipaddress.IPv4Address(FIRST) + i) for i in range(int(ADDRESSES))])
GET = f"GET /metrics HTTP/1.1\r\nHost: {HOST}:{PORT}\r\n".encode()
WHOLE = GET + b"\r\n"
BURST = 40  # connections opened before the others are served again


class Client:
    """Bytes sent at once, bytes sent every `pause` seconds, and whether it reads the response."""

    def __init__(self, at_once, later=b"", pause=1.0, reads=False, small=True):
        self.at_once, self.later, self.pause, self.reads, self.small = at_once, later, pause, reads, small


KINDS = {
    "never-reads": Client(WHOLE * 20),
    "one-byte-read": Client(WHOLE * 20, reads="byte"),
    "silent": Client(b""),
    "half-request": Client(GET),
    "byte-a-second": Client(b"G", b"E"),
    "idle-after-answer": Client(WHOLE, reads=True, small=False),
    "many-requests": Client(WHOLE * 50, WHOLE * 50, 0.05, reads=True, small=False),
    "big-head": Client(GET + b"X: " + b"x" * 15000, b"x" * 100, 0.2),
    "come-and-go": Client(b"", reads="close"),
}


def main():
    client = KINDS[KIND]
    selector = selectors.DefaultSelector()
    alive = {}  # socket: time of its next send
    opened = 0

    def close(connection):
        with contextlib.suppress(KeyError):
            selector.unregister(connection)
        connection.close()
        alive.pop(connection, None)

    def start():
        connection = socket.socket(socket.AF_UNIX if SOURCE == "-" else socket.AF_INET)
        if client.small:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        connection.settimeout(2)
        try:
            if SOURCE != "-":
                connection.bind((next(SOURCES), 0))
            connection.connect(HOST if SOURCE == "-" else (HOST, PORT))
            connection.sendall(client.at_once)
        except OSError:
            return connection.close()
        connection.setblocking(False)
        if client.reads == "close":
            return connection.close()
        alive[connection] = time.monotonic() + client.pause
        selector.register(connection, selectors.EVENT_READ)

    def read(connection):
        try:
            if client.reads is True:
                data = connection.recv(1 << 20)
            elif client.reads == "byte":
                data = connection.recv(1)
                selector.unregister(connection)  # once a pause
            else:
                data = connection.recv(1, socket.MSG_PEEK)  # there is a response, and it is not read
                selector.unregister(connection)
            if not data:
                close(connection)
        except OSError:
            close(connection)

    def go_on(connection):
        alive[connection] = time.monotonic() + client.pause
        try:
            connection.send(client.later)
            if client.reads != True and connection not in selector.get_map():
                selector.register(connection, selectors.EVENT_READ)
        except BlockingIOError:
            pass
        except OSError:
            close(connection)

    said = False
    while True:
        for _ in range(min(BURST, N - len(alive))):
            start()
            opened += 1
        if opened >= N and not said:
            print("ready", flush=True)
            said = True
        for key, _ in selector.select(0.01):
            read(key.fileobj)
        now = time.monotonic()
        for connection in [c for c, t in alive.items() if t <= now]:
            go_on(connection)


main()
