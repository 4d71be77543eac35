"""wattled and clients that flood, stall and send garbage: others are served meanwhile, and it does not grow."""
import os
import pathlib
import select
import sys
import time

import harness
from harness import NOBODY, test, wait_until
from helper_client import CARD, END, HELLO, LEASE, READ, SET, Helper, Refused, as_user, many, request

FLOOD = 100_000


def usage(pid):
    """(resident KiB, descriptors)"""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return kib, len(os.listdir(f"/proc/{pid}/fd"))


def does_not_grow(helper, before):
    wait_until(lambda: usage(helper.pid)[1] <= before[1], "all descriptors are closed")
    assert usage(helper.pid)[0] <= before[0] + 512, (before, usage(helper.pid))


# ---- attackers ----

@test
def malformed(workdir):
    """invalid request: ends the connection without a reply"""
    helper = Helper(workdir)
    before = usage(helper.pid)
    for data in (request(HELLO, magic=0), request(0), request(10), request(HELLO, reserved=b"x"), os.urandom(64),
                 request(SET, name=b"x" * 24), request(HELLO, name=b"\n"), request(HELLO, name=b"\xff")):
        with helper.client() as client:
            client.send(data)
            try:
                client.reply()
            except (ConnectionError, OSError):
                continue
            raise AssertionError(f"was answered: {data!r}")
    does_not_grow(helper, before)


@test
def flood(workdir):
    """10^5 requests whose replies are not read: others are served meanwhile, memory and descriptors stay constant"""
    helper = Helper(workdir)
    with helper.client() as friend:
        friend.read(0, 4)
        before = usage(helper.pid)
        program = ("import sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n"
                   "import threading\n"
                   "c = client.Client(sys.argv[2])\n"
                   "t = threading.Thread(target=lambda: [c.reply() for _ in range(int(sys.argv[3]))])\n"
                   "t.start()\n"
                   "data = client.request(client.READ, 0, 16) * 1000\n"
                   "[c.send(data) for _ in range(int(sys.argv[3]) // 1000)]\n"
                   "t.join()\n")
        enemy = workdir.start("-c", program, pathlib.Path(__file__).parent, helper.path, FLOOD, program=sys.executable)
        waits = []
        while enemy.poll() is None:
            begin = time.monotonic()
            assert len(friend.read(0, 4)) == 4
            waits.append(time.monotonic() - begin)
        assert enemy.returncode == 0, enemy.stderr.read()
        assert len(waits) > 10 and sorted(waits)[len(waits) // 2] < 0.05, sorted(waits)[-5:]
    does_not_grow(helper, before)


@test
def slow_driver(workdir):
    """slow driver call for a limit: readings are answered meanwhile; a limit that waits behind it is not set if its
    requester has disconnected, while a reset is still carried out"""
    Helper.prepare(workdir, cards=CARD + "set_delay_ms 1500\n")
    helper = Helper(workdir)
    with helper.client() as reader, helper.client() as setter:
        gpu = helper.row(reader, "gpu-0")
        setter.send(request(SET, gpu, mode=LEASE, value=300000))
        time.sleep(0.1)
        with helper.client() as other:
            other.send(request(SET, gpu, mode=LEASE, value=350000))
        for _ in range(20):
            assert len(reader.read(0, 4)) == 4
        assert not select.select([setter.socket], [], [], 0)[0], "the limit was set before the readings were over"
        setter.reply()
        with helper.client() as other:
            other.send(request(END, gpu))
        wait_until(lambda: helper.gpu_calls()[-1] == (0, 700000), "the limit was ended", 20)
        assert [milliwatts for _, milliwatts in helper.gpu_calls()] == [300000, 700000], helper.gpu_calls()
    helper.stop()


@test
def deaf(workdir):
    """client that sends and never reads: disconnected, and uses only its slot until then"""
    helper = Helper(workdir)
    before = usage(helper.pid)
    with helper.client() as enemy, helper.client() as friend:
        enemy.socket.settimeout(0.2)
        data = request(READ, 0, 16) * 1000
        try:
            for _ in range(FLOOD // 1000):
                enemy.send(data)
        except OSError:
            pass
        assert len(friend.read(0, 4)) == 4
        wait_until(lambda: usage(helper.pid)[1] <= before[1] + 1, "the client that does not read is disconnected")
        assert len(friend.read(0, 4)) == 4
    does_not_grow(helper, before)


@test
def half_messages(workdir):
    """request in pieces: answered; client that stops within a request: disconnected after seconds, others are served
    meanwhile"""
    helper = Helper(workdir)
    before = usage(helper.pid)
    with helper.client() as slow, many(helper.path, 20) as enemies, helper.client() as friend:
        for byte in request(HELLO):
            slow.send(bytes([byte]))
        slow.reply()
        for size, enemy in enumerate(enemies, 1):
            enemy.send(request(READ, 0, 1)[:3 * size])
        for _ in range(100):
            friend.read()
        for enemy in enemies:
            enemy.socket.settimeout(20)
            assert enemy.socket.recv(1) == b""
        friend.read()
    does_not_grow(helper, before)


@test
def many_connections(workdir):
    """1,000 connections of one user: some are served, the others are refused with the reason; another user is served
    meanwhile, and so is the first one afterwards"""
    helper = Helper(workdir, policy="others read\n")
    before = usage(helper.pid)
    program = """
print("x" if client.Client(sys.argv[2]).read(0, 4) else "")
"""
    with helper.client() as friend, many(helper.path, 1000) as enemies:
        served = 0
        for enemy in enemies:
            try:
                enemy.hello()
                served += 1
            except (Refused, OSError):
                pass
        assert 100 <= served < 1000, served
        friend.read()
        assert as_user(NOBODY, [], program, helper.path) == "x"
    does_not_grow(helper, before)
    with helper.client() as client:
        client.read()


harness.main()
