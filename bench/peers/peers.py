#!/usr/bin/env python3
"""wattle beside other meters: errors against a known truth and costs, all on one simulated machine, interleaved in one run.

	peers.py BUILD [--quick] [--minutes N] [--only NAME,…] [--scenarios NAME,…] [--markdown FILE] [--aipowermeter FOLDER]

BUILD is an optimised build folder with -Dbench=true. Needs root (mount namespace). The Python peers of requirements.txt are
installed into a virtual environment outside the source tree (${WATTLE_PEERS:-${XDG_CACHE_HOME:-~/.cache}/wattle/peers}).
Rounds repeat until the next would exceed the time (13 minutes); a round runs every meter on every scenario, in random order.
--markdown writes the tables between the markers of FILE. AIPowerMeter is in no package index: name its source folder."""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import machine  # noqa: E402
import meters  # noqa: E402
from statistics_table import cell, relative_error_percent, table  # noqa: E402

MARKERS = "<!-- bench/peers: begin -->", "<!-- bench/peers: end -->"
RUN_LIMIT_S = 90

# name: (title, the burner's arguments, simulator options, another program runs beside it, the card has steps)
SCENARIOS = {
    "steady": ("steady load", ["cpu", "3"], [], False, False),
    "children": ("children of 30 ms", ["children", "80", "30"], [], False, False),
    "short": ("run of 1 s", ["cpu", "1"], [], False, False),
    # One CPU busy for 2 s is 60 J: one wrap at most on a machine that does nothing else, in nine runs of ten.
    "wrap": ("counter wrap", ["cpu", "2"], ["--range", "package-0=66000000"], False, False),
    "two": ("two programs", ["cpu", "2"], [], True, False),
    "gpu": ("GPU steps", ["tree", "0", "3.3"], [], False, True),
}
QUICK = {"steady": ["cpu", "1"], "children": ["children", "20", "30"]}
FIGURES = {"package_j": "total energy of the package", "program_j": "energy of the program", "cpu_s": "CPU time of the program",
           "gpu_j": "energy of the GPU"}


def environment_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    top = pathlib.Path(os.environ.get("WATTLE_PEERS") or pathlib.Path(cache) / "wattle/peers")
    digest = hashlib.sha256((HERE / "requirements.txt").read_bytes() + sys.version.encode()).hexdigest()[:16]
    return top / digest


def make_environment(python, aipowermeter):
    """The virtual environment of `python`; it is complete, or does not exist. Where it cannot be made, the reason is printed."""
    folder = python.parents[1]
    part = folder.with_name(folder.name + ".part")
    try:
        if not python.exists():
            shutil.rmtree(part, ignore_errors=True)
            venv.create(part, with_pip=True)
            subprocess.run([part / "bin/python", "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
            part.rename(folder)
        if aipowermeter and meters.package_version(python, "deep_learning_power_measure") is None:
            with tempfile.TemporaryDirectory() as copy:  # its build writes into its source
                shutil.copytree(aipowermeter, f"{copy}/source")
                subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", f"{copy}/source"], check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        print(f"peers.py: cannot make {folder}: {failure}. Only Debian's programs are measured", file=sys.stderr)


def available_meters(build, python):
    found, missing = [meters.plain(), meters.wattle(build)], []
    for make in (meters.perf, meters.pidstat):
        meter, reason = make()
        (found if meter else missing).append(meter or reason)
    if python:
        more, reasons = meters.python_peers(python)
        found += more
        missing += reasons
    else:
        missing.append("the Python peers: no virtual environment")
    return found, missing


def run_once(build, folder, meter, scenario, quick):
    """One measured run: errors in percent, costs, or {"failed": reason}."""
    _, act, options, beside, gpu_steps = SCENARIOS[scenario]
    act = QUICK.get(scenario, act) if quick else act
    burner, work_file = machine.program(build, "burner"), folder / "work.json"
    command = ["sh", "-c", 'file=$1; shift; exec "$@" >"$file"', "sh", str(work_file), str(burner), *act]
    with machine.Machine(folder, build, options, gpu_steps) as simulated:
        other = subprocess.Popen([burner, "cpu", "1000"], stdout=subprocess.DEVNULL) if beside else None
        try:
            used = spawn(burner, meter.start(folder, command), folder, simulated.environment())
        finally:
            if other:
                other.kill()
                other.wait()
    try:
        if used["status"] != 0:
            raise ValueError(f"status {used['status']}")
        work, found = machine.work_of(work_file), meter.read(folder)
    except (OSError, ValueError, KeyError, StopIteration, IndexError, TypeError) as failure:
        return {"failed": f"{failure!r}; {last_line(folder / 'meter.err')}"}
    span = work["start_ns"], work["end_ns"]
    truth = {"package_j": simulated.package_j(*span), "gpu_j": simulated.gpu_j(*span), "cpu_s": work["cpu_s"],
             "program_j": machine.WATTS_PER_CPU * work["cpu_s"]}
    if gpu_steps:
        truth = {"gpu_j": truth["gpu_j"]}
    errors = {key: relative_error_percent(found.get(key), true) for key, true in truth.items()}
    return {"errors": errors, "found": found, "truth": truth,
            "meter_cpu_s": used["cpu_s"] - (work["cpu_s"] if meter.waits else 0), "rss_mb": used["max_rss_kb"] / 1e3,
            "before_ms": (span[0] - used["start_ns"]) / 1e6, "after_ms": (used["end_ns"] - span[1]) / 1e6,
            "program_s": (span[1] - span[0]) / 1e9}


def spawn(burner, words, folder, environment):
    """Status, times and resources of it and of all descendants that were waited for, by a program that adds no memory."""
    with open(folder / "meter.out", "wb") as out, open(folder / "meter.err", "wb") as err:
        subprocess.run([str(word) for word in [burner, "run", folder / "used.json", "timeout", "-k", "2", RUN_LIMIT_S, *words]],
                       stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder, check=True)
    return json.loads((folder / "used.json").read_text())


def last_line(path):
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip()[:160] for line in reversed(lines) if line.strip()), "no message")


def measure(build, chosen, scenarios, minutes, quick, seed=1):
    """{(meter, scenario): [run, …]}, rounds"""
    results, rounds, order = {}, 0, random.Random(seed)
    start_s, round_s = time.monotonic(), 0.0
    with tempfile.TemporaryDirectory(prefix="wattle-peers-") as top:
        while rounds == 0 or time.monotonic() - start_s + round_s < minutes * 60:
            begin_s = time.monotonic()
            pairs = [(meter, scenario) for scenario in scenarios for meter in chosen]
            order.shuffle(pairs)
            for i, (meter, scenario) in enumerate(pairs):
                run = run_once(build, pathlib.Path(top) / f"{rounds}-{i}", meter, scenario, quick)
                results.setdefault((meter.name, scenario), []).append(run)
                if "failed" in run:
                    print(f"{meter.name}, {SCENARIOS[scenario][0]}: {run['failed']}", file=sys.stderr)
            rounds += 1
            round_s = time.monotonic() - begin_s
            print(f"round {rounds}: {round_s:.0f} s", file=sys.stderr)
            if quick:
                break
    return results, rounds


def error_table(results, chosen, scenarios, figure):
    """Rows of the meters that have this figure in some scenario."""
    header, rows = ["meter", *(SCENARIOS[name][0] for name in scenarios)], []
    for meter in chosen:
        runs = {name: results.get((meter.name, name), []) for name in scenarios}
        cells = [cell([run["errors"].get(figure) for run in runs[name] if "errors" in run], signed=True) if any(
            "errors" in run for run in runs[name]) else "failed" for name in scenarios]
        if any(text not in ("n/a", "failed") for text in cells):
            rows.append([meter.name, *cells])
    return table(header, rows) if rows else None


def cost_table(results, chosen, scenario):
    base = [run["program_s"] for run in results.get(("(no meter)", scenario), []) if "program_s" in run]
    base_s = statistics.fmean(base) if base else None
    rows = []
    for meter in chosen:
        runs = [run for run in results.get((meter.name, scenario), []) if "errors" in run]
        slower = [100 * (run["program_s"] / base_s - 1) if base_s else None for run in runs]
        rows.append([meter.name, meter.version or "", cell([run["meter_cpu_s"] * 1e3 for run in runs], 0),
                     cell([run["rss_mb"] for run in runs], 0), cell([run["before_ms"] for run in runs], 0),
                     cell([run["after_ms"] for run in runs], 0), cell(slower, 1, True), meter.note])
    return table(["meter", "version", "CPU time, ms", "peak memory, MB", "start-up, ms", "end, ms", "program slower, %", "note"], rows)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())


def document(results, rounds, chosen, scenarios, missing):
    kernel = platform.release().partition("-")[0]
    parts = [f"Measured on {datetime.date.today().isoformat()}: {processor()}, {os.cpu_count()} CPUs, Linux {kernel}, "
             f"Python {platform.python_version()}. {rounds} round{'s' if rounds != 1 else ''}: means ± half of the 95 % interval "
             "(Student's t). `make bench-peers` repeats the measurement.", ""]
    for figure, title in FIGURES.items():
        of_it = ["gpu"] if figure == "gpu_j" else [name for name in scenarios if name != "gpu"]
        text = error_table(results, chosen, [name for name in of_it if name in scenarios], figure)
        if text:
            parts += [f"Error of {title}, in percent of the truth:", "", text, ""]
    of_cost = "steady" if "steady" in scenarios else scenarios[0]
    parts += [f"Costs, {SCENARIOS[of_cost][0]}. CPU time and peak memory of the largest process include Python where the meter is a "
              "Python library:", "", cost_table(results, chosen, of_cost), ""]
    if missing:
        parts += ["Not measured:", "", *(f"- {reason}" for reason in missing), ""]
    return "\n".join(parts)


def write_between_markers(path, text):
    old = path.read_text(encoding="utf-8")
    begin, end = (old.find(marker) for marker in MARKERS)
    if begin < 0 or end < begin:
        sys.exit(f"peers.py: {path} has no lines {MARKERS[0]} and {MARKERS[1]}: add them where the tables belong")
    path.write_text(old[:begin] + MARKERS[0] + "\n" + text + old[end:], encoding="utf-8")


def chosen_of(wanted, names, what):
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"peers.py: unknown {what} '{unknown[0]}'; there are: {', '.join(names)}")
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--minutes", type=float, default=13)
    parser.add_argument("--only", help="names of meters, comma-separated")
    parser.add_argument("--scenarios", help=", ".join(SCENARIOS))
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--aipowermeter", default=os.environ.get("WATTLE_AIPOWERMETER"), help="folder of its source")
    parser.add_argument("--no-python", action="store_true", help="no virtual environment: Debian's programs only")
    arguments = parser.parse_args()
    python = None
    if not arguments.no_python:
        python = environment_folder() / "bin/python"
        if not os.environ.get("WATTLE_PEERS_NAMESPACE"):  # afterwards there is no network
            make_environment(python, arguments.aipowermeter)
    refused = machine.in_own_namespaces()
    if refused:
        sys.exit(f"peers.py: {refused}")
    found, missing = available_meters(arguments.build, python if python and python.exists() else None)
    names = [meter.name for meter in found]
    wanted = chosen_of(arguments.only.split(","), names, "meter") if arguments.only else names
    scenarios = chosen_of((arguments.scenarios or ",".join(SCENARIOS)).split(","), list(SCENARIOS), "scenario")
    chosen = [meter for meter in found if meter.name in wanted]
    results, rounds = measure(arguments.build, chosen, scenarios, arguments.minutes, arguments.quick)
    text = document(results, rounds, chosen, scenarios, missing)
    print(text)
    if arguments.markdown:
        write_between_markers(arguments.markdown, text)


if __name__ == "__main__":
    main()
