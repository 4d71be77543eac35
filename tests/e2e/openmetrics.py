#!/usr/bin/python3
"""wattle export --format openmetrics: a run with the times of its samples, accepted by strict parsers and
Prometheus."""
import dataclasses
import json
import math
import re
import shutil
import sqlite3
import subprocess

import synthetic_runs
from harness import WATTLE, Skip, main, near, test

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None


def make(workdir, kind, most=200):
    """A synthetic run of a kind, as short as possible."""
    plan = synthetic_runs.KINDS[kind]
    plan = dataclasses.replace(plan, n_samples=min(plan.n_samples, most), steps=min(plan.steps, 30),
                               workers=min(plan.workers, 40))
    synthetic_runs.make(WATTLE, workdir.folder / f"{kind}.sqlite", plan)


def export(workdir, kind, *options):
    done = workdir.wattle("export", f"{kind}.sqlite", "--format", "openmetrics", "-o", f"{kind}.om", "--overwrite",
                       *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return (workdir.folder / f"{kind}.om").read_bytes().decode()


def promtool(workdir, kind):
    return subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", f"{kind}.om", f"{kind}.db"],
                          cwd=workdir.folder, capture_output=True, text=True, timeout=60)


def series(text):
    """{(sample name, labels): [(time in s, value)]} by the strict parser."""
    if text_string_to_metric_families is None:
        raise Skip("python3-prometheus-client is not installed")
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset((k, v) for k, v in sample.labels.items() if k != "run"))
            found.setdefault(key, []).append((float(sample.timestamp), sample.value))
    return found


def of(found, sample, /, **labels):
    """The points of the only series with this name that has these labels."""
    those = all_of(found, sample, **labels)
    assert len(those) == 1, f"{sample} {labels}: {len(those)} series"
    return those[0]


def all_of(found, sample, /, **labels):
    return [points for (name, has), points in found.items() if name == sample and set(labels.items()) <= has]


def report_of(workdir, kind):
    done = workdir.wattle("report", f"{kind}.sqlite", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trapezoid(points):
    return sum((t - s) * (v + w) / 2 for (s, v), (t, w) in zip(points, points[1:]))


@test
def every_kind_is_read(workdir):
    """any run: the strict parser accepts it, each series is ascending in time, no counter decreases, no value is NaN"""
    for kind in ("training", "no_gpu", "no_energy", "eight_gpus", "laptop", "segments", "killed", "holes", "short",
                 "one_sample", "empty"):
        make(workdir, kind, 60)
        text = export(workdir, kind)
        assert text.endswith("\n# EOF\n"), kind
        for (name, labels), points in series(text).items():
            assert not any(math.isnan(value) for _, value in points), f"{kind}: {name}"
            assert all(s[0] < t[0] for s, t in zip(points, points[1:])), f"{kind}: {name}"
            if name.startswith("wattle_domain_energy") and kind != "segments":
                assert all(s[1] <= t[1] for s, t in zip(points, points[1:])), f"{kind}: {name} {labels}"


@test
def joules_are_the_reports(workdir):
    """counters: begin at 0 and end at the report's energies, total and target; powers integrate to them"""
    for kind in ("training", "laptop", "no_gpu", "segments"):
        make(workdir, kind)
        report, found = report_of(workdir, kind), series(export(workdir, kind))
        for domain in report["energy"]["domains"]:
            labels = {"domain": domain["domain"], "kind": domain["kind"]}
            points = of(found, "wattle_domain_energy_joules_total", **labels)
            assert points[0][1] == 0, f"{kind} {labels}: {points[0]}"
            near(points[-1][1], domain["energy_j"], relative=1e-9)
            targets = of(found, "wattle_domain_target_energy_joules_total", **labels)
            near(targets[-1][1], domain["target_j"], relative=1e-9)
            if kind != "segments":  # pauses have no power
                near(trapezoid(of(found, "wattle_domain_power_watts", **labels)), domain["energy_j"], relative=1e-6)
        for to, key in (("target", "target_j"), ("others", "others_j"), ("idle", "idle_j")):
            if report["energy"]["ledger"][key] is None:  # unknown values have no series
                assert not all_of(found, "wattle_run_energy_joules", to=to), (kind, to)
                continue
            near(of(found, "wattle_run_energy_joules", to=to)[-1][1], report["energy"]["ledger"][key], relative=1e-9)
        near(of(found, "wattle_run_energy_error_joules")[-1][1], report["energy"]["error_j"], relative=1e-9)
        near(of(found, "wattle_run_duration_seconds")[-1][1], report["run"]["duration_s"], relative=1e-9)


# How each view of a run shows unknown idle energy; None: it has no value for it. OUT: a file or folder that the command
# writes.
IDLE_VIEWS = (
    ("report training.sqlite --section attributed-energy", r"(?m)^  idle +n/a +n/a$"),
    ("report training.sqlite --format json", r'"idle_j": null'),
    ("report training.sqlite --format html", r"\bidle n/a\b"),
    ("report training.sqlite --format svg -o OUT", None),
    ("compare a=training.sqlite b=training.sqlite --format html", r"\bidle n/a\b"),
    ("export training.sqlite --format jsonl -o OUT", r'"idle_w": null'),
    ("export training.sqlite --format csv -o OUT", None),
    ("export training.sqlite --format openmetrics -o OUT", None),
)
IDLE_ZERO = r'\bidle(_[jw])?["}]?[ :=]*(0|0\.0+)( [JW%]|[,}\s])'


@test
def unknown_idle_energy_in_every_view(workdir):
    """a run whose idle power is unknown: each view shows n/a, null or nothing, and none shows 0"""
    make(workdir, "training")
    for i, (words, shown) in enumerate(IDLE_VIEWS):
        out = workdir.folder / f"view-{i}"
        done = workdir.wattle(*(str(out) if word == "OUT" else word for word in words.split()))
        files = sorted(out.iterdir()) if out.is_dir() else [out] if out.exists() else []
        text = done.stdout + "".join(path.read_text() for path in files)
        assert done.returncode == 0 and len(text) > 50, (words, done)
        assert shown is None or re.search(shown, text), (words, text[:2000])
        zero = re.search(IDLE_ZERO, text)
        assert not zero, (words, text[zero.start() - 100:zero.end() + 100])


@test
def unknown_idle_energy(workdir):
    """unknown idle energy: null, n/a and no series, not 0; with a known idle power a number"""
    make(workdir, "training")
    ledger = report_of(workdir, "training")["energy"]["ledger"]
    assert ledger["idle_j"] is None, ledger
    total_j = report_of(workdir, "training")["energy"]["total_j"]
    near(sum(value or 0 for value in ledger.values()), total_j, relative=1e-9)
    text = workdir.wattle("report", "training.sqlite").stdout
    assert [line.split() for line in text.splitlines() if line.startswith("  idle ")] == [["idle", "n/a", "n/a"]], text
    assert not all_of(series(export(workdir, "training")), "wattle_run_energy_joules", to="idle")
    assert workdir.wattle("report", "training.sqlite", "--format", "html", "-o", "page.html").returncode == 0
    row = re.search(r"<tr>(?:(?!</tr>).)*c-idle.*?</tr>", (workdir.folder / "page.html").read_text(), re.DOTALL)[0]
    assert "not separated (attribution: busy)" in row and " J" not in row, row
    with sqlite3.connect(workdir.folder / "training.sqlite") as file:
        file.execute("update run set value = 'active' where key = 'attribution'")
        file.execute("update device set idle_w = 1, idle_error_w = 0.1")
    file.close()
    report = report_of(workdir, "training")
    idle_j = report["energy"]["ledger"]["idle_j"]
    in_total = sum(domain["in_total"] for domain in report["energy"]["domains"])
    near(idle_j, in_total * report["run"]["duration_s"], relative=0.05)
    near(of(series(export(workdir, "training")), "wattle_run_energy_joules", to="idle")[-1][1], idle_j, relative=1e-9)


@test
def samples_are_the_files(workdir):
    """gauges: the stored samples in base units, at their times of day to the millisecond"""
    make(workdir, "training")
    found = series(export(workdir, "training"))
    rows = sqlite3.connect(workdir.folder / "training.sqlite").execute(
        "select s.t_ns, temperature_c, sm_clock_mhz, memory_used_bytes, utilization_percent from device_sample s "
        "join device d on d.id = s.device where d.name = 'gpu-0' and temperature_c is not null "
        "order by s.t_ns").fetchall()
    for at, name, scale in ((1, "wattle_domain_temperature_celsius", 1), (2, "wattle_domain_clock_hertz", 1e6),
                            (3, "wattle_domain_memory_used_bytes", 1), (4, "wattle_domain_utilization_ratio", 0.01)):
        points = of(found, name, domain="gpu-0")
        assert len(points) == len(rows), f"{name}: {len(points)} of {len(rows)}"
        for (t, value), row in zip(points, rows):
            near(value, row[at] * scale, relative=1e-12)
            assert abs(t - (row[0] - synthetic_runs.BOOTED_NS
                            + synthetic_runs.WALL_NS) / 1e9) < 1e-3, f"{name} at {row[0]}"


@test
def code_blocks_and_metrics(workdir):
    """code blocks: at the end with their energies; reported metrics at their own times"""
    make(workdir, "training")
    report, found = report_of(workdir, "training"), series(export(workdir, "training"))
    assert report["blocks"]
    for block in report["blocks"]:
        points = of(found, "wattle_block_energy_joules_total", block=block["name"])
        near(points[-1][1], block["energy"]["total_j"], relative=1e-9)
        assert of(found, "wattle_block_calls_total", block=block["name"])[-1][1] == block["num_calls"]
    told = [metric for metric in report["metrics"] if metric["name"] in ("loss",
                                                                         "tokens")]  # the others are wattle's own
    assert len(told) == 2, report["metrics"]
    for metric in told:
        points = of(found, "wattle_metric", name=metric["name"])
        near(points[-1][1], metric["last"], relative=1e-12)


def as_label(name):
    """Invalid UTF-8 and control characters as U+FFFD and two hex digits; U+FFFD itself twice."""
    text = name.decode(errors="surrogateescape").replace("\ufffd", "\ufffd\ufffd")
    return "".join(f"\ufffd{ord(c) & 0xff:02x}" if c < " " and c != "\n" or c == "\x7f" or "\udc80" <= c <= "\udcff"
                   else c for c in text)


@test
def hostile_names(workdir):
    """names with quotes, emoji, control characters and invalid UTF-8: read back, and different ones stay different"""
    make(workdir, "hostile")
    file = sqlite3.connect(workdir.folder / "hostile.sqlite")
    like = [b"like \xff", b"like \xfe", b"like \x01", b"like \x02", b"like \xef\xbf\xbd", b"like \xef\xbf\xbdff"]
    for name in like:
        file.execute("update span set name = cast(? as text) where id = (select min(id) from span "
                     "where name not like 'like%')", (name,))
    file.commit()
    text = export(workdir, "hostile")
    file.text_factory = bytes
    names = {as_label(name) for name, in file.execute("select distinct name from span")}
    blocks = {dict(labels).get("block", "") for name, labels in series(text) if name == "wattle_block_calls_total"}
    assert len(names) >= 5 + len(like) and names == blocks, names ^ blocks
    assert all(c >= " " or c == "\n" for c in text), "control characters"
    if shutil.which("promtool") is not None:
        done = promtool(workdir, "hostile")
        assert done.returncode == 0, done.stdout + done.stderr


@test
def prometheus_takes_it(workdir):
    """promtool: makes blocks of it, with every sample, pauses between segments too"""
    if shutil.which("promtool") is None:
        raise Skip("promtool is not installed")
    for kind in ("training", "segments", "short"):
        make(workdir, kind)
        text = export(workdir, kind)
        done = promtool(workdir, kind)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = [line.split() for line in done.stdout.splitlines() if line.startswith("01")]
        samples = [line for line in text.split("\n") if line and not line.startswith("#")]
        assert sum(int(row[4]) for row in rows) == len(samples), done.stdout


@test
def thinned(workdir):
    """--every: at most one sample of a series in that time, and the last one, so that counters end at their final
    value"""
    make(workdir, "training")
    all_of_it, thin = series(export(workdir, "training")), series(export(workdir, "training", "--every", "2s"))
    assert set(all_of_it) == set(thin)
    name = "wattle_domain_energy_joules_total"
    whole, part = of(all_of_it, name, domain="gpu-0"), of(thin, name, domain="gpu-0")
    assert len(part) < len(whole) / 10, (len(part), len(whole))
    assert (part[0], part[-1]) == (whole[0], whole[-1])
    assert all(t[0] - s[0] > 1.9995 for s, t in zip(part, part[1:-1])), part


@test
def refused(workdir):
    """run of unknown time of day: refused with one line; so is --every with another format"""
    make(workdir, "short")
    file = sqlite3.connect(workdir.folder / "short.sqlite")
    file.execute("delete from segment")
    file.execute("delete from run where key like 'anchor%'")
    file.commit()
    done = workdir.wattle("export", "short.sqlite", "--format", "openmetrics", "-o", "out.om")
    assert done.returncode == 1 and "time of day" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (workdir.folder / "out.om").exists()
    done = workdir.wattle("export", "short.sqlite", "--format", "csv", "--every", "1s", "-o", "out.csv")
    assert done.returncode == 2 and "--every" in done.stderr, done.stderr


if __name__ == "__main__":
    main()
