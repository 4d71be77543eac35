"""Threads, tasks and generators: each has its own spans; several trackers and meters may exist."""
import json

from harness import main, near, test
from package import python

IMPORTS = """
import asyncio, concurrent.futures, gc, json, threading, time
import wattle
def busy(seconds=0.05):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
"""
TRACKED = IMPORTS + 'tracker = wattle.Tracker(sleep_time=0.05, output="run.sqlite", disable_logs=True)\n'


def count(workdir, name):
    return workdir.rows(f"SELECT count(*) FROM span WHERE name = '{name}' AND close = 'ended'")[0][0]


def wrongly_nested(workdir):
    """Nested spans outside their parents, or with a parent in another thread."""
    return workdir.rows("SELECT count(*) FROM span s JOIN span p ON p.id = s.parent WHERE s.kind = 'nested' AND "
                     "(s.tid != p.tid OR s.begin_ns < p.begin_ns OR s.end_ns > p.end_ns)")[0][0]


@test
def threads(workdir):
    """eight threads that share one span object: every call is recorded, in its own thread"""
    python(workdir, TRACKED + """
shared = wattle.span("shared")
def work():
    for _ in range(2000):
        with shared, wattle.span("inner"):
            wattle.metric("items", 2)
with tracker:
    workers = [threading.Thread(target=work) for _ in range(8)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
""")
    assert count(workdir, "shared") == count(workdir, "inner") == 16000 and wrongly_nested(workdir) == 0
    assert workdir.rows("SELECT count(DISTINCT tid), min(n), max(n) FROM (SELECT tid, count(*) AS n FROM span "
                     "WHERE name = 'shared' GROUP BY tid)") == [(8, 2000, 2000)]
    assert workdir.rows("SELECT count(*), sum(value) FROM user_metric WHERE name = 'items'") == [(16000, 32000)]


@test
def many_short_threads(workdir):
    """three hundred threads in succession, each with a span"""
    python(workdir, TRACKED + """
def work():
    with wattle.span("short"):
        pass
with tracker:
    for _ in range(300):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
""")
    assert count(workdir, "short") == 300


@test
def the_gil_is_free(workdir):
    """one thread waits in start and stop of trackers: others continue"""
    lines, _ = python(workdir, IMPORTS + """
import sys
sys.setswitchinterval(0.0005)
n, longest = 0, 0.0
over = threading.Event()
def watch():
    global longest
    before = time.monotonic()
    while not over.is_set():
        now = time.monotonic()
        longest = max(longest, now - before)
        before = now
watcher = threading.Thread(target=watch)
watcher.start()
taken = 0.0
for _ in range(10):
    tracker = wattle.Tracker(sleep_time=0.05, disable_logs=True)
    begin = time.monotonic()
    tracker.start()
    tracker.stop()
    taken += time.monotonic() - begin
over.set()
watcher.join()
print(json.dumps([longest, taken]))
""")
    longest_s, taken_s = json.loads(lines[0])
    assert longest_s < 0.6 * taken_s, (longest_s, taken_s)


@test
def trackers_in_threads(workdir):
    """four threads, each with its tracker, at once: each has its report; one tracker is stopped by one thread only"""
    lines, _ = python(workdir, IMPORTS + """
def work(number):
    with wattle.Tracker(sleep_time=0.05, output=f"{number}.sqlite", disable_logs=True) as tracker:
        busy()
    return tracker.report["cpu"]["target_cpu_s"]
with concurrent.futures.ThreadPoolExecutor(4) as executor:
    print(json.dumps(list(executor.map(work, range(4)))))
tracker = wattle.Tracker(sleep_time=0.05, disable_logs=True)
tracker.start()
def stop(_):
    try:
        tracker.stop()
        return 1
    except RuntimeError:
        return 0
with concurrent.futures.ThreadPoolExecutor(4) as executor:
    print(sum(executor.map(stop, range(4))))
""")
    assert all(cpu_s >= 0.04 for cpu_s in json.loads(lines[0])) and lines[1] == "1", lines


@test
def one_recorder_in_three_threads(workdir):
    """start, stop, report and close of one recorder from three threads in any order: refused, never freed memory"""
    python(workdir, IMPORTS + """
import random
from wattle import _wattle
random.seed(1)
def use(recorder, *calls):
    for call in calls:
        try:
            getattr(recorder, call)()
        except (RuntimeError, OSError):
            pass
        time.sleep(random.random() * 0.003)
for _ in range(40):
    recorder = _wattle.Tracker(interval_s=0.05, quiet=True)
    workers = [threading.Thread(target=use, args=(recorder, *calls)) for calls in (
        ("start", "stop", "report_json"), ("stop", "close"), ("report_json", "close", "start"))]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
""", env={"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"})


@test
def meters_in_threads(workdir):
    """a meter in each of four threads, and a shared one: readings, or a clear refusal, never a crash"""
    lines, _ = python(workdir, IMPORTS + """
shared = wattle.Meter()
shared.start()
def work(_):
    meter = wattle.Meter()
    for _ in range(50):
        meter.start()
        shared.read()
        assert meter.stop().seconds >= 0
    return True
with concurrent.futures.ThreadPoolExecutor(4) as executor:
    print(all(executor.map(work, range(4))), shared.stop().seconds > 0)
""")
    assert lines == ["True True"], lines


@test
def tasks(workdir):
    """asyncio: overlapping tasks in a thread, by `async with` and as decorated coroutines: each with its own
    duration"""
    python(workdir, TRACKED + """
@wattle.span("decorated")
async def decorated():
    await asyncio.sleep(0.1)
async def task(number):
    async with wattle.span(f"task {number}"):
        with wattle.span("inside"):
            pass
        await asyncio.sleep(0.05 * (number + 1))
        await decorated()
async def main():
    await asyncio.gather(*(task(number) for number in range(4)))
    await asyncio.to_thread(wattle.span("in a thread")(busy))
with tracker:
    asyncio.run(main())
""")
    for number in range(4):
        seconds, = workdir.rows(f"SELECT (end_ns - begin_ns) / 1e9 FROM span WHERE name = 'task {number}'")[0]
        near(seconds, 0.05 * (number + 1) + 0.1, absolute=0.05)
    assert (count(workdir, "decorated"), count(workdir, "inside"), count(workdir, "in a thread")) == (4, 4, 1)
    assert wrongly_nested(workdir) == 0


@test
def cancelled_tasks(workdir):
    """task that is cancelled, times out or fails: its spans are ended"""
    python(workdir, TRACKED + """
async def slow(name):
    async with wattle.span(name):
        await asyncio.sleep(10)
async def fails():
    async with wattle.span("fails"):
        raise ValueError
async def main():
    task = asyncio.create_task(slow("cancelled"))
    await asyncio.sleep(0.05)
    task.cancel()
    try:
        await asyncio.wait_for(slow("timed out"), 0.05)
    except asyncio.TimeoutError:
        pass
    print(await asyncio.gather(task, fails(), return_exceptions=True))
with tracker:
    asyncio.run(main())
""")
    assert [count(workdir, name) for name in ("cancelled", "timed out", "fails")] == [1, 1, 1]


@test
def a_with_block_over_await(workdir):
    """`with`, not `async with`, around an await in overlapping tasks: nothing is lost, later spans are correct"""
    _, done = python(workdir, TRACKED + """
async def task(number):
    with wattle.span("crossing"):
        await asyncio.sleep(0.02 * (3 - number))
async def main():
    await asyncio.gather(*(task(number) for number in range(3)))
with tracker:
    asyncio.run(main())
    with wattle.span("after"):
        pass
""")
    assert workdir.rows("SELECT count(*) FROM span WHERE name = 'crossing' AND end_ns IS NOT NULL") == [(3,)]
    assert workdir.rows("SELECT parent FROM span WHERE name = 'after'") == [(None,)] and not done.stderr, done


@test
def generators(workdir):
    """generators left half-way: closed, collected or abandoned; blocks around and after them are correct"""
    _, done = python(workdir, TRACKED + """
def numbers(name):
    with wattle.span(name):
        for number in range(10):
            yield number
@wattle.span("decorated")
def decorated():
    yield from range(3)
with tracker:
    with wattle.span("outer"):
        closed = numbers("closed")
        next(closed)
        closed.close()
        collected = numbers("collected")
        next(collected)
        del collected
        gc.collect()
        abandoned = numbers("abandoned")
        next(abandoned)
    with wattle.span("after"):
        assert list(decorated()) == [0, 1, 2]
    elsewhere = numbers("elsewhere")
    next(elsewhere)
    worker = threading.Thread(target=lambda: list(elsewhere))
    worker.start()
    worker.join()
""")
    for name in ("closed", "collected", "outer", "after", "decorated"):
        assert count(workdir, name) == 1, (name, workdir.rows("SELECT name, close FROM span"))
    parents = dict(workdir.rows("SELECT s.name, p.name FROM span s LEFT JOIN span p ON p.id = s.parent"))
    assert parents["after"] == "abandoned" and parents["outer"] is None, parents  # the abandoned one stays open
    assert not done.stderr, done


if __name__ == "__main__":
    main()
