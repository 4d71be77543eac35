"""wattle.compare, wattle.merge and wattle.export on files with known contents, compared with the runs' own reports."""
import json

from harness import main, near, test
from package import python

RECORD = """
    import sys, time, wattle
    name, calls = sys.argv[1], int(sys.argv[2])
    with wattle.Tracker(sleep_time=0.01, output=name, overwrite=True):
        for _ in range(calls):
            with wattle.span("step"):
                time.sleep(0.02)
        with wattle.span("only here" if calls > 3 else "end"):
            pass
        wattle.metric("accuracy", 0.75)
"""
SUB_TRACKING = "process_id,code_block_name,position,timestamp\n{0},step,0,{1}\n{0},step,1,{2}\n"


def told(workdir, code):
    lines, _ = python(workdir, "    import json, wattle\n" + code)
    return json.loads(lines[-1])


def refused(workdir, error, words, call):
    lines, _ = python(workdir, f"""
    import wattle
    try:
        {call}
    except {error} as told:
        print(told)
    """)
    assert lines and all(word in lines[0] for word in words), (call, lines)


@test
def values_and_order(workdir):
    """compare: each figure is that of the run's own blocks, names in ascending order of value, energies are the
    totals"""
    for name, calls in (("short.sqlite", 2), ("long.sqlite", 3)):
        python(workdir, RECORD, name, calls)
    document = told(workdir, """
    print(json.dumps(wattle.compare({"long": "long.sqlite", "short": wattle.open("short.sqlite")}, statistic="max")))
    """)
    totals = document["energy"]["total_j"]
    for name in ("long", "short"):
        report = json.loads(workdir.wattle("report", f"{name}.sqlite", "--format", "json").stdout)
        near(totals[name], report["energy"]["total_j"], relative=1e-12)
        for block in report["blocks"]:
            near(document["code_block_compute_time"][block["name"]][name], block["compute_time"]["max"], relative=1e-9)
    assert list(totals) == sorted(totals, key=totals.get), totals
    for block in document["code_block_compute_time"].values():
        assert list(block) == sorted(block, key=block.get), block


@test
def runs_that_do_not_match(workdir):
    """different code blocks: refused as by the program, with both names"""
    for name, calls in (("a.sqlite", 2), ("b.sqlite", 4)):
        python(workdir, RECORD, name, calls)
    refused(workdir, "ValueError", ['"end"', '"only here"'], "wattle.compare({'a': 'a.sqlite', 'b': 'b.sqlite'})")


@test
def combined_files(workdir):
    """merge: sub-tracking files of several processes become one; a folder means all in it; an existing OUT is
    refused"""
    (workdir.folder / "in").mkdir()
    for pid in (7, 8):
        (workdir.folder / f"in/{pid}.csv").write_text(SUB_TRACKING.format(pid, 100.5 * pid, 100.5 * pid + 1))
    python(workdir, """
    import pathlib, wattle
    wattle.merge("both.csv", ["in/7.csv", pathlib.Path("in/8.csv")])
    wattle.merge("all.csv", "in")
    """)
    both = json.loads(workdir.wattle("blocks", "--sub-tracking-file", "both.csv", "--format", "json").stdout)
    every = json.loads(workdir.wattle("blocks", "--sub-tracking-file", "all.csv", "--format", "json").stdout)
    block, = both["code_block_results"]
    assert (block["name"], block["num_calls"], block["compute_time"]["total"]) == ("step", 2, 2.0), block
    assert every == both
    refused(workdir, "FileExistsError", ["both.csv"], "wattle.merge('both.csv', 'in')")


@test
def deprecated_names(workdir):
    """deprecated name of the package: the same object, and a warning that names the new one"""
    python(workdir, """
    import warnings, wattle
    assert not set(wattle._deprecated.NAMES) & set(dir(wattle))
    for old, (new, since) in wattle._deprecated.NAMES.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert getattr(wattle, old) is getattr(wattle, new)
        warning, = caught
        assert warning.category is DeprecationWarning and warning.filename == __file__, warning
        assert str(warning.message) == f"wattle.{old} is deprecated since {since}; use wattle.{new}", warning
    """)


@test
def an_aipowermeter_folder(workdir):
    """export to a folder: equal to the program's, byte for byte; a non-empty one is refused, or overwritten"""
    python(workdir, RECORD, "run.sqlite", 2)
    python(workdir, "    import wattle\n    wattle.export(wattle.open('run.sqlite'), 'aipowermeter', 'from_python')\n")
    assert workdir.wattle("export", "run.sqlite", "--format", "aipowermeter", "-o", "by_hand").returncode == 0
    files = {name: {path.name: path.read_bytes() for path in (workdir.folder / name).iterdir()} for name in
             ("from_python", "by_hand")}
    assert files["from_python"] == files["by_hand"], {name: [*found] for name, found in files.items()}
    assert json.loads(files["by_hand"]["results_exp.json"])[0]["accuracy"] == 0.75, files["by_hand"]["results_exp.json"]
    refused(workdir, "FileExistsError", ["by_hand"], "wattle.export('run.sqlite', 'aipowermeter', 'by_hand')")
    python(workdir, "    import wattle\n    wattle.export('run.sqlite', 'aipowermeter', 'by_hand', overwrite=True)\n")


if __name__ == "__main__":
    main()
