"""Holds the code to ARCHITECTURE.md: which module may include which, and that modules never print; files to their length, and the tests to being run. Prints TAP.

usage: layering.py TOP     the folder with ARCHITECTURE.md
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| `src/(\w+)/` \|.*\| ([^|]*) \|$", re.MULTILINE)
INCLUDE = re.compile(r'^#include "(\w+)/[\w./]+"', re.MULTILINE)
NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\\]|\\\\.)*\"", re.DOTALL)
LINES_MAX = 600
PRINTS = re.compile(r"\b(printf|puts|putchar|perror|fprintf|vprintf|vfprintf)\s*\(|\b(stdout|stderr)\b")


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
    """A program of tests that no run knows of passes for ever."""
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


def main(top):
    modules = {name: may.split(", ") for name, may in ROW.findall((top / "ARCHITECTURE.md").read_text())}
    checks = [("every module of src/ has its row", set(modules) ^ {p.name for p in (top / "src").iterdir() if p.is_dir()})]
    for module, allowed in modules.items():
        if allowed == ["all"]:
            continue
        checks.append((f"{module} includes only what it may", list(wrong_includes(top, module, allowed))))
        checks.append((f"{module} never prints", list(prints(top, module))))
    checks.append((f"no file has more than {LINES_MAX} lines", list(too_long(top))))
    checks.append(("every program of tests/e2e is run", list(unlisted(top))))
    print(f"1..{len(checks)}")
    for number, (name, found) in enumerate(checks, 1):
        print(f"{'not ok' if found else 'ok'} {number} - {name}")
        for line in sorted(found):
            print(f"# {line}")
    return any(found for _, found in checks)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
