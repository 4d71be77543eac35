"""Run.divide and Run.divide_spans: the target's energy divided by a timeline."""
import os
import time
from array import array

import powercap_player
from harness import main, near, test

import wattle
from wattle import _wattle

WATTS = 50


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def program():
    with wattle.span("a"):
        burn(0.2)
        with wattle.span("not asked for"):
            burn(0.1)
        with wattle.span("b"):
            burn(0.3)
    burn(0.2)


def recorded(workdir):
    """A run of `program` on a machine of constant power"""
    top = powercap_player.tree(workdir)
    player = powercap_player.Player(workdir, top, WATTS)
    os.environ["WATTLE_SYSFS"] = str(top)
    try:
        tracker = _wattle.Tracker(interval_s=0.01, output=workdir.folder / "run.sqlite", quiet=True)
        tracker.start()
        program()
        tracker.stop()
        tracker.close()
    finally:
        player.close()
        del os.environ["WATTLE_SYSFS"]
    return _wattle.Run(workdir.folder / "run.sqlite")


def pieces(*rows):
    begin, end, column = zip(*rows) if rows else ((), (), ())
    return array("q", begin), array("q", end), array("i", column)


@test
def dealing(workdir):
    """overlapping intervals: shared evenly in any order; uncovered time is column 0's; groups are sums with errors of
    their own; domains by name, or the total without some"""
    import json
    run = recorded(workdir)
    report = json.loads(run.report_json())
    target_j, length_s = report["energy"]["ledger"]["target_j"], report["run"]["duration_s"]
    (whole,) = run.divide(*pieces(), 1)
    near(whole[0], length_s, relative=1e-9)
    near(whole[1], target_j, relative=1e-9)
    assert whole[2] > 0

    t0 = run.segments()[0]["start_ns"]
    s = 1_000_000_000
    rows = [(t0 + s // 2, t0 + 3 * s // 4, 2), (t0 + s // 10, t0 + 6 * s // 10, 1), (t0 + s // 2, t0 + s // 2, 1)]
    told = run.divide(*pieces(*rows), 3, groups=[0, 1, 1])
    near(told[1][0], 0.45, relative=1e-6)
    near(told[2][0], 0.2, relative=1e-6)
    near(sum(row[0] for row in told[:3]), length_s, relative=1e-9)
    near(sum(row[1] for row in told[:3]), target_j, relative=1e-9)
    near(told[4][0], 0.65, relative=1e-6)
    near(told[4][1], told[1][1] + told[2][1], relative=1e-9)
    near(told[3][1], told[0][1], relative=1e-9)

    assert run.divide(*pieces(*rows), 3, domain="package-0") == told[:3]
    assert all(row[1] != row[1] for row in run.divide(*pieces(*rows), 3, without=["package-0"])), "NaN: nothing is left"


@test
def by_spans(workdir):
    """time belongs to the innermost of the requested spans; other spans are ignored"""
    run = recorded(workdir)
    told = run.divide_spans({"a": 1, "b": 2}, 3)
    near(told[1][0], 0.3, relative=0.15)
    near(told[2][0], 0.3, relative=0.15)
    assert told[0][0] > 0.19 and told[2][1] > 0
    both = run.divide_spans({"a": 1, "b": 1}, 2)
    near(both[1][0], told[1][0] + told[2][0], relative=1e-6)
    other = run.divide_spans({"a": 1, "b": 2}, 3, pid=1)
    assert other[1][0] == other[2][0] == 0


@test
def refused(workdir):
    """invalid arguments: refused, with the invalid item"""
    run = recorded(workdir)
    good = pieces((1, 2, 0))
    for call, words in ((lambda: run.divide(*good, 0), "n_columns"),
                        (lambda: run.divide(*pieces((1, 2, 3)), 3), "column 3 of 3"),
                        (lambda: run.divide(*pieces((2, 1, 0)), 3), "from 2 to 1 ns"),
                        (lambda: run.divide(array("d", [1]), good[1], good[2], 1), "begin_ns must be integers"),
                        (lambda: run.divide(good[0], good[1], array("i"), 1), "column has 0"),
                        (lambda: run.divide(*good, 1, domain="gpu-7"), "no domain 'gpu-7'"),
                        (lambda: run.divide(*good, 2, groups=[0]), "groups has 1 items for 2 columns"),
                        (lambda: run.divide(*good, 2, groups=[0, 2]), "group 2 of column 1"),
                        (lambda: run.divide_spans({"a": 5}, 2), "column 5 of 'a'")):
        try:
            call()
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"{words}: no error")


if __name__ == "__main__":
    main()
