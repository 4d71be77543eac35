"""wattle.span in all its forms: what a program in Python leaves in the run file."""
from harness import main, near, test
from package import python

RUN = """
    import sys, wattle, wattle._wattle as c
    tracker = c.Tracker(interval_s=0.01, output="run.sqlite", overwrite=True)
    tracker.start()
"""


def calls(room, code, **options):
    """{name: how often} of the spans that a program leaves while it is tracked."""
    python(room, RUN + code + "\n    tracker.stop()\n", **options)
    return dict(room.rows("SELECT name, count(*) FROM span WHERE close = 'ended' GROUP BY name"))


@test
def nested(room):
    """spans in spans, one object inside itself, names of every alphabet"""
    assert calls(room, """
    forward = wattle.span("forward")
    for i in range(100):
        with forward, wattle.span("層 \\U0001f525"), forward:
            pass
    """) == {"forward": 200, "層 \U0001f525": 100}


@test
def crossing(room):
    """a generator's span that ends inside another one ends itself and not the other"""
    assert calls(room, """
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
    begin, end = room.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'generator'")[0]
    outer = room.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'outer'")[0]
    first = room.rows("SELECT begin_ns, end_ns FROM span WHERE name = 'inner' ORDER BY begin_ns")[0]
    assert begin < outer[0] < first[0] < end < first[1] < outer[1], (begin, end, outer, first)


if __name__ == "__main__":
    main()
