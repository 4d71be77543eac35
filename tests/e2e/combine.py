"""wattle combine: many files of spans into one, which appears complete or not at all."""
import json
import os
import time

import c_programs
import tracking_accuracy as made
from harness import main, near, test

ENDINGS = ("csv", "sqlite")


def refused(room, *arguments, status=1):
    before = sorted(os.listdir(room.folder))
    done = room.wattle("combine", *arguments)
    assert done.returncode == status and done.stdout == "", (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("wattle") and done.stderr.count("\n") == 1, done.stderr
    assert sorted(os.listdir(room.folder)) == before, "a temporary file remains"
    return done.stderr


def combined(room, *arguments):
    done = room.wattle("combine", *arguments)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done
    return made.read_calls(room.folder / arguments[0])


def write_parts(room, ending, folder="."):
    chance = made.seeded(11)
    (room.folder / folder).mkdir(exist_ok=True)
    parts = {}
    for pid in (300, 100, 200):
        parts[f"{folder}/{pid}.{ending}"] = made.made_rows(chance, 40, pids=(pid,))
    for name, rows in parts.items():
        made.write_calls(room.folder / name, rows)
    return parts


@test
def files_in_order(room):
    """all rows in the order of the given files, with all digits"""
    for ending in ENDINGS:
        parts = write_parts(room, ending)
        assert combined(room, f"all.{ending}", *parts) == [row for rows in parts.values() for row in rows]


@test
def a_folder(room):
    """folder: its files with the output's suffix, sorted by name; the output may be in it"""
    for ending in ENDINGS:
        parts = write_parts(room, ending, folder="parts")
        rows = [row for name in sorted(parts) for row in parts[name]]
        assert combined(room, f"parts/all.{ending}", "parts") == rows
        (room.folder / f"parts/all.{ending}").unlink()


@test
def blocks_of_all(room):
    """combined file: gives the blocks of all processes"""
    parts = write_parts(room, "csv")
    rows = combined(room, "all.csv", *parts)
    done = room.wattle("blocks", "--sub-tracking-file", "all.csv", "--format", "json")
    expected = made.truth([], rows)["code_block_results"]
    for actual, block in zip(json.loads(done.stdout)["code_block_results"], expected):
        made.check(actual["compute_time"], block["compute_time"])


@test
def many_files(room):
    """very many files"""
    parts = []
    for pid in range(300):
        parts.append(f"{pid}.csv")
        made.write_calls(room.folder / parts[-1], [(pid, "f", 0, float(pid)), (pid, "f", 1, pid + 0.5)])
    assert len(combined(room, "all.csv", *parts)) == 600


@test
def nothing_is_overwritten(room):
    """existing file, also one of the inputs: not changed"""
    parts = list(write_parts(room, "csv"))
    (room.folder / "there.csv").write_text("mine")
    assert "there.csv exists" in refused(room, "there.csv", *parts)
    assert "an input" in refused(room, parts[0], *parts)
    assert (room.folder / "there.csv").read_text() == "mine"
    os.symlink("nowhere", room.folder / "link.csv")
    refused(room, "link.csv", *parts)


@test
def kinds_are_not_mixed(room):
    """files of different kinds, or another suffix: both are named"""
    csv, sqlite = [next(iter(write_parts(room, ending))) for ending in ENDINGS]
    line = refused(room, "all.csv", csv, sqlite)
    assert csv in line and sqlite in line, line
    assert csv in refused(room, "all.sqlite", csv) and csv in refused(room, "all", csv)


@test
def given_twice(room):
    """file given twice: refused, as it would count twice"""
    a, b, _ = write_parts(room, "csv")
    assert "same file" in refused(room, "all.csv", a, b, a)
    os.link(room.folder / a, room.folder / "other.csv")
    assert "same file" in refused(room, "all.csv", a, "other.csv")


@test
def whole_or_not_at_all(room):
    """invalid line in the last file: no output file"""
    for ending in ENDINGS:
        parts = list(write_parts(room, ending))
        (room.folder / f"bad.{ending}").write_text("process_id,code_block_name,position,timestamp\n7,a,0,noon\n")
        assert f"bad.{ending}" in refused(room, f"all.{ending}", *parts, f"bad.{ending}")


def leave_spans(room, runs):
    """Span files of a program that ran without a recorder: in each run 3 calls of outer and 6 of inner"""
    program = c_programs.build(room, "nested_spans")
    (room.folder / "spans").mkdir()
    for _ in range(runs):
        done = room.finish(room.start(program=program, env={"WATTLE_SPANS": str(room.folder / "spans/s-%p")}))
        assert done.returncode == 0, done
    return [f"spans/{name}" for name in sorted(os.listdir(room.folder / "spans"))]


def results(room, *arguments):
    done = room.wattle("blocks", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@test
def span_files(room):
    """into one span file: all calls of all files, energy unknown"""
    files = leave_spans(room, 3)
    assert room.wattle("combine", "all", *files).returncode == 0
    alone = [block for file in files for block in results(room, file)["code_block_results"]]
    document = results(room, "all")
    assert document["energy"]["total_j"] is None, document["energy"]
    calls = {block["name"]: block["num_calls"] for block in document["code_block_results"]}
    assert calls == {"inner": 18, "outer": 9}, calls
    for block in document["code_block_results"]:
        near(block["compute_time"]["total"],
             sum(b["compute_time"]["total"] for b in alone if b["name"] == block["name"]), relative=1e-6)
    assert room.wattle("combine", "again", "spans").returncode == 0
    assert (room.folder / "again").read_bytes() == (room.folder / "all").read_bytes()
    assert "exists" in refused(room, "all", *files)


@test
def span_files_as_calls(room):
    """into a sub-tracking file: overlapping threads keep their own ends, times are wall-clock times"""
    files = leave_spans(room, 2)
    before = time.time()
    truth = [block for file in files for block in results(room, file)["code_block_results"]]
    for ending in ENDINGS:
        rows = combined(room, f"all.{ending}", *files)
        assert len(rows) == 36 and all(before - 60 < row[3] < before + 1 for row in rows), rows
        for block in results(room, "--sub-tracking-file", f"all.{ending}")["code_block_results"]:
            same = [b for b in truth if b["name"] == block["name"]]
            assert block["num_calls"] == sum(b["num_calls"] for b in same), block
            near(block["compute_time"]["total"], sum(b["compute_time"]["total"] for b in same), absolute=1e-5)
            near(block["compute_time"]["max"], max(b["compute_time"]["max"] for b in same), absolute=1e-6)
    (room.folder / "mine.csv").write_text(",".join(made.CALLS) + "\n")
    line = refused(room, "both.csv", "mine.csv", files[0])
    assert "mine.csv" in line and files[0] in line, line


@test
def damaged_span_files(room):
    """truncated or changed span files: readable parts or one line, never a crash"""
    chance = made.seeded(12)
    good = (room.folder / leave_spans(room, 1)[0]).read_bytes()
    for round_ in range(40):
        bytes_ = bytearray(good)
        for _ in range(chance.randrange(6)):
            bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
        del bytes_[chance.choice((len(bytes_), chance.randrange(len(bytes_)))):]
        (room.folder / "bad").write_bytes(bytes_)
        for out in ("out", "out.csv"):
            done = room.wattle("combine", out, "bad")
            assert done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode, (round_, done)
            if done.returncode == 0:
                (room.folder / out).unlink()


@test
def wrong_use(room):
    """missing arguments, files and folders: refused"""
    parts = list(write_parts(room, "csv"))
    (room.folder / "empty").mkdir()
    for words in ([], ["all.csv"], ["--all", "all.csv", *parts]):
        refused(room, *words, status=2)
    for words in (["all.csv", "nowhere.csv"], ["all.csv", "empty"], ["all.csv", ".", "empty"], ["no/all.csv", *parts],
                  ["all.csv", "/dev/null"]):
        refused(room, *words)


@test
def a_million_rows(room):
    """large input: linear time"""
    with open(room.folder / "s.csv", "w") as file:
        file.write("process_id,code_block_name,position,timestamp\n")
        file.writelines(f"7,package/module.py:12,{i % 2},{made.START_S + i * 1e-4!r}\n" for i in range(1000000))
    before = time.monotonic()
    assert room.wattle("combine", "all.csv", "s.csv").returncode == 0
    assert time.monotonic() - before < 20, "a minute would be quadratic"
    assert sum(1 for _ in open(room.folder / "all.csv")) == 1000001


if __name__ == "__main__":
    main()
