"""Peers that are Python libraries: each measures one command and writes its figures as JSON. Runs in the virtual environment.

	adapters.py PEER RESULT_FILE COMMAND…

Keys: package_j and gpu_j (the machine's), program_j (the command's), cpu_s (its CPU time); a peer gives those that it has. Each
function uses its peer as the peer's own documentation does, with default settings."""
import json
import os
import subprocess
import sys
import tempfile

JOULES_PER_KWH = 3.6e6


def bare(command):
    """No meter: what Python itself costs."""
    subprocess.run(command, check=True)
    return {}


def allow_nvidia_smi_help():
    """CodeCarbon reads NVML only if `nvidia-smi --help` succeeds."""
    with open("nvidia-smi", "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\n[ "$1" = --help ]\n')
    os.chmod("nvidia-smi", 0o755)
    os.environ["PATH"] = f"{os.getcwd()}:{os.environ['PATH']}"


def codecarbon(command):
    allow_nvidia_smi_help()
    from codecarbon import OfflineEmissionsTracker
    tracker = OfflineEmissionsTracker(country_iso_code="FRA", save_to_file=False)
    tracker.start()
    subprocess.run(command, check=True)
    tracker.stop()
    data = tracker.final_emissions_data
    return {"package_j": data.cpu_energy * JOULES_PER_KWH, "gpu_j": data.gpu_energy * JOULES_PER_KWH}


def zeus(command):
    from zeus.monitor import ZeusMonitor
    monitor = ZeusMonitor()
    monitor.begin_window("command", sync_execution=False)
    subprocess.run(command, check=True)
    window = monitor.end_window("command", sync_execution=False)
    return {"package_j": sum((window.cpu_energy or {}).values()), "gpu_j": sum(window.gpu_energy.values())}


def pyjoules(command):
    from pyJoules.device import DeviceFactory
    from pyJoules.energy_meter import EnergyMeter
    meter = EnergyMeter(DeviceFactory.create_devices())
    meter.start()
    subprocess.run(command, check=True)
    meter.stop()
    energy = meter.get_trace()[0].energy
    parts = {"package_j": ("package_", 1e-6), "gpu_j": ("nvidia_gpu_", 1e-3)}
    return {key: sum(value * scale for name, value in energy.items() if name.startswith(prefix))
            for key, (prefix, scale) in parts.items() if any(name.startswith(prefix) for name in energy)}


def carbontracker(command):
    from carbontracker.tracker import CarbonTracker
    tracker = CarbonTracker(epochs=1, verbose=0, ignore_errors=False)
    thread = tracker.tracker  # the tracker drops it after its last epoch
    tracker.epoch_start()
    subprocess.run(command, check=True)
    tracker.epoch_end()
    return {"gpu_j" if part.name == "gpu" else "package_j": float(sum(part.energy_usage(thread.epoch_times))) * JOULES_PER_KWH
            for part in thread.components}


def gpu_tracker(command):
    import gpu_tracker as gput
    with gput.Tracker(sleep_time=0.1, disable_logs=True) as tracker:
        subprocess.run(command, check=True)
    usage = tracker.resource_usage
    hours = usage.compute_time.time
    return {"cpu_s": usage.cpu_utilization.descendants.mean_sum_percent / 100 * hours * 3600}


def aipowermeter(command):
    from deep_learning_power_measure.power_measure import experiment, parsers
    with tempfile.TemporaryDirectory() as folder:
        driver = parsers.JsonParser(folder)
        meter = experiment.Experiment(driver)
        process, queue = meter.measure_yourself(period=0.5)
        subprocess.run(command, check=True)
        queue.put(experiment.STOP_MESSAGE)
        process.join()
        results = experiment.ExpResults(driver)
        totals = {"package_j": "intel_power", "program_j": "rel_intel_power", "gpu_j": "nvidia_power"}
        metrics = {key: results.get_curve(name) for key, name in totals.items()}
        return {key: experiment.total(curve) for key, curve in metrics.items() if curve}


PEERS = {function.__name__: function for function in (bare, codecarbon, zeus, pyjoules, carbontracker, gpu_tracker, aipowermeter)}


def main():
    name, result_file, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = PEERS[name](command)
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump({key: value for key, value in found.items() if value is not None}, file)


if __name__ == "__main__":
    main()
