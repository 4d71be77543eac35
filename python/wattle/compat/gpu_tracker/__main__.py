"""gpu_tracker's command line: python3 -m wattle.compat.gpu_tracker -h"""
from __future__ import annotations

import argparse
import inspect
import json
import os
import pickle
import sys
from typing import Any, Callable, NoReturn, Optional, Sequence

from . import SubTrackingAnalyzer, Tracker, TrackingComparison, __version__
from ._execute import execute

_USAGE = """
  gpu-tracker -e COMMAND [-o FILE] [-f FORMAT] [--tconfig FILE] [--st S] [--ru UNIT] [--gru UNIT] [--tu UNIT]
              [--nec N] [--guuids LIST] [--gb BRAND] [--tf FILE] [--overwrite] [--disable-logs]
  gpu-tracker sub-track combine --stf FILE -p FILE [-p FILE ...]
  gpu-tracker sub-track analyze --tf FILE --stf FILE [-o FILE] [-f FORMAT]
  gpu-tracker sub-track compare [-m NAME=FILE ...] [--cconfig FILE] [--stat STATISTIC] [-o FILE] [-f FORMAT]
  gpu-tracker -h | --help | -v | --version"""

_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-e", "--execute"),
     dict(metavar="COMMAND", help="command to run and track, with its arguments, quoted as in a shell")),
    (("-o", "--output"), dict(metavar="FILE", help="output file (default: standard output)")),
    (("-f", "--format"), dict(metavar="FORMAT", help="text (default), json or pickle")),
    (("--tconfig",), dict(metavar="FILE", help="JSON object of arguments of Tracker; options take precedence")),
    (("--st",), dict(metavar="S", help="seconds between two samples (default 1)")),
    (("--ru",), dict(metavar="UNIT", help="bytes, kilobytes, megabytes, gigabytes (default) or terabytes")),
    (("--gru",), dict(metavar="UNIT", help="the same for GPU memory")),
    (("--tu",), dict(metavar="UNIT", help="seconds, minutes, hours (default) or days")),
    (("--nec",), dict(metavar="N", help="cores expected to be used (default: all)")),
    (("--guuids",),
     dict(metavar="LIST", help="UUIDs of GPUs, comma separated (default: those visible to the command)")),
    (("--gb",), dict(metavar="BRAND", help="nvidia, amd or intel (default: all found)")),
    (("--tf",), dict(metavar="FILE", help="tracking file, .csv or .sqlite: written by --execute, read by analyze")),
    (("--overwrite",), dict(action="store_true", default=None, help="replace an existing tracking file")),
    (("--disable-logs",), dict(action="store_true", default=None, help="log no warnings")),
    (("--stf",), dict(metavar="FILE", help="sub-tracking file, .csv or .sqlite: written by combine, read by analyze")),
    (("-p",), dict(metavar="FILE", action="append", help="sub-tracking file to combine; a single folder: all in it")),
    (("--cconfig",), dict(metavar="FILE", help="JSON object with file_path_map, statistic; options take precedence")),
    (("-m",), dict(metavar="NAME=FILE", action="append", help="a session and the pickle of its analysis")),
    (("--stat",), dict(metavar="STATISTIC", help="min, max, mean (default) or std")),
)

_TRACKER_ARGUMENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "st": ("sleep_time", float), "ru": ("ram_unit", str), "gru": ("gpu_ram_unit", str), "tu": ("time_unit", str),
    "nec": ("n_expected_cores", int), "guuids": ("gpu_uuids", lambda text: set(text.split(","))),
    "gb": ("gpu_brand", str), "tf": ("tracking_file", str), "overwrite": ("overwrite", bool),
    "disable_logs": ("disable_logs", bool),
}
_OUTPUT = {"output", "format"}
_MODES: dict[tuple[str, ...], tuple[set[str], set[str]]] = {  # words: (required options, optional ones)
    (): ({"execute"}, {"tconfig", *_OUTPUT, *_TRACKER_ARGUMENTS}),
    ("sub-track", "combine"): ({"stf", "p"}, set()),
    ("sub-track", "analyze"): ({"tf", "stf"}, _OUTPUT),
    ("sub-track", "compare"): (set(), {"cconfig", "m", "stat", *_OUTPUT}),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(f"{message}\nusage:{_USAGE}")


def fail(sentence: str) -> NoReturn:
    """One line on stderr, status 1, which gpu_tracker uses for every error."""
    print(f"gpu-tracker: {sentence}", file=sys.stderr)
    sys.exit(1)


def _parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = _Parser(prog="gpu-tracker", usage=_USAGE, description="What a command uses: time, CPU, memory, GPUs. With "
                     "sub-track: what its code blocks use.")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--version", action="version", version=__version__)
    for names, how in _OPTIONS:
        parser.add_argument(*names, **how)
    options = parser.parse_intermixed_args(arguments)
    given = {name for name, value in vars(options).items() if value is not None and name != "words"}
    if tuple(options.words) not in _MODES:
        parser.error(f"unknown command: {' '.join(options.words)}")
    needed, allowed = _MODES[tuple(options.words)]
    for name in sorted(needed - given):
        parser.error(f"--{name.replace('_', '-')} is missing" if len(name) > 1 else f"-{name} is missing")
    for name in sorted(given - needed - allowed):
        parser.error(f"--{name.replace('_', '-')} does not belong to {' '.join(options.words) or '--execute'}")
    return options


# ---- output ----

_FORMATS: dict[str, Callable[[Any], Any]] = {
    "text": str,
    "json": lambda results: json.dumps(results.to_json(), indent=1),
    "pickle": pickle.dumps,
}


def _check_output(options: argparse.Namespace) -> None:
    """Checks format and output before a command runs, perhaps for hours."""
    if (options.format or "text") not in _FORMATS:
        fail(f'"{options.format}" is not a valid format. Valid values are "text", "json" or "pickle".')
    if options.output is None:
        return
    folder = os.path.dirname(options.output) or "."
    if os.path.isdir(options.output):
        fail(f"--output {options.output}: is a folder; a file is wanted")
    if not os.access(options.output if os.path.exists(options.output) else folder, os.W_OK):
        fail(f"--output {options.output}: can't write into {folder}")


def _put_out(results: Any, options: argparse.Namespace) -> None:
    """Unchanged into a file; on standard output text ends with a newline."""
    shown = _FORMATS[options.format or "text"](results)
    if options.output is not None:
        with open(options.output, "wb") as file:
            file.write(shown if isinstance(shown, bytes) else shown.encode())
    elif isinstance(shown, bytes):
        sys.stdout.buffer.write(shown)
    else:
        print(shown)


# ---- commands ----

def _config(path: Optional[str]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except ValueError as failure:
        raise ValueError(f"{path} is not valid JSON: {failure}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not a JSON object")
    return values


def _number(name: str, convert: Callable[[str], Any], text: Any) -> Any:
    try:
        return convert(text)
    except ValueError:
        raise ValueError(f"--{name} {text}: not {'an integer' if convert is int else 'a number'}") from None


def _tracker_arguments(path: Optional[str]) -> dict[str, Any]:
    arguments = _config(path)
    valid = inspect.signature(Tracker).parameters
    for name in arguments:
        if name not in valid:
            raise ValueError(f"{path}: Tracker has no argument {name}; it has {', '.join(valid)}")
    return arguments


def _execute(options: argparse.Namespace) -> None:
    arguments = _tracker_arguments(options.tconfig)
    for option, (name, convert) in _TRACKER_ARGUMENTS.items():
        value = getattr(options, option)
        if value is not None:
            arguments[name] = _number(option, convert, value)
    tracker, status = execute(options.execute, arguments)
    message_to = sys.stderr if options.format == "pickle" and options.output is None else sys.stdout
    print(f"Resource tracking complete. Process completed with status code: {status}", file=message_to)
    _put_out(tracker, options)


def _combine(options: argparse.Namespace) -> None:
    files = options.p
    if len(files) == 1 and os.path.isdir(files[0]):
        ending = os.path.splitext(options.stf)[1]
        files = sorted(entry.path for entry in os.scandir(files[0]) if entry.name.endswith(ending))
        if not files:
            raise ValueError(f"{options.p[0]}: no {ending} file in this folder")
    SubTrackingAnalyzer(None, options.stf).combine_sub_tracking_files(files)


def _analyze(options: argparse.Namespace) -> None:
    _put_out(SubTrackingAnalyzer(options.tf, options.stf).sub_tracking_results(), options)


def _compare(options: argparse.Namespace) -> None:
    config = _config(options.cconfig)
    sessions = dict(config.get("file_path_map", {}))
    for pair in options.m or ():
        name, sign, path = pair.partition("=")
        if not sign:
            raise ValueError(f"-m {pair}: expected NAME=FILE")
        sessions[name] = path
    if not sessions:
        raise ValueError("A mapping of tracking session name to file path must be provided either through the -m "
                         "option or a config file.")
    _put_out(TrackingComparison(sessions).compare(options.stat or config.get("statistic", "mean")), options)


_COMMANDS = {"combine": _combine, "analyze": _analyze, "compare": _compare}


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """The command line; None: that of the process."""
    options = _parse(arguments)
    _check_output(options)
    try:
        (_COMMANDS[options.words[1]] if options.words else _execute)(options)
    except (OSError, RuntimeError, TypeError, ValueError) as failure:
        fail(str(failure))


if __name__ == "__main__":
    main()
