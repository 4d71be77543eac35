"""wattled and regular clients: its replies, and the rights of users."""
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import NOBODY, TESTS, Skip, test, wait_until
from helper_client import CARD, COUNTER, GROUP, LEASE, MISSING, NVML, SET, WATTLED, Helper, as_user, is_refused


# ---- replies ----

@test
def counters(workdir):
    """counters: the zones' names and the figures of their files; beyond the table's end an error"""
    helper = Helper(workdir)
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
def vanished(workdir):
    """missing counter: unknown, not 0, and available again when it returns"""
    helper = Helper(workdir)
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
def rate(workdir):
    """user with a period of 100 ms: gets the earlier reading with its time, though others read every millisecond"""
    helper = Helper(workdir, policy=f"user {NOBODY} read\nothers read every 100ms\n")
    energy = helper.sysfs / "class/powercap/intel-rapl:0/energy_uj"
    slow = as_user(NOBODY - 1, [], """
import time
c = client.Client(sys.argv[2])
assert c.hello()["period_us"] == 100000
seen, asked_ns = set(), time.monotonic_ns()
while len(seen) < 10:
    seen.add(c.read()[0][1])
times = sorted(seen)
assert all(b - a >= 95_000_000 for a, b in zip(times, times[1:])), times
print(time.monotonic_ns() - asked_ns)
""", helper.path)
    assert int(slow) >= 9 * 95_000_000, slow
    fast = as_user(NOBODY, [], """
c = client.Client(sys.argv[2])
assert c.hello()["period_us"] == 1000
seen = set()
while len(seen) < 50:
    seen.add(c.read()[0][1])
times = sorted(seen)
assert all(b - a >= 950_000 for a, b in zip(times, times[1:])), times
print("all are apart")
""", helper.path)
    assert fast == "all are apart" and energy.exists(), fast


# ---- rights ----

@test
def denied_without_policy(workdir):
    """no policy, user outside group wattle: may neither read nor limit, and the message states whom to ask"""
    helper = Helper(workdir)
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
def groups(workdir):
    """group rule: holds for its members, by their supplementary groups too, and for nobody else"""
    helper = Helper(workdir, policy=f"group {GROUP} read\ngroup {GROUP} cap gpus 250..400\n")
    program = """
hello = client.Client(sys.argv[2]).hello()
print(hello["may_read"], hello["may_cap"])
"""
    for member_of, may in (([GROUP], "1 1"), ([NOBODY, GROUP], "1 1"), ([NOBODY], "0 0"), ([], "0 0")):
        assert as_user(NOBODY, member_of, program, helper.path) == may, member_of


@test
def ranges(workdir):
    """limit outside the policy's range or the device's: refused with the range, and nothing is written"""
    helper = Helper(workdir, policy=f"user {NOBODY} cap gpu-0 250..400\nuser {NOBODY} cap package-0 ..1000\n")
    said = as_user(NOBODY, [], """
c = client.Client(sys.argv[2])
rows = {(r["name"], r["what"]): i for i, r in ((i, c.device(i)) for i in range(c.hello()["devices"]))}
gpu, clocks, package, other = rows["gpu-0", 0], rows["gpu-0", 1], rows["package-0", 0], rows["package-1", 0]
row = c.device(gpu)
assert (row["least"], row["most"], row["may_set"]) == (250000, 400000, 1), row
assert c.device(package)["most"] == 205000 and c.device(other)["may_set"] == 0 and c.device(clocks)["may_set"] == 0
for number, value in ((gpu, 249999), (gpu, 400001), (gpu, 0), (gpu, -1), (gpu, 2 ** 63 - 1), (gpu, -2 ** 63),
                      (package, 205001)):
    for mode in (client.LEASE, client.PERSISTENT):
        print(client.is_refused(34, c.outcome, client.SET, number, mode=mode, value=value))
for number in (clocks, other):
    client.is_refused(13, c.outcome, client.SET, number, mode=client.LEASE, value=1000)
client.is_refused(22, c.outcome, client.SET, gpu, mode=7, value=300000)
""", helper.path)
    assert "250 to 400 W" in said and "205 W" in said, said
    assert helper.gpu_calls() == []


@test
def resets_within_ranges(workdir):
    """user with a range: can reset their own changes; not to a default outside of it, not a limit set by root"""
    helper = Helper(workdir, policy=f"user {NOBODY} cap gpu-0 250..400\nuser {NOBODY} cap package-0\n")
    environment = {"WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_FAKE_NVML": str(helper.cards),
                   "WATTLE_NVML": str(NVML), "WATTLE_SYSFS": str(helper.sysfs)}
    begin = """
c = client.Client(sys.argv[2])
rows = {(r["name"], r["what"]): i for i, r in ((i, c.device(i)) for i in range(c.hello()["devices"]))}
gpu, package = rows["gpu-0", 0], rows["package-0", 0]
"""
    said = as_user(NOBODY, [], begin + """
c.outcome(client.SET, gpu, mode=client.PERSISTENT, value=300000)
print(client.is_refused(34, c.outcome, client.RESET, gpu, mode=1))
c.outcome(client.SET, package, mode=client.PERSISTENT, value=100000)
assert c.outcome(client.RESET, package)["set"] > 100000
assert c.outcome(client.RESET, gpu)["set"] == 700000
""", helper.path)
    assert "700 W is not within 250 to 400 W" in said and helper.gpu_calls() == [(0, 300000), (0, 700000)], said
    workdir.wattle("cap", "set", "gpu-0", "350", env=environment)
    workdir.wattle("cap", "set", "package-0", "90", "--for", "1h", env=environment)
    said = as_user(NOBODY, [], begin + """
c.outcome(client.SET, gpu, mode=client.PERSISTENT, value=300000)
print(client.is_refused(34, c.outcome, client.RESET, gpu))
print(client.is_refused(16, c.outcome, client.RESET, package))
""", helper.path)
    assert "700 W is not within 250 to 400 W" in said and "wattle cap set" in said, said
    assert helper.gpu_calls()[-1] == (0, 300000) and helper.package_uw() == 90000000
    workdir.wattle("cap", "reset", "package-0", env=environment)


@test
def readers_of_the_journal(workdir):
    """journal file: other users cannot lock it, which would block setting and restoring limits"""
    helper = Helper(workdir)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    locks = list((workdir.folder / "state" / "caps").glob("*.lock"))
    assert locks and all(path.stat().st_mode & 0o077 == 0 for path in locks), locks


@test
def flood_of_refusals(workdir):
    """request refused because the device is in use: does not count against its owner's rate, and garbage cannot
    displace log entries"""
    helper = Helper(workdir, policy=f"user {NOBODY} cap any\n")
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
def group_wattle(workdir):
    """no policy: members of group wattle may read each counter every 10 ms, and limit nothing"""
    (workdir.folder / "group").write_text(f"root:x:0:\nwattle:x:{GROUP}:\n")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no mount namespaces here")
    helper = Helper(workdir, before=("unshare", "--mount", "sh", "-c",
                                  f'mount --bind "{workdir.folder}/group" /etc/group && exec "$0" "$@"'))
    said = as_user(NOBODY, [NOBODY, GROUP], """
c = client.Client(sys.argv[2])
hello = c.hello()
assert hello["may_read"] == 1 and hello["may_cap"] == 0 and hello["period_us"] == 10000, hello
times = set()
while len(times) < 20:
    times.update(t_ns for _, t_ns in c.read(0, 1))
times = sorted(times)
assert min(b - a for a, b in zip(times, times[1:])) >= 9.4e6, times
for i in range(hello["devices"]):
    assert c.device(i)["may_set"] == 0, c.device(i)
    for mode in (client.LEASE, client.PERSISTENT):
        print(client.is_refused(13, c.outcome, client.SET, i, mode=mode, value=200000))
    client.is_refused(13, c.outcome, client.RESET, i)
""", helper.path)
    assert "policy" in said and helper.gpu_calls() == [], said
    assert as_user(NOBODY, [NOBODY], "print(client.Client(sys.argv[2]).hello()['may_read'])", helper.path) == "0"


@test
def cluster_policy(workdir):
    """The policy that is shipped for clusters: groups users and wattle read every 100 ms, nobody else does, and nobody
    sets a limit"""
    (workdir.folder / "group").write_text(f"root:x:0:\nusers:x:{GROUP}:\nwattle:x:{GROUP + 1}:\n")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no mount namespaces here")
    helper = Helper(workdir, policy=(TESTS.parent / "packaging/policy-cluster").read_text(),
                    before=("unshare", "--mount", "sh", "-c",
                            f'mount --bind "{workdir.folder}/group" /etc/group && exec "$0" "$@"'))
    program = """
hello = client.Client(sys.argv[2]).hello()
print(hello["may_read"], hello["may_cap"], hello["period_us"])
"""
    for groups, expected in (([GROUP], "1 0 100000"), ([GROUP + 1], "1 0 100000"), ([NOBODY], "0 0 0")):
        assert as_user(NOBODY, groups, program, helper.path) == expected, groups


@test
def unprivileged(workdir):
    """wattled as an ordinary user: serves the counters that the user may read, and reports the privileges it cannot
    drop"""
    workdir.folder.chmod(0o777)
    shutil.copy(WATTLED, workdir.folder / "wattled")
    shutil.copy(NVML, workdir.folder / "nvml.so")
    Helper.prepare(workdir)
    subprocess.run(["chmod", "-R", "a+rX", workdir.folder], check=True)
    helper = Helper(workdir, "--nvml", workdir.folder / "nvml.so", program=workdir.folder / "wattled", user=NOBODY,
                    group=NOBODY,
                    extra_groups=[])
    assert as_user(NOBODY, [], "print(client.Client(sys.argv[2]).read()[0][0] > 0)", helper.path) == "True"
    helper.stop()


POLICIES = (
    ("others read every 1", "policy:1: '1' is not a time"),
    ("# all\n\nothers cap gpu-0 300..200", "policy:3: '300..200' is not a range"),
    ("user no-such-user read", "policy:1: unknown user 'no-such-user'"),
    ("others read\nsomebody read", "policy:2: a rule begins with"),
    ("others read now", "policy:1: unexpected 'now' after `read`"),
    ("others cap gpu0", "policy:1: a device"),
    ("others nothing more", "policy:1: unexpected word 'more'"),
    ("others read\n" * 65, "policy:65: there are more than 64 rules"),
    ("others", "policy:1: the rule ends too early"),
    ("user", "policy:1: a name or a number must follow `user`"),
    ("others read \0", "policy:1: contains a character"),
    ("x" * 600, "policy:1: the line is longer than"),
)


@test
def bad_policies(workdir):
    """invalid policy: wattled does not start; the message names the line and the correct form"""
    for text, expected in POLICIES:
        helper = Helper(workdir, policy=text, wait=False)
        assert helper.process.wait(20) == 1
        assert expected in helper.said(), (text[:40], helper.said())
        helper.log.unlink()
        checked = workdir.finish(workdir.start("--check-policy", workdir.folder / "policy", program=WATTLED))
        assert (checked.returncode, checked.stdout) == (1, "") and expected in checked.stderr, checked
        assert checked.stderr.count("\n") == 1, checked.stderr


@test
def checked_policies(workdir):
    """--check-policy with a valid file: status 0 and a line per rule; a file that is missing or that others may write
    to: status 1 and one line; no service runs"""
    policy = workdir.folder / "policy"
    policy.write_text("# cluster\ngroup root read every 100ms\nothers cap gpus 200..500\n")

    def check(path=policy):
        return workdir.finish(workdir.start(f"--check-policy={path}", program=WATTLED))
    done = check()
    assert done.returncode == 0 and done.stderr == "", done
    assert done.stdout.splitlines() == [
        f"{policy}: valid, 2 rules. For each request the first matching rule decides.",
        "  line 2: members of group root (gid 0) may read energy counters, each at most every 100 ms",
        "  line 3: every user may limit the power of any GPU to between 200 and 500 W",
        "  always: root and the user who runs wattled may do everything; all other requests are denied"], done.stdout
    policy.chmod(0o666)
    done = check()
    assert (done.returncode, done.stdout) == (1, "") and "chmod go-w" in done.stderr, done
    done = check(workdir.folder / "none")
    assert (done.returncode, done.stdout) == (1, "") and "none: No such file" in done.stderr, done
    assert workdir.finish(workdir.start("--check-policy", program=WATTLED)).returncode == 2


# Asks as a process of its own whenever it gets a line: what it may do, and the word's request about its limit.
READER = """
c = client.Client(sys.argv[2])
gpu = int(sys.argv[3])
for word in sys.stdin:
    try:
        if word.strip() == "set":
            c.outcome(client.SET, gpu, mode=client.LEASE, value=300000)
        elif word.strip() == "end":
            c.outcome(client.END, gpu)
        elif word.strip() == "check":
            c.outcome(client.CHECK, gpu)
        code = 0
    except client.Refused as refusal:
        code = refusal.code
    hello = c.hello()
    print(code, hello["may_read"], hello["period_us"], hello["may_cap"], flush=True)
"""


@test
def reloaded(workdir):
    """SIGHUP: a valid policy is valid for connections that exist, a bad one changes nothing and logs one line; a limit
    stays until its owner ends it or exits, also if the owner may no longer set it"""
    helper = Helper(workdir, policy="others read every 1s\n")
    policy = workdir.folder / "policy"
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
    program = ("import os, sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n"
               f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n" + READER)
    reader = workdir.start("-c", program, TESTS / "e2e", helper.path, gpu, program=sys.executable,
                           stdin=subprocess.PIPE)

    def ask(word="hello"):
        reader.stdin.write(f"{word}\n".encode())
        reader.stdin.flush()
        return reader.stdout.readline().decode().strip()

    def reload(text, pid=helper.process.pid):
        said = helper.said()
        (workdir.folder / "new").write_text(text)  # replaced, as editors do: another file of the same name
        (workdir.folder / "new").rename(policy)
        os.kill(pid, signal.SIGHUP)
        wait_until(lambda: helper.said() != said, "the result is in the log")
        return helper.said()[len(said):]

    assert ask() == "0 1 1000000 0"
    assert ask("set") == "13 1 1000000 0"
    assert "reloaded the policy: 2 rules" in reload(f"user {NOBODY} read every 20ms\nuser {NOBODY} cap gpus 250..400\n")
    assert ask("set") == "0 1 20000 1" and helper.gpu_calls() == [(0, 300000)]
    line = reload("others read every\n")
    assert line.count("\n") == 1 and "the previous policy stays valid: " in line and "policy:1: " in line, line
    assert ask() == "0 1 20000 1"
    assert "reloaded the policy: 0 rules" in reload("", pid=helper.pid)
    assert ask() == "0 0 0 0"
    assert ask("set") == "13 0 0 0" and ask("check") == "0 0 0 0" and helper.gpu_calls() == [(0, 300000)]
    assert ask("end") == "0 0 0 0" and helper.gpu_calls() == [(0, 300000), (0, 700000)]
    assert ask("end") == "13 0 0 0"
    reload(f"user {NOBODY} cap gpus\n")
    assert ask("set") == "0 0 0 1"
    reload("others read\n")
    reader.stdin.close()
    assert reader.wait(20) == 0
    wait_until(lambda: helper.gpu_calls()[-1] == (0, 700000), "the limit ends with its owner", 5)
    policy.unlink()
    os.kill(helper.process.pid, signal.SIGHUP)
    wait_until(lambda: "No such file" in helper.said(), "a missing file is in the log")
    with helper.client() as client:
        assert client.hello()["may_read"] == 1
    helper.stop()


@test
def reloaded_meanwhile(workdir):
    """a limit that a slow driver sets during two reloads is answered by the policy at its request; readings do not
    wait, and the second reload takes effect once the request has its answer"""
    Helper.prepare(workdir, cards=CARD + "set_delay_ms 1000\n")
    helper = Helper(workdir, policy=f"user {NOBODY} cap gpus\n")
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
    program = ("import os, sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n"
               f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n" + READER.replace("    try:",
               "    print('asks', flush=True)\n    try:"))
    setter = workdir.start("-c", program, TESTS / "e2e", helper.path, gpu, program=sys.executable,
                           stdin=subprocess.PIPE)

    def reload(text, n):
        (workdir.folder / "policy").write_text(text)
        os.kill(helper.process.pid, signal.SIGHUP)
        wait_until(lambda: helper.said().count("reloaded the policy") == n, f"reload {n}")

    setter.stdin.write(b"set\n")
    setter.stdin.flush()
    assert setter.stdout.readline() == b"asks\n"
    wait_until(lambda: any((workdir.folder / "state/caps").glob("*.lease")),
               "the journal has it, then comes the driver")
    reload("others read\n", 1)
    os.kill(helper.process.pid, signal.SIGHUP)
    with helper.client() as client:
        assert client.read()[0][0] > 0
    time.sleep(0.2)
    said = helper.said()
    assert select.select([setter.stdout], [], [], 0)[0] or said.count("reloaded the policy") == 1, said
    answer = setter.stdout.readline().split()
    assert answer[:2] == [b"0", b"1"], (answer, helper.said())
    wait_until(lambda: helper.said().count("reloaded the policy") == 2, "the second reload")
    setter.stdin.write(b"set\n")
    setter.stdin.flush()
    assert setter.stdout.readline() == b"asks\n" and setter.stdout.readline().split()[0] == b"13"
    setter.stdin.close()
    assert setter.wait(20) == 0
    wait_until(lambda: helper.gpu_calls()[-1:] == [(0, 700000)], "the limit ends with its owner")
    helper.stop()


@test
def policy_owner(workdir):
    """policy writable or owned by others: refused"""
    Helper(workdir, policy="others read", wait=True).stop()
    for change, expected in ((lambda path: path.chmod(0o664), "chmod go-w"),
                             (lambda path: os.chown(path, NOBODY, 0), "chown")):
        change(workdir.folder / "policy")
        (workdir.folder / "log").unlink()
        helper = Helper(workdir, "--policy", workdir.folder / "policy", wait=False)
        assert helper.process.wait(20) == 1 and expected in helper.said(), helper.said()


harness.main()
