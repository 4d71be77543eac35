"""Shared by the tests of callbacks: a machine whose power the training sets, and the true energies of its parts."""
import contextlib
import os
import time

import powercap_player
from harness import BUILD, near

IDLE_W, TRAIN_W, VALIDATION_W = 20, 80, 200
TRAIN_S, VALIDATION_S = 0.05, 0.05


class Machine:
    """`train()` and `validate()` are the work of a batch. The true figures are sums over the run, from start() on."""

    def __init__(self, player, gpu_w):
        self._player, self.gpu_w = player, gpu_w
        self.train_j = self.train_s = self.validation_j = self.validation_s = 0.0
        self._at, self._is_training = None, False
        self.waited_s = 0.0

    def near(self, actual_j, expected_j, seconds=1, relative=0.1):
        """Energies, or energies per `seconds`: within 10 %, and what the counter and the program miss while they wait for a CPU."""
        near(actual_j, expected_j, relative, TRAIN_W * self.waited_s / seconds)

    def end(self):
        for process in ("thread-self", self._player.process.pid):
            with open(f"/proc/{process}/schedstat", encoding="ascii") as file:
                self.waited_s += int(file.read().split()[1]) / 1e9
        self._player.close()

    def start(self):
        self._at, self._is_training = time.monotonic(), True
        self._player.watts(IDLE_W)

    def _add(self, joules):
        now = time.monotonic()
        seconds, self._at = now - self._at, now
        joules += self.gpu_w * seconds
        if self._is_training:
            self.train_j, self.train_s = self.train_j + joules, self.train_s + seconds
        else:
            self.validation_j, self.validation_s = self.validation_j + joules, self.validation_s + seconds

    def is_training(self, is_training=True):
        """From now on: where the framework says that validation begins or ends, and at the end of each step, where wattle reads the
        counter."""
        self._add(self._player.watts(IDLE_W))
        self._is_training = is_training

    def _work(self, watts, seconds):
        self._add(self._player.watts(watts))
        time.sleep(seconds)
        self._add(self._player.watts(IDLE_W))

    def train(self):
        self._work(TRAIN_W, TRAIN_S)

    def validate(self):
        self._work(VALIDATION_W, VALIDATION_S)


@contextlib.contextmanager
def machine(workdir, gpu_w=0):
    """A Machine that wattle's counters belong to, also of recorders started meanwhile. gpu_w: it has a GPU that uses so much."""
    top = powercap_player.tree(workdir)
    environment = {"WATTLE_SYSFS": str(top)}
    if gpu_w:
        (workdir.folder / "cards").write_text("gpu\nname NVIDIA H100 80GB HBM3\nuuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6\n"
                                              f"power_mw constant {gpu_w * 1000}\nenergy_period_ms 20\nutilization_percent 90 40\n")
        environment |= {"WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
                        "WATTLE_FAKE_NVML": str(workdir.folder / "cards")}
    os.environ.update(environment)
    player = powercap_player.Player(workdir, top, IDLE_W)
    simulated = Machine(player, gpu_w)
    try:
        yield simulated
    finally:
        simulated.end()
        for name in environment:
            del os.environ[name]


def check_figures(lines, steps_of, truth):
    """The logged figures `lines` (each with steps_of(line) steps) add up to the training's true energy and power."""
    joules = sum(line["wattle/j_per_step"] * steps_of(line) for line in lines)
    seconds = sum(line["wattle/j_per_step"] * steps_of(line) / line["wattle/power_w"] for line in lines if line["wattle/power_w"])
    truth.near(joules, truth.train_j)
    truth.near(joules / seconds, truth.train_j / truth.train_s, seconds)
    gpu_j = sum(line.get("wattle/gpu_j_per_step", 0) * steps_of(line) for line in lines)
    truth.near(gpu_j, truth.gpu_w * truth.train_s)


def blocks(workdir, path="run.sqlite"):
    """{name: ended blocks}; none may be open."""
    assert workdir.rows("SELECT name, close FROM span WHERE close != 'ended'", path) == []
    return dict(workdir.rows("SELECT name, count(*) FROM span GROUP BY name", path))
