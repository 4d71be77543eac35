"""wattle.open: reports, arrays without copies, tables, data frames and notebooks, compared with the file read by
sqlite3."""
import json
import math

from harness import main, near, test
from package import python

RECORD = """
    import time, wattle
    with wattle.Tracker(sleep_time=0.01, output="run.sqlite", overwrite=True) as tracker:
        for _ in range(3):
            with wattle.span("outer <b>&"):
                with wattle.span("inner"):
                    time.sleep(0.03)
                wattle.metric("items", 2)
        wattle.mark("half")
        wattle.range_begin("open")
"""


def recorded(workdir):
    python(workdir, RECORD)
    return workdir


def told(workdir, code):
    """Output of a program that opened the run, as JSON."""
    lines, _ = python(workdir, "    import json, wattle\n    run = wattle.open('run.sqlite')\n" + code)
    return json.loads(lines[-1])


@test
def samples(workdir):
    """every sample of the file, missing ones masked; arrays are the run's memory, read-only, and outlive it"""
    actual = told(recorded(workdir), """
    import numpy
    column = run.samples["main_rss_bytes"]
    again = numpy.asarray(memoryview(run.samples.buffer("main_rss_bytes")))
    shared = numpy.shares_memory(column.data, again)
    unit = run.samples.unit["main_rss_bytes"], run.samples.units["t_ns"]
    lists = {name: array.tolist() for name, array in run.samples.items()}
    run.close()
    del run, again
    print(json.dumps({"lists": lists, "shared": bool(shared), "writeable": column.data.flags.writeable, "unit": unit,
                      "alive": column.tolist()}))
    """)
    names = [row[1] for row in workdir.rows("PRAGMA table_info(sample)")]
    rows = workdir.rows("SELECT * FROM sample ORDER BY t_ns")
    assert actual["shared"] and not actual["writeable"] and actual["unit"] == ["bytes", "ns"], actual
    assert {name: actual["lists"][name] for name in names} == dict(zip(names, map(list, zip(*rows))))
    assert actual["alive"] == actual["lists"]["main_rss_bytes"]


@test
def spans(workdir):
    """every span of the file, by strides over the array of structs; one that never ended is masked"""
    actual = told(recorded(workdir), """
    spans = run.spans
    print(json.dumps({"rows": list(zip(spans["name"].tolist(), spans["begin_ns"].tolist(), spans["end_ns"].tolist(),
                                       spans["parent"].tolist())),
                      "strides": spans["begin_ns"].data.strides[0] > 8, "n": spans.n}))
    """)
    rows = workdir.rows("SELECT name, begin_ns, end_ns, parent FROM span ORDER BY id")
    actual_rows, true_rows = (sorted(map(list, one), key=lambda row: row[1]) for one in (actual["rows"], rows))
    assert actual_rows == true_rows, (actual, rows)
    assert actual["strides"] and actual["n"] == 7 and [r for r in actual["rows"] if r[2] is None][0][0] == "open"


@test
def findings(workdir):
    """report and blocks: those of the program; rows, columns and names of the table agree"""
    actual = told(recorded(workdir), """
    blocks = run.blocks
    print(json.dumps({"report": run.report, "text": run.text, "calls": blocks["num_calls"].tolist(),
                      "names": blocks.names, "total_s": blocks["total_s"].tolist(),
                      "row": blocks.find("inner"), "length": len(blocks),
                      "half": len(blocks[1:]), "items": run.user_metrics["value"].sum(),
                      "kinds": run.events["kind"].tolist()}))
    """)
    report = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)
    assert actual["report"] == report and actual["text"] == workdir.wattle("report", "run.sqlite", "--all").stdout
    assert actual["names"] == ["inner", "open", "outer <b>&"] and actual["calls"][0] == 3, actual["names"]
    assert actual["row"]["total_s"] == actual["total_s"][0] == report["blocks"][0]["compute_time"]["total"]
    near(actual["total_s"][0], 0.09, relative=0.3)
    assert actual["items"] == 6 and "mark" in actual["kinds"] and actual["half"] == actual["length"] - 1


@test
def frames(workdir):
    """data frames by date: NaN for unknown values, samples of devices, spans with their seconds"""
    actual = told(recorded(workdir), """
    import pandas
    frame, spans, device = run.to_pandas(), run.to_pandas("spans"), run.to_pandas(next(iter(run.devices)))
    off = abs((frame.index[0] - pandas.Timestamp(run.report["run"]["start"])).total_seconds())
    print(json.dumps({"off": off, "rows": len(frame), "missing": int(frame["main_pss_bytes"].isna().sum()),
                      "seconds": spans[spans["name"] == "inner"]["seconds"].sum(),
                      "open": int(spans["seconds"].isna().sum()),
                      "device": len(device), "blocks": run.to_pandas("blocks")["num_calls"].tolist(),
                      "utc": str(frame.index.tz), "wall": run.wall_time(int(run.samples["t_ns"][0])).isoformat()}))
    """)
    n, missing = workdir.rows("SELECT count(*), sum(main_pss_bytes IS NULL) FROM sample")[0]
    assert actual["rows"] == actual["device"] == n and actual["missing"] == missing and actual["utc"] == "UTC", actual
    assert actual["open"] == 1 and actual["off"] < 0.5, actual
    near(actual["seconds"], 0.09, relative=0.3)


@test
def notebooks(workdir):
    """reprs of runs, reports, tables and columns: tables, with names escaped"""
    actual = told(recorded(workdir), """
    shown = [run._repr_html_(), run.report._repr_html_(), run.blocks._repr_html_(), run.samples._repr_html_()]
    print(json.dumps({"html": shown, "repr": [repr(run), repr(run.blocks), repr(run.spans), repr(run.devices)]}))
    """)
    for text in actual["html"][:3]:
        assert "outer &lt;b&gt;&amp;" in text and "outer <b>" not in text, text
        assert text.count("<table>") == text.count("</table>") >= 1
    assert "code blocks>" in actual["repr"][0] and "outer <b>&" in actual["repr"][1], actual["repr"]


@test
def unresolved_energies(workdir):
    """tables show value and error of an unresolved block with the mark of the program's reports, and its explanation
    once"""
    block = '{"name": name, "compute_time": {}, "energy": {"total_j": 1.2, "error_j": error, "mean_j": 0.6}}'
    actual = told(recorded(workdir), f"""
    from wattle.table import blocks_table
    tables = [blocks_table([{block} for name, error in blocks]) for blocks in ([("a", 1.5), ("b", 0.5)], [("b", 0.5)])]
    print(json.dumps([[repr(table), table._repr_html_()] for table in tables]))
    """)
    for text in actual[0]:
        assert "1.20 J" in text and "1.50 J ?" in text and "600 mJ ?" in text and "500 mJ ?" not in text, text
        assert text.count("?: the error is as large as the value.") == 1, text
    assert "?" not in "".join(actual[1]), actual[1]


@test
def without_numpy(workdir):
    """report, blocks as rows, events and buffers: need only Python; numpy is named where it is needed"""
    recorded(workdir)
    python(workdir, """
    import sys
    sys.modules["numpy"] = sys.modules["pandas"] = None
    import wattle
    with wattle.open("run.sqlite") as run:
        assert run.blocks[0]["name"] == "inner" and run.report["schema"] == "wattle-report/1"
        assert repr(run) and repr(run.blocks)
        assert len(run.samples.buffer("t_ns")) == run.report["run"]["samples"] and run.spans.buffer("begin_ns")[0] > 0
        assert list(run.devices) and run.events[0]["kind"]
        try:
            run.samples["t_ns"]
        except ImportError as missing:
            assert "numpy" in str(missing)
        else:
            raise AssertionError("numpy was not needed")
    """)


@test
def refusals(workdir):
    """file that is no run, missing, or closed: one message"""
    recorded(workdir)
    (workdir.folder / "text").write_text("no run")
    python(workdir, """
    import wattle
    def refused(kind, part, act, *arguments, **keywords):
        try:
            act(*arguments, **keywords)
        except kind as failure:
            assert part in str(failure) and "\\n" not in str(failure), failure
        else:
            raise AssertionError(f"{act} {arguments} was not refused")
    refused(FileNotFoundError, "nothing.sqlite", wattle.open, "nothing.sqlite")
    refused(FileNotFoundError, "\\\\xff.sqlite", wattle.open, "\\udcff.sqlite")
    refused(ValueError, "text", wattle.open, "text")
    refused(TypeError, "", wattle.open, 3)
    run = wattle.open("run.sqlite")
    refused(ValueError, "valid: samples", run.to_pandas, "sample")
    refused(KeyError, "valid: t_ns", lambda: run.samples["rss"])
    refused(KeyError, "valid: name", lambda: run.blocks["rss"])
    refused(KeyError, "rss", run.blocks.find, "rss")
    refused(TypeError, "read-only", run.samples.buffer("t_ns").__setitem__, 0, 1)
    run.close()
    refused(ValueError, "closed", lambda: run.report)
    refused(ValueError, "csv", wattle.export, "run.sqlite", "cvs", "out")
    refused(FileExistsError, "run.sqlite", wattle.export, "run.sqlite", "csv", "run.sqlite")
    refused(TypeError, "{name: run}", wattle.compare, ["run.sqlite", "run.sqlite"])
    refused(ValueError, "two", wattle.compare, {"a": "run.sqlite"})
    refused(ValueError, "median", wattle.compare, {"a": "run.sqlite", "b": "run.sqlite"}, "median")
    """)


@test
def side_by_side(workdir):
    """compare: the program's result, for paths and open runs; exports and combined files too"""
    recorded(workdir)
    lines, _ = python(workdir, """
    import json, wattle
    print(json.dumps(wattle.compare({"a": "run.sqlite", "b": wattle.open("run.sqlite")}, "max")))
    wattle.export("run.sqlite", "csv", "out.csv")
    """)
    expected = workdir.wattle("compare", "a=run.sqlite", "b=run.sqlite", "--stat", "max", "--format", "json").stdout
    assert json.loads(lines[0]) == json.loads(expected)
    workdir.wattle("export", "run.sqlite", "--format", "csv", "-o", "again.csv")
    assert (workdir.folder / "out.csv").read_bytes() == (workdir.folder / "again.csv").read_bytes()


@test
def span_files(workdir):
    """span file of a program without a recorder: opens with spans and without samples"""
    python(workdir, """
    import wattle
    with wattle.span("alone"):
        pass
    """, env={"WATTLE_SPANS": str(workdir.folder / "spans")})
    python(workdir, """
    import wattle
    run = wattle.open("spans")
    assert run.spans["name"].tolist() == ["alone"] and run.samples.n == 0 and run.blocks["num_calls"].tolist() == [1]
    assert run.to_pandas("spans")["name"].tolist() == ["alone"] and repr(run) and run._repr_html_()
    """)


@test
def meters(workdir):
    """measure and Meter: readings of a simulated tree and states; NaN for unknown values, and for a sum with a lost
    part"""
    tree = workdir.tree("sys", {"class/powercap/intel-rapl:0/name": "package-0\n",
                             "class/powercap/intel-rapl:0/energy_uj": "1000000\n",
                             "class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
                             "class/powercap/intel-rapl:0:0/name": "dram\n",
                             "class/powercap/intel-rapl:0:0/energy_uj": "5\n",
                             "class/powercap/intel-rapl:0:0/max_energy_range_uj": "262143328850\n"})
    lines, _ = python(workdir, f"""
    import json, math, time, wattle
    counter = "{tree}/class/powercap/intel-rapl:0/energy_uj"
    with wattle.measure() as m:
        time.sleep(0.05)
        open(counter, "w").write("3500000")
    print(json.dumps([m.energy_j, m.cpu_j, m.gpu_j != m.gpu_j, m.seconds, m.estimated, m.power_w]))
    dram = counter.replace("rapl:0/", "rapl:0:0/")
    open(dram, "w").write("5")
    with wattle.measure() as m:
        pass
    assert m.dram_j == m.energy_j == 0
    meter = wattle.Meter()
    meter.start()
    open(counter, "w").close()
    lost = meter.stop()
    assert lost.dram_j == 0 and math.isnan(lost.cpu_j) and math.isnan(lost.total_j) and math.isnan(lost.error_j), lost
    open(counter, "w").write("3500000")
    meter.close()
    meter = wattle.Meter()
    for act in (meter.read, meter.stop, lambda: meter.energy_j):
        try:
            act()
        except RuntimeError as refused:
            assert "has not been" in str(refused), refused
        else:
            raise AssertionError("not refused")
    meter.start()
    first, last = meter.read(), meter.stop()
    assert first.seconds <= last.seconds and repr(meter) and repr(m)
    meter.close()
    """, env={"WATTLE_SYSFS": str(tree)})
    energy, cpu, no_gpu, seconds, estimated, power = json.loads(lines[0])
    assert energy == cpu == 2.5 and no_gpu and not estimated, lines
    near(seconds, 0.05, relative=0.5)
    assert math.isclose(power, energy / seconds)


if __name__ == "__main__":
    main()
