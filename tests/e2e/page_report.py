#!/usr/bin/python3
"""The page of a run in a real browser: charts, mouse and keys, paper."""
import json
import re

import browser
from harness import TESTS, main, near, test
from page_fixture import contrasts, has_text_for_pictures, is_quiet, open_page

KINDS = ["eight_gpus", "segments", "killed", "holes", "no_gpu", "no_energy", "laptop", "short", "one_sample", "empty",
         "many_threads"]


def data_of(page):
    return json.loads(page.text("#charts"))


def shown_time(page):
    return page.text("#view .shown")


@test
def all_is_drawn(workdir):
    """every chart of the data and the lanes of spans are drawn; no error, no request"""
    page = open_page(workdir, "training")
    charts = [chart["id"] for chart in data_of(page)["charts"]]
    assert {"power", "cpu", "memory", "gpu_utilization", "gpu_memory", "temperature", "clock"} <= set(charts), charts
    for chart in charts:
        name = chart.partition(":")[0]
        inked = page.inked(f".chart-{name} canvas")
        assert inked and max(inked) > 0.01, f"{chart}: {inked}"
    assert page.shown(".plot") == len(charts)
    lanes = page.inked(".lanes canvas")
    assert lanes and min(lanes) > 0.01, lanes
    is_quiet(page)
    has_text_for_pictures(page)


@test
def one_cursor(workdir):
    """one cursor for all charts: their legends show the values of its bucket, mean and range"""
    page = open_page(workdir, "training")
    page.hover(".chart-power .plot", 0.5)
    told = page.texts(".key .value")
    assert all(told), told
    assert page.shown(".cursor") == 1
    power = page.texts(".chart-power .key .value")
    assert any("W" in text for text in power), power
    page.hover("h1")
    assert page.shown(".cursor") == 0


@test
def eight_gpus(workdir):
    """eight GPUs: their mean beside thin lines, limits behind one switch, throttling as a labelled strip, no error"""
    page = open_page(workdir, "eight_gpus")
    charts = {chart["id"]: chart for chart in data_of(page)["charts"]}
    means = [one for one in charts["gpu_utilization"]["series"] if one["line"] == "mean"]
    assert len(means) == 1 and means[0]["label"] == "mean of 8 GPUs", means
    parts = [one for one in charts["power"]["series"] if one["line"] == "part"]
    assert len({one["colour"] for one in parts}) == len(parts) > 8, [one["colour"] for one in parts]
    keys = page.texts(".chart-power .key")
    assert any("8 power limits" in key for key in keys) and not any("gpu-3 limit" in key for key in keys), keys
    assert any("clocks throttled" in key for key in keys) and any("highest of total" in key for key in keys), keys
    page.hover(".chart-power .plot", 0.5)
    assert any("total" in text and "W" in text for text in page.texts(".chart-power .key .value")), "a true total"
    assert page.texts(".chart-gpu_utilization .key .value")
    is_quiet(page)


@test
def one_zoom(workdir):
    """drag: zooms all charts, with Shift pans; Escape, a double click and Home show everything again"""
    page = open_page(workdir, "training")
    whole = shown_time(page)
    axis = page.texts(".chart-cpu .dygraph-axis-label-x")
    page.drag(".chart-power .plot", 0.4, 0.5)
    page.hover("h1")
    part = shown_time(page)
    assert part != whole and page.texts(".chart-cpu .dygraph-axis-label-x") != axis, part
    page.drag(".chart-cpu .plot", 0.4, 0.6, shift=True)
    page.hover("h1")
    assert shown_time(page) not in (part, whole), "Shift pans"
    for back in (lambda: page.keys("ESCAPE", on="#view"), lambda: page.keys("HOME", on="#view"),
                 lambda: page.click(".chart-memory .plot", times=2)):
        page.drag(".chart-power .plot", 0.3, 0.4)
        back()
        page.hover("h1")
        assert shown_time(page) == whole, shown_time(page)
    is_quiet(page)


@test
def by_keys(workdir):
    """keyboard: the view is reached by Tab; + and − zoom, arrows move; the wheel zooms with Ctrl and scrolls without"""
    page = open_page(workdir, "training")
    whole, seen = shown_time(page), []
    for _ in range(12):
        page.keys("TAB")
        seen.append(page.js("return document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "view":
            break
    assert seen[-1] == "view", seen
    page.keys("+")
    half = shown_time(page)
    assert half != whole
    page.keys("ARROW_RIGHT")
    assert shown_time(page) != half
    page.keys("ARROW_LEFT")
    page.keys("-")
    assert shown_time(page) == whole, shown_time(page)
    page.keys(*"+" * 40)
    smallest = shown_time(page)
    ticks = page.js("""return Array.from(document.querySelectorAll(".chart-cpu .dygraph-axis-label-x"),
        (e) => e.scrollWidth - e.clientWidth)""")
    assert ticks and max(ticks) <= 0, f"the last digits of a tick are cut off: {ticks}"
    page.keys(*"+" * 10)
    assert shown_time(page) == smallest, f"what can't be zoomed any more stays where it is: {smallest}"
    page.keys("HOME")
    page.wheel(".chart-power .plot", -300, ctrl=True)
    page.hover("h1")
    assert shown_time(page) != whole
    page.keys("ESCAPE", on="#view")
    page.wheel(".chart-power .plot", 200)
    page.hover("h1")
    assert shown_time(page) == whole


@test
def blocks_sort(workdir):
    """table of blocks: sorts by click and by key, figures from the largest, names from the first"""
    page = open_page(workdir, "training")
    heads = page.texts("#blocks-table thead th")
    for column, head in enumerate(heads):
        page.click(f"#blocks-table thead th:nth-child({column + 1})", height_part=0.5)
        order = page.js("return document.querySelector(arguments[0]).getAttribute('aria-sort')",
                        f"#blocks-table thead th:nth-child({column + 1})")
        values = page.js("""return Array.from(document.querySelector("#blocks-table tbody").rows, (r) => {
            const cell = r.cells[arguments[0]];
            return cell.dataset.value === undefined ? cell.textContent.trim() : cell.dataset.value; })""", column)
        known = [float(v) for v in values if v != ""] if column > 0 else values
        assert order in ("ascending", "descending"), head
        assert known == sorted(known, reverse=order == "descending"), (head, order, values)
        assert not [v for v in values[:len(known)] if v == ""], f"{head}: unknown ones come last"
    page.keys("ENTER", on="#blocks-table thead th:nth-child(2) button")
    first = page.text("#blocks-table tbody tr:first-child")
    page.keys("ENTER", on="#blocks-table thead th:nth-child(2) button")
    assert page.text("#blocks-table tbody tr:first-child") != first


@test
def flame(workdir):
    """click on a block of the flame graph: its contents fill the width; Escape and paper show everything"""
    page = open_page(workdir, "training")
    bars = """return Array.from(document.querySelectorAll(".flame g:not([hidden])"), (g) => [
        g.getAttribute("aria-label").split(":")[0], g.querySelector("rect").getBoundingClientRect().width,
        g.querySelector("text").textContent])"""
    labels = "return Array.from(document.querySelectorAll('.flame g'), (g) => g.getAttribute('aria-label'))"
    whole = page.js(bars)
    width = {name: pixels for name, pixels, _ in whole}
    joules = page.js(labels)
    assert any(name == text == "step" for name, _, text in whole), whole
    page.click(f".flame g:nth-of-type({[name for name, _, _ in whole].index('step') + 1}) rect")
    part = page.js(bars)
    assert {name for name, _, _ in part} < set(width) and "decode" not in [name for name, _, _ in part], part
    zoomed = {name: pixels for name, pixels, _ in part}
    near(zoomed["step"], width["this program"], relative=0.01)
    near(zoomed["load"] / width["load"], width["this program"] / width["step"], relative=0.05)
    assert joules == page.js(labels)
    page.print_to(workdir.folder / "page.pdf")
    page.keys("ESCAPE", on=".flame g:nth-of-type(1)")
    assert page.js(bars) == whole
    page.keys("ENTER", on=f".flame g:nth-of-type({[name for name, _, _ in whole].index('step') + 1})")
    assert page.js(bars) == part
    is_quiet(page)


# Red, green and blue as seen with protanopia, deuteranopia and tritanopia (Machado et al. 2009, severity 1).
SIGHTS = {"all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
          "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
          "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
          "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039))}


def lab(colour, sight):
    linear = [(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4)
              for v in (int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4))]
    r, g, b = (min(1, max(0, sum(weight * v for weight, v in zip(row, linear)))) for row in sight)
    white = ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
             (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in white)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@test
def colours_differ(workdir):
    """colours of series: distinguishable with any colour vision, with a contrast of 3:1 to the background"""
    text = (TESTS.parent / "src/report/palette.def").read_text()
    rows = {name: pair for name, *pair in re.findall(r"^COLOUR\((\w+),.*?0x(\w{6}), 0x(\w{6})", text, re.M)}
    series = [name for name in rows if name.startswith(("SERIES", "HOST"))]
    assert len(series) == 16 + 8, "16 GPUs, four sockets and their DRAM: each its own"
    for ground in (0, 1):
        for name in [*series, "OTHERS", "TARGET", "WATTLE", "WARN", "GOOD", "IDLE"]:
            low, high = sorted((lab(rows[one][ground], SIGHTS["all"])[0] + 16) / 116 for one in (name, "BACK"))
            assert (high ** 3 + 0.05) / (low ** 3 + 0.05) >= 3, f"{name} on {('light', 'dark')[ground]} ground"
        for sight, matrix in SIGHTS.items():
            seen = [lab(rows[name][ground], matrix) for name in series]
            least = min((sum((x - y) ** 2 for x, y in zip(seen[i], seen[k])) ** 0.5, i, k)
                        for i in range(len(seen)) for k in range(i))
            assert least[0] > 10, f"{sight}, {('light', 'dark')[ground]} ground: {least}"


@test
def light_and_dark(workdir):
    """light and dark: from the system setting, switched by a button; all text has enough contrast in both"""
    page = open_page(workdir, "training")
    grounds = {}
    for scheme in ("light", "dark"):
        page.colours(scheme)
        page.settle()
        grounds[scheme] = page.js("return getComputedStyle(document.body).backgroundColor")
        contrast, text = contrasts(page)
        assert contrast >= 4.5 or len(text) < 4 and contrast >= 3, f"{scheme}: {contrast:.2f} for {text!r}"
    assert grounds["light"] == "rgb(255, 255, 255)" != grounds["dark"], grounds
    page.click("#theme")
    assert page.js("return getComputedStyle(document.body).backgroundColor") == grounds["light"]
    assert max(page.inked(".chart-power canvas")) > 0.01
    page.click("#theme")
    is_quiet(page)


@test
def on_paper(workdir):
    """printed run: at most two A4 pages, with static pictures and without buttons"""
    for kind in ("training", "eight_gpus", "killed", "no_energy", "empty"):
        page = open_page(workdir, kind)
        pages = page.print_to(workdir.folder / "page.pdf")
        assert 1 <= pages <= 2, f"{kind}: {pages} pages"
    page.open(workdir.folder / "training.html").colours(media="print")
    assert page.shown("button:not(th button)") == 0 and page.shown(".still svg") >= 3 and page.shown(".live") == 0
    repeated = page.js("return ['thead', 'tfoot'].map((e) => getComputedStyle(document.querySelector(e)).display)")
    assert repeated == ["table-header-group", "table-row-group"], "table headers are on every page, a sum at the end"
    boxes = page.js("return Array.from(document.querySelectorAll('thead *'), (e) => getComputedStyle(e).display)")
    assert "contents" in boxes and "inline-block" not in boxes, "Chromium repeats no header that contains a box"


@test
def print_states_omitted_rows(workdir):
    """print: all rows where there is room; otherwise the number of omitted rows, also after sorting"""
    printed = """return Array.from(document.querySelectorAll("main tbody"), (body) => {
        const seen = Array.from(body.rows).filter((row) => row.getClientRects().length > 0).length;
        const note = body.closest(".wide").nextElementSibling;
        const told = note && note.matches(".on-paper") ? note.textContent.match(/and (\\d+) more/) : null;
        return [body.closest("table").id, body.rows.length, seen, told ? Number(told[1]) : 0];
    }).filter((table) => table[0] !== "events-table")"""
    open_page(workdir, "training").colours(media="print")
    page = browser.page()
    assert all(rows == seen and more == 0 for _, rows, seen, more in page.js(printed)), page.js(printed)
    page.colours()
    open_page(workdir, "hostile").click("#blocks-table thead th:nth-child(2)")
    page.colours(media="print")
    tables = page.js(printed)
    assert any(more > 0 for *_, more in tables), tables
    assert all(rows == seen + more for _, rows, seen, more in tables), tables
    page.size(703).open(workdir.folder / "hostile.html").colours(media="print")  # A4 less its margins
    widths = page.js("return Array.from(document.querySelectorAll('table'), (e) => e.getBoundingClientRect().right)")
    assert max(widths) <= 703 * 4 / 3, f"Chromium shrinks pages by a quarter at most; more is cut off: {widths}"
    assert "events; the page lists them" in page.text("main") or page.count("#events-table") == 0


@test
def without_script(workdir):
    """no scripts: all figures and tables, and static pictures in place of the charts"""
    page = open_page(workdir, "training")
    figures = page.texts(".figure")
    without = browser.page().scripts(False).open(workdir.folder / "training.html", wait=False)
    assert without.texts(".figure") == figures and figures
    assert without.shown(".still svg") >= 3 and without.shown(".live") == 0 and without.shown("button") == 0
    assert without.count("#blocks-table tbody tr") >= 9
    flame = "return document.querySelector('#flame ~ .picture svg').getBoundingClientRect().width"
    assert without.js(flame) > 1000
    without.size(400)
    assert without.js(flame) > 1000, "a static flame graph scrolls; its text stays readable"
    without.size(1400)
    widths = without.js("return Array.from(document.querySelectorAll('.still > div'), (e) => e.clientWidth)")
    assert widths and min(widths) > 500, f"too small to be read: {widths}"
    lowest = without.js("return document.querySelector('.still svg path[class^=c-]').getAttribute('class')")
    assert lowest == "c-series-0", f"the GPU has a limit and stands below the others, as the script has it: {lowest}"
    has_text_for_pictures(without)


@test
def every_kind(workdir):
    """runs that are empty, short, killed, in segments, without GPU, with eight: no error, no invalid figure"""
    for kind in KINDS:
        page = open_page(workdir, kind)
        is_quiet(page, kind)
        has_text_for_pictures(page, kind)
        drawn = page.inked(".plot canvas")
        assert not drawn or max(drawn) > 0.01, kind
    assert "n/a" in open_page(workdir, "no_energy").text(".tiles")


@test
def every_width(workdir):
    """at 1400, 700, 400 and 320 px: only wide tables scroll sideways, and the charts fill the width"""
    page = open_page(workdir, "eight_gpus")
    for width in (1400, 700, 400, 320):
        page.size(width).open(workdir.folder / "eight_gpus.html")
        is_quiet(page, width)
        plot = page.js("return document.querySelector('.chart-power .plot').getBoundingClientRect().width")
        near(plot, min(width, 1280), relative=0.15)


@test
def small_screen(workdir):
    """at 400 px: the whole ledger is visible, energy is next to a block's name, and the name stays when scrolled"""
    page = open_page(workdir, "eight_gpus")
    page.size(400).open(workdir.folder / "eight_gpus.html")
    right = page.js("""return Math.max(...Array.from(document.querySelectorAll(
        "section:has(#ledger) :is(rect, li, td, th, p, strong)"), (e) => e.getBoundingClientRect().right))""")
    assert right <= 400, f"something of the ledger ends at {right} px"
    bar = page.js("return document.querySelector('.ledger-bar').getBoundingClientRect().width")
    shares = page.js("""return Array.from(document.querySelectorAll(".by-owner rect[class]"), (e) =>
        e.getBoundingClientRect().width)""")
    near(sum(shares), bar, relative=0.02)
    assert max(shares) < 0.99 * bar, "the program's part is not all of it"
    heads = page.texts("#blocks-table thead th")
    assert heads[:2] == ["block", "energy"], heads
    assert page.js("""const cell = document.querySelector("#blocks-table tbody td").getBoundingClientRect();
        return cell.right""") <= 400
    seen = page.js("""const box = document.querySelector(".wide:has(#blocks-table)");
        box.scrollLeft = 300;
        const name = box.querySelector("tbody th").getBoundingClientRect();
        return [box.scrollLeft, name.left - box.getBoundingClientRect().left]""")
    assert seen[0] > 100 and abs(seen[1]) <= 1, seen
    rows = page.js("return Array.from(document.querySelectorAll('.flame rect'), (e) => "
                   "e.getBoundingClientRect().height)")
    assert rows and min(rows) >= 14, rows
    holes = page.js("""return Array.from(document.querySelectorAll(".chart-head"), (head) => {
        const box = head.getBoundingClientRect(), last = head.querySelector(".legend .key:last-child");
        return last ? box.bottom - last.getBoundingClientRect().bottom : 0;
    })""")
    assert max(holes) <= 30, f"room for more than a line of values under the cursor: {holes}"


@test
def few_and_no_samples(workdir):
    """unresolved, small and zero values are displayed differently"""
    page = open_page(workdir, "training")
    rows = page.js("""return Array.from(document.querySelectorAll("#ledger-table tbody tr"), (row) =>
        Array.from(row.cells, (cell) => cell.textContent))""")
    shares = {name.split(" ")[0]: (name, share) for name, *_, share in rows}
    assert shares["wattle"][1] == "< 0.1 %" and shares["unattributed"][1] == "0 %", shares
    assert shares["idle"] == ("idle power drawn when nothing runs; not separated (attribution: busy)", "n/a"), shares
    box = page.js("""const box = document.querySelector("#ledger-table").parentElement; return [box.scrollWidth, box.clientWidth]""")
    assert box[0] <= box[1], f"the table is cut off: {box}"
    assert page.texts("#blocks-table tfoot td")[1] == "0 %"
    assert "add up to more than 100 %" in page.text("section:has(#blocks)")
    assert "CPU time" in page.text("#domains-table") and "memory (PSS)" in page.text("#domains-table")


@test
def lanes_by_keys(workdir):
    """arrows step through spans and lanes and announce their values, Enter highlights the block; blocks have buttons"""
    page = open_page(workdir, "training")
    spans = ".chart-lanes:last-of-type .lanes"
    said = "return document.querySelector('.chart-lanes:last-of-type [role=status]').textContent"
    whole = shown_time(page)
    page.keys("ARROW_RIGHT", on=spans)
    first = page.js(said)
    assert first and page.shown("#tip") == 1, first
    page.keys("ARROW_RIGHT")
    second = page.js(said)
    assert second and second != first
    page.keys("ARROW_DOWN")
    inner = page.js(said)
    assert inner not in (first, second)
    page.keys("ARROW_UP")
    page.keys("ARROW_LEFT")
    assert page.js(said) == first and shown_time(page) == whole
    page.keys("ENTER")
    assert page.count("tr.chosen") == 1 and page.count(".block-choice[aria-pressed=true]") == 1
    page.keys("ESCAPE")
    assert page.js(said) == "" and page.shown("#tip") == 0
    page.keys("ENTER", on="tr[data-block]:not(.chosen) .block-choice")
    assert page.count("tr.chosen") == 1 and page.js("return document.activeElement.closest('tr').className") == "chosen"


@test
def scrollers(workdir):
    """regions that scroll sideways: reached by Tab and named; others are no tab stops"""
    page = open_page(workdir, "training")
    wide = """return Array.from(document.querySelectorAll(".wide"), (box) =>
        [box.scrollWidth > box.clientWidth + 1, box.tabIndex === 0 && !!box.getAttribute("aria-label")])"""
    for width in (1400, 400):
        page.size(width).open(workdir.folder / "training.html")
        boxes = page.js(wide)
        assert all(scrolls == named for scrolls, named in boxes), (width, boxes)
    assert any(scrolls for scrolls, _ in boxes), boxes


main()
