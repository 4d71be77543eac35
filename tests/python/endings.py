"""Programs that end, fail or are interrupted during a measurement: no hang, crash or output, and the run file is
complete."""
import json
import signal
import sys

from harness import main, test, wait_until
from package import python

IMPORTS = """
import atexit, gc, json, os, signal, sys, threading, time
import wattle
"""
TRACKED = IMPORTS + 'tracker = wattle.Tracker(sleep_time=0.05, output="run.sqlite", disable_logs=True)\n'


def closes(workdir, name):
    """Closing states of the spans of a name: {close: how many}."""
    return dict(workdir.rows(f"SELECT close, count(*) FROM span WHERE name = '{name}' GROUP BY close"))


def is_whole(workdir, path="run.sqlite"):
    """Whether the recorder has finished the run file, soon."""
    query = "SELECT value FROM run WHERE key = 'complete'"
    wait_until(lambda: workdir.rows(query, path) == [("true",)], f"{path} is whole")
    return True


@test
def exceptions_through_blocks(workdir):
    """exception through spans and a tracker: arrives unchanged, the spans end, the report exists"""
    lines, _ = python(workdir, TRACKED + """
try:
    with tracker:
        for i in range(10):
            try:
                with wattle.span("outer"), wattle.span("inner"):
                    raise ValueError(i)
            except ValueError as failure:
                assert failure.args == (i,) and failure.__context__ is None
        with wattle.span("last"):
            1 / 0
except ZeroDivisionError:
    print(tracker.report["blocks"][0]["name"], tracker.state)
""")
    assert lines == ["inner State.STOPPED"], lines
    assert closes(workdir, "outer") == closes(workdir, "inner") == {"ended": 10} and closes(workdir,
                                                                                            "last") == {"ended": 1}


@test
def interrupted(workdir):
    """Ctrl-C in a span in a tracker: KeyboardInterrupt ends the program as usual, the run file is complete"""
    program = workdir.folder / "interrupted.py"
    program.write_text(TRACKED + """
with tracker:
    with wattle.span("long"):
        print("ready", flush=True)
        time.sleep(30)
""")
    process = workdir.start(program, program=sys.executable)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    done = workdir.finish(process)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr, done
    assert is_whole(workdir) and closes(workdir, "long") == {"ended": 1}, closes(workdir, "long")


@test
def exit_with_everything_open(workdir):
    """interpreter ends with an open tracker, span, range and meter: no message, and the run file is complete"""
    _, done = python(workdir, TRACKED + """
tracker.start()
wattle.range_begin("range")
open_span = wattle.span("span")
open_span.__enter__()
meter = wattle.Meter()
meter.start()
""")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done
    assert is_whole(workdir)
    assert sum(closes(workdir, "span").values()) == 1 and sum(closes(workdir, "range").values()) == 1


@test
def the_usage_file(workdir):
    """tracker that is never stopped: its resource usage is in its file"""
    python(workdir, IMPORTS + """
tracker = wattle.Tracker(sleep_time=0.05, resource_usage_file="usage.pkl")
tracker.start()
time.sleep(0.2)
""")
    lines, _ = python(workdir, "import pickle; print(type(pickle.load(open('usage.pkl', 'rb'))).__name__)")
    assert lines == ["ResourceUsage"], lines


@test
def hard_exits(workdir):
    """os._exit, SIGKILL, SIGTERM within a span: the recorder ends by itself and its file is complete"""
    for number, (end, status) in enumerate((("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", -9),
                                            ("os.kill(os.getpid(), 15); time.sleep(5)", -15),
                                            ("os.abort()", -6))):
        python(workdir, IMPORTS + f"""
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
tracker = wattle.Tracker(sleep_time=0.05, output="{number}.sqlite")
tracker.start()
with wattle.span("done"): pass
wattle.span("open").__enter__()
time.sleep(0.1)
{end}
""", status=status)
        assert is_whole(workdir, f"{number}.sqlite")
        names = dict(workdir.rows("SELECT name, close FROM span", f"{number}.sqlite"))
        assert names["done"] == "ended" and names["open"] in ("open", "death", "thread end"), names


@test
def exits_in_threads(workdir):
    """sys.exit and an exception in a thread: end that thread only, and its spans"""
    _, done = python(workdir, TRACKED + """
threading.excepthook = lambda arguments: None
def leave():
    with wattle.span("leave"):
        sys.exit(3)
def fail():
    with wattle.span("fail"):
        raise ValueError
with tracker:
    for function in (leave, fail) * 5:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
""")
    assert closes(workdir, "leave") == closes(workdir, "fail") == {"ended": 5} and not done.stderr, done


@test
def threads_beyond_the_end(workdir):
    """daemon threads in spans and meters while the interpreter ends: no crash, no hang, no message"""
    for _ in range(2):
        _, done = python(workdir, IMPORTS + """
tracker = wattle.Tracker(sleep_time=0.05, disable_logs=True)
tracker.start()
def spans():
    while True:
        with wattle.span("busy"):
            pass
def meters():
    meter = wattle.Meter()
    while True:
        meter.start()
        meter.stop()
for function in (spans, spans, meters):
    threading.Thread(target=function, daemon=True).start()
time.sleep(0.1)
""")
        assert "Traceback" not in done.stderr and "Fatal" not in done.stderr, done


@test
def subinterpreter(workdir):
    """subinterpreter that ends with a started meter, as in embedding programs: its thread has ended before"""
    lines, _ = python(workdir, """
import sys
import _testcapi
code = "import sys; sys.path[:0] = %r\\nimport wattle\\nmeter = wattle.Meter()\\nmeter.start()" % [p for p in sys.path if p]
print([_testcapi.run_in_subinterp(code) for _ in range(2)])
""")
    assert lines == ["[0, 0]"], lines


@test
def exit_functions(workdir):
    """atexit functions, registered before and after the import: may use spans, trackers and meters"""
    lines, done = python(workdir, """
import atexit, sys
def last():
    with wattle.span("last"):
        with wattle.measure() as m:
            pass
    print("last", m.seconds >= 0)
atexit.register(last)
import wattle
def tracked():
    with wattle.Tracker(sleep_time=0.05, disable_logs=True) as tracker:
        with wattle.span("at exit"):
            pass
    print(tracker.report["blocks"][0]["name"])
atexit.register(tracked)
class Late:
    def __del__(self):
        with span("at the end"):
            pass
        print("deleted")
span = wattle.span
late = Late()
""")
    assert lines == ["at exit", "last True", "deleted"] and not done.stderr, done


@test
def signal_handlers(workdir):
    """signal handlers with spans and metrics within spans: all of both are recorded"""
    lines, _ = python(workdir, TRACKED + """
calls = 0
def handler(*_):
    global calls
    calls += 1
    with wattle.span("handler"):
        wattle.metric("signals", 1)
signal.signal(signal.SIGALRM, handler)
with tracker:
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    count = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with wattle.span("busy"):
            count += 1
            sum(range(300))  # slowly enough for the recorder to read it all
    signal.setitimer(signal.ITIMER_REAL, 0)
print(calls, count)
""")
    calls, count = map(int, lines[0].split())
    assert calls > 50, calls
    assert closes(workdir, "handler") == {"ended": calls}, (calls, closes(workdir, "handler"))
    assert closes(workdir, "busy") == {"ended": count}, (count, closes(workdir, "busy"))


@test
def interrupted_at_random(workdir):
    """KeyboardInterrupt at any moment in a loop of spans: each begun span has ended, and nesting is correct"""
    python(workdir, TRACKED + """
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
n = 0
with tracker:
    while n < 100:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                with wattle.span("outer"):
                    with wattle.span("inner"):
                        pass
        except KeyboardInterrupt:
            n += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(0.2)  # the ring was full: spans this fast are lost whole
    with wattle.span("after"):
        pass
""")
    assert closes(workdir, "after") == {"ended": 1}
    for name in ("outer", "inner"):
        assert set(closes(workdir, name)) <= {"ended", "unwound"}, (name, closes(workdir, name))
    around = workdir.rows("SELECT p.name, p.close FROM span s JOIN span p ON p.id = s.parent WHERE s.name = 'after'")
    assert not around, around
    wrong = workdir.rows("SELECT count(*) FROM span s JOIN span p ON p.id = s.parent WHERE p.name != 'outer' OR "
                      "s.begin_ns < p.begin_ns OR s.end_ns > p.end_ns")
    assert wrong == [(0,)], wrong


@test
def garbage(workdir):
    """trackers, meters, spans and runs in reference cycles: freed, their recorders end and temporary files are
    removed"""
    lines, _ = python(workdir, IMPORTS + """
import glob, tempfile
def descriptors():
    return len(os.listdir("/proc/self/fd"))
def once():
    tracker, meter, span = wattle.Tracker(sleep_time=0.05), wattle.Meter(), wattle.span("x")
    tracker.start()
    meter.start()
    span.__enter__()
    class Cycle: pass
    cycle = Cycle()
    cycle.everything = cycle, tracker, meter, span
    tracker.stop()
    run = wattle.open(tracker.run_file)
    cycle.run = run
    span.__exit__(None, None, None)
once()
gc.collect()
before = descriptors()
for _ in range(5):
    once()
gc.collect()
left = glob.glob(os.path.join(tempfile.gettempdir(), "wattle-*/run.sqlite"))
print(json.dumps([descriptors() - before, left]))
""")
    assert json.loads(lines[-1]) == [0, []], lines


if __name__ == "__main__":
    main()
