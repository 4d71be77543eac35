"""Installs the package for `meson install`: the files of SOURCE, the EXTENSION and the OBSERVER into FOLDER/wattle.

usage: install_package.py SOURCE EXTENSION [FOLDER [OBSERVER]]     run by meson install; DESTDIR is respected

Without FOLDER it is this Python's package folder inside the prefix; a prefix that this Python does not use gets
lib/pythonX.Y/site-packages, which PYTHONPATH must then name.
"""
import os
import pathlib
import shutil
import site
import sys

from build_package import EXTENSION, sources


def folder_of(prefix):
    known = [path for path in map(pathlib.Path, site.getsitepackages()) if path.is_relative_to(prefix)]
    # /usr/local is a prefix of its own, though it is inside /usr.
    own = [path for path in known if prefix.name == "local" or "local" not in path.relative_to(prefix).parts]
    return own[0] if own else prefix / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def main(source, extension, folder="", observer=""):
    prefix = pathlib.Path(os.environ["MESON_INSTALL_PREFIX"])
    top = pathlib.Path(os.environ.get("DESTDIR", "") + str(prefix / folder if folder else folder_of(prefix))) / "wattle"
    wanted = {path.relative_to(source): path for path in sources(source)[1]}
    wanted[pathlib.Path(EXTENSION)] = pathlib.Path(extension)
    if observer:
        wanted[pathlib.Path("torch", pathlib.Path(observer).name)] = pathlib.Path(observer)
    for name, file in wanted.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, top / name)
    if "MESON_INSTALL_QUIET" not in os.environ:
        print(f"Installing the package for Python to {top}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
