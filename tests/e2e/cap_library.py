"""wattle_cap_* of include/wattle.h in C programs (programs/caps.c), on fake cards and a simulated package that obey
limits."""
import errno
import os
import re
import signal
import subprocess
import time

from c_programs import build
from gpu_card import Card
from harness import BUILD, TESTS, main, near, test, wait_until

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"


class Machine:
    def __init__(self, workdir, card=Card()):
        self.workdir, self.card = workdir, card
        self.program = build(workdir, "caps")
        (workdir.folder / "cards").write_text(card.text())
        (workdir.folder / "sys").mkdir()
        self.environment = {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                            "WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_SYSFS": str(workdir.folder / "sys"),
                            "WATTLE_HELPER": "off"}

    def start(self, act, *words, **environment):
        return self.workdir.start(act, *words, program=self.program, env={**self.environment, **environment})

    def act(self, act, *words, status=0, **environment):
        """Its output: [[word, …], …]"""
        done = self.workdir.finish(self.start(act, *words, **environment))
        assert done.returncode == status and not done.stderr, done
        return [line.split() for line in done.stdout.splitlines()]

    def log(self, name="limits"):
        path = self.workdir.folder / f"cards.{name}"
        return [int(line.split()[2]) for line in path.read_text().splitlines()] if path.exists() else []

    def is_back(self, mw=400000):
        wait_until(lambda: self.log()[-1] == mw, "the limit is back", 5)
        wait_until(lambda: not list((self.workdir.folder / "state/caps").glob("*.lease")), "no lease is left", 5)
        return True


def codes(said, name):
    return [(int(words[1]), " ".join(words[2:])) for words in said if " ".join(words).startswith(name + " ")]


def one(said, name):
    """Code and message of the named call."""
    for words in said:
        line = " ".join(words)
        if line.startswith(name + " "):
            code, _, text = line[len(name) + 1:].partition(" ")
            return int(code), text
    raise AssertionError(f"nothing of {name}: {said}")


def limits(said):
    return [float(words[1]) for words in said if words[0] == "limit"]


@test
def list_of_devices(workdir):
    """card: range and clocks; machine without devices: an empty list with the reason"""
    machine = Machine(workdir)
    assert machine.act("list")[1] == "device gpu-0 400 400 100 400 210 1410".split()
    said = machine.act("list", WATTLE_NVML="/nowhere")
    assert one(said, "list")[0] == 0 and len(one(said, "list")[1]) > 10 and len(said) == 1, said
    assert machine.act("list", WATTLE_DISABLE="1") == [["list", "0"]]
    assert machine.act("old") == [["get", "0"], ["gpu-0", "intact", "64"]]


@test
def set_and_reset(workdir):
    """set: changes this process's lease any number of times; reset ends it; KEEP stays; every refusal has a code and a
    message"""
    machine = Machine(workdir)
    said = machine.act("set")
    assert limits(said) == [200, 200, 400, 160, 160, 400], said
    for name, code, part in [("out of range", errno.ERANGE, "100 to 400 W"), ("unknown", errno.ENODEV, "gpu-0"),
                             ("flags", errno.EINVAL, "WATTLE_CAP_KEEP"), ("null", errno.EINVAL, "gpu-0")]:
        assert one(said, name)[0] == -code and part in one(said, name)[1], (name, one(said, name))
    for name in ("set", "again", "reset", "nothing", "keep", "lease", "lease stays", "reset all", "default"):
        assert one(said, name)[0] == 0, (name, said)
    assert machine.log() == [300000, 200000, 400000, 250000, 150000, 160000, 400000], machine.log()
    said = machine.act("set", WATTLE_DISABLE="1")
    assert one(said, "set") == one(said, "out of range") == (0, ""), said


@test
def every_end(workdir):
    """exit: the limit is restored before the process is gone; kill -9 and exec: within a second"""
    machine = Machine(workdir)
    machine.act("leave", status=3)
    assert machine.log() == [200000, 400000], machine.log()
    for signal_number in (signal.SIGKILL, signal.SIGTERM):
        process = machine.start("hold")
        assert process.stdout.readline().startswith(b"set 0")
        process.send_signal(signal_number)
        process.wait()
        begin = time.monotonic()
        assert machine.is_back() and time.monotonic() - begin < 1
    process = machine.start("replace")
    assert process.stdout.readline().startswith(b"set 0") and machine.is_back()


@test
def children(workdir):
    """forked child: no part in its parent's lease: refused with the parent's name, its exit changes nothing"""
    said = Machine(workdir).act("fork")
    code, text = one(said, "child set")
    assert code == -errno.EBUSY and "program, pid" in text, said
    assert one(said, "child reset")[0] == -errno.EBUSY and one(said, "child reset all")[0] == 0, said
    assert limits(said) == [200], said


@test
def one_owner(workdir):
    """another process: refused while the owner lives, accepted afterwards"""
    machine = Machine(workdir)
    process = machine.start("hold")
    process.stdout.readline()
    code, text = one(machine.act("set"), "set")
    assert code == -errno.EBUSY and str(process.pid) in text, text
    process.kill()
    assert machine.is_back() and one(machine.act("set"), "set")[0] == 0


@test
def threads_and_forks(workdir):
    """threads that set limits at once, each with its own error, while the program forks: no hang, no limit left"""
    machine = Machine(workdir)
    assert one(machine.act("threads"), "threads")[0] == 0
    assert machine.is_back()


@test
def tune(workdir):
    """search: calls its step in this thread, reports progress, restores the limit, and returns the step's error"""
    machine = Machine(workdir)
    said = machine.act("tune")
    assert one(said, "energy")[0] == 0, said
    result = next(words for words in said if words[:2] == ["result", "energy"])
    near(float(result[2]), 120, absolute=1)
    assert float(result[3]) == 400 and result[4] == "4", result
    rows = [list(map(float, words[1:])) for words in said if words[0] == "row"][:4]
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True), rows
    for limit_w, steps, energy_j, time_s in rows:
        near(energy_j / time_s, machine.card.power_w(limit_w), 0.06)
        assert steps > 0
    done = [float(words[2]) for words in said if words[0] == "progress"]
    assert done == sorted(done) and done[-1] == 1, done
    for name, code, part in [("fails", errno.EXDEV, ""), ("few", errno.ENODATA, "steps"), ("goal", errno.EINVAL, "9"),
                             ("limits", errno.EINVAL, "2 to 64"), ("forks", errno.EXDEV, ""),
                             ("child", errno.EBADF, "")]:
        assert one(said, name)[0] == -code and part in one(said, name)[1], (name, said)
    assert one(said, "clocks")[0] == 0, said
    assert limits(said) == [400, 400] and machine.log("clocks")[-1] == 0, said
    assert machine.is_back()


@test
def the_journal_can_not_be_written(workdir):
    """state folder that is a file: refused with a message, and nothing is set"""
    machine = Machine(workdir)
    (workdir.folder / "state").write_text("")
    code, text = one(machine.act("set"), "set")
    assert code < 0 and "state" in text and not machine.log(), (code, text)


@test
def no_guard(workdir):
    """program wattle missing, so no guard is possible: -ENOENT with a message, and no lease"""
    machine = Machine(workdir)
    lonely = workdir.folder / "lonely"
    lonely.mkdir()
    (lonely / "libwattle.so.0").write_bytes((BUILD / "src/libwattle.so.0").resolve().read_bytes())
    said = machine.act("set", LD_LIBRARY_PATH=str(lonely), PATH=os.devnull)
    if any(os.access(f"{prefix}/bin/wattle", os.X_OK) for prefix in ("/usr", "/usr/local")):
        return  # the installed one is found, which is correct
    code, text = one(said, "set")
    assert code == -errno.ENOENT and "wattle" in text, (code, text)
    assert one(said, "lease")[0] == -errno.ENOENT and machine.log() == [250000, 160000, 400000], "KEEP needs no guard"


@test
def the_manual(workdir):
    """the example of docs/caps.md compiles in C and in C++"""
    text = (TESTS.parent / "docs/caps.md").read_text(encoding="utf-8")
    example, = re.findall(r"^```c\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    top, _, body = example.partition("\n\tstruct")
    source = ("#include <stdio.h>\nint train_step(void *data);\nvoid f(void *model);\n"
              f"{top}\nvoid f(void *model)\n{{\n\tstruct{body}}}\n")
    for compiler, language in (("gcc", "c"), ("g++", "c++")):
        subprocess.run([compiler, f"-x{language}", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror",
                        "-fsyntax-only", "-I", TESTS.parent / "include", "-"], input=source.encode(), check=True)


if __name__ == "__main__":
    main()
