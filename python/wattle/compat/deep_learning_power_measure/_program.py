"""The command lines: record a command, or show a recording."""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from typing import Optional, Sequence

from ... import _program
from .power_measure import parsers
from .power_measure._experiment import LONGEST_S, SHORTEST_S
from .power_measure._results import ExpResults

FAILED = 125  # as wattle run's
DEFAULT_FOLDER = "power_measure"
WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _truth(text: str) -> bool:
    if text.lower() not in WORDS:
        raise argparse.ArgumentTypeError(f"invalid value '{text}': use True or False")
    return WORDS[text.lower()]


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not SHORTEST_S <= value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"invalid value '{text}': use seconds from {SHORTEST_S} to {LONGEST_S:.0f}")
    return value


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output_folder", default=DEFAULT_FOLDER, metavar="FOLDER",
                        help="folder of the recording (default %(default)s)")
    parser.add_argument("--curve", type=_names, metavar="A,B", help="draw these metrics over time")
    parser.add_argument("--saveto", metavar="FILE", help="write the picture there")


def record(arguments: argparse.Namespace) -> int:
    """Runs the command under `wattle run`. Returns its status, or 125 with a message."""
    wattle = _program.find()
    if wattle is None:
        return _fail("cannot find the program wattle in the package or in PATH")
    driver = parsers.JsonParser(arguments.output_folder)
    if not arguments.cont:
        driver.erase()
    driver.begin_run()
    interval_s = arguments.measurement_period or arguments.period
    words = [wattle, "run", "--quiet", "--append", "--per-process", "--interval", f"{round(interval_s * 1e6)}us",
             f"--output={driver.run_file()}", "--", "/bin/sh", "-c", arguments.cmd]
    status = subprocess.run(words, check=False).returncode
    if driver.run_file().exists():
        driver.take_run(driver.run_file())
    return 128 - status if status < 0 else status


def show(arguments: argparse.Namespace) -> int:
    """Prints the summary, and draws the requested curves."""
    if not os.path.isdir(arguments.output_folder):
        return _fail(f"folder {arguments.output_folder} does not exist")
    try:
        results = ExpResults(parsers.JsonParser(arguments.output_folder))
    except (OSError, ValueError) as error:
        return _fail(str(error))
    results.print()
    for name in arguments.curve or ():
        if results.get_curve(name) is None:
            return _fail(results.missing(name))
    if arguments.curve:
        results.display_curves(arguments.curve, saveto=arguments.saveto)
    return 0


def _fail(sentence: str) -> int:
    print(f"deep_learning_power_measure: {sentence}", file=sys.stderr)
    return FAILED


def read(argv: Optional[Sequence[str]] = None) -> int:
    """Shows a recording: --output_folder F [--curve a,b]."""
    parser = argparse.ArgumentParser(prog="experiment", description="Show a recording of AIPowerMeter or wattle.")
    _add_reading(parser)
    return show(parser.parse_args(argv))


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Records a command (--cmd) and shows the recording. Returns the command's status."""
    parser = argparse.ArgumentParser(prog="deep_learning_power_measure",
                                     description="Record the resource usage of a command, or show a recording.")
    _add_reading(parser)
    parser.add_argument("--cmd", help="command line, in shell syntax")
    parser.add_argument("--cont", type=_truth, default=False, metavar="True|False",
                        help="add to what the folder holds instead of beginning anew (default False)")
    parser.add_argument("--period", type=_seconds, default=0.1,
                        help="seconds between two records (default %(default)s)")
    parser.add_argument("--measurement_period", type=_seconds, help="the same; counts where both are given")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("default", RuntimeWarning)
    if arguments.cmd is None:
        return show(arguments)
    try:
        status = record(arguments)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}")
    return show(arguments) or status
