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

LINES = {f"jsonl-{kind}" for kind in ("run", "segment", "device", "sample", "device-sample", "process-sample", "process", "event",
                                      "span", "user-metric")}
DOCUMENTS = {"run": {"report"}, "attach": {"report"}, "report": {"report", "job", "charts"}, "blocks": {"blocks", "tracking"},
             "compare": {"compare"}, "bench": {"bench"}, "export": LINES, "list": {"list"}, "model": {"model"}, "serve": {"now"},
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


def document(room, name, *words, status=0, **options):
    """A command's output, after validation."""
    done = room.wattle(*words, **options)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return check(name, done.stdout, words)


def machine(room, name):
    """The environment that selects a recorded machine, with the fake NVML where it has NVIDIA GPUs."""
    tree = TESTS / "machines" / name
    cards = tree / "nvml.cards"
    return {"WATTLE_SYSFS": str(tree / "sys"), "WATTLE_PROCFS": str(tree / "proc"), "WATTLE_STATE": str(room.folder / "state"),
            "WATTLE_ROCM_SMI": "/nonexistent", "WATTLE_NVML": str(FAKE_NVML) if cards.exists() else "/nonexistent",
            "WATTLE_FAKE_NVML": str(cards), "CUDA_VISIBLE_DEVICES": None}


def made_run(room, kind):
    path = room.folder / f"{kind}.sqlite"
    synthetic_runs.make(WATTLE, path, kind)
    return path


@test
def valid_schemas(room):
    """each schema is valid in draft 2020-12, and the installed file equals the program's output"""
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed")
    for name in names():
        jsonschema.Draft202012Validator.check_schema(schema(name))
        assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema", name
        printed = room.wattle("schema", name).stdout
        assert (BUILD / f"src/cli/{name}.json").read_text() == printed, name
    done = room.wattle("schema", "reprot")
    assert done.returncode == 2 and "report" in done.stderr, done


@test
def every_command(room):
    """each command whose help offers JSON has schemas for its documents, and each schema belongs to one command"""
    def words(*of):
        return re.findall(rf"^  ({' '.join([*of, ''])}\w+) +\w", room.wattle(*of, "--help").stdout, re.M)
    commands = [name for name in words() if name not in ("cap", "store")] + words("cap") + words("store")
    writers = {name for name in commands if re.search(r"^ +(--json\b|--format\b.*json)|/now\.json",
                                                      room.wattle(*name.split(), "--help").stdout, re.M)}
    assert writers == set(DOCUMENTS), writers ^ set(DOCUMENTS)
    assert set(names()) == set.union(*DOCUMENTS.values()), names()


@test
def json_lines(room):
    """each kind of line of JSON Lines"""
    seen = collections.Counter()
    room.wattle("run", "-q", "-o", "each.sqlite", "--per-process", "-i", "20ms", "--", "sleep", "0.3")
    for run in (*(made_run(room, kind) for kind in RUNS), "each.sqlite"):
        for line in room.wattle("export", run, "--format", "jsonl", "-o", "-").stdout.split("\n")[:-1]:
            name = "jsonl-" + json.loads(line)["type"].replace("_", "-")
            seen[name, run] += 1
            if seen[name, run] <= 20:
                check(name, line, run)
    assert {name for name, _ in seen} == LINES, seen


@test
def stored_runs(room):
    """reports and blocks of synthetic runs: GPUs, killed recorders, missing values, hostile names, no sample at all"""
    for kind in RUNS:
        path = made_run(room, kind)
        document(room, "report", "report", path, "--format", "json")
        document(room, "blocks", "blocks", path, "--format", "json")


@test
def charts(room):
    """the charts' data in the pages of a run and of one without energy"""
    for kind in ("training", "no_energy"):
        page = room.wattle("report", made_run(room, kind), "--format", "html", "-o", f"{kind}.html")
        assert page.returncode == 0, page.stderr
        (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>',
                             (room.folder / f"{kind}.html").read_text(), re.S)
        check("charts", data, kind)


@test
def stored_jobs(room):
    """reports of synthetic jobs of several ranks, and of one rank"""
    for kind in JOBS:
        folder = room.folder / kind
        synthetic_jobs.make(WATTLE, folder, kind)
        job = document(room, "job", "report", folder, "--format", "json")
        assert len(job["ranks"]) > 1, kind
    rank = document(room, "report", "report", sorted((room.folder / "plain").glob("*.sqlite"))[0], "--format", "json")
    assert rank["job"]["rank"] is not None, rank["job"]
    document(room, "compare", "compare", f"a={room.folder / 'plain'}", f"b={room.folder / 'dead'}", "--format", "json")


@test
def recorded_runs(room):
    """reports of runs on this machine, on one without sensors, with a failed command, and of a killed recorder"""
    for options, status in (((), 0), (("--label", "a", "--meta", "b=c"), 3)):
        room.wattle("run", "-q", "--overwrite", "--json", "run.json", *options, "--", "sh", "-c", f"exit {status}")
        check("report", (room.folder / "run.json").read_text())
    room.wattle("run", "-q", "-o", "blind.sqlite", "--json", "blind.json", "--", BURNER, "cpu", "0.2",
                env={"WATTLE_SYSFS": str(room.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"})
    check("report", (room.folder / "blind.json").read_text())
    recorder = room.start("run", "-q", "-o", "killed.sqlite", "-i", "20ms", "--", "sleep", "30")
    killed = room.folder / "killed.sqlite"
    wait_until(lambda: killed.exists() and room.rows("select count(*) > 3 from sample", "killed.sqlite")[0][0], "samples")
    command = next(pid for pid in children_of(recorder.pid) if command_of(pid).startswith("sleep"))
    recorder.kill()
    recorder.wait()
    end_process(command)
    assert document(room, "report", "report", killed, "--format", "json")["run"]["complete"] is False


@test
def comparisons(room):
    """comparisons of two and three runs, of saved blocks and of gpu_tracker's files, whose own blocks have a schema too"""
    a, b, c = (made_run(room, kind) for kind in ("training", "slower", "no_energy"))
    document(room, "compare", "compare", f"a={a}", f"b={b}", "--format", "json")
    document(room, "compare", "compare", f"a={a}", f"b={b}", f"c={c}", "--stat", "max", "--format", "json")
    chance = tracking_accuracy.seeded(7)
    tracking_accuracy.write_tracking(room.folder / "t.csv", tracking_accuracy.made_timepoints(chance, 60))
    tracking_accuracy.write_calls(room.folder / "s.csv", tracking_accuracy.made_rows(chance, 200))
    words = ("blocks", "--tracking-file", "t.csv", "--sub-tracking-file", "s.csv", "--format", "json")
    for name in ("x.json", "y.json"):
        (room.folder / name).write_text(json.dumps(document(room, "tracking", *words)))
    document(room, "compare", "compare", "x=x.json", "y=y.json", "--format", "json")


@test
def benches(room):
    """results of one and of two commands, with and without sensors"""
    empty = {"WATTLE_SYSFS": str(room.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"}
    for env, commands in ((None, ["true"]), (empty, ["true", ":::", "sleep", "0.05"])):
        words = ("bench", "--runs", "3", "--settle", "0", "--json", "-", "--", *commands)
        assert document(room, "bench", *words, env=env or {})["schema"] == "wattle-bench/1"


@test
def limits(room):
    """power limits: the list, one of them, no device at all, and a search for the best one"""
    nothing = {"WATTLE_SYSFS": str(room.tree("nothing", {})), "WATTLE_NVML": "/nonexistent",
               "WATTLE_STATE": str(room.folder / "state"), "WATTLE_HELPER": "off"}
    assert document(room, "cap-list", "cap", "list", "--json", env=nothing) == []
    for name in ("nvidia-server", "desktop-intel", "mi300-server"):
        document(room, "cap-list", "cap", "list", "--json", env=machine(room, name))
    tune_fixture.put(room, tune_fixture.CARD)
    document(room, "cap-get", "cap", "get", "gpu-0", "--json")
    found, _ = tune_fixture.tune(room, "--step", "step", "--", *tune_fixture.WORK)
    check("cap-tune", json.dumps(found))


@test
def a_limit_for_each(room):
    """a search for the best limit of each of two GPUs"""
    tune_fixture.put(room, tune_fixture.CARD, tune_fixture.CARD)
    found, _ = tune_fixture.tune(room, "--each", "--caps", 3, "--step", "step", "--", *tune_fixture.WORK, "--gpus", "0,1",
                              device="gpus")
    check("cap-tune-list", json.dumps(found))


@test
def sensors(room):
    """sensors of every recorded machine, as machines.py compares them, and of this one"""
    paths = sorted((TESTS / "machines").glob("*/sensors.json"))
    assert len(paths) > 20, paths
    for path in paths:
        check("sensors", path.read_text(), path)
    for name in ("nvidia-server", "none-readable"):
        check("sensors", room.wattle("sensors", "--json", env=machine(room, name)).stdout, name)
    check("sensors", room.wattle("sensors", "--json").stdout)


@test
def lists(room):
    """lists of runs: none, of a job, one whose file is damaged"""
    (room.folder / "empty").mkdir()
    assert document(room, "list", "list", "empty", "--json") == []
    synthetic_jobs.make(WATTLE, room.folder / "job", "plain")
    path = next((room.folder / "job").glob("*.sqlite"))
    (room.folder / "job/damaged.sqlite").write_bytes(path.read_bytes()[:3000])
    rows = document(room, "list", "list", "job", "--json")
    assert len(rows) > 2 and any(row["problem"] for row in rows), rows


@test
def live_view(room):
    """/now.json with and without its history, of a machine with GPUs, with a target, and of one without sensors"""
    blind = {"WATTLE_SYSFS": str(room.tree("nothing", {})), "WATTLE_NVML": "/nonexistent"}
    for env, options in ((machine(room, "nvidia-server") | {"WATTLE_PROCFS": None}, ()), (blind, ("--pid", "1"))):
        server = Server(room, "--interval", "200ms", *options, env=env)
        wait_until(lambda: server.now()["look"] > 2, "the third sample")
        assert "trail" not in check("now", server.ask("/now.json")[2])
        trail = check("now", server.ask("/now.json?trail=1")[2])["trail"]
        assert len(trail["unix_s"]) > 2 and ("target_w" in trail) == bool(options), trail.keys()
        server.process.terminate()
        server.process.wait()


@test
def store(room):
    """the status of a store and the list of its runs, without and with a run"""
    with fresh() as server:
        assert room.wattle("store", "init", server.url()).returncode == 0
        document(room, "store-status", "store", "status", server.url(), "--json")
        assert document(room, "list", "list", "--store", server.url(), "--json") == []
        assert room.wattle("push", "-q", made_run(room, "training"), server.url()).returncode == 0
        assert document(room, "store-status", "store", "status", server.url(), "--json")["runs"] == 1
        assert len(document(room, "list", "list", "--store", server.url(), "--json")) == 1


@test
def models(room):
    """the complexity of an ONNX file"""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise Skip("onnx for Python is not installed") from error
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [0.0] * 12)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, 4]), ("y", [2, 3]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    (room.folder / "m.onnx").write_bytes(model.SerializeToString())
    assert document(room, "model", "model", "m.onnx", "--format", "json")["parameters"] == 12


@test
def refusals(room):
    """document with a missing or additional key, another type, an unknown word or another version: refused"""
    report = document(room, "report", "report", made_run(room, "training"), "--format", "json")
    for key in report:
        assert errors("report", {k: v for k, v in report.items() if k != key}), key
    for path, value in ((("extra",), 1), (("energy", "extra"), 1), (("energy", "total_j"), "12"), (("run", "samples"), 1.5),
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
