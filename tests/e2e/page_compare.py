#!/usr/bin/python3
"""Runs side by side in a page: figures with intervals, significant differences, power of each run on one axis."""
import dataclasses
import json
import re
import os
import re

import browser
import synthetic_runs
from harness import WATTLE, main, test
from page_fixture import contrasts, has_text_for_pictures, is_quiet


def make_runs(workdir, **kinds):
    for name, kind in kinds.items():
        synthetic_runs.make(WATTLE, workdir.folder / f"{name}.sqlite", kind)


def compare(workdir, *words, status=0, options=()):
    path = workdir.folder / "compare.html"
    done = workdir.wattle("compare", *words, "--format", "html", "-o", path, *options)
    assert done.returncode == status, done.stderr
    return path, done


def open_compare(workdir, *words):
    return browser.open(compare(workdir, *words)[0])


def cells(page, table, row, column):
    return page.js("""const r = Array.from(document.querySelector(arguments[0]).tBodies[0].rows)
        .find((r) => r.cells[0].textContent.trim() === arguments[1]);
        return r ? r.cells[arguments[2]].innerText.trim().replace(/\\s+/g, " ") : null;""", f"#{table}", row, column)


@test
def side_by_side(workdir):
    """figures beside those of the first run, with intervals; significant differences in words, as in the JSON"""
    make_runs(workdir, plain="training", capped="slower")
    path, done = compare(workdir, "plain=plain.sqlite", "capped=capped.sqlite")
    assert not done.stderr, done.stderr
    page = browser.open(path)
    expected_values = json.loads(workdir.wattle("compare", "plain=plain.sqlite", "capped=capped.sqlite", "--format",
                                                "json").stdout)
    change = 100 * (expected_values["energy"]["total_j"]["capped"] / expected_values["energy"]["total_j"]["plain"] - 1)
    cell = cells(page, "figures", "Energy", 2)
    assert "±" in cell and f"−{abs(change):.2f} %" in cell, (cell, change)
    words = page.text(".differences")
    assert f"{abs(change):.1f}" in words and "less energy" in words and "25.0 % more time" in words, words
    assert cells(page, "block-energy", "forward", 2) is not None
    assert cells(page, "figures", "GPU memory, at most", 2).endswith("equal")
    # The samples of the slower run are at other points of the same memory curve, and miss a little of its peak.
    plain, capped = (json.loads(workdir.wattle("report", f"{name}.sqlite", "--format",
                                               "json").stdout)["memory"]["peak_ram_bytes"]
                     for name in ("plain", "capped"))
    assert plain > capped, (plain, capped)
    cell = cells(page, "figures", "Peak memory", 2)
    assert cell.endswith(f"−{100 * (1 - capped / plain):.2f} %"), (cell, plain, capped)
    assert page.count("#figures .change circle") >= 8
    charts = [chart["id"] for chart in json.loads(page.text("#charts"))["charts"]]
    assert charts == ["power", "energy", "program_power", "program_cpu", "program_memory"], charts
    for chart in charts:
        assert max(page.inked(f".chart-{chart} canvas")) > 0.01, chart
    is_quiet(page)
    has_text_for_pictures(page)


@test
def zoom_and_sort(workdir):
    """one cursor and one zoom for all charts, and tables that can be sorted"""
    make_runs(workdir, plain="training", capped="slower")
    page = open_compare(workdir, "plain=plain.sqlite", "capped=capped.sqlite")
    whole = page.text("#view .shown")
    page.drag(".chart-power .plot", 0.4, 0.5)
    assert page.text("#view .shown") != whole
    page.keys("ESCAPE", on="#view")
    assert page.text("#view .shown") == whole
    page.hover(".chart-power .plot", 0.5)
    assert all(page.texts(".key .value"))
    first = page.text("#block-energy tbody tr:first-child th")
    page.keys("ENTER", on="#block-energy thead th:nth-child(2) button")
    page.keys("ENTER", on="#block-energy thead th:nth-child(2) button")
    assert page.text("#block-energy tbody tr:first-child th") != first
    is_quiet(page)


@test
def equal_runs(workdir):
    """run compared with itself: no difference"""
    make_runs(workdir, one="training")
    page = open_compare(workdir, "a=one.sqlite", "b=one.sqlite")
    assert "no significant energy difference" in page.text(".differences")
    assert page.count(".less, .more") == 0
    is_quiet(page)


@test
def of_any_kind(workdir):
    """eight runs of any kind and saved results, with hostile names: no error, unknown is n/a"""
    kinds = ["training", "eight_gpus", "segments", "killed", "no_energy", "empty", "short", "holes"]
    for kind in kinds:
        plan = synthetic_runs.KINDS[kind]
        synthetic_runs.make(WATTLE, workdir.folder / f"{kind}.sqlite",
                            dataclasses.replace(plan, steps=min(plan.steps, 6)))
    saved = workdir.wattle("blocks", "training.sqlite", "--format", "json", "-o", "saved.json")
    assert saved.returncode == 0, saved.stderr
    names = [name for name in synthetic_runs.HOSTILE if isinstance(name, str) and name.strip() and "=" not in name]
    words = [f"{names[i]}={kind}.sqlite" for i, kind in enumerate(kinds)]
    path, done = compare(workdir, *words, "saved=saved.json")
    assert "code blocks are left out" in done.stderr, done.stderr
    page = browser.open(path)
    is_quiet(page)
    has_text_for_pictures(page)
    assert page.count("img, iframe, form, base") == 0
    assert "n/a" in page.text("#figures")
    page.size(400).open(path)
    is_quiet(page, "400 px")
    page.open(path).colours("dark")
    contrast, text = contrasts(page)
    assert contrast >= 4.5 or len(text) < 4, f"{contrast:.2f} for {text!r}"


@test
def paper_and_no_script(workdir):
    """two runs: at most two pages of paper; without scripts a static picture of their power"""
    make_runs(workdir, plain="training", capped="slower")
    path, _ = compare(workdir, "plain=plain.sqlite", "capped=capped.sqlite")
    page = browser.open(path)
    assert page.print_to(workdir.folder / "page.pdf") <= 2
    page = browser.page().scripts(False).open(path, wait=False)
    assert page.shown(".still svg") == 1 and page.shown("#view") == 0
    assert cells(page, "figures", "Energy", 1)


@test
def refusals(workdir):
    """incomparable inputs: refused with one line; a page is not written to a terminal"""
    make_runs(workdir, plain="training")
    for words, said in ((["a=plain.sqlite"], "at least two"),
                        (["a=plain.sqlite", "a=plain.sqlite"], "two files are named"),
                        (["a=plain.sqlite", "b=nowhere.sqlite"], "nowhere.sqlite")):
        done = workdir.wattle("compare", *words, "--format", "html", "-o", "refused.html")
        assert done.returncode != 0 and said in done.stderr, done.stderr
        assert not (workdir.folder / "refused.html").exists()
    ours, theirs = os.openpty()
    done = workdir.finish(workdir.start("compare", "a=plain.sqlite", "b=plain.sqlite", "--format", "html",
                                        stdout=theirs))
    assert done.returncode == 2 and "-o FILE" in done.stderr, done.stderr
    os.close(ours)
    os.close(theirs)


main()
