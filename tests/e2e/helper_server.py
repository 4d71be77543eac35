"""wattled as friends and enemies meet it: who may what, clients that flood, stall and lie, and what is left when it is
killed."""
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import harness
from harness import NOBODY, Skip, is_alive, test, wait_until
from helper_client import (CARD, CHECK, COUNTER, END, HELLO, KEEP, LEASE, MISSING, NVML, READ, RESET, SET, STANDING, WATTLED,
                           Client, Helper, Refused, as_user, is_refused, many, request)

FLOOD = 100_000
GROUP = 54321  # nobody's on any machine
# Asks as a process of its own, and stays until it is told to go.
HOLDER = """
c = client.Client(sys.argv[2])
number = int(sys.argv[3])
print(c.outcome(client.SET, number, mode=client.LEASE, value=int(sys.argv[4]))["set"], flush=True)
if sys.argv[5:] == ["hang up"]:
    c.socket.close()
sys.stdin.read()
"""


def holder(helper, number, value_mw, *words):
    """A process that holds a limit."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n" + HOLDER
    process = helper.room.start("-c", program, pathlib.Path(__file__).parent, helper.path, number, value_mw, *words,
                                program=sys.executable, stdin=subprocess.PIPE)
    line = process.stdout.readline()
    assert line == f"{value_mw}\n".encode(), line + process.stderr.read()
    return process


def usage(pid):
    """(resident KiB, descriptors)"""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return kib, len(os.listdir(f"/proc/{pid}/fd"))


def does_not_grow(helper, before):
    wait_until(lambda: usage(helper.pid)[1] <= before[1], "all descriptors are closed")
    assert usage(helper.pid)[0] <= before[0] + 512, (before, usage(helper.pid))


# ---- what it answers ----

@test
def counters(room):
    """Counters have their zones' names and the figures of their files; beyond the table's end there is nothing"""
    helper = Helper(room)
    with helper.client() as client:
        hello = client.hello()
        assert hello["counters"] == 4 and hello["may_read"] == 1 and hello["period_us"] == 1000, hello
        names = [client.ask(COUNTER, i)[:64].split(b"\0")[0].decode() for i in range(4)]
        assert names == ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:0"], names
        readings = client.read(0, 16)
        files = [int((helper.sysfs / f"class/powercap/{name}/energy_uj").read_text()) for name in names]
        assert [uj for uj, _ in readings] == files, readings
        assert client.read(2, 1)[0][0] == files[2]
        is_refused(2, client.ask, COUNTER, 4)
        is_refused(2, client.read, 4, 1)
        is_refused(22, client.read, 0, 17)
        is_refused(22, client.read, 0, 0)


@test
def vanished(room):
    """A counter that is gone is unknown, not 0, and is there again when it comes back"""
    helper = Helper(room)
    zone = helper.sysfs / "devices/virtual/powercap/intel-rapl/intel-rapl:0"
    with helper.client() as client:
        before = client.read()[0][0]
        zone.rename(zone.parent / "elsewhere")
        (zone.parent / "elsewhere/energy_uj").unlink()
        wait_until(lambda: client.read()[0][0] == MISSING, "the counter is unknown")
        (zone.parent / "elsewhere/energy_uj").write_text(f"{before + 5}\n")
        (zone.parent / "elsewhere").rename(zone)
        wait_until(lambda: client.read()[0][0] == before + 5, "the counter is back")


@test
def rate(room):
    """Who may read every 100 ms gets the reading of before, with its time, though others read every millisecond"""
    helper = Helper(room, policy=f"user {NOBODY} read\nothers read every 100ms\n")
    energy = helper.sysfs / "class/powercap/intel-rapl:0/energy_uj"
    slow = as_user(NOBODY - 1, [], """
import time
c = client.Client(sys.argv[2])
assert c.hello()["period_us"] == 100000
seen, end = set(), time.monotonic() + 1
while time.monotonic() < end:
    seen.add(c.read()[0][1])
times = sorted(seen)
assert all(b - a >= 95_000_000 for a, b in zip(times, times[1:])), times
print(len(times))
""", helper.path)
    assert 2 <= int(slow) <= 11, slow
    fast = as_user(NOBODY, [], """
c = client.Client(sys.argv[2])
assert c.hello()["period_us"] == 1000
times = sorted({c.read()[0][1] for _ in range(5000)})
assert all(b - a >= 950_000 for a, b in zip(times, times[1:])), times
print(len(times))
""", helper.path)
    assert int(fast) > 3 and energy.exists(), fast


# ---- who may what ----

@test
def nobody_without_policy(room):
    """Without a policy somebody outside group wattle may neither read nor limit, and is told whom to ask"""
    helper = Helper(room)
    said = as_user(NOBODY, [], """
c = client.Client(sys.argv[2])
hello = c.hello()
assert hello["may_read"] == 0 and hello["may_cap"] == 0 and hello["period_us"] == 0, hello
for kind in (client.COUNTER, client.READ, client.SET, client.RESET):
    print(client.is_refused(13, c.ask, kind, 0, 1, mode=1, value=300000))
print(client.is_refused(2, c.ask, client.END, 99))
""", helper.path)
    assert "usermod -aG wattle" in said, said
    assert helper.gpu_calls() == []


@test
def groups(room):
    """A group's rule holds for its members, by their supplementary groups too, and for nobody else"""
    helper = Helper(room, policy=f"group {GROUP} read\ngroup {GROUP} cap gpus 250..400\n")
    program = """
hello = client.Client(sys.argv[2]).hello()
print(hello["may_read"], hello["may_cap"])
"""
    for member_of, may in (([GROUP], "1 1"), ([NOBODY, GROUP], "1 1"), ([NOBODY], "0 0"), ([], "0 0")):
        assert as_user(NOBODY, member_of, program, helper.path) == may, member_of


@test
def ranges(room):
    """A limit outside the policy's range or the device's is refused with the range, and nothing is written"""
    helper = Helper(room, policy=f"user {NOBODY} cap gpu-0 250..400\nuser {NOBODY} cap package-0 ..1000\n")
    said = as_user(NOBODY, [], """
c = client.Client(sys.argv[2])
rows = {(r["name"], r["what"]): i for i, r in ((i, c.device(i)) for i in range(c.hello()["devices"]))}
gpu, clocks, package, other = rows["gpu-0", 0], rows["gpu-0", 1], rows["package-0", 0], rows["package-1", 0]
row = c.device(gpu)
assert (row["least"], row["most"], row["may_set"]) == (250000, 400000, 1), row
assert c.device(package)["most"] == 205000 and c.device(other)["may_set"] == 0 and c.device(clocks)["may_set"] == 0
for number, value in ((gpu, 249999), (gpu, 400001), (gpu, 0), (gpu, -1), (gpu, 2 ** 63 - 1), (gpu, -2 ** 63),
                      (package, 205001)):
    for mode in (client.LEASE, client.STANDING):
        print(client.is_refused(34, c.outcome, client.SET, number, mode=mode, value=value))
for number in (clocks, other):
    client.is_refused(13, c.outcome, client.SET, number, mode=client.LEASE, value=1000)
client.is_refused(22, c.outcome, client.SET, gpu, mode=7, value=300000)
""", helper.path)
    assert "250 to 400 W" in said and "205 W" in said, said
    assert helper.gpu_calls() == []


@test
def resets_within_ranges(room):
    """Who may limit within a range can reset what they changed themselves; not to a default outside of it, not what root set"""
    helper = Helper(room, policy=f"user {NOBODY} cap gpu-0 250..400\nuser {NOBODY} cap package-0\n")
    environment = {"WATTLE_STATE": str(room.folder / "state"), "WATTLE_FAKE_NVML": str(helper.cards),
                   "WATTLE_NVML": str(NVML), "WATTLE_SYSFS": str(helper.sysfs)}
    begin = """
c = client.Client(sys.argv[2])
rows = {(r["name"], r["what"]): i for i, r in ((i, c.device(i)) for i in range(c.hello()["devices"]))}
gpu, package = rows["gpu-0", 0], rows["package-0", 0]
"""
    said = as_user(NOBODY, [], begin + """
c.outcome(client.SET, gpu, mode=client.STANDING, value=300000)
print(client.is_refused(34, c.outcome, client.RESET, gpu, mode=1))
c.outcome(client.SET, package, mode=client.STANDING, value=100000)
assert c.outcome(client.RESET, package)["set"] > 100000
assert c.outcome(client.RESET, gpu)["set"] == 700000
""", helper.path)
    assert "700 W is not within 250 to 400 W" in said and helper.gpu_calls() == [(0, 300000), (0, 700000)], said
    room.wattle("cap", "set", "gpu-0", "350", env=environment)
    room.wattle("cap", "set", "package-0", "90", "--for", "1h", env=environment)
    said = as_user(NOBODY, [], begin + """
c.outcome(client.SET, gpu, mode=client.STANDING, value=300000)
print(client.is_refused(34, c.outcome, client.RESET, gpu))
print(client.is_refused(16, c.outcome, client.RESET, package))
""", helper.path)
    assert "700 W is not within 250 to 400 W" in said and "wattle cap set" in said, said
    assert helper.gpu_calls()[-1] == (0, 300000) and helper.package_uw() == 90000000
    room.wattle("cap", "reset", "package-0", env=environment)


@test
def readers_of_the_journal(room):
    """Nobody else can lock a file of the journal, which would keep limits from being set and from being put back"""
    helper = Helper(room)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    locks = list((room.folder / "state" / "caps").glob("*.lock"))
    assert locks and all(path.stat().st_mode & 0o077 == 0 for path in locks), locks


@test
def flood_of_refusals(room):
    """What is refused because a device is held does not count against its holder, and garbage keeps no change out of
    the log"""
    helper = Helper(room, policy=f"user {NOBODY} cap any\n")
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
        client.outcome(SET, gpu, mode=LEASE, value=300000)
        as_user(NOBODY, [], """
c, gpu = client.Client(sys.argv[2]), int(sys.argv[3])
for _ in range(300):
    client.is_refused(16, c.outcome, client.SET, gpu, mode=client.LEASE, value=350000)
    client.is_refused(16, c.outcome, client.RESET, gpu)
    client.is_refused(34, c.outcome, client.SET, gpu, mode=client.LEASE, value=1)
for _ in range(40):
    with client.Client(sys.argv[2]) as other:
        other.send(b"x" * 64)
""", helper.path, gpu)
        assert client.outcome(SET, gpu, mode=LEASE, value=410000)["set"] == 410000
    assert "gpu-0: 410 W" in helper.said(), helper.said()


@test
def group_wattle(room):
    """Without a policy members of group wattle may read every millisecond and limit power in the device's own range,
    not clocks"""
    (room.folder / "group").write_text(f"root:x:0:\nwattle:x:{GROUP}:\n")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no mount namespaces here")
    helper = Helper(room, before=("unshare", "--mount", "sh", "-c",
                                  f'mount --bind "{room.folder}/group" /etc/group && exec "$0" "$@"'))
    said = as_user(NOBODY, [NOBODY, GROUP], """
c = client.Client(sys.argv[2])
hello = c.hello()
assert hello["may_read"] == 1 and hello["may_cap"] == 1 and hello["period_us"] == 1000, hello
for i in range(hello["devices"]):
    row = c.device(i)
    assert row["may_set"] == (row["what"] == 0), row
    if row["name"] == "gpu-0" and row["what"] == 0:
        assert (row["least"], row["most"]) == (200000, 700000), row
        print(c.outcome(client.SET, i, mode=client.LEASE, value=200000)["set"])
""", helper.path)
    assert said == "200000", said
    wait_until(lambda: helper.gpu_calls() == [(0, 200000), (0, 700000)], "the limit is back")
    assert as_user(NOBODY, [NOBODY], "print(client.Client(sys.argv[2]).hello()['may_read'])", helper.path) == "0"


@test
def unprivileged(room):
    """An ordinary user can run it too: it serves what that user may read, and says what it can't give away"""
    room.folder.chmod(0o777)
    shutil.copy(WATTLED, room.folder / "wattled")
    shutil.copy(NVML, room.folder / "nvml.so")
    Helper.prepare(room)
    subprocess.run(["chmod", "-R", "a+rX", room.folder], check=True)
    helper = Helper(room, "--nvml", room.folder / "nvml.so", program=room.folder / "wattled", user=NOBODY, group=NOBODY,
                    extra_groups=[])
    assert as_user(NOBODY, [], "print(client.Client(sys.argv[2]).read()[0][0] > 0)", helper.path) == "True"
    helper.stop()


POLICIES = (
    ("others read every 1", "line 1: '1' is no time"),
    ("# all\n\nothers cap gpu-0 300..200", "line 3: '300..200' is no range"),
    ("user no-such-user read", "line 1: there is no user 'no-such-user'"),
    ("others read\nsomebody read", "line 2: a rule begins with"),
    ("others read now", "line 1: after `read`"),
    ("others cap gpu0", "line 1: after `cap`"),
    ("others nothing more", "line 1: 'more' is too much"),
    ("others read\n" * 65, "line 65: there are more than 64 rules"),
    ("others", "line 1: who is followed by"),
    ("user", "line 1: `user` wants"),
    ("others read \0", "line 1: has a character"),
    ("x" * 600, "line 1: is longer than"),
)


@test
def bad_policies(room):
    """A policy with a mistake keeps wattled from starting; the line and what would be right are said"""
    for text, expected in POLICIES:
        helper = Helper(room, policy=text, wait=False)
        assert helper.process.wait(20) == 1
        assert expected in helper.said(), (text[:40], helper.said())
        helper.log.unlink()


@test
def policy_owner(room):
    """A policy that others may write to, or that is theirs, is refused"""
    Helper(room, policy="others read", wait=True).stop()
    for change, expected in ((lambda path: path.chmod(0o664), "chmod go-w"),
                             (lambda path: os.chown(path, NOBODY, 0), "chown")):
        change(room.folder / "policy")
        (room.folder / "log").unlink()
        helper = Helper(room, "--policy", room.folder / "policy", wait=False)
        assert helper.process.wait(20) == 1 and expected in helper.said(), helper.said()


# ---- limits ----

@test
def lease_ends_with_its_process(room):
    """A limit goes within a second after a kill -9 of the process that holds it; nobody else can end it or take the
    device"""
    helper = Helper(room)
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
        process = holder(helper, gpu, 300000)
        row = client.device(gpu)
        assert (row["lease_pid"], row["lease"]) == (process.pid, "test"), row
        assert str(process.pid) in is_refused(16, client.outcome, SET, gpu, mode=LEASE, value=400000)
        is_refused(16, client.outcome, SET, gpu, mode=STANDING, value=400000)
        is_refused(16, client.outcome, RESET, gpu)
        for kind in (CHECK, END, KEEP):
            is_refused(2, client.outcome, kind, gpu)
        killed = time.monotonic()
        process.kill()
        wait_until(lambda: helper.gpu_calls() == [(0, 300000), (0, 700000)], "the limit is back", 5)
        assert time.monotonic() - killed < 1
        assert client.device(gpu)["lease_pid"] == 0


@test
def lease_outlives_its_connection(room):
    """A limit stays when its connection closes, and is its process's over the next one; it goes when that ends"""
    helper = Helper(room)
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
    with helper.client() as client:
        assert client.outcome(SET, gpu, mode=LEASE, value=300000)["previous"] == 700000
    with helper.client() as client:
        assert client.outcome(CHECK, gpu)["was_foreign"] == 0
        assert client.outcome(SET, gpu, mode=LEASE, value=400000)["set"] == 400000
        assert client.outcome(END, gpu)["set"] == 700000
        is_refused(2, client.outcome, END, gpu)
        other = holder(helper, gpu, 300000, "hang up")
        assert client.device(gpu)["lease_pid"] == other.pid
        other.stdin.close()
        other.wait(10)
        wait_until(lambda: client.device(gpu)["lease_pid"] == 0, "the limit has gone", 5)
    assert helper.gpu_calls() == [(0, mw) for mw in (300000, 400000, 700000, 300000, 700000)]


@test
def foreign_change(room):
    """What somebody else set meanwhile stays, and the client is told"""
    helper = Helper(room)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=LEASE, value=100000)
        assert helper.package_uw() == 100_000_000
        helper.package_file().write_text("150000000\n")
        told = client.outcome(CHECK, package)
        assert told["was_foreign"] == 1 and told["foreign"] == 150000, told
        told = client.outcome(END, package)
        assert told["was_foreign"] == 1 and helper.package_uw() == 150_000_000, told


@test
def standing(room):
    """A limit that stays outlives its client and wattled; reset brings back what was there before the first one"""
    helper = Helper(room)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=STANDING, value=100000)
        client.outcome(SET, package, mode=LEASE, value=90000)
        client.outcome(KEEP, package)
    helper.stop()
    assert helper.package_uw() == 90_000_000
    helper.log.unlink()
    helper = Helper(room)
    with helper.client() as client:
        assert helper.package_uw() == 90_000_000
        client.outcome(RESET, package)
    assert helper.package_uw() == 205_000_000


@test
def for_a_time(room):
    """A limit for a time ends when it is over, or when who asked for it resets it, wherever that process is"""
    helper = Helper(room)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=STANDING, value=100000, for_s=1)
        assert helper.package_uw() == 100_000_000
        is_refused(16, client.outcome, SET, package, mode=LEASE, value=90000)
        wait_until(lambda: helper.package_uw() == 205_000_000, "the time is over")
        client.outcome(SET, package, mode=STANDING, value=100000, for_s=1000)
        client.outcome(RESET, package)
        assert helper.package_uw() == 205_000_000
        client.outcome(SET, package, mode=STANDING, value=100000, for_s=1000)
    told = room.wattle("cap", "reset", "package-0", env={
        "WATTLE_HELPER": str(helper.path), "WATTLE_STATE": str(room.folder / "state"),
        "WATTLE_SYSFS": str(helper.sysfs), "WATTLE_NVML": NVML, "WATTLE_FAKE_NVML": str(helper.cards)})
    assert told.returncode == 0 and helper.package_uw() == 205_000_000, told  # root could write it, but not end the time


# ---- what is left ----

def held(room):
    helper = Helper(room)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
        client.outcome(SET, helper.row(client, "package-0"), mode=LEASE, value=100000)
    assert helper.package_uw() == 100_000_000
    return helper


def is_back(helper):
    return helper.gpu_calls()[-1] == (0, 700000) and helper.package_uw() == 205_000_000


@test
def terminated(room):
    """SIGTERM restores all limits, removes the socket and is no failure; a limit for a time goes too"""
    helper = held(room)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "package-1"), mode=STANDING, value=100000, for_s=1000)
    helper.stop()
    assert is_back(helper) and helper.package_uw(1) == 205_000_000
    assert not helper.path.exists() and not is_alive(helper.pid)


@test
def killed(room):
    """kill -9 of the serving process, or of its guard: the limits are back within a second, and both are gone"""
    for which in ("server", "guard"):
        helper = held(room)
        when = time.monotonic()
        os.kill(helper.pid if which == "server" else helper.process.pid, signal.SIGKILL)
        wait_until(lambda: is_back(helper), "the limits are back", 5)
        assert time.monotonic() - when < 1, which
        assert helper.process.wait(20) != 0
        wait_until(lambda: not is_alive(helper.pid), "both are gone")
        helper.log.unlink()


@test
def both_killed(room):
    """kill -9 of both: the next start finds what they left, restores it, says so, and serves at the same socket"""
    helper = held(room)
    helper.process.send_signal(signal.SIGSTOP)
    os.kill(helper.pid, signal.SIGKILL)
    helper.process.kill()
    helper.process.wait(20)
    assert not is_back(helper) and helper.path.exists()
    helper.log.unlink()
    helper = Helper(room)
    assert is_back(helper) and "gpu-0 is back at 700 W" in helper.said(), helper.said()
    with helper.client() as client:
        assert client.hello()["may_cap"] == 1


@test
def second(room):
    """A second wattled at the same socket is refused and disturbs nothing"""
    helper = held(room)
    late = Helper(room, wait=False)
    assert late.process.wait(20) == 1
    assert "another wattled" in late.said(), late.said()
    assert helper.package_uw() == 100_000_000
    with helper.client() as client:
        assert client.hello()["pid"] == helper.pid


@test
def no_socket_there(room):
    """What is no socket is not replaced"""
    (room.folder / "run").mkdir()
    (room.folder / "run/wattled.sock").write_text("precious")
    helper = Helper(room, wait=False)
    assert helper.process.wait(20) == 1 and "no socket" in helper.said(), helper.said()
    assert helper.path.read_text() == "precious"


# ---- enemies ----

@test
def malformed(room):
    """What is no request ends the connection, without an answer"""
    helper = Helper(room)
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
def flood(room):
    """10^5 requests that nobody reads the replies of: others are served meanwhile, memory and descriptors stay what
    they were"""
    helper = Helper(room)
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
        enemy = room.start("-c", program, pathlib.Path(__file__).parent, helper.path, FLOOD, program=sys.executable)
        waits = []
        while enemy.poll() is None:
            begin = time.monotonic()
            assert len(friend.read(0, 4)) == 4
            waits.append(time.monotonic() - begin)
        assert enemy.returncode == 0, enemy.stderr.read()
        assert len(waits) > 10 and sorted(waits)[len(waits) // 2] < 0.05, sorted(waits)[-5:]
    does_not_grow(helper, before)


@test
def slow_driver(room):
    """While a driver takes its time for a limit, readings are answered; a limit that waits behind it is not set when who
    asked for it has hung up, while the end of one is carried out all the same"""
    Helper.prepare(room, cards=CARD + "set_delay_ms 1500\n")
    helper = Helper(room)
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
def deaf(room):
    """Who sends and never reads is dropped, and costs no more than a place until then"""
    helper = Helper(room)
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
        wait_until(lambda: usage(helper.pid)[1] <= before[1] + 1, "the deaf one is dropped")
        assert len(friend.read(0, 4)) == 4
    does_not_grow(helper, before)


@test
def half_messages(room):
    """A request may come in pieces; who stops in the middle of one is dropped after seconds, others are served
    meanwhile"""
    helper = Helper(room)
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
def many_connections(room):
    """1,000 connections of one user: some are served, the others told that there are too many; another user is served
    all the while, and so is the first one when they have gone"""
    helper = Helper(room, policy="others read\n")
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


# ---- surroundings ----

@test
def activated(room):
    """A socket that is handed over is served and left in place"""
    path = room.folder / "handed"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)

    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(room.folder / "notify"))
    notices.settimeout(20)
    os.dup2(listener.fileno(), 200)
    process = room.start("-c", "import os, sys; os.dup2(200, 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
                         "os.execv(sys.argv[1], sys.argv[1:])", WATTLED, "--sysfs", room.tree("sys", {"class/x": ""}),
                         "--nvml", "/nowhere", "--state", room.folder / "state", program=sys.executable, pass_fds=(200,),
                         env={"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(room.folder / "notify")})
    os.close(200)
    assert notices.recv(1000).decode().startswith("READY=1\nSTATUS=serves 0 counters and 0 limits at systemd's socket")
    with Client(path) as client:
        assert client.hello()["counters"] == 0
    process.terminate()
    assert notices.recv(1000) == b"STOPPING=1"
    assert process.wait(20) == 0 and path.exists()
    listener.close()
    notices.close()


@test
def sandboxed(room):
    """Both processes run without new privileges and under a filter; of capabilities CAP_SYS_ADMIN alone is left, and
    that only where there is an NVIDIA GPU"""
    helper = Helper(room)

    def state(pid):
        lines = (line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return {key: value.strip() for key, value in lines}
    for pid in (helper.pid, helper.process.pid):
        status = state(pid)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        assert int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16) in (0, 1 << 21), status
    helper.stop()
    (room.folder / "cards").write_text("")
    helper.log.unlink()
    helper = Helper(room)
    assert int(state(helper.pid)["CapEff"], 16) == 0 and "keeps no capability" in helper.said(), helper.said()


# Runs the rest of its words where capset, prctl and seccomp are refused, as some containers do.
REFUSING = """
import ctypes, os, sys
lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype = ctypes.c_void_p
lib.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
lib.seccomp_load.argtypes = [ctypes.c_void_p]
filter = lib.seccomp_init(0x7fff0000)
for name in (b"capset", b"seccomp", b"prctl"):
    assert lib.seccomp_rule_add(filter, 0x00050001, lib.seccomp_syscall_resolve_name(name), 0) == 0
assert lib.seccomp_load(filter) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@test
def nothing_to_give_away(room):
    """Where the kernel or a container refuses the sandbox, wattled says what it could not give away, and works"""
    helper = Helper(room, before=(sys.executable, "-c", REFUSING))
    for expected in ("new privileges can't be renounced", "capabilities can't be dropped", "system calls can't be filtered"):
        assert expected in helper.said(), helper.said()
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    os.kill(helper.process.pid, signal.SIGKILL)
    wait_until(lambda: helper.gpu_calls()[-1] == (0, 700000), "its guard's death is seen all the same", 5)


@test
def variables(room):
    """WATTLE_ variables say nothing to it"""
    decoy = room.tree("decoy", {"class/powercap/intel-rapl:0/name": "package-0\n",
                                "class/powercap/intel-rapl:0/energy_uj": "7\n"})
    helper = Helper(room, env={"WATTLE_SYSFS": str(decoy), "WATTLE_STATE": str(room.folder / "wrong"),
                               "WATTLE_NVML": "/nowhere", "WATTLE_HELPER": "off"})
    with helper.client() as client:
        assert client.hello()["counters"] == 4
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    assert not (room.folder / "wrong").exists() and (room.folder / "state/caps").is_dir()


@test
def usage_errors(room):
    """Wrong options are said in one line; --help and --version answer on stdout"""
    for words, status, expected in ((["--help"], 0, "usage: wattled"), (["--version"], 0, "wattled "),
                                    (["--socket"], 2, "--socket"), (["x"], 2, "'x' is no option"), (["--socket", "relative"], 1, "absolute"),
                                    (["--socket", "/" + "x" * 200], 1, "absolute"),
                                    (["--sysfs", "/not/there"], 1, "--sysfs"),
                                    (["--policy", "/not/there", "--socket", room.folder / "s"], 1, "/not/there")):
        done = room.finish(room.start(*words, program=WATTLED))
        assert done.returncode == status and expected in done.stdout + done.stderr, (words, done)
        assert status == 0 or done.stderr.count("\n") == 1, done.stderr


@test
def manual(room):
    """The manual has every option that the help has"""
    texts = [room.finish(room.start(word, program=WATTLED)).stdout for word in ("--help", "--manual")]
    options = re.findall(r"^  (--\w+)", texts[0], re.MULTILINE)
    assert len(options) == 9, options
    assert all(f"\\fB\\-\\-{option[2:]}\\fR" in texts[1] for option in options), texts[1]


@test
def links(room):
    """It is linked with libc, libm and libseccomp alone: no SQL, no JSON, no HTTP"""
    done = subprocess.run(["ldd", str(WATTLED)], capture_output=True, text=True, check=True)
    names = {pathlib.Path(line.split()[0]).name.split(".so")[0] for line in done.stdout.splitlines()}
    extra = names - {"linux-vdso", "libc", "libm", "libdl", "libseccomp", "libpthread", "ld-linux-x86-64",
                     "ld-linux-aarch64"}
    if any(name.endswith("san") for name in names):
        extra = {name for name in extra if not name.endswith("san")} - {"libstdc++", "libgcc_s"}
    assert not extra, extra
    symbols = subprocess.run(["nm", "-a", str(WATTLED)], capture_output=True, text=True, check=True).stdout
    assert not [word for word in ("sqlite3_", "json_object", "store_open", "PQ") if word in symbols]


harness.main()
