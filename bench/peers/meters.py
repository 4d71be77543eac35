"""The meters that bench/peers compares: how each is started around a command, and how its figures are read.

A figure is package_j and gpu_j (energy of the machine), program_j (of the command) or cpu_s (CPU time of the command). A meter
lacks the figures that it does not have."""
import csv
import json
import pathlib
import re
import shutil
import subprocess

ADAPTERS = pathlib.Path(__file__).resolve().parent / "adapters.py"


class Meter:
    """start(folder, command): words to run; read(folder): its figures; note: what the table says about it."""

    def __init__(self, name, version, start, read, note="", waits=True):
        self.name, self.version, self.start, self.read, self.note = name, version, start, read, note
        self.waits = waits  # for the command: its CPU time is then part of the meter's tree


def read_wattle(folder):
    report = json.loads((folder / "report.json").read_text())
    domains = {domain["domain"]: domain for domain in report["energy"]["domains"]}
    found = {"package_j": domains["package-0"]["energy_j"], "program_j": domains["package-0"]["target_j"],
             "cpu_s": report["cpu"]["target_cpu_s"]}
    return {**found, "gpu_j": domains["gpu-0"]["energy_j"]} if "gpu-0" in domains else found


def wattle(build):
    program = build / "src/cli/wattle"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return Meter("wattle run", version, lambda folder, command: [program, "run", "-q", "--overwrite", "-o", folder / "run.sqlite",
                                                                "--json", folder / "report.json", "--", *command], read_wattle)


def read_perf(folder):
    with open(folder / "perf.csv", newline="") as file:
        value = next(row[0] for row in csv.reader(file) if len(row) > 2 and row[2].startswith("task-clock"))
    return {"cpu_s": float(value) / 1e3}


def perf_works():
    return shutil.which("perf") and subprocess.run(["perf", "stat", "-e", "task-clock", "true"], capture_output=True).returncode == 0


def perf():
    if not perf_works():
        return None, "perf stat: not installed, or refused by kernel.perf_event_paranoid"
    version = subprocess.run(["perf", "--version"], capture_output=True, text=True).stdout.split()[-1]
    return Meter("perf stat", version, lambda folder, command: ["perf", "stat", "-x,", "-o", folder / "perf.csv", "-e", "task-clock",
                                                               "--", *command], read_perf,
                 "RAPL only through a PMU of the kernel, which is not simulated"), None


def read_pidstat(folder):
    """CPU time is the sum of percentages times their intervals: children that pidstat does not list are lost."""
    total = 0.0
    for line in (folder / "meter.out").read_text().splitlines():
        words = line.split()
        if re.match(r"\d\d:\d\d:\d\d", line) and len(words) > 8 and words[-1].startswith("burner"):
            total += float(words[-3]) / 100
    return {"cpu_s": total}


def pidstat():
    if not shutil.which("pidstat"):
        return None, "pidstat: not installed (Debian package sysstat)"
    version = subprocess.run(["pidstat", "-V"], capture_output=True, text=True).stdout.split()[2]
    return Meter("pidstat", version, lambda folder, command: ["env", "S_TIME_FORMAT=ISO", "LC_ALL=C", "pidstat", "-u", "1", "-e",
                                                             *command], read_pidstat, "no energy", waits=False), None


def python_peer(name, package, python, note="", adapter=None, version=None):
    adapter = adapter or name

    def start(folder, command):
        return [python, ADAPTERS, adapter, folder / "result.json", *command]
    return Meter(name, version or package_version(python, package), start,
                 lambda folder: json.loads((folder / "result.json").read_text()), note)


def package_version(python, package):
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    done = subprocess.run([python, "-c", code, package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def plain():
    return Meter("(no meter)", "", lambda folder, command: command, lambda folder: {}, "the command alone")


def python_peers(python):
    """(meters, reasons of those that are missing)"""
    rows = (("CodeCarbon", "codecarbon", "codecarbon", "whole machine"), ("Zeus", "zeus", "zeus", "whole machine"),
            ("pyJoules", "pyJoules", "pyjoules", "whole machine"),
            ("carbontracker", "carbontracker", "carbontracker", "whole machine"),
            ("gpu_tracker", "gpu-tracker", "gpu_tracker", "no energy"),
            ("AIPowerMeter", "deep_learning_power_measure", "aipowermeter", "from its source"))
    meters = [python_peer("(Python, no meter)", "", python, "the command alone, started by Python", "bare", " ")]
    missing = []
    for name, package, adapter, note in rows:
        version = package_version(python, package)
        if version is None:
            missing.append(f"{name}: not installed in the virtual environment")
        else:
            meters.append(python_peer(name, package, python, note, adapter, version))
    return meters, missing


