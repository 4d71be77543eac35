#!/usr/bin/python3
"""Untrusted names in the page of a run: always shown as text."""
import json
import sqlite3

import browser
import synthetic_runs
from harness import WATTLE, main, test
from page_fixture import is_quiet, make_page

MARKUP = "<b marked>\"' marked='`</script></title></style>"


@test
def names_are_text(workdir):
    """no name becomes markup or script: nothing runs, no resource is loaded, only wattle's elements exist"""
    path, _ = make_page(workdir, "hostile")
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
def every_text(workdir):
    """markup in every text of a run file, a sensor's and a metric's too: none becomes an element of the page"""
    synthetic_runs.make(WATTLE, workdir.folder / "run.sqlite", "training")
    file = sqlite3.connect(workdir.folder / "run.sqlite")
    words = {("device", "provenance"), ("device", "kind"), ("span", "kind"), ("span", "close")}  # one of a few
    for table, in file.execute("select name from sqlite_master where type = 'table'").fetchall():
        for _, column, kind, *_ in file.execute(f"pragma table_info({table})").fetchall():
            if kind == "TEXT" and (table, column) not in words and table not in ("run", "metric"):
                file.execute(f"update {table} set {column} = coalesce({column}, '') || ?", (MARKUP,))
    for fact in ("label", "host", "command", "attribution", "wattle_version", "id", "cap_tune", f"meta.{MARKUP}"):
        file.execute("insert or replace into run (key, value) values (?, ?)", (fact, MARKUP))
    model = {"model": MARKUP, "layers": [{"name": MARKUP, "type": MARKUP, "output_shape": [MARKUP]}]}
    file.execute("insert into run (key, value) values ('meta.model_summary', ?)", (json.dumps(model),))
    file.commit()
    file.close()
    for command in (("report", "run.sqlite"), ("compare", "a=run.sqlite", "<b marked>=run.sqlite")):
        done = workdir.wattle(*command, "--format", "html")
        assert done.returncode == 0 and done.stdout.count("&lt;b marked&gt;") > 5, done.stderr
        at = done.stdout.find("<b marked")
        assert at < 0, done.stdout[at - 200:at + 50]


@test
def names_are_seen(workdir):
    """names: shown unchanged; their direction of writing affects nothing else; long ones are shortened"""
    path, _ = make_page(workdir, "hostile")
    page = browser.open(path)
    shown = page.texts("bdi")
    for name in synthetic_runs.HOSTILE:
        if isinstance(name, str) and 3 < len(name) < 60 and name.isprintable() and name.strip() == name:
            assert name in shown, name
    assert any(text.startswith("nnnn") and "…" in text and len(text) < 400 for text in shown)
    for unseen in ("(unnamed)", "(U+0020)", "(U+FEFF U+200B U+00AD)"):
        assert unseen in page.text("#blocks-table"), unseen
    outside = page.js("""return Array.from(document.querySelectorAll("body *")).flatMap((e) => Array.from(e.childNodes))
        .filter((n) => n.nodeType === 3 && /[\\u0590-\\u06ff\\u202e]/.test(n.data)
            && !n.parentElement.closest("bdi, script, title, desc, svg")
            && n.data.trim() !== n.parentElement.closest("li, td, p, dd").textContent.trim())
        .map((n) => n.data.slice(0, 60))""")
    assert not outside, f"right-to-left text among other text, and outside of <bdi>: {outside}"


@test
def the_way_out(workdir):
    """the same names in a page without a script, on a small screen and on paper"""
    path, _ = make_page(workdir, "hostile")
    page = browser.page().scripts(False).size(400).open(path, wait=False)
    assert page.overflow_px() <= 0, page.overflow_px()
    assert not page.requests() and page.count("img") == 0
    assert page.print_to(workdir.folder / "page.pdf") <= 3


main()
