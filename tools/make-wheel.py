#!/usr/bin/python3
"""Builds the wheel of the Python package and checks it, for `make wheel`.

usage: make-wheel.py SOURCE BUILD FOLDER

The wheel goes to FOLDER, built in BUILD. auditwheel must confirm its platform tag, twine its metadata. tests/python/wheel.py
installs it for each Python found, and where neither compiler nor libraries are; tests/python/annotations.py checks its type hints
with mypy and pyright. auditwheel, twine and pyright are installed from Python's package index into a virtual environment in
$XDG_CACHE_HOME/wattle/wheel; where that fails, their checks are skipped.
"""
import os
import pathlib
import subprocess
import sys

TOOLS = ("auditwheel==6.8.2", "twine==7.0.0", "pyright==1.1.414")


def build(source, build_folder, folder):
    """The wheel's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("wattle-*.whl"):
        old.unlink()
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "--quiet",
                    "--disable-pip-version-check", "--config-settings", f"build-dir={build_folder}", "-w", folder, source],
                   check=True)
    wheel, = folder.glob("wattle-*.whl")
    return wheel


def tools():
    """The folder of the programs; None: they can't be installed."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "wattle/wheel"
    programs = cache / "-".join(TOOLS) / "bin"
    if not (programs / "twine").exists():
        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        done = subprocess.run([programs / "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS],
                              capture_output=True, text=True)
        if done.returncode != 0:
            print(f"auditwheel, twine and pyright: skipped, they can't be installed: {done.stderr.strip().splitlines()[-1]}")
            return None
    return programs


def audit(programs, wheel):
    """SystemExit: the tag promises more than the files keep, or the metadata are invalid."""
    shown = subprocess.run([programs / "auditwheel", "show", wheel], capture_output=True, text=True, check=True).stdout
    platform = wheel.stem.rpartition("-")[2]
    if f'platform tag: "{platform}"' not in " ".join(shown.split()):
        sys.exit(f"{wheel.name}: auditwheel does not confirm its platform tag. It found:\n{shown}")
    subprocess.run([programs / "twine", "check", "--strict", wheel], check=True, stdout=subprocess.DEVNULL)
    print(f"auditwheel: {platform}; twine: metadata are valid")


def main(source, build_folder, folder):
    wheel = build(source, build_folder, folder)
    programs = tools()
    if programs is not None:
        audit(programs, wheel)
    tests = source / "tests"
    environment = {**os.environ, "WATTLE_WHEEL": str(wheel), "WATTLE_TESTS": str(tests), "WATTLE_BUILD": str(build_folder),
                   "PYTHONPATH": os.pathsep.join(map(str, (build_folder / "python", tests / "python", tests / "e2e")))}
    failed = [name for name in ("wheel", "annotations")
              if subprocess.run([sys.executable, tests / f"python/{name}.py"], env=environment).returncode != 0]
    print(wheel)
    return len(failed)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*(pathlib.Path(word).absolute() for word in sys.argv[1:])))
