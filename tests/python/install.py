"""pip install of the sources: offline, with and without isolation, and the installed files."""
import json
import subprocess
import sys
import zipfile

from harness import BUILD, TESTS, main, test

TOP = TESTS.parent
TRACKED = """
import wattle
with wattle.Tracker(sleep_time=0.01) as tracker:
    with wattle.span("work"):
        sum(range(10 ** 6))
assert tracker.report["blocks"][0]["num_calls"] == 1
print(wattle.__file__, wattle.__version__)
"""
# The folder that was built for the tests is packed: the packaging is tested, not the compiler.
SETTINGS = ["--no-index", "--disable-pip-version-check", "--quiet", "--config-settings", f"build-dir={BUILD}"]


def run(workdir, *words, status=0):
    """A program outside of the sources, without the build folder."""
    workdir.environment = {k: v for k, v in workdir.environment.items()
                           if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    done = workdir.finish(workdir.start(*words[1:], program=words[0]))
    assert done.returncode == status, done
    return done.stdout


def venv(workdir):
    """Without a pip of its own, which takes 4 s of CPU time to install: the system's installs into it, as `python -m pip`."""
    run(workdir, sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", "V")
    return workdir.folder / "V/bin"


@test
def installed(workdir):
    """in a venv: the package, its types, the program and its capture libraries; `wattle` is in the venv's bin, and a
    command gpu-tracker that is there stays as it is"""
    programs = venv(workdir)
    (programs / "gpu-tracker").write_text("another")
    run(workdir, programs / "python", "-m", "pip", "install", *SETTINGS, TOP)
    assert (programs / "gpu-tracker").read_text() == "another"
    path, version = run(workdir, programs / "python", "-c", TRACKED).split()
    assert path.startswith(str(workdir.folder)) and version == "0.1.0", path
    assert run(workdir, programs / "wattle", "--version") == run(workdir, programs / "python", "-m", "wattle",
                                                                 "--version")
    run(workdir, programs / "wattle", "run", "-q", "-o", "run.sqlite", "--itt", "--", programs / "python", "-c",
        "import wattle\nwith wattle.span('inside'): pass")
    assert workdir.rows("SELECT name FROM span") == [("inside",)]
    run(workdir, programs / "wattle", "run", "-q", "--overwrite", "-o", "run.sqlite", "--", "sh", "-c", "kill -PIPE $$",
        status=128 + 13)
    run(workdir, programs / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "wattle")
    assert not (programs / "wattle").exists()


@test
def wheel(workdir):
    """no isolation: one wheel for Python 3.9 and later, with no path of the build or the machine in it"""
    run(workdir, sys.executable, "-m", "pip", "wheel", "--no-build-isolation", *SETTINGS, "-w", "wheels", TOP)
    path, = (workdir.folder / "wheels").iterdir()
    assert "-cp39-abi3-linux_" in path.name, path  # this build needs libraries of this machine
    with zipfile.ZipFile(path) as packed:
        names = set(packed.namelist())
        assert packed.testzip() is None
        record = packed.read("wattle-0.1.0.dist-info/RECORD").decode()
    assert {"wattle/__init__.py", "wattle/py.typed", "wattle/_wattle.pyi", "wattle/_wattle.abi3.so",
            "wattle/bin/wattle", "wattle/lib/wattle/libwattle-nvtx.so",
            "wattle-0.1.0.dist-info/licenses/LICENSE"} <= names, names
    assert not [name for name in names if name.endswith((".pyc", ".o")) or name.split("/")[0] not in (
        "wattle", "wattle-0.1.0.dist-info")], names
    assert {line.split(",")[0] for line in record.splitlines()} == names


@test
def editable(workdir):
    """editable install: imports the sources"""
    programs = venv(workdir)
    run(workdir, programs / "python", "-m", "pip", "install", *SETTINGS, "-e", TOP)
    out = run(workdir, programs / "python", "-c", "import os, wattle; print(os.path.realpath(wattle.__file__))")
    assert out.strip() == str(TOP / "python/wattle/__init__.py"), out


@test
def gpu_tracker_command(workdir):
    """with the setting gpu-tracker-command=yes there is a command gpu-tracker, which is the compatibility layer's"""
    programs = venv(workdir)
    run(workdir, programs / "python", "-m", "pip", "install", *SETTINGS, "--config-settings", "gpu-tracker-command=yes", TOP)
    assert "--execute" in run(workdir, programs / "gpu-tracker", "-h")


@test
def one_version(workdir):
    """program, package and wheel: one version"""
    project = json.loads(subprocess.run(["meson", "introspect", "--projectinfo", str(BUILD)], check=True,
                                        capture_output=True).stdout)
    import tomllib
    assert tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"] == project["version"]


if __name__ == "__main__":
    main()
