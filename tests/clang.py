"""clang compiles every C source of a build without a warning: its syntax check only, which writes no file. Prints TAP.

usage: clang.py TOP BUILD

The sources, macros and folders are those of BUILD/compile_commands.json. A source that several targets compile is checked once
for each set of macros.
"""
import collections
import json
import os
import pathlib
import shlex
import subprocess
import sys

# Warnings of gcc that clang doesn't know; the other options are either known to both or have no effect on a syntax check.
GCC_ONLY = ("-Wlogical-op", "-Wduplicated-cond", "-Wjump-misses-init", "-Wno-format-truncation")
KEPT = ("-I", "-isystem", "-D", "-U", "-W", "-std=", "-w")


FILES_A_PROCESS = 50


def is_kept(build, word):
    """A target's own folder matters only if it has generated headers."""
    own = word.startswith("-I") and word.endswith(".p")
    return word.startswith(KEPT) and word not in GCC_ONLY and not (own and not list((build / word[2:]).glob("*.h")))


def sources(build):
    """(file, macros): its options"""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].endswith(".c"):
            words = tuple(word for word in shlex.split(entry["command"]) if is_kept(build, word))
            macros = frozenset(word for word in words if not word.startswith(("-I", "-isystem")))
            found.setdefault((entry["file"], macros), words)
    return found


def batches(top, build):
    """folder: {options: files}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for (file, _), words in sources(build).items():
        path = pathlib.Path(os.path.relpath(build / file, top))
        folder = "/".join(path.parts[:2]) if path.parts[0] in ("src", "tests", "python") else path.parts[0]
        found[folder][words].append(file)
    return found


def messages(build, words, files):
    """One process of the compiler proper checks many files: the driver would start one for each, which takes half of the time."""
    driver = ["clang", *words, "-Werror", "-ferror-limit=0", "-fsyntax-only", "-###", files[0]]
    command = subprocess.run(driver, cwd=build, capture_output=True, text=True, check=True).stderr.splitlines()[-1]
    *compiler, last = shlex.split(command)
    assert last == files[0], command
    text = ""
    for first in range(0, len(files), FILES_A_PROCESS):
        done = subprocess.run([*compiler, *files[first:first + FILES_A_PROCESS]], cwd=build, capture_output=True, text=True)
        text += done.stderr or f"clang: exit status {done.returncode}\n" * (done.returncode != 0)
    return text


def main(top, build):
    found = batches(top, build)
    print(f"1..{len(found)}", flush=True)
    failed = False
    for number, (folder, groups) in enumerate(sorted(found.items()), 1):
        text = "".join(messages(build, words, files) for words, files in groups.items())
        n = sum(map(len, groups.values()))
        print(f"{'not ok' if text else 'ok'} {number} - {folder}: {n} sources without a warning")
        print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)
        failed |= bool(text)
    return failed


sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
