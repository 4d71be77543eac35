"""Reading AIPowerMeter's files: integrals, segments, both generations of its GPU metrics, curves. No recording."""
import json
import math
import os
import pathlib
import sys
import warnings

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
from harness import main, near, test

from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers

WATTS, BEGIN = 40.0, "2026-03-01 10:00:%02d.000000"


def line(second, cpu=None, gpu=None):
    metrics = {name: part for name, part in (("cpu", cpu), ("gpu", gpu)) if part is not None}
    return json.dumps({"date": BEGIN % second, "metrics": metrics})


END = json.dumps(parsers.SEGMENT_END)


def folder(workdir, lines, name="power_metrics.json"):
    (workdir.folder / "out").mkdir(exist_ok=True)
    (workdir.folder / "out" / name).write_text("\n".join(lines) + "\n")
    return workdir.folder / "out"


def results(workdir, lines):
    return experiment.ExpResults(parsers.JsonParser(folder(workdir, lines)))


def raises(kind, text, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


@test
def segments_one_by_one(workdir):
    """pause between two segments: no energy and no duration, whatever the power before and after it"""
    read = results(workdir, [line(0, {"intel_power": 10}), line(2, {"intel_power": 10}), END,
                          line(30, {"intel_power": 50}), line(33, {"intel_power": 50}), END])
    near(read.total_("intel_power"), 10 * 2 + 50 * 3, relative=1e-12)
    assert [len(segment) for segment in read.get_curve("intel_power")] == [2, 2]
    seconds, start, end = read.get_exp_duration()
    assert (seconds, end - start) == (5, 33), (seconds, start, end)
    near(read.average_("intel_power"), 170 / 5, relative=1e-12)
    assert read.max_("intel_power") == 50 and read.max_("intel_power", end=start + 5) == 10
    assert [str(date) for date in read.db_driver.get_segments()] == ["2026-03-01 10:00:02"]


@test
def parts_of_a_curve(workdir):
    """start and end: cut a curve on its line, not at the next sample; outside of it there is nothing"""
    read = results(workdir, [line(0, {"intel_power": 0}), line(10, {"intel_power": 100}), END])
    _, begin, _ = read.get_exp_duration()
    near(read.total_("intel_power", begin + 5, begin + 7), 2 * 60, relative=1e-9)
    near(read.total_("intel_power", start=begin + 9), 95, relative=1e-9)
    assert read.total_("intel_power", begin + 20, begin + 30) == 0
    raises(ValueError, "nothing to integrate", experiment.integrate, read.get_curve("intel_power")[0], begin + 20)
    near(read.get_summary(begin + 5, begin + 7)["cpu"]["total_intel_power"], 120, relative=1e-9)


@test
def unknown_is_none(workdir):
    """unmeasured values are None: psys of -1, a missing metric, null; sums use the known ones"""
    read = results(workdir, [line(0, {"intel_power": 5, "psys_power": -1,
                                      "per_process_mem_use_abs": {"1": None, "2": 7}}),
                             line(1, {"intel_power": None, "psys_power": -1, "per_process_mem_use_abs": {}}),
                             line(2, {"intel_power": 5, "per_process_mem_use_abs": {"1": 3, "2": 7}}), END])
    assert read.total_("psys_power") is None and read.get_curve("psys_power") is None
    assert read.total_("total_dram_power") is None and read.average_("total_dram_power") is None
    near(read.total_("intel_power"), 10, relative=1e-12)
    assert [point["value"] for point in read.get_curve("per_process_mem_use_abs")[0]] == [7, 10]
    assert read.total_power_draw() == read.total_("intel_power")
    assert read.get_summary()["cpu"]["total_psys_power"] is None
    read = results(workdir, [line(0, {"intel_power": 5}), line(1, {"intel_power": float("nan")}),
                          line(2, {"intel_power": 5}), line(3, {"intel_power": float("nan")}), END])
    assert read.total_("intel_power") == 10 and read.average_("intel_power") == 5 == read.max_("intel_power")
    assert experiment.integrate([{"date": 0, "value": 1}, {"date": 1, "value": None}]) is None
    assert experiment.integrate([{"date": 0, "value": 2}, {"date": 1, "value": None}, {"date": 2, "value": 2},
                                 {"date": 3, "value": 2}], allow_None=True) == [0, None, None, 2]


@test
def gpus_of_before_2026(workdir):
    """nvidia-smi's generation: by GPU and process, memory of unknown size, attributed values"""
    gpu = {"nvidia_draw_absolute": 90.0, "per_gpu_power_draw": {"0": 20.0, "1": 70.0},
           "per_gpu_attributable_mem_use": {"0": {}, "1": {"77": 1000, "78": None}},
           "per_gpu_absolute_percent_usage": {"0": 0, "1": 0.5},
           "per_gpu_attributable_power": {"1": 70.0, "all": 70.0}}
    read = results(workdir, [line(0, gpu=gpu), line(2, gpu=gpu), END])
    assert read.list_metrics()["CPU"] == [] and "nvidia_sm_use" in read.list_metrics()["GPU"]
    assert read.total_("per_gpu_power_draw") == {"0": 40, "1": 140}
    assert read.total_("nvidia_attributable_power") == 140 and read.total_power_draw() == 180
    assert read.max_("nvidia_mem_use") == {"0": None, "1": 1000}
    assert read.average_("nvidia_sm_use") == {"0": 0, "1": 0.5}


@test
def gpus_of_2026(workdir):
    """NVML's generation, with utilization in percent"""
    gpu = {"nvidia_power": 300.0, "nvidia_memory": 5e9, "nvidia_use_rate": 75.0, "per_gpu_nvidia_power": {"0": 300.0},
           "per_gpu_nvidia_memory": {"0": 5e9}, "per_gpu_nvidia_use_rate": {"0": 75.0}}
    read = results(workdir, [line(0, {"intel_power": 1}, gpu), line(4, {"intel_power": 1}, gpu), END])
    summary = read.get_summary()
    assert summary["gpu"]["nvidia_power"] == 1200 and summary["gpu"]["per_gpu_power"] == {"0": 1200}
    assert summary["gpu"]["nvidia_memory"] == 5e9 and summary["gpu"]["nvidia_use_rate"] == 75
    assert read.total_power_draw() == 1204


@test
def own_figures(workdir):
    """accuracy in results_exp.json: as its readers expect, aligned with the power by time"""
    read_from = folder(workdir, [line(0, {"intel_power": 10}), line(10, {"intel_power": 20}), END])
    folder(workdir, [json.dumps([{"end_training_epoch": BEGIN % 5, "accuracy": 0.5},
                              {"end_training_epoch": BEGIN % 10, "accuracy": 0.9, "loss": 1}])], "results_exp.json")
    read = experiment.ExpResults(parsers.JsonParser(read_from))
    assert read.list_metrics()["Experiment"] == ["accuracy", "loss"]
    accuracy, power = read.align("accuracy", "intel_power")
    assert [point["value"] for point in accuracy] == [0.5, 0.5, 0.9]
    assert [point["value"] for point in power] == [10, 15, 20]
    raises(ValueError, "no metric 'f1'", read.align, "f1", "intel_power")
    parsers.JsonParser(read_from).save_exp_metrics({"accuracy": 0.95})
    kept = json.loads((read_from / "results_exp.json").read_text())
    assert len(kept) == 3 and kept[2]["accuracy"] == 0.95 and kept[2]["end_training_epoch"], kept


@test
def what_was_saved_line_by_line(workdir):
    """AIPowerMeter's save_exp_metrics writes lines that its own reader cannot read; wattle's reader can"""
    where = folder(workdir, [line(0, {"intel_power": 10}), END])
    folder(workdir, [json.dumps({"date": BEGIN % 1, "metrics": {"accuracy": 0.1}}),
                  json.dumps({"date": BEGIN % 2, "metrics": {"accuracy": 0.2}})], "results_exp.json")
    read = experiment.ExpResults(parsers.JsonParser(where))
    assert read.max_("accuracy") == 0.2


@test
def wall_meter(workdir):
    """OmegaWatt's CSV: frames that are not ok or truncated are left out, frames of the pause do not count"""
    where = folder(workdir, [line(0, {"intel_power": 1}), line(4, {"intel_power": 1}), END,
                          line(20, {"intel_power": 1}), line(22, {"intel_power": 1}), END])
    begin = experiment.time_to_sec(parsers.JsonParser(where).load_cpu_metrics()["intel_power"]["dates"][0])
    frames = [f"{begin + second:.3f},true,230,{WATTS}" for second in range(-5, 40)]
    folder(workdir, ["Wattmetre, version 1", "#timestamp,#frame_is_ok,#U1,#activepow1", f"{begin + 1:.3f},false,,",
                  *frames, f"{begin + 41:.3f},tr"], "omegawatt.csv")
    read = experiment.ExpResults(parsers.JsonParser(where))
    assert read.list_metrics()["wattmeter"] == ["#U1", "#activepow1"]
    near(read.total_("#activepow1"), WATTS * 6, relative=1e-6)
    near(read.get_summary()["wattmeter"]["#activepow1"], WATTS * 6, relative=1e-6)


@test
def a_writer_that_was_killed(workdir):
    """incomplete line at the end: left out; in the middle: an error that names it"""
    where = folder(workdir, [line(0, {"intel_power": 10}), line(1, {"intel_power": 10})])
    with open(where / "power_metrics.json", "a", encoding="utf-8") as file:
        file.write('{"date": "2026-03-')
    assert experiment.ExpResults(parsers.JsonParser(where)).total_("intel_power") == 10
    folder(workdir, [line(0, {"intel_power": 10}), '{"date": "2026', line(1, {"intel_power": 10})])
    raises(ValueError, "line 2", experiment.ExpResults, parsers.JsonParser(where))


@test
def nothing_there(workdir):
    """empty folder: a message that names the missing file"""
    raises(ValueError, "no recording in", experiment.ExpResults, parsers.JsonParser(workdir.folder / "empty"))
    raises(TypeError, "meta_data", parsers.JsonParser, workdir.folder / "other", meta_data=3)


@test
def erase_is_careful(workdir):
    """erase: removes the files of a recording and no others"""
    where = folder(workdir, [line(0, {"intel_power": 10}), END])
    (where / "weights.pt").write_text("precious")
    driver = parsers.JsonParser(where, meta_data={"description": "net", "lr": 0.1})
    driver.erase()
    assert sorted(path.name for path in where.iterdir()) == ["metadata.json", "weights.pt"]
    assert driver.get_description() == "net\nlr: 0.1"


@test
def pictures(workdir):
    """no screen: curves go to a file; a missing metric is a warning"""
    os.environ.pop("DISPLAY", None)
    read = results(workdir, [line(0, {"intel_power": 10, "total_mem_use": 5}),
                          line(1, {"intel_power": 12, "total_mem_use": 6}), END,
                          line(9, {"intel_power": 10, "total_mem_use": 1}), END])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert read.display_curves(["intel_power", "nvidia_sm_use"], saveto=workdir.folder / "a.svg")
        assert read.display_curves(["nvidia_sm_use"]) is None
    assert len([one for one in said if "no metric 'nvidia_sm_use'" in str(one.message)]) == 2, said
    assert "intel_power" in (workdir.folder / "a.svg").read_text() or (workdir.folder / "a.svg").stat().st_size > 5000
    os.chdir(workdir.folder)
    assert read.display_2_curves("intel_power", "total_mem_use") == "curves.png"
    assert pathlib.Path("curves.png").read_bytes().startswith(b"\x89PNG")


@test
def small_functions(workdir):
    """interpolate, humanize_bytes, joules_to_kwh and total: their documented results"""
    first, second = experiment.interpolate([{"date": 0, "value": 0}, {"date": 4, "value": 8}],
                                           [{"date": 1, "value": 5}, {"date": 2, "value": 7}])
    assert [point["date"] for point in first] == [point["date"] for point in second] == [0, 1, 2, 4]
    assert [point["value"] for point in first] == [0, 2, 4, 8]
    assert [point["value"] for point in second] == [5, 5, 7, 7]
    assert experiment.humanize_bytes(4.6 * 2**30) == "4.6GiB" and experiment.humanize_bytes(None) == "n/a"
    near(experiment.joules_to_kwh(7.2e6), 2, relative=1e-12)
    points = [{"date": second, "value": math.sin(second)} for second in range(4)]
    assert experiment.cumsum(points)[-1] == sum(point["value"] for point in points)
    assert experiment.total({"0": [points[:1]], "1": []}) == {"0": 0, "1": None}


main()
