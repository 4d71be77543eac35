"""Shared by tests of pages: a page of a synthetic run in a real browser, and properties that hold for every page."""
import functools
import pathlib
import re
import shutil
import tempfile

import browser
import harness
import synthetic_runs
from harness import WATTLE

# Texts that an unknown figure must never show.
NONSENSE = re.compile(r"\bNaN\b|\bundefined\b|\bnull\b|\bInfinity\b|\binf\b|\bnan\b|\[object |-nan|%!")


@functools.cache
def _made(kind):
    """Equal plans make equal files, so one page of a kind is enough for all tests of a program: eight GPUs take 2 s
    with sanitizers."""
    kept = tempfile.TemporaryDirectory(prefix="wattle-pages-")
    workdir = harness.WorkDir(pathlib.Path(kept.name))
    expected_values = synthetic_runs.make(WATTLE, workdir.folder / f"{kind}.sqlite", kind)
    done = workdir.wattle("report", f"{kind}.sqlite", "--format", "html", "-o", f"{kind}.html")
    assert done.returncode == 0 and not done.stderr, done.stderr
    workdir.stop_all()
    return kept, expected_values


def make_page(workdir, kind):
    """A synthetic run and its page, KIND.sqlite and KIND.html in the test's folder; (path of the page, true values of
    the run)."""
    kept, expected_values = _made(kind)
    shutil.copytree(kept.name, workdir.folder, dirs_exist_ok=True)
    return workdir.folder / f"{kind}.html", expected_values


def open_page(workdir, kind, **options):
    path, _ = make_page(workdir, kind)
    return browser.open(path, **options)


def is_quiet(page, name=""):
    """No message in the console, no request, nothing wider than the window, no invalid figure."""
    assert not page.complaints(), f"{name}: {page.complaints()}"
    assert not page.requests(), f"{name}: {page.requests()}"
    assert page.overflow_px() <= 0, f"{name}: {page.overflow_px()} px wider than the window"
    found = NONSENSE.search(page.js("return document.body.innerText"))
    assert not found, f"{name}: reads {found.group()!r}"


def has_text_for_pictures(page, name=""):
    """Every picture has a text alternative."""
    silent = page.js("""return Array.from(document.querySelectorAll("svg, canvas, img, [role=img]")).filter((e) => {
        if (e.closest("[aria-hidden=true]") || e.closest("[role=img]") !== e && e.closest("[role=img]"))
            return false;
        const title = e.querySelector(":scope > title");
        return !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby") && !(title && title.textContent.trim());
    }).map((e) => e.outerHTML.slice(0, 120))""")
    assert not silent, f"{name}: without words: {silent[:3]}"


def contrasts(page):
    """The lowest contrast of visible text to its background, by WCAG, and that text."""
    return page.js("""
        const luminance = (rgb) => rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
        const ground = (e) => {
            for (; e; e = e.parentElement) {
                const back = numbers(getComputedStyle(e).backgroundColor);
                if (back.length < 4 || back[3] === 1)
                    return back.slice(0, 3);
            }
            return [255, 255, 255];
        };
        let least = [99, ""];
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const e = walk.currentNode.parentElement;
            if (!walk.currentNode.data.trim() || e.getClientRects().length === 0 || e.closest("svg, script, style, :disabled"))
                continue;
            const ink = numbers(getComputedStyle(e).color);
            const [a, b] = [luminance(ink.slice(0, 3)), luminance(ground(e))].sort((x, y) => y - x);
            const contrast = (a + 0.05) / (b + 0.05);
            if (contrast < least[0])
                least = [contrast, walk.currentNode.data.slice(0, 60)];
        }
        return least;""")
