"""The package in its environments: notebooks, pytest with workers, unusual options of Python, unwritable folders."""
import json
import os
import pathlib
import re
import sys

import wattle
from harness import BUILD, TESTS, Skip, main, test
from package import python

PROGRAM = """
import wattle
with wattle.Tracker(sleep_time=0.05, disable_logs=True, output="run.sqlite", overwrite=True) as tracker:
    with wattle.span("bl\\u00f6ck \\u5c64"):
        sum(range(100000))
with wattle.measure() as meter:
    pass
run = wattle.open("run.sqlite")
assert run.report["blocks"][0]["name"] == "bl\\u00f6ck \\u5c64"
assert meter.seconds > 0
print(tracker.report["blocks"][0]["num_calls"])
"""


def have(module):
    try:
        __import__(module)
    except ImportError as why:
        raise Skip(f"{module} is not installed") from why


@test
def interpreter_options(workdir):
    """-O, -OO, -X dev, -W error, -bb, -u: no message, and the same result"""
    for options in (["-O"], ["-OO"], ["-X", "dev"], ["-W", "error"], ["-bb"], ["-u"]):
        lines, done = python(workdir, PROGRAM, interpreter=(sys.executable, *options))
        assert lines == ["1"] and not done.stderr, (options, done)


@test
def isolated(workdir):
    """-I, which ignores PYTHONPATH: works with sys.path set by the program, and finds its recorder"""
    folder = str(pathlib.Path(wattle.__file__).parent.parent)
    lines, done = python(workdir, f"import sys; sys.path.insert(0, {folder!r})\n" + PROGRAM,
                         interpreter=(sys.executable, "-I", "-W", "error"))
    assert lines == ["1"] and not done.stderr, done


@test
def import_costs_little(workdir):
    """import wattle: needs only the standard library, and little of it"""
    lines, _ = python(workdir, """
import sys
before = set(sys.modules)
import wattle
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new & {"numpy", "pandas", "torch", "matplotlib", "multiprocessing", "asyncio", "sqlite3", "subprocess"}))
""")
    assert lines == ["[]"], lines


@test
def all_modules_imported_at_start(workdir):
    """modules used later: imported at once, as a fork during another thread's import would leave the child half a
    module"""
    lines, _ = python(workdir, """
import sys, wattle
before = set(sys.modules)
@wattle.span("decorated")
def work():
    pass
with wattle.Tracker(sleep_time=0.05, output="run.sqlite") as tracker:
    work()
with wattle.open("run.sqlite") as run:
    run.report, run.blocks[0], len(run.samples), str(tracker)
with wattle.measure() as m:
    pass
print(sorted(set(sys.modules) - before))
""")
    assert lines == ["[]"], lines


@test
def warnings_of_resources(workdir):
    """-X dev and -W error: no resource warnings for trackers, meters and runs left to the collector"""
    _, done = python(workdir, """
import gc, wattle
def left():
    tracker = wattle.Tracker(sleep_time=0.05, disable_logs=True)
    tracker.start()
    tracker.stop()
    run = wattle.open(tracker.run_file)
    meter = wattle.Meter()
    meter.start()
left()
gc.collect()
""", interpreter=(sys.executable, "-X", "dev", "-W", "error"))
    assert not done.stderr, done


@test
def disabled(workdir):
    """WATTLE_DISABLE=1: programs run unchanged, nothing is written, figures are None or nan"""
    lines, done = python(workdir, """
import math, os, wattle
with wattle.Tracker(sleep_time=0.05, output="run.sqlite") as tracker:
    with wattle.span("x"):
        wattle.metric("n", 1)
with wattle.measure() as meter:
    pass
print(tracker.report, tracker.energy.total_j, tracker.energy.target_j, meter.energy_j, wattle.is_recording())
print(sorted(os.listdir(".")))
str(tracker), repr(tracker), tracker.to_json()
""", env={"WATTLE_DISABLE": "1"})
    assert lines[0] in ("None None None nan False", "None None None None False"), lines
    assert lines[1] == "['program.py']" and not done.stderr, done


@test
def no_program(workdir):
    """program wattle missing: spans and meters work, a tracker reports it in one line"""
    _, done = python(workdir, """
import pathlib, sys, wattle, wattle._wattle
tracker = wattle._wattle.Tracker(program="/nowhere/wattle")
try:
    tracker.start()
except FileNotFoundError as why:
    print(str(why).count("\\n"), "wattle" in str(why))
else:
    sys.exit("started")
with wattle.span("x"), wattle.measure():
    pass
""")
    assert done.stdout == "0 True\n", done


@test
def read_only_folder(workdir):
    """unwritable working directory (as nobody): a tracker without files works"""
    if os.geteuid() != 0:
        raise Skip("only root can become nobody")
    workdir.folder.chmod(0o755)
    (workdir.folder / "tmp").mkdir()
    (workdir.folder / "tmp").chmod(0o777)
    python(workdir, """
import os, sys, tempfile
import wattle
os.setgid(65534)
os.setuid(65534)
assert not os.access(".", os.W_OK)
with wattle.Tracker(sleep_time=0.05, disable_logs=True) as tracker:
    with wattle.span("x"):
        pass
assert tracker.report["blocks"][0]["num_calls"] == 1
try:
    with wattle.Tracker(output="here.sqlite", disable_logs=True):
        pass
except PermissionError as why:
    assert "here.sqlite" in str(why), why
else:
    sys.exit("it was written")
""", env={"TMPDIR": str(workdir.folder / "tmp")})


@test
def closed_streams(workdir):
    """stdin, stdout and stderr closed: the recorder's descriptors do not become the program's streams"""
    python(workdir, """
import os, sys
import wattle
with wattle.Tracker(sleep_time=0.05, output="run.sqlite") as tracker:
    with wattle.span("x"):
        with open("file", "w") as file:
            file.write("mine")
assert open("file").read() == "mine"
assert tracker.report["blocks"][0]["num_calls"] == 1
with open("result", "w") as file:
    file.write("fine")
""", interpreter=("/bin/sh", "-c", f'exec {sys.executable} "$@" <&- >&- 2>&-', "sh"))
    assert (workdir.folder / "result").read_text() == "fine"


@test
def locales(workdir):
    """locale C without UTF-8 mode, and a Latin-1 file name: blocks and files of any name"""
    for environment in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"},
                        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}):
        lines, done = python(workdir, PROGRAM, env=environment)
        assert lines == ["1"] and not done.stderr, done
    lines, _ = python(workdir, """
import os, wattle
for name in (b"\\xfcber.sqlite", "\\u5c64 \\U0001f525.sqlite".encode()):
    with wattle.Tracker(sleep_time=0.05, disable_logs=True, output=os.fsdecode(name)) as tracker:
        pass
    assert os.path.exists(name), os.listdir(b".")
    is_same = ascii(os.fsdecode(name)) == ascii(tracker.run_file.rpartition("/")[2])
    print(is_same, wattle.open(tracker.run_file).report["run"]["complete"])
""")
    assert lines == ["True True"] * 2, lines


@test
def little_is_left(workdir):
    """few descriptors, little memory: a clear OSError or a working tracker, never a crash"""
    for limit in ("NOFILE, (4, 4)", "NOFILE, (12, 12)", "FSIZE, (0, 0)"):
        lines, _ = python(workdir, f"""
import resource, signal, sys, wattle
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import json, threading, traceback
resource.setrlimit(resource.RLIMIT_{limit})
try:
    with wattle.Tracker(sleep_time=0.05, disable_logs=True) as tracker:
        with wattle.span("x"):
            pass
    print("fine")
except OSError as why:
    print("OSError", len(str(why)) > 10)
""")
        assert lines in (["fine"], ["OSError True"]), (limit, lines)


REFUSALS = (
    ("wattle.Meter(gpus='9')", "ValueError gpus 9: no NVIDIA GPU can be used"),
    ("wattle.Meter(gpu_brand='x')", "ValueError invalid gpu_brand 'x': use 'nvidia', 'amd' or 'intel'"),
    ("wattle.Meter().stop()", "RuntimeError the meter has not been started"),
    ("wattle.Meter().energy_j", "RuntimeError the meter has not been read"),
    ("wattle.span(3)", "TypeError the name of a span must be a str"),
    ("wattle.open('nowhere')", "FileNotFoundError [Errno 2] nowhere: No such file or directory"),
    ("wattle.open('program.py')", "ValueError program.py is not a wattle run file"),
    ("wattle.compare({'a': 'x'})", "ValueError at least two are needed"),
    ("wattle.Tracker(sleep_time=0)", "ValueError Sleep time of 0 is invalid. Must be at least 0.001"),
    ("wattle.Tracker(output='/nowhere/x.sqlite').start()", "FileNotFoundError [Errno 2] /nowhere/x.sqlite: the folder"),
    ("wattle.Tracker(arguments=['--none']).start()", "ValueError unknown option --none"),
    ("wattle.nothing", "AttributeError module 'wattle' has no attribute 'nothing'"))


@test
def refusals(workdir):
    """invalid arguments, order and files: one line with the error and the correct form"""
    lines, done = python(workdir, f"""
import wattle
for call in {[call for call, _ in REFUSALS]}:
    try:
        eval(call)
    except Exception as why:
        print(type(why).__name__, why)
""", env={"WATTLE_NVML": "/nowhere"})
    assert len(lines) == len(REFUSALS), done
    for line, (call, said) in zip(lines, REFUSALS):
        assert line.startswith(said), (call, line)


@test
def the_page_for_users(workdir):
    """docs/python.md: its Python blocks, run in order, unchanged"""
    have("pandas")
    page = (TESTS.parent / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall("^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    (workdir.folder / "cards").write_text("gpu\nlimits_mw 100000 400000 400000 400000\n", encoding="ascii")
    fake = {"WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
            "WATTLE_FAKE_NVML": str(workdir.folder / "cards"), "WATTLE_STATE": str(workdir.folder / "state")}
    _, done = python(workdir, "".join(blocks) + """
assert wattle.cap.list()[0].device == "gpu-0"
assert result["energy"]["total_j"].keys() == {"old", "new"}
assert run.blocks.find("train")["num_calls"] == 100
assert m.seconds > 0 and tracker.energy.total_j > 0
""", env=fake)
    assert "Traceback" not in done.stderr, done


@test
def the_page_on_carbon(workdir):
    """docs/carbon.md: its Python runs as it stands"""
    page = (TESTS.parent / "docs/carbon.md").read_text(encoding="utf-8")
    block, = re.findall("^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    python(workdir, block + """
assert tracker.energy.carbon_g > 0 and wattle.carbon.grams(None, "FR") is None
assert abs(wattle.carbon.grams(3.6e6, "FR", pue=1.2) - 1.2 * wattle.carbon.region("France").g_per_kwh) < 1e-9
assert len(wattle.carbon.regions()) > 200
""")


@test
def other_programs(workdir):
    """example that measures programs other than Python: a line for each program, with its energy"""
    example = TESTS.parent / "examples/other_programs.py"
    (workdir.folder / "file").write_bytes(b"joules and seconds " * 300_000)
    done = workdir.finish(workdir.start(example, "file", program=sys.executable))
    assert done.returncode == 0, done
    lines = {line[:14].strip(): line.split() for line in done.stdout.splitlines()}
    assert "gzip -1" in lines and float(lines["gzip -9"][-3]) > 0, done.stdout


CELLS = ["""import wattle
tracker = wattle.Tracker(sleep_time=0.05, disable_logs=True, output="run.sqlite")
tracker.start()""", """with wattle.span("<cell> & co"):
    sum(range(10 ** 6))
tracker.stop()""", "run = wattle.open('run.sqlite')\nrun", "run.blocks", "run.report"]


@test
def notebook(workdir):
    """notebook, run by a real kernel: a run and its blocks are shown as HTML, names escaped"""
    have("nbconvert")
    have("ipykernel")
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "id": f"cell{number}", "source": source} for number, source in enumerate(CELLS)]
    (workdir.folder / "book.ipynb").write_text(json.dumps(
        {"cells": cells, "nbformat": 4, "nbformat_minor": 5,
         "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}}}))
    done = workdir.finish(workdir.start("-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb",
                                  "book.ipynb", program=sys.executable, env={"HOME": str(workdir.folder)}))
    assert done.returncode == 0, done.stderr
    book = json.loads((workdir.folder / "done.ipynb").read_text())
    shown = ["".join(output["data"].get("text/html", "")) for cell in book["cells"] for output in cell["outputs"]
             if "data" in output]
    assert len(shown) == 3 and all(html.lstrip().startswith("<") for html in shown[:2]), shown
    assert "&lt;cell&gt; &amp; co" in shown[1] and "<cell>" not in "".join(shown), shown[1]


@test
def pytest_workers(workdir):
    """pytest-xdist: tests that track, span and meter in two workers at once, under one enclosing tracker"""
    have("xdist")
    (workdir.folder / "test_things.py").write_text("""
import pytest, wattle

@pytest.mark.parametrize("number", range(8))
def test_tracked(number, tmp_path):
    with wattle.Tracker(sleep_time=0.05, disable_logs=True, output=tmp_path / "run.sqlite") as tracker:
        for _ in range(number + 1):
            with wattle.span("step"):
                sum(range(10000))
    assert wattle.open(tmp_path / "run.sqlite").report["blocks"][0]["num_calls"] == number + 1

@pytest.mark.parametrize("number", range(8))
def test_spanned(number):
    with wattle.span("of the run"), wattle.measure() as meter:
        pass
    assert meter.seconds > 0
""")
    lines, _ = python(workdir, """
import subprocess, sys, wattle
with wattle.Tracker(sleep_time=0.05, disable_logs=True, output="run.sqlite"):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"],
                          capture_output=True, text=True)
print(done.stdout)
sys.exit(done.returncode)
""")
    assert "16 passed" in "".join(lines), lines
    assert workdir.rows("SELECT count(*), count(DISTINCT pid) FROM span WHERE name = 'of the run'")[0][0] == 8


if __name__ == "__main__":
    main()
