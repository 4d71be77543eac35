#!/usr/bin/python3
"""Names that programs, people and machines give, in the page of a run: they are text, whatever they look like."""
import browser
import made_runs
from harness import main, test
from page_room import is_quiet, make_page


@test
def names_are_text(room):
    """no name becomes markup or script: nothing runs, nothing is loaded, no element is there but wattle's own"""
    path, _ = make_page(room, "hostile")
    text = path.read_text(encoding="utf-8", errors="replace")
    for sign in ("<img", "onerror=alert(1)>", "<svg onload", "</script><script>alert"):
        assert sign not in text, sign
    page = browser.open(path)
    assert page.count("img, iframe, object, embed, form, base, video, audio, a[href^='javascript:']") == 0
    handlers = page.js("""return Array.from(document.querySelectorAll("*")).flatMap((e) =>
        Array.from(e.attributes, (a) => a.name).filter((name) => name.startsWith("on")
            || name === "style" && !e.closest("#view, #tip, .live")))""")
    assert not handlers, handlers
    page.hover(".lanes canvas", 0.5, 0.9)
    assert not page.complaints(), page.complaints()
    assert not page.requests(), page.requests()
    assert page.overflow_px() <= 0


@test
def names_are_seen(room):
    """names are seen as they are; their direction of writing turns nothing else; long ones are cut"""
    path, _ = make_page(room, "hostile")
    page = browser.open(path)
    shown = page.texts("bdi")
    for name in made_runs.HOSTILE:
        if isinstance(name, str) and 3 < len(name) < 60 and name.isprintable() and name.strip() == name:
            assert name in shown, name
    assert any(text.startswith("nnnn") and "…" in text and len(text) < 400 for text in shown)
    assert "(unnamed)" in page.text("#blocks-table")
    outside = page.js("""return Array.from(document.querySelectorAll("body *")).flatMap((e) => Array.from(e.childNodes))
        .filter((n) => n.nodeType === 3 && /[\\u0590-\\u06ff\\u202e]/.test(n.data)
            && !n.parentElement.closest("bdi, script, title, desc, svg")
            && n.data.trim() !== n.parentElement.closest("li, td, p, dd").textContent.trim())
        .map((n) => n.data.slice(0, 60))""")
    assert not outside, f"right-to-left text among other text, and outside of <bdi>: {outside}"


@test
def the_way_out(room):
    """the same names in a run without a script, on a small screen and on paper"""
    path, _ = make_page(room, "hostile")
    page = browser.page().scripts(False).size(400).open(path, wait=False)
    assert page.overflow_px() <= 0, page.overflow_px()
    assert not page.requests() and page.count("img") == 0
    assert page.print_to(room.folder / "page.pdf") <= 3


main()
