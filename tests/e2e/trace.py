"""wattle export --format perfetto: the trace agrees with the run to the nanosecond and the joule."""
import csv
import dataclasses
import functools
import io
import json
import math
import pathlib
import resource
import shutil
import sqlite3
import tempfile

import synthetic_runs
from harness import BUILD, WATTLE, WorkDir, main, near, test
from perfetto_reader import BOOTTIME, MONOTONIC, REALTIME, Trace, integral
from trace_processor import COMPLAINTS, TraceProcessor

perfetto = TraceProcessor()


def write_trace(workdir, run):
    done = workdir.wattle("export", run, "--format", "perfetto", "-o", f"{run}.pftrace", "--overwrite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return workdir.folder / f"{run}.pftrace"


def export(workdir, run="run.sqlite"):
    return Trace(write_trace(workdir, run).read_bytes())


@functools.cache
def made_once(kind):
    """A synthetic run of a kind, as short as possible: its file's content, its report, its trace's content and its trace."""
    plan = synthetic_runs.KINDS[kind]
    plan = dataclasses.replace(plan, n_samples=min(plan.n_samples, 150), steps=min(plan.steps, 30),
                               workers=min(plan.workers, 40))
    with tempfile.TemporaryDirectory() as folder:
        workdir = WorkDir(pathlib.Path(folder))
        run = workdir.folder / f"{kind}.sqlite"
        synthetic_runs.make(WATTLE, run, plan)
        report = workdir.wattle("report", run, "--format", "json")
        assert report.returncode == 0, report.stderr
        trace = write_trace(workdir, run.name).read_bytes()
        return run.read_bytes(), json.loads(report.stdout), trace, Trace(trace)


def made(workdir, kind):
    """A copy of the synthetic run of a kind, its report and its trace."""
    content, report, content_of_trace, trace = made_once(kind)
    path = workdir.folder / f"{kind}.sqlite"
    path.write_bytes(content)
    (workdir.folder / f"{kind}.sqlite.pftrace").write_bytes(content_of_trace)
    return sqlite3.connect(path), report, trace


def lie_inside_each_other(slices):
    """On each track a slice ends within the enclosing one."""
    tracks = {}
    for one in slices:
        tracks.setdefault(one.track.uuid, []).append(one)
    for those in tracks.values():
        around = []
        for one in those:
            del around[one.depth:]
            end_ns = one.end_ns if one.end_ns is not None else math.inf
            assert all(end_ns <= outer for outer in around), f"{one.name} at {one.begin_ns}"
            around.append(end_ns)


@test
def spans_are_slices(workdir):
    """each span: one slice with its name, its exact times, and its process and thread"""
    run, _, trace = made(workdir, "training")
    rows = run.execute("select id, name, begin_ns, end_ns, pid, tid, kind, category from span").fetchall()
    slices = {one.arguments["span"]: one for one in trace.slices}
    assert len(slices) == len(trace.slices) == len(rows) > 100
    for number, name, begin_ns, end_ns, pid, tid, kind, category in rows:
        one = slices[number]
        assert (one.name, one.begin_ns, one.end_ns, one.category) == (name, begin_ns, end_ns, category)
        assert trace.process_of(one.track) == pid and one.arguments["kind"] == kind
        assert one.track.tid == (tid if kind == "nested" else None)
    lie_inside_each_other(trace.slices)
    main_pid, command = run.execute("select pid, command from process where is_main").fetchone()
    names = {track.process for track in trace.tracks.values() if track.pid == main_pid and track.tid is None}
    assert names == {command}


@test
def spans_have_joules(workdir):
    """slices of a block: their energies add up to the block's, where its calls don't overlap"""
    _, report, trace = made(workdir, "no_gpu")
    checked = 0
    for block in report["blocks"]:
        slices = sorted((one for one in trace.slices if one.name == block["name"]), key=lambda one: one.begin_ns)
        energies = [one.arguments.get("energy_j") for one in slices]
        if None in energies or any(a.end_ns > b.begin_ns for a, b in zip(slices, slices[1:])):
            continue
        near(math.fsum(energies), block["energy"]["total_j"], relative=1e-6, absolute=1e-9)
        assert all(one.arguments["error_j"] > 0 for one in slices)
        checked += 1
    assert checked >= 2


# id, parent, tid, kind, begin, end (s since the start; None: never), close
AWKWARD = [
    (1, None, 7, "nested", 0.10, 0.50, "ended"),   # a
    (2, 1, 7, "nested", 0.10, 0.50, "unwound"),    # inside, for exactly as long
    (3, 2, 7, "nested", 0.20, 0.20, "ended"),      # without any length
    (4, 1, 7, "nested", 0.50, 0.50, "ended"),      # zero length at the end of the enclosing one
    (5, None, 7, "nested", 0.50, 0.60, "ended"),   # begins as that ends
    (6, None, 7, "nested", 0.55, 0.65, "ended"),   # crosses it
    (7, None, 7, "nested", 0.58, None, "open"),    # crosses it and never ends
    (8, None, 7, "nested", 0.70, 0.80, "ended"),   # thereafter
    (9, None, 0, "nested", 0.10, 0.30, "ended"),   # thread unknown
    (10, None, 0, "nested", 0.20, 0.40, "ended"),
    (11, None, 7, "range", 0.10, 0.40, "ended"),   # ranges that overlap
    (12, None, 7, "range", 0.15, 0.20, "ended"),
    (13, None, 8, "range", 0.15, 0.90, "ended"),
    (14, None, 8, "range", 0.20, None, "open"),
    (15, None, 8, "range", 0.40, 0.45, "ended"),   # where the first one has just ended
    (16, None, 9, "nested", 0.30, 0.25, "ended"),  # ends before it begins, in a damaged file
]


@test
def awkward_spans(workdir):
    """spans that cross, overlap, have zero length or no end: all are there, and those of one track nest"""
    workdir.burn("cpu", "0.3")
    run = sqlite3.connect(workdir.folder / "run.sqlite")
    start, pid = run.execute("select start_ns, pid from segment").fetchone()
    rows = [(number, parent, pid, tid, f"s{number}", start + round(begin * 1e9),
             None if end is None else start + round(end * 1e9), kind, close)
            for number, parent, tid, kind, begin, end, close in AWKWARD]
    run.executemany("insert into span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) "
                    "values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    run.commit()
    trace = export(workdir)
    slices = {one.arguments["span"]: one for one in trace.slices}
    assert len(trace.slices) == len(slices) == len(AWKWARD)
    for number, parent, pid, tid, name, begin_ns, end_ns, kind, close in rows:
        one = slices[number]
        end_ns = max(begin_ns, end_ns) if end_ns is not None else None
        assert (one.name, one.begin_ns, one.end_ns) == (name, begin_ns, end_ns)
        assert one.arguments.get("close") == (None if close == "ended" else close)
        assert trace.process_of(one.track) == pid
    lie_inside_each_other(trace.slices)
    assert [slices[number].depth for number in (1, 2, 3, 4, 5, 8)] == [0, 1, 2, 1, 0, 0]
    assert {slices[number].track.tid for number in (1, 5, 8)} == {7} and slices[6].track.tid is None
    ranges = {number: slices[number].track.uuid for number in range(11, 16)}
    assert len({ranges[number] for number in (11, 12, 13)}) == 3
    assert (ranges[14], ranges[15]) == (ranges[12], ranges[11])
    assert all(slices[number].depth == 0 for number in ranges)
    with_length = "select name from slice where dur != 0"
    never_ended = "select name from slice where dur = -1 order by name"
    found, = perfetto.ask([(workdir.folder / "run.sqlite.pftrace", [COMPLAINTS, with_length, never_ended])])
    assert found[0] == [] and len(found[1]) == len(AWKWARD) - 3, found
    assert [row["name"] for row in found[2]] == ["s14", "s7"], found


def overlapping(workdir, kind, n):
    """The CPU time of making a trace with that many open spans, each of which ends after the earlier ones; the trace's
    file."""
    path = f"{kind}-{n}.sqlite"
    shutil.copy(workdir.folder / "run.sqlite", workdir.folder / path)
    run = sqlite3.connect(workdir.folder / path)
    start, pid = run.execute("select start_ns, pid from segment").fetchone()
    run.executemany("insert into span (id, pid, tid, name, begin_ns, end_ns, kind, close) "
                    "values (?, ?, ?, 'task', ?, ?, ?, 'ended')",
                    ((i + 1, pid, pid, start + i, start + n + i, kind) for i in range(n)))
    run.commit()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    trace = write_trace(workdir, path)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, trace


@test
def many_at_once(workdir):
    """four times as many overlapping spans: four times the time, for ranges and coroutines; none is lost"""
    workdir.burn("cpu", "0.1")
    for kind in ("range", "nested"):
        trace = Trace(overlapping(workdir, kind, 300)[1].read_bytes())
        assert len(trace.slices) == 300 and all(one.end_ns - one.begin_ns == 300 for one in trace.slices)
        assert len({one.track.uuid for one in trace.slices}) == 300
        some_s, _ = overlapping(workdir, kind, 10_000)
        more_s, _ = overlapping(workdir, kind, 40_000)
        assert more_s < 8 * some_s, f"{kind}: {some_s} s, {more_s} s"


@test
def processes_of_a_dead_recorder(workdir):
    """killed recorder, so living processes are unknown: their samples are on their own tracks"""
    workdir.burn("cpu", "0.5", options=["--per-process", "-i", "20ms"])
    run = sqlite3.connect(workdir.folder / "run.sqlite")
    run.execute("delete from process")
    run.commit()
    rows = run.execute("select pid, start_ns, count(*) from process_sample group by 1, 2").fetchall()
    trace = export(workdir)
    memory = [track for track in trace.tracks.values() if track.is_counter and track.name == "resident memory"]
    assert sorted(trace.process_of(track) for track in memory) == sorted(pid for pid, _, n in rows if n > 1)


@test
def power_adds_up(workdir):
    """area under a curve of power: the energy of the report: domains, target, sums; pauses have none"""
    for kind in ("segments", "holes", "no_gpu", "laptop", "eight_gpus", "short"):
        _, report, trace = made(workdir, kind)
        energy = report["energy"]
        tag = " (estimated)" if kind == "no_gpu" else ""
        for domain in energy["domains"]:
            name = f"{domain['domain']} power"
            assert trace.counter(name + tag).unit == "W"
            near(integral(trace.counter(name + tag).values), domain["energy_j"], relative=1e-9)
            near(integral(trace.counter(f"{name} of the target{tag}").values), domain["target_j"], relative=1e-9)
        near(integral(trace.counter(f"total power{tag}").values), energy["total_j"], relative=1e-9)
        near(integral(trace.counter(f"target power{tag}").values), energy["ledger"]["target_j"], relative=1e-9)
    run, _, trace = made(workdir, "segments")
    ends = [end for end, in run.execute("select end_ns from segment")]
    for counter in (track for track in trace.tracks.values() if track.is_counter and track.unit is not None):
        assert math.isnan(counter.values[-1][1]), counter.name
        for (t_ns, value), (next_ns, _) in zip(counter.values, counter.values[1:]):
            in_pause = any(t_ns <= end <= next_ns - 10**9 for end in ends)
            assert math.isnan(value) or not in_pause, f"{counter.name} at {t_ns}"


@test
def readings_are_counters(workdir):
    """each sample: at its time, with its unit"""
    run, _, trace = made(workdir, "training")
    for column, name, unit, scale in (("utilization_percent", "gpu-0 utilization", "%", 1),
                                      ("target_memory_bytes", "gpu-0 memory of the target", "bytes", 1),
                                      ("temperature_c", "gpu-0 temperature", "°C", 1),
                                      ("sm_clock_mhz", "gpu-0 SM clock", "MHz", 1),
                                      ("power_cap_mw", "gpu-0 power limit", "W", 1e-3)):
        rows = run.execute(f"select t_ns, {column} from device_sample where device = "
                           f"(select id from device where name = 'gpu-0') and {column} is not null order by t_ns")
        rows = rows.fetchall()
        counter = trace.counter(name)
        assert counter.unit == unit and len(rows) > 100
        values, at = counter.values, 0
        for t_ns, value in rows:  # a value holds until the next one
            while at + 1 < len(values) and values[at + 1][0] <= t_ns and not math.isnan(values[at + 1][1]):
                at += 1
            near(values[at][1], value * scale, relative=1e-12)
    rows = run.execute("select t_ns, name, value from user_metric order by t_ns").fetchall()
    assert rows
    for metric in {name for _, name, _ in rows}:
        told = [(t_ns, value) for t_ns, name, value in rows if name == metric]
        changes = [told[i] for i in range(len(told)) if i == 0 or told[i][1] != told[i - 1][1]]
        found = [track.values for track in trace.tracks.values() if track.is_counter and track.name == metric]
        assert sorted(sum(found, [])) == sorted(changes), metric


@test
def unknown_is_not_a_value(workdir):
    """unreadable for over a second: unknown meanwhile; metrics read less often than sampled continue"""
    run, _, trace = made(workdir, "holes")
    start, end = run.execute("select start_ns, end_ns from segment").fetchone()
    middle = (start + end) // 2  # nothing was read from 0.45 to 0.55
    for name in ("gpu-0 utilization", "gpu-0 memory used", "memory in use on the machine"):
        value = [value for t_ns, value in trace.counter(name).values if t_ns <= middle][-1]
        assert math.isnan(value), name
    workdir.burn("cpu", "0.4", options=["-i", "5ms"])
    assert workdir.rows("select count(*) from sample where system_memory_bytes is null") > [(10,)]
    *values, (_, last) = export(workdir).counter("memory in use on the machine").values
    assert math.isnan(last) and not any(math.isnan(value) for _, value in values)


@test
def silences(workdir):
    """missing readings: an instant for each device: the event of the run, or one made for the trace"""
    run, _, trace = made(workdir, "holes")
    devices = {name for name, in run.execute("select name from device")}
    gaps = [one.name for one in trace.instants if one.category == "gap"]
    assert len(gaps) == len(devices) and not any("no reading" in name for name in gaps), gaps
    run.execute("delete from event")
    run.commit()
    found = [one for one in export(workdir, "holes.sqlite").instants if one.category == "gap"]
    assert ({one.name.split(": ")[1] for one in found} == devices
            and len(found) == len(devices)), [one.name for one in found]
    assert all("no reading for" in one.name and one.track.name == "gaps" for one in found)


@test
def clocks(workdir):
    """times: those of the run file; the wall clock and CLOCK_BOOTTIME are given at each segment's start"""
    run, _, trace = made(workdir, "segments")
    rows = run.execute("select start_ns, wall_start_ns from segment order by id").fetchall()
    assert [(clock[MONOTONIC], clock[REALTIME]) for clock in trace.clocks] == rows and len(rows) == 3
    assert trace.primary_clock == MONOTONIC
    workdir.burn("cpu", "0.1")
    clock, = export(workdir).clocks
    boot_ns, = workdir.rows("select boot_start_ns - start_ns from segment")[0]
    assert clock[BOOTTIME] - clock[MONOTONIC] == boot_ns >= 0


def last_wall_time(workdir):
    done = workdir.wattle("export", "run.sqlite", "--format", "csv", "-o", "-")
    assert done.returncode == 0, done.stderr
    return float(list(csv.DictReader(io.StringIO(done.stdout)))[-1]["timestamp"])


@test
def clocks_after_a_suspend(workdir):
    """CLOCK_MONOTONIC stops during suspend: the other clocks are ahead afterwards, everywhere"""
    workdir.burn("cpu", "0.3")
    run = sqlite3.connect(workdir.folder / "run.sqlite")
    start, = run.execute("select start_ns from segment").fetchone()
    sleeps = [(start + 100_000_000, 3_600 * 10**9), (start + 200_000_000, 7 * 10**9 + 1)]
    ends = [last_wall_time(workdir)]
    run.executemany("insert into event (t_ns, kind, text, slept_ns) values (?, 'suspend', 'the machine slept', ?)",
                    sleeps)
    run.commit()
    awake, first, second = export(workdir).clocks
    for clock, t_ns, slept_ns in ((first, sleeps[0][0], sleeps[0][1]),
                                  (second, sleeps[1][0], sleeps[0][1] + sleeps[1][1])):
        assert clock[MONOTONIC] == t_ns
        for other in (REALTIME, BOOTTIME):
            assert clock[other] - clock[MONOTONIC] == awake[other] - awake[MONOTONIC] + slept_ns
    ends.append(last_wall_time(workdir))
    assert round(ends[1] - ends[0], 3) == 3607, ends


@test
def instants(workdir):
    """events at their times: throttling, gaps, limits, marks, and each segment's ends"""
    run, _, trace = made(workdir, "training")
    run.executemany("insert into event (t_ns, kind, text) select start_ns + ?, ?, ? from segment",
                    [(10**9, "cap", "gpu-0: power limit 500 W (before: 700 W)"),
                     (2 * 10**9, "gap", "gpu-0: can't be read"), (3 * 10**9, "mark", "half-way"),
                     (4 * 10**9, "news", "of a later version")])
    run.commit()
    trace = export(workdir, "training.sqlite")
    rows = run.execute("select t_ns, kind, text from event").fetchall()
    found = {(one.t_ns, one.category, one.arguments["text"]) for one in trace.instants if "text" in one.arguments}
    assert found == set(rows) and {"throttle", "throttle-end"} <= {kind for _, kind, _ in rows}
    tracks = {one.category: one.track.name for one in trace.instants}
    assert tracks["cap"] == "power limits" and tracks["throttle"] == tracks["throttle-end"] == "throttling"
    assert tracks["gap"] == "gaps" and tracks["mark"] == "marks" and tracks["news"] == "notes"
    assert "half-way" in {one.name for one in trace.instants}
    start, end = run.execute("select start_ns, end_ns from segment").fetchone()
    assert [one.t_ns for one in trace.instants if one.category == "segment"] == [start, end]


@test
def a_limit_changes(workdir):
    """limit set and restored while a program runs: two events in the run, two instants in the trace"""
    (workdir.folder / "cards").write_text("gpu\nlimits_mw 100000 400000 400000 300000\nlimit_step_mw 500\n"
                                       "power_mw constant 90000\n")
    workdir.environment.update(WATTLE_SYSFS=str(workdir.tree("sys", {})), WATTLE_STATE=str(workdir.folder / "state"),
                            WATTLE_FAKE_NVML=str(workdir.folder / "cards"),
                            WATTLE_NVML=str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"))
    limited = f"sleep 0.3; {WATTLE} cap set -q gpu-0 237.5 -- sleep 1.3; sleep 1.3"  # limits are read once a second
    workdir.report("-i", "100ms", "--", "sh", "-c", limited)
    rows = workdir.rows("select t_ns, text from event where kind = 'cap' order by t_ns")
    assert [text for _, text in rows] == ["gpu-0: power limit 237.500 W (before: 300 W)",
                                          "gpu-0: power limit 300 W (before: 237.500 W)"], rows
    trace = export(workdir)
    assert [one.t_ns for one in trace.instants if one.category == "cap"] == [t_ns for t_ns, _ in rows]
    assert [value for _, value in trace.counter("gpu-0 power limit").values][:3] == [300, 237.5, 300]


@test
def hostile_names(workdir):
    """names that are invalid UTF-8, empty, 10 kB long or full of markup: ordinary texts"""
    run, _, trace = made(workdir, "hostile")
    names = {name for name, in run.execute("select cast(name as blob) from span")}
    expected = {name.decode("utf-8", "replace") or '""' for name in names}
    assert {one.name for one in trace.slices} == expected and any(len(name) > 9000 for name in expected)
    size = (workdir.folder / "hostile.sqlite.pftrace").stat().st_size
    assert size < 2_000_000, f"long names stand once: {size}"


@test
def perfetto_agrees(workdir):
    """Perfetto's trace processor: reads runs of all kinds without a complaint and finds everything"""
    kinds = ["eight_gpus", "segments", "killed", "hostile", "holes", "short", "one_sample", "empty", "many_threads"]
    traces = {kind: made(workdir, kind)[2] for kind in kinds}
    slices = "select ts, dur, slice.name, extract_arg(arg_set_id, 'debug.span') as span from slice"
    counters = "select ts, value, name, unit from counter join counter_track on counter_track.id = track_id"
    answers = perfetto.ask([(workdir.folder / f"{kind}.sqlite.pftrace", [COMPLAINTS, slices, counters])
                            for kind in kinds])
    for kind, (complaints, slices, values) in zip(kinds, answers):
        trace = traces[kind]
        assert complaints == [], f"{kind}: {complaints}"
        found = sorted((int(row["ts"]), int(row["dur"]), row["name"]) for row in slices)
        expected = [(one.begin_ns, -1 if one.end_ns is None else one.end_ns - one.begin_ns, one.name)
                    for one in trace.slices]
        expected += [(one.t_ns, 0, one.name) for one in trace.instants]
        assert found == sorted(expected), kind
        found = {(int(row["ts"]), row["name"], row["unit"], row["value"]) for row in values if row["value"] is not None}
        expected = {(t_ns, track.name, track.unit, value) for track in trace.tracks.values()
                    for t_ns, value in track.values if not math.isnan(value)}
        assert found == expected, f"{kind}: {len(found ^ expected)} values"


OVERLAP = ("insert into segment (start_ns, end_ns, wall_start_ns, shift_ns, command, complete) "
           "select start_ns + 20000000, end_ns + 50000000, wall_start_ns, 0, command, 1 from segment")
DAMAGE = [  # of table segment; the remaining seconds, None: any
    (OVERLAP, 0.15),
    ("update segment set end_ns = start_ns - 1000000000", 0),
    ("update segment set end_ns = 9223372036854775807", None),
    ("update segment set start_ns = -9223372036854775807", None),
    ("update segment set wall_start_ns = 9223372036854775807", 0.1),
    ("update run set value = '9223372036854775807' where key = 'interval_ns'", 0.1),
    ("insert into event (t_ns, kind, text, slept_ns) select start_ns + 1, 'suspend', '', 1 << 62 from segment", 0.1),
]


@test
def damaged_runs(workdir):
    """segments that overlap, end before they begin or last for centuries: each time once, and each trace is complete"""
    workdir.burn("cpu", "0.2", options=("-i", "10ms"))
    run = sqlite3.connect(workdir.folder / "run.sqlite")
    run.execute("update segment set end_ns = start_ns + 100000000")  # there are also samples after this end
    run.commit()
    for sql, duration_s in DAMAGE:
        shutil.copy(workdir.folder / "run.sqlite", workdir.folder / "damaged.sqlite")
        damaged = sqlite3.connect(workdir.folder / "damaged.sqlite")
        damaged.execute(sql)
        damaged.commit()
        report = workdir.wattle("report", "damaged.sqlite", "--format", "json")
        assert report.returncode == 0, f"{sql}: {report.stderr}"
        if duration_s is not None:
            near(json.loads(report.stdout)["run"]["duration_s"], duration_s, absolute=1e-9)
        export(workdir, "damaged.sqlite")


@test
def where_it_goes(workdir):
    """output to an existing file or a pipe: as with -o; impossible combinations: an error"""
    workdir.burn("cpu", "0.1")
    export(workdir)
    path = workdir.folder / "run.sqlite.pftrace"
    before = path.read_bytes()
    again = workdir.wattle("export", "run.sqlite", "--format", "perfetto", "-o", path)
    assert again.returncode == 1 and "exists" in again.stderr and path.read_bytes() == before
    piped, _ = workdir.start("export", "run.sqlite", "--format", "perfetto", "-o", "-").communicate()
    assert piped == before
    weighted = workdir.wattle("export", "run.sqlite", "--format", "perfetto", "--weight", "time", "-o", "t")
    assert weighted.returncode == 2 and "--weight" in weighted.stderr


if __name__ == "__main__":
    main()
