"""AIPowerMeter's door, recording: folders against what counters really gave, ends of all kinds, command lines."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "fakes"))
import truth
from harness import BUILD, BURNER, main, near, test, wait_until

from wattle.compat.deep_learning_power_measure.power_measure import _summary, experiment, parsers

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ZONES = ["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5", "--zone", "package-1=30"]
CARDS = "gpu\nname Card\npower_mw constant 300000\nutilization_percent 90 40\n" \
        "gpu\nname Card\npower_mw constant 100000\nutilization_percent 20 40\n"
DOOR = "wattle.compat.deep_learning_power_measure"
IMPORTS = f"""
import os, signal, sys, time
from {DOOR}.power_measure import experiment, parsers
def work(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass
"""
ONE = IMPORTS + """
driver = parsers.JsonParser("out", meta_data="one")
p, q = experiment.Experiment(driver, cont="cont" in sys.argv).measure_yourself(period=0.1)
assert p.is_alive() and p.pid != os.getpid() and p.exitcode is None, p
work(0.8)
q.put(experiment.STOP_MESSAGE)
assert not p.is_alive() and p.exitcode == 0, q.get()
assert q.get(timeout=1) == (None, None)
"""


class Machine:
    """A simulated machine for programs: packages that follow known functions, and GPUs."""

    def __init__(self, room, cards=""):
        self.room = room
        self.sysfs = room.folder / "sim"
        (room.folder / "cards").write_text(cards)
        simulator = room.start(self.sysfs, *ZONES, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        self.environment = {"WATTLE_SYSFS": str(self.sysfs), "CUDA_VISIBLE_DEVICES": None,
                            "WATTLE_NVML": str(FAKE_NVML) if cards else "/nowhere",
                            "WATTLE_FAKE_NVML": str(room.folder / "cards")}

    def python(self, *arguments, status=0):
        done = self.room.finish(self.room.start(*arguments, program=sys.executable, env=self.environment))
        assert done.returncode == status, done
        return done

    def true_j(self, from_ns, to_ns, *zones):
        what = truth.load(self.sysfs)
        return sum(truth.energy_j(what, zone, from_ns, to_ns) for zone in zones)


def read(room, folder="out"):
    return experiment.ExpResults(parsers.JsonParser(room.folder / folder))


def report_of(room, folder="out"):
    done = room.wattle("report", "--format", "json", room.folder / folder / "wattle.sqlite")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def lines_of(room):
    """power_metrics.json as AIPowerMeter reads it: with nothing but the json module."""
    return [json.loads(line) for line in (room.folder / "out/power_metrics.json").read_text().splitlines()]


@test
def a_program_measures_itself(room):
    """start, work, stop: the curve's joules are the counters', the lines AIPowerMeter's; cont adds a segment"""
    machine = Machine(room)
    machine.python("-c", ONE)
    machine.python("-c", ONE, "cont")
    segments = room.rows("select start_ns, end_ns from segment", "out/wattle.sqlite")
    true_j = sum(machine.true_j(*segment, "package-0", "package-1") for segment in segments)
    results = read(room)
    assert len(results.get_curve("intel_power")) == 2
    near(results.total_("intel_power"), true_j, relative=0.03)
    near(results.total_("total_dram_power"), 5 * results.get_exp_duration()[0], relative=0.05)
    domains = {domain["domain"]: domain["energy_j"] for domain in report_of(room)["energy"]["domains"]}
    near(results.total_("intel_power"), domains["package-0"] + domains["package-1"], relative=0.01)
    near(results.get_exp_duration()[0], report_of(room)["run"]["duration_s"], relative=0.01)
    near(results.get_summary()["cpu"]["absolute_cpu_time_per_pid"], 2 * 0.8, relative=0.2)
    assert results.total_("rel_intel_power") < results.total_("intel_power")

    lines = lines_of(room)
    assert lines.count("END OF RECORDING SEGMENT") == 2 and lines[-1] == "END OF RECORDING SEGMENT"
    assert set(lines[0]) == {"date", "metrics"} and "cpu" in lines[0]["metrics"]
    assert "psys_power" not in lines[0]["metrics"]["cpu"] and "gpu" not in lines[0]["metrics"]
    metadata = json.loads((room.folder / "out/metadata.json").read_text())
    assert metadata["description"] == "one" and metadata["provenance"]["package-0"] == "measured", metadata
    assert results.db_driver.get_description() == "one"
    machine.python("-c", ONE)
    assert len(read(room).get_curve("intel_power")) == 1, "without cont the folder begins anew"


@test
def lists_of_pids(room):
    """two burners and their children together, one of which outlives the other; pids that are gone are left out"""
    gone = room.start("0", program="sleep")
    gone.wait()
    first, second = room.start("cpu", "0.3", program=BURNER), room.start("cpu", "0.9", program=BURNER)
    driver = parsers.JsonParser(room.folder / "out")
    process, queue = experiment.Experiment(driver).measure_from_pid_list([first.pid, second.pid, gone.pid], period=0.1)
    process.join(30)
    assert process.exitcode == 0, queue.get()
    near(read(room).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 1.2, absolute=0.12)
    sources = json.loads((room.folder / "out/metadata.json").read_text())["provenance"].values()
    assert ("ESTIMATED" in (read(room).db_driver.get_description() or "")) == ("estimated" in sources), sources
    for wrong, text in (([gone.pid], "ended"), ([], "empty"), (["x"], "is no process")):
        try:
            experiment.Experiment(driver).measure_from_pid_list(wrong)
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{wrong} was accepted")


@test
def wrong_periods(room):
    """a period of nothing, of an hour and more, or of a text is refused before anything starts"""
    measured = experiment.Experiment(parsers.JsonParser(room.folder / "out"))
    for period in (0, -1, 1e9, "2", None, True):
        try:
            measured.measure_yourself(period=period)
        except (ValueError, TypeError) as error:
            assert "period" in str(error), error
        else:
            raise AssertionError(f"period={period!r} was accepted")


@test
def ends_of_programs(room):
    """killed, ended by an exception, or just ended: what was recorded is there for who reads the folder"""
    begin = IMPORTS + """
experiment.Experiment(parsers.JsonParser(sys.argv[1])).measure_yourself(period=0.05)
work(0.5)
"""
    for name, end, status in (("killed", "os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
                              ("raised", "raise RuntimeError('no')", 1), ("ended", "", 0)):
        done = room.finish(room.start("-c", begin + end, name, program=sys.executable))
        assert done.returncode == status, done
        results = read(room, name)
        assert results.get_exp_duration()[0] > 0.3
        near(results.get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.5, absolute=0.2)
        assert (room.folder / name / "power_metrics.json").exists()


@test
def forked_children(room):
    """children are measured with their parent, and a child that ends does not end the parent's recording"""
    program = IMPORTS + """
import multiprocessing
p, q = experiment.Experiment(parsers.JsonParser("out")).measure_yourself(period=0.1)
if os.fork() == 0:
    q.put(experiment.STOP_MESSAGE)
    sys.exit(0)
os.wait()
worker = multiprocessing.get_context("fork").Process(target=work, args=(0.5,))
worker.start()
worker.join()
assert p.is_alive()
q.put(experiment.STOP_MESSAGE)
"""
    done = room.finish(room.start("-c", program, program=sys.executable))
    assert done.returncode == 0, done
    near(read(room).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.5, absolute=0.2)


@test
def behind_another_tool(room):
    """cont on a folder of AIPowerMeter's own: its segment stays in front of ours"""
    (room.folder / "out").mkdir()
    (room.folder / "out/power_metrics.json").write_text(
        '{"date": "2026-01-01 10:00:00.000000", "metrics": {"cpu": {"intel_power": 7, "psys_power": -1}}}\n'
        '{"date": "2026-01-01 10:00:02", "metrics": {"cpu": {"intel_power": 7, "psys_power": -1}}}\n'
        '"END OF RECORDING SEGMENT"\n')
    machine = Machine(room)
    machine.python("-c", ONE, "cont")
    curve = read(room).get_curve("intel_power")
    assert len(curve) == 2 and curve[0][0]["value"] == 7, curve
    assert lines_of(room).count("END OF RECORDING SEGMENT") == 2


@test
def figures_of_the_program(room):
    """wattle.metric's figures are the experiment's, beside those that the program saves itself; spans are in the run"""
    program = IMPORTS + """
import wattle
driver = parsers.JsonParser("out")
p, q = experiment.Experiment(driver).measure_yourself(period=0.1)
for epoch in range(3):
    with wattle.span("epoch"):
        work(0.1)
    wattle.metric("accuracy", 0.5 + epoch / 10)
driver.save_exp_metrics({"test_accuracy": 0.75})
q.put(experiment.STOP_MESSAGE)
"""
    done = room.finish(room.start("-c", program, program=sys.executable))
    assert done.returncode == 0, done
    results = read(room)
    assert results.max_("accuracy") == 0.7 and results.max_("test_accuracy") == 0.75
    accuracy, power = results.align("accuracy", "total_mem_use")
    assert len(accuracy) == len(power) > 3
    assert "epoch" in [block["name"] for block in report_of(room)["blocks"]]


@test
def gpus(room):
    """two GPUs: watts of both, under the names of both generations, against what they drew; a single look at them"""
    machine = Machine(room, CARDS)
    machine.python("-c", ONE.replace("work(0.8)", "work(2)"))
    results = read(room)
    seconds = results.get_exp_duration()[0]
    for name in ("nvidia_draw_absolute", "nvidia_power"):
        near(results.total_(name), 400 * seconds, relative=0.15)
    for name in ("per_gpu_power_draw", "per_gpu_nvidia_power"):
        near(results.total_(name)["0"], 300 * seconds, relative=0.15)
    near(results.total_power_draw(), results.total_("intel_power") + 400 * seconds, relative=0.15)
    look = machine.python("-c", f"import json\nfrom {DOOR}.power_measure import gpu_power\n"
                          "print(json.dumps(gpu_power.get_nvidia_gpu_power()))").stdout
    near(json.loads(look)["per_gpu_power_draw"]["1"], 100, relative=0.3)


@test
def wall_meter(room):
    """a wall meter's CSV that grows meanwhile: a domain of the run, both sockets together"""
    machine = Machine(room)
    program = ONE.replace('meta_data="one"', 'wall_meter="meter.csv"').replace("work(0.8)", """
with open("meter.csv", "a") as meter:
    for _ in range(40):
        meter.write(f"{time.time():.6f},true,230,120.0,30.0\\n")
        meter.flush()
        time.sleep(0.03)
""")
    (room.folder / "meter.csv").write_text("#timestamp,#frame_is_ok,#U1,#activepow1,#activepow2\n")
    machine.python("-c", program)
    results = read(room)
    frames = results.get_curve("#activepow1")[0]
    near(results.total_("#activepow1"), (120 + 30) * (frames[-1]["date"] - frames[0]["date"]), relative=0.01)
    assert "wall" in {domain["domain"] for domain in report_of(room)["energy"]["domains"]}
    assert (room.folder / "out/omegawatt.csv").read_text().splitlines()[1].startswith("#timestamp")


@test
def the_whole_machine(room):
    """monitor_machine records all processes until it is told to end"""
    program = IMPORTS + "experiment.Experiment(parsers.JsonParser('out')).monitor_machine(period=0.1)\nprint('ended')\n"
    burner = room.start("cpu", "60", program=BURNER)
    monitor = room.start("-c", program, program=sys.executable)
    wait_until(lambda: (room.folder / "out/wattle.sqlite").exists() and
               len(room.rows("select t_ns from sample", "out/wattle.sqlite")) > 3, "samples")
    monitor.send_signal(signal.SIGTERM)
    done = room.finish(monitor)
    assert done.returncode == 0 and done.stdout == "ended\n", done
    uses = [line["metrics"]["cpu"]["per_process_cpu_uses"] for line in lines_of(room) if isinstance(line, dict)]
    assert any(str(burner.pid) in one for one in uses), uses


@test
def command_lines(room):
    """--cmd as a shell takes it, its status, --cont, the reader and its curves"""
    def run(*arguments, module=DOOR, status=0):
        done = room.finish(room.start("-m", module, "--output_folder", "out", *arguments, program=sys.executable))
        assert done.returncode == status, done
        return done
    burn = f"'{BURNER}' cpu 0.3 > 'a file' && test -s 'a file'"
    assert "EXPERIMENT SUMMARY" in run("--cmd", burn).stdout
    near(read(room).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.3, absolute=0.06)
    run("--cmd", f"{burn}; exit 3", "--cont", "True", status=3)
    assert len(read(room).get_curve("total_mem_use")) == 2
    run("--cmd", burn, "--cont", "False")
    assert len(read(room).get_curve("total_mem_use")) == 1
    run("--curve", "total_mem_use,per_process_cpu_uses", "--saveto", "a.png", module=f"{DOOR}.power_measure.experiment")
    assert (room.folder / "a.png").stat().st_size > 1000
    assert "no metric 'nothing'" in run("--curve", "nothing", status=125).stderr
    assert "neither True nor False" in run("--cmd", "true", "--cont", "perhaps", status=2).stderr
    assert "no folder" in room.finish(room.start("-m", DOOR, "--output_folder", "none", program=sys.executable)).stderr


@test
def model_card(room):
    """a torch model's parameters and multiply-adds are kept with the run and in the summary"""
    import torch
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 1, 3))
    driver = parsers.JsonParser(room.folder / "out")
    measured = experiment.Experiment(driver, model=model, input_size=(1, 3, 128, 128))
    _, queue = measured.measure_yourself(period=0.1)
    model(torch.zeros(1, 3, 128, 128))
    queue.put(experiment.STOP_MESSAGE)
    card = json.loads((room.folder / "out/model_summary.json").read_text())
    # AIPowerMeter's documentation: 28 parameters and 444528 mac operations
    assert card["total_params"] == 28 and card["total_mult_adds"] == 126 * 126 * 28, card
    assert card["multiply_adds"] == 126 * 126 * 27, card
    assert "28 parameters and  444528 mac operations" in "\n".join(_summary.lines(experiment.ExpResults(driver)))
    assert experiment.ExpResults(driver).model_card == card
    try:
        experiment.Experiment(driver, model=model)
    except ValueError as error:
        assert "input_size" in str(error)
    else:
        raise AssertionError("a model without input_size was accepted")


main()
