#!/usr/bin/python3
"""The output of every command that reads stored runs, compared byte by byte with tests/golden/expected/.

    golden.py [TEST…]                      compares; prints TAP
    golden.py --diff [NAME…]               all differences of the outputs whose names begin so (default: all)
    golden.py --diff --tolerance 1e-9      the same without numbers that differ by less than that fraction
    golden.py --update [NAME…]             writes the current outputs; read the difference before you commit it
    golden.py --dump RUN.sqlite            a run file as SQL, for tests/golden/runs/
    golden.py --load NAME FILE             the run file of tests/golden/runs/NAME.sql

tests/golden/README.md describes the runs and the normalisation. WATTLE_BUILD is the build folder (default build/test).
"""
import concurrent.futures
import dataclasses
import difflib
import functools
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("WATTLE_TESTS", str(HERE.parent))
os.environ.setdefault("WATTLE_BUILD", str(HERE.parent.parent / "build/test"))

import golden_workdir as as_text  # noqa: E402
import golden_store as store  # noqa: E402
import golden_views as live  # noqa: E402
from golden_workdir import EXPECTED  # noqa: E402
from harness import BUILD, WATTLE, WorkDir, Skip, main, test  # noqa: E402

DIFF_LINES = 30  # of a failure
WORKERS = 3
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
# On another architecture the compiler may fuse a product and a sum into one rounding: the last digits differ there.
TOLERANCE = 0.0 if platform.machine() == "x86_64" else 1e-9
# Parts of an output that depend on the machine and the program, not on the run.
ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "80", "LINES": "24", "TERM": "dumb", "NO_COLOR": "1"}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str               # of the file in tests/golden/expected/
    words: str              # the command; OUT is a path of its own
    how: typing.Callable = as_text.same   # from its output, or, with OUT, from the files it wrote

    def names(self):
        return [self.name]

    def run(self, workdir):
        return {self.name: self.output(workdir)}

    def output(self, workdir):
        out = workdir.folder / "out" / self.name
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [str(out) if word == "OUT" else word for word in self.words.split()]
        done = workdir.wattle(*words, env=ENVIRONMENT)
        printed = done.stdout
        if "OUT" in self.words.split():
            printed += self.how(out) if out.exists() else ""
        elif printed:
            printed = self.how(printed)
        return normal(printed + said(done), workdir.folder)


@dataclasses.dataclass(frozen=True)
class Live:
    function: typing.Callable  # of a folder of its own: {name: text}
    outputs: tuple[str, ...]

    def names(self):
        return self.outputs

    def run(self, workdir):
        own = WorkDir(workdir.folder / self.function.__name__)
        own.folder.mkdir()
        own.environment |= {"TMPDIR": workdir.environment["TMPDIR"]}
        try:
            words = (own,) if self.function is not store.stored else (own, workdir, ENVIRONMENT)
            return {name: normal(text, own.folder) for name, text in self.function(*words).items()}
        finally:
            own.stop_all()


@dataclasses.dataclass(frozen=True)
class Rows:
    name: str
    words: tuple[str, ...]

    def names(self):
        return [self.name]

    def run(self, workdir):
        if not (BUILD / "python/wattle").exists():
            raise Skip("the package for Python is not built")
        return {self.name: normal(live.rows(workdir, self.words, ENVIRONMENT), workdir.folder)}


def said(done):
    """stderr, and the status unless it is 0, as lines at the end."""
    lines = [f"stderr: {line}" for line in done.stderr.splitlines()]
    lines += [f"status: {done.returncode}"] if done.returncode != 0 else []
    return "\n".join(lines) + "\n" if lines else ""


def normal(text, folder):
    """Without parts that do not depend on the run: the version, and the test's folder."""
    text = text.replace(str(folder), "FOLDER").replace(f"wattle {version()}", "VERSION")
    return text.replace(f'"version": "{version()}"', '"version": "VERSION"').replace(f'version="{version()}"',
        'version="VERSION"')


@functools.cache
def version():
    return subprocess.run([WATTLE, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


# ---- cases ----

RUNS = ["active", "empty", "estimated", "events", "full", "holes", "hostile", "killed", "no_cpu", "no_energy", "nulls",
        "one_sample", "segments", "short"]  # and slower, third, for comparisons
JOBS = ["hostile_job", "nested_job", "no_energy_job", "plain_job", "restart", "takeover", "two_steps", "virtual_nodes"]


def of_runs():
    """every stored run: report as text, line, JSON and page"""
    for run in RUNS:
        path = f"{run}.sqlite"
        yield Case(f"{run}/report.txt", f"report {path} --all")
        yield Case(f"{run}/report.line", f"report {path} --format line")
        yield Case(f"{run}/report.json", f"report {path} --format json")
        yield Case(f"{run}/page.html", f"report {path} --format html", as_text.page_with_pictures
                   if run == "short" else as_text.page)


def of_sections():
    """reports without --all, one section, no data"""
    for run in ("full.sqlite", "hostile.sqlite", "plain_job"):
        yield Case(f"{run.removesuffix('.sqlite')}/report_brief.txt", f"report {run}")
    yield Case("full/report_sections.txt",
               "report full.sqlite --section custom-metrics --section ranks --section code-blocks")
    yield Case("files/section_names.txt", "report --section list")


def of_blocks():
    """code blocks as text and JSON"""
    for run in ("empty", "events", "full", "nulls"):
        yield Case(f"{run}/blocks.txt", f"blocks {run}.sqlite")
        yield Case(f"{run}/blocks.json", f"blocks {run}.sqlite --format json")


def of_jobs():
    """every stored job: report as text, line, JSON and page"""
    for job in JOBS:
        words = f"report {job}" + (" --step 0" if job == "two_steps" else "")
        yield Case(f"{job}/report.txt", f"{words} --all")
        yield Case(f"{job}/report.json", f"{words} --format json")
        yield Case(f"{job}/page.html", f"{words} --format html", as_text.page)


def of_exports():
    """exports in every format, and pictures"""
    for run in ("full", "events", "segments", "killed", "nulls"):
        path = f"{run}.sqlite"
        yield Case(f"{run}/export.csv", f"export {path} --format csv -o -")
        yield Case(f"{run}/export.jsonl", f"export {path} --format jsonl -o -", as_text.first_of_each)
        yield Case(f"{run}/export.folded", f"export {path} --format folded -o -")
    for run in ("full", "events", "segments"):
        path = f"{run}.sqlite"
        yield Case(f"{run}/export.folded_time", f"export {path} --format folded --weight time -o -")
        yield Case(f"{run}/export.prom", f"export {path} --format openmetrics --every 2s -o -")
        yield Case(f"{run}/tracking.csv", f"export {path} --format gpu_tracker -o OUT", as_text.read)
    yield Case("events/tracking.sqlite", "export events.sqlite --format gpu_tracker -o OUT", as_text.tables)
    yield Case("active/aipowermeter", "export active.sqlite --format aipowermeter -o OUT", as_text.folder)
    for run in ("events", "segments"):
        yield Case(f"{run}/trace.txt", f"export {run}.sqlite --format perfetto -o OUT", as_text.trace)
        yield Case(f"{run}/aipowermeter", f"export {run}.sqlite --format aipowermeter -o OUT", as_text.folder)
    yield Case("events/pictures", "report events.sqlite --format svg -o OUT", as_text.folder)


def of_comparisons():
    """two and three runs, jobs and saved results side by side"""
    two, three = "active=active.sqlite slower=slower.sqlite", "active=active.sqlite segments=segments.sqlite estimated=estimated.sqlite"
    for name, words in (("two", two), ("three", three), ("jobs", "a=takeover b=restart"),
                        ("with_nulls", f"{two} nulls=nulls.sqlite")):
        yield Case(f"compare/{name}.txt", f"compare {words}")
        yield Case(f"compare/{name}.json", f"compare {words} --format json")
        if name != "with_nulls":
            yield Case(f"compare/{name}.html", f"compare {words} --format html", as_text.page)
    yield Case("compare/all.txt", f"compare {two} --all")
    for stat in ("min", "max", "std"):
        yield Case(f"compare/two_{stat}.json", f"compare {two} --stat {stat} --format json")
    yield Case("compare/no_match.txt", "compare active=active.sqlite third=third.sqlite")
    yield Case("compare/no_match_number.txt", "compare active=active.sqlite full=full.sqlite")


def of_lists():
    """lists of runs"""
    yield Case("list/list.txt", "list .")
    yield Case("list/list.json", "list . --json")
    yield Case("list/job.txt", "list takeover --job 4242")
    yield Case("list/damaged.txt", "list damaged")
    yield Case("list/damaged.json", "list damaged --json")


def of_files():
    """span files, gpu_tracker's files, ONNX files, single ranks, damaged files, the SQL of a store"""
    sub, tracking = "--sub-tracking-file sub_tracking.csv", "--tracking-file tracking.csv"
    for name, words in (("spans", "a.spans"), ("tracking", f"{tracking} {sub}"), ("calls", sub),
                        ("run_and_calls", f"short.sqlite {sub}"),
                        ("run_and_spans", "short.sqlite --spans a.spans")):
        yield Case(f"files/{name}.txt", f"blocks {words}")
        yield Case(f"files/{name}.json", f"blocks {words} --format json")
    yield Case("files/combined.csv", "merge OUT a.spans b.spans", as_text.read)
    yield Case("files/combined_calls.csv", "merge OUT sub_tracking.csv", as_text.read)
    yield Case("files/model.txt", "model net.onnx --batch 2")
    yield Case("files/model.json", "model net.onnx --format json")
    yield Case("files/rank.txt", "report restart/job-r000-restart1.sqlite")
    yield Case("files/rank.json", "report restart/job-r000-restart1.sqlite --format json")
    yield Case("files/damaged.txt", "report damaged/cut.sqlite")
    yield Case("files/store.sql", "store init --print")


def of_live():
    """serve, top, sensors, cap, bench and cap tune on a simulated machine: all but the figures that vary"""
    yield Live(live.served, ("live/now.json", "live/metrics.txt", "live/openmetrics.txt"))
    yield Live(live.top, ("live/top.txt",))
    yield Live(live.sensors, tuple(f"live/sensors_{name}.txt" for name in live.SENSORS))
    yield Live(live.caps, ("live/cap_list.txt", "live/cap_list.json", "live/cap_get.txt"))
    yield Live(live.bench, ("live/bench.json",))
    yield Live(live.tune, ("live/tune.json", "live/tune.csv"))
    yield Live(live.tune_clocks, ("live/tune_clocks.json", "live/tune_clocks.csv"))


def of_store():
    """a store in PostgreSQL: its tables, status, lists, reports of a run and of a job"""
    yield Live(store.stored, store.OUTPUTS)


def of_python():
    """rows, columns and attributes of the package for Python"""
    yield Rows("python/runs.txt",
               tuple(f"run={run}.sqlite" for run in ("full", "events", "segments", "killed", "nulls", "empty")))
    yield Rows("python/span_file.txt", ("run=a.spans",))
    yield Rows("python/aipowermeter.txt", ("aipowermeter=full.sqlite", "aipowermeter=segments.sqlite"))
    yield Rows("python/jobs.txt", tuple(f"job={job}" for job in ("takeover", "restart", "no_energy_job")))


GROUPS = [of_runs, of_sections, of_blocks, of_jobs, of_exports, of_comparisons, of_lists, of_files, of_live, of_store,
          of_python]


# ---- comparison ----

def all_of(workdir, group, prefixes=()):
    """{name: text} of a group; (name, words) of all its cases as well."""
    cases = [case for case in group() if not prefixes or any(name.startswith(tuple(prefixes)) for name in case.names())]
    if not cases:
        return {}
    as_text.load_all(workdir.folder)
    workdir.environment.update(WATTLE_STATE=str(workdir.folder / "state"))
    found = {}
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for outputs in pool.map(lambda case: case.run(workdir), cases):
            found.update(outputs)
    return found


def without_last_digits(expected, actual, tolerance):
    """`expected`, with the numbers of `actual` where they differ by less than a fraction."""
    if tolerance <= 0:
        return expected
    lines = []
    for old, new in zip(expected, actual):
        a, b = NUMBER.findall(old), NUMBER.findall(new)
        close = NUMBER.sub("#", old) == NUMBER.sub("#", new) and all(
            abs(float(x) - float(y)) <= tolerance * max(abs(float(x)), abs(float(y))) for x, y in zip(a, b))
        lines.append(new if close else old)
    return lines + expected[len(lines):]


def difference(name, actual, tolerance=TOLERANCE):
    """Lines of a unified diff; none where they are equal."""
    path = EXPECTED / name
    old, new = as_text.read(path).splitlines(), actual.splitlines()
    if path.exists() and as_text.read(path) == actual:
        return []
    old = without_last_digits(old, new, tolerance) if len(old) == len(new) else old
    return list(difflib.unified_diff(old, new, f"expected/{name}", "now", lineterm="", n=2))


def add_test(group):
    def compare(workdir):
        found = {name: lines for name, text in all_of(workdir, group).items() if (lines := difference(name, text))}
        shown = [line[:300] for lines in found.values()
                 for line in lines[:DIFF_LINES // min(len(found), 3)]][:DIFF_LINES]
        names = ", ".join(found)
        hint = (f"\n{len(found)} outputs differ: {names[:400]}\nall of it: WATTLE_BUILD={BUILD} {sys.executable} "
                "tests/e2e/golden.py "
                f"--diff\nif it is meant: the same with --update, and a line in CHANGELOG")
        assert not found, "\n".join(shown) + hint
    compare.__doc__ = group.__doc__
    compare.__name__ = group.__name__
    test(compare)


def no_leftovers(workdir):
    """every file in tests/golden/expected/ has a case, and every case a file"""
    names, found = {name for group in GROUPS for case in group() for name in case.names()}, as_text.names_of_expected()
    assert names == found, f"missing: {sorted(names - found)}; nobody's: {sorted(found - names)}"


# ---- as a tool ----

def in_a_workdir(do):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="wattle-e2e-", dir=os.environ.get("TMPDIR")))
    workdir = WorkDir(folder)
    try:
        return do(workdir)
    finally:
        workdir.stop_all()
        shutil.rmtree(folder, ignore_errors=True)


def now(prefixes):
    for group in GROUPS:
        try:
            yield from in_a_workdir(lambda workdir, group=group: all_of(workdir, group, prefixes)).items()
        except Skip as reason:
            print(f"left out: {group.__doc__}: {reason}")


def update(prefixes):
    names = {name for group in GROUPS for case in group() for name in case.names()}
    for name in as_text.names_of_expected() - names:
        (EXPECTED / name).unlink()
    for name, text in now(prefixes):
        (EXPECTED / name).parent.mkdir(parents=True, exist_ok=True)
        if as_text.read(EXPECTED / name) != text:
            print(f"new: {name}")
            (EXPECTED / name).write_text(text)


def show(prefixes, tolerance):
    n = 0
    for name, text in now(prefixes):
        lines = difference(name, text, tolerance)
        n += bool(lines)
        print("\n".join(lines) + "\n" if lines else "", end="")
    print(f"{n} outputs differ")
    return n > 0


def tool(words):
    tolerance = TOLERANCE
    if "--tolerance" in words:
        at = words.index("--tolerance")
        tolerance = float(words[at + 1])
        del words[at:at + 2]
    if words[0] == "--update":
        return update(words[1:])
    if words[0] == "--diff":
        return show(words[1:], tolerance)
    if words[0] == "--dump" and len(words) == 2:
        return print(as_text.dump(words[1]), end="")
    if words[0] == "--load" and len(words) == 3:
        return as_text.load(words[1], words[2])
    sys.exit(__doc__)


def run(groups):
    for group in groups:
        add_test(group)
    main()


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("--"):
        sys.exit(tool(sys.argv[1:]))
    test(no_leftovers)
    run([group for group in GROUPS if group != of_live])  # those have a program of their own, because they take time
