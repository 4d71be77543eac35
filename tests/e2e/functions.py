"""wattle run --profile and wattle functions: programs whose functions use known CPU time, on a counter of known energy."""
import ctypes
import gzip
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys

from harness import BUILD, NOBODY, TESTS, WATTLE, Skip, main, near, test

PROFILED = BUILD / "tests/fakes/profiled"
SIMULATOR = BUILD / "tests/fakes/powercap_sim"
POWER_W = 50
# perf_event_open by number: libc has no function for it.
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
FOLDED = re.compile(r"^(.+) (\d+\.\d+)$")


def simulated(workdir):
    top = workdir.folder / "sim"
    if not top.exists():
        simulator = workdir.start(top, "--zone", f"package-0={POWER_W}", program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top)}


def skip_if_refused(done):
    """A container may forbid perf_event_open."""
    if done.returncode == 125 and "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())


def profile(workdir, act, seconds, *options, hz=997, name="run.sqlite", **keywords):
    """Profiles an act: the document of functions, and the CPU time of each function by the act itself."""
    options = options or (f"--profile={hz}",)
    done = workdir.wattle("run", "-q", "--overwrite", "-o", name, *options, "--", PROFILED, act, seconds,
                          env=simulated(workdir), **keywords)
    skip_if_refused(done)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    truth = dict(line.split() for line in done.stdout.splitlines() if not line.startswith("/"))
    return document(workdir, name), {key: float(value) for key, value in truth.items()}


def document(workdir, name="run.sqlite", *options):
    done = workdir.wattle("functions", name, "--format", "json", *options)
    assert done.returncode == 0 and done.stderr == "", (done.returncode, done.stderr)
    return json.loads(done.stdout)


def functions(document):
    found = {function["name"]: function for function in document["functions"]}
    assert len(found) == len({(f["name"], f["module"]) for f in document["functions"]}), "each function has one row"
    return found


def check_sum(document):
    energy = document["energy"]
    own = math.fsum(function["self_j"] for function in document["functions"])
    parts = [own, *(energy[key] or 0 for key in ("others_j", "idle_j", "unattributed_j"))]
    near(math.fsum(parts), energy["total_j"], relative=1e-9)
    near(own, energy["target_j"], relative=1e-9)


def check_function(document, name, cpu_s, all_s, relative=0.10):
    """A function's share of the program's energy is that of its CPU time: within `relative`, or a part of a period of
    each of a few calls; and within its interval, of 95 %, times 1.5."""
    function = functions(document)[name]
    target_j, slack = document["energy"]["target_j"], 3 / document["samples"]
    near(function["total_j"] / target_j, cpu_s / all_s, relative=relative, absolute=slack)
    near(function["total_j"], cpu_s / all_s * target_j,
         absolute=1.5 * function["total_error_j"] + slack * target_j)
    near(function["total_cpu_s"], cpu_s, relative=relative, absolute=slack * all_s)


@test
def shares(workdir):
    """functions of 1 to 60 % of the CPU time: joules, CPU time and intervals are right, and all joules are in one row"""
    found, truth = profile(workdir, "shares", 4)
    assert found["schema"] == "wattle-functions/1" and found["hz"] == 997 and found["lost"] == 0, found
    all_s = truth["outer"] + truth["sixty"]
    near(found["samples"], 997 * all_s, relative=0.1)
    for name, cpu_s in truth.items():
        check_function(found, name, cpu_s, all_s)
    check_sum(found)
    sixty = functions(found)["sixty"]
    assert sixty["module"] == str(PROFILED) and sixty["resolved"] and sixty["self_samples"] <= 3, sixty
    assert sixty["total_error_j"] < 0.2 * sixty["total_j"], sixty
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    near(found["energy"]["target_j"], report["energy"]["ledger"]["target_j"], relative=1e-12)


@test
def recursion_and_threads(workdir):
    """a function that calls itself 60 times: counted once; functions of two threads: each has its part"""
    found, truth = profile(workdir, "recursive", 0.6)
    check_function(found, "recurse", truth["recurse"], truth["recurse"])
    assert functions(found)["main"]["total_j"] <= found["energy"]["target_j"] * (1 + 1e-9)
    check_sum(found)
    found, truth = profile(workdir, "threads", 1.6)
    for name in ("left", "right"):
        check_function(found, name, truth[name], sum(truth.values()))
    check_sum(found)


@test
def children(workdir):
    """children of 0.1 s: their functions have half of the energy; an exec and a shell in between: too"""
    found, truth = profile(workdir, "children", 1.6)
    for name in ("in_child", "in_parent"):
        check_function(found, name, truth[name], sum(truth.values()))
    check_sum(found)
    done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--profile=997", "--", "sh", "-c",
                          f"{PROFILED} shares 0.5; exec {PROFILED} threads 0.5", env=simulated(workdir))
    assert done.returncode == 0, done.stderr
    found = functions(document(workdir))
    near(found["sixty"]["total_cpu_s"], 0.3, relative=0.15)
    near(found["right"]["total_cpu_s"], 0.375, relative=0.15)


@test
def no_sample(workdir):
    """children that end within a sampling period: their energy is not that of other functions but [not sampled]"""
    found, truth = profile(workdir, "short", 1.6, hz=99)
    target_j = found["energy"]["target_j"]
    rest = functions(found)["[not sampled]"]
    assert rest["module"] is None and rest["self_samples"] == 0, rest
    near(rest["self_j"], truth["in_child"] / sum(truth.values()) * target_j, absolute=0.15 * target_j)
    near(functions(found)["in_parent"]["total_j"], truth["in_parent"] / sum(truth.values()) * target_j,
         absolute=0.15 * target_j)
    check_sum(found)


@test
def generated_code(workdir):
    """generated code has the name in its perf map, whatever else the map contains"""
    if platform.machine() != "x86_64":
        raise Skip("the generated code is for x86_64")
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--profile=997", "--", PROFILED, "generated", 0.5,
                          env=simulated(workdir))
    skip_if_refused(done)
    path = pathlib.Path(done.stdout.splitlines()[-1])
    try:
        found = functions(document(workdir))["count;down \x1b[31m"]
        assert found["module"] == str(path) and found["self_cpu_s"] > 0.4, found
        text = workdir.wattle("functions", "run.sqlite").stdout
        assert "count;down ?[31m" in text and "\x1b" not in text, text
        folded = workdir.wattle("functions", "run.sqlite", "--format", "folded").stdout
        assert "count:down ?[31m" in folded, folded
    finally:
        path.unlink()


@test
def replaced_file(workdir):
    """a program that was replaced after the run: its addresses are shown, not the names of the new file"""
    program = workdir.folder / "program"
    shutil.copy2(PROFILED, program)
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--profile=499", "--", program, "shares", 0.3)
    skip_if_refused(done)
    assert "sixty" in functions(document(workdir))
    for text in (b"no ELF file", (BUILD / "tests/fakes/memory_tree").read_bytes()):
        program.unlink()
        program.write_bytes(text)
        found = [f["name"] for f in document(workdir)["functions"] if f["module"] == str(program)]
        assert found and all(re.fullmatch(r"\[program\+0x[0-9a-f]+\]", name) for name in found), found


@test
def damaged_elf(workdir):
    """a program whose ELF file is damaged after the run, byte by byte and cut: no crash, no other program's names"""
    program = workdir.folder / "program"
    shutil.copy2(PROFILED, program)
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--profile=499", "--", program, "shares", 0.2)
    skip_if_refused(done)
    whole = program.read_bytes()
    sections, = struct.unpack_from("<Q", whole, 40)
    places = [4, 16, 18, 32, 40, 41, 44, 54, 56, 58, 60, 62,
              *(sections + 64 * section + field for section in range(1, 30, 4) for field in (0, 4, 24, 25, 32, 33, 40))]
    for number, place in enumerate(places):
        damaged = bytearray(whole)
        damaged[place:place + 2] = (b"\xff\xff", b"\x00\x80", b"\x01\x00")[number % 3]
        program.write_bytes(damaged)
        document(workdir)
    for size in (0, 3, 63, 64, 100, len(whole) // 2, sections + 10, len(whole) - 1):
        program.write_bytes(whole[:size])
        document(workdir)


@test
def outputs(workdir):
    """text, call tree, folded stacks and pprof contain the same functions and joules"""
    found, _ = profile(workdir, "shares", 0.6)
    text = workdir.wattle("functions", "run.sqlite", "--top", "3")
    assert text.returncode == 0 and max(map(len, text.stdout.splitlines())) <= 80, text.stdout
    assert "spin" in text.stdout and "more functions: --top N" in text.stdout, text.stdout
    assert len(document(workdir, "run.sqlite", "--top", "2")["functions"]) == 2
    tree = workdir.wattle("functions", "run.sqlite", "--tree").stdout.splitlines()
    depth = {line.split()[-1]: re.search(r"\S+$", line).start() for line in tree if line}
    assert depth["main"] < depth["outer"] < depth["nine"] and depth["outer"] == depth["sixty"], tree
    for weight, key in (("energy", "self_j"), ("time", "self_cpu_s")):
        folded = workdir.wattle("functions", "run.sqlite", "--format", "folded", "--weight", weight).stdout
        stacks = [FOLDED.match(line).groups() for line in folded.splitlines()]
        near(math.fsum(float(value) for _, value in stacks), math.fsum(f[key] for f in found["functions"]), relative=1e-6)
        assert any(stack.endswith("main;outer;thirty;spin") for stack, _ in stacks), folded
    done = workdir.wattle("functions", "run.sqlite", "--format", "pprof", "-o", "run.pb.gz")
    assert done.returncode == 0, done.stderr
    strings, samples = read_pprof(gzip.decompress((workdir.folder / "run.pb.gz").read_bytes()))
    assert strings[0] == "" and {"joules", "cpu", "samples", "sixty"} <= set(strings), strings
    assert sum(values[0] for values in samples) == found["samples"]
    near(sum(values[2] for values in samples) / 1e9, found["energy"]["target_j"], relative=1e-6)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def messages(data):
    """(field, value) of a message of varints and bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def read_pprof(data):
    fields = list(messages(data))
    samples = [[value for field, value in messages(data) if field == 2] for number, data in fields if number == 2]
    return [value.decode() for number, value in fields if number == 6], samples


@test
def append_and_attach(workdir):
    """a second recording in the file, and one of a running program with threads: names and sums are right"""
    profile(workdir, "shares", 0.4)
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--profile=997", "--", PROFILED, "threads", 0.4,
                          env=simulated(workdir))
    assert done.returncode == 0, done.stderr
    found = document(workdir)
    near(functions(found)["sixty"]["total_cpu_s"], 0.24, relative=0.15)
    near(functions(found)["right"]["total_cpu_s"], 0.3, relative=0.15)
    check_sum(found)
    target = workdir.start("threads", 8, program=PROFILED)
    attached = workdir.start("attach", "-q", "-i", "50ms", "-o", "attached.sqlite", "--profile=499", target.pid,
                             env=simulated(workdir))
    try:
        attached.wait(1.5)
    except subprocess.TimeoutExpired:
        pass
    attached.send_signal(signal.SIGINT)
    done = workdir.finish(attached)
    target.terminate()
    assert done.returncode == 0, done.stderr
    found = document(workdir, "attached.sqlite")
    assert {"left", "right", "spin"} <= set(functions(found)), found
    check_sum(found)


def refuse_perf():
    """In this process perf_event_open fails as with kernel.perf_event_paranoid=3."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    load, equal, answer = 0x20, 0x15, 0x06
    code = b"".join(struct.pack("<HBBI", *row) for row in [
        (load, 0, 0, 0), (equal, 0, 1, PERF_EVENT_OPEN), (answer, 0, 0, 0x00050000 | 13), (answer, 0, 0, 0x7fff0000)])
    program = Program(4, code)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0


@test
def no_permission(workdir):
    """perf_event_open is forbidden: one line with the remedy, before the command starts"""
    if PERF_EVENT_OPEN is None:
        raise Skip("the number of perf_event_open is unknown on this machine")
    for command, status in ((("run", "--profile", "-o", "run.sqlite", "--", "touch", "started"), 125),
                            (("attach", "--profile", "-o", "run.sqlite", os.getpid()), 1)):
        done = workdir.wattle(*command, preexec_fn=refuse_perf)
        assert done.returncode == status and done.stderr.count("\n") == 1, done
        assert "kernel.perf_event_paranoid" in done.stderr and "sysctl" in done.stderr, done.stderr
    assert not (workdir.folder / "started").exists() and not (workdir.folder / "run.sqlite").exists()


@test
def unprivileged(workdir):
    """without root at paranoid 2: user code only, the kernel's part is [not sampled]"""
    if os.getuid() != 0 or int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 2:
        raise Skip("needs root, and kernel.perf_event_paranoid of at most 2")
    wattle, _ = workdir.for_everybody()
    program = shutil.copy2(PROFILED, workdir.folder / PROFILED.name)
    done = workdir.finish(workdir.start("run", "-q", "-o", "run.sqlite", "--profile=997", "--", program, "shares", 0.5,
                                        program=wattle, user=NOBODY, group=NOBODY, extra_groups=[],
                                        env=simulated(workdir)))
    skip_if_refused(done)
    assert done.returncode == 0, done.stderr
    found = document(workdir)
    assert found["event"].endswith(":u") and "[kernel]" not in functions(found), found
    check_sum(found)


@test
def idle_program(workdir):
    """a program that uses no CPU time to speak of: no sample, its energy is [not sampled]"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--profile=1", "--", "sleep", "0.5", env=simulated(workdir))
    skip_if_refused(done)
    found = document(workdir)
    assert found["samples"] == 0 and {f["name"] for f in found["functions"]} <= {"[not sampled]"}, found
    check_sum(found)
    for options in ((), ("--tree",), ("--format", "folded"), ("--format", "pprof", "-o", "run.pb.gz")):
        done = workdir.wattle("functions", "run.sqlite", *options)
        assert done.returncode == 0 and done.stderr == "", done


@test
def refusals(workdir):
    """no profile, wrong options: one line each"""
    done = workdir.wattle("run", "-q", "-o", "plain.sqlite", "--", "true")
    assert done.returncode == 0, done.stderr
    cases = [(("functions", "plain.sqlite"), 1, "has no profile; record it with wattle run --profile"),
             (("functions",), 2, "no run file given"),
             (("functions", "plain.sqlite", "--tree", "--format", "json"), 2, "--tree is for --format text"),
             (("run", "--call-graph", "dwarf", "--profile", "true"), 125, "give one of auto|fp|none"),
             (("run", "--call-graph", "fp", "true"), 125, "--call-graph: needs --profile"),
             (("run", "--profile=0", "true"), 125, "a rate from 1 to 10000"),
             (("attach", "--profile", "--cgroup", "/"), 2, "can't be combined with --cgroup")]
    for words, status, text in cases:
        done = workdir.wattle(*words)
        assert done.returncode == status and text in done.stderr, (words, done)
        assert len(done.stderr.splitlines()) <= 2, done.stderr


@test
def hostile_tables(workdir):
    """tables of a profile with wrong numbers, cycles and damaged samples: one line, or the rest of the figures"""
    import sqlite3
    profile(workdir, "shares", 0.2)
    whole = (workdir.folder / "run.sqlite").read_bytes()
    changes = ["update profile_stack set parent = id", "update profile_stack set parent = id + 1",
               "update profile_stack set module = 999", "update profile_module set path = null",
               "update profile_module set path = '/dev/zero'", "update profile_module set path = 'x' || hex(zeroblob(9000))",
               "update profile_sample set samples = x'ffffffffffffffffffffff'", "update profile_sample set samples = 'text'",
               "update profile_sample set t_ns = 9223372036854775807", "update profile_sample set t_ns = null",
               "update profile set hz = 0", "update profile set hz = -9223372036854775808", "delete from profile_stack",
               "drop table profile_symbol", "insert into profile_symbol values (1, -1, -1, 'x')",
               "drop table profile_sample", "create view x as select 1", "update profile set event = x'00ff'"]
    for change in changes:
        (workdir.folder / "run.sqlite").write_bytes(whole)
        with sqlite3.connect(workdir.folder / "run.sqlite") as file:
            file.execute(change)
        file.close()
        for options in ((), ("--tree",), ("--format", "folded"), ("--format", "json")):
            done = workdir.wattle("functions", "run.sqlite", *options)
            assert done.returncode in (0, 1) and done.stderr.count("\n") == (done.returncode != 0), (change, done)


@test
def as_perf(workdir):
    """stacks beside perf record -g on the same program: 98 % of perf's samples have a stack that is here too"""
    perf = shutil.which("perf")
    if perf is None:
        raise Skip("perf is not installed (linux-perf)")
    recorded = workdir.finish(workdir.start("record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data", "--",
                                            PROFILED, "shares", "2", program=perf))
    if recorded.returncode != 0:
        raise Skip(f"perf record fails: {recorded.stderr}")
    script = workdir.finish(workdir.start("script", "-i", "perf.data", "-F", "comm,ip,sym", program=perf)).stdout
    known = {name: i for i, name in enumerate(("main", "outer", "one", "nine", "thirty", "sixty", "spin"))}

    def mine(names):
        return tuple(name for name in names if name in known)
    theirs = [mine(reversed([line.split()[1].split("+")[0] for line in block.splitlines()[1:] if len(line.split()) > 1]))
              for block in script.split("\n\n") if block.strip()]
    profile(workdir, "shares", 2, hz=499)
    folded = workdir.wattle("functions", "run.sqlite", "--format", "folded").stdout
    ours = {mine(FOLDED.match(line)[1].split(";")) for line in folded.splitlines()}
    assert len(theirs) > 500, script[:2000]
    common = sum(stack in ours for stack in theirs)
    assert common >= 0.98 * len(theirs), (common, len(theirs), ours, set(theirs) - ours)


if __name__ == "__main__":
    sys.exit(main())
