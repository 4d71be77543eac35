"""gpu_tracker's files made by a test, and the expected results: computed slowly, in exact arithmetic."""
import csv
import fractions
import math
import pathlib
import random
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from tracking_files import CALLS, METRICS, STATIC, START_S, write_calls, write_tracking  # noqa: E402,F401


def stats(values):
    known = [fractions.Fraction(value) for value in values if value is not None]
    if not known:
        return {"min": None, "max": None, "mean": None, "std": None}
    mean = sum(known) / len(known)
    variance = sum((value - mean) ** 2 for value in known) / len(known)
    return {"min": float(min(known)), "max": float(max(known)), "mean": float(mean), "std": math.sqrt(variance)}


def pair(rows):
    """{name: [(start, stop)]}, last in, first out for each process; a block that was never stopped has none"""
    pairs, open_calls = {}, {}
    for pid, name, position, time_s in sorted(rows, key=lambda row: row[3]):
        stack = open_calls.setdefault((pid, name), [])
        calls = pairs.setdefault(name, [])
        if position == 0:
            stack.append(time_s)
        else:
            calls.append((stack.pop(), time_s))
    return pairs


def expected_values(timepoints, rows, static=STATIC):
    """The expected document of wattle blocks for these timepoints and rows"""
    blocks = []
    for name, calls in sorted(pair(rows).items()):
        inside = [t for t in timepoints if t[-1] is not None and any(a <= t[-1] <= b for a, b in calls)]
        durations = [b - a for a, b in calls]
        blocks.append({
            "name": name, "num_timepoints": len(inside), "num_calls": len(calls),
            "num_non_empty_calls": sum(any(t[-1] is not None and a <= t[-1] <= b for t in timepoints)
                                       for a, b in calls),
            "compute_time": {**stats(durations), "total": float(sum(map(fractions.Fraction, durations)))},
            "resource_usage": {metric: stats([t[i] for t in inside]) for i, metric in enumerate(METRICS)}})
    return {"overall": {metric: stats([t[i] for t in timepoints]) for i, metric in enumerate(METRICS)},
            "static_data": static, "code_block_results": blocks}


def check(actual, expected, relative=1e-12, where=""):
    """The same keys in the same order, numbers to the tolerance, everything else equal"""
    if isinstance(expected, dict):
        assert list(actual) == list(expected), (where, list(actual), list(expected))
        for key in expected:
            check(actual[key], expected[key], relative, f"{where}/{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), (where, len(actual), len(expected))
        for i, (a, e) in enumerate(zip(actual, expected)):
            check(a, e, relative, f"{where}/{i}")
    elif isinstance(expected, float) and isinstance(actual, (int, float)):
        assert abs(actual - expected) <= relative * abs(expected), (where, actual, expected)
    else:
        assert actual == expected, (where, actual, expected)


def made_timepoints(chance, n, unknown=0.0):
    """Typical values: memory in gigabytes, percent, threads; some cells are empty"""
    def cell(value):
        return None if chance.random() < unknown else value
    return [(*(cell(chance.uniform(0, 64)) for _ in range(8)), *(cell(chance.uniform(0, 100)) for _ in range(2)),
             *(cell(chance.randrange(1, 40)) for _ in range(3)), *(cell(chance.uniform(0, 1200)) for _ in range(8)),
             START_S + i * 0.1 + chance.random() * 0.01) for i in range(n)]


def made_rows(chance, n, pids=(100, 200, 300)):
    """Nested, recursive and overlapping calls of a few processes; the last ones are still running"""
    rows = []
    for pid in pids:
        time_s, stack = START_S + chance.random(), []
        for _ in range(n):
            time_s += chance.choice((1e-6, 0.01, 0.3)) * chance.random()
            if stack and (len(stack) > 4 or chance.random() < 0.5):
                rows.append((pid, stack.pop(), 1, time_s))
            else:
                stack.append(chance.choice(("load", "train.py:12", "train.py:7", "a, \"b\"", "Über")))
                rows.append((pid, stack[-1], 0, time_s))
        rows.append((pid, "never stopped", 0, time_s))
    return sorted(rows, key=lambda row: row[3])


def read_calls(path):
    if str(path).endswith(".csv"):
        with open(path, newline="") as file:
            lines = list(csv.reader(file))
        assert lines[0] == list(CALLS), lines[0]
        return [(int(pid), name, int(position), float(time_s)) for pid, name, position, time_s in lines[1:]]
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"select {', '.join(CALLS)} from data").fetchall()
    finally:
        connection.close()


def seeded(seed):
    return random.Random(seed)
