"""Outputs of live commands, for golden.py: names, labels, units, order and types are kept; numbers that change with
time are not.

The machine is simulated: static counters of a server's /sys, three GPUs of the fake NVML with constant power, and a
/proc of four processes, two of them of a job.
"""
import http.client
import json
import os
import re
import signal
import socket
import sys

from gpu_card import Card
from harness import BUILD, TESTS, is_alive, wait_until
from tune_fixture import is_written

MACHINE = TESTS / "machines/nvidia-server"
NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
SENSORS = ("nvidia-server", "grace", "laptop-battery", "none-readable", "vm")
WORKER = BUILD / "tests/fakes/gpu_worker"
# Values of these series and keys are kept: limits, sizes, counts of static things.
STILL = re.compile(r"(limit|size|info|cores|processes|threads|temperature|clock_hertz|throttled|utilization|memory_used)")
NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w#])")
BARS = re.compile(r"[░▒▓█▉▊▋▌▍▎▏▚]+")
OPEN_LISTS = {"curve", "parameters", "notes", "added_caps", "values"}  # fields whose length depends on measured values
REMARKS = {"note", "ended_because"}
CARDS = """
gpu
name NVIDIA H100 80GB HBM3
memory_total_bytes 85520809984
memory_used_bytes 5000000000
power_mw constant 300000
utilization_percent 80 30
throttle_bits 36
limits_mw 200000 700000 700000 650000
process 60 C 70 4000000000
process 62 C 5 500000000

gpu
name Tesla P100-PCIE-16GB
memory_total_bytes 17179869184
power_mw constant 28000
limits_mw 125000 250000 250000 250000
error nvmlDeviceGetTotalEnergyConsumption 3

gpu
name Refused
error nvmlDeviceGetHandleByIndex 4
"""


# ---- the machine ----

def process(pid, name, parent, cgroup):
    stat = f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194304 100 0 0 0 5000 1000 0 0 20 0 3 0 1000 1000000000 50000"
    uid = "\t".join(["", *[str(os.getuid())] * 4])
    return {f"{pid}/stat": stat + " 0" * 28 + "\n", f"{pid}/statm": "100000 50000 10000 1 0 20000 0\n",
            f"{pid}/comm": f"{name}\n",
            f"{pid}/status": f"Name:\t{name}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nUid:{uid}\nNSpid:\t{pid}\nThreads:\t3\n",
            f"{pid}/cmdline": f"{name}\0--epochs\0" + "5\0", f"{pid}/cgroup": f"0::{cgroup}\n",
            f"{pid}/environ": "SLURM_JOB_ID=4242\0" if "job" in cgroup else ""}


def procfs():
    cpu = "100000 0 50000 3000000 1000 0 100 0 0 0\n"
    files = {"stat": f"cpu  {cpu}cpu0 {cpu}cpu1 {cpu}btime 1793000000\n", "uptime": "5000.00 9000.00\n",
             "meminfo": "MemTotal:       16000000 kB\nMemFree:         8000000 kB\nMemAvailable:   10000000 kB\n",
             "cpuinfo": (MACHINE / "proc/cpuinfo").read_text(), "loadavg": "0.50 0.40 0.30 1/2 60\n",
             "sys/kernel/hostname": "golden\n", "sys/kernel/random/boot_id": "b0070000-0000-4000-8000-000000000000\n"}
    job = "/system.slice/slurmstepd.scope/job_4242/step_0"
    for words in ((1, "init", 0, "/init.scope"), (60, "train", 1, job), (61, "loader", 60, job),
                  (62, "other", 1, "/user.slice")):
        files.update(process(*words))
    return files


def machine(workdir, cards=CARDS):
    """The environment that selects the simulated machine."""
    (workdir.folder / "machine.cards").write_text(cards)
    return {"WATTLE_SYSFS": str(MACHINE / "sys"), "WATTLE_PROCFS": str(workdir.tree("machine", procfs())),
            "WATTLE_NVML": str(NVML), "WATTLE_FAKE_NVML": str(workdir.folder / "machine.cards"),
            "WATTLE_ROCM_SMI": "/nonexistent/librocm_smi64.so", "WATTLE_STATE": str(workdir.folder / "state"),
            "CUDA_VISIBLE_DEVICES": None}


# ---- normalisation of outputs ----

def shape(value, key=""):
    """The keys and types of a document: numbers as "number" (or null), of a list the structure that all elements
    share."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        if key in OPEN_LISTS:
            return "list"
        shapes = [shape(inner) for inner in value]
        return shapes[:1] if all(other == shapes[0] for other in shapes) else shapes
    if isinstance(value, bool):
        return "bool"
    if key in REMARKS:
        return "text or null"
    return "number" if value is None or isinstance(value, (int, float)) else value


def shape_of(text):
    return json.dumps(shape(json.loads(text)), indent=1, ensure_ascii=False) + "\n"


def moving(value, key=""):
    """A document with "number" for varying values: everything that is no text, size, limit or count."""
    if isinstance(value, dict):
        return {name: moving(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [moving(inner, key) for inner in value]
    moves = isinstance(value, float) or key in ("sample", "look", "rss_bytes") or (isinstance(value, int)
                                                                                   and key.endswith(("_w", "_j", "_s")))
    return "number" if moves and not isinstance(value, bool) else value


def picture(text):
    """A terminal's picture without figures, bars and blanks."""
    lines = (re.sub(r"\s+", " ", BARS.sub("▒", NUMBER.sub("#", line))).rstrip() for line in text.splitlines())
    return "\n".join(lines) + "\n"


def series(text):
    """OpenMetrics with "number" for values that move."""
    def line(match):
        return match[0] if STILL.search(match[1]) and "process_" not in match[1] else f"{match[1]}{match[2]} number"
    # GPU use of other processes appears once one of them was seen on it.
    text = re.sub(r'^.*="(?:other|none)",resource="gpu".*\n', "", text, flags=re.MULTILINE)
    return re.sub(r"^(\w+)((?:\{.*\})?) \S+$", line, re.sub(r'user="[^"]*"', 'user="USER"', text), flags=re.MULTILINE)


# ---- the outputs ----

class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(path, what, headers=()):
    connection = Unix(path)
    try:
        connection.request("GET", what, headers=dict(headers))
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def served(workdir):
    """/metrics in both formats and /now.json, after two intervals."""
    socket_path = workdir.folder / "serve.sock"
    server = workdir.start("serve", "--listen", f"unix:{socket_path}", "--node", "golden", "--pid", 60, "--processes",
                           3, "--jobs", 3,
                           "--cgroups", 3, "--seed-names", "-i", "100ms", env={**machine(workdir), "LC_ALL": "C.UTF-8"})
    while b"serving" not in (line := server.stderr.readline()):
        assert line, "it did not start"
    wait_until(lambda: json.loads(ask(socket_path, "/now.json"))["sample"] >= 3, "three samples")
    now = json.loads(ask(socket_path, "/now.json?history=1"))
    history = {key: "list" if isinstance(inner, list) else [
        {name: "list" if isinstance(part, list) else part for name, part in row.items()} for row in inner]
               if key == "domains" else inner
        for key, inner in now["history"].items()}
    now.update(host="HOST", time="TIME", history=history, trail=history)
    for row in now.get("processes", []):
        row.update((key, "USER") for key in row if key == "user")
    metrics = series(ask(socket_path, "/metrics"))
    typed = series(ask(socket_path, "/metrics", [("Accept", "application/openmetrics-text; version=1.0.0")]))
    server.terminate()
    workdir.finish(server)
    return {"live/now.json": json.dumps(moving(now), indent=1) + "\n", "live/metrics.txt": metrics,
            "live/openmetrics.txt": typed}


def top(workdir):
    done = workdir.wattle("top", "--once", "-i", "100ms", "--pid", 60,
                          env={**machine(workdir), "LC_ALL": "C.UTF-8", "COLUMNS": "120", "LINES": "40"})
    assert done.returncode == 0, done.stderr
    user = re.compile(r"^( *\d+) \S+", re.MULTILINE)
    first = re.sub(r"(wattle top · )\S+", r"\1HOST", done.stdout)
    return {"live/top.txt": picture(user.sub(r"\1 USER", first))}


def sensors(workdir):
    """As text; the JSON of all made machines is in tests/machines."""
    found = {}
    for name in SENSORS:
        folder = TESTS / "machines" / name
        cards = folder / "nvml.cards"
        env = {**machine(workdir), "WATTLE_SYSFS": str(folder / "sys"), "WATTLE_PROCFS": str(folder / "proc"),
               "LC_ALL": "C.UTF-8",
               "COLUMNS": "80", "WATTLE_NVML": str(NVML) if cards.exists() else "/nonexistent/libnvidia-ml.so.1",
               "WATTLE_FAKE_NVML": str(cards)}
        done = workdir.wattle("sensors", env=env)
        text = done.stdout.replace(str(folder), "MACHINE")
        found[f"live/sensors_{name}.txt"] = picture(text) if cards.exists() else text
    return found


def caps(workdir):
    env = {**machine(workdir), "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
    words = {"cap_list.txt": ("list",), "cap_list.json": ("list", "--json"), "cap_get.txt": ("get", "gpu-0")}
    return {f"live/{name}": workdir.wattle("cap", *each, env=env).stdout for name, each in words.items()}


def bench(workdir):
    done = workdir.wattle("bench", "-n", 3, "-w", 0, "--seed", 1, "--settle", 0, "-i", "20ms", "--json", "-", "--",
                          "sleep", "0.1", ":::",
                          "sleep", "0.11", env=machine(workdir))
    assert done.returncode == 0, done.stderr
    return {"live/bench.json": shape_of(done.stdout)}


def tune(workdir, *options, name="tune"):
    """A search over two limits; the program is asked to end when the result exists."""
    card = Card(more=("limit_delay_ms 5", "energy_period_ms 5", "field_times"))
    env = {**machine(workdir, card.text()), "WATTLE_SYSFS": str(workdir.tree("empty", {"keep": ""}))}
    result, program = workdir.folder / "tune.json", workdir.folder / "pid"
    search = workdir.start("cap", "tune", "gpu-0", "--caps", 2, "--seconds", 0.1, "--settle", 0.02, "--step", "step",
                           "--seed", 1,
                           *(options or ("--objective", "edp")), "--json", result, "--csv", "tune.csv", "--",
                           "sh", "-c", 'echo $$ > pid; exec "$0" "$@"', WORKER, "--prompt", "--step-ms", 2, env=env)
    try:
        wait_until(lambda: is_written(result) or search.poll() is not None, "the result", 240)
    finally:
        if program.exists() and is_alive(pid := int(program.read_text())):
            os.kill(pid, signal.SIGTERM)
    done = workdir.finish(search)
    assert done.returncode == 0, done.stderr
    lines = [NUMBER.sub("#", line) for line in (workdir.folder / "tune.csv").read_text().splitlines()]
    return {f"live/{name}.json": shape_of(result.read_text()),
            f"live/{name}.csv": "\n".join([lines[0], lines[-1]]) + "\n"}


def tune_clocks(workdir):
    return tune(workdir, "--clocks", "--objective", "slowdown=20", name="tune_clocks")


def rows(workdir, names, environment):
    """Output of the package for Python for stored runs."""
    env = {**environment, "PYTHONPATH": str(BUILD / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = workdir.finish(workdir.start(TESTS / "e2e/golden_rows.py", *names, program=sys.executable, env=env))
    assert done.returncode == 0, done.stderr
    return done.stdout
