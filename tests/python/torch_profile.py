"""wattle.torch.join_profile: a run and a real trace of torch.profiler in one file, on one clock."""
import gzip
import json
import sqlite3
import statistics
import sys

import torch
from harness import main, near, test
from perfetto_reader import Trace
from trace_processor import COMPLAINTS, TraceProcessor

import wattle.torch

STEPS = 20
IS_UNIX = torch.__version__ >= "2"  # : its profiler writes Unix times, that of 1.13 begins with 0
NEAR_US = 500  # a record_function takes about 50 µs to begin, on a busy machine up to ten times that
BOTH_ENDS_US = 1000
PROGRAM = f"""
import sys, time, torch, wattle
from torch.profiler import ProfilerActivity, profile, record_function
matrix = torch.randn(200, 200)

def step():
    with record_function("step"), wattle.span("step"):
        with record_function("product"), wattle.span("product"):
            matrix @ matrix
        with record_function("wait"), wattle.span("wait"):
            time.sleep(0.001)

for _ in range(3):  # these are not profiled: the two files don't begin together
    step()
with profile(activities=[ProfilerActivity.CPU]) as measured:
    for _ in range({STEPS}):
        step()
measured.export_chrome_trace("profile.json")
"""


def joined(workdir, profile="profile.json"):
    both = workdir.folder / "both.pftrace"
    alignment = wattle.torch.join_profile(workdir.folder / "run.sqlite", workdir.folder / profile, both, overwrite=True)
    return alignment, Trace(both.read_bytes())


def events_of(workdir):
    """The profiler's events; torch 1.13 writes them without an object around."""
    document = json.loads((workdir.folder / "profile.json").read_text())
    return document if isinstance(document, list) else document["traceEvents"]


def shifted(workdir, shift_us, **document):
    """The profile in the newer format: with Unix times, in an object."""
    events = events_of(workdir)
    for event in events:
        if "ts" in event:
            event["ts"] += shift_us
    return {"traceEvents": events, **document}


def is_ours(one):
    return "span" in one.arguments


def both_ends(trace):
    """Differences of the begins and of the ends of profiled steps and their parts, µs."""
    ours = [one for one in trace.slices if is_ours(one)]
    found = []
    for name in ("step", "product", "wait"):
        theirs = [one for one in trace.slices if one.name == name and not is_ours(one)]
        assert len(theirs) == STEPS, name
        for one in theirs:
            found.append(min((((other.begin_ns - one.begin_ns) / 1e3, (other.end_ns - one.end_ns) / 1e3)
                              for other in ours if other.name == name), key=lambda differences: abs(differences[0])))
    return found


def lined_up(trace):
    """Differences of the begins only, µs."""
    return [begin for begin, _ in both_ends(trace)]


@test
def a_real_profile(workdir):
    """each range recorded by both: begins at the same time in both, on any clock of the profiler"""
    workdir.report("-i", "20ms", "--", sys.executable, "-c", PROGRAM)
    alignment, trace = joined(workdir)
    if IS_UNIX:
        assert alignment.by == "wall clock" and alignment.matched >= 3 * STEPS * 0.9, alignment
        assert statistics.median(map(abs, lined_up(trace))) < NEAR_US, lined_up(trace)
        first_us = min(event["ts"] for event in events_of(workdir) if event.get("ph") == "X")
        (workdir.folder / "profile.json").write_text(json.dumps(shifted(workdir, -first_us)["traceEvents"]))
        alignment, trace = joined(workdir)
    assert alignment.by == "spans" and alignment.matched >= 3 * STEPS * 0.9, alignment
    differences = lined_up(trace)
    print(f"# by {alignment.by}: begins differ by {min(differences):.0f} to {max(differences):.0f} µs, half of them by "
          f"no more than {statistics.median(map(abs, differences)):.0f} µs")
    assert statistics.median(map(abs, differences)) < NEAR_US, differences
    operators = [one for one in trace.slices if one.name.startswith("aten::")]
    assert len(operators) >= STEPS and all(trace.tracks[one.track.parent].name == "torch.profiler" for one in operators)

    start_ns, wall_ns = sqlite3.connect(workdir.folder / "run.sqlite").execute(
        "select start_ns, wall_start_ns from segment").fetchone()
    unix_us = (alignment.offset_ns - start_ns + wall_ns) / 1e3
    (workdir.folder / "unix.json").write_text(json.dumps(shifted(workdir, unix_us)))
    base = shifted(workdir, unix_us - 1.7e15, baseTimeNanoseconds=int(1.7e18))
    (workdir.folder / "base.json.gz").write_bytes(gzip.compress(json.dumps(base).encode()))
    for name in ("unix.json", "base.json.gz"):
        alignment, trace = joined(workdir, name)
        assert alignment.by == "wall clock" and alignment.matched >= 3 * STEPS * 0.9, (name, alignment)
        near(statistics.median(lined_up(trace)), statistics.median(differences), absolute=1)

    (complaints, counted), = TraceProcessor().ask([(workdir.folder / "both.pftrace", [
        COMPLAINTS, "select count(*) as n from slice where name like 'aten::%'"])])
    assert complaints == [] and int(counted[0]["n"]) == len(operators)


@test
def begins_and_ends(workdir):
    """a block recorded by both: begin and end agree within 1 ms, except where this machine runs another program between the two"""
    workdir.report("-i", "20ms", "--", sys.executable, "-c", PROGRAM)
    alignment, trace = joined(workdir)
    worst = sorted(max(map(abs, differences)) for differences in both_ends(trace))
    print(f"# by {alignment.by}: median {statistics.median(worst):.0f} µs, 90 % {worst[len(worst) * 9 // 10]:.0f} µs, all {worst[-1]:.0f} µs")
    assert worst[len(worst) * 9 // 10] < BOTH_ENDS_US, worst


@test
def what_does_not_fit(workdir):
    """unrelated profile, and file that is no profile: errors; no file is left"""
    workdir.burn("cpu", "0.1")
    cases = (("[]", "has no events"), ("no JSON", "is not a Chrome trace"), ('{"traceEvents": 7}', "has no events"),
             ('[{"name": "elsewhere", "ph": "X", "ts": 5, "dur": 1, "pid": 1, "tid": 1}]', "of the same name"))
    for text, said in cases:
        (workdir.folder / "profile.json").write_text(text)
        try:
            joined(workdir)
        except ValueError as error:
            assert said in str(error), error
        else:
            raise AssertionError(f"{text} was taken")
    assert not (workdir.folder / "both.pftrace").exists()


if __name__ == "__main__":
    main()
