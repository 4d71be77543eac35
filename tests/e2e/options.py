"""Options: invalid ones are named, nothing is started, nothing is overwritten."""
import json
import pathlib
import re

from harness import BUILD, BURNER, TESTS, main, near, test

SPANNER = BUILD / "tests/fakes/spanner"

# options, what the message must name
WRONG = [
    (["--interval", "100"], "--interval"),
    (["--interval", "0.5ms"], "--interval"),
    (["--interval", "2h"], "--interval"),
    (["-i", "abc"], "interval"),
    (["--ram-unit", "gibibytes"], "--ram-unit"),
    (["--gpu-ram-unit", "x"], "--gpu-ram-unit"),
    (["--time-unit", "weeks"], "--time-unit"),
    (["--expected-cores", "0"], "--expected-cores"),
    (["--expected-cores", "two"], "--expected-cores"),
    (["--gpu-brand", "voodoo"], "--gpu-brand"),
    (["--gpus", "GPU-not-there"], "--gpus"),
    (["--attribution", "fair"], "--attribution"),
    (["--budget", "-1"], "--budget"),
    (["--budget", "much"], "--budget"),
    (["--carbon-intensity", "-5"], "--carbon-intensity"),
    (["--pue", "0.5"], "--pue"),
    (["--carbon-region", "DEE"], "--carbon-region 'DEE': no carbon intensity is known for it (did you mean 'DE"),
    (["--carbon-region", "Frnace"], "(did you mean 'France'?)"),
    (["--carbon-region", ""], "--carbon-region"),
    (["--carbon-region", "DE", "--carbon-intensity", "5"], "--carbon-region: can't be combined with --carbon-intensity"),
    (["--meta", "novalue"], "--meta"),
    (["--meta", "label=a", "--label", "b"], "--meta: the key label"),
    (["--tracking-file", "track.txt"], "track.txt"),
    (["--config", "not-there.json"], "--config: unable to open not-there.json: No such file"),
    (["--store", "mysql://host/db"], "--store"),
    (["--store", "postgresql://u:secret@host/db"], "--store"),
    (["--steps", "0"], "--steps"),
    (["--output="], "--output"),
    (["-o", "-"], "--output: a run file"),
    (["--outptu", "x"], "--outptu"),
    (["--overwrite", "--append"], "--append"),
    (["--sub-tracking-file", "spans.txt"], "--sub-tracking-file"),
    (["-o", "x.sqlite", "--json", "x.sqlite"], "--json: x.sqlite is the run file"),
    (["-o", "x.sqlite", "--tracking-file", "x.sqlite"], "--tracking-file: x.sqlite is the run file"),
]


@test
def wrong_values(workdir):
    """each invalid option or value: 125, one line that names it, nothing started and no file created"""
    for options, named in WRONG:
        done = workdir.wattle("run", *options, "--", "touch", "started")
        assert done.returncode == 125, (options, done)
        assert len(done.stderr.splitlines()) == 1 and named in done.stderr, (options, done.stderr)
        assert not list(workdir.folder.iterdir()), (options, list(workdir.folder.iterdir()))


# the arguments, the exit status, parts of the one line on stderr
MISTYPED = [
    (["runn", "true"], 2, "unknown command 'runn' (did you mean 'run'?)"),
    (["run", "--ouput", "x", "true"], 125, "unknown option --ouput (did you mean '--output'?)"),
    (["report", "x", "--format", "htlm"], 2, "--format: 'htlm' is not valid (did you mean 'html'?)"),
    (["cap", "sett", "gpu-0", "250"], 2, "unknown subcommand 'sett' (did you mean 'set'?)"),
    (["help", "runn"], 2, "did you mean 'run'?"),
    (["report", "a.sqlite", "b.sqlite"], 2, "`wattle compare A B` compares runs"),
    (["report", "empty"], 1, "`wattle list empty` lists its runs"),
    (["list", "empty"], 0, "no runs to list in empty"),
    (["run", "--no-file", "-o", "x.sqlite", "true"], 125, "--no-file"),
]


@test
def mistyped(workdir):
    """mistyped command, option or value: one line with the nearest valid one, or with what to do instead"""
    (workdir.folder / "empty").mkdir()
    for words, status, named in MISTYPED:
        done = workdir.wattle(*words)
        assert done.returncode == status, (words, done)
        assert len(done.stderr.splitlines()) == 1 and named in done.stderr, (words, done.stderr)


@test
def help_and_version(workdir):
    """`wattle help COMMAND` equals `wattle COMMAND --help`, also with two words; -V equals --version"""
    assert workdir.wattle("help").stdout == workdir.wattle("--help").stdout
    assert workdir.wattle("help", "run").stdout == workdir.wattle("run", "--help").stdout
    assert workdir.wattle("help", "cap", "set").stdout == workdir.wattle("cap", "set", "--help").stdout
    assert workdir.wattle("-V").stdout == workdir.wattle("--version").stdout


@test
def no_file(workdir):
    """--no-file: the usual summary and JSON report, and no file remains, also if the command fails"""
    (workdir.folder / "tmp").mkdir()
    for command, status in (("true", 0), ("false", 1), ("no-such-command", 127)):
        done = workdir.wattle("run", "--no-file", "--json", "-", "--", command,
                              env={"TMPDIR": str(workdir.folder / "tmp")})
        assert done.returncode == status, done
        assert status == 127 or ("energy" in json.loads(done.stdout) and "no run file was kept" in done.stderr), done
        assert [path.name for path in workdir.folder.rglob("*")] == ["tmp"], list(workdir.folder.rglob("*"))


@test
def unseen_step(workdir):
    """--step with a name that no code block has: the summary lists the names that were seen and suggests one"""
    for program, told in ((SPANNER, " (did you mean 'inner'?); recorded code blocks: inner, outer"),
                          ("true", "; the program marked no code block")):
        done = workdir.wattle("run", "--no-file", "--step", "iner", "--", program,
                              *(["nested"] if program != "true" else []))
        text = " ".join(done.stderr.split())
        assert "--step: no call of code block 'iner' was recorded" + told in text, done.stderr


@test
def format_by_suffix(workdir):
    """-o FILE of report, compare and blocks: the suffix selects the format; --format takes precedence"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    workdir.wattle("run", "-q", "-o", "other.sqlite", "--", "true")
    for command, files in (("report", ("run.sqlite",)), ("compare", ("run.sqlite", "other.sqlite")),
                           ("blocks", ("run.sqlite",))):
        rows = [("a.json", (), "{"), ("A.JSON", (), "{"), ("a.txt", (), "\n" if command == "compare" else " "),
                ("a.json.txt", (), ""),
                ("b.json", ("--format", "text"), "\n" if command == "compare" else " ")]
        if command != "blocks":
            rows += [("a.html", (), "<!"), ("a.htm", (), "<!"), ("b.html", ("--format", "json"), "{")]
        for name, options, begins in rows:
            assert workdir.wattle(command, *files, *options, "-o", name).returncode == 0, (command, name)
            assert (workdir.folder / name).read_text().startswith(begins), (command, name)


@test
def default_name(workdir):
    """no -o: the run file is wattle-YYYYmmdd-HHMMSS-PID.sqlite in the working directory, one file"""
    workdir.wattle("run", "-q", "--", "true")
    names = [path.name for path in workdir.folder.iterdir()]
    assert len(names) == 1 and re.fullmatch(r"wattle-\d{8}-\d{6}-\d+\.sqlite", names[0]), names


@test
def name_patterns(workdir):
    """-o: %h is the host, %p the pid, %j the job id, %r the rank"""
    workdir.wattle("run", "-q", "-o", "a-%j-%r-%p.sqlite", "--", "true",
                   env={"SLURM_JOB_ID": "77", "SLURM_PROCID": "3"})
    names = [path.name for path in workdir.folder.iterdir()]
    assert len(names) == 1 and re.fullmatch(r"a-77-3-\d+\.sqlite", names[0]), names


@test
def steps_of_a_job(workdir):
    """-o: %s is the step, 0 without one; a second srun that finds the first one's file gets a message"""
    slurm = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NPROCS": "1"}
    assert workdir.wattle("run", "-q", "-o", "%j.%s-%r.sqlite", "--", "true", env=slurm).returncode == 0
    assert workdir.wattle("run", "-q", "-o", "%s.sqlite", "--", "true").returncode == 0
    assert {path.name for path in workdir.folder.iterdir()} == {"77.4-0.sqlite", "0.sqlite"}
    for step, words in (("4", "step 4 of a job"), ("5", "step 5 of a job")):
        done = workdir.wattle("run", "-q", "-o", "77.4-%r.sqlite", "--", "touch", "started",
                           env={**slurm, "SLURM_STEP_ID": step})
        assert done.returncode == 125 and words in done.stderr and "%s" in done.stderr, done
    assert not (workdir.folder / "started").exists()
    assert "%s (step)" in workdir.wattle("run", "-o", "%x", "--", "true").stderr


@test
def an_existing_file_is_kept(workdir):
    """existing file: an error that names it and the remedy; nothing is started, the file is unchanged"""
    for option, name in (("-o", "run.sqlite"), ("--tracking-file", "track.csv"), ("--tracking-file", "track.sqlite")):
        (workdir.folder / name).write_text("precious")
        done = workdir.wattle("run", option, name, "--", "touch", "started")
        assert done.returncode == 125, done
        assert name in done.stderr and "--overwrite" in done.stderr, done.stderr
        assert (workdir.folder / name).read_text() == "precious"
        assert not (workdir.folder / "started").exists()
        assert {p.name for p in workdir.folder.iterdir()} == {name}
        (workdir.folder / name).unlink()


@test
def a_report_replaces_no_measurement(workdir):
    """-o and --json that name a run, a database, a span file or an input: one line, the file is unchanged"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--json", "report.json", "--", "sleep", "0.1")
    workdir.wattle("blocks", "run.sqlite", "--format", "json", "-o", "saved.json")
    workdir.wattle("run", "-q", "-o", "other.sqlite", "--", "true")
    workdir.tree(".", {"s.csv": "process_id,code_block_name,position,timestamp\n1,a,0,1.0\n1,a,1,2.0\n"})
    before = {path.name: path.read_bytes() for path in workdir.folder.iterdir()}
    for status, *words in ((1, "report", "run.sqlite", "-o", "run.sqlite"),
                           (1, "report", "run.sqlite", "--format", "json", "-o", "./other.sqlite"),
                           (1, "blocks", "run.sqlite", "-o", "run.sqlite"),
                           (1, "blocks", "--sub-tracking-file", "s.csv", "-o", "s.csv"),
                           (1, "compare", "a=run.sqlite", "b=saved.json", "-o", "saved.json"),
                           (1, "compare", "a=run.sqlite", "b=saved.json", "-o", "other.sqlite"),
                           (1, "export", "run.sqlite", "--format", "perfetto", "-o", "./run.sqlite", "--overwrite"),
                           (1, "export", "run.sqlite", "--format", "gpu_tracker", "-o", "run.sqlite", "--overwrite"),
                           (125, "run", "-o", "new.sqlite", "--json", "run.sqlite", "--", "touch", "started"),
                           (2, "bench", "--json", "run.sqlite", "--", "touch", "started")):
        done = workdir.wattle(*words)
        assert done.returncode == status, (words, done)
        assert len(done.stderr.splitlines()) == 1 and "choose another name" in done.stderr, (words, done.stderr)
        assert {path.name: path.read_bytes() for path in workdir.folder.iterdir()} == before, words
    assert workdir.wattle("report", "run.sqlite", "-o", "report.json").returncode == 0, "a report may be overwritten"


@test
def help_fits(workdir):
    """--help, before or after other options: lines of at most 100 columns; status 0"""
    commands = re.findall(r"^  (\w+) +", workdir.wattle("--help").stdout, re.MULTILINE)
    parts = re.findall(r"^  (cap \w+) +", workdir.wattle("cap", "--help").stdout, re.MULTILINE)
    assert len(commands) >= 14 and len(parts) == 5, (commands, parts)
    for name in commands + parts:
        done = workdir.wattle(*name.split(), "--help")
        long = [line for line in done.stdout.splitlines() if len(line) > 100 and not line.startswith("usage:")]
        assert done.returncode == 0 and not long and "\n\n\n" not in done.stdout, (name, long)
    assert workdir.wattle("run", "-i", "1s", "--help").stdout == workdir.wattle("run", "-h").stdout
    assert workdir.wattle("report", "x.sqlite", "--help").stdout == workdir.wattle("report", "--help").stdout
    assert workdir.wattle("run", "-q", "--label", "--help", "-o", "run.sqlite", "--", "echo", "-h").stdout == "-h\n"


@test
def overwrite_starts_a_new_file(workdir):
    """--overwrite: replaces a run by a new one with an id of its own"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    first = dict(workdir.rows("select key, value from run"))
    done = workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--", "false")
    assert done.returncode == 1
    assert dict(workdir.rows("select key, value from run")) != first
    report = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    assert report["run"]["command"] == ["false"] and report["run"]["segments"] == 1


@test
def overwrite_of_a_command_that_never_runs(workdir):
    """--overwrite and a command that does not exist: the old run is kept"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    before = (workdir.folder / "run.sqlite").read_bytes()
    assert workdir.wattle("run", "-q", "--overwrite", "-o", "run.sqlite", "--", "./no-such").returncode == 127
    assert (workdir.folder / "run.sqlite").read_bytes() == before


@test
def append_adds_a_segment(workdir):
    """--append: a further segment of the same run; durations and CPU times are sums"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", BURNER, "cpu", "0.3")
    first = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", BURNER, "cpu", "0.2")
    assert done.returncode == 0, done
    both = json.loads(workdir.wattle("report", "--format", "json", "run.sqlite").stdout)
    assert both["run"]["segments"] == 2 and first["run"]["segments"] == 1
    assert both["run"]["id"] == first["run"]["id"]
    gained = both["cpu"]["target_cpu_s"] - first["cpu"]["target_cpu_s"]
    assert 0.19 < gained < 0.3, (first["cpu"], both["cpu"])
    second_s = workdir.rows("select (end_ns - start_ns) * 1e-9 from segment order by id")[1][0]
    near(both["run"]["duration_s"], first["run"]["duration_s"] + second_s, absolute=1e-6)


@test
def append_to_other_file_is_refused(workdir):
    """--append to a file that is not a run: refused, the file is unchanged"""
    (workdir.folder / "run.sqlite").write_text("a letter")
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--", "touch", "started")
    assert done.returncode == 125 and "run.sqlite" in done.stderr, done
    assert (workdir.folder / "run.sqlite").read_text() == "a letter"
    assert not (workdir.folder / "started").exists()


@test
def config(workdir):
    """--config: sets options by name; the command line takes precedence"""
    (workdir.folder / "c.json").write_text(json.dumps({"interval": "50ms", "time-unit": "seconds", "quiet": True,
                                                    "meta": ["a=1", "b=2"], "output": "from-config.sqlite"}))
    done = workdir.wattle("run", "--config", "c.json", "--json", "-", "-i", "20ms", "--", "true")
    assert done.returncode == 0 and done.stderr == "", done
    report = json.loads(done.stdout)
    assert report["run"]["interval_s"] == 0.02, report["run"]
    assert report["run"]["labels"]["a"] == "1" and report["run"]["labels"]["b"] == "2", report["run"]
    assert (workdir.folder / "from-config.sqlite").exists()


@test
def wrong_configs(workdir):
    """config that is not JSON, not an object, or has an unknown name or an invalid value: named with its file"""
    for text, named in (("{", "c.json"), ("[]", "c.json"), ('{"intervall": "1s"}', "intervall"),
                        ('{"interval": 7}', "interval"), ('{"quiet": "yes"}', "quiet"),
                        ('{"interval": "x"}', "interval")):
        (workdir.folder / "c.json").write_text(text)
        done = workdir.wattle("run", "--config", "c.json", "--", "touch", "started")
        assert done.returncode == 125 and named in done.stderr, (text, done)
        assert not (workdir.folder / "started").exists()


@test
def interval(workdir):
    """--interval: determines the number of samples"""
    report, _ = workdir.report("-i", "20ms", "--", "sleep", "1")
    assert report["run"]["interval_s"] == 0.02
    ticks = report["run"]["duration_s"] / 0.02  # and a sample before the command, after its start, and after its end
    assert ticks - 1 <= report["run"]["samples"] + report["run"]["lost_samples"] <= ticks + 4, report["run"]


@test
def meta_and_label(workdir):
    """--meta and --label: stored with the run"""
    report, _ = workdir.report("--meta", "model=resnet", "--meta", "note=a=b, \"c\"", "--label", "first try", "--",
                               "true")
    assert report["run"]["labels"]["model"] == "resnet"
    assert report["run"]["labels"]["note"] == 'a=b, "c"'
    assert "first try" in report["run"]["labels"].values(), report["run"]
    done = workdir.wattle("run", "-q", "--append", "-o", "run.sqlite", "--meta", "label=second", "--", "true")
    assert done.returncode == 0, done
    text = workdir.wattle("report", "run.sqlite", "--format", "json").stdout
    assert text.count('"label"') == 1 and "first try" in text, text  # a key of an object occurs once


@test
def carbon(workdir):
    """--carbon-intensity and --pue: grams per kWh of all energy; null without an intensity"""
    report, _ = workdir.report("--", "sleep", "0.3")
    assert report["energy"]["carbon_g"] is None
    report, _ = workdir.report("--carbon-intensity", "400", "--pue", "1.5", "--", "sleep", "0.3")
    total_j, carbon_g = report["energy"]["total_j"], report["energy"]["carbon_g"]
    if total_j is not None:
        assert abs(carbon_g - total_j / 3.6e6 * 400 * 1.5) <= 1e-9 * carbon_g, report["energy"]


@test
def carbon_region(workdir):
    """--carbon-region: the country's intensity by each code and by name, with year and source, in JSON, text, metrics and the run file"""
    defined = (TESTS.parent / "src/metric/carbon.def").read_text()
    g_per_kwh, year = re.search(r'CARBON_REGION\("GB", "GBR", "United Kingdom", (.*), (\d+)\)', defined).groups()
    for country in ("GB", "gbr", "united kingdom", "UK"):
        energy = workdir.report("--carbon-region", country, "--pue", "2", "--", "sleep", "0.3")[0]["energy"]
        assert energy["carbon_region"] == "GB" and energy["carbon_year"] == int(year), energy
        assert energy["carbon_intensity_g_per_kwh"] == float(g_per_kwh) and "CC BY 4.0" in energy["carbon_source"], energy
        near(energy["carbon_g"], energy["total_j"] / 3.6e6 * float(g_per_kwh) * 2, 1e-9)
    text = workdir.wattle("report", "run.sqlite").stdout
    assert f"CO2e (GB {year})" in " ".join(text.split()), text
    assert workdir.rows("SELECT value FROM run WHERE key = 'carbon_region'") == [("GB",)]
    workdir.wattle("export", "run.sqlite", "--format", "openmetrics", "-o", "run.txt")
    metrics = (workdir.folder / "run.txt").read_text()
    assert f',region="GB"}} {float(g_per_kwh):g} ' in metrics, metrics[-3000:]
    assert re.search(r'wattle_run_carbon_grams\{[^}]*provenance="estimated",region="GB"\}', metrics) or energy["provenance"] != "estimated"
    workdir.wattle("report", "run.sqlite", "-o", "page.html")
    assert f"(GB {year})" in (workdir.folder / "page.html").read_text()



@test
def a_command_with_options_of_its_own(workdir):
    """the first word that is no option begins the command; -- is needed only before a dash"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "echo", "-q", "--", "-o", "x")
    assert done.stdout == "-q -- -o x\n", done
    assert not pathlib.Path(workdir.folder / "x").exists()


if __name__ == "__main__":
    main()
