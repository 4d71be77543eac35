#!/usr/bin/python3
"""The page of a job in a real browser: figures against the JSON report, areas against energies, names, widths, colours,
paper."""
import dataclasses
import functools
import json
import pathlib
import tempfile

import browser
import harness
import synthetic_jobs
from harness import WATTLE, main, near, test
from page_fixture import contrasts, has_text_for_pictures, is_quiet

KINDS = ["plain", "restart", "unmeasured", "virtual_nodes", "no_gpu", "no_energy", "no_id", "one_rank",
         "two_steps", "nested",
         "missing", "wide"]


@functools.cache
def made(kind, **changes):
    """Equal kinds make equal jobs, so one of each is enough for all tests, which only read it."""
    kept = tempfile.TemporaryDirectory(prefix="wattle-jobs-")
    workdir = harness.WorkDir(pathlib.Path(kept.name))
    expected_values = synthetic_jobs.make(WATTLE, workdir.folder / "job", dataclasses.replace(synthetic_jobs.KINDS[kind], **changes))
    done = workdir.wattle("report", "job", "--format", "html", "-o", "job.html")
    assert done.returncode == 0 and not done.stderr, done.stderr
    workdir.stop_all()
    return pathlib.Path(kept.name), kept, expected_values


@functools.cache
def report_of(folder):
    workdir = harness.WorkDir(folder)
    return json.loads(workdir.wattle("report", "job", "--format", "json").stdout)


def make_page(kind, with_report=True, **changes):
    """The page of a synthetic job; (path, its JSON report, its true values)."""
    folder, _, expected_values = made(kind, **changes)
    return folder / "job.html", report_of(folder) if with_report else None, expected_values


def charts_of(page):
    return json.loads(page.text("#charts"))


def column(page, table, title):
    """The data-values of a column by its title; None where there is none."""
    return page.js("""const table = document.getElementById(arguments[0]);
        const at = Array.from(table.tHead.rows[0].cells).findIndex((cell) => cell.textContent.trim() === arguments[1]);
        return Array.from(table.tBodies[0].rows, (row) => {
            const value = row.cells[at].dataset.value;
            return value === undefined ? row.cells[at].textContent.trim() : value === "" ? null : Number(value); });""", table, title)


@test
def all_is_drawn(workdir):
    """power and lanes are drawn, every picture has a text alternative, no error and no request"""
    path, _, _ = make_page("imbalanced")
    page = browser.open(path)
    assert min(page.inked(".chart-power canvas")[:1]) > 0.01
    lanes = page.inked(".lanes canvas")
    assert lanes and min(lanes) > 0.01, lanes
    assert page.count(".strip") > 6 and page.count(".rank-bar rect") > 8 and page.count(".heat path") > 2
    is_quiet(page)
    has_text_for_pictures(page)
    page.hover(".chart-power .plot", 0.5)
    assert any("W" in text for text in page.texts(".chart-power .key .value"))


@test
def areas_are_energies(workdir):
    """the area of each node's power is its energy, and the total area is the job's: also over a restart and a
    takeover"""
    for kind in ("imbalanced", "restart", "takeover"):
        path, report, _ = make_page(kind)
        charts = charts_of(browser.open(path))
        axis, (power,) = charts["axis"], charts["charts"]
        lengths = [to - start for start, to in zip(axis["from_s"], axis["to_s"])]
        area = {one["label"]: sum(w * s for w, s in zip(one["mean"], lengths) if w is not None)
                for one in power["series"]}
        nodes = {row["node"]: row["energy_j"] for row in report["nodes"]}
        assert set(area) == {*nodes, "all nodes"}, area
        for name, energy_j in nodes.items():
            near(area[name], energy_j, relative=0.01)
        near(area["all nodes"], report["energy"]["total_j"], relative=0.01)


@test
def tables_are_the_report(workdir):
    """nodes, ranks and blocks on the page equal the JSON report; the first sentence names the slowest rank"""
    path, report, expected_values = make_page("imbalanced")
    page = browser.open(path)
    pairs = [("nodes-table", "energy", "nodes", "energy_j"), ("nodes-table", "CPU", "nodes", "cpu_s"),
             ("ranks-table", "energy", "ranks", "energy_j"), ("ranks-table", "waiting", "ranks", "waiting_s"),
             ("ranks-table", "time", "ranks", "duration_s")]
    for table, title, part, key in pairs:
        for shown, told in zip(column(page, table, title), (row[key] for row in report[part]), strict=True):
            near(shown, told, relative=1e-9)
    blocks = sorted((block["energy"]["total_j"] for block in report["blocks"]), reverse=True)
    for shown, told in zip(column(page, "blocks-table", "energy"), blocks, strict=True):
        near(shown, told, relative=1e-9)
    work_s = {rank: row["duration_s"] - row["waiting_s"] for rank, row in expected_values["ranks"].items()}
    slowest = max(work_s, key=work_s.get)
    assert page.text(".balance li").startswith(f"Slowest: rank {slowest} on node-03 worked"), page.text(".balance li")
    assert page.text(".tag-waits") == "waits"


@test
def lanes_are_ranks(workdir):
    """one lane for each rank under its node, from its first launch to its last; waiting is where the program waited"""
    path, _, expected_values = make_page("restart")
    charts = charts_of(browser.open(path))
    lanes = charts["lanes"]
    assert [lane["label"] for lane in lanes] == [f"rank {i}" for i in range(8)], [lane["label"] for lane in lanes]
    assert [lane["heading"] for lane in lanes] == ["node-01"] * 4 + ["node-02"] * 4
    wait = charts["blocks"].index("MPI_Allreduce")
    for rank, lane in enumerate(lanes):
        starts = [item[0] for item in lane["items"]]
        assert starts == sorted(starts) and starts[0] < 1 and starts[-1] > synthetic_jobs.KINDS["restart"].restart_s + 5
        near(sum(item[1] - item[0] for item in lane["items"] if item[2] == wait),
             expected_values["ranks"][rank]["waiting_s"], relative=0.01)


@test
def many_nodes(workdir):
    """sixteen nodes: seven have a colour of their own, nine share one, each has a row in the picture below"""
    path, report, _ = make_page("wide")
    page = browser.open(path)
    (power,) = charts_of(page)["charts"]
    labels = [one["label"] for one in power["series"]]
    assert len(labels) == 9 and "9 other nodes" in labels and labels[-1] == "all nodes", labels
    most = max(report["nodes"], key=lambda row: row["energy_j"])["node"]
    assert most in labels, (most, labels)
    assert page.texts(".heat text") == [row["node"] for row in report["nodes"]]
    assert page.js("return document.querySelectorAll('#ranks-table tbody tr').length") == 64


@test
def one_machine(workdir):
    """two nodes on one machine: the energy is in one row, the other refers to it"""
    path, report, _ = make_page("virtual_nodes")
    page = browser.open(path)
    energies = column(page, "nodes-table", "energy")
    near(energies[0], report["energy"]["total_j"], relative=1e-9)
    assert energies[1] is None
    assert "same machine as node-01, counted there" in page.text("#nodes-table")


@test
def names_are_text(workdir):
    """names of jobs, users, nodes and blocks: shown as text: no script runs, no resource is loaded"""
    path, report, _ = make_page("hostile")
    text = path.read_text(encoding="utf-8", errors="replace")
    for sign in ("<img", "onerror=alert(1)>", "<svg onload", "</script><script>alert"):
        assert sign not in text, sign
    page = browser.open(path)
    assert page.count("img, iframe, object, embed, form, base, video, audio, a[href^='javascript:']") == 0
    assert report["job"]["id"] in page.text("h1")
    is_quiet(page)


@test
def every_kind(workdir):
    """every kind of job, wide and narrow, light and dark: no error, nothing wider than the window, readable text"""
    for kind in KINDS:
        path, _, _ = make_page(kind, with_report=False)
        for width, scheme in ((1280, "light"), (400, "dark")):
            page = browser.page().size(width).colours(scheme).open(path)
            is_quiet(page, f"{kind} at {width}")
            contrast, words = contrasts(page)
            assert (contrast >= 4.5 or len(words) < 4
                    and contrast >= 3), f"{kind}, {scheme}: {contrast:.2f} for {words!r}"


@test
def on_paper(workdir):
    """64 ranks: a few pages of paper, which state what is left out; static pictures replace the drawn ones"""
    path, _, _ = make_page("wide")
    page = browser.open(path)
    assert page.print_to(workdir.folder / "page.pdf") <= 4
    page.colours(media="print")
    assert page.shown(".still svg") == 2 and page.shown(".live") == 0
    told = page.texts(".on-paper")
    assert any("44 more" in text for text in told), told


@test
def without_script(workdir):
    """browser without scripts: every figure, and static pictures"""
    path, _, _ = make_page("imbalanced", steps=6)
    figures = browser.open(path).texts(".figure")
    without = browser.page().scripts(False).open(path, wait=False)
    assert without.texts(".figure") == figures and figures
    assert without.shown(".still svg") == 2 and without.shown(".live") == 0 and without.shown("button") == 0
    assert (without.shown(".heat") == 1 and without.shown(".strip") > 6
            and "longer than the mean" in without.text(".balance"))
    has_text_for_pictures(without)


if __name__ == "__main__":
    main()
