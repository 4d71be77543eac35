"""gpu_tracker's comparisons on wattle: sessions side by side, and pickles, hostile ones included."""
import logging
import math
import os
import pickle
import sys

from gpu_tracker_common import MARKS, TRACKING, need_pandas, pandas, refused, write
from harness import main, near, test

import wattle.compat.gpu_tracker as gput
from wattle.compat.gpu_tracker.sub_tracker import CodeBlockResults, SubTrackingResults


def session(workdir, name, scale, names):
    """Pickled results of a session, all its figures multiplied by scale."""
    frame = pandas.DataFrame({"min": [1.0, 2.0], "max": [3.0, 4.0], "mean": [2.0, 3.0], "std": [0.5, 0.25]},
                             index=["main_ram", "system_ram"]) * scale
    time_s = pandas.Series({"min": 1.0, "max": 2.0, "mean": 1.5, "std": 0.5, "total": 3.0}) * scale
    blocks = [CodeBlockResults(block, 5, 2, 2, time_s * (k + 1), frame * (k + 1)) for k, block in enumerate(names)]
    with open(workdir.folder / f"{name}.pkl", "wb") as file:
        pickle.dump(SubTrackingResults(frame, pandas.Series({"ram_unit": "gigabytes"}, dtype=object), blocks), file)
    return workdir.folder / f"{name}.pkl"


class Told(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@test
def comparison(workdir):
    """sessions: ascending by value; blocks whose names differ in the line only match in order of line, with a
    warning"""
    need_pandas()
    told = Told()
    logging.getLogger("wattle").addHandler(told)
    compared = gput.TrackingComparison({"A": session(workdir, "a", 2, ["a.py:9", "a.py:10", "x"]),
                                        "B": session(workdir, "b", 1, ["x", "a.py:12", "a.py:7"])})
    logging.getLogger("wattle").removeHandler(told)
    assert len(told.texts) == 2 and all(part in told.texts[0]
                                        for part in ('"a.py:9"', '"A"', '"a.py:7"', '"B"')), told.texts
    values = compared.compare("max").to_json()
    assert values["overall_resource_usage"]["main_ram"] == {"B": 3.0, "A": 6.0}
    assert list(values["overall_resource_usage"]["main_ram"]) == ["B", "A"]
    assert values["code_block_compute_time"] == {"a.py:7 -> a.py:9": {"A": 4.0, "B": 6.0},
                                                 "a.py:10 -> a.py:12": {"B": 4.0, "A": 8.0},
                                                 "x": {"B": 2.0, "A": 12.0}}, values["code_block_compute_time"]
    assert values["code_block_resource_usage"]["system_ram"]["x"] == {"B": 4.0, "A": 24.0}
    assert "\ta.py:7 -> a.py:9:\n" in str(compared.compare())
    assert "Code Block Compute Time:\n" in str(compared.compare())
    refused(ValueError, lambda: compared.compare("median"), "median", "min max mean std")


@test
def no_match(workdir):
    """different number of blocks, or a name without a match: an error that names both sessions"""
    need_pandas()
    first = session(workdir, "a", 1, ["x", "a.py:1"])
    for names, *parts in ((["x"], "2 code blocks", '"B" has 1'),
                          (["x", "b.py:1"], '"a.py:1"', '"A"', '"b.py:1"', '"B"'),
                          (["x", "a.py:f"], '"a.py:1"', '"a.py:f"')):
        second = session(workdir, "b", 1, names)
        refused(ValueError, lambda s=second: gput.TrackingComparison({"A": first, "B": s}), *parts)
    refused(ValueError, lambda: gput.TrackingComparison({}), "at least one")


@test
def other_sources(workdir):
    """session as JSON of `wattle blocks`, or as a run file"""
    need_pandas()
    write(workdir, "t.csv", TRACKING), write(workdir, "s.csv", MARKS)
    done = workdir.wattle("blocks", "--tracking-file", "t.csv", "--sub-tracking-file", "s.csv", "--format", "json",
                          "-o",
                          "b.json")
    assert done.returncode == 0, done
    found = gput.SubTrackingAnalyzer(workdir.folder / "t.csv", workdir.folder / "s.csv").sub_tracking_results()
    with open(workdir.folder / "b.pkl", "wb") as file:
        pickle.dump(found, file)
    series = gput.TrackingComparison({"J": workdir.folder / "b.json",
                                      "P": workdir.folder / "b.pkl"}).compare("std").code_block_compute_time
    assert series["inner"]["J"] == series["inner"]["P"] == math.sqrt(0.07421875), series
    (workdir.folder / "p.py").write_text("import time, wattle\nwith wattle.span('x'): time.sleep(0.1)\n")
    workdir.report("--", sys.executable, "p.py")
    compared = gput.TrackingComparison({"R": workdir.folder / "run.sqlite"}).compare()
    near(float(compared.code_block_compute_time["x"]["R"]), 0.1, relative=0.5)
    for text in ('{"run": {}}', '{"overall": 1, "static_data": {}, "code_block_results": []}', "{"):
        write(workdir, "other.json", text)
        refused(ValueError, lambda: gput.TrackingComparison({"A": workdir.folder / "other.json"}), "other.json",
                "holds no sub-tracking results")


# ---- pickles from other sources ----

class Runs:
    """A hostile pickle: names any function, to be called when it is read."""

    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


@test
def gpu_trackers_pickles(workdir):
    """pickles that name gpu_tracker's classes and sqlalchemy's texts: read as wattle's"""
    need_pandas()
    path = session(workdir, "a", 1, ["x"])
    pickled = path.read_bytes()
    ours = SubTrackingResults.__module__.encode()
    theirs = b"gpu_tracker.sub_tracker"
    assert ours in pickled
    renamed = pickled.replace(b"\x8c" + bytes([len(ours)]) + ours, b"\x8c" + bytes([len(theirs)]) + theirs)
    path.write_bytes(b"\x80\x04" + renamed[11:])  # without the frame, whose length has changed
    assert gput.TrackingComparison({"A": path}).results_map["A"].code_block_results[0].name == "x"


@test
def hostile_pickles(workdir):
    """hostile pickle: runs nothing; names other than results are refused with one line"""
    need_pandas()
    touched = workdir.folder / "touched"
    frame = pandas.DataFrame({"mean": [1.0]}, index=["main_ram"])
    ours = b"\x8c\x17gpu_tracker.sub_tracker\x8c\x10CodeBlockResults\x93"
    patch = b"\x80\x04" + ours + b"N}\x8c\x05evils" + ours + b"s\x86b."  # CodeBlockResults.evils = CodeBlockResults
    for number, evil in enumerate((
            pickle.dumps(Runs(os.system, f"touch {touched}")),
            pickle.dumps(SubTrackingResults(frame, pandas.Series(dtype=object), [Runs(os.mkdir, str(touched))])),
            pickle.dumps(Runs(eval, f"open({str(touched)!r}, 'w')"), 2),
            b"\x80\x04\x8c\x11pandas.core.frame\x8c\x10DataFrame.to_csv\x93.",
            patch, pickle.dumps([1]), b"cos\nsystem\n(S'true'\ntR.", b"", b"\x80\x04", b"\0" * 100)):
        path = workdir.folder / f"{number}.pkl"
        path.write_bytes(evil)
        refused(ValueError, lambda p=path: gput.TrackingComparison({"A": p}), f"{number}.pkl",
                "no pickled sub-tracking results")
        assert not touched.exists() and not hasattr(CodeBlockResults, "evils"), number


if __name__ == "__main__":
    main()
