"""The type hints of the package, as checkers read them: the package itself, and a user's program."""
import json
import os
import pathlib
import shutil
import subprocess

from harness import BUILD, TESTS, Skip, main, test

TOP = TESTS.parent
# Types are declared where a checker must infer them; lines that end in WRONG must be refused.
PROGRAM = """
import asyncio
from typing import Any, Iterator, Optional

import wattle
import wattle.torch


@wattle.span("train")
def train(batch: list[int], scale: float = 1.0) -> float:
    wattle.metric("images", len(batch))
    return sum(batch) * scale


@wattle.span("read")
async def read(name: str) -> bytes:
    async with wattle.span("wait"):
        return name.encode()


@wattle.span("batches")
def batches() -> Iterator[list[int]]:
    yield [1, 2]


class Model:
    @wattle.Tracker(sleep_time=0.1, carbon_region="DE")
    def fit(self, epochs: int) -> str:
        return "x" * epochs

    @wattle.span("static")
    def method(self) -> int:
        return 1


def windows() -> Optional[float]:
    with wattle.Tracker(output="run.sqlite", overwrite=True, label="a", arguments=["--pue", "1.2"]) as tracker:
        tracker.begin_window("epoch")
        window: wattle.Window = tracker.end_window("epoch")
        seconds: float = window.seconds + window.total_j + window.error_j + window.target_j
        parts: dict[str, tuple[float, float]] = window.domains
    total_j: Optional[float] = tracker.energy.total_j
    carbon_g: Optional[float] = tracker.energy.carbon_g
    print(tracker, seconds, parts, carbon_g)
    return total_j


@wattle.measure()
def measured(count: int) -> str:
    return "x" * count


def meter() -> float:
    with wattle.measure(gpus="0") as m:
        result: float = train([1], scale=2)
    return m.energy_j + m.error_j + m.seconds + m.power_w + result


def stored(model: Any) -> None:
    run: wattle.Run = wattle.open("run.sqlite")
    mean: Any = run.blocks.find("train")["mean_j"]
    region: wattle.carbon.Region = wattle.carbon.region("DE")
    factor: float = region.g_per_kwh
    with wattle.torch.layers(model) as measured:
        pass
    print(mean, factor, measured)


text: str = Model().fit(3)
read_bytes: bytes = asyncio.run(read("x"))
number: int = Model().method()
for batch in batches():
    train(batch)
train("text")  # WRONG
train([1], scale="2")  # WRONG
Model().fit("3")  # WRONG
measured("3")  # WRONG
wattle.Tracker(sleep_time="1")  # WRONG
wattle.carbon.region(3)  # WRONG
number = Model().fit(3)  # WRONG
"""


def environment():
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")} | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def mypy(*words):
    """Its messages: lines."""
    if not pathlib.Path("/usr/bin/mypy").exists():
        raise Skip("no mypy")
    done = subprocess.run(["/usr/bin/mypy", "--config-file", "pyproject.toml", "--cache-dir", BUILD / "mypy-cache", *words],
                          cwd=TOP, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1) and not done.stderr, done
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def pyright(workdir, *paths, mode):
    """Its messages, without those about packages that are not installed."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "wattle/wheel"
    program = shutil.which("pyright") or next(map(str, cache.glob("*/bin/pyright")), None)
    if program is None or subprocess.run([program, "--version"], env=environment(), capture_output=True).returncode != 0:
        raise Skip("no pyright in PATH; make wheel installs one")
    settings = {"include": [os.path.relpath(path, workdir.folder) for path in paths], "typeCheckingMode": mode, "pythonVersion": "3.9",
                "extraPaths": [os.path.relpath(TOP / "python", workdir.folder)], "reportMissingImports": False,
                "reportMissingModuleSource": False, "useLibraryCodeForTypes": False}
    (workdir.folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run([program, "-p", workdir.folder / "pyrightconfig.json", "--outputjson"], env=environment(), capture_output=True,
                          text=True, timeout=300)
    return [f"{message['file']}:{message['range']['start']['line'] + 1}: {message['message']}"
            for message in json.loads(done.stdout)["generalDiagnostics"] if message["severity"] == "error"]


def wrong_lines():
    return [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# WRONG")]


@test
def strict(workdir):
    """mypy --strict, for Python 3.9: no message about the package"""
    messages = mypy("-p", "wattle")
    assert not messages, "\n".join(messages)


@test
def users_program(workdir):
    """mypy --strict: decorators keep the types of functions, windows, tracker, meter and layers have theirs; wrong calls are refused"""
    path = workdir.folder / "program.py"
    path.write_text(PROGRAM)
    messages = [message for message in mypy(path) if "program.py:" in message]
    assert [int(message.split(":")[1]) for message in messages] == wrong_lines(), "\n".join(messages)


@test
def in_pyright(workdir):
    """pyright, standard mode: no message about the package"""
    if "WATTLE_WHEEL" not in os.environ:
        raise Skip("make wheel runs this; it takes long")
    messages = pyright(workdir, TOP / "python/wattle", mode="standard")
    assert not messages, "\n".join(messages)


@test
def users_program_in_pyright(workdir):
    """pyright, strict mode: the same of a user's program as of mypy"""
    path = workdir.folder / "program.py"
    path.write_text(PROGRAM)
    messages = pyright(workdir, path, mode="strict")
    assert [int(message.split(":")[1]) for message in messages] == wrong_lines(), "\n".join(messages)


if __name__ == "__main__":
    main()
