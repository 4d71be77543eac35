"""Makes packages in a build folder out of the sources: links, so that what is edited needs no copying.

usage: build_package.py SOURCE STAMP DEPFILE PROGRAM PACKAGE,EXTENSION...

SOURCE is the folder of the package wattle; each PACKAGE is a folder that gets its files, the EXTENSION as
_wattle.abi3.so and the PROGRAM as bin/wattle. The DEPFILE names the folders of SOURCE, so that new files are seen.
"""
import os
import pathlib
import sys

SUFFIXES = {".py", ".pyi", ".typed", ".cpp", ".html", ".css", ".js"}


def sources(top):
    """The package's own files, and the folders that they lie in."""
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


def make(package, source, files, extension, program):
    wanted = {package / path.relative_to(source): path for path in files}
    wanted[package / "_wattle.abi3.so"] = extension
    wanted[package / "bin/wattle"] = program
    for old in package.rglob("*") if package.exists() else ():
        if old.is_symlink() and old not in wanted:
            old.unlink()
    for path, target in wanted.items():
        link(path, target)


def main(source, stamp, depfile, program, *packages):
    folders, files = sources(source)
    for words in packages:
        package, extension = map(pathlib.Path, words.split(",", 1))
        make(package, source, files, extension, pathlib.Path(program))
    depfile.write_text(f"{stamp}: {' '.join(str(path).replace(' ', chr(92) + ' ') for path in folders)}\n")
    stamp.touch()


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
