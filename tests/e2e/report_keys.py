"""The JSON report against the contract, key by key, and the commands that read a stored run."""
import csv
import json
import shlex
import sqlite3

from harness import BURNER, sum_without_none, main, near, test

TEXT, COUNT, NUMBER, BOOL = "text", "count", "number", "bool"
TYPES = {TEXT: str, COUNT: int, NUMBER: (int, float), BOOL: bool}


def maybe(kind):
    return (kind, None)


RSS = {"total_rss": NUMBER, "private_rss": maybe(NUMBER), "shared_rss": maybe(NUMBER)}
PERCENTAGES = {"max_sum_percent": NUMBER, "max_hardware_percent": NUMBER, "mean_sum_percent": NUMBER,
               "mean_hardware_percent": NUMBER}
DOMAIN = {"domain": TEXT, "kind": TEXT, "device": TEXT, "inside": maybe(TEXT), "source": TEXT, "provenance": TEXT,
          "energy_j": maybe(NUMBER), "error_j": maybe(NUMBER), "mean_w": maybe(NUMBER), "max_w": maybe(NUMBER),
          "target_j": maybe(NUMBER), "attribution": TEXT, "update_period_s": maybe(NUMBER), "wraps": COUNT,
          "gaps": COUNT, "target_error_j": maybe(NUMBER), "integrated_j": maybe(NUMBER),
          "integrated_error_j": maybe(NUMBER), "update_jitter_s": maybe(NUMBER), "idle_w": maybe(NUMBER),
          "max_temperature_c": maybe(NUMBER)}
GPU = {"index": COUNT, "uuid": TEXT, "name": TEXT, "energy_j": maybe(NUMBER), "mean_w": maybe(NUMBER),
       "max_w": maybe(NUMBER), "max_memory_bytes": maybe(COUNT), "target_max_memory_bytes": maybe(COUNT),
       "mean_utilization_percent": maybe(NUMBER), "target_mean_utilization_percent": maybe(NUMBER),
       "max_temperature_c": maybe(NUMBER), "throttled_s": maybe(NUMBER), "cap_w": maybe(NUMBER)}
METRIC = {"name": TEXT, "last": maybe(NUMBER), "min": maybe(NUMBER), "max": maybe(NUMBER), "mean": maybe(NUMBER),
          "count": COUNT}
REPORT = {
    "schema": TEXT,
    "run": {"id": TEXT, "command": [TEXT], "pid": COUNT, "exit_code": maybe(COUNT), "start": TEXT, "duration_s": NUMBER,
            "host": TEXT, "interval_s": NUMBER, "samples": COUNT, "lost_samples": COUNT, "complete": BOOL,
            "segments": COUNT, "labels": {}},
    "energy": {"total_j": maybe(NUMBER), "error_j": maybe(NUMBER), "provenance": maybe(TEXT),
               "ledger": {"target_j": maybe(NUMBER), "others_j": maybe(NUMBER), "wattle_j": maybe(NUMBER),
                          "idle_j": maybe(NUMBER), "unattributed_j": maybe(NUMBER)},
               "target_error_j": maybe(NUMBER), "carbon_g": maybe(NUMBER), "domains": [DOMAIN]},
    "cpu": {"target_cpu_s": NUMBER, "method": TEXT, "main_cpu_s": NUMBER, "descendants_cpu_s": NUMBER,
            "processes_seen": COUNT, "processes_sampled": COUNT},
    "memory": {"peak_rss_bytes": COUNT, "main_peak_rss_bytes": maybe(COUNT), "read_bytes": maybe(COUNT),
               "written_bytes": maybe(COUNT), "major_faults": maybe(COUNT)},
    "gpus": [GPU],
    "resource_usage": {
        "max_ram": {"unit": TEXT, "system_capacity": NUMBER, "system": NUMBER, "main": RSS, "descendants": RSS,
                    "combined": RSS},
        "max_gpu_ram": {"unit": TEXT, "system_capacity": maybe(NUMBER), "system": maybe(NUMBER), "main": maybe(NUMBER),
                        "descendants": maybe(NUMBER), "combined": maybe(NUMBER)},
        "cpu_utilization": {"system_core_count": COUNT, "n_expected_cores": COUNT, "system": PERCENTAGES,
                            "main": PERCENTAGES, "descendants": PERCENTAGES, "combined": PERCENTAGES,
                            "main_n_threads": COUNT, "descendants_n_threads": COUNT, "combined_n_threads": COUNT},
        "gpu_utilization": {"system_gpu_count": COUNT, "n_expected_gpus": COUNT, "gpu_percentages": {}},
        "compute_time": {"unit": TEXT, "time": NUMBER}},
    "blocks": [{}],
    "metrics": [METRIC],
    "warnings": [TEXT],
    "self": {"cpu_s": NUMBER, "cpu_percent": NUMBER, "max_rss_bytes": COUNT, "energy_j": maybe(NUMBER),
             "wakeups": COUNT},
}


def check(value, shape, where):
    if isinstance(shape, tuple):
        if value is None:
            return
        shape = shape[0]
    if isinstance(shape, dict):
        assert isinstance(value, dict), f"{where}: {value!r} is no object"
        for key, inner in shape.items():
            assert key in value, f"{where}.{key} is missing"
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{where}: {value!r} is no array"
        for index, item in enumerate(value):
            check(item, shape[0], f"{where}[{index}]")
    else:
        right = isinstance(value, TYPES[shape]) and (shape == BOOL or not isinstance(value, bool))
        assert right, f"{where}: {value!r} is no {shape}"


@test
def every_key(workdir):
    """every key of the contract exists with its type"""
    report, _ = workdir.burn("children", "20", "20")
    check(report, REPORT, "report")
    assert report["schema"] == "wattle-report/1"
    assert report["run"]["command"] == [str(BURNER), "children", "20", "20"]
    assert report["run"]["complete"] is True and report["run"]["exit_code"] == 0


@test
def sums_agree(workdir):
    """target = main + descendants; the ledger and the domains add up to the total"""
    report, _ = workdir.burn("children", "20", "30")
    cpu, energy = report["cpu"], report["energy"]
    near(cpu["main_cpu_s"] + cpu["descendants_cpu_s"], cpu["target_cpu_s"], absolute=1e-9)
    if energy["total_j"] is not None:
        near(sum_without_none(energy["ledger"]), energy["total_j"], relative=1e-9)


@test
def stored_report_is_the_same(workdir):
    """wattle report of the stored run is the report that run wrote"""
    report, _ = workdir.burn("cpu", "0.3")
    again = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    assert again == report
    done = workdir.wattle("report", "run.sqlite", "--format", "json", "-o", "again.json")
    assert done.returncode == 0 and json.loads((workdir.folder / "again.json").read_text()) == report


@test
def text_report(workdir):
    """text: time, energy, CPU and memory, and no colour without a terminal"""
    done = workdir.wattle("run", "-o", "run.sqlite", "--", BURNER, "cpu", "0.3")
    text = workdir.wattle("report", "run.sqlite").stdout
    for word in ("CPU", "memory"):
        assert word.lower() in text.lower(), text
    assert "\x1b" not in text and "\x1b" not in done.stderr
    assert max(len(line) for line in text.splitlines()) <= 80, text


@test
def summary_after_a_run(workdir):
    """at most 20 lines of 80 columns, the last one with the command that shows more; paths are quoted, and cut if they
    are long"""
    folder = workdir.folder / ("a folder with a long name " * 4).strip()
    folder.mkdir()
    for name in ("my run.sqlite", folder / "run.sqlite"):
        lines = workdir.wattle("run", "-o", name, "--", BURNER, "cpu", "0.3").stderr.splitlines()
        assert 4 < len(lines) <= 20 and max(map(len, lines)) <= 80, lines
        assert lines[-1].startswith("  More: wattle report "), lines
    words = workdir.wattle("run", "--overwrite", "-o", "my run.sqlite", "--",
                           "true").stderr.splitlines()[-1].split("More: wattle ")[1]
    assert workdir.wattle(*shlex.split(words)).returncode == 0, words


@test
def sections_of_the_text(workdir):
    """--section shows the named sections alone, --all those that the default leaves out and names"""
    workdir.wattle("run", "-o", "run.sqlite", "--", BURNER, "cpu", "0.2")
    names = workdir.wattle("report", "--section", "list").stdout.split()
    text = {name: workdir.wattle("report", "run.sqlite", "--section", name).stdout for name in names}
    for name in names:
        is_titled = name.replace("-", " ") in text[name].lower()
        has_no_data = text[name] == f"  {name}: no data in this run\n"
        assert is_titled or has_no_data or (name in ("summary", "warnings") and text[name].strip()), (name, text[name])
    both = workdir.wattle("report", "run.sqlite", "--section", "warnings", "--section", "summary").stdout
    assert both == text["summary"] + text["warnings"], both
    assert text["ranks"] == "  ranks: no data in this run\n", text["ranks"]
    everything = workdir.wattle("report", "run.sqlite", "--all").stdout
    assert text["attributed-energy"] in everything and "Not shown" not in everything
    for options, said in ((("--section", "gpu"), "did you mean 'gpus'"),
                          (("--all", "--format", "json"), "--section and --all")):
        done = workdir.wattle("report", "run.sqlite", *options)
        assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1, done


@test
def reports_of_strange_files(workdir):
    """empty file, text, other database, truncated run file: status 1 and one line that names it"""
    workdir.wattle("run", "-q", "-o", "good.sqlite", "--", "true")
    good = (workdir.folder / "good.sqlite").read_bytes()
    (workdir.folder / "empty").write_bytes(b"")
    (workdir.folder / "text").write_text("hello\n" * 1000)
    (workdir.folder / "cut").write_bytes(good[:len(good) // 3])
    (workdir.folder / "scrambled").write_bytes(good[:4096] + bytes(b ^ 0x5a for b in good[4096:]))
    connection = sqlite3.connect(workdir.folder / "other")
    connection.execute("create table sample(x)")
    connection.commit()
    connection.close()
    for name in ("empty", "text", "other", "cut", "scrambled", "."):
        done = workdir.wattle("report", name)
        assert done.returncode == 1 and done.stdout == "", (name, done)
        assert name in done.stderr and len(done.stderr.splitlines()) == 1, (name, done.stderr)


@test
def hostile_words(workdir):
    """quotes, newlines and invalid UTF-8 in the command: valid JSON"""
    words = ["a\"b", "c\\d", "e\nf", "µ€", "'; drop table run; --", ""]
    report, _ = workdir.report("--", "true", *words)
    assert report["run"]["command"] == ["true", *words]
    process = workdir.start("run", "-q", "-o", "2.sqlite", "--json", "2.json", "--", "true", "caf\udce9")
    assert workdir.finish(process).returncode == 0
    assert json.loads((workdir.folder / "2.json").read_text())["run"]["command"][1] == "caf\ufffd"


@test
def run_file_is_documented(workdir):
    """run file: identifies itself and its columns: application_id, user_version, table metric"""
    workdir.burn("cpu", "0.2")
    assert workdir.rows("pragma application_id") == [(0x57544C31,)]
    assert workdir.rows("pragma user_version")[0][0] >= 1
    assert workdir.rows("pragma integrity_check") == [("ok",)]
    described = {row[0] for row in workdir.rows("select name from metric")}
    for table in ("sample", "device_sample", "process_sample"):
        for _, column, *_ in workdir.rows(f"pragma table_info({table})"):
            assert column in described or column in ("t_ns", "device", "pid", "start_ns", "segment"), (table, column)
    for table in ("run", "device", "process", "span", "user_metric", "event"):
        workdir.rows(f"select * from {table}")


@test
def no_side_files(workdir):
    """after a run there is one file: no -wal, no -shm, no journal"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    assert [p.name for p in workdir.folder.iterdir()] == ["run.sqlite"]


@test
def list_of_runs(workdir):
    """wattle list: one line for each run, an incomplete one marked by its name, other files skipped"""
    for number in range(3):
        workdir.wattle("run", "-q", "-o", f"{number}.sqlite", "--label", f"run{number}", "--", "sleep", "0.1")
    (workdir.folder / "notes.txt").write_text("no run")
    (workdir.folder / "bad.sqlite").write_text("no run either")
    (workdir.folder / "cut.sqlite").write_bytes((workdir.folder / "0.sqlite").read_bytes()[:4096])
    done = workdir.wattle("list", ".")
    assert done.returncode == 0 and done.stdout.count("cut.sqlite") == 1, done
    for number in range(3):
        assert sum(f"{number}.sqlite" in line for line in done.stdout.splitlines()) == 1, done.stdout
    assert "notes.txt" not in done.stdout


@test
def sensors(workdir):
    """wattle sensors: text for people, JSON with every key of the contract"""
    assert workdir.wattle("sensors").stdout.strip()
    done = workdir.wattle("sensors", "--json")
    shape = {"sensors": [{"sensor": TEXT, "domain": maybe(TEXT), "kind": maybe(TEXT), "device": maybe(TEXT),
                          "readable": BOOL, "used": BOOL, "why": maybe(TEXT), "remedy": maybe(TEXT),
                          "update_period_s": maybe(NUMBER), "resolution_j": maybe(NUMBER), "last": maybe(NUMBER)}]}
    listing = json.loads(done.stdout)
    check(listing, shape, "sensors")
    assert listing["sensors"], "no row at all"
    for row in listing["sensors"]:
        assert row["used"] or row["why"], row
    measured = any(row["used"] and row["readable"] and row["provenance"] != "estimated" for row in listing["sensors"])
    assert done.returncode == (0 if measured else 1), (done.returncode, listing)


@test
def export_csv(workdir):
    """export --format csv: a header of metric names and a line for each sample, as in table sample"""
    workdir.burn("cpu", "0.5", options=["-i", "50ms"])
    assert workdir.wattle("export", "run.sqlite", "--format", "csv", "-o", "out.csv").returncode == 0
    with open(workdir.folder / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    stored = workdir.rows("select t_ns, main_rss_bytes from sample order by t_ns")
    assert len(rows) == len(stored) > 5
    for row, (t_ns, rss) in zip(rows, stored):
        assert int(row["t_ns"]) == t_ns and (int(row["main_rss_bytes"]) if rss is not None else None) == rss


@test
def export_jsonl(workdir):
    """export --format jsonl: an object on each line"""
    workdir.burn("cpu", "0.3", options=["-i", "50ms"])
    done = workdir.wattle("export", "run.sqlite", "--format", "jsonl", "-o", "-")
    assert done.returncode == 0, done
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) >= 5 and all(isinstance(row, dict) for row in rows)


@test
def export_to_wrong_places(workdir):
    """export: an unknown format is a usage error, a missing folder a failure"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    assert workdir.wattle("export", "run.sqlite", "--format", "xml", "-o", "x").returncode == 2
    assert workdir.wattle("export", "run.sqlite", "--format", "csv", "-o", "no/such/x").returncode == 1
    assert workdir.wattle("export", "not-there", "--format", "csv", "-o", "x").returncode == 1


if __name__ == "__main__":
    main()
