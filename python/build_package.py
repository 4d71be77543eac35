"""Makes packages in a build folder from the sources: links, so that edited files need no copying.

usage: build_package.py SOURCE STAMP DEPFILE PACKAGE,EXTENSION... -- NAME=FILE...

SOURCE is the folder of the package wattle. Each PACKAGE is a folder that gets its files, the EXTENSION as
_wattle.abi3.so, and each FILE by its NAME (bin/wattle=…). The DEPFILE names the folders of SOURCE, so that new files
are detected.
"""
import os
import pathlib
import sys

SUFFIXES = {".py", ".pyi", ".typed", ".cpp", ".html", ".css", ".js"}
EXTENSION = "_wattle.abi3.so"


def sources(top):
    """The package's folders, and its files."""
    folders, files = [top], []
    for path in sorted(top.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        if path.is_dir():
            folders.append(path)
        elif path.suffix in SUFFIXES:
            files.append(path)
    return folders, files


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = os.path.relpath(target, path.parent)
    if path.is_symlink() and os.readlink(path) == text:
        return
    path.unlink(missing_ok=True)
    path.symlink_to(text)


def make(package, wanted):
    """Gives the folder exactly these links."""
    for old in list(package.rglob("*")) if package.exists() else ():
        if old.is_symlink() and old.relative_to(package) not in wanted:
            old.unlink()
    for name, target in wanted.items():
        link(package / name, target)


def main(source, stamp, depfile, *words):
    folders, files = sources(source)
    middle = words.index("--")
    wanted = {path.relative_to(source): path for path in files}
    pairs = (word.split("=", 1) for word in words[middle + 1:])
    wanted |= {pathlib.Path(name): pathlib.Path(file) for name, file in pairs}
    for word in words[:middle]:
        package, extension = map(pathlib.Path, word.split(",", 1))
        make(package, {**wanted, pathlib.Path(EXTENSION): extension})
    depfile.write_text(f"{stamp}: {' '.join(str(path).replace(' ', chr(92) + ' ') for path in folders)}\n")
    stamp.touch()


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
