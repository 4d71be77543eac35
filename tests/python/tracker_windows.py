"""wattle.Tracker in a program: its defaults, its text, results before stop, windows, and decorated functions."""
from harness import BUILD, main, near, test
from package import python

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
IMPORTS = """
import asyncio, inspect, math, os, pickle, sys, threading, time
import wattle

def refused(kind, call, *parts):
    try:
        call()
    except kind as error:
        assert type(error) is kind and all(part in str(error) for part in parts), repr(error)
    else:
        raise AssertionError(f"no {kind.__name__}")

def work(seconds=0.1):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
"""


def simulated(workdir, *zones):
    """The environment of a machine whose power is known, in W."""
    options = [word for zone in zones for word in ("--zone", zone)]
    simulator = workdir.start(workdir.folder / "sim", *options, program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(workdir.folder / "sim"), "WATTLE_NVML": "/nowhere"}


def run(workdir, code, **options):
    return python(workdir, IMPORTS + code, **options)


@test
def defaults(workdir):
    """a sample every 100 ms, time in seconds; gpu_tracker's class keeps its own 1 s and hours"""
    lines, _ = run(workdir, """
import wattle.compat.gpu_tracker as gput
with wattle.Tracker(disable_logs=True) as tracker:
    time.sleep(0.5)
print(tracker.report["run"]["interval_s"], tracker.resource_usage.compute_time.unit)
with gput.Tracker(disable_logs=True) as tracker:
    time.sleep(0.1)
print(tracker.report["run"]["interval_s"], tracker.resource_usage.compute_time.unit)
parameters = [inspect.signature(kind).parameters for kind in (gput.Tracker, wattle.Tracker)]
assert list(parameters[0]) == list(parameters[1])
print(*(name for name in parameters[0] if parameters[0][name].default != parameters[1][name].default))
""")
    assert lines == ["0.1 seconds", "1 hours", "sleep_time time_unit"], lines


@test
def text(workdir):
    """print(tracker): energy with its error first, then the attributed energy with its share of it"""
    lines, _ = run(workdir, """
with wattle.Tracker(disable_logs=True) as tracker:
    work(1)
print(tracker)
print(100 * tracker.energy.target_j / tracker.energy.total_j)
assert list(tracker.to_json())[0] == "energy"
""", env=simulated(workdir, "package-0=50"))
    energy, attributed, *_ = lines
    words = energy.split()
    assert words[0] == "Energy:" and words[2:4] == ["J", "±"] and words[-1] == "measured", energy
    assert attributed.startswith("Attributed energy: ") and " ± " in attributed, attributed
    assert attributed.endswith(f" ({float(lines[-1]):.1f} %)") and lines[2] == "Max RAM:", lines[:3]


@test
def results_before_stop(workdir):
    """energy, resource_usage, report, to_json, str before stop: RuntimeError that names windows; gpu_tracker's: None"""
    run(workdir, """
import wattle.compat.gpu_tracker as gput
tracker = wattle.Tracker(disable_logs=True)
def check():
    for name in ("energy", "resource_usage", "report"):
        refused(RuntimeError, lambda: getattr(tracker, name), f"Tracker.{name} is not available", "stop()", "end_window()")
    refused(RuntimeError, tracker.to_json, "before tracking completes")
    refused(RuntimeError, lambda: str(tracker), "before tracking completes")
    assert not hasattr(tracker, "nothing") and repr(tracker).startswith("State: ")
check()
with tracker:
    check()
    work(0.3)
assert tracker.energy.total_j > 0 and tracker.report["schema"] == "wattle-report/1"
old = gput.Tracker()
assert old.energy is old.resource_usage is old.report is None
""")


@test
def windows(workdir):
    """nested and overlapping windows of a machine of 50 W: seconds, joules with error and per device, at once"""
    lines, _ = run(workdir, """
with wattle.Tracker(sleep_time=0.05, disable_logs=True) as tracker:
    tracker.begin_window("outer")
    work(0.4)
    tracker.begin_window("inner")
    work(0.4)
    begin = time.monotonic()
    inner = tracker.end_window("inner")
    tracker.begin_window("across")
    outer = tracker.end_window("outer")
    assert time.monotonic() - begin < 0.5
    work(0.4)
    across = tracker.end_window("across")
    for window in (outer, inner, across):
        print(window.name, window.seconds, window.total_j, window.error_j, window.cpu_j, window.dram_j, window.target_j)
        assert window.domains.keys() == {"package-0", "dram-0"} and not window.estimated
        assert math.isclose(window.domains["package-0"][0], window.cpu_j) and window.domains["package-0"][1] > 0
        assert math.isnan(window.gpu_j) and math.isclose(window.power_w, window.total_j / window.seconds)
        assert 0 < window.target_j <= window.total_j + window.error_j and window.target_error_j >= 0
        assert repr(window).startswith(f"<wattle window '{window.name}': ")
    again = tracker.begin_window("inner"), tracker.end_window("inner")
print(*sorted(block["name"] for block in tracker.report["blocks"]))
copy = pickle.loads(pickle.dumps(outer))
assert (copy.name, copy.total_j, copy.target_j) == ("outer", outer.total_j, outer.target_j)
""", env=simulated(workdir, "package-0=50", "package-0/dram=5"))
    for line, seconds in zip(lines, (0.8, 0.4, 0.4)):
        _, took_s, total_j, error_j, cpu_j, dram_j, target_j = line.split()
        assert float(took_s) >= seconds, line
        assert abs(float(cpu_j) - 50 * float(took_s)) <= float(error_j) + 0.1 * float(cpu_j), line
        near(float(total_j), float(cpu_j) + float(dram_j), relative=1e-6)
    assert lines[-1] == "across inner outer", lines


@test
def windows_of_gpus(workdir):
    """two GPUs of 100 and 50 W: joules of each; gpu_uuids measures one"""
    (workdir.folder / "cards").write_text("gpu\nuuid GPU-one\npower_mw constant 100000\n"
                                       "gpu\nuuid GPU-two\npower_mw constant 50000\n")
    lines, _ = run(workdir, """
for gpus in (None, {"GPU-two"}):
    with wattle.Tracker(gpu_uuids=gpus, disable_logs=True) as tracker:
        tracker.begin_window("step")
        time.sleep(1)
        window = tracker.end_window("step")
    energies = {name: energy_j / window.seconds for name, (energy_j, _) in window.domains.items() if "gpu" in name}
    assert " J (GPU calibration), " in str(tracker).splitlines()[0], str(tracker)
    print(*(f"{power_w:.0f}" for _, power_w in sorted(energies.items())), f"{window.gpu_j / window.seconds:.0f}")
""", env={"WATTLE_NVML": str(FAKE_NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"), "CUDA_VISIBLE_DEVICES": None})
    for line, expected in zip(lines, ((100, 50, 150), (50, 50)), strict=True):
        numbers = [float(word) for word in line.split()]
        assert len(numbers) == len(expected), line
        for number, power_w in zip(numbers, expected):
            near(number, power_w, relative=0.15)


@test
def window_mistakes(workdir):
    """unknown names get a suggestion and a list; a name twice, no name, before start and after stop are refused"""
    _, done = run(workdir, """
import logging
logging.basicConfig(format="%(levelname)s %(message)s")
tracker = wattle.Tracker()
refused(RuntimeError, lambda: tracker.begin_window("a"), "Cannot begin a window", "has not started yet")
with tracker:
    refused(ValueError, lambda: tracker.end_window("a"), "No window 'a' is open", "begin_window")
    tracker.begin_window("epoch")
    tracker.begin_window("validation")
    refused(ValueError, lambda: tracker.begin_window("epoch"), "'epoch' is open already")
    refused(ValueError, lambda: tracker.end_window("epcoh"), "'epcoh'", "mean 'epoch'?", "'epoch', 'validation'")
    refused(ValueError, lambda: tracker.end_window("zzz"), "Open windows: 'epoch', 'validation'.")
    refused(ValueError, lambda: tracker.begin_window(""), "not a valid window name")
    refused(ValueError, lambda: tracker.begin_window(7), "7 is not a valid window name")
    tracker.end_window("epoch")
refused(RuntimeError, lambda: tracker.end_window("validation"), "Cannot end a window", "has already stopped")
""")
    warnings = [line for line in done.stderr.splitlines() if "Window" in line]
    assert warnings == ["WARNING Window 'validation' was not ended before the tracker stopped, and has no result."], done


@test
def windows_of_threads(workdir):
    """eight threads with a window each, and a forked child: each window has its own time; the child's are refused"""
    run(workdir, """
with wattle.Tracker(disable_logs=True) as tracker:
    found = {}
    def measure(number):
        for _ in range(20):
            tracker.begin_window(f"window {number}")
            time.sleep(0.005 * (number % 3))
            found[number] = tracker.end_window(f"window {number}")
    threads = [threading.Thread(target=measure, args=(number,)) for number in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert sorted(found) == list(range(8)) and all(found[n].seconds >= 0.005 * (n % 3) for n in found)
    tracker.begin_window("parent")
    child = os.fork()
    if child == 0:
        refused(RuntimeError, lambda: tracker.begin_window("child"), "forked", "parent")
        refused(RuntimeError, lambda: tracker.end_window("parent"), "forked", "parent")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert tracker.end_window("parent").seconds > 0
""")


@test
def nothing_known(workdir):
    """WATTLE_DISABLE=1: windows and decorated functions work, energies are NaN and None"""
    run(workdir, """
@wattle.Tracker()
def measured():
    measured.tracker.begin_window("a")
    return measured.tracker.end_window("a")
window = measured()
assert window.seconds >= 0 and math.isnan(window.total_j) and math.isnan(window.target_j) and not window.domains
assert measured.tracker.report is None and measured.tracker.energy.total_j is None
assert str(measured.tracker).startswith("Energy: n/a\\nAttributed energy: n/a\\n")
""", env={"WATTLE_DISABLE": "1"})


@test
def decorated(workdir):
    """functions, methods, coroutines, generators: a recording a call, values and exceptions pass, results in
    .tracker"""
    run(workdir, """
def tracked():
    return wattle.Tracker(sleep_time=0.05, disable_logs=True)

@tracked()
def plain(a, *, b=2):
    "Says what it does."
    work(0.1)
    return a + b
assert plain.__name__ == "plain" and plain.__doc__ and repr(plain.tracker) == "State: NEW"
refused(RuntimeError, lambda: plain.tracker.energy, "not available before")
assert plain(1) == 3 and 0.1 <= plain.tracker.resource_usage.compute_time.time < 5
first = plain.tracker.report
assert plain(1, b=3) == 4 and plain.tracker.report is not first and plain.tracker.energy.target_j > 0

class Model:
    @tracked()
    def fit(self): return self
    @staticmethod
    @tracked()
    def still(): return 1
    @tracked()
    @classmethod
    def of(cls): return cls
model = Model()
assert model.fit() is model and model.fit.tracker.report is not None and Model.still() == 1 and Model.of() is Model
assert Model.of.tracker.report is not None

@tracked()
def fails():
    raise KeyError("mine")
refused(KeyError, fails, "mine")
assert fails.tracker.report is not None

@tracked()
async def task(seconds):
    await asyncio.sleep(seconds)
    return seconds
async def both():
    return await asyncio.gather(task(0.2), task(0.1))
assert inspect.iscoroutinefunction(task)
assert asyncio.run(both()) == [0.2, 0.1] and task.tracker.resource_usage.compute_time.time >= 0.2

@tracked()
def numbers(n):
    for i in range(n):
        yield i
iterator = numbers(3)
assert repr(numbers.tracker) == "State: NEW" and next(iterator) == 0 and repr(numbers.tracker) == "State: STARTED"
assert list(iterator) == [1, 2] and repr(numbers.tracker) == "State: STOPPED"
iterator = numbers(3)
next(iterator)
iterator.close()
assert repr(numbers.tracker) == "State: STOPPED"

@tracked()
async def stream():
    yield 1
    yield 2
async def consume():
    return [item async for item in stream()]
assert asyncio.run(consume()) == [1, 2] and stream.tracker.report is not None
refused(TypeError, lambda: wattle.Tracker(plain), "@wattle.Tracker()", "parentheses")
refused(TypeError, lambda: tracked()(Model), "a tracker can only decorate functions and methods")
""")


@test
def decorated_overlaps(workdir):
    """recursion, threads and a forked child: calls that overlap share one recording, from the first to the last"""
    run(workdir, """
starts = []
real = wattle.Tracker.start
wattle.Tracker.start = lambda self: (starts.append(os.getpid()), real(self))[1]

@wattle.Tracker(sleep_time=0.05, disable_logs=True)
def factorial(n):
    return n * factorial(n - 1) if n else 1
assert factorial(20) == 2432902008176640000 and len(starts) == 1 and factorial.tracker.report

@wattle.Tracker(sleep_time=0.05, disable_logs=True)
def nap(seconds):
    time.sleep(seconds)
threads = [threading.Thread(target=nap, args=(seconds,)) for seconds in (0.5, 0.3, 0.3, 0.3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(starts) == 2 and nap.tracker.resource_usage.compute_time.time >= 0.5

@wattle.Tracker(sleep_time=0.05, disable_logs=True)
def forks():
    child = os.fork()
    if child == 0:
        nap(0)
    return child
child = forks()
if child == 0:
    os._exit(0 if nap.tracker.report and starts[-1] == os.getpid() else 1)
assert os.waitpid(child, 0)[1] == 0 and forks.tracker.report and len(starts) == 3
""")


@test
def decorated_output(workdir):
    """output: the second recording needs overwrite, which then replaces the run file"""
    run(workdir, """
@wattle.Tracker(sleep_time=0.05, disable_logs=True, output="run.sqlite")
def once():
    return 1
os.mkdir("elsewhere")
os.chdir("elsewhere")
assert once() == 1 and os.path.exists("../run.sqlite") and not os.listdir(".")
refused(FileExistsError, once, "run.sqlite already exists", "overwrite")

@wattle.Tracker(sleep_time=0.05, disable_logs=True, output="again.sqlite", overwrite=True)
def again(seconds):
    time.sleep(seconds)
again(0)
again(0.3)
assert wattle.open("again.sqlite").report["run"]["duration_s"] >= 0.3
""")


@test
def decorated_meter(workdir):
    """@wattle.measure(): the reading of the latest call; a coroutine lasts until it is finished, overlapping calls share a measurement"""
    run(workdir, """
import asyncio

@wattle.measure()
def nap(seconds):
    time.sleep(seconds)
    return seconds
assert nap(0.1) == 0.1 and 0.1 <= nap.meter.seconds < 10
first = nap.meter.reading
nap(0)
assert nap.meter.reading is not first and nap.meter.energy_j is not None
threads = [threading.Thread(target=nap, args=(seconds,)) for seconds in (0.5, 0.1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert nap.meter.seconds >= 0.5

@wattle.measure()
async def wait():
    await asyncio.sleep(0.1)
    return 1
async def both():
    return await asyncio.gather(wait(), wait())
assert asyncio.run(both()) == [1, 1] and wait.meter.seconds >= 0.1

class Model:
    @wattle.measure()
    def fit(self):
        raise KeyError("lost")
refused(KeyError, Model().fit, "lost")
assert Model.fit.meter.seconds > 0
child = os.fork()
if child == 0:
    nap(0.05)
    os._exit(0 if nap.meter.seconds >= 0.05 else 1)
assert os.waitpid(child, 0)[1] == 0
refused(TypeError, lambda: wattle.measure()(Model), "a meter can only decorate functions")
""")


if __name__ == "__main__":
    main()
