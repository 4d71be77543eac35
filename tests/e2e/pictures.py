"""wattle report --format svg: files that any SVG reader accepts, for runs of all kinds, and refusals."""
import functools
import json
import pathlib
import tempfile
import xml.etree.ElementTree as ElementTree

import synthetic_runs
from harness import WATTLE, WorkDir, main, test

SVG = "{http://www.w3.org/2000/svg}"


@functools.cache
def made(kind):
    """Equal kinds make equal runs, so one of each is enough for all tests, which only read it."""
    kept = tempfile.TemporaryDirectory(prefix="wattle-pictures-")
    workdir = WorkDir(pathlib.Path(kept.name))
    synthetic_runs.make(WATTLE, workdir.folder / f"{kind}.sqlite", kind)
    done = workdir.wattle("report", f"{kind}.sqlite", "--format", "svg", "-o", kind)
    assert done.returncode == 0, done.stderr
    files = sorted((workdir.folder / kind).iterdir())
    assert all(path.name in done.stderr for path in files), done.stderr
    return kept, {path.stem: ElementTree.fromstring(path.read_bytes()) for path in files}


def pictures(kind):
    """The pictures of a synthetic run, by name, parsed."""
    return made(kind)[1]


@test
def every_kind(workdir):
    """run with a GPU and spans: all pictures, each with a title and a description; no style attribute, no link"""
    found = pictures("training")
    assert set(found) == {"power", "cpu", "memory", "gpu_utilization", "gpu_memory", "temperature", "clock", "spans",
                          "ledger", "flame", "blocks"}, set(found)
    for name, root in found.items():
        assert root.tag == SVG + "svg" and root.find(SVG + "title").text, name
        assert len(root.find(SVG + "desc").text) > 20, name
        for element in root.iter():
            assert ("style" not in element.attrib
                    and not any("href" in key for key in element.attrib)), (name, element.tag)
    assert "highest" in found["power"].find(SVG + "desc").text


@test
def all_runs(workdir):
    """runs without energy, of 50 ms, killed, in segments, with gaps and hostile names: available pictures as valid
    XML"""
    for kind in ("no_energy", "short", "killed", "segments", "holes", "hostile", "eight_gpus"):
        found = pictures(kind)
        assert ("power" in found) == (kind != "no_energy"), (kind, set(found))
        assert "cpu" in found and "spans" in found, (kind, set(found))
        assert all(element.tag != SVG + "script" for root in found.values() for element in root.iter()), kind


def colour(element):
    return next((name for name in element.get("class", "").split() if name.startswith("c-")), None)


@test
def colours(workdir):
    """one meaning for each colour: owners and domains of the ledger, domains of the power, nested blocks"""
    for kind in ("training", "eight_gpus", "laptop"):
        found = pictures(kind)
        bars = [element for element in found["ledger"].iter(SVG + "rect") if colour(element)]
        rows = {}
        for bar in bars:
            is_key = float(bar.get("height")) == 10 and float(bar.get("width")) == 10
            if not is_key and colour(bar) != "c-back":
                rows.setdefault(bar.get("y"), []).append(colour(bar))
        drawn = [name for row in rows.values() for name in row]
        assert len(rows) == 2 and len(set(drawn)) == len(drawn), (kind, rows)
        boxes = [box for box in found["flame"].iter(SVG + "rect") if colour(box)]
        places = [(float(box.get("x")), float(box.get("x")) + float(box.get("width")), float(box.get("y")), colour(box))
                  for box in boxes]
        heights = sorted({place[2] for place in places})
        row = min(b - a for a, b in zip(heights, heights[1:]))
        touching = [(one, other) for one in places for other in places
                    if abs(abs(one[2] - other[2]) - row) < 0.1 and one[0] >= other[0] - 0.1
                    and one[1] <= other[1] + 0.1]
        assert touching and all(one[3] != other[3] for one, other in touching), kind


@test
def throttling(workdir):
    """throttling: a strip above the plot, without lines; its duration as text, as in the report"""
    found = pictures("training")
    done = workdir.wattle("report", f"{made('training')[0].name}/training.sqlite", "--format", "json")
    throttled_s = next(gpu["throttled_s"] for gpu in json.loads(done.stdout)["gpus"])
    assert f"{1000 * throttled_s:.0f} ms" in found["power"].find(SVG + "desc").text, throttled_s
    strip = [bar for bar in found["power"].iter(SVG + "rect") if colour(bar) == "c-throttle"]
    panel = [bar for bar in found["power"].iter(SVG + "rect") if colour(bar) == "c-panel"]
    assert strip and len(panel) == 1, (strip, panel)
    top, bottom = float(panel[0].get("y")), float(panel[0].get("y")) + float(panel[0].get("height"))
    assert all(top - 0.1 <= float(bar.get("y")) and float(bar.get("y")) + float(bar.get("height")) <= bottom + 0.1
               for bar in strip)
    assert any("clocks throttled" in "".join(text.itertext()) for text in found["power"].iter(SVG + "text"))
    assert not any(colour(bar) == "c-throttle" for bar in found["temperature"].iter(SVG + "rect"))


@test
def pictures_without_data(workdir):
    """empty run: no picture, no failure"""
    synthetic_runs.make(WATTLE, workdir.folder / "empty.sqlite", synthetic_runs.KINDS["empty"])
    done = workdir.wattle("report", "empty.sqlite", "--format", "svg", "-o", "none")
    assert done.returncode == 0 and "no picture" in done.stderr, done
    assert list((workdir.folder / "none").iterdir()) == []


@test
def estimated(workdir):
    """estimated values: hatched and labelled"""
    found = pictures("no_gpu")
    for name in ("power", "ledger", "blocks"):
        assert any(element.get("fill", "").startswith("url(#") for element in found[name].iter()), name
    assert "estimated" in found["power"].find(SVG + "desc").text


@test
def refusals(workdir):
    """missing folder, or a file in its place: one line with the remedy"""
    synthetic_runs.make(WATTLE, workdir.folder / "run.sqlite", synthetic_runs.KINDS["short"])
    done = workdir.wattle("report", "run.sqlite", "--format", "svg")
    assert done.returncode == 2 and "-o DIR" in done.stderr, done
    (workdir.folder / "file").write_text("mine")
    done = workdir.wattle("report", "run.sqlite", "--format", "svg", "-o", "file")
    assert done.returncode == 1 and "file" in done.stderr and (workdir.folder / "file").read_text() == "mine", done


if __name__ == "__main__":
    main()
