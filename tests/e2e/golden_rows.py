"""Data of the Python package for the runs whose paths are given: names, units and values of rows, columns and
attributes.

Started by golden.py, with PYTHONPATH=BUILD/python. Neither numpy nor pandas is used.
"""
import json
import sys

import wattle

TABLES = ("facts", "segments", "processes", "events", "user_metrics", "blocks")
ROWS = 6  # of a table
explained = set()


def columns(title, found):
    """Every column with its name; unit and meaning once."""
    print(f"  {title}: {found.n} rows")
    for name in found:
        values = [value for value in found.buffer(name) if value != wattle.MISSING]
        about = f"{name} [{found.unit[name]}] ({found.meaning[name]})"
        figures = f"{len(values)} known: {values[0]} … {values[-1]}, sum {sum(values)}" if values else "none known"
        print(f"    {name if about in explained else about} {figures}")
        explained.add(about)


def table(title, rows):
    print(f"  {title}: {len(rows)} rows")
    if isinstance(rows, dict):
        print("".join(f"    {key} = {value!r}\n" for key, value in sorted(rows.items())), end="")
        return
    print(f"    columns {', '.join(rows.columns)}")
    for row in rows[:ROWS]:
        print("    " + json.dumps(row, sort_keys=False, default=str))


def show_run(path):
    with wattle.open(path) as run:
        print(f"run {path}: {run!r}")
        print(f"  report: {', '.join(run.report)}; summary {run.report.summary()}")
        print(f"  charts: {', '.join(run.charts) if run.samples.n > 1 else 'too few samples'}")
        columns("samples", run.samples)
        columns("process_samples", run.process_samples)
        columns("spans", run.spans)
        print(f"    names {run.spans.names}")
        for name, device in run.devices.items():
            print(f"  device {name}: {device.facts}")
            columns(f"samples of {name}", device.samples)
        for name in TABLES:
            table(name, getattr(run, name))
        first = run.samples.buffer("t_ns")[0] if run.samples.n else 0
        print(f"  wall_time {run.wall_time(first)}")


def show_job(path):
    job = wattle.open_job(path)
    print(f"job {path}: {job!r}\n  report: {', '.join(job.report)}; id {job.id}, energy_j {job.energy_j}")
    for name in ("ranks", "nodes", "blocks"):
        table(name, getattr(job, name))
    print(f"  imbalance {json.dumps(job.imbalance)}\n  warnings {json.dumps(job.warnings)}")


def show_aipowermeter(run):
    """The figures that AIPowerMeter's reader computes from an exported run."""
    path = f"{run}-aipowermeter"
    wattle.export(run, "aipowermeter", path)
    from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers
    results = experiment.ExpResults(parsers.JsonParser(path))
    print(f"aipowermeter {path}\n  metrics {results.list_metrics()}")
    print("  summary " + json.dumps(results.get_summary(), indent=2))


if __name__ == "__main__":
    for word in sys.argv[1:]:
        kind, _, name = word.partition("=")
        {"run": show_run, "job": show_job, "aipowermeter": show_aipowermeter}[kind](name)
