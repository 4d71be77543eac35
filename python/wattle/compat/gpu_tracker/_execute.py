"""--execute: tracks a command from before its first instruction to its end, by `wattle run`."""
from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from typing import Any

from ... import _program
from .tracker import Tracker


def execute(command: str, arguments: dict[str, Any]) -> tuple[Tracker, int]:
    """The tracker, stopped, and the command's status (128+N: ended by signal N). `arguments` are those of Tracker. ValueError
    and the like: nothing was started."""
    words = shlex.split(command)
    if not words:
        raise ValueError("Empty command provided.")
    if shutil.which(words[0]) is None:
        reason = "it is not executable" if os.path.exists(words[0]) else "Command not found"
        raise ValueError(f'{reason}: "{words[0]}"')
    if arguments.get("process_id") is not None:
        raise ValueError("process_id can't be combined with a command: wattle starts the command itself")
    program = _program.find()
    if program is None:
        raise FileNotFoundError("cannot find the program wattle in this package or in PATH")
    tracker = Tracker(**arguments)  # checks them
    with tempfile.TemporaryDirectory(prefix="wattle-") as folder:
        report_path = os.path.join(folder, "report.json")
        status = _run([program, "run", "-q", "--disable-logs", "--json", report_path,
                       *_options(arguments, os.path.join(folder, "run.sqlite")), "--", *words])
        if not os.path.exists(report_path):
            raise RuntimeError(f"the command was not tracked (status {status})")
        with open(report_path, encoding="utf-8") as file:
            tracker._adopt(json.load(file))
    return tracker, status


_FLAGS = {"ram_unit": "--ram-unit", "gpu_ram_unit": "--gpu-ram-unit", "time_unit": "--time-unit",
          "gpu_brand": "--gpu-brand", "n_expected_cores": "--expected-cores", "tracking_file": "--tracking-file",
          "label": "--label"}


def _options(arguments: dict[str, Any], run_file: str) -> list[str]:
    """Options of `wattle run`, from Tracker's."""
    words = ["-o", os.fspath(arguments.get("output") or run_file), "-i",
             f"{round(arguments.get('sleep_time', 1.0) * 1e6)}us"]
    for name, flag in _FLAGS.items():
        if arguments.get(name) is not None:
            words += [flag, str(arguments[name])]
    if arguments.get("gpu_uuids") is not None:
        words += ["--gpus", ",".join(sorted(arguments["gpu_uuids"]))]
    if arguments.get("overwrite"):
        words.append("--overwrite")
    return words + list(arguments.get("arguments", ()))


def _run(words: list[str]) -> int:
    """Waits for the command, whatever is typed: wattle passes signals on to it and finishes the recording."""
    process = subprocess.Popen(words)

    def pass_on(number: int, _frame: object) -> None:
        if number != signal.SIGINT:  # that one reaches the whole terminal by itself
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
