"""gpu_tracker's command line: python3 -m wattle.compat.gpu_tracker"""
import json
import os
import pickle
import signal
import sys

from gpu_tracker_common import COLUMNS, MARKS, TRACKING, need_pandas, rows_of, write
from harness import main, test, wait_until


def start(workdir, *arguments, **options):
    return workdir.start("-m", "wattle.compat.gpu_tracker", *arguments, program=sys.executable, **options)


def gpu_tracker(workdir, *arguments, status=0, **options):
    done = workdir.finish(start(workdir, *arguments, **options))
    assert done.returncode == status, done
    return done


@test
def execute(workdir):
    """-e: the command's output, a line with its status, and the figures; 0 whatever the command's status was"""
    done = gpu_tracker(workdir, "-e", f"{sys.executable} -c 'import sys; print(\"two words\"); sys.exit(3)'",
                       "--st=0.05",
                       "--ru=bytes")
    first, second, third, *_ = done.stdout.splitlines()
    assert (first, second, third) == ("two words", "Resource tracking complete. Process completed with status code: 3",
                                      "Max RAM:")
    assert "   Unit: bytes\n" in done.stdout and done.stdout.endswith("\n") and not done.stderr, done


@test
def options_and_config(workdir):
    """JSON file of arguments, overridden by options; JSON output into a file; a tracking file beside it"""
    write(workdir, "config.json",
          json.dumps({"sleep_time": 0.02, "ram_unit": "megabytes", "time_unit": "hours", "n_expected_cores": 2}))
    done = gpu_tracker(workdir, "--execute=sleep 0.5", "--tconfig=config.json", "--tu", "seconds", "--nec", "1",
                       "-f", "json", "-o", "out.json", "--tf=track.csv")
    assert done.stdout.splitlines()[-1] == "Resource tracking complete. Process completed with status code: 0", done
    text = (workdir.folder / "out.json").read_text()
    values = json.loads(text)
    assert text == json.dumps(values, indent=1), text
    assert list(values) == ["max_ram", "max_gpu_ram", "cpu_utilization", "gpu_utilization", "compute_time"]
    assert values["max_ram"]["unit"] == "megabytes" and values["cpu_utilization"]["n_expected_cores"] == 1, values
    assert 0.45 < values["compute_time"]["time"] < 10, values
    assert len(rows_of(workdir.folder / "track.csv")) > 10
    assert "already exists" in gpu_tracker(workdir, "-e", "true", "--tf=track.csv", status=1).stderr
    gpu_tracker(workdir, "-e", "sleep 0.2", "--tf=track.csv", "--overwrite", "--st", "0.05", "-f", "text", "-o",
                "out.txt")
    assert (workdir.folder / "out.txt").read_text().startswith("Max RAM:\n")


@test
def crash_at_once(workdir):
    """command that dies at once: still tracked"""
    done = gpu_tracker(workdir, "-e", "sh -c 'kill -9 $$'", "-f", "json", "--tu=seconds")
    line, _, text = done.stdout.partition("\n")
    assert line.endswith("status code: 137") and 0 < json.loads(text)["compute_time"]["time"] < 5, done


@test
def signals(workdir):
    """SIGTERM: passed on to the command, and the results are still shown"""
    process = start(workdir, "-e", "sh -c 'touch ready; exec sleep 60'", "--st=0.05")
    wait_until((workdir.folder / "ready").exists, "the command started")
    process.send_signal(signal.SIGTERM)
    done = workdir.finish(process)
    assert done.returncode == 0 and "status code: 143" in done.stdout and "Compute time:" in done.stdout, done


@test
def refusals(workdir):
    """impossible requests: a line on stderr with status 1, before anything is started"""
    write(workdir, "file", "")
    write(workdir, "typo.json", '{"sleeptime": 1}')
    touch = ["-e", "touch started"]
    for arguments, *parts in (
            (["-e", "no-such-command x"], 'Command not found: "no-such-command"'),
            (["-e", "./file"], "not executable", "./file"),
            (["-e", " "], "Empty command"),
            (["-e", "touch 'started"], "quot"),
            ([*touch, "-f", "yaml"], '"yaml" is not a valid format', "text", "json", "pickle"),
            ([*touch, "--st", "soon"], "--st soon", "number"),
            ([*touch, "--ru", "stones"], '"stones" is not a valid RAM unit', "megabytes"),
            ([*touch, "--tf", "t.txt"], '".csv" and ".sqlite"'),
            ([*touch, "-o", "no/folder/out"], "--output no/folder/out"),
            ([*touch, "-o", "."], "--output .", "folder"),
            ([*touch, "--nec", "1.5"], "--nec 1.5", "integer"),
            ([*touch, "--tconfig", "none.json"], "none.json"),
            ([*touch, "--tconfig", "typo.json"], "typo.json", "sleeptime", "sleep_time"),
            ([*touch, "--tconfig", "file"], "file"),
            ([*touch, "--stat", "max"], "--stat"),
            ([], "--execute"),
            (["sub-track"], "sub-track"),
            (["sub-track", "divide"], "sub-track divide"),
            (["sub-track", "analyze", "--tf", "a.csv"], "--stf"),
            (["sub-track", "combine", "--stf", "a.csv"], "-p"),
            (["sub-track", "compare"], "-m", "config file"),
            (["sub-track", "compare", "-m", "A"], "-m A", "NAME=FILE"),
            (["sub-track", "compare", "-m", "A=none.pkl"], "none.pkl")):
        done = gpu_tracker(workdir, *arguments, status=1)
        assert all(part in done.stderr for part in parts) and "Traceback" not in done.stderr and not done.stdout, done
    assert not (workdir.folder / "started").exists()


@test
def help_and_version(workdir):
    """-h lists every option, -v prints the version"""
    done = gpu_tracker(workdir, "-h")
    for option in ("--execute", "--output", "--format", "--tconfig", "--st", "--ru", "--gru", "--tu", "--nec",
                   "--guuids", "--gb", "--disable-logs", "--tf", "--overwrite", "--stf", "-p", "--cconfig", "-m",
                   "--stat", "combine", "analyze", "compare"):
        assert option in done.stdout, option
    assert gpu_tracker(workdir, "--version").stdout.strip()


@test
def sub_track(workdir):
    """combine (files or a folder), analyze as text, JSON and pickle, compare by -m and by config"""
    need_pandas()
    header, *rows = MARKS.splitlines()
    (workdir.folder / "parts").mkdir()
    for pid in "78":
        part = "".join(f"{row}\n" for row in rows if row.startswith(pid))
        write(workdir, f"parts/{pid}.csv", f"{COLUMNS}\n{part}")
    write(workdir, "parts/notes.txt", "not a sub-tracking file")
    write(workdir, "t.csv", TRACKING)
    gpu_tracker(workdir, "sub-track", "combine", "--stf=all.csv", "-p", "parts/7.csv", "-p", "parts/8.csv")
    gpu_tracker(workdir, "sub-track", "combine", "--stf=folder.csv", "-p", "parts")
    together = rows_of(workdir.folder / "all.csv")
    assert together == rows_of(workdir.folder / "folder.csv") and len(together) == len(rows), together
    analyze = "sub-track", "analyze", "--tf=t.csv", "--stf=all.csv"
    assert "Num Calls:           4" in gpu_tracker(workdir, *analyze).stdout
    values = json.loads(gpu_tracker(workdir, *analyze, "-f", "json").stdout)
    assert values["code_block_results"][0]["compute_time"]["total"] == 2.25, values["code_block_results"]
    gpu_tracker(workdir, *analyze, "--format=pickle", "--output=one.pkl")
    assert gpu_tracker(workdir, "--tf=t.csv", "--stf=all.csv", "-f", "text", "sub-track",
                       "analyze").stdout.startswith("Overall:")
    with open(workdir.folder / "one.pkl", "rb") as file:
        assert pickle.load(file).to_json()["static_data"] == values["static_data"]
    compared = json.loads(gpu_tracker(workdir, "sub-track", "compare", "-m", "A=one.pkl", "-m", "B=one.pkl", "-f",
                                      "json",
                                      "--stat=max").stdout)
    assert compared["code_block_compute_time"]["inner"] == {"A": 1.0, "B": 1.0}, compared["code_block_compute_time"]
    write(workdir, "config.json", json.dumps({"file_path_map": {"A": "one.pkl"}, "statistic": "min"}))
    text = gpu_tracker(workdir, "sub-track", "compare", "--cconfig=config.json", "-m", "C=one.pkl").stdout
    assert "\tinner:\n\t\t    A    C\n\t\t 0.25 0.25\n" in text, text


@test
def pickled_output(workdir):
    """-f pickle without a file: writes the pickle to stdout"""
    process = start(workdir, "-e", "sleep 0.1", "-f", "pickle")
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and b"status code: 0" in err, err
    assert pickle.loads(out).resource_usage.compute_time.time > 0 and os.path.isdir(workdir.folder)


if __name__ == "__main__":
    main()
