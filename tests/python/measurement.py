"""De Feo's measurement tools with simulated counters: the CSV's energy compared with the true one."""
import csv
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "fakes"))
import expected_values
from harness import BUILD, main, near, test

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
ZONES = ["--zone", "package-0=50+20*sin@1.3", "--zone", "package-0/dram=5", "--zone", "package-1=30"]
PACKAGES = ("package-0", "package-1")
CARD = "gpu\nname Card\npower_mw constant {mw}\ntemperature_c {c}\nutilization_percent {percent} 40\n"
CARDS = CARD.format(mw=300000, c=55, percent=90) + CARD.format(mw=100000, c=40, percent=20)
NO_COUNTER = "error nvmlDeviceGetTotalEnergyConsumption 3\n"
J_PER_KWH = 3.6e6


class Machine:
    """A simulated machine for Python programs: packages that follow known functions, and two GPUs."""

    def __init__(self, workdir, zones=ZONES, cards=CARDS):
        self.workdir = workdir
        self.sysfs = workdir.folder / "sim"
        (workdir.folder / "cards").write_text(cards)
        simulator = workdir.start(self.sysfs, *zones, program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        self.environment = {"WATTLE_SYSFS": str(self.sysfs), "CUDA_VISIBLE_DEVICES": None,
                            "WATTLE_NVML": str(FAKE_NVML) if cards else "/nowhere",
                            "WATTLE_FAKE_NVML": str(workdir.folder / "cards")}

    def run(self, program, status=0, **environment):
        """Runs a program; its output, and the numbers that it printed, one on a line."""
        (self.workdir.folder / "program.py").write_text(program)
        done = self.workdir.finish(self.workdir.start("program.py", program=sys.executable,
                                                env={**self.environment, **environment}))
        assert done.returncode == status, done
        return done

    def true_j(self, from_ns, to_ns, zones=PACKAGES):
        what = expected_values.load(self.sysfs)
        return sum(expected_values.energy_j(what, zone, from_ns, to_ns) for zone in zones)

    def max_w(self):
        what = expected_values.load(self.sysfs)
        return sum(expected_values.max_w(what, zone) for zone in PACKAGES)


def table(path):
    """A CSV as its users read it."""
    with open(path, newline="", encoding="utf-8") as file:
        return [[float(field) for field in row] for row in csv.reader(file)]


IMPORTS = "import json, os, sys, time\nfrom wattle.compat.measurement import *\n"
FIVE = IMPORTS + """
tool = EnergyMeasurementTool(out_file='energy.csv', gpu_num=0)
for epoch in range(5):
    before = time.monotonic_ns()
    tool.start()
    time.sleep(0.3)
    tool.stop()
    print(before, time.monotonic_ns())
"""


@test
def energy_of_stretches(workdir):
    """five intervals: five rows, CPU is both packages, GPU the requested one, in kWh, equal to the counters"""
    machine = Machine(workdir)
    done = machine.run(FIVE)
    rows = table(workdir.folder / "energy.csv")
    assert len(rows) == 5 and all(len(row) == 3 for row in rows), rows
    for row, line in zip(rows, done.stdout.splitlines()):
        from_ns, to_ns = map(int, line.split())
        around_s = (to_ns - from_ns) / 1e9 - row[0]  # a busy machine delays the calls
        assert row[0] >= 0.3 and around_s >= 0, (row, line)
        near(row[1] * J_PER_KWH, machine.true_j(from_ns, to_ns) * row[0] * 1e9 / (to_ns - from_ns), relative=0.05,
             absolute=machine.max_w() * around_s)
        near(row[2] * J_PER_KWH, 300 * row[0], relative=0.4)  # the card's counter is updated every 20 ms to 100 ms
    near(sum(row[2] for row in rows) * J_PER_KWH, 300 * sum(row[0] for row in rows), relative=0.25)
    assert not done.stderr, done


@test
def the_other_gpu(workdir):
    """gpu_num: NVML's index; an unknown number is refused with the valid ones"""
    machine = Machine(workdir)
    machine.run(IMPORTS + "t = EnergyMeasurementTool('o.csv', gpu_num=1)\nt.start(); time.sleep(1); t.stop()\n")
    near(table(workdir.folder / "o.csv")[0][2] * J_PER_KWH, 100, relative=0.2)
    for tool in ("EnergyMeasurementTool", "AsynchronousMeasurementTool"):
        done = machine.run(IMPORTS + f"{tool}('o.csv', gpu_num=7)\n", status=1)
        assert done.stderr.splitlines()[-1].startswith("ValueError") and "7" in done.stderr.splitlines()[-1], done


@test
def unknown_is_nan(workdir):
    """no GPU, or one without a counter: nan, which float() reads, and never 0"""
    program = IMPORTS + "t = EnergyMeasurementTool('o.csv')\nt.start(); time.sleep(0.2); t.stop()\n"
    for cards in ("", CARD.format(mw=1000, c=1, percent=1) + NO_COUNTER):
        workdir.folder = workdir.folder / ("with" if cards else "without")
        workdir.folder.mkdir()
        Machine(workdir, cards=cards).run(program)
        row, = table(workdir.folder / "o.csv")
        assert row[1] > 0 and math.isnan(row[2]), row


@test
def estimate_is_marked(workdir):
    """no CPU counter: the load model's estimate, with a warning"""
    machine = Machine(workdir)
    machine.environment["WATTLE_SYSFS"] = str(workdir.tree("empty", {}))
    done = machine.run(FIVE)
    assert "estimated" in done.stderr and "wattle sensors" in done.stderr, done
    assert all(row[1] > 0 for row in table(workdir.folder / "energy.csv"))


@test
def long_stretches(workdir):
    """counter that may wrap each half second: read in between no energy is lost, in a forked child neither; else
    unknown"""
    machine = Machine(workdir, zones=["--zone", "package-0=100", "--range", "package-0=1000000000", "--start",
                                   "package-0=900000000"])
    machine.run(IMPORTS + """
from wattle import _keeper
tool = EnergyMeasurementTool('o.csv')
for _keeper.READ_EVERY_S in (0.1, 10):
    tool.start(); time.sleep(2); tool.stop()
    time.sleep(0.2)
_keeper.READ_EVERY_S = 0.1
if os.fork() == 0:
    tool.start(); time.sleep(2); tool.stop()
    os._exit(0)
os.wait()
""")
    kept, not_kept, child = table(workdir.folder / "o.csv")
    near(kept[1] * J_PER_KWH, 100 * kept[0], relative=0.03)
    near(child[1] * J_PER_KWH, 100 * child[0], relative=0.03)
    assert math.isnan(not_kept[1]), not_kept


@test
def whatever_ends_the_program(workdir):
    """exception, sys.exit, os._exit, SIGKILL: the rows of ended intervals are there, complete"""
    machine = Machine(workdir)
    for number, end in enumerate(("raise RuntimeError('x')", "sys.exit(3)", "os._exit(4)", "os.kill(os.getpid(), 9)")):
        status = (1, 3, 4, -9)[number]
        machine.run(IMPORTS + f"""
t = EnergyMeasurementTool('{number}.csv')
for i in range(3):
    t.start(); t.stop()
t.start()
{end}
""", status=status)
        assert len(table(workdir.folder / f"{number}.csv")) == 3, (end, number)


@test
def files(workdir):
    """older file: kept until the first row; several tools have files of their own; os.chdir has no effect"""
    machine = Machine(workdir)
    (workdir.folder / "a.csv").write_text("old")
    (workdir.folder / "sub").mkdir()
    machine.run(IMPORTS + """
a, b, c = (EnergyMeasurementTool(f'{name}.csv') for name in 'abc')
assert open('a.csv').read() == 'old'
os.chdir('sub')
a.start(); b.start(); a.stop(); b.stop(); a.start(); a.stop()
""")
    assert [len(table(workdir.folder / f"{name}.csv")) for name in "ab"] == [2, 1]
    assert sorted(path.name for path in workdir.folder.glob("*.csv")) == ["a.csv", "b.csv"] and not os.listdir(
        workdir.folder / "sub"), os.listdir(workdir.folder)
    assert not list(workdir.folder.glob(".*")), os.listdir(workdir.folder)


@test
def refusals(workdir):
    """invalid calls and unwritable files: reported at once, in one line with the correct form"""
    machine = Machine(workdir)
    for program, says in (
            ("EnergyMeasurementTool('o.csv').stop()", "RuntimeError: EnergyMeasurementTool.stop() without start()"),
            ("AsynchronousMeasurementTool('o.csv').stop()", "RuntimeError: AsynchronousMeasurementTool.stop() without"),
            ("t = AsynchronousMeasurementTool('o.csv'); t.start(1); t.start(1)",
             "RuntimeError: AsynchronousMeasurementTool.start()"),
            ("AsynchronousMeasurementTool('o.csv').start(0)", "ValueError: invalid interval 0"),
            ("AsynchronousMeasurementTool('o.csv').start(1e9)", "ValueError"),
            ("EnergyMeasurementTool('none/o.csv')", "FileNotFoundError: out_file"),
            ("EnergyMeasurementTool('.')", "IsADirectoryError: out_file"),
            ("LayerwiseMeasurementTool('none/o.csv', 0)", "FileNotFoundError: out_file")):
        done = machine.run(IMPORTS + program + "\n", status=1)
        assert done.stderr.splitlines()[-1].startswith(says), (program, done.stderr)


@test
def asynchronous(workdir):
    """one row for each reading: energies cumulative from start in kWh; CPU and GPU load, temperature and power as
    read"""
    machine = Machine(workdir)
    done = machine.run(IMPORTS + """
t = AsynchronousMeasurementTool('machine.csv', gpu_num=0)
before = time.monotonic_ns()
t.start(0.1)
end = time.monotonic() + 2
while time.monotonic() < end: pass
t.stop()
print(before, time.monotonic_ns())
""")
    rows = table(workdir.folder / "machine.csv")
    from_ns, to_ns = map(int, done.stdout.split())
    assert 15 <= len(rows) <= 23 and all(len(row) == 8 for row in rows), rows
    assert all(a[i] < b[i] for a, b in zip(rows, rows[1:]) for i in (0, 1)), rows
    near(rows[0][0], 0.1, absolute=0.06)
    near(rows[-1][0], (to_ns - from_ns) / 1e9, absolute=0.3)
    near(rows[-1][1] * J_PER_KWH, 80 * rows[-1][0], relative=0.1)
    near(rows[-1][4] * J_PER_KWH, 300 * rows[-1][0], relative=0.1)
    busy = sorted(row[2] for row in rows)[len(rows) // 2]
    assert 100 / os.cpu_count() * 0.8 <= busy <= 100, busy
    assert all(math.isnan(row[3]) for row in rows), rows  # this machine has no CPU temperature
    assert all(row[5:] == [90, 55, 300] for row in rows), rows
    assert not done.stderr, done


@test
def asynchronous_without_counters(workdir):
    """GPU with power only, and load model: power is integrated"""
    machine = Machine(workdir, cards=CARD.format(mw=300000, c=55, percent=90) + NO_COUNTER)
    machine.environment["WATTLE_SYSFS"] = str(workdir.tree("empty", {}))
    machine.run(IMPORTS + "t = AsynchronousMeasurementTool('o.csv')\nt.start(0.1); time.sleep(1); t.stop()\n")
    rows = table(workdir.folder / "o.csv")
    near(rows[-1][4] * J_PER_KWH, 300 * rows[-1][0], relative=0.05)
    assert all(a[1] < b[1] for a, b in zip(rows, rows[1:])) and rows[0][1] > 0, rows


@test
def asynchronous_without_stop(workdir):
    """program ends or fails without stop(): the rows are written all the same; a forked child leaves them to the
    parent"""
    machine = Machine(workdir)
    for number, (end, status) in enumerate((("", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1),
                                            ("if os.fork() == 0: sys.exit(0)\nos.wait()", 0))):
        machine.run(IMPORTS + f"t = AsynchronousMeasurementTool('{number}.csv')\n"
                    f"t.start(0.1)\ntime.sleep(0.5)\n{end}\n", status=status)
        assert len(table(workdir.folder / f"{number}.csv")) >= 4, number


@test
def asynchronous_again(workdir):
    """started a second time: further rows that count from that start"""
    machine = Machine(workdir)
    machine.run(IMPORTS + "t = AsynchronousMeasurementTool('o.csv')\n"
                "for i in range(2):\n    t.start(0.1); time.sleep(0.35); t.stop()\n")
    elapsed_s = [row[0] for row in table(workdir.folder / "o.csv")]
    assert sum(b < a for a, b in zip(elapsed_s, elapsed_s[1:])) == 1 and elapsed_s.count(min(elapsed_s)) <= 2, elapsed_s


LAYERS = IMPORTS + """
import torch
torch.set_num_threads(1)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow, self.unused = torch.nn.Linear(500, 500), torch.nn.Linear(500, 50), torch.nn.Linear(1, 1)
        self.relu = torch.nn.ReLU(inplace=True)
    def forward(self, x):
        return self.narrow(self.relu(self.wide(x)))
model = torch.nn.Sequential(Block(), torch.nn.Sequential(torch.nn.BatchNorm1d(50)))
x = torch.randn(300, 500)
def measure(path, step):
    tool = LayerwiseMeasurementTool(path)
    same = tool.start(model)
    assert same is model
    for _ in range(40):
        step()
    tool.stop()
    print(json.dumps({row.name: (row.calls, row.energy_j) for row in tool.layers.rows}))
measure('training.csv', lambda: model(x).sum().backward())
torch.set_grad_enabled(False)
measure('inference.csv', lambda: model(x))
"""


@test
def layerwise(workdir):
    """one row for each layer in the order of the model: type, mean J of a call, forward and backward; containers have
    none"""
    done = Machine(workdir, cards="").run(LAYERS)
    training, inference = map(json.loads, done.stdout.splitlines())
    with open(workdir.folder / "training.csv", newline="", encoding="utf-8") as file:
        rows = [(kind, float(joules)) for kind, joules in csv.reader(file)]
    assert [kind for kind, _ in rows] == ["Linear", "Linear", "Linear", "ReLU", "BatchNorm1d"], rows
    assert math.isnan(rows[2][1]), rows  # never called
    for row, name in ((0, "0.wide"), (1, "0.narrow"), (3, "0.relu"), (4, "1.0")):
        calls, joules = training[name]
        assert calls == 40
        near(rows[row][1], joules / 40, relative=1e-12)
    assert rows[0][1] > 2 * rows[1][1] > 0, rows  # ten times the work
    assert 0 < inference["0.wide"][1] < 0.8 * training["0.wide"][1], (training, inference)


@test
def nothing_is_recorded(workdir):
    """WATTLE_DISABLE=1: the program runs, times are known, energies are nan, and no empty file is made"""
    machine = Machine(workdir)
    machine.run(FIVE, WATTLE_DISABLE="1")
    assert all(row[0] > 0.2 and math.isnan(row[1]) for row in table(workdir.folder / "energy.csv"))
    machine.run(IMPORTS + "t = AsynchronousMeasurementTool('o.csv')\nt.start(1); t.stop()\n", WATTLE_DISABLE="1")
    assert not (workdir.folder / "o.csv").exists()


if __name__ == "__main__":
    main()
