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
import tempfile

# Warnings of gcc that clang doesn't know; the other options are either known to both or have no effect on a syntax check.
GCC_ONLY = ("-Wlogical-op", "-Wduplicated-cond", "-Wjump-misses-init", "-Wno-format-truncation")
KEPT = ("-I", "-isystem", "-D", "-U", "-W", "-std=", "-w")

FILES_A_PROCESS = 50
# Headers that most sources include: read once for each set of options, which takes half of the time.
HEADERS = ("errno.h", "fcntl.h", "inttypes.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
           "string.h", "sys/stat.h", "time.h")
FILES_FOR_HEADERS = 8  # reading the headers takes as long as is saved with so many


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


def precompiled(build, compiler, folder):
    """The compiler's options that include the headers, precompiled with the same options as the sources."""
    header, output = folder / "headers.h", folder / "headers.pch"
    header.write_text("".join(f"#include <{name}>\n" for name in HEADERS))
    command = ["-emit-pch" if word == "-fsyntax-only" else word for word in compiler]
    command[command.index("-x") + 1] = "c-header"
    subprocess.run([*command, "-o", output, header], cwd=build, check=True)
    return ["-include-pch", output]


def messages(build, words, files, folder):
    """One process of the compiler proper checks many files: the driver would start one for each, which takes half of the time.
    Files with a message are checked again with no header but their own: a name of theirs may also be one of a header."""
    driver = ["clang", *words, "-Werror", "-ferror-limit=0", "-fsyntax-only", "-###", files[0]]
    command = subprocess.run(driver, cwd=build, capture_output=True, text=True, check=True).stderr.splitlines()[-1]
    *compiler, last = shlex.split(command)
    assert last == files[0], command
    headers = precompiled(build, compiler, folder) if len(files) >= FILES_FOR_HEADERS else []
    text = ""
    for first in range(0, len(files), FILES_A_PROCESS):
        for more in ((headers, []) if headers else ([],)):
            done = subprocess.run([*compiler, *more, *files[first:first + FILES_A_PROCESS]], cwd=build, capture_output=True,
                                  text=True)
            if done.returncode == 0 and not done.stderr:
                break
        else:
            text += done.stderr or f"clang: exit status {done.returncode}\n"
    return text


def main(top, build):
    found = batches(top, build)
    print(f"1..{len(found)}", flush=True)
    failed = False
    for number, (folder, groups) in enumerate(sorted(found.items()), 1):
        with tempfile.TemporaryDirectory() as own:
            text = "".join(messages(build, words, files, pathlib.Path(own)) for words, files in groups.items())
        n = sum(map(len, groups.values()))
        print(f"{'not ok' if text else 'ok'} {number} - {folder}: {n} sources without a warning")
        print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)
        failed |= bool(text)
    return failed


sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()))
