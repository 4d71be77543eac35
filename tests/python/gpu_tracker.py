"""gpu_tracker's Tracker on wattle: its states, errors, fields and text, and the additional energy."""
import json
import os
import pickle
import subprocess
import sys
import time

from gpu_tracker_common import refused
from harness import BUILD, main, near, test, wait_until

import wattle.compat.gpu_tracker as gput
from wattle.resource_usage import ResourceUsage
from wattle.tracker import Tracker

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
MEMORY_TREE = BUILD / "tests/fakes/memory_tree"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
IMPORTS = "import logging, os, sys, time\nimport wattle.compat.gpu_tracker as gput\n"
TEXT = """\
Max RAM:
   Unit: megabytes
   System capacity: 64000.0
   System: 2000.5
   Main:
      Total RSS: 30.0
      Private RSS: 20.0
      Shared RSS: 10.0
   Descendants:
      Total RSS: n/a
      Private RSS: n/a
      Shared RSS: n/a
   Combined:
      Total RSS: 30.0
      Private RSS: 20.0
      Shared RSS: 10.0
Max GPU RAM:
   Unit: gigabytes
   System capacity: 16.376
   System: 0.5
   Main: 0.25
   Descendants: 0.0
   Combined: 0.25
CPU utilization:
   System core count: 4
   Number of expected cores: 2
   System:
      Max sum percent: 210.123
      Max hardware percent: 52.531
      Mean sum percent: 100.0
      Mean hardware percent: 25.0
   Main:
      Max sum percent: 100.0
      Max hardware percent: 50.0
      Mean sum percent: 80.0
      Mean hardware percent: 40.0
   Descendants:
      Max sum percent: 0.0
      Max hardware percent: 0.0
      Mean sum percent: 0.0
      Mean hardware percent: 0.0
   Combined:
      Max sum percent: 100.0
      Max hardware percent: 50.0
      Mean sum percent: 80.0
      Mean hardware percent: 40.0
   Main number of threads: 3
   Descendants number of threads: 0
   Combined number of threads: 3
GPU utilization:
   System GPU count: 1
   Number of expected GPUs: 1
   GPU percentages:
      Max sum percent: 5.0
      Max hardware percent: 5.0
      Mean sum percent: 0.5
      Mean hardware percent: 0.5
Compute time:
   Unit: seconds
   Time: 2.729"""
RSS = {"total_rss": 30, "private_rss": 20, "shared_rss": 10}
UNKNOWN_RSS = dict.fromkeys(RSS)


def percentages(*values):
    return dict(zip(("max_sum_percent", "max_hardware_percent", "mean_sum_percent", "mean_hardware_percent"), values))


VALUES = {
    "max_ram": {"unit": "megabytes", "system_capacity": 64000, "system": 2000.5, "main": RSS,
                "descendants": UNKNOWN_RSS, "combined": RSS},
    "max_gpu_ram": {"unit": "gigabytes", "system_capacity": 16.376, "system": 0.5, "main": 0.25, "descendants": 0,
                    "combined": 0.25},
    "cpu_utilization": {"system_core_count": 4, "n_expected_cores": 2,
                        "system": percentages(210.12345, 52.53086, 100, 25),
                        "main": percentages(100, 50, 80, 40), "descendants": percentages(0, 0, 0, 0),
                        "combined": percentages(100, 50, 80, 40), "main_n_threads": 3, "descendants_n_threads": 0,
                        "combined_n_threads": 3},
    "gpu_utilization": {"system_gpu_count": 1, "n_expected_gpus": 1, "gpu_percentages": percentages(5, 5, 0.5, 0.5)},
    "compute_time": {"unit": "seconds", "time": 2.72856},
}


def run(workdir, program, status=0, **environment):
    """Runs a Python program in the test's folder; its output."""
    (workdir.folder / "program.py").write_text(IMPORTS + program)
    done = workdir.finish(workdir.start("program.py", program=sys.executable, env=environment))
    assert done.returncode == status, done
    return done


@test
def text_and_json(workdir):
    """resource_usage: gpu_tracker's exact fields, dictionaries and text; unknown values are None and n/a"""
    usage = ResourceUsage.from_json(VALUES)
    assert usage.to_json() == VALUES and str(usage) == TEXT, str(usage)
    assert usage.max_ram.main.total_rss == 30.0 and usage.max_ram.descendants.total_rss is None
    assert isinstance(usage.max_gpu_ram.descendants, float) and isinstance(usage.cpu_utilization.main_n_threads, int)
    assert repr(usage.compute_time) == "ComputeTime(unit='seconds', time=2.72856)"


@test
def measures(workdir):
    """a second of work with a child: time, memory, threads and CPU of main, descendants and both, in the requested
    units"""
    with gput.Tracker(sleep_time=0.05, ram_unit="megabytes", time_unit="seconds", n_expected_cores=1) as tracker:
        block = bytearray(100_000_000)
        with subprocess.Popen([sys.executable, "-c", "x = bytearray(50_000_000)\nwhile True: pass"]) as child:
            end = time.monotonic() + 1
            while time.monotonic() < end:
                block[0] ^= 1
            child.kill()
    usage = tracker.resource_usage
    near(usage.compute_time.time, 1, relative=0.5)
    assert usage.compute_time.unit == "seconds" and usage.max_ram.unit == "megabytes"
    assert usage.max_ram.main.private_rss > 100 and usage.max_ram.descendants.total_rss > 50, usage.max_ram
    assert usage.max_ram.combined.total_rss > 150, usage.max_ram
    assert usage.max_ram.system_capacity > usage.max_ram.system > 150, usage.max_ram
    cpu = usage.cpu_utilization
    assert cpu.main_n_threads >= 1 and cpu.descendants_n_threads == 1 and cpu.n_expected_cores == 1, cpu
    assert cpu.main.max_sum_percent > 10 and cpu.descendants.max_sum_percent > 10, cpu
    assert cpu.combined.mean_hardware_percent == cpu.combined.mean_sum_percent, cpu
    assert list(tracker.to_json()) == list(VALUES) and tracker.energy.total_j > 0 and "total_j" not in str(tracker)
    assert tracker.report["schema"] == "wattle-report/1" and tracker._repr_html_().startswith("<table")


@test
def energy(workdir):
    """wattle.Tracker: energy of the machine and of the process, here a simulated package of 50 W"""
    simulator = workdir.start(workdir.folder / "sim", "--zone", "package-0=50", program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    done = run(workdir, """
from wattle.tracker import Tracker
with Tracker(sleep_time=0.05, output='run.sqlite', label='x') as tracker:
    end = time.monotonic() + 1
    while time.monotonic() < end: pass
assert tracker.run_file.endswith('run.sqlite'), tracker.run_file
e = tracker.energy
print(e.total_j / tracker.report['run']['duration_s'], e.target_j, e.total_j, e.error_j, e.provenance,
      e.domains['package-0'])
assert tracker.to_json()['energy'] == vars(e)
print(tracker)
""", WATTLE_SYSFS=str(workdir.folder / "sim"), WATTLE_NVML="/nowhere")
    watts, target_j, total_j, error_j, provenance, package_j = done.stdout.splitlines()[0].split()
    near(float(watts), 50, relative=0.05)
    assert provenance == "measured" and package_j == total_j and 0 < float(target_j) <= float(total_j), done.stdout
    assert 0 <= float(error_j) < 5 and "\nEnergy: " in done.stdout, done.stdout
    assert (workdir.folder / "run.sqlite").exists()


@test
def states(workdir):
    """states new, started, stopped: calls out of order are a RuntimeError, and so are results requested too early"""
    tracker = gput.Tracker()
    assert repr(tracker) == "State: NEW" and tracker.state is gput.Tracker.State.NEW and tracker.resource_usage is None
    refused(RuntimeError, tracker.stop, "has not started yet")
    refused(RuntimeError, tracker.to_json, "before tracking completes")
    refused(RuntimeError, lambda: str(tracker), "before tracking completes")
    tracker.start()
    assert repr(tracker) == "State: STARTED"
    refused(RuntimeError, tracker.start, "already started")
    refused(RuntimeError, lambda: pickle.dumps(tracker), "before tracking completes")
    tracker.stop()
    assert repr(tracker) == "State: STOPPED" and tracker.state.value == 2
    refused(RuntimeError, tracker.start, "already stopped")
    refused(RuntimeError, tracker.stop, "already stopped")


@test
def validation(workdir):
    """invalid arguments: refused at once, and the message lists the valid ones"""
    (workdir.folder / "there.csv").write_text("kept")
    there = str(workdir.folder / "there.csv")
    for kind, arguments, *parts in (
            (ValueError, {"ram_unit": "milibytes"}, '"milibytes" is not a valid RAM unit',
             "bytes, gigabytes, kilobytes"),
            (ValueError, {"gpu_ram_unit": "GB"}, "GPU RAM unit", "terabytes"),
            (ValueError, {"time_unit": "years"}, "time unit", "days, hours, minutes, seconds"),
            (ValueError, {"sleep_time": 0.0}, "at least 0.001 seconds"),
            (ValueError, {"sleep_time": float("nan")}, "at least 0.001 seconds"),
            (ValueError, {"sleep_time": 1e5}, "at most 3600"),
            (ValueError, {"sleep_time": "1"}, "Sleep time of '1'", "a number, at least 0.001 seconds"),
            (ValueError, {"ram_unit": ["bytes"]}, "RAM unit", "bytes, gigabytes"),
            (ValueError, {"n_expected_cores": 0}, "at least 1"),
            (ValueError, {"n_expected_cores": 2.5}, "Number of expected cores of 2.5", "an integer, at least 1"),
            (ValueError, {"process_id": 0}, "Process ID of 0", "at least 1"),
            (ValueError, {"process_id": -1}, "Process ID of -1", "at least 1"),
            (ValueError, {"process_id": 2**40}, "Process ID", "at most 2147483647"),
            (ValueError, {"gpu_uuids": {0}}, "gpu_uuids of {0}", "strings"),
            (ValueError, {"join_timeout": -1}, "at least 0"),
            (ValueError, {"gpu_brand": "voodoo"}, '"voodoo" is not a valid GPU brand', '"nvidia", "amd" and "intel"'),
            (ValueError, {"gpu_uuids": set()}, "at least one GPU UUID"),
            (ValueError, {"tracking_file": "a.txt"}, '".csv" and ".sqlite"'),
            (FileExistsError, {"tracking_file": there}, "there.csv already exists", "overwrite")):
        refused(kind, lambda a=arguments: gput.Tracker(**a), *parts)
    refused(FileExistsError, lambda: Tracker(output=there), "there.csv already exists")
    assert (workdir.folder / "there.csv").read_text() == "kept"
    with gput.Tracker(sleep_time=0.01, tracking_file=there, overwrite=True, disable_logs=True):
        time.sleep(0.1)
    assert (workdir.folder / "there.csv").read_text().startswith("ram_unit,gpu_ram_unit,")


@test
def gpus(workdir):
    """gpu_uuids: an unknown one is a ValueError with those of the machine; of two GPUs one is measured"""
    (workdir.folder / "cards").write_text("gpu\nuuid GPU-one\npower_mw constant 100000\nutilization_percent 90 40\n"
                                       "memory_total_bytes 16000000000\nmemory_reserved_bytes 0\n"
                                       "gpu\nuuid GPU-two\npower_mw constant 50000\nutilization_percent 20 10\n"
                                       "memory_total_bytes 24000000000\n")
    done = run(workdir, """
try:
    gput.Tracker(gpu_uuids={'GPU-three'})
except ValueError as failure:
    print(failure)
with gput.Tracker(sleep_time=0.05, gpu_uuids={'GPU-one'}, gpu_brand='nvidia') as tracker:
    time.sleep(0.5)
gpu = tracker.resource_usage.gpu_utilization
print(gpu.system_gpu_count, gpu.n_expected_gpus, gpu.gpu_percentages.mean_sum_percent,
      tracker.resource_usage.max_gpu_ram.system_capacity)
""", WATTLE_NVML=str(FAKE_NVML), WATTLE_FAKE_NVML=str(workdir.folder / "cards"), CUDA_VISIBLE_DEVICES=None)
    refusal, counts = done.stdout.splitlines()
    assert all(uuid in refusal for uuid in ("GPU-three", "GPU-one", "GPU-two")), refusal
    assert counts == "2 1 90.0 39.463129088", counts


@test
def another_process(workdir):
    """process_id: the usage of another program; for an ended one a warning, its own figures are 0 and the machine's
    None"""
    burner = workdir.start("-c", "x = bytearray(80_000_000)\nprint(flush=True)\nwhile True: pass",
                           program=sys.executable)
    burner.stdout.readline()
    with gput.Tracker(sleep_time=0.05, process_id=burner.pid, ram_unit="megabytes") as tracker:
        time.sleep(0.5)
    usage = tracker.resource_usage
    assert usage.max_ram.main.total_rss > 80 and usage.cpu_utilization.main.max_sum_percent > 10, usage
    burner.kill()
    burner.wait()
    program = """
logging.basicConfig(format='%(levelname)s %(message)s')
with gput.Tracker(process_id={}, disable_logs={}) as tracker: pass
usage = tracker.resource_usage
print(usage.max_ram.main.total_rss, usage.max_ram.system, usage.compute_time.time, tracker.energy.total_j)
"""
    done = run(workdir, program.format(burner.pid, False))
    assert done.stdout.split() == ["0.0", "None", "0.0", "None"], done
    assert f"WARNING The target process of ID {burner.pid} ended before tracking could begin." in done.stderr, done
    assert not run(workdir, program.format(burner.pid, True)).stderr


@test
def after_an_exception(workdir):
    """exception inside the block: ends the tracking, reaches the program, and the results remain"""
    try:
        with gput.Tracker(sleep_time=0.05) as tracker:
            raise KeyError("mine")
    except KeyError:
        assert tracker.resource_usage.compute_time.time >= 0
    assert repr(tracker) == "State: STOPPED"


@test
def program_that_ends(workdir):
    """program that ends without stop: resource_usage is in the file, or, if killed, its run file beside it"""
    run(workdir,
        "tracker = gput.Tracker(sleep_time=0.05, resource_usage_file='usage.pkl')\ntracker.start()\ntime.sleep(0.3)\n"
        "sys.exit(3)", status=3)
    with open(workdir.folder / "usage.pkl", "rb") as file:
        assert pickle.load(file).compute_time.time > 0
    assert not (workdir.folder / "usage.pkl.sqlite").exists()
    run(workdir,
        "tracker = gput.Tracker(sleep_time=0.05, resource_usage_file='killed.pkl')\ntracker.start()\ntime.sleep(0.3)\n"
        "os.kill(os.getpid(), 9)", status=-9)
    workdir.environment["PATH"] = f"{BUILD / 'src/cli'}:{os.environ['PATH']}"
    report = wait_until(lambda: finished(workdir, "killed.pkl.sqlite"), "the recorder finished the run")
    assert report["resource_usage"]["compute_time"]["time"] > 0
    run(workdir, "with gput.Tracker(sleep_time=0.05, resource_usage_file='good.pkl'): pass")
    assert not list(workdir.folder.glob("good*")) and not list(workdir.folder.glob(".gpu-tracker*"))


def finished(workdir, path):
    done = workdir.wattle("report", path, "--format", "json")
    report = json.loads(done.stdout) if done.returncode == 0 else None
    return report if report and report["run"]["complete"] else None


RECORDER = """
import signal

def is_ours(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            words = file.read().split(b'\\0')
    except OSError:
        return False
    return b'attach' in words and str(os.getpid()).encode() in words

logging.basicConfig()
tracker = gput.Tracker(sleep_time=0.05, time_unit='seconds', n_join_attempts=2, join_timeout=0.25, output='run.sqlite')
tracker.start()
time.sleep(2.5)
recorders = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and is_ours(pid)]
for pid in recorders:
    os.kill(pid, signal.SIG{})
before = time.monotonic()
tracker.stop()
print(len(recorders), time.monotonic() - before, tracker.resource_usage.compute_time.time > 1, repr(tracker))
"""


@test
def another_folder(workdir):
    """paths: relative to the folder in which the tracker was made, whatever the program's later working directory"""
    done = run(workdir, """
os.mkdir('elsewhere')
kept = gput.Tracker(sleep_time=0.05, output='kept.sqlite', tracking_file='kept.csv')
backed = gput.Tracker(sleep_time=0.05, resource_usage_file='backup.pkl')
os.chdir('elsewhere')
with kept, backed: os.chdir('/')
print(os.path.exists(kept.run_file))
""")
    assert done.stdout.split() == ["True"], done
    assert sorted(path.name for path in workdir.folder.glob("[kb]*")) == ["kept.csv", "kept.sqlite"]
    assert not list((workdir.folder / "elsewhere").iterdir())


@test
def recorder_that_hangs(workdir):
    """recorder that does not end: stop waits n_join_attempts times join_timeout, warns, and returns the written data"""
    done = run(workdir, RECORDER.replace("SIG{}", "SIGSTOP"))
    recorders, waited_s, has_time, *state = done.stdout.split()
    assert recorders == "1" and 0.4 < float(waited_s) < 5, done
    assert has_time == "True" and state == ["State:", "STOPPED"], done
    assert "did not finish" in done.stderr, done


@test
def recorder_that_was_killed(workdir):
    """killed recorder: stop warns and returns the written data"""
    done = run(workdir, RECORDER.replace("SIG{}", "SIGKILL"))
    assert "1" == done.stdout.split()[0] and "True State: STOPPED" in done.stdout, done
    assert "recorder died" in done.stderr, done


@test
def pickled(workdir):
    """stopped tracker and its results: survive pickle"""
    with gput.Tracker(sleep_time=0.05) as tracker:
        time.sleep(0.1)
    copy = pickle.loads(pickle.dumps(tracker))
    assert copy.to_json() == tracker.to_json() and str(copy) == str(tracker) and copy.energy == tracker.energy
    assert repr(copy) == "State: STOPPED" and copy.run_file is None
    refused(RuntimeError, copy.start, "already stopped")
    assert pickle.loads(pickle.dumps(tracker.resource_usage)) == tracker.resource_usage


@test
def forked(workdir):
    """forked child: the tracker is the parent's; the child's work counts as a descendant's"""
    with gput.Tracker(sleep_time=0.05) as tracker:
        child = os.fork()
        if child == 0:
            try:
                tracker.stop()
            except RuntimeError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    assert tracker.resource_usage.compute_time.time >= 0


@test
def memory_of_forked_workers(workdir):
    """RAM of a program whose child forks four workers that write to half of its 100 MB: in the results and the tracking
    file"""
    done = run(workdir, f"""
import csv, json, subprocess
with gput.Tracker(sleep_time=0.1, ram_unit="megabytes", disable_logs=True, tracking_file="rows.csv") as tracker:
    act = [{str(MEMORY_TREE)!r}, "fork", "100000000", "4", "50", "1"]
    truth = json.loads(subprocess.run(act, check=True, stdout=subprocess.PIPE).stdout)
ram = tracker.resource_usage.max_ram
with open("rows.csv", newline="") as file:
    largest = max(float(row["combined_ram"]) for row in csv.DictReader(list(file)[2:]) if row["combined_ram"])
print(json.dumps([truth["combined"] / 1e6, ram.descendants.total_rss, ram.combined.total_rss - ram.main.total_rss,
                  largest - ram.main.total_rss]))
""")
    expected_values, *told = json.loads(done.stdout)
    for megabytes in told:
        # and this Python, whose libraries nobody here shares
        near(megabytes, expected_values, absolute=0.1 * expected_values + 15)


if __name__ == "__main__":
    main()
