"""python3 -m wattle.torch.build_observer: builds the observer of wattle.torch for the torch of this Python.

It needs a C++ compiler (c++, or $CXX) and the headers of torch and Python (Debian: g++ libtorch-dev python3-dev; torch
from PyPI has its own). The result goes into the user's cache folder, where layers() finds it.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig
from typing import Optional

from . import _built_for

SOURCE = pathlib.Path(__file__).with_name("observer.cpp")


def command(output: pathlib.Path) -> list[str]:
    headers = [*_built_for.headers(), sysconfig.get_paths()["include"]]
    compiler = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    return [*compiler, f"-std={_built_for.standard()}", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
            *_built_for.definitions(), *(f"-isystem{folder}" for folder in headers), str(SOURCE),
            f"-L{_built_for.libraries()}", "-ltorch_cpu", "-lc10", "-pthread", "-o", str(output)]


def build(output: pathlib.Path) -> None:
    """OSError: the folder or the compiler cannot be used. subprocess.CalledProcessError: the compiler failed, with its
    message."""
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")  # others may be loading the existing one
    try:
        subprocess.run(command(unfinished), check=True)
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)


def main(words: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m wattle.torch.build_observer", description=(
        "Builds the observer of wattle.torch for the torch of this Python, into the user's cache folder."))
    parser.parse_args(words)
    output = _built_for.cache_folder() / f"{_built_for.file_stem()}.so"
    try:
        build(output)
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"{error.cmd[0]} failed" if isinstance(error, subprocess.CalledProcessError) else error
        print(f"wattle: no observer was built: {why}. It takes a C++ compiler and the headers of torch and Python "
              "(Debian: g++ libtorch-dev python3-dev); layers() works without it", file=sys.stderr)
        return 1
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
