"""wattle blocks with gpu_tracker's own files: gpu_tracker's figures, computed independently here, without its
restrictions."""
import json
import sqlite3

import c_programs
import tracking_accuracy as made
from harness import main, near, test

ENDINGS = ("csv", "sqlite")


def blocks(workdir, *arguments, status=0):
    done = workdir.wattle("blocks", *arguments, "--format", "json")
    assert done.returncode == status, (done.returncode, done.stderr)
    return json.loads(done.stdout) if status == 0 else done.stderr


def refused(workdir, *arguments, status=1):
    """One line with the error"""
    done = workdir.wattle("blocks", *arguments)
    assert done.returncode == status and done.stdout == "", (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("wattle") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def write(workdir, timepoints, rows):
    for ending in ENDINGS:
        made.write_tracking(workdir.folder / f"t.{ending}", timepoints)
        made.write_calls(workdir.folder / f"s.{ending}", rows)


@test
def all_mixes(workdir):
    """CSV and SQLite combined: nested, recursive and overlapping calls, empty cells: equal to 1e-12"""
    chance = made.seeded(1)
    timepoints, rows = made.made_timepoints(chance, 300, unknown=0.1), made.made_rows(chance, 400)
    write(workdir, timepoints, rows)
    expected = made.expected_values(timepoints, rows)
    for t in ENDINGS:
        for s in ENDINGS:
            made.check(blocks(workdir, "--tracking-file", f"t.{t}", "--sub-tracking-file", f"s.{s}"), expected)


@test
def any_order(workdir):
    """rows, timepoints and columns in any order, additional columns: same result"""
    chance = made.seeded(2)
    timepoints, rows = made.made_timepoints(chance, 50), made.made_rows(chance, 60)
    expected = made.expected_values(timepoints, rows)
    shuffled = chance.sample(timepoints, len(timepoints))
    write(workdir, shuffled, chance.sample(rows, len(rows)))
    for ending in ENDINGS:
        made.check(blocks(workdir, "--tracking-file", f"t.{ending}", "--sub-tracking-file", f"s.{ending}"), expected)
    order = chance.sample(range(22), 22)
    names = [*made.METRICS, "timestamp"]
    lines = [",".join(made.STATIC), ",".join(map(str, made.STATIC.values())),
             ",".join(["more", *(names[i] for i in order)]),
             *(",".join(["x", *(repr(t[i]) for i in order)]) for t in shuffled)]
    (workdir.folder / "other.csv").write_text("\n".join(lines))
    made.check(blocks(workdir, "--tracking-file", "other.csv", "--sub-tracking-file", "s.csv"), expected)


@test
def ends_belong_to_a_call(workdir):
    """timepoint exactly at a start or stop: inside; shared by two calls: counted once"""
    timepoints = [(*[float(i)] * 10, 1, 1, 2, *[float(i)] * 8, made.START_S + i) for i in range(6)]
    rows = [(1, "f", 0, made.START_S + 1), (1, "f", 1, made.START_S + 2), (1, "f", 0, made.START_S + 2),
            (1, "f", 1, made.START_S + 3), (1, "f", 0, made.START_S + 3.2), (1, "f", 1, made.START_S + 3.4)]
    write(workdir, timepoints, rows)
    document = blocks(workdir, "--tracking-file", "t.csv", "--sub-tracking-file", "s.sqlite")
    made.check(document, made.expected_values(timepoints, rows))
    block, = document["code_block_results"]
    assert (block["num_timepoints"], block["num_calls"], block["num_non_empty_calls"]) == (3, 3, 2), block


@test
def no_time_at_all(workdir):
    """starts and stops at the same time: paired in any order"""
    rows = [(1, "f", 1, 5.0), (1, "f", 0, 5.0), (1, "f", 0, 6.0), (1, "f", 1, 6.0)]
    made.write_calls(workdir.folder / "s.csv", rows)
    block, = blocks(workdir, "--sub-tracking-file", "s.csv")["code_block_results"]
    assert block["num_calls"] == 2 and block["compute_time"]["max"] == 0, block


@test
def times_are_correctly_rounded(workdir):
    """call duration: the difference of the values that Python reads"""
    starts = ["1746129781.7855892", "1746129778.99568", "1746129784.3252733", "1745449609.7528221"]
    for start in starts:
        (workdir.folder / "s.csv").write_text(
            f"{','.join(made.CALLS)}\n7,f,0,{start}\n7,f,1,1746129999.1234567\n")
        block, = blocks(workdir, "--sub-tracking-file", "s.csv")["code_block_results"]
        assert block["compute_time"]["total"] == 1746129999.1234567 - float(start), (block, start)


@test
def compute_times_only(workdir):
    """no tracking file: usage unknown, not 0"""
    chance = made.seeded(3)
    rows = made.made_rows(chance, 40)
    made.write_calls(workdir.folder / "s.csv", rows)
    document = blocks(workdir, "--sub-tracking-file", "s.csv")
    expected = made.expected_values([], rows)
    assert document["static_data"] == {} and list(document["overall"]) == made.METRICS, document
    for block, expected_values in zip(document["code_block_results"], expected["code_block_results"]):
        made.check(block["compute_time"], expected_values["compute_time"])
        assert block["num_calls"] == expected_values["num_calls"] and block["num_timepoints"] is None, block
        assert block["resource_usage"]["main_ram"]["mean"] is None, block


@test
def text_and_files(workdir):
    """text: names every block; -o writes a file"""
    chance = made.seeded(4)
    write(workdir, made.made_timepoints(chance, 30), made.made_rows(chance, 30))
    files = ("--tracking-file", "t.csv", "--sub-tracking-file", "s.csv")
    done = workdir.wattle("blocks", *files)
    assert done.returncode == 0 and "train.py:12" in done.stdout and "main_ram" in done.stdout, done
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    done = workdir.wattle("blocks", *files, "--format", "json", "-o", "out.json")
    assert done.returncode == 0 and done.stdout == "", done
    made.check(json.loads((workdir.folder / "out.json").read_text()), blocks(workdir, *files))


@test
def of_a_run(workdir):
    """document of a run: the same structure, gpu_tracker's 21 metrics, and energy"""
    workdir.report("-i", "20ms", "--", "sleep", "0.2")
    document = blocks(workdir, "run.sqlite")
    assert list(document)[:3] == ["overall", "static_data", "code_block_results"], list(document)
    assert list(document["overall"]) == made.METRICS and list(document["static_data"]) == list(made.STATIC), document
    assert "total_j" in document["energy"] and document["code_block_results"] == [], document
    assert workdir.wattle("blocks", "run.sqlite").returncode == 0


@test
def files_left_next_to_a_run(workdir):
    """span files and sub-tracking files of a recorded program: joined to its run by either clock"""
    program = c_programs.build(workdir, "nested_spans")
    files = workdir.folder / "spans"
    files.mkdir()
    workdir.report("-i", "10ms", "--", "env", "-u", "WATTLE_RING", f"WATTLE_SPANS={files}/s-%p", program)
    spans = sorted(files.iterdir())
    assert workdir.wattle("merge", "all.csv", *spans).returncode == 0
    joined = blocks(workdir, "run.sqlite", *(word for file in spans for word in ("--spans", file)))
    by_wall = blocks(workdir, "run.sqlite", "--sub-tracking-file", "all.csv")
    for document in (joined, by_wall):
        names = {block["name"]: block for block in document["code_block_results"]}
        assert names["outer"]["num_calls"] == 3 and names["inner"]["num_calls"] == 6, names
        assert names["outer"]["num_timepoints"] > 0, names["outer"]
    near(by_wall["code_block_results"][1]["compute_time"]["total"],
         joined["code_block_results"][1]["compute_time"]["total"], absolute=1e-5)
    made.write_calls(workdir.folder / "old.csv", [(1, "f", 0, 5.0), (1, "f", 1, 6.0)])
    done = workdir.wattle("blocks", "run.sqlite", "--sub-tracking-file", "old.csv")
    assert done.returncode == 0 and "no span in it began" in done.stderr, done


@test
def wrong_use(workdir):
    """usage errors: the message names the missing argument"""
    for words in ([], ["a", "b"], ["run", "--tracking-file", "t.csv", "--sub-tracking-file", "s.csv"],
                  ["--tracking-file", "t.csv"], ["--spans", "s"], ["--sub-tracking-file", "s.csv", "--spans", "s"],
                  ["--format", "xml", "run"]):
        refused(workdir, *words, status=2)
    for name in ("t.txt", ".", ".csv", "csv"):
        line = refused(workdir, "--tracking-file", "t.csv", "--sub-tracking-file", name, status=2)
        assert f"--sub-tracking-file: {name} does not end" in line, line
        line = refused(workdir, "--tracking-file", name, "--sub-tracking-file", "s.csv", status=2)
        assert f"--tracking-file: {name} does not end" in line, line


@test
def stop_without_start(workdir):
    """stop without a start: refused as by gpu_tracker, with both times and processes"""
    head = ",".join(made.CALLS) + "\n"
    for text, says in (("7,X,1,9.25\n7,X,0,10.5\n7,X,1,11.0\n", ("9.25", "10.5", "7")),
                       ("7,X,0,1\n7,X,1,2\n7,X,1,13.5\n8,X,0,3.25\n8,X,1,4\n", ("13.5", "3.25", "7", "8")),
                       ("7,X,1,9.25\n", ("9.25", "7"))):
        (workdir.folder / "s.csv").write_text(head + text)
        line = refused(workdir, "--sub-tracking-file", "s.csv")
        assert all(word in line for word in says), (line, says)


@test
def files_that_are_none(workdir):
    """missing file, empty file, other columns, no rows: one line that names the file"""
    chance = made.seeded(5)
    write(workdir, made.made_timepoints(chance, 3), made.made_rows(chance, 4))
    static = ",".join(made.STATIC) + "\n" + ",".join(map(str, made.STATIC.values())) + "\n"
    names = ",".join([*made.METRICS, "timestamp"])
    wrong = {"empty.csv": "", "static.csv": static, "names.csv": static + names + "\n",
             "columns.csv": static + names.replace("system_ram", "ram") + "\n1\n", "words.csv": "hello\nworld\n",
             "cell.csv": f"{static}{names}\n{'x,' * 21}1.0\n", "nul.csv": "\0\0\0"}
    for name, text in wrong.items():
        (workdir.folder / name).write_text(text)
        assert name in refused(workdir, "--tracking-file", name, "--sub-tracking-file", "s.csv")
    for name in ("nowhere.csv", "nowhere.sqlite", "t.csv", "t.sqlite", "empty.csv"):
        assert name in refused(workdir, "--sub-tracking-file", name, "--tracking-file", "t.csv")
    for name in ("s.csv", "s.sqlite", "nowhere.sqlite"):
        assert name in refused(workdir, "--tracking-file", name, "--sub-tracking-file", "s.csv")
    with sqlite3.connect(workdir.folder / "no.sqlite") as connection:
        connection.execute("create table static_data (ram_unit)")
        connection.execute("create table data (process_id, code_block_name, position, timestamp)")
        connection.execute("insert into data values (1, 'f', 'x', 2.0)")
    connection.close()
    refused(workdir, "--tracking-file", "no.sqlite", "--sub-tracking-file", "s.csv")
    refused(workdir, "--sub-tracking-file", "no.sqlite")


@test
def damage(workdir):
    """files truncated anywhere or with wrong bytes: a result or one line, never a crash"""
    chance = made.seeded(6)
    write(workdir, made.made_timepoints(chance, 20, unknown=0.1), made.made_rows(chance, 20))
    for round_ in range(60):
        name = chance.choice(("t.csv", "t.sqlite", "s.csv", "s.sqlite"))
        bytes_ = bytearray((workdir.folder / name).read_bytes())
        for _ in range(chance.randrange(4)):
            bytes_[chance.randrange(len(bytes_))] = chance.choice((0, 34, 44, 10, 45, 255, chance.randrange(256)))
        if chance.random() < 0.5:
            del bytes_[chance.randrange(len(bytes_)):]
        damaged = f"d{round_}.{name.partition('.')[2]}"
        (workdir.folder / damaged).write_bytes(bytes_)
        files = {"t": "t.csv", "s": "s.csv", name[0]: damaged}
        done = workdir.wattle("blocks", "--tracking-file", files["t"], "--sub-tracking-file", files["s"], "--format",
                              "json")
        assert done.returncode in (0, 1), (round_, name, done)
        if done.returncode == 0:
            json.loads(done.stdout)
        else:
            assert done.stdout == "" and done.stderr.count("\n") == 1, (round_, name, done)


if __name__ == "__main__":
    main()
