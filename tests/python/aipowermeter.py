"""AIPowerMeter's interface: folders compared with the true values of simulated counters and meters."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "fakes"))
import expected_values
from aipowermeter_parts import DOOR, IMPORTS, ONE, lines_of, read, report_of
from harness import BUILD, Skip, main, near, test

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ZONES = ["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5", "--zone", "package-1=30"]
CARDS = "gpu\nname Card\npower_mw constant 300000\nutilization_percent 90 40\n" \
        "gpu\nname Card\npower_mw constant 100000\nutilization_percent 20 40\n"


class Machine:
    """A simulated machine for programs: packages that follow known functions, and GPUs."""

    def __init__(self, workdir, cards=""):
        self.workdir = workdir
        self.sysfs = workdir.folder / "sim"
        (workdir.folder / "cards").write_text(cards)
        simulator = workdir.start(self.sysfs, *ZONES, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        self.environment = {"WATTLE_SYSFS": str(self.sysfs), "CUDA_VISIBLE_DEVICES": None,
                            "WATTLE_NVML": str(FAKE_NVML) if cards else "/nowhere",
                            "WATTLE_FAKE_NVML": str(workdir.folder / "cards")}

    def python(self, *arguments, status=0):
        done = self.workdir.finish(self.workdir.start(*arguments, program=sys.executable, env=self.environment))
        assert done.returncode == status, done
        return done

    def true_j(self, from_ns, to_ns, *zones):
        what = expected_values.load(self.sysfs)
        return sum(expected_values.energy_j(what, zone, from_ns, to_ns) for zone in zones)


def domains_of(workdir):
    return {domain["domain"]: domain for domain in report_of(workdir)["energy"]["domains"]}


def check_energy(curve_j, true_j, *domains):
    """A curve's energy is that of its domains in the report, and this is the true one, within twice the stated error,
    which is half of a 95 % interval."""
    near(curve_j, sum(domain["energy_j"] for domain in domains), relative=0.01)
    near(sum(domain["energy_j"] for domain in domains), true_j,
         absolute=2 * sum(domain["error_j"] for domain in domains))


@test
def a_program_measures_itself(workdir):
    """start, work, stop: the curve's energy is the counters', the lines are AIPowerMeter's; cont adds a segment"""
    machine = Machine(workdir)
    machine.python("-c", ONE)
    machine.python("-c", ONE, "cont")
    segments = workdir.rows("select start_ns, end_ns from segment", "out/wattle.sqlite")
    true_j = sum(machine.true_j(*segment, "package-0", "package-1") for segment in segments)
    results = read(workdir)
    assert len(results.get_curve("intel_power")) == 2
    domains = domains_of(workdir)
    check_energy(results.total_("intel_power"), true_j, domains["package-0"], domains["package-1"])
    dram_j = sum(machine.true_j(*segment, "package-0/dram") for segment in segments)
    check_energy(results.total_("total_dram_power"), dram_j, domains["dram-0"])
    near(results.get_exp_duration()[0], report_of(workdir)["run"]["duration_s"], relative=0.01)
    near(results.get_summary()["cpu"]["absolute_cpu_time_per_pid"], 2 * 0.8, relative=0.2)
    assert results.total_("rel_intel_power") < results.total_("intel_power")

    lines = lines_of(workdir)
    assert lines.count("END OF RECORDING SEGMENT") == 2 and lines[-1] == "END OF RECORDING SEGMENT"
    assert set(lines[0]) == {"date", "metrics"} and "cpu" in lines[0]["metrics"]
    assert "psys_power" not in lines[0]["metrics"]["cpu"] and "gpu" not in lines[0]["metrics"]
    metadata = json.loads((workdir.folder / "out/metadata.json").read_text())
    assert metadata["description"] == "one" and metadata["provenance"]["package-0"] == "measured", metadata
    assert results.db_driver.get_description() == "one"
    machine.python("-c", ONE)
    assert len(read(workdir).get_curve("intel_power")) == 1, "without cont the folder starts empty"


@test
def behind_another_tool(workdir):
    """cont on a folder of AIPowerMeter's own: its segment stays before wattle's"""
    (workdir.folder / "out").mkdir()
    (workdir.folder / "out/power_metrics.json").write_text(
        '{"date": "2026-01-01 10:00:00.000000", "metrics": {"cpu": {"intel_power": 7, "psys_power": -1}}}\n'
        '{"date": "2026-01-01 10:00:02", "metrics": {"cpu": {"intel_power": 7, "psys_power": -1}}}\n'
        '"END OF RECORDING SEGMENT"\n')
    machine = Machine(workdir)
    machine.python("-c", ONE, "cont")
    curve = read(workdir).get_curve("intel_power")
    assert len(curve) == 2 and curve[0][0]["value"] == 7, curve
    assert lines_of(workdir).count("END OF RECORDING SEGMENT") == 2


@test
def figures_of_the_program(workdir):
    """wattle.metric: its figures are the experiment's, beside those that the program saves itself; spans are in the
    run"""
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
    done = workdir.finish(workdir.start("-c", program, program=sys.executable))
    assert done.returncode == 0, done
    results = read(workdir)
    assert results.max_("accuracy") == 0.7 and results.max_("test_accuracy") == 0.75
    accuracy, power = results.align("accuracy", "total_mem_use")
    assert len(accuracy) == len(power) > 3
    assert "epoch" in [block["name"] for block in report_of(workdir)["blocks"]]


@test
def gpus(workdir):
    """two GPUs: power of both, under the names of both generations, compared with the true power; a single sample of
    them"""
    machine = Machine(workdir, CARDS)
    machine.python("-c", ONE.replace("work(0.8)", "work(2)"))
    results = read(workdir)
    seconds = results.get_exp_duration()[0]
    domains = domains_of(workdir)
    gpus_j = domains["gpu-0"]["energy_j"] + domains["gpu-1"]["energy_j"]
    for name in ("nvidia_draw_absolute", "nvidia_power"):
        check_energy(results.total_(name), 400 * seconds, domains["gpu-0"], domains["gpu-1"])
    for name in ("per_gpu_power_draw", "per_gpu_nvidia_power"):
        check_energy(results.total_(name)["0"], 300 * seconds, domains["gpu-0"])
        check_energy(results.total_(name)["1"], 100 * seconds, domains["gpu-1"])
    near(results.total_power_draw(), results.total_("intel_power") + gpus_j, relative=0.01)
    assert all(domains[name]["error_j"] < 0.15 * domains[name]["energy_j"] for name in ("gpu-0", "gpu-1")), domains
    look = machine.python("-c", f"import json\nfrom {DOOR}.power_measure import gpu_power\n"
                          "print(json.dumps(gpu_power.get_nvidia_gpu_power()))").stdout
    near(json.loads(look)["per_gpu_power_draw"]["1"], 100, relative=0.3)


@test
def gpu_in_a_container(workdir):
    """pid namespace whose driver reports host pids, with the host's /proc: the own share is attributed correctly"""
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
        raise Skip("namespaces are not available here")
    cards = workdir.folder / "cards"
    (workdir.folder / "hostproc").mkdir()
    (workdir.folder / "us").write_text("4000000")
    cards.write_text("gpu\npower_mw constant 300000\nutilization_percent 90 40\n"
                     "process file:us C 60 1000000000\nprocess 1 C 30 500000000\n")
    inside = f"true; '{sys.executable}' program.py; true"
    outer = "mount --bind /proc hostproc && exec unshare --pid --fork --mount-proc sh -c \"$1\""
    (workdir.folder / "program.py").write_text("""
import os, time
with open("hostproc/self/status") as status:  # of the host's /proc, where we have the host's number
    number = next(line.split()[1] for line in status if line.startswith("NSpid:"))
with open("us.new", "w") as file:
    file.write(number)
os.rename("us.new", "us")
""" + ONE)
    done = workdir.finish(workdir.start("--mount", "sh", "-c", outer, "sh", inside, program="unshare", env={
        "WATTLE_PROCFS": str(workdir.folder / "hostproc"), "CUDA_VISIBLE_DEVICES": None,
        "WATTLE_NVML": str(FAKE_NVML), "WATTLE_FAKE_NVML": str(cards)}))
    assert done.returncode == 0, done
    gpu = lines_of(workdir)[-2]["metrics"]["gpu"]
    # The power of one line depends on the counter's updates; its share does not, and neither does the energy of all
    # lines.
    near(gpu["per_gpu_attributable_power"]["0"], gpu["per_gpu_power_draw"]["0"] * 60 / 90, relative=0.001)
    results = read(workdir)
    check_energy(results.total_("per_gpu_power_draw")["0"], 300 * results.get_exp_duration()[0],
                 domains_of(workdir)["gpu-0"])
    assert list(gpu["per_gpu_attributable_mem_use"]["0"].values()) == [1000000000], gpu
    assert list(gpu["per_gpu_per_pid_utilization_absolute"]["0"].values()) == [0.6], gpu


@test
def wall_meter(workdir):
    """wall meter's CSV that grows during the run: a domain of the run, both sockets together"""
    machine = Machine(workdir)
    program = ONE.replace('meta_data="one"', 'wall_meter="meter.csv"').replace("work(0.8)", """
with open("meter.csv", "a") as meter:
    for _ in range(40):
        meter.write(f"{time.time():.6f},true,230,120.0,30.0\\n")
        meter.flush()
        time.sleep(0.03)
""")
    (workdir.folder / "meter.csv").write_text("#timestamp,#frame_is_ok,#U1,#activepow1,#activepow2\n")
    machine.python("-c", program)
    results = read(workdir)
    frames = results.get_curve("#activepow1")[0]
    near(results.total_("#activepow1"), (120 + 30) * (frames[-1]["date"] - frames[0]["date"]), relative=0.01)
    assert "wall" in {domain["domain"] for domain in report_of(workdir)["energy"]["domains"]}
    assert (workdir.folder / "out/omegawatt.csv").read_text().splitlines()[1].startswith("#timestamp")


main()
