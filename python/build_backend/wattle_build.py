"""Builds wheels of wattle: the hooks that pip calls (PEP 517, 660), with Python's standard library only.

Meson and ninja build the complete package in BUILD/python/wattle, with the extension and the program; a wheel is that
folder, packed. It is linked with nothing but glibc, where the build machine has the archives of the libraries (on Debian their
-dev packages have), and is then tagged manylinux, by the newest symbol of glibc in it (PEP 600).
Settings (pip install --config-settings NAME=VALUE .):

    build-dir   a build folder to use and keep; default a temporary one, for editable installs build/editable
    setup-args  further options of meson setup, as one text
    gpu-tracker-command=yes
                install a command gpu-tracker too, which is wattle.compat.gpu_tracker; without it gpu_tracker's own stays as it is
"""
import ast
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]


def read_toml(text):
    """{table: {key: value}} of the TOML that pyproject.toml has: strings and arrays of strings are Python's literals, too.
    Python has a reader since 3.11, and this file needs no packages. Other values are left out."""
    tables, table, pending = {}, {}, ""
    for line in text.splitlines():
        heading = re.fullmatch(r"\[([\w.-]+)\]", line.strip())
        if heading and not pending:
            table = tables.setdefault(heading[1], {})
        elif pending or (line.strip() and not line.startswith("#")):
            pending += f"{line}\n"
            name, _, value = pending.partition("=")
            with contextlib.suppress(SyntaxError, ValueError):  # an array that goes on, or another kind of value
                table[name.strip()] = ast.literal_eval(value.strip())
                pending = ""
            if pending and not value.lstrip().startswith("["):
                pending = ""
    return tables


TABLES = read_toml((TOP / "pyproject.toml").read_text())
PROJECT = TABLES["project"]
STEM = f"{PROJECT['name']}-{PROJECT['version']}"
ABI = "cp39-abi3"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store: one source gives one wheel

# Parts of glibc, which every manylinux machine has. jansson and cminpack go into the wheel. SQLite as a library never does,
# because Python's own module sqlite3 could get the wheel's copy of it; its archive is linked.
GLIBC = re.compile(r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
BUNDLED = re.compile(r"lib(cminpack|jansson)\.so\.\d+")
BUNDLE_FOLDER = "lib/wattle"  # the run path of a portable build
# Debian packages whose code is in a manylinux wheel; their licences go with it.
LICENSED = ("libcminpack-dev", "libjansson-dev", "libjs-dygraphs", "libprotobuf-c-dev", "libsqlite3-dev")


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


def _build(folder, settings, *options):
    """The package in a build folder."""
    environment = _environment()
    if not (folder / "build.ninja").exists():
        # The program finds its capture libraries from its own folder, by these two names.
        options = ["--buildtype=release", "-Dtorch-observer=disabled", "--bindir=bin", "--libdir=lib",
                   "-Dpython=enabled", f"-Dpython-program={sys.executable}", *options,
                   *shlex.split((settings or {}).get("setup-args", ""))]
        _run(["meson", "setup", *options, str(folder), str(TOP)], environment)
    _run(["ninja", "-C", str(folder), "python/package.stamp"], environment)
    return folder / "python/wattle"


def _run(command, environment):
    status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed with status {status}. What is needed, on Debian: {_needed()}")


# ---- libraries, and the platforms that have them ----

class _Elf:
    """The libraries and symbols that a program or library needs. OSError: there is no readelf."""

    def __init__(self, path):
        text = subprocess.run(["readelf", "-dVW", path], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
        self.needed = set(re.findall(r"Shared library: \[(.*?)\]", text))
        self.is_portable = BUNDLE_FOLDER in "".join(re.findall(r"Library r(?:un)?path: \[(.*?)\]", text))
        versions = re.findall(r"Name: GLIBC_2\.(\d+)", text)
        self.glibc = max(map(int, versions), default=0)
        self.is_known = not re.search(r"Name: GLIBC_(?!2\.)", text)


def _located(path):
    """{library: path} of the loader."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return {name: pathlib.Path(found) for name, found in re.findall(r"(\S+) => (/\S+)", listed)}


def _bundle(files):
    """The libraries that go into the wheel, {name: path}. A program that would not find them there gets none."""
    bundle = {}
    for name, path in files.items():
        if name.endswith(".so") or name.startswith("wattle/bin/"):
            elf = _Elf(path)
            wanted = filter(BUNDLED.fullmatch, elf.needed) if elf.is_portable else ()
            bundle.update((f"wattle/{BUNDLE_FOLDER}/{library}", _located(path)[library].resolve()) for library in wanted)
    return bundle


def _own_platform():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _platform(files):
    """The platform's tag: manylinux if glibc has everything that the wheel needs, else this machine's kind only."""
    plain = _own_platform()
    inside = {name.rpartition("/")[2] for name in files}
    elves = [_Elf(path) for name, path in files.items() if ".so" in name or name.startswith("wattle/bin/")]
    outside = {name for elf in elves for name in elf.needed if not GLIBC.fullmatch(name)}
    is_found = outside <= inside and all(elf.is_portable for elf in elves if elf.needed & outside)
    if not elves or not is_found or not all(elf.is_known for elf in elves):
        return plain
    return f"manylinux_2_{max(17, *(elf.glibc for elf in elves))}_{plain.partition('_')[2]}"


# ---- further contents of wheels ----

def _metadata():
    lines = ["Metadata-Version: 2.4", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}",
             f"Summary: {PROJECT['description']}", f"Keywords: {','.join(PROJECT['keywords'])}",
             f"License-Expression: {PROJECT['license']}",
             *(f"License-File: {name}" for name in PROJECT["license-files"]),
             f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Classifier: {classifier}" for classifier in PROJECT["classifiers"]]
    for extra, packages in TABLES["project.optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += (f"Requires-Dist: {package} ; extra == '{extra}'" for package in packages)
    readme = (TOP / PROJECT["readme"]).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _dist_info(settings):
    commands = dict(TABLES["project.scripts"])
    wanted = (settings or {}).get("gpu-tracker-command", "no")
    if wanted not in ("yes", "no"):
        raise SystemExit(f"--config-settings gpu-tracker-command={wanted}: give yes or no")
    if wanted == "yes":
        commands["gpu-tracker"] = "wattle.compat.gpu_tracker.__main__:main"
    scripts = "".join(f"{name} = {function}\n" for name, function in commands.items())
    return {
        f"{STEM}.dist-info/METADATA": _metadata().encode(),
        f"{STEM}.dist-info/entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
        **{f"{STEM}.dist-info/licenses/{name}": (TOP / name).read_bytes() for name in PROJECT["license-files"]},
    }


def _licenses():
    """Licences of the libraries inside."""
    found = {package: pathlib.Path("/usr/share/doc", package, "copyright") for package in LICENSED}
    return {f"{STEM}.dist-info/licenses/{package}.txt": path.resolve() for package, path in found.items() if path.exists()}


def _write_wheel(folder, files, platform):
    """files: {name: bytes, or the path of a file}. The name of the wheel."""
    records = []
    tag = f"{ABI}-{platform}"
    described = f"Wheel-Version: 1.0\nGenerator: wattle\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files = {**files, f"{STEM}.dist-info/WHEEL": described}

    def add(wheel, name, data, mode):
        entry = zipfile.ZipInfo(name, EARLIEST)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        wheel.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        records.append(f"{name},sha256={digest},{len(data)}\n")

    with zipfile.ZipFile(pathlib.Path(folder) / f"{STEM}-{tag}.whl", "w") as wheel:
        for name, content in sorted(files.items()):
            is_path = isinstance(content, pathlib.Path)
            executable = is_path and os.access(content, os.X_OK) and name.startswith("wattle/bin/")
            add(wheel, name, content.read_bytes() if is_path else content, 0o755 if executable else 0o644)
        record = f"{STEM}.dist-info/RECORD"
        add(wheel, record, "".join([*records, f"{record},,\n"]).encode(), 0o644)
    return f"{STEM}-{tag}.whl"


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
        package = _build(folder, config_settings, "-Dportable=true")
        files = {f"wattle/{path.relative_to(package)}": path.resolve() for path in package.rglob("*") if path.is_file()
                 and "__pycache__" not in path.parts and "_wattle.abi3.so.p" not in path.parts
                 and not path.match("torch/observer-*.so")}  # for one torch only, and a wheel is for all
        platform = _own_platform()
        with contextlib.suppress(OSError):
            files.update(_bundle(files))
            platform = _platform(files)
        licenses = _licenses() if platform.startswith("manylinux") else {}
        return _write_wheel(wheel_directory, {**files, **licenses, **_dist_info(config_settings)}, platform)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A path to a build folder, whose package is links to the sources: edited files are imported; C needs a ninja."""
    with _build_folder(config_settings, "build/editable") as folder:
        package = _build(folder, config_settings)
        path = {"__editable__.wattle.pth": f"{package.parent}\n".encode()}
        return _write_wheel(wheel_directory, {**path, **_dist_info(config_settings)}, _own_platform())


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
