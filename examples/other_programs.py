#!/usr/bin/env python3
"""Measures programs that are not Python: time and energy to compress a file.

usage: other_programs.py [FILE]

Each command is a code block of one recording, so that time, CPU and joules are side by side. Without Python
use `wattle run -- xz -9 FILE` for one command, and `wattle bench -- 'gzip FILE' ::: 'xz FILE'` for the significance of a
difference.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Optional

import wattle

COMMANDS = (["gzip", "-1"], ["gzip", "-9"], ["bzip2", "-9"], ["xz", "-1"], ["xz", "-6"], ["zstd", "-q", "-3"])


def made_file(folder: str) -> str:
    """8 MB of text that compresses about as well as a log."""
    path = os.path.join(folder, "made.log")
    with open(path, "w", encoding="ascii") as file:
        for number in range(125_000):
            item, size = number * 7919 % 100_003, number * number % 9973
            file.write(f"{number:08d} GET /item/{item} 200 {size} bytes sent to you\n")
    return path


def figure(joules: Optional[float]) -> str:
    """None is unknown."""
    return "n/a" if joules is None else f"{joules:.2f}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = sys.argv[1] if len(sys.argv) > 1 else made_file(folder)
        sizes = {}
        with wattle.Tracker() as tracker:
            for command in COMMANDS:
                if shutil.which(command[0]) is None:
                    continue
                name = " ".join(command)
                with wattle.span(name):
                    done = subprocess.run([*command, "-c", path], stdout=subprocess.PIPE, check=True)
                    sizes[name] = len(done.stdout)
    if tracker.report is None:
        sys.exit("WATTLE_DISABLE is set: nothing was measured")
    print(f"{'command':14}{'seconds':>9}{'joules':>9}{'±':>8}{'size':>12}")
    for block in tracker.report["blocks"]:
        energy = block["energy"]
        print(f"{block['name']:14}{block['compute_time']['total']:9.2f}{figure(energy['total_j']):>9}"
              f"{figure(energy['error_j']):>8}{sizes[block['name']]:12,}")
    print(f"energy is {tracker.report['energy']['provenance']}")


if __name__ == "__main__":
    main()
