"""The installed side of the library: its symbols, its header in every dialect, programs that link it. Prints TAP.

usage: library.py TOP SO ARCHIVE     the source tree, libwattle.so and libwattle.a
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

TOP, SHARED, ARCHIVE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
HEADER = TOP / "include/wattle.h"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

# A use of everything defined in the header, in each language that it supports.
USE = """
#include <wattle.h>
int use(int n);
int use(int n)
{
	struct wattle_reading reading = {0};
	(void)reading;
	WATTLE_SPAN("outer") {
		WATTLE_SPAN("inner")
			n++;
		if (n > 3)
			return n;
	}
	return (int)sizeof(struct wattle_tracker_options);
}
""".replace("{0}", "{}")
DIALECTS = [("gcc", "c99"), ("gcc", "c11"), ("gcc", "c17"), ("g++", "c++98"), ("g++", "c++11"),
            ("g++", "c++17"), ("g++", "c++20"),
            ("clang", "c99"), ("clang", "c17"), ("clang++", "c++11"), ("clang++", "c++20")]

LEAVES_C = r"""
#include <setjmp.h>
#include <wattle.h>
static jmp_buf out;
static int returns(void) { WATTLE_SPAN("return") { return 1; } return 0; }
static void jumps(void) { WATTLE_SPAN("jumped over") { longjmp(out, 1); } }
/* Names that the library has inside are the program's own. */
int span_begin(int x); int span_begin(int x) { return x; }
int span_writer_state = 7;
int main(void)
{
	for (int i = 0; i < 2; i++)
		WATTLE_SPAN("continue") { continue; }
	WATTLE_SPAN("break") { break; }
	WATTLE_SPAN("goto") { goto after; }
after:
	if (returns() != 1 || span_begin(3) != 3 || span_writer_state != 7)
		return 1;
	WATTLE_SPAN("around a longjmp") {
		if (setjmp(out) == 0)
			jumps();
	}
	return 0;
}
"""
LEAVES_CXX = r"""
#include <stdexcept>
#include <wattle.h>
static void throws()
{
	WATTLE_SPAN("throw")
		WATTLE_SPAN("inner") { throw std::runtime_error("x"); }
}
int main()
{
	WATTLE_SPAN("try") { try { throws(); } catch (const std::exception &) { } }
	for (int i = 0; i < 2; i++) { WATTLE_SPAN("continue") { continue; } }
	WATTLE_SPAN("last") { return wattle_metric("tokens", 5) != 0; }
}
"""
EXPECTED_C = ["begin continue", "end 1", "begin continue", "end 1", "begin break", "end 1", "begin goto", "end 1",
              "begin return", "end 1", "begin around a longjmp", "begin jumped over", "end 2"]
EXPECTED_CXX = ["begin try", "begin throw", "begin inner", "end 1", "end 1", "end 1", "begin continue", "end 1",
                "begin continue", "end 1", "begin last", "end 1"]


class Skip(Exception):
    pass


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command[0]} failed: {done.stdout}{done.stderr}"
    return done.stdout


def compiler(name):
    if shutil.which(name) is None:
        raise Skip(f"there is no {name}")
    return name


def listed():
    lines = (TOP / "src/lib/libwattle.syms").read_text().split("\n")
    return {line for line in lines if line and not line.startswith("#")}


def declared():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    return set(re.findall(r"^WATTLE_API [^;]*?\b(wattle_\w+)\(", text, re.MULTILINE))


def names(*nm):
    rows = [line.split() for line in run("nm", *nm).split("\n")]
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TDBRW"}


def same(found, wanted, what):
    assert found == wanted, f"{what}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}"


def list_and_header():
    same(listed(), declared(), "symbol list against header")


def shared_exports():
    same(names("-D", "--defined-only", SHARED), listed(), "libwattle.so against its list")


def archive_exports():
    same(names("--defined-only", "--extern-only", ARCHIVE), listed(), "libwattle.a against the list")


def shared_library_stays():
    dynamic = run("readelf", "-d", SHARED)
    assert "[libwattle.so.0]" in dynamic, dynamic
    assert "NODELETE" in dynamic, dynamic


def dialect(name, standard):
    source = "use.cc" if "++" in name else "use.c"
    text = USE.replace("= {}", "= {}" if "++" in name else "= {0}")
    pathlib.Path(source).write_text(text)
    run(compiler(name), f"-std={standard}", *STRICT, "-c", "-I", HEADER.parent, source, "-o", "use.o")


def events(path):
    """The spans of one thread's only block, as lines."""
    data = path.read_bytes()
    block = data[65536:]
    used, = struct.unpack_from("<Q", block, 128)
    lines, known, i = [], {}, 0
    while i < used:
        _, kind, _, slot, n = struct.unpack_from("<qBBHI", block, 256 + 16 * i)
        if kind == 1:
            start = 256 + 16 * (i + 1)
            known[slot] = block[start:start + n].decode()
            i += (n + 15) // 16
        elif kind == 2:
            lines.append(f"begin {known[slot]}")
        elif kind == 3:
            lines.append(f"end {n}")
        elif kind == 6:
            i += 1
        i += 1
    return lines


def leaves(name, flags, text, expected, library):
    source = "leaves.cc" if "++" in name else "leaves.c"
    pathlib.Path(source).write_text(text)
    link = [ARCHIVE] if library == "static" else [SHARED, f"-Wl,-rpath,{SHARED.parent}"]
    run(compiler(name), *flags, *STRICT, "-O1", "-I", HEADER.parent, source, *link,
        "-lm", "-ldl", "-o", "leaves")
    spans = pathlib.Path("spans")
    environment = {**os.environ, "WATTLE_SPANS": str(spans)}
    environment.pop("WATTLE_RING", None)
    run("./leaves", env=environment)
    found = events(spans)
    spans.unlink()
    assert found == expected, found


TESTS = [("the symbol list equals the header's", list_and_header),
         ("libwattle.so exports exactly its list", shared_exports),
         ("libwattle.a exports exactly its list", archive_exports),
         ("libwattle.so has its soname and is never unloaded", shared_library_stays)]
TESTS += [(f"header with {name} -std={standard}: no warnings", lambda n=name, s=standard: dialect(n, s))
          for name, standard in DIALECTS]
TESTS += [(f"WATTLE_SPAN in C, {library}: every way out ends the span",
           lambda l=library: leaves("gcc", ["-std=gnu11"], LEAVES_C, EXPECTED_C, l))
          for library in ("static", "shared")]
TESTS += [(f"WATTLE_SPAN with {name}, {library}: exceptions end the span",
           lambda n=name, l=library: leaves(n, ["-std=c++11"], LEAVES_CXX, EXPECTED_CXX, l))
          for name, library in (("g++", "static"), ("clang++", "shared"))]


def main():
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, (name, test) in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {name}")
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}")
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"not ok {number} - {name}")
            for line in str(error).split("\n"):
                print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="wattle-library-") as folder:
        os.chdir(folder)
        sys.exit(main())
