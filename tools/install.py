#!/usr/bin/python3
"""What `make install` and `make uninstall` do.

usage: install.py BUILD [DESTDIR]                 install a build folder into its prefix, and record every file and new folder
       install.py --uninstall PREFIX [DESTDIR]    remove what the record names
       install.py --prefix-of BUILD               print the prefix

The record is PREFIX/share/wattle/installed.txt: `SHA256  PATH` of each file, `link  PATH`, and `folder  PATH` of each folder that did
not exist before. A file that has changed since stays and is named. A second installation removes what only the first
one had.
"""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

RECORD = "share/wattle/installed.txt"
# What operators and services write, which no installation does.
OTHERS = ("etc/wattle", "etc/default/wattled", "etc/default/wattle-serve", "etc/default/wattle-textfile",
          "var/lib/wattle",
          "var/lib/wattle-serve")
STANDARD = ("/usr", "/usr/local")  # default search folders of the loader, systemd, Python and pkg-config


def option(build, name):
    rows = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", str(build)], check=True,
                                     capture_output=True).stdout)
    return next(row["value"] for row in rows if row["name"] == name)


def inside(destdir, path):
    """An absolute path as seen from a root folder."""
    return pathlib.Path(str(destdir) + str(path))


def state(path):
    """What the record has of a path; None: there is nothing."""
    if path.is_symlink():
        return "link"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder" if path.is_dir() else None


def read_record(destdir, prefix):
    """{path: state}, in the order of installation."""
    file = inside(destdir, prefix / RECORD)
    # another user could name any file that belongs to root
    if file.exists() and os.geteuid() == 0 and file.stat().st_uid != 0:
        sys.exit(f"install.py: {file} belongs to user {file.stat().st_uid}; run make as that user")
    rows = (line.split("  ", 1) for line in file.read_text().splitlines()) if file.exists() else ()
    return {pathlib.Path(path): what for what, path in rows}


def copy(source, target):
    """By another name first: a program that runs can't be written to."""
    temporary = target.with_name(f".{target.name}.new")
    shutil.copy2(source, temporary, follow_symlinks=False)
    temporary.rename(target)


def install(build, destdir):
    prefix = pathlib.Path(option(build, "prefix"))
    before = read_record(destdir, prefix)
    record = {}
    with tempfile.TemporaryDirectory(prefix="wattle-install-") as stage:
        subprocess.run(["meson", "install", "-C", str(build), "--no-rebuild", "--quiet", "--destdir", stage],
                       check=True)
        for source in sorted(pathlib.Path(stage).rglob("*")):
            path = pathlib.Path("/", source.relative_to(stage))
            target = inside(destdir, path)
            if state(source) != "folder":
                copy(source, target)
                record[path] = state(source)
            elif not target.is_dir():
                target.mkdir(parents=True)
                record[path] = "folder"
            elif before.get(path) == "folder":
                record[path] = "folder"
    inside(destdir, prefix / RECORD).parent.mkdir(parents=True, exist_ok=True)
    remove(destdir, {path: what for path, what in before.items() if path not in record})
    inside(destdir, prefix / RECORD).write_text("".join(f"{what}  {path}\n" for path, what in record.items()))
    update_loader_cache(prefix, destdir)
    explain(build, prefix, destdir, record)


def update_loader_cache(prefix, destdir):
    """Its cache has the libraries of its own folders only."""
    if not destdir and str(prefix) in STANDARD and os.geteuid() == 0:
        subprocess.run(["/sbin/ldconfig"], check=False)


def remove(destdir, record):
    """Removes files with the content that was installed, then folders that are empty. Returns the files that stay."""
    kept = []
    for path, what in record.items():
        target = inside(destdir, path)
        now = state(target)
        if what == "folder" or now is None:
            continue
        if now != what:
            kept.append(target)
            continue
        target.unlink()
        if path.suffix == ".py":  # Python's cache of the file
            for made in target.parent.glob(f"__pycache__/{target.stem}.cpython-*.pyc"):
                made.unlink()
    for path in sorted((path for path, what in record.items() if what == "folder"), reverse=True):
        for folder in (inside(destdir, path / "__pycache__"), inside(destdir, path)):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    return kept


def uninstall(prefix, destdir):
    record = read_record(destdir, prefix)
    file = inside(destdir, prefix / RECORD)
    if not record:
        sys.exit(f"install.py: there is no record {file}; give the PREFIX that was installed to: make uninstall "
                 "PREFIX=DIR")
    file.unlink()
    kept = remove(destdir, record)
    update_loader_cache(prefix, destdir)
    print(f"Removed {sum(what != 'folder' for what in record.values()) - len(kept)} files from "
          f"{inside(destdir, prefix)}.")
    for path in kept:
        print(f"Kept, changed since it was installed: {path}")
    for path in OTHERS:
        if str(prefix) in STANDARD and (found := inside(destdir, f"/{path}")).exists():
            print(f"Kept, not written by the installation: {found}")


def explain(build, prefix, destdir, record):
    """The variables for a prefix outside of the standard ones."""
    top = inside(destdir, prefix)
    print(f"Installed wattle into {top}.")
    if str(top) in STANDARD:
        return
    library = top / option(build, "libdir")
    modules = [inside(destdir, path).parent.parent for path in record if path.match("*/wattle/__init__.py")]
    rows = [("PATH", top / option(build, "bindir")), ("LD_LIBRARY_PATH", library),
            ("PKG_CONFIG_PATH", library / "pkgconfig"),
            *(("PYTHONPATH", path) for path in modules)]
    print("Set these variables, for example in ~/.profile:\n")
    for name, folder in rows:
        print(f'export {name}={shlex.quote(str(folder))}"${{{name}:+:${name}}}"')
    print(f"\nTo remove it: make uninstall PREFIX={shlex.quote(str(prefix))}"
          + (f" DESTDIR={shlex.quote(destdir)}" if destdir else ""))


def main(words):
    os.umask(0o022)
    destdir = os.path.abspath(words[-1]) if len(words) == (3 if words[0].startswith("--") else 2) and words[-1] else ""
    if words[:1] == ["--prefix-of"]:
        print(option(words[1], "prefix"))
    elif words[:1] == ["--uninstall"]:
        uninstall(pathlib.Path(words[1]), destdir)
    else:
        install(pathlib.Path(words[0]), destdir)


if __name__ == "__main__":
    main(sys.argv[1:])
