"""gpu_tracker as released and AIPowerMeter from its source beside wattle's modules: the same script, and readers of each other's files.

AIPowerMeter is in no package index: WATTLE_AIPOWERMETER names the folder of its source. It reads /sys/class/powercap only, so that row
needs root, and has the simulated machine of bench/peers in a mount namespace of its own."""
import json
import os
import subprocess
import sys

from harness import BUILD, TESTS, Skip, main, near, test, wait_until

sys.path.insert(0, str(TESTS.parent / "bench/peers"))
import machine  # noqa: E402

PACKAGE = str(BUILD / "python")  # without the folders of tests, which have modules of the same names
BLOCKS, CPU_S, SLEEP_S, MEMORY_BYTES = 3, 0.5, 0.4, 200_000_000
GPU_TRACKER = f"""
import sys, time
import {{module}} as gput
def work():
    end = time.process_time() + {CPU_S}
    while time.process_time() < end:
        pass
with gput.Tracker(sleep_time=0.2, tracking_file="tracking.csv", disable_logs=True) as tracker:
    for _ in range({BLOCKS}):
        with gput.SubTracker("work", sub_tracking_file="sub.csv"):
            work()
        with gput.SubTracker("wait", sub_tracking_file="sub.csv"):
            time.sleep({SLEEP_S})
    memory = bytearray({MEMORY_BYTES})
    time.sleep(1)
import json
print(json.dumps(tracker.to_json()))
"""
GPU_TRACKER_READER = """
import json, sys
import {module} as gput
print(json.dumps(gput.SubTrackingAnalyzer("tracking.csv", "sub.csv").sub_tracking_results().to_json()))
"""
PERIOD_S, AIPOWERMETER_CPU_S = 0.5, 2
AIPOWERMETER = f"""
import time
from {{module}}.power_measure import experiment, parsers
driver = parsers.JsonParser("out")
meter = experiment.Experiment(driver)
process, queue = meter.measure_yourself(period={PERIOD_S})
time.sleep(1)
end = time.process_time() + {AIPOWERMETER_CPU_S}
while time.process_time() < end:
    pass
time.sleep(1)
queue.put(experiment.STOP_MESSAGE)
process.join()
"""
AIPOWERMETER_READER = """
import json
from {module}.power_measure import experiment, parsers
results = experiment.ExpResults(parsers.JsonParser("out"))
print(json.dumps({{name: results.total_(name) for name in ("rel_intel_power", "intel_power", "per_process_cpu_uses")}}))
"""


def run(workdir, where, script, module, **environment):
    """The last line that the script prints, in the folder `where`."""
    folder = workdir.folder / where
    folder.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", script.format(module=module)], cwd=folder, capture_output=True, text=True, timeout=120,
                          env={**workdir.environment, "PYTHONPATH": PACKAGE, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1:]


def figures(tree, path=()):
    """{path: number} of a tree; names of rows are their `name`, where they have one."""
    if isinstance(tree, dict):
        return {key: value for name, part in tree.items() for key, value in figures(part, (*path, name)).items()}
    if isinstance(tree, list):
        return {key: value for index, part in enumerate(tree)
                for key, value in figures(part, (*path, part.get("name", index) if isinstance(part, dict) else index)).items()}
    return {path: tree}


def check_equal(ours, theirs):
    """Within 1e-12, and both unknown where one is."""
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    for path, value in theirs.items():
        if isinstance(value, float) and value == value:
            near(ours[path], value, relative=1e-12, absolute=1e-12)
        else:
            assert ours[path] == value or value != value and ours[path] != ours[path], (path, ours[path], value)


@test
def gpu_tracker(workdir):
    """gpu_tracker and wattle's module, the same script: the same fields and blocks, equal analyses of the files of either"""
    modules = {"original": "gpu_tracker", "wattle": "wattle.compat.gpu_tracker"}
    results = {name: figures(json.loads(run(workdir, name, GPU_TRACKER, module)[0])) for name, module in modules.items()}
    assert results["wattle"].keys() == results["original"].keys(), results["wattle"].keys() ^ results["original"].keys()
    for name, found in results.items():
        peak_gb = found["max_ram", "main", "total_rss"]
        cpu_s = found["cpu_utilization", "main", "mean_sum_percent"] / 100 * found["compute_time", "time"] * 3600
        print(f"# {name}: peak {peak_gb:.3f} GB, {cpu_s:.2f} s of CPU time")
        assert peak_gb > MEMORY_BYTES / 1e9, peak_gb
    for folder in modules:
        theirs, ours = (figures(json.loads(run(workdir, folder, GPU_TRACKER_READER, module)[0])) for module in modules.values())
        check_equal(ours, theirs)
        times = {name: next(value for path, value in ours.items() if name in path and path[-2:] == ("compute_time", "mean"))
                 for name in ("work", "wait")}
        print(f"# {folder}: a block of {CPU_S} s of CPU time lasts {times['work']:.3f} s, one that sleeps {SLEEP_S} s {times['wait']:.4f} s")
        near(times["wait"], SLEEP_S, relative=0.1)
        assert times["work"] >= CPU_S, times
    near(results["wattle"]["cpu_utilization", "main", "mean_sum_percent"] / 100 * results["wattle"]["compute_time", "time"] * 3600,
         BLOCKS * CPU_S, absolute=0.4)


@test
def aipowermeter(workdir):
    """AIPowerMeter and wattle's module, the same script on one simulated machine: equal readings of the files of either"""
    source = os.environ.get("WATTLE_AIPOWERMETER")
    if source is None:
        raise Skip("WATTLE_AIPOWERMETER is not set: name the folder of AIPowerMeter's source")
    modules = {"original": "deep_learning_power_measure", "wattle": "wattle.compat.deep_learning_power_measure"}
    path = {"PYTHONPATH": f"{PACKAGE}:{source}", "MPLCONFIGDIR": str(workdir.folder)}
    true_j = AIPOWERMETER_CPU_S * machine.WATTS_PER_CPU
    for folder, module in modules.items():
        with machine.Machine(workdir.folder / "machine", BUILD) as simulated:
            run(workdir, folder, AIPOWERMETER, module, **{**simulated.environment(), **path})
        wait_until(lambda: (workdir.folder / folder / "out").is_dir(), "results")
        theirs, ours = (json.loads(run(workdir, folder, AIPOWERMETER_READER, module, **path)[0]) for module in modules.values())
        print(f"# {folder}: {ours}")
        check_equal(ours, theirs)
    near(ours["rel_intel_power"], true_j, relative=0.1)  # of wattle's module, the last one


if __name__ == "__main__":
    if os.environ.get("WATTLE_AIPOWERMETER"):
        failure = machine.in_own_namespaces()
        if failure is not None:
            print(f"1..0 # SKIP {failure}")
            sys.exit(0)
    main()
