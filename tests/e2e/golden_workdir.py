"""Shared by the golden tests: run files from SQL text, and outputs as text that can be compared line by line.

The SQL is the run file as version 0.1.0 wrote it (user_version 1). It is data, not made by the tested program, so that
it also tests reading files of that version later.
"""
import base64
import functools
import gzip
import json
import pathlib
import re
import shutil
import sqlite3
import tempfile

from harness import TESTS
from perfetto_reader import Trace

GOLDEN = TESTS / "golden"
RUNS = GOLDEN / "runs"
EXPECTED = GOLDEN / "expected"
SPLIT = re.compile(r"(<(script|style)\b[^>]*>)(.*?)(</\2>)", re.DOTALL)
PICTURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
# Rows of such a table are written as one statement for each group, with the columns that have a value in that group.
GROUPS = {"device_sample": "device", "event": "kind", "span": "kind", "user_metric": "name"}


# ---- run files ----

def load(name, path):
    """The run file of tests/golden/runs/NAME.sql."""
    file = sqlite3.connect(path)
    file.executescript("PRAGMA journal_mode=off; PRAGMA synchronous=off; BEGIN;\n"
                       + (GOLDEN / "schema.sql").read_text() +
                       (RUNS / f"{name}.sql").read_text() + "COMMIT;")
    file.close()


@functools.cache
def _loaded():
    kept = tempfile.TemporaryDirectory(prefix="wattle-golden-")
    folder = pathlib.Path(kept.name)
    for path in sorted(RUNS.rglob("*.sql")):
        name = str(path.relative_to(RUNS)).removesuffix(".sql")
        (folder / name).parent.mkdir(exist_ok=True)
        load(name, folder / f"{name}.sqlite")
    for path in RUNS.glob("*.csv"):
        shutil.copy(path, folder)
    for path in RUNS.glob("*.b64"):
        (folder / path.stem).write_bytes(gzip.decompress(base64.b64decode(path.read_text())))
    # As `cp` during a run would leave it.
    (folder / "damaged").mkdir()
    (folder / "damaged/cut.sqlite").write_bytes((folder / "short.sqlite").read_bytes()[:4096])
    return kept


def load_all(folder):
    shutil.copytree(_loaded().name, folder, dirs_exist_ok=True)


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS TEXT)"
    if isinstance(value, str):
        if any(ord(letter) < 32 for letter in value):
            return f"CAST(X'{value.encode().hex()}' AS TEXT)"
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def text_or_bytes(data):
    """Names of programs need not be UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def insert(table, names, rows):
    """One statement for rows whose other columns have no value."""
    used = [i for i in range(len(names)) if any(row[i] is not None for row in rows)]
    lines = (f"({', '.join(literal(row[i]) for i in used)})" for row in rows)
    return f"INSERT INTO {table} ({', '.join(names[i] for i in used)}) VALUES\n" + ",\n".join(lines) + ";\n"


def dump(path):
    """A run file as the SQL of tests/golden/runs; table metric is in schema.sql."""
    file = sqlite3.connect(path)
    file.text_factory = text_or_bytes
    tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    out = []
    for table in tables:
        names = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
        rows = [] if table == "metric" else file.execute(f"SELECT * FROM {table}").fetchall()
        by = names.index(GROUPS[table]) if table in GROUPS else None
        groups = {}
        for row in rows:
            groups.setdefault(row[by] if by is not None else None, []).append(row)
        out += (insert(table, names, group) for group in groups.values())
    file.close()
    return "".join(out)


def dump_schema(path):
    """The empty tables of a run file, and the rows of table metric."""
    file = sqlite3.connect(path)
    out = [f"PRAGMA {name}={file.execute(f'PRAGMA {name}').fetchone()[0]};\n" for name in ("application_id",
        "user_version")]
    out += [row[0].replace(", ", ",\n\t") + ";\n"
            for row in file.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")]
    names = [row[1] for row in file.execute("PRAGMA table_info(metric)")]
    out.append(insert("metric", names, file.execute("SELECT * FROM metric ORDER BY table_name, name").fetchall()))
    file.close()
    return "".join(out)


# ---- outputs as lines ----

def same(text):
    return text


def pretty(text):
    """JSON with one member on a line, its numbers and strings unchanged. Arrays of scalars stay on one line."""
    tokens, out, depth, at = TOKEN.findall(text), [], 0, 0
    def line():
        out.append("\n" + " " * depth)
    while at < len(tokens):
        token = tokens[at]
        if token == "[":
            end = next(i for i in range(at + 1, len(tokens)) if tokens[i] in "[]{}")
            if tokens[end] == "]":
                out.append(" ".join(tokens[at:end + 1]).replace(" ,", ","))
                at = end + 1
                continue
        if token in "]}":
            depth -= 1
            line()
        out.append(token + (" " if token == ":" else ""))
        if token in "[{" and tokens[at + 1] not in "]}":
            depth += 1
            line()
        elif token in "[{":
            out.append(tokens[at + 1])
            at += 1
        elif token == ",":
            line()
        at += 1
    return "".join(out) + "\n"


def strip_page(text, pictures=True):
    """A page without its scripts and styles, its data as JSON; pictures=False: only the words of pictures."""
    def part(match):
        return match[1] + ("\n" + pretty(match[3]) if "application/json" in match[1] else "…") + match[4]
    text = SPLIT.sub(part, text)
    if not pictures:
        text = PICTURE.sub(lambda match: "<svg>" + "|".join(re.findall(r">([^<>\n]+)<", match[0])) + "</svg>", text)
    return text.replace("><", ">\n<")


def page(text):
    return strip_page(text, pictures=False)


def page_with_pictures(text):
    return strip_page(text)


def first_of_each(text, most=3):
    """Of JSON Lines the first records of each kind, with the total number; each event."""
    kept, counts = [], {}
    for line in text.splitlines():
        record = json.loads(line)
        kind = " ".join(str(record.get(key, "")) for key in ("type", "device", "kind"))
        counts[kind] = counts.get(kind, 0) + 1
        kept += [line] if counts[kind] <= most or record["type"] == "event" else []
    return "\n".join(kept + [f"{n} records: {kind}" for kind, n in counts.items()]) + "\n"


def folder(path):
    """All files of a folder, each after a line with its name."""
    return "".join(f"==== {file.name}\n{read(file)}\n" for file in sorted(path.iterdir()))


def tables(path):
    """Another program's SQLite file as SQL."""
    file = sqlite3.connect(path)
    out = "\n".join(file.iterdump()) + "\n"
    file.close()
    return out


def trace(path):
    """A Perfetto trace, decoded: tracks, slices, instants, values."""
    found = Trace(path.read_bytes())
    out = [f"clocks {found.clocks}"]
    for track in found.tracks.values():
        parent = found.tracks[track.parent].name if track.parent else None
        out.append(f"track {track.name!r} in {parent!r} pid {track.pid} tid {track.tid} process {track.process!r} "
                   f"unit {track.unit!r}")
        out += (f"  {t_ns} {value!r}" for t_ns, value in track.values)
    out += (f"slice {s.track.name!r} {s.depth} {s.name!r} {s.begin_ns} {s.end_ns} {s.category!r} {s.arguments}"
            for s in found.slices)
    out += (f"instant {i.track.name!r} {i.name!r} {i.t_ns} {i.category!r} {i.arguments}" for i in found.instants)
    return "\n".join(out) + "\n"


def read(path):
    """Unchanged: no line end is converted."""
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def names_of_expected():
    return ({str(path.relative_to(EXPECTED)) for path in EXPECTED.rglob("*") if path.is_file()} if EXPECTED.exists()
            else set())
