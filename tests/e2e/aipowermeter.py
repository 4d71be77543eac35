"""wattle export --format aipowermeter: folders from which AIPowerMeter's reader computes wattle's figures.

The reader's algorithm is repeated here: lines of JSON, a curve for each key, split where a segment ends, the
trapezoidal rule.
"""
import csv
import datetime
import json
import sys

from harness import BUILD, BURNER, main, near, run_first, test, wait_until

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
END = "END OF RECORDING SEGMENT"
CARDS = """
gpu
power_mw constant 300000
energy_period_ms 100
memory_used_bytes 2000000000
utilization_percent 90 40
process descendants C 60 1500000000
gpu
power_mw constant 8500
error nvmlDeviceGetTotalEnergyConsumption 3
"""


def simulate(workdir, *zones):
    simulator = workdir.start(workdir.folder / "sim", *zones, program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(workdir.folder / "sim")}


def record(workdir, *words, append=False, options=(), env=None):
    done = workdir.wattle("run", "-q", *(["--append"] if append else []), "-o", "run.sqlite", *options, "--", *words,
                          env=env or {})
    assert done.returncode == 0, done
    report = workdir.wattle("report", "run.sqlite", "--format", "json")
    return json.loads(report.stdout)


class Folder:
    """The reader's result: segments of rows, and the curves of a key: [[(seconds, value)]], those of several pids
    added."""

    def __init__(self, workdir, *options, name="out"):
        done = workdir.wattle("export", "run.sqlite", "--format", "aipowermeter", "-o", name, *options)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        self.path = workdir.folder / name
        self.segments = [[]]
        for line in (self.path / "power_metrics.json").read_text().splitlines():
            row = json.loads(line)
            if row == END:
                self.segments.append([])
            else:
                self.segments[-1].append(row)
        assert self.segments.pop() == [], "the last line ends a segment"
        self.rows = [row for segment in self.segments for row in segment]

    def curve(self, device, key, part=None):
        def value(row):
            found = row["metrics"].get(device, {}).get(key)
            if part is not None:
                return (found or {}).get(part)
            return sum(found.values()) if isinstance(found, dict) else found
        return [[(datetime.datetime.fromisoformat(row["date"]).timestamp(), value(row)) for row in segment
                 if value(row) is not None] for segment in self.segments]

    def total(self, device, key, part=None):
        return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for segment in self.curve(device, key, part)
                   for a, b in zip(segment, segment[1:]))

    def keys(self, device):
        return {key for row in self.rows for key in row["metrics"].get(device, {})}


def energies(report, kind, key="energy_j"):
    return sum(domain[key] for domain in report["energy"]["domains"] if domain["kind"] == kind)


def check_cpu_powers(folder, report, kinds):
    for kind, whole, target in kinds:
        near(folder.total("cpu", whole), energies(report, kind), relative=1e-4)
        if target is not None:
            near(folder.total("cpu", target), energies(report, kind, "target_j"), relative=1e-4, absolute=1e-3)


KINDS = [("package", "intel_power", "rel_intel_power"), ("core", "total_cpu_power", "per_process_cpu_power"),
         ("dram", "total_dram_power", "per_process_dram_power"), ("psys", "psys_power", None)]


@test
def energies_of_two_segments(workdir):
    """two segments, a counter of 30 ms: the trapezoidal rule over the rows gives wattle's energies, the target's too;
    none in the pause"""
    env = simulate(workdir, "--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/core=20", "--zone",
                   "package-0/dram=5",
                   "--zone", "psys=80", "--tick", "30000")
    record(workdir, BURNER, "cpu", "1", env=env)
    report = record(workdir, BURNER, "cpu", "0.6", append=True, env=env)
    folder = Folder(workdir)
    assert len(folder.segments) == report["run"]["segments"] == 2, report["run"]
    check_cpu_powers(folder, report, KINDS)
    times = [[time for time, _ in segment] for segment in folder.curve("cpu", "intel_power")]
    near(sum(segment[-1] - segment[0] for segment in times), report["run"]["duration_s"], absolute=1e-4)
    near(folder.total("cpu", "absolute_cpu_time_per_pid"), report["cpu"]["target_cpu_s"], absolute=0.05)
    assert all(0 <= value <= 1.001 for segment in folder.curve("cpu", "per_process_cpu_uses") for _, value in segment)
    for segment, (pid,) in zip(folder.segments, workdir.rows("select pid from segment order by id")):
        assert {*segment[0]["metrics"]["cpu"]["rel_intel_power"]} == {str(pid)}, (pid, segment[0])
    assert "gpu" not in folder.rows[0]["metrics"] and "uncore_power" not in folder.keys("cpu"), folder.rows[0]


@test
def a_counter_of_a_second(workdir):
    """counter updated once a second, sampled every 20 ms: the same energy, in rows at least a tenth of a second
    apart"""
    env = simulate(workdir, "--zone", "package-0=50", "--tick", "1000000")
    report = record(workdir, "sleep", "3.3", options=["-i", "20ms"], env=env)
    folder = Folder(workdir)
    check_cpu_powers(folder, report, KINDS[:1])
    times = [time for time, _ in folder.curve("cpu", "intel_power")[0]]
    assert all(b - a > 0.09 for a, b in zip(times[:-2], times[1:-1])), times


@test
def a_row_per_process(workdir):
    """--per-process: each pid gets its share by CPU time, the shares add up to the target's, and memory is its own"""
    env = simulate(workdir, "--zone", "package-0=50")
    script = f"'{BURNER}' cpu 0.9 & '{BURNER}' cpu 0.3 & '{BURNER}' memory 60000000 1.5; wait"
    report = record(workdir, "sh", "-c", script, options=["--per-process"], env=env)
    folder = Folder(workdir)
    check_cpu_powers(folder, report, KINDS[:1])
    pids = {pid for row in folder.rows for pid in row["metrics"]["cpu"]["absolute_cpu_time_per_pid"]}
    assert len(pids) >= 4, pids
    used_s = sorted(folder.total("cpu", "absolute_cpu_time_per_pid", pid) for pid in pids)
    near(used_s[-1], 0.9, absolute=0.2)
    near(used_s[-2], 0.3, absolute=0.2)
    largest = max(value for row in folder.rows for value in row["metrics"]["cpu"]["per_process_mem_use_abs"].values())
    near(largest, 61e6, absolute=4e6)


@test
def memory_of_the_target(workdir):
    """no --per-process: the root stands for all processes: PSS and USS once they were read, and shares of the memory in
    use"""
    record(workdir, BURNER, "memory", "80000000", "1.5")
    row = Folder(workdir).segments[0][-2]["metrics"]["cpu"]
    pid, = row["per_process_mem_use_abs"]
    near(row["per_process_mem_use_abs"][pid], 80e6, absolute=3e6)
    near(row["per_process_mem_use_uss"][pid], 80e6, absolute=3e6)
    near(row["per_process_mem_use_percent"][pid], row["per_process_mem_use_abs"][pid] / row["total_mem_use"],
         relative=1e-9)


@test
def gpus(workdir):
    """keys of both generations, for each GPU and in sum; all current keys are in every row, as the reader requires"""
    (workdir.folder / "cards").write_text(CARDS)
    report = record(workdir, "sleep", "2", env={"WATTLE_NVML": str(NVML),
                                                "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                                                "WATTLE_SYSFS": str(workdir.tree("empty", {})),
                                                "CUDA_VISIBLE_DEVICES": None})
    folder = Folder(workdir)
    energy_j = {gpu["index"]: gpu["energy_j"] for gpu in report["gpus"]}
    for whole, each in (("nvidia_power", "per_gpu_nvidia_power"), ("nvidia_draw_absolute", "per_gpu_power_draw")):
        near(folder.total("gpu", whole), sum(energy_j.values()), relative=1e-4)
        for index in energy_j:
            near(folder.total("gpu", each, str(index)), energy_j[index], relative=1e-4)
    near(folder.total("gpu", "per_gpu_attributable_power"), energies(report, "gpu", "target_j"), relative=1e-4)
    for row in folder.rows:
        assert row["metrics"]["gpu"].keys() >= {f"{part}nvidia_{what}" for part in ("", "per_gpu_")
                                                for what in ("power", "memory", "use_rate")}, row
    gpu = folder.rows[-1]["metrics"]["gpu"]
    assert (gpu["per_gpu_nvidia_memory"]["0"] == gpu["nvidia_memory"] == 2e9
            and gpu["per_gpu_nvidia_use_rate"]["0"] == 90), gpu
    pid = str(report["run"]["pid"])
    assert gpu["per_gpu_attributable_mem_use"]["0"] == {pid: 1.5e9}, gpu
    near(gpu["per_gpu_per_pid_utilization_absolute"]["0"][pid], 0.6, absolute=1e-9)
    near(gpu["per_gpu_absolute_percent_usage"]["0"], 0.6, absolute=1e-9)
    assert gpu["per_gpu_estimated_attributable_utilization"]["0"] == 1, gpu


@test
def gpu_of_unknown_users(workdir):
    """GPU without per-process use: its power, and no share, not even 0"""
    (workdir.folder / "cards").write_text("gpu\npower_mw constant 300000\nutilization_percent 90 40\n" + "".join(
        f"error nvmlDeviceGet{what} 3\n" for what in ("ProcessUtilization", "ComputeRunningProcesses",
                                                      "GraphicsRunningProcesses", "MPSComputeRunningProcesses")))
    report = record(workdir, "sleep", "1", env={"WATTLE_NVML": str(NVML),
                                                "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                                                "WATTLE_SYSFS": str(workdir.tree("empty", {})),
                                                "CUDA_VISIBLE_DEVICES": None})
    assert [one["attribution"] for one in report["energy"]["domains"] if one["kind"] == "gpu"] == ["none"], report
    for row in Folder(workdir).rows:
        gpu = row["metrics"]["gpu"]
        assert gpu["per_gpu_attributable_power"] == {} and gpu["per_gpu_power_draw"]["0"] > 250, gpu


@test
def a_wall_meter(workdir):
    """wall meter: its energy as wall_power and as omegawatt.csv, of which the reader skips the first line and drops the
    last one"""
    meter = ("import math, time\nprint('#timestamp,#frame_is_ok,#U1,#current1,#activepow1', flush=True)\n"
             "while True:\n t = time.time()\n print(f'{t:.9f},true,230,0.4,{90 + 20 * math.sin(t):.3f}', flush=True)\n"
             " time.sleep(0.04)\n")
    with open(workdir.folder / "meter.csv", "wb") as file:
        workdir.start("-c", meter, program=sys.executable, stdout=file, preexec_fn=run_first)
        wait_until(lambda: (workdir.folder / "meter.csv").read_text().count("\n") > 3, "the meter")
        report = record(workdir, "sleep", "2", options=["--wall-meter", "meter.csv"])
    folder = Folder(workdir)
    near(folder.total("cpu", "wall_power"), energies(report, "wall"), relative=1e-4)
    lines = list(csv.reader((folder.path / "omegawatt.csv").read_text().splitlines()[1:]))
    assert lines[0] == ["#timestamp", "#frame_is_ok", "#activepow1"] and lines[-1] == lines[-2], lines[-2:]
    points = [(float(time), float(watts)) for time, _, watts in lines[1:-1]]
    near(sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:])), energies(report, "wall"),
         relative=1e-4)


@test
def the_other_files(workdir):
    """metadata.json; results_exp.json with the program's metrics; model_summary.json as stored with the run"""
    spanner = BUILD / "tests/fakes/spanner"
    record(workdir, spanner, "nested", options=["--label", "my run", "--meta", 'model_summary={"total_params": 7}'])
    folder = Folder(workdir)
    metadata = json.loads((folder.path / "metadata.json").read_text())
    assert metadata["description"] == "my run" and datetime.datetime.fromisoformat(metadata["date"]), metadata
    result, = json.loads((folder.path / "results_exp.json").read_text())
    assert result.pop("end_training_epoch") and result == {"tokens": 128}, result
    assert json.loads((folder.path / "model_summary.json").read_text()) == {"total_params": 7}
    record(workdir, "true", options=["--overwrite"])
    assert {path.name for path in Folder(workdir, "--overwrite").path.iterdir()} == {"metadata.json",
                                                                                     "power_metrics.json"}


@test
def dates_are_local(workdir):
    """dates: local time without an offset, with microseconds, as Python's str(datetime)"""
    record(workdir, "true")
    workdir.environment["TZ"] = "UTC-5:30"
    east = Folder(workdir, name="east").rows[0]["date"]
    workdir.environment["TZ"] = "UTC0"
    utc = Folder(workdir, name="utc").rows[0]["date"]
    assert len(utc) == len("2026-01-31 12:34:56.123456"), utc
    ahead = datetime.datetime.fromisoformat(east) - datetime.datetime.fromisoformat(utc)
    assert ahead == datetime.timedelta(hours=5, minutes=30), (east, utc)


@test
def refusals(workdir):
    """non-empty folder, file, standard output, invalid model summary: refused with one line, and nothing is changed"""
    record(workdir, "true")
    (workdir.folder / "full").mkdir()
    (workdir.folder / "full/power_metrics.json").write_text("mine")
    (workdir.folder / "empty").mkdir()
    for out, words in (("full", "not empty"), ("run.sqlite", "run.sqlite"), ("no/such/folder", "no/such/folder"),
                       ("-", "folder"), ("empty", "model_summary")):
        if out == "empty":
            record(workdir, "true", options=["--overwrite", "--meta", "model_summary=no JSON"])
        done = workdir.wattle("export", "run.sqlite", "--format", "aipowermeter", "-o", out)
        assert done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1, (out, done)
    assert ((workdir.folder / "full/power_metrics.json").read_text() == "mine"
            and not list((workdir.folder / "empty").iterdir()))


if __name__ == "__main__":
    main()
