"""Every JSON document of the program against its schema (`wattle schema NAME`), with Debian's standard validator
(python3-jsonschema): stored runs and jobs, new runs, machines with and without sensors."""
import collections
import copy
import functools
import json
import re
import subprocess

import synthetic_jobs
import synthetic_runs
import tracking_accuracy
import tune_fixture
from harness import BUILD, BURNER, TESTS, WATTLE, Skip, children_of, command_of, end_process, main, test, wait_until
from postgres_server import fresh
from serving import Server

try:
    import jsonschema
except ImportError:
    jsonschema = None

LINES = {f"jsonl-{kind}" for kind in ("run", "segment", "device", "sample", "device-sample", "process-sample",
                                      "process", "event",
                                      "span", "user-metric")}
DOCUMENTS = {"run": {"report"}, "attach": {"report"}, "report": {"report", "job", "charts"},
             "blocks": {"blocks", "tracking"},
             "functions": {"functions"},
             "compare": {"compare"}, "bench": {"bench"}, "export": LINES, "list": {"list"}, "model": {"model"},
             "serve": {"now"},
             "sensors": {"sensors", "idle-baseline"},  # idle-baseline: sensors_idle.py
             "cap list": {"cap-list"}, "cap get": {"cap-get"}, "cap tune": {"cap-tune", "cap-tune-list"},
             "store status": {"store-status"}}
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
RUNS = ("training", "no_energy", "killed", "laptop", "hostile", "holes", "one_sample", "empty", "segments")
JOBS = ("plain", "no_energy", "dead", "hostile", "nested", "virtual_nodes")


def names():
    return subprocess.run([WATTLE, "schema"], capture_output=True, text=True, check=True).stdout.split()


@functools.cache
def schema(name):
    return json.loads(subprocess.run([WATTLE, "schema", name], capture_output=True, text=True, check=True).stdout)


def errors(name, document):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed")
    return [f"{error.json_path}: {error.message[:200]}" for error in
            jsonschema.Draft202012Validator(schema(name)).iter_errors(document)]


def check(name, text, what=""):
    document = json.loads(text)
    found = errors(name, document)
    assert not found, (name, what, len(found), found[:5])
    return document


def document(workdir, name, *words, status=0, **options):
    """A command's output, after validation."""
    done = workdir.wattle(*words, **options)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return check(name, done.stdout, words)


def machine(workdir, name):
    """The environment that selects a recorded machine, with the fake NVML where it has NVIDIA GPUs."""
    tree = TESTS / "machines" / name
    cards = tree / "nvml.cards"
    return {"WATTLE_SYSFS": str(tree / "sys"), "WATTLE_PROCFS": str(tree / "proc"),
            "WATTLE_STATE": str(workdir.folder / "state"),
            "WATTLE_ROCM_SMI": "/nonexistent", "WATTLE_NVML": str(FAKE_NVML) if cards.exists() else "/nonexistent",
            "WATTLE_FAKE_NVML": str(cards), "CUDA_VISIBLE_DEVICES": None}


def made_run(workdir, kind):
    path = workdir.folder / f"{kind}.sqlite"
    synthetic_runs.make(WATTLE, path, kind)
    return path


@test
def valid_schemas(workdir):
    """each schema is valid in draft 2020-12, and the installed file equals the program's output"""
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed")
    for name in names():
        jsonschema.Draft202012Validator.check_schema(schema(name))
        assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema", name
        printed = workdir.wattle("schema", name).stdout
        assert (BUILD / f"src/cli/{name}.json").read_text() == printed, name
    done = workdir.wattle("schema", "reprot")
    assert done.returncode == 2 and "report" in done.stderr, done


@test
def every_command(workdir):
    """each command whose help offers JSON has schemas for its documents, and each schema belongs to one command"""
    def words(*of):
        return re.findall(rf"^  ({' '.join([*of, ''])}\w+) +\w", workdir.wattle(*of, "--help").stdout, re.M)
    commands = [name for name in words() if name not in ("cap", "store")] + words("cap") + words("store")
    writers = {name for name in commands if re.search(r"^ +(--json\b|--format\b.*json)|/now\.json",
                                                      workdir.wattle(*name.split(), "--help").stdout, re.M)}
    assert writers == set(DOCUMENTS), writers ^ set(DOCUMENTS)
    assert set(names()) == set.union(*DOCUMENTS.values()), names()


@test
def json_lines(workdir):
    """each kind of line of JSON Lines"""
    seen = collections.Counter()
    workdir.wattle("run", "-q", "-o", "each.sqlite", "--per-process", "-i", "20ms", "--", "sleep", "0.3")
    for run in (*(made_run(workdir, kind) for kind in RUNS), "each.sqlite"):
        for line in workdir.wattle("export", run, "--format", "jsonl", "-o", "-").stdout.split("\n")[:-1]:
            name = "jsonl-" + json.loads(line)["type"].replace("_", "-")
            seen[name, run] += 1
            if seen[name, run] <= 20:
                check(name, line, run)
    assert {name for name, _ in seen} == LINES, seen


@test
def stored_runs(workdir):
    """reports and blocks of synthetic runs: GPUs, killed recorders, missing values, hostile names, no sample at all"""
    for kind in RUNS:
        path = made_run(workdir, kind)
        document(workdir, "report", "report", path, "--format", "json")
        document(workdir, "blocks", "blocks", path, "--format", "json")


@test
def charts(workdir):
    """the charts' data in the pages of a run and of one without energy"""
    for kind in ("training", "no_energy"):
        page = workdir.wattle("report", made_run(workdir, kind), "--format", "html", "-o", f"{kind}.html")
        assert page.returncode == 0, page.stderr
        (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>',
                             (workdir.folder / f"{kind}.html").read_text(), re.S)
        check("charts", data, kind)


@test
def stored_jobs(workdir):
    """reports of synthetic jobs of several ranks, and of one rank"""
    for kind in JOBS:
        folder = workdir.folder / kind
        synthetic_jobs.make(WATTLE, folder, kind)
        job = document(workdir, "job", "report", folder, "--format", "json")
        assert len(job["ranks"]) > 1, kind
    rank = document(workdir, "report", "report", sorted((workdir.folder / "plain").glob("*.sqlite"))[0], "--format",
                    "json")
    assert rank["job"]["rank"] is not None, rank["job"]
    document(workdir, "compare", "compare", f"a={workdir.folder / 'plain'}", f"b={workdir.folder / 'dead'}", "--format",
             "json")


@test
def recorded_runs(workdir):
    """reports of runs on this machine, on one without sensors, with a failed command, and of a killed recorder"""
    for options, status in (((), 0), (("--label", "a", "--meta", "b=c"), 3)):
        workdir.wattle("run", "-q", "--overwrite", "--json", "run.json", *options, "--", "sh", "-c", f"exit {status}")
        check("report", (workdir.folder / "run.json").read_text())
    workdir.wattle("run", "-q", "-o", "blind.sqlite", "--json", "blind.json", "--", BURNER, "cpu", "0.2",
                env={"WATTLE_SYSFS": str(workdir.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"})
    check("report", (workdir.folder / "blind.json").read_text())
    recorder = workdir.start("run", "-q", "-o", "killed.sqlite", "-i", "20ms", "--", "sleep", "30")
    killed = workdir.folder / "killed.sqlite"
    wait_until(lambda: killed.exists() and workdir.rows("select count(*) > 3 from sample", "killed.sqlite")[0][0],
               "samples")
    command = next(pid for pid in children_of(recorder.pid) if command_of(pid).startswith("sleep"))
    recorder.kill()
    recorder.wait()
    end_process(command)
    assert document(workdir, "report", "report", killed, "--format", "json")["run"]["complete"] is False


@test
def comparisons(workdir):
    """comparisons of two and three runs, of saved blocks and of gpu_tracker's files, whose own blocks have a schema
    too"""
    a, b, c = (made_run(workdir, kind) for kind in ("training", "slower", "no_energy"))
    document(workdir, "compare", "compare", f"a={a}", f"b={b}", "--format", "json")
    document(workdir, "compare", "compare", f"a={a}", f"b={b}", f"c={c}", "--stat", "max", "--format", "json")
    chance = tracking_accuracy.seeded(7)
    tracking_accuracy.write_tracking(workdir.folder / "t.csv", tracking_accuracy.made_timepoints(chance, 60))
    tracking_accuracy.write_calls(workdir.folder / "s.csv", tracking_accuracy.made_rows(chance, 200))
    words = ("blocks", "--tracking-file", "t.csv", "--sub-tracking-file", "s.csv", "--format", "json")
    for name in ("x.json", "y.json"):
        (workdir.folder / name).write_text(json.dumps(document(workdir, "tracking", *words)))
    document(workdir, "compare", "compare", "x=x.json", "y=y.json", "--format", "json")


@test
def benches(workdir):
    """results of one and of two commands, with and without sensors"""
    empty = {"WATTLE_SYSFS": str(workdir.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"}
    for env, commands in ((None, ["true"]), (empty, ["true", ":::", "sleep", "0.05"])):
        words = ("bench", "--runs", "3", "--settle", "0", "--json", "-", "--", *commands)
        assert document(workdir, "bench", *words, env=env or {})["schema"] == "wattle-bench/1"


@test
def limits(workdir):
    """power limits: the list, one of them, no device at all, and a search for the best one"""
    nothing = {"WATTLE_SYSFS": str(workdir.tree("nothing", {})), "WATTLE_NVML": "/nonexistent",
               "WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_HELPER": "off"}
    assert document(workdir, "cap-list", "cap", "list", "--json", env=nothing) == []
    for name in ("nvidia-server", "desktop-intel", "mi300-server"):
        document(workdir, "cap-list", "cap", "list", "--json", env=machine(workdir, name))
    tune_fixture.put(workdir, tune_fixture.CARD)
    document(workdir, "cap-get", "cap", "get", "gpu-0", "--json")
    found, _ = tune_fixture.tune(workdir, "--step", "step", "--", *tune_fixture.WORK)
    check("cap-tune", json.dumps(found))


@test
def a_limit_for_each(workdir):
    """a search for the best limit of each of two GPUs"""
    tune_fixture.put(workdir, tune_fixture.CARD, tune_fixture.CARD)
    found, _ = tune_fixture.tune(workdir, "--each", "--caps", 3, "--step", "step", "--", *tune_fixture.WORK, "--gpus",
                                 "0,1",
                                 device="gpus")
    check("cap-tune-list", json.dumps(found))


@test
def sensors(workdir):
    """sensors of every recorded machine, as machines.py compares them, and of this one"""
    paths = sorted((TESTS / "machines").glob("*/sensors.json"))
    assert len(paths) > 20, paths
    for path in paths:
        check("sensors", path.read_text(), path)
    for name in ("nvidia-server", "none-readable"):
        check("sensors", workdir.wattle("sensors", "--json", env=machine(workdir, name)).stdout, name)
    check("sensors", workdir.wattle("sensors", "--json").stdout)


@test
def lists(workdir):
    """lists of runs: none, of a job, one whose file is damaged"""
    (workdir.folder / "empty").mkdir()
    assert document(workdir, "list", "list", "empty", "--json") == []
    synthetic_jobs.make(WATTLE, workdir.folder / "job", "plain")
    path = next((workdir.folder / "job").glob("*.sqlite"))
    (workdir.folder / "job/damaged.sqlite").write_bytes(path.read_bytes()[:3000])
    rows = document(workdir, "list", "list", "job", "--json")
    assert len(rows) > 2 and any(row["problem"] for row in rows), rows


@test
def live_view(workdir):
    """/now.json with and without its history, of a machine with GPUs, with a target, and of one without sensors"""
    blind = {"WATTLE_SYSFS": str(workdir.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"}
    for env, options in ((machine(workdir, "nvidia-server") | {"WATTLE_PROCFS": None}, ()), (blind, ("--pid", "1"))):
        server = Server(workdir, "--interval", "200ms", *options, env=env)
        wait_until(lambda: server.now()["sample"] > 2, "the third sample")
        assert "history" not in check("now", server.ask("/now.json")[2])
        history = check("now", server.ask("/now.json?history=1")[2])["history"]
        assert len(history["unix_s"]) > 2 and ("target_w" in history) == bool(options), history.keys()
        server.process.terminate()
        server.process.wait()


@test
def store(workdir):
    """the status of a store and the list of its runs, without and with a run"""
    with fresh() as server:
        assert workdir.wattle("store", "init", server.url()).returncode == 0
        document(workdir, "store-status", "store", "status", server.url(), "--json")
        assert document(workdir, "list", "list", "--store", server.url(), "--json") == []
        assert workdir.wattle("push", "-q", made_run(workdir, "training"), server.url()).returncode == 0
        assert document(workdir, "store-status", "store", "status", server.url(), "--json")["runs"] == 1
        assert len(document(workdir, "list", "list", "--store", server.url(), "--json")) == 1


@test
def functions(workdir):
    """functions of a profiled run, with and without energy"""
    for options in ((), ("--call-graph", "none")):
        done = workdir.wattle("run", "-q", "--overwrite", "-o", "f.sqlite", "--profile=997", *options, "--", BURNER, "cpu",
                              "0.3")
        if done.returncode == 125 and "perf_event_open" in done.stderr:
            raise Skip(done.stderr.strip())
        assert document(workdir, "functions", "functions", "f.sqlite", "--format", "json")["functions"], done.stderr


@test
def models(workdir):
    """the complexity of an ONNX file"""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise Skip("onnx for Python is not installed") from error
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [0.0] * 12)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name,
              shape in (("x", [2, 4]), ("y", [2, 3]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    (workdir.folder / "m.onnx").write_bytes(model.SerializeToString())
    assert document(workdir, "model", "model", "m.onnx", "--format", "json")["parameters"] == 12


@test
def refusals(workdir):
    """document with a missing or additional key, another type, an unknown word or another version: refused"""
    report = document(workdir, "report", "report", made_run(workdir, "training"), "--format", "json")
    for key in report:
        assert errors("report", {k: v for k, v in report.items() if k != key}), key
    for path, value in ((("extra",), 1), (("energy", "extra"), 1), (("energy", "total_j"), "12"),
                        (("run", "samples"), 1.5),
                        (("energy", "provenance"), "guessed"), (("schema",), "wattle-report/2"), (("schema",), None),
                        (("energy", "domains", 0, "kind"), "engine"), (("energy", "domains", 0, "in_total"), None),
                        (("blocks",), {}), (("blocks", 0, "energy", "method"), "guessed"), (("run",), None),
                        (("energy", "ledger"), None), (("warnings",), [1])):
        wrong = copy.deepcopy(report)
        *outer, last = path
        place = functools.reduce(lambda value, key: value[key], outer, wrong)
        place[last] = value
        assert errors("report", wrong), (path, value)
    assert errors("list", {}) and errors("now", report) and not errors("list", [])


if __name__ == "__main__":
    main()
