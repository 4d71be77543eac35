#!/usr/bin/env python3
"""Text files as C strings, so that other languages are in files of their own.

	embed-text.py OUTPUT.c NAME=FILE…
"""
import json
import sys
from pathlib import Path


def main(output: str, pairs: list[str]) -> None:
    lines = ["// Made by tools/embed-text.py."]
    for pair in pairs:
        name, _, path = pair.partition("=")
        lines += [f"extern const char {name}[];", f"const char {name}[] ="]
        # C reads all of JSON's escapes but \u, which ASCII texts don't need.
        lines += [f"\t{json.dumps(line)}" for line in Path(path).read_text(encoding="ascii").splitlines(keepends=True)]
        lines[-1] += ";"
    Path(output).write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
