#!/usr/bin/env python3
"""Makes one C file of the resources in every page that wattle writes: styles, scripts and dygraphs, each with its hash
for the Content-Security-Policy.

	embed-assets.py OUTPUT.c PALETTE.def DYGRAPH.js ASSETS_FOLDER [DEPFILE]

PAGES lists the files of each kind of page, in the order of enum page_script (src/report/page/page.h).
"""
import base64
import hashlib
import re
import sys
from pathlib import Path

CHARTS = ["axis.js", "model.js", "paint.js", "charts.js"]
# kind: (styles, whether it draws charts with dygraphs, scripts); "palette" is made from palette.def
PAGES: dict[str, tuple[list[str], bool, list[str]]] = {
    "PAGE_SCRIPT_NONE": (["palette", "page.css"], False, []),
    "PAGE_SCRIPT_REPORT": (["palette", "page.css", "charts.css", "report.css"], True,
                           ["page.js", "numbers.js", "tables.js", *CHARTS, "lanes.js", "lane_keys.js",
                            "view.js", "flame.js",
                            "report.js"]),
    "PAGE_SCRIPT_COMPARE": (["palette", "page.css", "charts.css", "compare.css"], True,
                            ["page.js", "numbers.js", "tables.js", *CHARTS, "lanes.js", "lane_keys.js",
                             "view.js", "compare.js"]),
    "PAGE_SCRIPT_JOB": (["palette", "page.css", "charts.css", "report.css", "job.css"], True,
                        ["page.js", "numbers.js", "tables.js", *CHARTS, "lanes.js", "lane_keys.js",
                         "view.js", "job.js"]),
    "PAGE_SCRIPT_LIVE": (["palette", "page.css", "charts.css", "live.css"], True,
                         ["page.js", "numbers.js", "tables.js", "live_charts.js", "live.js"]),
}
LITERAL_SIZE = 4000  # length of one C string; the compiler joins them


def palette_css(text: str) -> str:
    rows = re.findall(r'^COLOUR\(\s*(\w+)\s*,\s*"([^"]+)"\s*,\s*0x([0-9a-f]{6})\s*,\s*0x([0-9a-f]{6})\s*,', text, re.M)
    if not rows:
        sys.exit("embed-assets: no COLOUR row in the palette")
    light = "".join(f"--{name}:#{day};" for _, name, day, _ in rows)
    dark = "".join(f"--{name}:#{night};" for _, name, _, night in rows)
    # A button of the page sets data-theme; paper is white whatever the screen shows.
    css = (f":root{{color-scheme:light;{light}}}\n"
           f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
           "@media screen and (prefers-color-scheme:dark)"
           f"{{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n")
    for _, name, _, _ in rows:  # for pictures, whose colours are classes: fill of areas, stroke of lines
        css += f".c-{name}{{fill:var(--{name});--c:var(--{name})}}.s-{name}{{stroke:var(--{name});fill:none}}\n"
    return css


def squeezed_css(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def squeezed_js(text: str) -> str:
    """Removes comment-only lines and indentation; needs no parser."""
    kept, in_comment = [], False
    for line in text.splitlines():
        bare = line.strip()
        if in_comment:
            in_comment = "*/" not in bare
            continue
        if bare.startswith("/*"):
            in_comment = "*/" not in bare
            continue
        if bare and not bare.startswith("//"):
            kept.append(bare)
    return "\n".join(kept) + "\n"


def dygraphs(path: Path, licence: str) -> str:
    """As Debian ships it, without the address of its source map, which browsers with developer tools would request."""
    code = re.sub(r"^//# sourceMappingURL=.*$", "", path.read_text(encoding="utf-8"), flags=re.M).strip()
    first, _, rest = code.partition("\n")
    if "@license" not in first:
        sys.exit(f"embed-assets: {path}: the first line names no licence")
    return f"{first}\n/*!\n{licence.strip()}\n*/\n{rest}\n"


def c_string(text: str) -> str:
    data, lines = text.encode("utf-8"), []
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\t"): "\\t", ord("?"): "\\?"}
    for at in range(0, len(data), LITERAL_SIZE):
        part = "".join(escapes.get(b) or (chr(b) if 0x20 <= b < 0x7f else f"\\{b:03o}")
                       for b in data[at:at + LITERAL_SIZE])
        lines.append(f'\t"{part}"')
    return "\n".join(lines) or '\t""'


def harmless(name: str, text: str) -> str:
    """Nothing inside <script> and <style> may look like their end."""
    if re.search(r"</(script|style)|<!--", text, re.I):
        sys.exit(f"embed-assets: {name} holds an end tag or <!--, which would end it early in a page")
    return text


class Assets:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # text to the name of its C array
        self.code: list[str] = []

    def add(self, name: str, text: str) -> str:
        """The initialiser of a struct page_asset; equal texts are stored once."""
        if text not in self.names:
            self.names[text] = f"text_{len(self.names)}"
            self.code.append(f"static const char {self.names[text]}[] = // {name}\n{c_string(harmless(name, text))};\n")
        digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
        return f'{{{self.names[text]}, sizeof({self.names[text]}) - 1, "sha256-{digest}"}}'


def main(output: str, palette: str, dygraph: str, folder: str, depfile: str = "") -> None:
    used: set[Path] = set()

    def read(name: str) -> str:
        used.add(Path(folder, name))
        return Path(folder, name).read_text(encoding="utf-8")

    styles = {"palette": palette_css(Path(palette).read_text(encoding="utf-8"))}
    charts = dygraphs(Path(dygraph), read("dygraphs-licence.txt"))
    assets, rows = Assets(), []
    for kind, (style_names, has_charts, script_names) in PAGES.items():
        style = "".join(styles.get(name) or squeezed_css(read(name)) for name in style_names)
        scripts = [assets.add("dygraphs", charts)] if has_charts else []
        if script_names:  # one scope for all of them, and none of their names in the page's scope
            body = "".join(squeezed_js(read(name)) for name in script_names)
            scripts.append(assets.add(kind, f'(function(){{"use strict";\n{body}}})();\n'))
        rows.append(f"\t[{kind}] = {{\n\t\t.style = {assets.add('style of ' + kind, style)},\n\t\t.scripts = "
                    f"{{{', '.join(scripts)}}},\n\t\t.n_scripts = {len(scripts)},\n\t}},\n")
    Path(output).write_text("/* Made by tools/embed-assets.py. */\n#include \"report/page/assets.h\"\n\n"
                            + "\n".join(assets.code)
                            + f"\nconst struct page_assets page_assets[{len(rows)}] = {{\n{''.join(rows)}}};\n",
                            encoding="utf-8")
    if depfile:
        Path(depfile).write_text(f"{output}: {' '.join(sorted(str(path) for path in used))}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
