"""wattle.cap on fake cards that obey: what is set is in force, and goes back whatever becomes of the program."""
import json
import os
import re
import signal
import sys
import time

from gpu_card import Card
from harness import BUILD, TESTS, main, near, test, wait_until
from package import python

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
IMPORTS = "import os, signal, sys, threading, time, warnings\nimport wattle\n"
# A step of the program's is as fast as the card under its limit: the last line of the fake's log.
STEPS = IMPORTS + """
from gpu_card import Card
card = Card(**CARD)
def limit_w(gpu=0):
    try:
        lines = [line.split() for line in open("cards.limits")]
    except FileNotFoundError:
        lines = []
    return next((int(line[2]) / 1000 for line in reversed(lines) if line[1] == str(gpu)), card.default_w)
due = time.monotonic()
def step():
    global due
    due = max(due, time.monotonic() - 0.5) + card.step(limit_w(), 0.01)[1]  # what came late is made up for
    time.sleep(max(due - time.monotonic(), 0))
"""


class Machine:
    """Cards for the programs of one test."""

    def __init__(self, room, *cards):
        self.room = room
        self.cards = cards or (Card(),)
        (room.folder / "cards").write_text("".join(card.text() for card in self.cards))
        (room.folder / "sys").mkdir()
        self.environment = {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(room.folder / "cards"),
                            "WATTLE_STATE": str(room.folder / "state"), "WATTLE_SYSFS": str(room.folder / "sys"),
                            "WATTLE_HELPER": "off", "CUDA_VISIBLE_DEVICES": None}

    def python(self, code, *arguments, **options):
        environment = {**self.environment, **options.pop("env", {})}
        return python(self.room, code.replace("**CARD", "**{}"), *arguments, env=environment, **options)

    def start(self, code):
        """Runs it until it has printed a line."""
        (self.room.folder / "started.py").write_text(code)
        process = self.room.start("started.py", program=sys.executable, env=self.environment)
        line = process.stdout.readline().decode().strip()
        assert line, process.stderr.read().decode()
        return process, line

    def log(self, gpu=0, name="limits"):
        """What was set, in W (or MHz), in order."""
        try:
            lines = [line.split() for line in (self.room.folder / f"cards.{name}").read_text().splitlines()]
        except FileNotFoundError:
            return []
        return [int(line[2]) / (1000 if name == "limits" else 1) for line in lines if int(line[1]) == gpu]

    def limit_w(self, gpu=0):
        return (self.log(gpu) or [self.cards[gpu].default_w])[-1]

    def somebody_sets(self, watts, gpu=0):
        with open(self.room.folder / "cards.limits", "a", encoding="ascii") as file:
            file.write(f"{time.monotonic_ns()} {gpu} {watts * 1000} 1\n")

    def is_back(self, watts=400, seconds=5.0):
        """And the journal says nothing any more."""
        wait_until(lambda: self.limit_w() == watts, "the limit is back", seconds)
        wait_until(lambda: not self.leases(), "the journal is empty", seconds)
        return True

    def leases(self):
        return list((self.room.folder / "state/caps").glob("*.lease"))


def errors(*lines):
    """A program that prints, for each line, the name of what it raised and its text."""
    return IMPORTS + "".join(f"""
try:
    {line}
    print("nothing")
except Exception as why:
    print(type(why).__name__, why)
""" for line in lines)


# ---- list, get, set, reset ----

@test
def what_there_is(room):
    """list and get tell range, limit, clocks and who has a lease; unknown is NaN"""
    machine = Machine(room, Card(), Card(min_w=50, max_w=250, default_w=200, now_w=180))
    lines, _ = machine.python(IMPORTS + """
for d in wattle.cap.list():
    print(d.device, d.current_w, d.default_w, d.min_w, d.max_w, d.settable, d.lease, d.min_mhz, d.max_mhz)
assert wattle.cap.get("gpu-1") == wattle.cap.get(wattle.cap.get("gpu-1").id) == wattle.cap.list()[1]
wattle.cap.set("gpu-1", 100)
print(wattle.cap.get("gpu-1").lease, "|", wattle.cap.get("gpu-1").current_w)
""")
    assert lines[:2] == ["gpu-0 400.0 400.0 100.0 400.0 True None 210.0 1410.0",
                         "gpu-1 180.0 200.0 50.0 250.0 True None 210.0 1410.0"], lines
    assert lines[2].startswith("program.py, pid ") and lines[2].endswith("| 100.0"), lines


@test
def blocks_in_blocks(room):
    """a with block's limit ends with it, and the limit around it is back; a plain one lasts as long as the process"""
    machine = Machine(room)
    lines, _ = machine.python(IMPORTS + """
def now(): print(wattle.cap.get("gpu-0").current_w)
with wattle.cap.set("gpu-0", 300) as outer:
    now()
    with wattle.cap.set(["gpu-0"], 200), wattle.cap.set("gpu-0", 150):
        now()
        wattle.cap.set("gpu-0", 160)
        now()
    now()
now()
try:
    with outer: print("entered")
except RuntimeError as why:
    print("RuntimeError")
wattle.cap.set("gpu-0", 250)
with wattle.cap.set("gpu-0", 120): now()
now()
""")
    assert lines == ["300.0", "150.0", "160.0", "300.0", "400.0", "RuntimeError", "120.0", "250.0"], lines
    assert machine.limit_w() == 400, "a normal end puts it back before the program is gone"
    assert not machine.leases()


@test
def blocks_that_end_crosswise(room):
    """of blocks that do not end in the order of their beginnings the last one's limit stays until it ends"""
    machine = Machine(room)
    lines, _ = machine.python(IMPORTS + """
first, second = wattle.cap.set("gpu-0", 300).__enter__(), wattle.cap.set("gpu-0", 200).__enter__()
first.__exit__(None, None, None)
print(wattle.cap.get("gpu-0").current_w)
second.reset()
print(wattle.cap.get("gpu-0").current_w)
""")
    assert lines == ["200.0", "400.0"], lines


@test
def an_exception_in_a_block(room):
    """exceptions and KeyboardInterrupt leave a block's limit behind, and arrive"""
    machine = Machine(room)
    machine.python(IMPORTS + """
for kind in (ValueError, KeyboardInterrupt):
    try:
        with wattle.cap.set("gpu-0", 200):
            raise kind("mine")
    except kind as why:
        assert str(why) == "mine" and wattle.cap.get("gpu-0").current_w == 400
""")
    assert machine.log() == [200, 400, 200, 400], machine.log()


@test
def several_devices(room):
    """a list or "gpus" limits all; if one refuses, those before it go back"""
    machine = Machine(room, Card(), Card(max_w=200, default_w=200))
    lines, _ = machine.python(IMPORTS + """
with wattle.cap.set("gpus", 150) as limit:
    print(limit.devices, [d.current_w for d in wattle.cap.list()])
try:
    wattle.cap.set(["gpu-0", "gpu-1"], 300)
except ValueError as why:
    print(why)
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
print(wattle.cap.set("gpus", 150).devices)
""")
    assert lines[0] == "('gpu-0', 'gpu-1') [150.0, 150.0]" and lines[1].startswith("gpu-1: 300 W"), lines
    assert lines[2] == "('gpu-1',)", lines
    assert machine.limit_w(0) == 400 and machine.limit_w(1) == 200, (machine.log(0), machine.log(1))


@test
def clocks(room):
    """clock_mhz locks NVIDIA's clocks from above, and they are free again afterwards"""
    machine = Machine(room)
    machine.python(IMPORTS + """
with wattle.cap.set("gpu-0", 200, clock_mhz=900):
    pass
""")
    log = machine.log(name="clocks")
    assert len(log) == 2 and log[0] == 900 and log[1] == 0, log
    assert machine.limit_w() == 400


@test
def a_limit_that_stays(room):
    """keep=True outlives the program; reset in another one puts back what was there before wattle's first change"""
    machine = Machine(room, Card(now_w=350))
    machine.python(IMPORTS + 'wattle.cap.set("gpu-0", 300, keep=True); wattle.cap.set("gpu-0", 250, keep=True)')
    assert machine.limit_w() == 250
    machine.python(IMPORTS + """
with wattle.cap.set("gpu-0", 200): pass
assert wattle.cap.get("gpu-0").current_w == 250
wattle.cap.reset("gpu-0")
assert wattle.cap.get("gpu-0").current_w == 350
wattle.cap.reset("gpu-0", default=True)
assert wattle.cap.get("gpu-0").current_w == 400
""")


@test
def what_is_refused(room):
    """wrong values and devices: the exception, and a sentence that says what would be right; nothing is set"""
    machine = Machine(room)
    lines, _ = machine.python(errors(
        'wattle.cap.set("gpu-0", 20)', 'wattle.cap.set("gpu-0", float("nan"))', 'wattle.cap.set("gpu-9", 200)',
        'wattle.cap.set("gpu-0")', 'wattle.cap.set("gpu-0,", 200)', 'wattle.cap.get("gpus")',
        'wattle.cap.set("gpu-0", 200, keep=True).__enter__()', 'wattle.cap.tune("gpu-0", 3)',
        'wattle.cap.tune("gpu-0", print, objective="speed")', 'wattle.cap.tune("gpu-0", print, caps=1)',
        'wattle.cap.tune("gpu-0", print, seconds=0)', 'wattle.cap.tune("gpu-3", print)'))
    expected = [("ValueError", "100 to 400 W"), ("ValueError", "above 0"), ("LookupError", "gpu-0"),
                ("ValueError", "clock_mhz"), ("ValueError", "empty"), ("ValueError", "one device"),
                ("ValueError", "keep"), ("TypeError", "iterator"), ("ValueError", "ed2p"), ("ValueError", "2 to"),
                ("ValueError", "seconds"), ("LookupError", "gpu-0")]
    assert len(lines) == len(expected), lines
    for line, (name, part) in zip(lines, expected):
        assert line.startswith(name + " ") and part in line, (line, part)
    assert machine.log() == [200], "of the one with keep=True, which is no block but a limit"


@test
def not_allowed(room):
    """a driver that refuses: PermissionError that names the way, before anything is set"""
    machine = Machine(room, Card(more=("set_uid 12345",)))
    lines, _ = machine.python(errors('wattle.cap.set("gpu-0", 200)', 'wattle.cap.tune("gpu-0", lambda: 1 / 0)'))
    assert all(line.startswith("PermissionError") for line in lines), lines
    assert not machine.log()


@test
def a_foreign_change(room):
    """somebody else changes the limit: theirs stays, with a warning"""
    machine = Machine(room)
    (room.folder / "somebody.py").write_text(
        f"import time; open('cards.limits', 'a').write(f'{{time.monotonic_ns()}} 0 321000 1\\n')")
    lines, _ = machine.python(IMPORTS + """
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    with wattle.cap.set("gpu-0", 200):
        exec(open("somebody.py").read())
print(wattle.cap.get("gpu-0").current_w, "|", *(w.message for w in caught), "|", caught[0].filename[-10:])
""")
    assert lines[0].startswith("321.0 |") and "321" in lines[0].split("|")[1] and lines[0].endswith("program.py"), lines


# ---- ends of programs ----

HELD = IMPORTS + 'wattle.cap.set("gpu-0", 200)\nprint("ready", flush=True)\n'


@test
def every_end(room):
    """os._exit, sys.exit, an exception, SIGTERM, kill -9: the limit goes back"""
    machine = Machine(room)
    for end in ("os._exit(3)", "sys.exit(0)", "1 / 0", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)"):
        process, _ = machine.start(HELD + end)
        room.finish(process)
        assert machine.is_back(), end


@test
def killed_from_outside(room):
    """kill -9 in the middle of a block: the guard puts the limit back, and the next program has nothing to do"""
    machine = Machine(room)
    process, _ = machine.start(HELD + "time.sleep(60)")
    assert machine.limit_w() == 200
    process.kill()
    assert machine.is_back()
    machine.python(IMPORTS + 'assert wattle.cap.get("gpu-0").current_w == 400')
    assert machine.log() == [200, 400], machine.log()


@test
def children(room):
    """a forked child does not own its parent's limit: its blocks and its end change nothing, its set is refused; and a
    child that lives on when the parent is killed does not keep the limit"""
    machine = Machine(room)
    process, line = machine.start(IMPORTS + """
with wattle.cap.set("gpu-0", 200) as limit:
    child = os.fork()
    if child == 0:
        try:
            wattle.cap.set("gpu-0", 300)
        except BlockingIOError as why:
            assert str(os.getppid()) in str(why), why
        else:
            os._exit(1)
        limit.reset()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert wattle.cap.get("gpu-0").current_w == 200
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    time.sleep(60)
""")
    try:
        process.kill()
        assert machine.is_back()
        machine.python(IMPORTS + 'wattle.cap.set("gpu-0", 150)')  # the lease is free, too
    finally:
        os.kill(int(line), signal.SIGKILL)


@test
def processes_and_threads(room):
    """one has it: another process and another thread are refused, with the owner's name; when it ends, they get it"""
    machine = Machine(room)
    process, _ = machine.start(HELD + "time.sleep(60)")
    lines, _ = machine.python(errors('wattle.cap.set("gpu-0", 300)', 'wattle.cap.tune("gpu-0", lambda: None)',
                                     'wattle.cap.reset("gpu-0")'))
    assert all(line.startswith("BlockingIOError") and "started.py" in line for line in lines), lines
    process.kill()
    assert machine.is_back()
    lines, _ = machine.python(IMPORTS + """
def other():
    try:
        with wattle.cap.set("gpu-0", 300): print("set")
    except BlockingIOError as why: print(why)
with wattle.cap.set("gpu-0", 200):
    thread = threading.Thread(target=other); thread.start(); thread.join()
    print(wattle.cap.get("gpu-0").current_w)
thread = threading.Thread(target=other, name="second"); thread.start(); thread.join()
""")
    assert "MainThread" in lines[0] and lines[1:] == ["200.0", "set"], lines


@test
def disabled(room):
    """WATTLE_DISABLE=1: nothing is read or set, all succeeds, tune calls no step"""
    machine = Machine(room)
    lines, _ = machine.python(IMPORTS + """
with wattle.cap.set("gpu-0", 200): print(wattle.cap.get("gpu-0").current_w)
result = wattle.cap.tune("gpu-0", lambda: 1 / 0)
print(wattle.cap.list(), result.chosen_w, result.caps)
with result.apply(): pass
wattle.cap.reset("gpu-0")
""", env={"WATTLE_DISABLE": "1"})
    assert lines == ["nan", "[] nan []"] and not machine.log(), lines


# ---- tune ----

@test
def finds_the_best(room):
    """tune finds nearly the known optimum of an objective, says what it saves, and leaves the limit as it was"""
    card = Card(now_w=380)
    machine = Machine(room, card)
    lines, done = machine.python(STEPS + """
card = Card(now_w=380)
for objective in ("energy", "slowdown=10"):
    seen = []
    result = wattle.cap.tune("gpu-0", step, objective=objective, caps=5, seconds=1, settle=0.02, seed=3,
                             progress=seen.append)
    assert wattle.cap.get("gpu-0").current_w == 380, wattle.cap.get("gpu-0")
    assert seen and seen[-1].done > 0.5 and result.previous_w == 380
    print(result.to_json().replace("\\n", ""))
""")
    for line, objective in zip(lines, ("energy", "slowdown")):
        result = json.loads(line)
        bound = {"slowdown_percent": 10} if objective == "slowdown" else {"from_w": 120}
        assert card.worse_percent("energy", result["chosen_w"], **bound) <= 6, (result, card.best_w("energy", **bound))
        energy_j, time_s = card.step(result["chosen_w"])
        near(result["saving_percent"], (1 - energy_j / card.step(400)[0]) * 100, absolute=5)
        near(result["slowdown_percent"], (time_s / card.step(400)[1] - 1) * 100, absolute=8)
        for row in result["caps"]:
            near(row["energy_j"] / row["time_s"], card.power_w(row["cap_w"]), 0.03)
            near(row["time_s"] / row["steps"], card.step(row["cap_w"], 0.01)[1], 0.15)
    assert len(lines) == 2 and not done.stderr, done


@test
def every_way_out_of_tune(room):
    """an exception, KeyboardInterrupt, the end of the work, a foreign change, os._exit, kill -9: the limit is back"""
    machine = Machine(room)
    machine.python(STEPS + """
def tune(step, **options):
    return wattle.cap.tune("gpu-0", step, caps=4, seconds=0.4, settle=0.02, **options)
n = 0
def fails():
    global n
    n += 1
    step()
    if n > 30: raise kind("mine")
for kind in (ValueError, KeyboardInterrupt, SystemExit):
    n = 0
    try: tune(fails)
    except kind as why: assert str(why) == "mine" and limit_w() == 400 and n == 31, (why, n)
    else: assert False
try: tune(step, sync=lambda: 1 / 0)
except ZeroDivisionError: assert limit_w() == 400
else: assert False
try: tune(iter(range(3)))
except RuntimeError as why: assert "steps" in str(why) and limit_w() == 400, why
else: assert False
def batches():
    for i in range(150):
        step()
        yield i
result = tune(batches())  # ends before enough is known: what there is counts
assert len(result.caps) >= 2 and limit_w() == 400, result
with wattle.cap.set("gpu-0", 250):
    tune(step)
    assert limit_w() == 250
assert limit_w() == 400
def meddles():
    step()
    if limit_w() == 120: open("cards.limits", "a").write("1 0 321000 1\\n")
try: tune(meddles)
except RuntimeError as why: assert "321" in str(why) and limit_w() == 321, why
else: assert False
""")
    machine.somebody_sets(400)
    for end in ("os._exit(1)", "os.kill(os.getpid(), 9)"):
        process, _ = machine.start(STEPS.replace("**CARD", "**{}") + f"""
def ends():
    step()
    if limit_w() < 300:
        print("ready", flush=True)
        {end}
wattle.cap.tune("gpu-0", ends, caps=4, seconds=0.4, settle=0.02)
""")
        room.finish(process)
        assert machine.is_back(), end


@test
def two_searches(room):
    """a second thread that searches on the same device is refused while the first one goes on"""
    machine = Machine(room)
    lines, _ = machine.python(STEPS + """
told = []
def other():
    for call in (lambda: wattle.cap.tune("gpu-0", step), lambda: wattle.cap.set("gpu-0", 300),
                 lambda: wattle.cap.reset("gpu-0")):
        try: call()
        except BlockingIOError as why: told.append(str(why))
def steps():
    if not told:
        thread = threading.Thread(target=other); thread.start(); thread.join()
    step()
result = wattle.cap.tune("gpu-0", steps, caps=3, seconds=0.3, settle=0.02)
print(len(told), len(result.caps), all("another thread" in text for text in told), limit_w())
""")
    assert lines == ["3 3 True 400.0"], lines


@test
def what_a_result_shows(room):
    """JSON, CSV in the seed's layout, a table, HTML, a picture"""
    machine = Machine(room)
    lines, _ = machine.python(STEPS + """
import json
result = wattle.cap.tune("gpu-0", step, caps=4, seconds=0.4, settle=0.02, objective="edp")
data = json.loads(result.to_json())
assert {"device", "objective", "chosen_w", "previous_w", "saving_percent", "slowdown_percent", "caps",
        "model"} <= set(data)
assert all({"cap_w", "steps", "energy_j", "time_s", "objective"} <= set(row) for row in data["caps"])
result.to_csv("table.csv")
lines = open("table.csv").read().splitlines()
assert len(lines) == 5 and float(lines[-1].split(":,")[1]) == result.chosen_w, lines
cap, steps, kwh, objective = map(float, lines[0].split(","))
assert cap == 400 and steps == result.caps[0].steps and abs(kwh * 3.6e6 / result.caps[0].energy_j - 1) < 1e-9
assert "gpu-0" in str(result) and "<table>" in result._repr_html_()
with result.apply(): print(limit_w() == round(result.chosen_w, 3))
try:
    import matplotlib; matplotlib.use("Agg")
    axes = result.plot()
    assert axes.get_xlabel() == "limit (W)" and axes.get_ylabel().startswith("edp of a step")
except ModuleNotFoundError: pass
try: assert list(result.to_pandas()["limit_w"]) == [row.cap_w for row in result.caps]
except ModuleNotFoundError: pass
""")
    assert lines == ["True"], lines


@test
def two_cards_at_once(room):
    """"gpus": the same limit for both, their energies added"""
    machine = Machine(room, Card(), Card(full_w=300))
    lines, _ = machine.python(STEPS + """
result = wattle.cap.tune("gpus", step, caps=3, seconds=0.4, settle=0.02, objective="energy")
for row in result.caps:
    power_w = card.power_w(row.cap_w) + Card(full_w=300).power_w(row.cap_w)
    assert abs(row.energy_j / row.time_s / power_w - 1) < 0.04, (row, power_w)
print(result.device, limit_w(0), limit_w(1))
""")
    assert lines == ["gpu-0,gpu-1 400.0 400.0"], lines


@test
def a_package(room):
    """CPU packages too: the counter of powercap, the registers of powercap; all of them are as they were afterwards"""
    machine = Machine(room, Card(default_w=200, max_w=200, full_w=190, idle_w=40))
    zone = room.folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    registers = {"name": "package-0", "energy_uj": "0", "max_energy_range_uj": "262143328850", "enabled": "1",
                 "constraint_0_name": "long_term", "constraint_0_power_limit_uw": "200000000",
                 "constraint_0_max_power_uw": "200000000", "constraint_1_name": "short_term",
                 "constraint_1_power_limit_uw": "240000000", "constraint_1_max_power_uw": "0"}
    for name, value in registers.items():
        (zone / name).write_text(value + "\n")
    simulator = room.start("--gpu", 0, "--limit", zone / "constraint_0_power_limit_uw", "--energy", zone / "energy_uj",
                           program=BUILD / "tests/fakes/limit_sim", env=machine.environment)
    assert simulator.stdout.readline() == b"ready\n"
    machine.environment["WATTLE_NVML"] = "/nowhere"
    lines, _ = machine.python(STEPS + """
LIMIT = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
card = Card(default_w=200, max_w=200, full_w=190, idle_w=40)
def limit_w(): return int(open(LIMIT).read()) / 1e6
with wattle.cap.set("package-0", 100): print(limit_w(), wattle.cap.get("package-0").current_w)
result = wattle.cap.tune("package-0", step, caps=3, seconds=0.4, settle=0.02, objective="energy")
for row in result.caps:
    assert abs(row.energy_j / row.time_s / card.power_w(row.cap_w) - 1) < 0.05, row
print(limit_w(), result.device)
""")
    assert lines == ["100.0 100.0", "200.0 package-0"], lines
    assert (zone / "constraint_1_power_limit_uw").read_text().strip() == "240000000"
    assert not machine.leases()


@test
def the_example(room):
    """examples/tune_cap.py, with a step that the fake card slows: a table, a CSV, and the limit as it was"""
    machine = Machine(room)
    (room.folder / "tune_cap.py").write_text((TESTS.parent / "examples/tune_cap.py").read_text(encoding="utf-8"))
    lines, done = machine.python(STEPS + """
import tune_cap
tune_cap.main(step)
""", "--objective", "edp", "--seconds", 0.4, "--settle", 0.02, "--caps", 4, "--steps", 5, "--csv", "caps.csv")
    assert lines[0].startswith("gpu-0: ") and "saves" in lines[0] and lines[-1].startswith("5 steps under "), lines
    assert len((room.folder / "caps.csv").read_text().splitlines()) == 5 and "100%" in done.stderr
    assert machine.limit_w() == 400
    lines, done = python(room, "import runpy, sys; sys.modules['torch'] = None; runpy.run_path('tune_cap.py')",
                         env={**machine.environment, "WATTLE_NVML": "/nowhere"})
    assert not lines and "Traceback" not in done.stderr, done


@test
def the_manual(room):
    """docs/caps.md: its Python runs as it stands, but for the seconds"""
    machine = Machine(room)
    page = (TESTS.parent / "docs/caps.md").read_text(encoding="utf-8")
    blocks = re.findall("^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    machine.python(STEPS + "train = train_step = step\n" + blocks[0].replace("seconds=10", "seconds=0.3, settle=0.01"))
    assert machine.limit_w() == 400 and (room.folder / "caps.csv").exists()


@test
def import_costs_nothing(room):
    """wattle.cap is there after `import wattle` and brings nothing that was not there before"""
    lines, _ = python(room, """
import sys
import wattle
print(wattle.cap.list.__module__, [name for name in ("numpy", "pandas", "matplotlib", "torch") if name in sys.modules])
""")
    assert lines == ["wattle.cap []"], lines


if __name__ == "__main__":
    main()
