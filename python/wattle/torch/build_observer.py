"""python3 -m wattle.torch.build_observer: builds the observer of wattle.torch for the torch of this Python.

It needs g++ (or $CXX), and torch's and Python's headers (Debian: libtorch-dev, python3-dev; with torch from PyPI its own are
there). The result goes into the user's cache folder, where layers() finds it.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig
from typing import List, Optional

import torch

from . import observer

SOURCE = pathlib.Path(__file__).with_name("observer.cpp")
STANDARD = "gnu++14" if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1) else "gnu++17"  # as torch's headers want
WARNINGS = ["-Wall", "-Wextra", "-Wshadow"]


def folders() -> tuple[List[str], List[str]]:
    """torch's own: of headers, of libraries. (torch.utils.cpp_extension knows them, and says things about CUDA.)"""
    top = pathlib.Path(torch.__file__).parent
    return [str(top / "include"), str(top / "include/torch/csrc/api/include")], [str(top / "lib")]


def command(compiler: List[str], output: pathlib.Path) -> List[str]:
    headers, libraries = folders()
    return [*compiler, f"-std={STANDARD}", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", *WARNINGS,
            f'-DWATTLE_TORCH="{observer.tag()}"', f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
            *(part for folder in (*headers, sysconfig.get_paths()["include"]) for part in ("-isystem", folder)), str(SOURCE),
            *(f"-L{folder}" for folder in libraries), "-ltorch_cpu", "-lc10", "-pthread", "-o", str(output)]


def build(output: pathlib.Path, compiler: Optional[List[str]] = None) -> None:
    """OSError, subprocess.CalledProcessError: no compiler, or it says why it can't."""
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        subprocess.run(command(compiler or shlex.split(os.environ.get("CXX", "")) or ["c++"], unfinished), check=True)
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)


def main(words: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m wattle.torch.build_observer",
                                     description="Builds the observer of wattle.torch for the torch of this Python.")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER", help="where it goes; the user's cache folder")
    folder = parser.parse_args(words).output or observer.cache_folder()
    try:
        build(folder / observer.file_name())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"wattle: the observer could not be built: {error}. It needs a C++ compiler and the headers of torch and Python "
              "(Debian: g++ libtorch-dev python3-dev); layers() works without it", file=sys.stderr)
        return 1
    print(folder / observer.file_name())
    return 0


if __name__ == "__main__":
    sys.exit(main())
