"""wattle.cap on fake cards that obey limits: a set limit is in force, and is restored whatever ends the program."""
import os
import shutil
import signal

from caps_common import IMPORTS, LIBRARY, Machine
from gpu_card import Card
from harness import BUILD, Skip, main, test, wait_until
from package import python


def errors(*lines):
    """A program that prints, for each line, the exception's type and message."""
    return IMPORTS + "".join(f"""
try:
    {line}
    print("nothing")
except Exception as why:
    print(type(why).__name__, why)
""" for line in lines)


# ---- list, get, set, reset ----

@test
def list_of_devices(workdir):
    """list and get: range, limit, clocks and the lease's owner; unknown is NaN"""
    machine = Machine(workdir, Card(), Card(min_w=50, max_w=250, default_w=200, now_w=180))
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
def blocks_in_blocks(workdir):
    """with block: its limit ends with it, and the enclosing one is restored; a plain limit lasts as long as the
    process"""
    machine = Machine(workdir)
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
    assert machine.limit_w() == 400, "a normal exit restores it before the program is gone"
    assert not machine.leases()


@test
def blocks_that_end_crosswise(workdir):
    """blocks that do not end in reverse order: the last one's limit stays until it ends"""
    machine = Machine(workdir)
    lines, _ = machine.python(IMPORTS + """
first, second = wattle.cap.set("gpu-0", 300).__enter__(), wattle.cap.set("gpu-0", 200).__enter__()
first.__exit__(None, None, None)
print(wattle.cap.get("gpu-0").current_w)
second.reset()
print(wattle.cap.get("gpu-0").current_w)
""")
    assert lines == ["200.0", "400.0"], lines


@test
def an_exception_in_a_block(workdir):
    """exceptions and KeyboardInterrupt: end a block's limit, and reach the program"""
    machine = Machine(workdir)
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
def several_devices(workdir):
    """list or "gpus": limits all; if one refuses, the earlier ones are restored"""
    machine = Machine(workdir, Card(), Card(max_w=200, default_w=200))
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
def clocks(workdir):
    """clock_mhz: locks NVIDIA's clocks from above, and unlocks them afterwards"""
    machine = Machine(workdir)
    machine.python(IMPORTS + """
with wattle.cap.set("gpu-0", 200, clock_mhz=900):
    pass
""")
    log = machine.log(name="clocks")
    assert len(log) == 2 and log[0] == 900 and log[1] == 0, log
    assert machine.limit_w() == 400


@test
def a_limit_that_stays(workdir):
    """keep=True: outlives the program; reset in another one restores the limit from before wattle's first change"""
    machine = Machine(workdir, Card(now_w=350))
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
def what_is_refused(workdir):
    """invalid values and devices: an exception with the valid ones; nothing is set"""
    machine = Machine(workdir)
    lines, _ = machine.python(errors(
        'wattle.cap.set("gpu-0", 20)', 'wattle.cap.set("gpu-0", float("nan"))', 'wattle.cap.set("gpu-9", 200)',
        'wattle.cap.set("gpu-0")', 'wattle.cap.set("gpu-0,", 200)', 'wattle.cap.get("gpus")',
        'wattle.cap.set("gpu-0", 200, keep=True).__enter__()', 'wattle.cap.tune("gpu-0", 3)',
        'wattle.cap.tune("gpu-0", print, objective="speed")', 'wattle.cap.tune("gpu-0", print, caps=1)',
        'wattle.cap.tune("gpu-0", print, seconds=0)', 'wattle.cap.tune("gpu-3", print)', 'wattle.cap.get(0)',
        'wattle.cap.set(b"gpu-0", 200)', 'wattle.cap.tune("gpu-0", print, progress=3)',
        'wattle.cap.tune("gpu-0", lambda: wattle.cap.reset("gpu-0"))'))
    expected = [("ValueError", "100 to 400 W"), ("ValueError", "above 0"), ("LookupError", "gpu-0"),
                ("ValueError", "clock_mhz"), ("ValueError", "empty"), ("ValueError", "one device"),
                ("ValueError", "keep"), ("TypeError", "iterator"), ("ValueError", "ed2p"), ("ValueError", "at least 2"),
                ("ValueError", "seconds"), ("LookupError", "gpu-0"), ("TypeError", "not 0"), ("TypeError", "not 103"),
                ("TypeError", "progress"), ("BlockingIOError", "already tuning its limit")]
    assert len(lines) == len(expected), lines
    for line, (name, part) in zip(lines, expected):
        assert line.startswith(name + " ") and part in line, (line, part)
    assert machine.log()[0] == machine.log()[-1] == 200, "of the one with keep=True, which is no block but a limit"


@test
def not_allowed(workdir):
    """driver that refuses: PermissionError with the remedy, before anything is set"""
    machine = Machine(workdir, Card(more=("set_uid 12345",)))
    lines, _ = machine.python(errors('wattle.cap.set("gpu-0", 200)', 'wattle.cap.tune("gpu-0", lambda: 1 / 0)'))
    assert all(line.startswith("PermissionError") for line in lines), lines
    assert not machine.log()


@test
def power_by_the_helper_but_no_clocks(workdir):
    """user with helper rights for power, not for clocks: reset ends the limit, and the remedy is stated once"""
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")
    machine = Machine(workdir, Card(now_w=350, more=("set_uid 0",)))
    workdir.for_everybody()
    (workdir.folder / "policy").write_text("user nobody read\nuser nobody cap gpus 150..380\n")
    environment = {**machine.environment, "WATTLE_NVML": str(shutil.copy2(LIBRARY, workdir.folder))}
    wattled = workdir.start("--socket", workdir.folder / "socket", "--policy", workdir.folder / "policy", "--state",
                            workdir.folder / "wattled", "--nvml", environment["WATTLE_NVML"], "--sysfs",
                            workdir.folder / "sys",
                            program=BUILD / "src/helper/wattled", env=environment)
    wait_until((workdir.folder / "socket").exists, "the helper is there")
    code = IMPORTS + """
os.setgid(65534), os.setuid(65534)
wattle.cap.set("gpu-0", 200)
wattle.cap.reset("gpu-0")
assert wattle.cap.get("gpu-0").current_w == 350
for _ in range(3):
    try: wattle.cap.set("gpu-0", clock_mhz=600)
    except PermissionError as why: assert str(why).count("policy file") == 1, why
    else: assert False
"""
    python(workdir, code, env={**environment, "WATTLE_HELPER": str(workdir.folder / "socket")})
    wattled.terminate()
    workdir.finish(wattled)
    assert machine.log() == [200, 350], machine.log()


@test
def reloaded(workdir):
    """importlib.reload, as in notebooks: an earlier limit still ends"""
    machine = Machine(workdir)
    machine.python(IMPORTS + """
import importlib
limit = wattle.cap.set("gpu-0", 200)
importlib.reload(wattle.cap)
limit.reset()
assert wattle.cap.get("gpu-0").current_w == 400
""")


@test
def a_foreign_change(workdir):
    """limit changed by another program: stays, with a warning"""
    machine = Machine(workdir)
    (workdir.folder / "somebody.py").write_text(
        "import time; open('cards.limits', 'a').write(f'{time.monotonic_ns()} 0 321000 1\\n')")
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
def every_end(workdir):
    """os._exit, sys.exit, an exception, SIGTERM, kill -9: the limit is restored"""
    machine = Machine(workdir)
    for end in ("os._exit(3)", "sys.exit(0)", "1 / 0", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)"):
        process, _ = machine.start(HELD + end)
        workdir.finish(process)
        assert machine.is_back(), end


@test
def killed_from_outside(workdir):
    """kill -9 within a block: the guard restores the limit, and the next program has nothing to do"""
    machine = Machine(workdir)
    process, _ = machine.start(HELD + "time.sleep(60)")
    assert machine.limit_w() == 200
    process.kill()
    assert machine.is_back()
    machine.python(IMPORTS + 'assert wattle.cap.get("gpu-0").current_w == 400')
    assert machine.log() == [200, 400], machine.log()


@test
def children(workdir):
    """forked child: does not own its parent's limit: its blocks and its end change nothing, its set is refused; a child
    that outlives a killed parent does not keep the limit"""
    machine = Machine(workdir)
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
def processes_and_threads(workdir):
    """device in use: another process and another thread are refused with the owner's name; when it ends, they get it"""
    machine = Machine(workdir)
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
def disabled(workdir):
    """WATTLE_DISABLE=1: nothing is read or set, all calls succeed, tune calls no step"""
    machine = Machine(workdir)
    lines, _ = machine.python(IMPORTS + """
with wattle.cap.set("gpu-0", 200): print(wattle.cap.get("gpu-0").current_w)
result = wattle.cap.tune("gpu-0", lambda: 1 / 0)
print(wattle.cap.list(), result.chosen_w, result.caps)
with result.apply(): pass
wattle.cap.reset("gpu-0")
""", env={"WATTLE_DISABLE": "1"})
    assert lines == ["nan", "[] nan []"] and not machine.log(), lines


@test
def import_costs_nothing(workdir):
    """wattle.cap: available after `import wattle`, without further imports"""
    lines, _ = python(workdir, """
import sys
import wattle
print(wattle.cap.list.__module__, [name for name in ("numpy", "pandas", "matplotlib", "torch") if name in sys.modules])
""")
    assert lines == ["wattle.cap []"], lines


if __name__ == "__main__":
    main()
