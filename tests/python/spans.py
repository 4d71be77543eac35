"""wattle.span in all its forms: records of a Python program in the run file."""
from harness import main, test
from package import python

RUN = """
    import sys, wattle, wattle._wattle as c
    tracker = c.Tracker(interval_s=0.01, output="run.sqlite", overwrite=True)
    tracker.start()
"""


def calls(workdir, code, **options):
    """{name: how often} of a program's spans while it is tracked."""
    python(workdir, RUN + code + "\n    tracker.stop()\n", **options)
    return dict(workdir.rows("SELECT name, count(*) FROM span WHERE close = 'ended' GROUP BY name"))


@test
def nested(workdir):
    """nested spans, one object inside itself, names of every alphabet"""
    assert calls(workdir, """
    forward = wattle.span("forward")
    for i in range(100):
        with forward, wattle.span("層 \\U0001f525"), forward:
            pass
    """) == {"forward": 200, "層 \U0001f525": 100}


@test
def crossing(workdir):
    """generator's span that ends inside another one: ends itself and not the other"""
    assert calls(workdir, """
    def numbers():
        with wattle.span("generator"):
            yield 1
    numbers = numbers()
    next(numbers)
    with wattle.span("outer"):
        with wattle.span("inner"):
            assert next(numbers, None) is None
        with wattle.span("inner"):
            pass
    """) == {"generator": 1, "outer": 1, "inner": 2}
    begin, end = workdir.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'generator'")[0]
    outer = workdir.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'outer'")[0]
    first = workdir.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'inner' ORDER BY begin_ns")[0]
    assert begin < outer[0] < first[0] < end < first[1] < outer[1], (begin, end, outer, first)


@test
def decorated(workdir):
    """functions, methods, static, class methods and properties: each call a span; names, results and signatures stay"""
    assert calls(workdir, """
    import inspect
    @wattle.span("function")
    def add(a: int, b: int = 2) -> int:
        "adds"
        return a + b
    class Model:
        @wattle.span("method")
        def forward(self, x):
            return x * 2
        @staticmethod
        @wattle.span("static")
        def one():
            return 1
        @wattle.span("class")
        @classmethod
        def two(cls):
            return cls.__name__
        @property
        @wattle.span("property")
        def three(self):
            return 3
    assert add(1) == 3 and add(1, b=1) == 2 and add.__name__ == "add" and add.__doc__ == "adds"
    assert str(inspect.signature(add)) == "(a: int, b: int = 2) -> int"
    model = Model()
    assert model.forward(2) == 4 and Model.one() == model.one() == 1 and Model.two() == "Model" and model.three == 3
    for wrong in (3, Model, None):
        try:
            wattle.span("wrong")(wrong)
        except TypeError as refused:
            assert "functions and methods" in str(refused)
        else:
            raise AssertionError(wrong)
    """) == {"function": 2, "method": 1, "static": 2, "class": 1, "property": 1}


@test
def asynchronous(workdir):
    """coroutines and `async with`: ranges; overlapping tasks have each its own, with its duration"""
    assert calls(workdir, """
    import asyncio, inspect
    shared = wattle.span("with")
    @wattle.span("coroutine")
    async def work(seconds):
        async with shared:
            async with shared:
                await asyncio.sleep(seconds)
        return seconds
    assert inspect.iscoroutinefunction(work)
    async def main():
        assert await asyncio.gather(work(0.03), work(0.01), work(0.02)) == [0.03, 0.01, 0.02]
    asyncio.run(main())
    """) == {"coroutine": 3, "with": 6}
    lasted = [s for s, in workdir.rows(
        "SELECT (end_ns - begin_ns) / 1e9 FROM span WHERE name = 'coroutine' ORDER BY 1")]
    for actual, least in zip(lasted, (0.01, 0.02, 0.03)):
        assert actual > least - 0.001, lasted
    assert workdir.rows("SELECT DISTINCT kind FROM span") == [("range",)]


@test
def generators(workdir):
    """generators and asynchronous ones: sent values, thrown exceptions, results and an early end reach the inner one"""
    assert calls(workdir, """
    import asyncio
    ended = []
    @wattle.span("generator")
    def numbers():
        try:
            got = yield 1
            try:
                yield got
            except KeyError:
                yield "caught"
            return "result"
        finally:
            ended.append("plain")
    g = numbers()
    assert next(g) == 1 and g.send(5) == 5 and g.throw(KeyError("x")) == "caught"
    try:
        next(g)
    except StopIteration as stop:
        assert stop.value == "result"
    for _ in numbers():
        break
    @wattle.span("asynchronous")
    async def later():
        try:
            got = yield 1
            try:
                yield got
            except KeyError:
                yield "caught"
        finally:
            await asyncio.sleep(0)
            ended.append("asynchronous")
    async def main():
        g = later()
        assert await g.asend(None) == 1 and await g.asend(5) == 5 and await g.athrow(KeyError("x")) == "caught"
        assert [item async for item in g] == []
        g = later()
        await g.asend(None)
        await g.aclose()
        assert [item async for item in later()] == [1, None]
    asyncio.run(main())
    assert sorted(ended) == ["asynchronous"] * 3 + ["plain"] * 2, ended
    """) == {"generator": 2, "asynchronous": 3}


@test
def exceptions(workdir):
    """exception: passes through a span unchanged, and the span ends where the exception left it"""
    assert calls(workdir, """
    class Odd(BaseException):
        pass
    def fail():
        with wattle.span("outer"), wattle.span("inner"):
            raise Odd("here")
    try:
        fail()
    except Odd as odd:
        assert odd.args == ("here",) and odd.__traceback__.tb_next.tb_frame.f_code is fail.__code__
        assert odd.__context__ is None
    with wattle.span("outer"):
        pass
    """) == {"outer": 2, "inner": 1}


@test
def objects(workdir):
    """a span is its name: repr, pickle, copy; names are str without NUL; metrics are numbers, and unknown ones are
    dropped"""
    python(workdir, """
    import copy, math, pickle, wattle
    span = wattle.span("a 'name'")
    assert repr(span) == f"wattle.span({span.name!r})" and span.name == "a 'name'"
    assert pickle.loads(pickle.dumps(span)).name == copy.copy(span).name == span.name
    for wrong, kind in ((3, TypeError), (b"x", TypeError), ("a\\0b", ValueError), ("\\ud800", ValueError),
                        (None, TypeError)):
        for act in (wattle.span, wattle.mark, wattle.range_begin, lambda name: wattle.metric(name, 1)):
            try:
                act(wrong)
            except kind:
                pass
            else:
                raise AssertionError((act, wrong))
    class Half:
        def __float__(self):
            return 0.5
    for value in (1, 2.5, True, Half(), math.nan, math.inf, 10 ** 400):
        wattle.metric("value", value)
    for wrong in ("1", None, 1j):
        try:
            wattle.metric("value", wrong)
        except TypeError:
            pass
        else:
            raise AssertionError(wrong)
    assert wattle.range_begin("nobody records") == 0 and wattle.range_end(0) is None and not wattle.is_recording()
    try:
        span.name = "other"
    except AttributeError:
        pass
    """)


@test
def interpreters(workdir):
    """subinterpreters of one process: each has its module, all spans are there"""
    assert calls(workdir, """
    import _xxsubinterpreters as interpreters
    code = "import sys; sys.path[:0] = %r\\nimport wattle\\nfor i in range(100):\\n    with wattle.span('inside'): pass"
    for _ in range(5):
        number = interpreters.create()
        interpreters.run_string(number, code % [path for path in sys.path if path])
        interpreters.destroy(number)
    with wattle.span("outside"):
        pass
    """) == {"inside": 500, "outside": 1}


@test
def no_leaks(workdir):
    """10^5 spans of each form: no object, reference or memory remains"""
    python(workdir, """
    import asyncio, gc, sys, tracemalloc, wattle
    shared, name = wattle.span("shared"), "made" + str(id(wattle))
    @wattle.span("decorated")
    def decorated():
        pass
    async def asynchronous(n):
        for _ in range(n):
            async with shared:
                pass
    def work(n):
        for i in range(n):
            with shared, wattle.span(name), shared:
                wattle.metric("items", i)
            decorated()
        wattle.range_end(wattle.range_begin(name))
        wattle.mark(name)
        asyncio.run(asynchronous(n // 10))
    def state():
        gc.collect()
        return sys.getrefcount(name), sys.getrefcount(shared), sys.getrefcount(None), tracemalloc.get_traced_memory()[0]
    with wattle.Tracker(sleep_time=0.05, disable_logs=True):
        tracemalloc.start()
        work(1000)
        before = state()
        work(30000)
        after = state()
    assert after[0] == before[0] and after[1] == before[1], (before, after)
    assert abs(after[2] - before[2]) < 100 and after[3] - before[3] < 150_000, (before, after)
    """)


@test
def no_leaks_of_runs(workdir):
    """runs, columns, meters and trackers: no memory or descriptor remains"""
    python(workdir, """
    import ctypes, gc, os, tracemalloc, wattle
    class Heap(ctypes.Structure):  # struct mallinfo2
        _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                         "fsmblks", "uordblks", "fordblks", "keepcost")]
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Heap
    def allocated():  # bytes; unlike the resident size, it does not depend on free memory that malloc keeps
        heap = mallinfo2()
        return heap.uordblks + heap.hblkhd
    with wattle.Tracker(sleep_time=0.01, disable_logs=True, output="run.sqlite"):
        for _ in range(100):
            with wattle.span("x"):
                wattle.metric("m", 1)
    def work():
        run = wattle.open("run.sqlite")
        run.report, run.blocks, run.events, [run.samples.buffer(c) for c in run.samples], run.spans.names, run.devices
        run.spans.buffer("begin_ns").tolist()
        with wattle.measure() as m:
            pass
        for wrong in ("nothing", "/etc/passwd"):
            try:
                wattle.open(wrong)
            except (OSError, ValueError):
                pass
    for _ in range(3):
        work()
    gc.collect()
    files, before = len(os.listdir("/proc/self/fd")), allocated()
    for _ in range(60):
        work()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == files
    grown = allocated() - before
    assert grown < 60 * 500 or "WATTLE_SANITIZED" in os.environ, f"{grown} bytes for 60 runs"  # libasan keeps freed blocks
    tracemalloc.start()
    work()
    traced = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        work()
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] - traced < 50000
    """)


if __name__ == "__main__":
    main()
