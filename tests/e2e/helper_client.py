"""The helper's protocol from its header, in Python: regular and irregular clients; and wattled in the test's folder."""
import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

from harness import BUILD, TESTS, wait_until

WATTLED = BUILD / "src/helper/wattled"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
MAGIC = 0x314C5457
HELLO, COUNTER, READ, DEVICE, SET, CHECK, END, KEEP, RESET = range(1, 10)
LEASE, PERSISTENT = 1, 2
MISSING = -2 ** 63
REQUEST = struct.Struct("<IHHIIqI12s24s")
REPLY_SIZE = 320
CARD_UUID = "GPU-10000000-0000-0000-0000-000000000000"
CARD = f"""
gpu
name Fake 700
uuid {CARD_UUID}
pci 00000000:01:00.0
power_mw constant 600000
limits_mw 200000 700000 700000 700000
"""


GROUP = 54321  # a uid without a user on any machine
# Requests from a process of its own, which stays until it is asked to end.
HOLDER = """
c = client.Client(sys.argv[2])
number = int(sys.argv[3])
print(c.outcome(client.SET, number, mode=client.LEASE, value=int(sys.argv[4]))["set"], flush=True)
if sys.argv[5:] == ["hang up"]:
    c.socket.close()
sys.stdin.read()
"""


def request(kind, number=0, count=0, mode=0, value=0, for_s=0, name=b"test", magic=MAGIC, reserved=b""):
    return REQUEST.pack(magic, kind, mode, number, count, value, for_s, reserved, name)


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode()


class Refused(Exception):
    """A reply with a code that is not 0."""
    def __init__(self, code, text):
        super().__init__(f"{os.strerror(-code)}: {text}")
        self.code, self.text = -code, text


class Client:
    """One connection; closes with its `with`."""
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(str(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        """The body of the next reply, 304 bytes; ConnectionError where the helper disconnects."""
        data = b""
        while len(data) < REPLY_SIZE:
            part = self.socket.recv(REPLY_SIZE - len(data))
            if not part:
                raise ConnectionError("hung up")
            data += part
        magic, _, reserved, code, reserved2 = struct.unpack_from("<IHHiI", data)
        assert (magic, reserved, reserved2) == (MAGIC, 0, 0), data
        if code != 0:
            raise Refused(code, text_of(data[48:288]))
        return data[16:]

    def ask(self, *arguments, **keywords):
        self.send(request(*arguments, **keywords))
        return self.reply()

    def hello(self):
        return dict(zip(("counters", "devices", "may_read", "may_cap", "period_us", "pid"),
                        struct.unpack_from("<6I", self.ask(HELLO))))

    def read(self, number=0, count=1):
        """[(energy_uj, t_ns) …]"""
        body = self.ask(READ, number, count)
        n, _ = struct.unpack_from("<II", body)
        return [struct.unpack_from("<qq", body, 8 + 16 * i) for i in range(n)]

    def device(self, number):
        body = self.ask(DEVICE, number)
        keys = ("what", "may_set", "least", "most", "lease_pid", "lease_uid")
        row = dict(zip(keys, struct.unpack_from("<IIqqII", body, 144)))
        return {"name": text_of(body[:48]), "id": text_of(body[48:144]), "lease": text_of(body[176:240]), **row}

    def outcome(self, *arguments, **keywords):
        body = self.ask(*arguments, **keywords)
        previous, now, foreign, was_foreign, was_rounded = struct.unpack_from("<qqqII", body)
        return {"previous": previous, "set": now, "foreign": foreign, "was_foreign": was_foreign,
                "was_rounded": was_rounded, "text": text_of(body[32:])}


def is_refused(code, function, *arguments, **keywords):
    """The text of the refusal; fails where there is none, or one with another code."""
    try:
        function(*arguments, **keywords)
    except Refused as refusal:
        assert refusal.code == code, refusal
        return refusal.text
    raise AssertionError("was not refused")


class Helper:
    """wattled on a copy of a test machine and on a fake card, in the test's folder."""
    @staticmethod
    def prepare(workdir, cards=CARD, machine="xeon-2s"):
        """The machine and the card, once for each folder."""
        if not (workdir.folder / "sys").exists():
            shutil.copytree(TESTS / "machines" / machine / "sys", workdir.folder / "sys", symlinks=True)
            (workdir.folder / "cards").write_text(cards)

    def __init__(self, workdir, *options, policy=None, wait=True, before=(), program=WATTLED, **keywords):
        self.workdir = workdir
        workdir.folder.chmod(workdir.folder.stat().st_mode & 0o7777 | 0o755)
        self.path = workdir.folder / "run" / "wattled.sock"
        self.sysfs = workdir.folder / "sys"
        self.cards = workdir.folder / "cards"
        self.prepare(workdir)
        if policy is not None:
            (workdir.folder / "policy").write_text(policy)
            options += ("--policy", workdir.folder / "policy")
        self.log = workdir.folder / "log"
        with self.log.open("a") as log:
            words = [*before, program, "--socket", self.path, "--sysfs", self.sysfs, "--nvml", NVML, "--state",
                     workdir.folder / "state", *options]
            self.process = workdir.start(*words[1:], program=words[0], stderr=log,
                                      env={"WATTLE_FAKE_NVML": str(self.cards), **keywords.pop("env", {})}, **keywords)
        if wait:
            self.wait()

    def wait(self):
        wait_until(lambda: self.process.poll() is not None or "serves" in self.said(), "wattled serves")
        assert self.process.poll() is None, self.said()
        self.pid = Client(self.path).hello()["pid"]

    def said(self):
        return self.log.read_text()

    def client(self):
        return Client(self.path)

    def package_file(self, package=0):
        """The long-term limit of a package; zone numbers have no meaning."""
        for zone in sorted((self.sysfs / "class/powercap").glob("intel-rapl:?")):
            if (zone / "name").read_text().strip() == f"package-{package}":
                return zone / "constraint_0_power_limit_uw"
        raise AssertionError(f"no package {package}")

    def package_uw(self, package=0):
        return int(self.package_file(package).read_text())

    def gpu_calls(self):
        """[(index, mW) …] in the order in which limits were set on the cards."""
        path = pathlib.Path(f"{self.cards}.limits")
        return [tuple(map(int, line.split()[1:3])) for line in path.read_text().splitlines()] if path.exists() else []

    def row(self, client, name):
        """The number of a device in the helper's table."""
        for number in range(client.hello()["devices"]):
            if client.device(number)["name"] == name and client.device(number)["what"] == 0:
                return number
        raise AssertionError(f"no {name}")

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0, self.said()


def holder(helper, number, value_mw, *words):
    """A process that holds a limit."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n" + HOLDER
    process = helper.workdir.start("-c", program, pathlib.Path(__file__).parent, helper.path, number, value_mw, *words,
                                program=sys.executable, stdin=subprocess.PIPE)
    line = process.stdout.readline()
    assert line == f"{value_mw}\n".encode(), line + process.stderr.read()
    return process


def as_user(uid, groups, code, *arguments):
    """Runs Python code as another user, with this module there as `client`: [stdout]."""
    program = ("import os, sys; sys.path.insert(0, sys.argv[1]); import helper_client as client\n"
               f"os.setgroups({list(groups)}); os.setgid({groups[0] if groups else uid}); os.setuid({uid})\n" + code)
    done = subprocess.run([sys.executable, "-c", program, str(pathlib.Path(__file__).parent), *map(str, arguments)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def many(path, n):
    clients = []
    try:
        for _ in range(n):
            clients.append(Client(path))
        yield clients
    finally:
        for client in clients:
            client.socket.close()
