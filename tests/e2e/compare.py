"""wattle compare: results side by side, matched by gpu_tracker's rules."""
import contextlib
import json
import sqlite3

import tracking_accuracy as made
from harness import main, test


def compare(workdir, *arguments):
    done = workdir.wattle("compare", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def refused(workdir, *arguments, status=1):
    done = workdir.wattle("compare", *arguments)
    assert done.returncode == status and done.stdout == "", (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("wattle") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def save(workdir, name, blocks, energy=None):
    """A document in the format of wattle blocks, from {block: compute time} or {block: (compute time, joules,
    error)}"""
    def stats(value):
        return {"min": value, "max": value, "mean": value, "std": 0.0}
    results = []
    for block, figures in blocks.items():
        time_s, *joules = figures if isinstance(figures, tuple) else (figures,)
        results.append({"name": block, "num_calls": 1, "compute_time": {**stats(time_s), "total": time_s},
                        "resource_usage": {"main_ram": stats(time_s)}})
        if joules:
            results[-1]["energy"] = {"total_j": joules[0], "error_j": joules[1]}
    document = {"overall": {"main_ram": stats(1.0)}, "static_data": {"ram_unit": "gigabytes"},
                "code_block_results": results}
    if energy:
        document["energy"] = {"total_j": energy[0], "error_j": energy[1]}
    (workdir.folder / name).write_text(json.dumps(document))


@test
def of_tracking_files(workdir):
    """every statistic of saved results, by metric and block, ascending"""
    chance = made.seeded(7)
    expected = {}
    for name in ("B", "A", "C"):
        timepoints, rows = made.made_timepoints(chance, 60), made.made_rows(chance, 200)
        made.write_tracking(workdir.folder / "t.csv", timepoints)
        made.write_calls(workdir.folder / "s.csv", rows)
        workdir.wattle("blocks", "--tracking-file", "t.csv", "--sub-tracking-file", "s.csv", "--format", "json", "-o",
                    f"{name}.json")
        expected[name] = made.expected_values(timepoints, rows)
        (workdir.folder / "t.csv").unlink()
        (workdir.folder / "s.csv").unlink()
    sessions = [f"{name}={name}.json" for name in expected]

    def ascending(values):
        return dict(sorted(values.items(), key=lambda item: (item[1] is None, item[1] or 0)))
    for statistic in ("min", "max", "mean", "std"):
        actual, _ = compare(workdir, *sessions, "--stat", statistic)
        names = [block["name"] for block in expected["A"]["code_block_results"]]
        for metric in made.METRICS:
            made.check(actual["overall_resource_usage"][metric],
                       ascending({n: e["overall"][metric][statistic] for n, e in expected.items()}))
        for i, block in enumerate(names):
            of = {n: e["code_block_results"][i] for n, e in expected.items()}
            made.check(actual["code_block_compute_time"][block],
                       ascending({n: b["compute_time"][statistic] for n, b in of.items()}))
            made.check(actual["code_block_resource_usage"]["main_ram"][block],
                       ascending({n: b["resource_usage"]["main_ram"][statistic] for n, b in of.items()}))
        assert "energy" not in actual, actual["energy"]


@test
def lines_move(workdir):
    """names that differ by line number: matched in order of the line, with a warning, and listed under both names"""
    save(workdir, "a.json", {"a.py:9": 1.0, "a.py:10": 2.0, "load": 3.0})
    save(workdir, "b.json", {"a.py:7": 1.5, "a.py:110": 2.5, "load": 3.0})
    actual, warnings = compare(workdir, "A=a.json", "B=b.json")
    assert actual["code_block_compute_time"] == {
        "a.py:7 -> a.py:9": {"A": 1.0, "B": 1.5}, "a.py:10 -> a.py:110": {"A": 2.0, "B": 2.5},
        "load": {"A": 3.0, "B": 3.0}}, actual
    assert warnings.count("warning") == 2 and '"a.py:9" of "A"' in warnings and '"a.py:7" of "B"' in warnings, warnings
    for name, line in (("a", 9), ("b", 7)):
        save(workdir, f"{name}.json", {f"\x1b[31m.py:{line}": 1.0})
    assert "?[31m.py:7" in compare(workdir, "A=a.json", "B=b.json")[1]


@test
def values_without_match(workdir):
    """different number of blocks, or different names: refused, and both are named"""
    save(workdir, "a.json", {"a.py:9": 1.0, "load": 3.0})
    save(workdir, "one.json", {"load": 3.0})
    save(workdir, "other.json", {"b.py:9": 1.0, "load": 3.0})
    save(workdir, "function.json", {"a.py:main": 1.0, "load": 3.0})
    line = refused(workdir, "A=a.json", "B=one.json")
    assert '"A" has 2' in line and '"B" has 1' in line, line
    line = refused(workdir, "B=other.json", "A=a.json")
    assert '"a.py:9" of "A"' in line and '"b.py:9" of "B"' in line, line
    assert '"a.py:main"' in refused(workdir, "A=a.json", "B=function.json")


@test
def unknown_last(workdir):
    """values: ascending whatever the order of the arguments; unknown ones are null and last"""
    for name, time_s in (("a", None), ("b", 2.0), ("c", 1.0)):
        save(workdir, f"{name}.json", {"load": time_s})
    actual, _ = compare(workdir, "A=a.json", "B=b.json", "C=c.json")
    assert list(actual["code_block_compute_time"]["load"].items()) == [("C", 1.0), ("B", 2.0), ("A", None)], actual


@test
def no_blocks(workdir):
    """no blocks: the whole runs are compared"""
    save(workdir, "a.json", {})
    actual, _ = compare(workdir, "A=a.json", "B=a.json")
    assert actual == {"overall_resource_usage": {"main_ram": {"A": 1.0, "B": 1.0}}, "code_block_resource_usage": {},
                      "code_block_compute_time": {}}, actual


@test
def energy(workdir):
    """energy: shown with errors; where they overlap the text reports no significant difference"""
    save(workdir, "a.json", {"load": (1.0, 50.0, 4.0), "train": (1.0, 100.0, 1.0)}, energy=(200.0, 5.0))
    save(workdir, "b.json", {"load": (1.0, 45.0, 4.0), "train": (1.0, 120.0, 1.0)}, energy=(230.0, 5.0))
    actual, _ = compare(workdir, "A=a.json", "B=b.json")
    energy_ = actual["energy"]
    assert energy_["total_j"] == {"A": 200.0, "B": 230.0} and energy_["error_j"] == {"A": 5.0, "B": 5.0}, energy_
    assert list(energy_["blocks"]["load"].items()) == [("B", 45.0), ("A", 50.0)], energy_
    text = workdir.wattle("compare", "A=a.json", "B=b.json", "--all").stdout
    assert text.count("no difference seen") == 1 and "× 1.200" in text and "± 4" in text, text


def lines_of(workdir, *words):
    done = workdir.wattle("compare", *words)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.splitlines()


@test
def significant_differences(workdir):
    """the text: whole runs, then blocks that differ by more than the errors, largest difference first; the rest is
    counted"""
    alike = {f"alike{i}": (1.0, 10.0, 4.0) for i in range(12)}
    save(workdir, "a.json", {**alike, "load": (1.0, 50.0, 1.0), "train": (1.0, 100.0, 1.0)}, energy=(200.0, 2.0))
    save(workdir, "b.json", {**alike, "load": (1.0, 45.0, 1.0), "train": (1.0, 120.0, 1.0)}, energy=(230.0, 2.0))
    lines = lines_of(workdir, "a.json", "b.json")
    text = "\n".join(lines)
    assert len(lines) <= 25 and all(len(line) <= 80 for line in lines), text
    assert lines[1].split() == ["a.json", "b.json", "change"], lines[1]
    assert lines[2].split() == "Energy 200 J ± 2.0 J 230 J ± 2.0 J +15 % ± 2 higher".split(), lines[2]
    names = [line.split()[0] for line in lines if line.endswith(("higher", "lower"))]
    assert names == ["Energy", "train", "load"] and "12 code blocks without a significant difference" in text, text
    everything = "\n".join(lines_of(workdir, "a.json", "b.json", "--all"))
    assert everything.startswith("\n".join(lines[:5])), everything
    assert "alike7" in everything and "Time per call, mean" in everything and "main_ram" in everything, everything
    assert "Time per call, max" in "\n".join(lines_of(workdir, "a.json", "b.json", "--stat", "max"))
    many = lines_of(workdir, "a.json", "b.json", "c=a.json", "d=b.json")
    assert len(many) <= 30 and sum("c" in line.split() for line in many) == 5, many  # three quantities and two blocks


@test
def no_significant_difference(workdir):
    """where the errors overlap the change and its interval are shown with the verdict; 11 blocks that differ are 10 and
    a count"""
    save(workdir, "a.json", {"load": (1.0, 50.0, 4.0)}, energy=(200.0, 10.0))
    save(workdir, "b.json", {"load": (1.0, 51.0, 4.0)}, energy=(190.0, 10.0))
    lines = lines_of(workdir, "a.json", "b.json")
    assert lines[2].endswith("−5 % ± 7  no difference"), lines
    assert not any("Code blocks whose" in line for line in lines) and "1 code block without" in "\n".join(lines), lines
    for name, factor in (("a", 1), ("b", 2)):
        save(workdir, f"{name}.json", {f"block{i}": (1.0, 50.0 * factor * (i + 1), 4.0) for i in range(11)},
             energy=(200.0, 10.0))
    save(workdir, "c.json", {f"block{i}": 1.0 for i in range(11)}, energy=(None, None))
    text = "\n".join(lines_of(workdir, "a.json", "b.json"))
    assert "?: the error" not in text, text
    save(workdir, "e.json", {f"block{i}": (1.0, 1.0, 4.0) for i in range(11)}, energy=(1.0, 2.0))
    for words in ((), ("--all",)):
        text = " ".join(" ".join(lines_of(workdir, "a.json", "e.json", *words)).split())
        assert "1.00 J ± 2.0 J ?" in text and text.count("?: the error is as large as the value.") == 1, text
    assert "11 code blocks without energy to compare." in "\n".join(lines_of(workdir, "c.json", "a.json"))
    assert "Time per call, mean" in "\n".join(lines_of(workdir, "c.json", "d=c.json"))
    text = "\n".join(lines_of(workdir, "a.json", "b.json"))
    assert "1 more code block with a difference" in text and "block10" in text and "block0" not in text, text


@test
def counters_that_never_changed(workdir):
    """energy 0 with an error: mean power has that error too, and no difference is claimed"""
    for name, duration_s in (("a.json", 2.0), ("b.json", 4.0)):
        save(workdir, name, {})
        document = json.loads((workdir.folder / name).read_text())
        document["energy"] = {"total_j": 0.0, "error_j": 20.0, "mean_w": 0.0, "duration_s": duration_s}
        (workdir.folder / name).write_text(json.dumps(document))
    power = next(line for line in lines_of(workdir, "a.json", "b.json") if line.startswith("  Mean power"))
    assert power.split() == "Mean power 0 W ± 10.0 W ? 0 W ± 5.00 W ? no difference".split(), power


@test
def names_of_files(workdir):
    """without NAME= a file is named by the shortest end of its path that no other has"""
    for folder in ("x/old", "y/old", "new"):
        (workdir.folder / folder).mkdir(parents=True)
    for path in ("x/old/run.json", "y/old/run.json", "new/run.json", "one.json", "rate=0.1.json"):
        save(workdir, path, {})
    for words, names in ((("one.json", "new/run.json"), ["one.json", "run.json"]),
                         (("new/run.json", "x/old/run.json"), ["new/run.json", "old/run.json"]),
                         (("y/old/run.json", "x/old/run.json", "one.json"),
                          ["y/old/run.json", "x/old/run.json", "one.json"]),
                         (("run.json=one.json", "new/run.json"), ["run.json", "new/run.json"]),
                         (("rate=0.1.json", "one.json"), ["rate=0.1.json", "one.json"])):
        actual, _ = compare(workdir, *words)
        assert sorted(actual["overall_resource_usage"]["main_ram"]) == sorted(names), (words, actual)
    line = refused(workdir, "one.json", "one.json", status=2)
    assert "two files are named one.json" in line and "NAME=FILE" in line, line


@test
def runs_and_saved_ones(workdir):
    """run file and the document saved from it: equal"""
    workdir.report("-i", "20ms", "--", "sleep", "0.2")
    # a name that is not valid UTF-8
    with contextlib.closing(sqlite3.connect(workdir.folder / "run.sqlite")) as run, run:
        run.execute("INSERT INTO span (id, pid, tid, name, begin_ns, end_ns, close) SELECT 1, pid, pid, "
                    "CAST(X'61FF62' AS TEXT), start_ns + 50000000, start_ns + 150000000, 'ended' FROM segment")
    assert workdir.wattle("blocks", "run.sqlite", "--format", "json", "-o", "run.json").returncode == 0
    actual, errors = compare(workdir, "saved=run.json", "run=run.sqlite")
    assert errors == "" and list(actual["code_block_compute_time"]) == ["a\ufffdb"], (errors, actual)
    assert "total_j" in actual["energy"] and "blocks" in actual["energy"], actual["energy"]
    for values in [*actual["overall_resource_usage"].values(), actual["energy"]["total_j"]]:
        assert set(values) == {"saved", "run"} and values["saved"] == values["run"], values
    assert workdir.wattle("compare", "saved=run.json", "run=run.sqlite").returncode == 0


@test
def units_differ(workdir):
    """figures in different units: compared with a warning"""
    save(workdir, "a.json", {})
    text = (workdir.folder / "a.json").read_text()
    (workdir.folder / "b.json").write_text(text.replace("gigabytes", "bytes"))
    _, warnings = compare(workdir, "A=a.json", "B=b.json")
    assert warnings.count("\n") == 1 and "units" in warnings, warnings


@test
def wrong_use(workdir):
    """usage: two files with different names"""
    save(workdir, "a.json", {})
    for words in ([], ["A=a.json"], ["a.json"], ["a.json", "a.json"], ["A=a.json", "A=a.json"], ["A=a.json", "=a.json"],
                  ["A=a.json", "B="], ["A=a.json", "B=a.json", "--stat", "median"]):
        refused(workdir, *words, status=2)
    for name, text in (("empty", ""), ("list", "[]"), ("other", '{"overall": 1}'), ("half", '{"overall": {'),
                       ("names", '{"overall": {}, "code_block_results": [{}]}'), ("bytes", "\x80\x04\x95"),
                       ("deep", "[" * 100000), ("blocks", '{"overall": {}, "code_block_results": 7}')):
        (workdir.folder / name).write_text(text)
        assert name in refused(workdir, "A=a.json", f"B={name}")
    for name in ("nowhere", "."):
        refused(workdir, "A=a.json", f"B={name}")


if __name__ == "__main__":
    main()
