#!/usr/bin/python3
"""Writes the tables of docs/*.md that come from the tables of the program.

usage: make-docs.py [--check] SOURCE BUILD

A table is between <!-- table: KIND NAME --> and <!-- end of table -->. KIND and NAME: `families` and a heading of openmetrics.def
(with those of metrics.def and blocks.def), `metrics` and a scope of metrics.def, `keys` and a JSON document whose schema is in BUILD
(`cap-tune`; `blocks/block`: a definition in it), or `deprecated names`: of commands, options, JSON keys and Python. --check prints TAP and writes nothing.
"""
import json
import pathlib
import re
import sys

PART = re.compile(r"(<!-- table: (\w+) ([^>]+) -->\n).*?(<!-- end of table -->\n)", re.S)
ROW = re.compile(r'FAMILY\(\w+#*\w*, ([^,]+), (\w+), ([^,]+), (\w+), ("[^"]*"|\w+(?: "[^"]*")?), (.*)\)(?: \\)?$')
METRIC = re.compile(r'METRIC\((\w+), +(\w+), "(\w+)", +(\w+), "(\w+)", +"([^"]*)", "([^"]*)"')
BLOCK_FAMILY = re.compile(r'^BLOCK_FAMILY\([^,]+, "(\w+)", (\w+), [^,]+, "([^"]*)"\)', re.M)
DEVICE_FAMILY = re.compile(r'METRIC\((\w+), +DEVICE,[^\n]*,\n\tFAMILY\("(\w+)", [^,]+, "([^"]*)"\)')
SUFFIXES = {"COUNTER": "_total", "INFO": "_info", "GAUGE": ""}
PLACES = {"RUN": "run", "LIVE": "live", "BOTH": "both"}
# Texts of the arguments of row macros in openmetrics.def.
ARGUMENTS = {"thing": "THING", "label": "", "text": "the job or cgroup", "prefix": "process"}


def text(source):
    """The text of a C expression: literals and macro arguments in succession."""
    return "".join(ARGUMENTS[word] if word else literal for literal, word in re.findall(r'"([^"]*)"|(\w+)', source))


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines).replace("|  |", "| |")


def family(name, kind, labels, meaning, place):
    return [f"`{name}{SUFFIXES[kind]}`", ", ".join(f"`{word}`" for word in labels.split(", ") if word),
            meaning.rstrip("."), PLACES[place]]


def families(source, _, heading):
    rows, at = [], None
    if heading == "Devices and machine":
        metrics = (source / "src/metric/metrics.def").read_text()
        for identity, name, meaning in DEVICE_FAMILY.findall(metrics):
            is_live = identity == "POWER_CAP" or f"DEVICE_LIVE({identity}," in metrics
            rows.append(family(name, "GAUGE", "domain, kind, gpu" if is_live else "domain, kind", meaning, "BOTH" if is_live else "RUN"))
    for line in (source / "src/report/openmetrics.def").read_text().splitlines():
        title, row = re.fullmatch(r"/\* ([^*]+) \*/", line), ROW.match(line)
        at = title[1] if title else at
        if row and at == heading:
            name, kind, _, place, labels, meaning = row.groups()
            rows.append(family(text(name), kind, text(labels), text(meaning), place))
            if name == '"wattle_metric"':
                blocks = BLOCK_FAMILY.findall((source / "src/metric/blocks.def").read_text())
                rows += [family(name, kind, "block", meaning, "RUN") for name, kind, meaning in blocks]
    return table(["family", "labels", "meaning", "in"], rows)


def metrics(source, _, scope):
    found = METRIC.findall((source / "src/metric/metrics.def").read_text())
    return table(["column", "kind", "meaning", "source"], [[f"`{name}`", kind.lower(), meaning, where]
                                                         for _, of, name, kind, _, where, meaning in found if of == scope])


def values(schema):
    """The permitted texts of a value: `power` or `clocks`."""
    texts = [f"`{text}`" for text in schema.get("enum", []) if text is not None]
    return f": {', '.join(texts[:-1])} or {texts[-1]}" if len(texts) > 1 else ""


def keys_of(definitions, name, prefix, path):
    """Rows of the keys of an object and of the objects in it, one level after the other. path: the definitions that contain it."""
    rows, inner = [], []
    for key, schema in definitions[name].get("properties", {}).items():
        if schema.get("deprecated"):
            continue
        rows.append([f"`{prefix}{key}`", schema.get("description", "").rstrip(".") + values(schema)])
        choices = [schema, *schema.get("anyOf", []), schema.get("items", {}), schema.get("additionalProperties", {})]
        mark = "[]" if "items" in schema else ".*" if "additionalProperties" in schema else ""
        for target in (choice["$ref"].rpartition("/")[2] for choice in choices if "$ref" in choice):
            known = [other for other in inner if other[0] == target]
            if known:
                rows[-1][1] += f", as `{known[0][1]}`"
            elif target not in path:
                inner.append((target, f"{prefix}{key}{mark}"))
    for target, at in inner:
        rows += keys_of(definitions, target, f"{at}.", [*path, target])
    return rows


def keys(_, build, name):
    document, _, definition = name.partition("/")
    schema = json.loads((build / f"src/cli/{document}.json").read_text())
    definition = definition or schema["$ref"].rpartition("/")[2]
    return table(["key", "meaning"], keys_of(schema["$defs"], definition, "", [definition]))


def deprecated(source, build, _):
    found = re.findall(r'^DEPRECATED\((\w+), "(.*)", "(.*)", "(.*)", "(.*)"\)',
                       (source / "src/cli/deprecated.def").read_text(), re.M)
    rows = [[f"`wattle {command} --{old}`", f"`--{new}`", since] if kind == "OPTION" else
            [f"`wattle {old}`", f"`wattle {new}`", since] for kind, command, old, new, since in found]
    documents = {}  # (old key, new key): documents that have it
    for path in sorted((build / "src/cli").glob("*.json")):
        for definition in json.loads(path.read_text())["$defs"].values():
            for key, schema in definition.get("properties", {}).items():
                if schema.get("deprecated"):
                    documents.setdefault((key, schema["description"].rpartition(" ")[2]), {})[f"`{path.stem}`"] = True
    rows += [[f"key `{old}` in JSON: {', '.join(found)}", f"`{new}`", "0.1.0"] for (old, new),
             found in documents.items()]
    families = re.findall(r'"(wattle_\w+)",.*"Deprecated: use (\w+)\."', (source / "src/report/openmetrics.def").read_text())
    rows += [[f"metric `{old}`", f"`{new}`", "0.1.0"] for old, new in families]
    names = re.findall(r'^    "(\w+)": \("(\w+)", "(.*)"\)', (source / "python/wattle/_deprecated.py").read_text(),
                       re.M)
    rows += [[f"`wattle.{old}` in Python", f"`wattle.{new}`", since] for old, new, since in names]
    return table(["deprecated name", "use", "since"], rows)


def made(source, build, page):
    makers = {"families": families, "metrics": metrics, "keys": keys, "deprecated": deprecated}

    def part(found):
        return found[1] + makers[found[2]](source, build, found[3]) + found[4]
    return PART.sub(part, page)


def main(words):
    if len([word for word in words if word != "--check"]) != 2:
        sys.exit(__doc__)
    is_check, source, build = "--check" in words, *map(pathlib.Path, words[-2:])
    pages = [path for path in sorted((source / "docs").glob("*.md")) if PART.search(path.read_text())]
    is_wrong = False
    if is_check:
        print(f"1..{len(pages)}")
    for number, path in enumerate(pages, 1):
        old, new = path.read_text(), made(source, build, path.read_text())
        if is_check:
            is_wrong |= old != new
            print(f"{'not ok' if old != new else 'ok'} {number} - docs/{path.name}: its tables are those of the program"
                  + ("\n# run tools/make-docs.py SOURCE BUILD" if old != new else ""))
        else:
            path.write_text(new)
    return is_wrong or not pages


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
