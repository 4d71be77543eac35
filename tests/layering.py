"""Checks the code against ARCHITECTURE.md: which module may include which; modules never print; no circular includes
between folders, few circular calls between files, few headers and mutable globals; the length of files; every test is
run. Prints TAP, and its counts.

usage: layering.py TOP [BUILD NM]     the folder with ARCHITECTURE.md; a build of it, whose objects NM reads
"""
import collections
import pathlib
import re
import subprocess
import sys

ROW = re.compile(r"^\| `src/(\w+)/` \|.*\| ([^|]*) \|$", re.MULTILINE)
INCLUDE = re.compile(r'^#include "(\w+)/[\w./]+"', re.MULTILINE)
INCLUDED_FILE = re.compile(r'^#include "([\w./-]+)"', re.MULTILINE)
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\\]|\\\\.)*\"", re.DOTALL)
LINES_MAX = 600
PRINTS = re.compile(r"\b(printf|puts|putchar|perror|fprintf|vprintf|vfprintf)\s*\(|\b(stdout|stderr)\b")
# Ceilings: lower them when the figures fall.
HEADERS_MAX = 190
FOLDER_CIRCLES_MAX = 0
CALL_CIRCLES_MAX = 3
GLOBALS_MAX = 3
# Libraries that are loaded into measured programs, whose calls have no argument for a context.
CAPTURE = ("src/span/capture/", "src/span/writer/")
WRITABLE = re.compile(r"\.(data|bss|tdata|tbss)\b(?!\.rel\.ro)")


def sources(top, module):
    return sorted(path for path in (top / "src" / module).rglob("*") if path.suffix in (".c", ".h", ".def"))


def wrong_includes(top, module, allowed):
    for path in sources(top, module):
        for other in INCLUDE.findall(path.read_text()):
            if other != module and other not in allowed:
                yield f"{path.relative_to(top)} includes {other}/"


def prints(top, module):
    for path in sources(top, module):
        code = NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text())
        for number, line in enumerate(code.splitlines(), 1):
            if PRINTS.search(line):
                yield f"{path.relative_to(top)}:{number}: {line.strip()}"


def unlisted(top):
    """A test program that no build file lists never runs."""
    listed = (top / "tests/e2e/meson.build").read_text()
    for path in sorted((top / "tests/e2e").glob("*.py")):
        if "\n@test\n" in path.read_text() and f"'{path.stem}'" not in listed:
            yield f"{path.relative_to(top)} is not in its folder's meson.build"


def too_long(top):
    for folder in ("src", "include", "python", "tests", "tools", "bench"):
        for path in sorted((top / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cpp", ".py", ".mjs", ".js", ".css") and not path.is_symlink():
                lines = path.read_bytes().count(b"\n")
                if lines > LINES_MAX:
                    yield f"{path.relative_to(top)} has {lines} lines, more than {LINES_MAX}: split it by subject"


def circles(graph):
    """The groups of nodes that all reach each other (Tarjan), those of one node left out."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            group = stack[stack.index(node):]
            del stack[-len(group):]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return sorted(found)


def described(graph):
    """A line for each circular group, and one for each pair in it with the names that one uses of the other."""
    found = circles(graph)
    lines = []
    for group in found:
        lines.append("circle: " + ", ".join(group))
        lines += [f"  {node} needs {other} for {', '.join(sorted(graph[node][other])[:4])}"
                  for node in group for other in group if other in graph[node]]
    return len(found), lines


def folder_graph(top):
    """Which folder includes files of which; a folder below a module's is a node of its own."""
    graph = collections.defaultdict(lambda: collections.defaultdict(set))
    for path in sources(top, ""):
        for name in INCLUDED_FILE.findall(path.read_text()):
            other = top / "src" / name
            if other.exists() and other.parent != path.parent:
                graph[str(path.parent.relative_to(top / "src"))][str(other.parent.relative_to(top / "src"))].add(name)
    return graph


def objects_of(top, build):
    """For each C file of src/ one object; meson names it after its path from the target's folder."""
    found = {}
    files = [path.relative_to(top / "src") for path in sources(top, "") if path.suffix == ".c"]
    for target in sorted((build / "src").rglob("*.p"), key=lambda path: ("core" not in path.name, path)):
        folder = target.parent.relative_to(build / "src")
        depth = len(folder.parts)
        for file in files:
            inside = file.parts[:depth] == folder.parts
            parts = file.parts[depth:] if inside else (*[".."] * depth, *file.parts)
            compiled = target / ("_".join(parts) + ".o")
            if compiled.exists():
                found.setdefault("src/" + str(file), compiled)
    return found


def symbols(top, build, nm):
    """(file, name, class, section) of each symbol."""
    of_object = {str(path): file for file, path in objects_of(top, build).items()}
    listed = subprocess.run([nm, "-A", "-f", "sysv", *of_object], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        parts = line.split("|")
        if len(parts) == 7:
            path, name = parts[0].split(":", 1)
            yield of_object[path], name.strip(), parts[2].strip(), parts[6].strip()


def call_graph(found):
    """Which file calls functions of which, by the symbols that objects define and need."""
    defined, graph = {}, collections.defaultdict(lambda: collections.defaultdict(set))
    for file, name, kind, _ in found:
        if kind == "T" and name != "main":
            defined.setdefault(name, set()).add(file)
    for file, name, kind, _ in found:
        if kind == "U":
            for other in defined.get(name, set()) - {file}:
                graph[file][other].add(name)
    return graph


def mutable_globals(found):
    """Writable variables; a compiler's own begin with two underscores."""
    return sorted(f"{file}: {name}" for file, name, _, section in found
                  if WRITABLE.search(section) and not name.startswith("__") and not file.startswith(CAPTURE))


def counted(what, n, most, lines):
    """A check against a ceiling; prints the count in any case."""
    return f"{what}: {n}, at most {most}", [] if n <= most else [f"{n} are more than {most}"], lines


def of_objects(top, build, nm):
    found = list(symbols(top, build, nm))
    n, lines = described(call_graph(found))
    yield counted("circles of calls between files", n, CALL_CIRCLES_MAX, lines)
    written = mutable_globals(found)
    yield counted("mutable globals outside the capture libraries", len(written), GLOBALS_MAX, written)


def main(top, build=None, nm="nm"):
    modules = {name: may.split(", ") for name, may in ROW.findall((top / "ARCHITECTURE.md").read_text())}
    listed = set(modules) ^ {p.name for p in (top / "src").iterdir() if p.is_dir()}
    checks = [("every module of src/ has its row", listed, [])]
    for module, allowed in modules.items():
        if allowed == ["all"]:
            continue
        checks.append((f"{module} includes only what it may", list(wrong_includes(top, module, allowed)), []))
        checks.append((f"{module} never prints", list(prints(top, module)), []))
    n, lines = described(folder_graph(top))
    checks.append(counted("circles of includes between folders", n, FOLDER_CIRCLES_MAX, lines))
    headers = sum(1 for _ in (top / "src").rglob("*.h"))
    checks.append(counted("headers", headers, HEADERS_MAX, []))
    if build is not None:
        checks += of_objects(top, pathlib.Path(build), nm)
    checks.append((f"no file has more than {LINES_MAX} lines", list(too_long(top)), []))
    checks.append(("every program of tests/e2e is run", list(unlisted(top)), []))
    print(f"1..{len(checks)}")
    for number, (name, wrong, lines) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in [*sorted(wrong), *lines]:
            print(f"# {line}")
    return any(wrong for _, wrong, _ in checks)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
