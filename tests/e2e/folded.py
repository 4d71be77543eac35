"""Code blocks of a run as figures and as stacks for flame graphs: each joule of the target counts once."""
import json
import re
import sqlite3

from harness import main, near, test

# the format of flame graphs: frames, a blank, a decimal number without an exponent
LINE = re.compile(r"^(.+) (\d+\.\d+)$")


def measured(workdir):
    """A run with spans of two threads, a range and an interrupted call, written into its file."""
    workdir.burn("cpu", "0.6", options=["-i", "20ms"])
    file = sqlite3.connect(workdir.folder / "run.sqlite")
    start, pid = file.execute("select start_ns, pid from segment").fetchone()
    rows = [(1, None, 1, "epoch;1", 0.05, 0.50, "nested", "ended"), (2, 1, 1, "step", 0.10, 0.20, "nested", "ended"),
            (3, 1, 1, "step", 0.25, 0.40, "nested", "unwound"), (4, None, 2, "loader", 0.15, 0.55, "nested", "death"),
            (5, None, 1, "range", 0.00, 0.58, "range", "ended"), (6, None, 2, "open", 0.56, None, "nested", "open")]
    for number, parent, tid, name, begin, end, kind, close in rows:
        file.execute("insert into span (id, parent, pid, tid, name, begin_ns, end_ns, kind, close) "
                     "values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     (number, parent, pid, tid, name, start + int(begin * 1e9),
                      None if end is None else start + int(end * 1e9), kind, close))
    file.executemany("insert into user_metric (t_ns, name, value, span, pid, tid) values (?, ?, ?, ?, ?, ?)",
                     [(start + int(0.15e9), "images", 32, 2, pid, 1), (start + int(0.30e9), "images", 32, 3, pid, 1)])
    file.commit()
    report = workdir.wattle("report", "run.sqlite", "--format", "json")
    assert report.returncode == 0, report.stderr
    return json.loads(report.stdout)


def stacks(text):
    lines = [LINE.match(line) for line in text.splitlines()]
    assert all(lines), text
    found = {line[1]: float(line[2]) for line in lines}
    assert len(found) == len(lines), "a stack has one line"
    return found


@test
def blocks_add_up(workdir):
    """exclusive energies of blocks and the energy outside add up to the target's energy"""
    report = measured(workdir)
    blocks = {block["name"]: block for block in report["blocks"]}
    own = sum(block["energy"]["self_j"] for block in blocks.values())
    near(own + report["energy"]["outside_blocks_j"], report["energy"]["ledger"]["target_j"], relative=1e-9)
    near(blocks["epoch;1"]["self_time_s"], 0.20, absolute=1e-6)
    near(blocks["range"]["self_time_s"], 0.08, absolute=1e-6)
    assert (blocks["step"]["num_calls"], blocks["step"]["unwound"], blocks["loader"]["cut"]) == (2, 1, 1)
    assert blocks["open"]["num_calls"] == 0
    unit, = blocks["step"]["units"]
    assert (unit["name"], unit["count"], unit["sum"]) == ("images", 2, 64)
    near(unit["j_per_unit"], blocks["step"]["energy"]["total_j"] / 64, relative=1e-9)
    assert blocks["loader"]["units"] == []


@test
def folded(workdir):
    """export --format folded: a line for each stack; together they are the target's energy"""
    report = measured(workdir)
    done = workdir.wattle("export", "run.sqlite", "--format", "folded", "-o", "-")
    assert done.returncode == 0, done.stderr
    joules = stacks(done.stdout)
    near(sum(joules.values()), report["energy"]["ledger"]["target_j"], relative=1e-7)
    assert {stack.split(";", 1)[1] for stack in joules if ";" in stack} == {
        "epoch\\x3b1", "epoch\\x3b1;step", "loader", "range"}, joules
    near(joules["[outside]"], report["energy"]["outside_blocks_j"], relative=1e-6)


@test
def folded_time(workdir):
    """--weight time: seconds of each stack"""
    measured(workdir)
    assert workdir.wattle("export", "run.sqlite", "--format", "folded", "--weight", "time", "-o", "out").returncode == 0
    seconds = {stack.split(";", 1)[1]: value for stack, value in stacks((workdir.folder / "out").read_text()).items()}
    expected = {"epoch\\x3b1": 0.20, "epoch\\x3b1;step": 0.25, "loader": 0.40, "range": 0.08}
    assert seconds.keys() == expected.keys(), seconds
    for stack, value in expected.items():
        near(seconds[stack], value, absolute=1e-6)


@test
def refused(workdir):
    """no spans, option of another format, existing file: one line each"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    done = workdir.wattle("export", "run.sqlite", "--format", "folded", "-o", "out")
    assert done.returncode == 1 and "no code blocks" in done.stderr, done
    assert not (workdir.folder / "out").exists()
    done = workdir.wattle("export", "run.sqlite", "--format", "csv", "--weight", "time", "-o", "out")
    assert done.returncode == 2 and "--weight" in done.stderr, done
    measured(workdir)
    (workdir.folder / "out").write_text("mine")
    done = workdir.wattle("export", "run.sqlite", "--format", "folded", "-o", "out")
    assert done.returncode == 1 and (workdir.folder / "out").read_text() == "mine", done


if __name__ == "__main__":
    main()
