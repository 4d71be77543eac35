"""One wheel for Python 3.9 to 3.13. WATTLE_WHEEL names the one that `make wheel` made, which needs no library of the build machine;
without it a wheel of the tests' build folder is tested, which has the same files but needs them."""
import functools
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile

from harness import BUILD, TESTS, WATTLE, Skip, command_of, main, test, wait_until

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
TOP = TESTS.parent
WHEEL = os.environ.get("WATTLE_WHEEL")
# What a wheel of glibc alone must not find.
HIDDEN = ("libsqlite3.so.0", "libjansson.so.4", "libprotobuf-c.so.1", "libcminpack.so.1")
COMPILERS = ("cc", "gcc", "clang", "ld", "meson", "ninja")
PROGRAM = """
import asyncio, os, sys
import wattle

@wattle.span("function")
def work():
    return sum(range(100_000))

@wattle.span("coroutine")
async def wait():
    async with wattle.span("inside"):
        await asyncio.sleep(0.01)

@wattle.Tracker(sleep_time=0.05, disable_logs=True)
def recorded():
    return work()

with wattle.Tracker(sleep_time=0.05, disable_logs=True, output="run.sqlite", overwrite=True,
                    carbon_region="DE") as tracker:
    tracker.begin_window("window")
    work()
    asyncio.run(wait())
    window = tracker.end_window("window")
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
with wattle.measure() as meter:
    recorded()

assert wattle.__file__.startswith(sys.prefix), wattle.__file__
assert window.seconds > 0 and meter.seconds > 0 and recorded.tracker.report["blocks"][0]["name"] == "function"
calls = {block["name"]: block["num_calls"] for block in tracker.report["blocks"]}
assert calls == {"function": 2, "coroutine": 1, "inside": 1, "window": 1}, calls
samples = wattle._wattle.Run("run.sqlite").samples()[0].buffer
assert len(memoryview(samples)) == len(samples) > 1
assert tracker.energy.carbon_g is None or tracker.energy.carbon_g > 0, tracker.energy
assert tracker.report["energy"]["carbon_region"] == wattle.carbon.region("deu").code == "DE"
try:
    wattle.open("nowhere.sqlite")
except FileNotFoundError as why:
    assert why.errno == 2, why
try:
    wattle.carbon.region("Germny")
except ValueError as why:
    assert "did you mean 'Germany'?" in str(why), why
try:
    import wattle.torch
except ImportError as why:
    assert "pip install wattle[torch]" in str(why), why
try:
    type(samples)()
except TypeError as why:
    print(sys.version_info[:2], why)
"""


@functools.cache
def pip_of(python):
    """The folder of an interpreter's pip; "": it has none."""
    script = "import os, pip; print(os.path.dirname(pip.__file__))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True).stdout.strip()


def interpreters():
    """{version: path} of those with pip: in PATH, else in the folder of pyenv."""
    home, found = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir), {}
    for version in VERSIONS:
        name = f"python{version}"
        for path in filter(None, (shutil.which(name), *map(str, home.glob(f".pyenv/versions/{version}.*/bin/{name}")))):
            if pip_of(path):
                found.setdefault(version, path)
    return found


def run(workdir, *words, status=0, **options):
    """A program outside of the sources and without the build folder."""
    workdir.environment = {k: v for k, v in workdir.environment.items()
                           if not k.startswith(("PYTHON", "WATTLE_DISABLE"))}
    done = workdir.finish(workdir.start(*words[1:], program=words[0], **options))
    assert done.returncode == status, done
    return done.stdout


WHEELS = tempfile.TemporaryDirectory(prefix="wattle-wheels-")


@functools.cache
def made_wheel():
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "--quiet",
                    "--disable-pip-version-check", "--config-settings", f"build-dir={BUILD}", "-w", WHEELS.name, TOP],
                   env={k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WATTLE_DISABLE"))}, check=True)
    path, = pathlib.Path(WHEELS.name).iterdir()
    return path


def wheel():
    """The wheel under test."""
    return pathlib.Path(WHEEL) if WHEEL else made_wheel()


def install(workdir, python, path, name="V"):
    """A venv of the interpreter with the wheel: the venv's bin."""
    run(workdir, python, "-m", "venv", "--without-pip", name)
    programs = workdir.folder / name / "bin"
    # As `python -m pip --python` does it, which starts pip twice. The program compiles the modules that it imports.
    run(workdir, programs / "python", pip_of(python), "install", "--no-index", "--quiet", "--no-compile",
        "--disable-pip-version-check", path)
    return programs


@test
def every_python(workdir):
    """the same wheel in a venv of each Python from 3.9 on: spans, tracker, windows, decorators, meter, fork, carbon, both commands"""
    pythons = interpreters()
    if not pythons:
        raise Skip(f"no Python of {VERSIONS[0]} to {VERSIONS[-1]} with pip in PATH or ~/.pyenv/versions")
    path = wheel()
    (workdir.folder / "program.py").write_text(PROGRAM)
    for version, python in pythons.items():
        programs = install(workdir, python, path, f"V{version}")
        shown = run(workdir, programs / "python", "-W", "error", "program.py")
        assert shown == f"({version.replace('.', ', ')}) cannot create 'wattle._wattle.Buffer' instances\n", shown
        for command in ([programs / "wattle"], [programs / "python", "-m", "wattle"]):
            run(workdir, *command, "run", "-q", "--no-file", "true")
    print(f"# Python {', '.join(pythons)}; not found: {', '.join(sorted(set(VERSIONS) - set(pythons))) or 'none'}")


COMMANDS = ([], ["--version"], ["runn"], ["sensors", "--json"], ["report", "nowhere.sqlite"], ["cap", "list"], ["schema"],
            ["run", "-q", "--no-file", "--", "sh", "-c", "exit 7"], ["run", "-q", "--no-file", "--", "nowhere"],
            ["run", "-q", "--no-file", "--", "sh", "-c", "kill -9 $$"], ["--manual", "run"], ["help", "bench"])


@test
def module_as_command(workdir):
    """python -m wattle: standard output and status of the program, for each kind of command"""
    for words in COMMANDS:
        of_module = workdir.finish(workdir.start("-m", "wattle", *words, program=sys.executable))
        of_program = workdir.wattle(*words)
        assert of_module.returncode == of_program.returncode, (words, of_module, of_program)
        if words[:1] != ["sensors"]:  # live figures
            assert of_module.stdout == of_program.stdout, (words, of_module, of_program)


@test
def no_python_in_between(workdir):
    """python -m wattle run: the process becomes the program, and its signals reach the command"""
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = workdir.start("-m", "wattle", "run", "-q", "--no-file", "--", "sleep", "100", program=sys.executable)
        wait_until(lambda: "sleep" in command_of(process.pid) and
                   os.path.realpath(f"/proc/{process.pid}/exe") == os.path.realpath(WATTLE), "the program")
        wait_until(lambda: subprocess.run(["pgrep", "-P", str(process.pid), "-x", "sleep"],
                                          capture_output=True).returncode == 0, "the command")
        process.send_signal(number)
        done = workdir.finish(process)
        assert done.returncode == status, done


@test
def metadata(workdir):
    """the backend's reader of pyproject.toml agrees with Python's; extras, versions of Python and licences are in the wheel"""
    import tomllib
    sys.path.insert(0, str(TOP / "python/build_backend"))
    import wattle_build
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    for key, value in project.items():
        own = wattle_build.TABLES[f"project.{key}"] if isinstance(value, dict) else wattle_build.PROJECT[key]
        assert own == value, key
    with zipfile.ZipFile(wheel()) as packed:
        text = packed.read("wattle-0.1.0.dist-info/METADATA").decode()
        names = packed.namelist()
    heads = text.partition("\n\n")[0].splitlines()
    for extra in ("arrays", "plots", "torch", "lightning", "transformers", "keras", "jax", "all"):
        assert f"Provides-Extra: {extra}" in heads, heads
    assert {"Requires-Python: >=3.9", "License-Expression: Apache-2.0", "License-File: LICENSE",
            "Requires-Dist: torch ; extra == 'torch'"} <= set(heads), heads
    assert "wattle-0.1.0.dist-info/licenses/LICENSE" in names, names


@test
def glibc_only(workdir):
    """`make wheel`: a manylinux wheel with the licences of the libraries inside, which runs where neither these libraries nor a
    compiler are"""
    if not WHEEL:
        raise Skip("make wheel runs this with its wheel")
    if shutil.which("bwrap") is None:
        raise Skip("no bwrap, which hides the libraries")
    path = pathlib.Path(WHEEL)
    assert "-cp39-abi3-manylinux_2_" in path.name, path
    with zipfile.ZipFile(path) as packed:
        names = set(packed.namelist())
    assert {f"wattle-0.1.0.dist-info/licenses/{name}-dev.txt" for name in ("libsqlite3", "libcminpack", "libjansson")} <= names
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    libraries = {line.split()[-1] for line in cache.splitlines() if line.split()[:1] and line.split()[0] in HIDDEN}
    hidden = {*map(os.path.realpath, libraries), *(os.path.realpath(program) for program in map(shutil.which, COMPILERS) if program)}
    sandbox = ["bwrap", "--dev-bind", "/", "/"]
    for name in hidden:
        sandbox += ["--ro-bind", "/dev/null", name]
    (workdir.folder / "program.py").write_text(PROGRAM)
    programs = install(workdir, sys.executable, path)
    run(workdir, *sandbox, programs / "python", "program.py")
    run(workdir, *sandbox, programs / "wattle", "run", "-q", "--nvtx", "--no-file", "true")
    done = workdir.finish(workdir.start(*sandbox[1:], WATTLE, "--version", program=sandbox[0]))
    assert done.returncode == 127, f"the libraries are not hidden from the tests' own program: {done}"
    run(workdir, *sandbox, programs / "python", "-c",
        "import wattle\nassert len(wattle._wattle.cap_list()) == 2")


if __name__ == "__main__":
    main()
