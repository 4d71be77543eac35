"""Builds wheels of wattle: the hooks that pip calls (PEP 517, 660), with Python's standard library only.

Meson and ninja build the complete package in BUILD/python/wattle, with the extension and the program; a wheel is that
folder, packed.
Settings (pip install --config-settings NAME=VALUE .):

    build-dir   a build folder to use and keep; default a temporary one, for editable installs build/editable
    setup-args  further options of meson setup, as one text
    gpu-tracker-command=yes
                install a command gpu-tracker too, which is wattle.compat.gpu_tracker; without it gpu_tracker's own stays as it is
"""
import base64
import contextlib
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
STEM = f"{PROJECT['name']}-{PROJECT['version']}"
TAG = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store: one source gives one wheel


# ---- building ----

def _needed():
    """Build dependencies on Debian: the project's one list."""
    lines = (line.split() for line in (TOP / "packaging/packages.txt").read_text().splitlines())
    return "apt-get install " + " ".join(words[1] for words in lines if words[:1] == ["build"])


def _environment():
    """Meson runs with another Python, for which pip's PYTHONPATH is meaningless."""
    for environment in (os.environ, {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}):
        with contextlib.suppress(OSError):
            if subprocess.run(["meson", "--version"], env=environment, capture_output=True).returncode == 0:
                return dict(environment)
    raise SystemExit(f"wattle is built by Meson and ninja, and meson can't be run. On Debian: {_needed()}")


@contextlib.contextmanager
def _build_folder(settings, default=None):
    folder = (settings or {}).get("build-dir", default)
    if folder is not None:
        yield TOP / folder
        return
    with tempfile.TemporaryDirectory(prefix="wattle-build-") as temporary:
        yield pathlib.Path(temporary)


def _build(folder, settings):
    """The package in a build folder."""
    environment = _environment()
    if not (folder / "build.ninja").exists():
        # The program finds its capture libraries from its own folder, by these two names.
        options = ["--buildtype=release", "-Dtorch-observer=disabled", "--bindir=bin", "--libdir=lib",
                   "-Dpython=enabled", f"-Dpython-program={sys.executable}",
                   *shlex.split((settings or {}).get("setup-args", ""))]
        _run(["meson", "setup", *options, str(folder), str(TOP)], environment)
    _run(["ninja", "-C", str(folder), "python/package.stamp"], environment)
    return folder / "python/wattle"


def _run(command, environment):
    status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed with status {status}. What is needed, on Debian: {_needed()}")


# ---- further contents of wheels ----

def _metadata():
    lines = ["Metadata-Version: 2.1", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}",
             f"Summary: {PROJECT['description']}", f"Keywords: {','.join(PROJECT['keywords'])}", "License: Apache-2.0",
             "License-File: LICENSE", f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Classifier: {classifier}" for classifier in PROJECT["classifiers"]]
    for extra, packages in PROJECT["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += (f"Requires-Dist: {package} ; extra == '{extra}'" for package in packages)
    readme = (TOP / PROJECT["readme"]).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _dist_info(settings):
    commands = dict(PROJECT["scripts"])
    wanted = (settings or {}).get("gpu-tracker-command", "no")
    if wanted not in ("yes", "no"):
        raise SystemExit(f"--config-settings gpu-tracker-command={wanted}: give yes or no")
    if wanted == "yes":
        commands["gpu-tracker"] = "wattle.compat.gpu_tracker.__main__:main"
    scripts = "".join(f"{name} = {function}\n" for name, function in commands.items())
    return {
        f"{STEM}.dist-info/METADATA": _metadata().encode(),
        f"{STEM}.dist-info/WHEEL": ("Wheel-Version: 1.0\nGenerator: wattle\nRoot-Is-Purelib: false\n"
                                    f"Tag: {TAG}\n").encode(),
        f"{STEM}.dist-info/entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
        f"{STEM}.dist-info/LICENSE": (TOP / "LICENSE").read_bytes(),
    }


def _write_wheel(folder, files):
    """files: {name: bytes, or the path of a file}. The name of the wheel."""
    records = []

    def add(wheel, name, data, mode):
        entry = zipfile.ZipInfo(name, EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        wheel.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        records.append(f"{name},sha256={digest},{len(data)}\n")

    with zipfile.ZipFile(pathlib.Path(folder) / f"{STEM}-{TAG}.whl", "w") as wheel:
        for name, content in sorted(files.items()):
            is_path = isinstance(content, pathlib.Path)
            executable = is_path and os.access(content, os.X_OK) and name.startswith("wattle/bin/")
            add(wheel, name, content.read_bytes() if is_path else content, 0o755 if executable else 0o644)
        record = f"{STEM}.dist-info/RECORD"
        add(wheel, record, "".join([*records, f"{record},,\n"]).encode(), 0o644)
    return f"{STEM}-{TAG}.whl"


# ---- hooks ----

def get_requires_for_build_wheel(config_settings=None):
    """From the package index only packages that the machine lacks."""
    packages = {"meson": "meson>=1.0", "ninja": "ninja"}
    return [package for program, package in packages.items() if shutil.which(program) is None]


get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    for name, content in _dist_info(config_settings).items():
        path = pathlib.Path(metadata_directory) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return f"{STEM}.dist-info"


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with _build_folder(config_settings) as folder:
        package = _build(folder, config_settings)
        files = {f"wattle/{path.relative_to(package)}": path.resolve() for path in package.rglob("*") if path.is_file()
                 and "__pycache__" not in path.parts and "_wattle.abi3.so.p" not in path.parts
                 and not path.match("torch/observer-*.so")}  # for one torch only, and a wheel is for all
        return _write_wheel(wheel_directory, {**files, **_dist_info(config_settings)})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A path to a build folder, whose package is links to the sources: edited files are imported; C needs a ninja."""
    with _build_folder(config_settings, "build/editable") as folder:
        package = _build(folder, config_settings)
        path = {"__editable__.wattle.pth": f"{package.parent}\n".encode()}
        return _write_wheel(wheel_directory, {**path, **_dist_info(config_settings)})


def build_sdist(sdist_directory, config_settings=None):
    """Files tracked by git; without git, all files outside build folders."""
    listed = subprocess.run(["git", "-C", str(TOP), "ls-files", "-z"], capture_output=True)
    names = list(filter(None, listed.stdout.decode().split("\0"))) if listed.returncode == 0 else _files()
    with tempfile.TemporaryDirectory() as temporary:
        information = pathlib.Path(temporary) / "PKG-INFO"
        information.write_text(_metadata())
        target = pathlib.Path(sdist_directory) / f"{STEM}.tar.gz"
        with tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for name in names:
                archive.add(TOP / name, f"{STEM}/{name}", recursive=False)
            archive.add(information, f"{STEM}/PKG-INFO")
    return f"{STEM}.tar.gz"


def _files():
    """All files here, except built ones."""
    paths = [path.relative_to(TOP) for path in sorted(TOP.rglob("*"))
             if path.is_file() or path.is_symlink()]
    return [str(path) for path in paths if path.parts[0] not in ("build", ".git") and "__pycache__" not in path.parts]
