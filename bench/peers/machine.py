"""A simulated machine that peers read as if it were real: /sys/class/powercap is a powercap_sim tree, laid over /sys in this
program's own mount namespace, and libnvidia-ml.so.1 is the fake NVML. Truth is known from the simulator's history and the card's
power function."""
import bisect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

WATTS_PER_CPU = 30  # of package 0, for each busy CPU; an idle machine uses nothing, so idle energy is nobody's
GPU_LOW_W, GPU_HIGH_W, GPU_PERIOD_S = 60, 260, 0.8


def program(build, name):
    """bench/ of an optimised build, or tests/fakes/ of a test build."""
    return next(path for path in (build / "bench" / name, build / "tests/fakes" / name) if path.exists())


def nvml_library(build):
    return next(path for path in (build / "bench/libnvml-fake.so", build / "tests/fakes/nvml/libnvidia-ml-fake.so") if path.exists())


def in_own_namespaces():
    """Starts the program again with its own mounts and without a network; returns why that is not possible, or None."""
    unshare = ["unshare", "--mount", "--net"]
    if os.environ.get("WATTLE_PEERS_NAMESPACE"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False, stderr=subprocess.DEVNULL)
        return None
    tried = subprocess.run([*unshare, "true"], stderr=subprocess.PIPE, text=True)
    if tried.returncode != 0:
        return f"unshare --mount --net failed: {tried.stderr.strip()}. Run as root"
    os.environ["WATTLE_PEERS_NAMESPACE"] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


class Machine:
    """One machine for one measured run; a with block."""

    def __init__(self, folder, build, simulator_options=(), gpu_steps=False):
        self.folder, self.build, self.options = pathlib.Path(folder), build, list(simulator_options)
        self.gpu_steps = gpu_steps
        self.sys, self.history_file = self.folder / "machine", self.folder / "history"

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "lib/libnvidia-ml.so.1").symlink_to(nvml_library(self.build))
        self.epoch_ns = time.monotonic_ns()
        power = (f"step {GPU_LOW_W * 1000} {GPU_HIGH_W * 1000} {GPU_PERIOD_S * 1000:g}" if self.gpu_steps else "constant 0")
        (self.folder / "cards").write_text(f"epoch_ns {self.epoch_ns}\ngpu\nname Simulated GPU\npower_mw {power}\n")
        self.simulator = subprocess.Popen(
            [program(self.build, "powercap_sim"), self.sys, "--zone", "package-0=0", "--busy", f"package-0={WATTS_PER_CPU}",
             "--history", self.history_file, *self.options], stdout=subprocess.PIPE)
        if self.simulator.stdout.readline() != b"ready\n":
            raise RuntimeError("powercap_sim did not start")
        (self.sys / "devices/virtual/powercap/intel-rapl/subsystem").symlink_to("../../../../class/powercap")
        self.mount()
        return self

    def mount(self):
        cgroups = self.folder / "cgroup"
        cgroups.mkdir()
        for command in (["mount", "--rbind", "/sys/fs/cgroup", cgroups],
                        ["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.sys}:/sys", "/sys"],
                        ["mount", "--rbind", cgroups, "/sys/fs/cgroup"]):
            subprocess.run(command, check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", "/sys"], check=False)
        subprocess.run(["umount", "--lazy", self.folder / "cgroup"], check=False)
        self.simulator.terminate()
        self.simulator.wait()
        rows = [line.split() for line in self.history_file.read_text().splitlines()]
        self.times_ns, self.joules = [int(row[0]) for row in rows], [float(row[1]) for row in rows]

    def environment(self):
        return {**os.environ, "LD_LIBRARY_PATH": str(self.folder / "lib"), "WATTLE_FAKE_NVML": str(self.folder / "cards"),
                "WATTLE_HELPER": "off", "WATTLE_STATE": str(self.folder / "state"), "HOME": str(self.folder)}

    def package_j(self, from_ns, to_ns):
        """Known once the machine has ended."""
        return self.package_at(to_ns) - self.package_at(from_ns)

    def package_at(self, t_ns):
        i = min(max(bisect.bisect_right(self.times_ns, t_ns), 1), len(self.times_ns) - 1)
        (t0, t1), (j0, j1) = self.times_ns[i - 1:i + 1], self.joules[i - 1:i + 1]
        return j0 + (j1 - j0) * (t_ns - t0) / (t1 - t0)

    def gpu_j(self, from_ns, to_ns):
        if not self.gpu_steps:
            return 0.0

        def until(t_ns):  # low in the first half of each period
            t_s = (t_ns - self.epoch_ns) / 1e9
            whole, rest = divmod(t_s, GPU_PERIOD_S)
            high_s = whole * GPU_PERIOD_S / 2 + max(0.0, rest - GPU_PERIOD_S / 2)
            return GPU_LOW_W * t_s + (GPU_HIGH_W - GPU_LOW_W) * high_s
        return until(to_ns) - until(from_ns)


def work_of(path):
    """The burner's own report: {"cpu_s", "start_ns", "end_ns"}."""
    told = json.loads(path.read_text())
    return {"cpu_s": told["self_cpu_s"] + told["children_cpu_s"], "start_ns": told["start_ns"], "end_ns": told["end_ns"]}
