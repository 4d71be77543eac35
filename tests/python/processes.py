"""A tracked program that creates processes in every way of Python: their spans and their CPU time reach its tracker."""
from harness import main, test
from package import python

# Spawned workers import the program again, hence its main. `work` burns 0.1 s of CPU in a span.
PROGRAM = """
import concurrent.futures, multiprocessing, os, subprocess, sys, threading, time
import wattle

def work(number=0):
    with wattle.span("work"):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        wattle.metric("items", 1)
    return number

def main():
    with wattle.Tracker(sleep_time=0.05, output="run.sqlite", time_unit="seconds") as tracker:
        {body}
    print(tracker.report["cpu"]["target_cpu_s"], tracker.report["cpu"]["descendants_cpu_s"])

if __name__ == "__main__":
    main()
"""


def spans(workdir, body, status=0):
    """{pid: how many} of the ended spans `work`, and the CPU seconds of the whole target and of its descendants."""
    lines, _ = python(workdir, PROGRAM.replace("{body}", body.strip().replace("\n", "\n        ")), status=status)
    counts = dict(workdir.rows("SELECT pid, count(*) FROM span WHERE name = 'work' AND close = 'ended' GROUP BY pid"))
    return counts, *map(float, lines[-1].split())


def pool(method):
    return f"""
with multiprocessing.get_context("{method}").Pool(2) as pool:
    assert pool.map(work, range(6), chunksize=1) == list(range(6))
    pool.close()
    pool.join()
work()"""


def check_pool(workdir, body, spans_wanted=7):
    counts, cpu_s, descendants_s = spans(workdir, body)
    assert sum(counts.values()) == spans_wanted and len(counts) >= 2, counts
    assert descendants_s >= 0.1 * (spans_wanted - 1) * 0.9 and cpu_s >= descendants_s + 0.09, (cpu_s, descendants_s)
    items, = workdir.rows("SELECT count(*) FROM user_metric WHERE name = 'items'")[0]
    assert items == spans_wanted, items


@test
def pool_by_fork(workdir):
    """multiprocessing.Pool, fork: every span, metric and CPU second of the workers"""
    check_pool(workdir, pool("fork"))


@test
def pool_by_spawn(workdir):
    """multiprocessing.Pool, spawn"""
    check_pool(workdir, pool("spawn"))


@test
def pool_by_forkserver(workdir):
    """multiprocessing.Pool, forkserver: its workers are grandchildren"""
    check_pool(workdir, pool("forkserver"))


@test
def executors(workdir):
    """concurrent.futures, processes and threads"""
    check_pool(workdir, """
with concurrent.futures.ProcessPoolExecutor(2) as executor:
    list(executor.map(work, range(5)))
with concurrent.futures.ThreadPoolExecutor(2) as executor:
    list(executor.map(work, range(1)))""", 6)


@test
def a_pool_that_is_terminated(workdir):
    """end of the pool's with block: kills its workers; spans ended before are there"""
    counts, *_ = spans(workdir, """
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(work, range(4), chunksize=1)""")
    assert sum(counts.values()) == 4, counts


@test
def fork_in_a_block(workdir):
    """os.fork inside a span: the child's own end does not end the parent's, and its _exit does not affect the
    tracker"""
    counts, cpu_s, _ = spans(workdir, """
with wattle.span("outer"):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    os.waitpid(child, 0)
    work()""")
    assert sorted(counts.values()) == [1, 1], counts
    rows = workdir.rows("SELECT close, count(*) FROM span WHERE name = 'outer' GROUP BY close")
    assert ("ended", 1) in rows and sum(n for _, n in rows) <= 2, rows


@test
def a_child_that_leaves_the_block(workdir):
    """forked child that runs through the end of the tracker's with block: an error that the tracker is its parent's"""
    counts, *_ = spans(workdir, """
child = os.fork()
if child == 0:
    work()
    try:
        tracker.stop()
    except RuntimeError:
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
work()""")
    assert sorted(counts.values()) == [1, 1], counts


@test
def a_child_that_exits(workdir):
    """sys.exit in a forked child runs its atexit functions: the parent's tracker continues"""
    counts, *_ = spans(workdir, """
child = os.fork()
if child == 0:
    try:
        work()
        sys.exit(0)
    except SystemExit:
        import atexit
        atexit._run_exitfuncs()
        os._exit(0)
os.waitpid(child, 0)
work()""")
    assert sorted(counts.values()) == [1, 1], counts


@test
def programs(workdir):
    """subprocess: another Python, and a shell around it; each finds the recorder through the environment"""
    code = "import wattle\nwith wattle.span('work'): sum(range(3000000))"
    counts, _, descendants_s = spans(workdir, f"""
code = {code!r}
subprocess.run([sys.executable, "-c", code], check=True)
subprocess.run("exec " + sys.executable + " -c '" + code.replace("'", '"') + "'", shell=True, check=True)
os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
os.wait()""")
    assert sorted(counts.values()) == [1, 1, 1] and descendants_s > 0.05, (counts, descendants_s)


@test
def fork_with_threads(workdir):
    """forks while other threads are in spans: neither side hangs or loses spans"""
    counts, *_ = spans(workdir, """
over = threading.Event()
def busy():
    while not over.is_set():
        with wattle.span("busy"):
            time.sleep(0.0001)  # in a span nearly always, and no flood that a recorder without a CPU would have to cut
threads = [threading.Thread(target=busy) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(10):
    child = os.fork()
    if child == 0:
        with wattle.span("work"):
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
over.set()
[thread.join() for thread in threads]
work()""")
    assert sum(counts.values()) == 11 and len(counts) == 11, counts


@test
def forks_during_tracking(workdir):
    """forks while threads start and stop trackers and meters: each child has its own, and none hangs"""
    counts, *_ = spans(workdir, """
wattle.measure()  # no fork into an import: Python's own lock of a module stays held in the child
over = threading.Event()
def trackers():
    while not over.is_set():
        with wattle.Tracker(sleep_time=0.05, disable_logs=True):
            pass
def meters():
    while not over.is_set():
        with wattle.measure():
            pass
threads = [threading.Thread(target=function) for function in (trackers, trackers, meters)]
[thread.start() for thread in threads]
for _ in range(20):
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(30)
        with wattle.Tracker(sleep_time=0.05, disable_logs=True) as own, wattle.measure():
            with wattle.span("work"):
                pass
        os._exit(own.report["blocks"][0]["num_calls"])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
over.set()
[thread.join() for thread in threads]""")
    assert not counts, counts


@test
def forks_during_metering(workdir):
    """forks while another thread opens meters: a child that opens one finds no library list of glibc in mid-change"""
    lines, _ = python(workdir, """
import os, signal, threading
import wattle
wattle.measure()
over = threading.Event()
def meters():
    while not over.is_set():
        wattle.Meter()
thread = threading.Thread(target=meters)
thread.start()
statuses = set()
for _ in range(150):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        wattle.Meter()
        os._exit(0)
    statuses.add(os.waitpid(child, 0)[1])
over.set()
thread.join()
print(statuses)
""")
    assert lines == ["{0}"], lines


@test
def trackers_in_workers(workdir):
    """worker with a tracker of its own while its parent has one"""
    counts, *_ = spans(workdir, """
child = os.fork()
if child == 0:
    with wattle.Tracker(sleep_time=0.05, output="child.sqlite") as own:
        work()
    os._exit(0 if own.report["blocks"] else 9)
assert os.waitpid(child, 0)[1] == 0
work()""")
    assert list(counts.values()) == [1], counts
    assert workdir.rows("SELECT count(*) FROM span WHERE name = 'work'", "child.sqlite") == [(1,)]


if __name__ == "__main__":
    main()
