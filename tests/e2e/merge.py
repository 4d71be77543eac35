"""wattle merge: many files of spans into one, which appears complete or not at all."""
import json
import os
import time

import c_programs
import tracking_accuracy as made
from harness import main, near, test

ENDINGS = ("csv", "sqlite")


def refused(workdir, *arguments, status=1):
    before = sorted(os.listdir(workdir.folder))
    done = workdir.wattle("merge", *arguments)
    assert done.returncode == status and done.stdout == "", (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("wattle") and done.stderr.count("\n") == 1, done.stderr
    assert sorted(os.listdir(workdir.folder)) == before, "a temporary file remains"
    return done.stderr


def combined(workdir, *arguments):
    done = workdir.wattle("merge", *arguments)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done
    return made.read_calls(workdir.folder / arguments[0])


def write_parts(workdir, ending, folder="."):
    chance = made.seeded(11)
    (workdir.folder / folder).mkdir(exist_ok=True)
    parts = {}
    for pid in (300, 100, 200):
        parts[f"{folder}/{pid}.{ending}"] = made.made_rows(chance, 40, pids=(pid,))
    for name, rows in parts.items():
        made.write_calls(workdir.folder / name, rows)
    return parts


@test
def files_in_order(workdir):
    """all rows in the order of the given files, with all digits"""
    for ending in ENDINGS:
        parts = write_parts(workdir, ending)
        assert combined(workdir, f"all.{ending}", *parts) == [row for rows in parts.values() for row in rows]


@test
def a_folder(workdir):
    """folder: its files with the output's suffix, sorted by name; the output may be in it"""
    for ending in ENDINGS:
        parts = write_parts(workdir, ending, folder="parts")
        rows = [row for name in sorted(parts) for row in parts[name]]
        assert combined(workdir, f"parts/all.{ending}", "parts") == rows
        (workdir.folder / f"parts/all.{ending}").unlink()


@test
def blocks_of_all(workdir):
    """merged file: gives the blocks of all processes"""
    parts = write_parts(workdir, "csv")
    rows = combined(workdir, "all.csv", *parts)
    done = workdir.wattle("blocks", "--sub-tracking-file", "all.csv", "--format", "json")
    expected = made.expected_values([], rows)["code_block_results"]
    for actual, block in zip(json.loads(done.stdout)["code_block_results"], expected):
        made.check(actual["compute_time"], block["compute_time"])


@test
def many_files(workdir):
    """very many files"""
    parts = []
    for pid in range(300):
        parts.append(f"{pid}.csv")
        made.write_calls(workdir.folder / parts[-1], [(pid, "f", 0, float(pid)), (pid, "f", 1, pid + 0.5)])
    assert len(combined(workdir, "all.csv", *parts)) == 600


@test
def existing_files_are_kept(workdir):
    """existing file, also one of the inputs: not changed"""
    parts = list(write_parts(workdir, "csv"))
    (workdir.folder / "there.csv").write_text("mine")
    assert "there.csv exists" in refused(workdir, "there.csv", *parts)
    assert "an input" in refused(workdir, parts[0], *parts)
    assert (workdir.folder / "there.csv").read_text() == "mine"
    os.symlink("nowhere", workdir.folder / "link.csv")
    refused(workdir, "link.csv", *parts)


@test
def kinds_are_not_mixed(workdir):
    """files of different kinds, or another suffix: both are named"""
    csv, sqlite = [next(iter(write_parts(workdir, ending))) for ending in ENDINGS]
    line = refused(workdir, "all.csv", csv, sqlite)
    assert csv in line and sqlite in line, line
    assert csv in refused(workdir, "all.sqlite", csv) and csv in refused(workdir, "all", csv)


@test
def given_twice(workdir):
    """file given twice: refused, as it would count twice"""
    a, b, _ = write_parts(workdir, "csv")
    assert "same file" in refused(workdir, "all.csv", a, b, a)
    os.link(workdir.folder / a, workdir.folder / "other.csv")
    assert "same file" in refused(workdir, "all.csv", a, "other.csv")


@test
def whole_or_not_at_all(workdir):
    """invalid line in the last file: no output file"""
    for ending in ENDINGS:
        parts = list(write_parts(workdir, ending))
        (workdir.folder / f"bad.{ending}").write_text("process_id,code_block_name,position,timestamp\n7,a,0,noon\n")
        assert f"bad.{ending}" in refused(workdir, f"all.{ending}", *parts, f"bad.{ending}")


def leave_spans(workdir, runs):
    """Span files of a program that ran without a recorder: in each run 3 calls of outer and 6 of inner"""
    program = c_programs.build(workdir, "nested_spans")
    (workdir.folder / "spans").mkdir()
    for _ in range(runs):
        done = workdir.finish(workdir.start(program=program, env={"WATTLE_SPANS": str(workdir.folder / "spans/s-%p")}))
        assert done.returncode == 0, done
    return [f"spans/{name}" for name in sorted(os.listdir(workdir.folder / "spans"))]


def results(workdir, *arguments):
    done = workdir.wattle("blocks", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@test
def span_files(workdir):
    """into one span file: all calls of all files, energy unknown"""
    files = leave_spans(workdir, 3)
    assert workdir.wattle("merge", "all", *files).returncode == 0
    alone = [block for file in files for block in results(workdir, file)["code_block_results"]]
    document = results(workdir, "all")
    assert document["energy"]["total_j"] is None, document["energy"]
    calls = {block["name"]: block["num_calls"] for block in document["code_block_results"]}
    assert calls == {"inner": 18, "outer": 9}, calls
    for block in document["code_block_results"]:
        near(block["compute_time"]["total"],
             sum(b["compute_time"]["total"] for b in alone if b["name"] == block["name"]), relative=1e-6)
    assert workdir.wattle("merge", "again", "spans").returncode == 0
    assert (workdir.folder / "again").read_bytes() == (workdir.folder / "all").read_bytes()
    assert "exists" in refused(workdir, "all", *files)


@test
def span_files_as_calls(workdir):
    """into a sub-tracking file: overlapping threads keep their own ends, times are wall-clock times"""
    files = leave_spans(workdir, 2)
    before = time.time()
    expected_values = [block for file in files for block in results(workdir, file)["code_block_results"]]
    for ending in ENDINGS:
        rows = combined(workdir, f"all.{ending}", *files)
        assert len(rows) == 36 and all(before - 60 < row[3] < before + 1 for row in rows), rows
        for block in results(workdir, "--sub-tracking-file", f"all.{ending}")["code_block_results"]:
            same = [b for b in expected_values if b["name"] == block["name"]]
            assert block["num_calls"] == sum(b["num_calls"] for b in same), block
            near(block["compute_time"]["total"], sum(b["compute_time"]["total"] for b in same), absolute=1e-5)
            near(block["compute_time"]["max"], max(b["compute_time"]["max"] for b in same), absolute=1e-6)
    (workdir.folder / "mine.csv").write_text(",".join(made.CALLS) + "\n")
    line = refused(workdir, "both.csv", "mine.csv", files[0])
    assert "mine.csv" in line and files[0] in line, line


@test
def damaged_span_files(workdir):
    """truncated or changed span files: readable parts or one line, never a crash"""
    chance = made.seeded(12)
    good = (workdir.folder / leave_spans(workdir, 1)[0]).read_bytes()
    for round_ in range(40):
        bytes_ = bytearray(good)
        for _ in range(chance.randrange(6)):
            bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
        del bytes_[chance.choice((len(bytes_), chance.randrange(len(bytes_)))):]
        (workdir.folder / "bad").write_bytes(bytes_)
        for out in ("out", "out.csv"):
            done = workdir.wattle("merge", out, "bad")
            assert done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode, (round_, done)
            if done.returncode == 0:
                (workdir.folder / out).unlink()


@test
def wrong_use(workdir):
    """missing arguments, files and folders: refused"""
    parts = list(write_parts(workdir, "csv"))
    (workdir.folder / "empty").mkdir()
    for words in ([], ["all.csv"], ["--all", "all.csv", *parts]):
        refused(workdir, *words, status=2)
    for words in (["all.csv", "nowhere.csv"], ["all.csv", "empty"], ["all.csv", ".", "empty"], ["no/all.csv", *parts],
                  ["all.csv", "/dev/null"]):
        refused(workdir, *words)


@test
def a_million_rows(workdir):
    """large input: linear time"""
    with open(workdir.folder / "s.csv", "w") as file:
        file.write("process_id,code_block_name,position,timestamp\n")
        file.writelines(f"7,package/module.py:12,{i % 2},{made.START_S + i * 1e-4!r}\n" for i in range(1000000))
    before = time.monotonic()
    assert workdir.wattle("merge", "all.csv", "s.csv").returncode == 0
    assert time.monotonic() - before < 20, "a minute would be quadratic"
    assert sum(1 for _ in open(workdir.folder / "all.csv")) == 1000001


if __name__ == "__main__":
    main()
