"""A working card of the fake NVML (`power_mw speed`): the cost of a step under a limit, and the best limit.

The formulas of tests/fakes/nvml/speed.c repeated, so that a test knows the optimum that a tuner has to find. Cards are
made here too: `Card(...).text()` is its part of a file of cards, `gpu_worker` works on it.
"""
import dataclasses
import math

GOALS = {"ed2p": lambda energy_j, time_s: energy_j * time_s * time_s,
         "edp": lambda energy_j, time_s: energy_j * time_s,
         "energy": lambda energy_j, time_s: energy_j}


@dataclasses.dataclass(frozen=True)
class Card:
    idle_w: float = 60
    full_w: float = 380
    exponent: float = 2.5
    memory_share: float = 0.3
    min_w: float = 100
    max_w: float = 400
    default_w: float = 400
    now_w: float | None = None  # the limit in force when the test begins; None: the default
    clock_min_mhz: int = 210
    clock_max_mhz: int = 1410
    clock_step_mhz: int = 15
    stairs: bool = False
    more: tuple[str, ...] = ()  # further lines of the file

    def text(self):
        """As tests/fakes/nvml/README.md describes it."""
        now_w = self.default_w if self.now_w is None else self.now_w
        limits = " ".join(f"{watts * 1000:.0f}" for watts in (self.min_w, self.max_w, self.default_w, now_w))
        speed = f"{self.idle_w * 1000} {self.full_w * 1000} {self.exponent} {self.memory_share}"
        stairs = " stairs" if self.stairs else ""
        return "\n".join(("gpu", f"limits_mw {limits}", f"power_mw speed {speed}",
                          f"max_sm_clock_mhz {self.clock_max_mhz}",
                          f"clocks_mhz {self.clock_min_mhz} {self.clock_step_mhz}{stairs}", "utilization_percent 99 40",
                          "process descendants C 98 1000000000", *self.more, ""))

    def clock(self, limit_w, locked_mhz=math.inf):
        """As a fraction of the highest."""
        share = min(1.0, max(0.0, (limit_w - self.idle_w) / (self.full_w - self.idle_w)))
        mhz = min(self.clock_max_mhz * share ** (1 / self.exponent), locked_mhz)
        if self.stairs:
            steps = math.floor((mhz - self.clock_min_mhz) / self.clock_step_mhz + 1e-9)
            mhz = self.clock_min_mhz + steps * self.clock_step_mhz
        return max(mhz, self.clock_min_mhz) / self.clock_max_mhz

    def power_w(self, limit_w, locked_mhz=math.inf):
        return self.idle_w + (self.full_w - self.idle_w) * self.clock(limit_w, locked_mhz) ** self.exponent

    def step(self, limit_w, step_s=0.005, locked_mhz=math.inf):
        """Energy and time of a step that takes step_s at full clock: J, s."""
        time_s = step_s * ((1 - self.memory_share) / self.clock(limit_w, locked_mhz) + self.memory_share)
        return self.power_w(limit_w, locked_mhz) * time_s, time_s

    def objective(self, goal, limit_w, step_s=0.005, locked_mhz=math.inf):
        return GOALS[goal](*self.step(limit_w, step_s, locked_mhz))

    def allowed(self, limit_w, slowdown_percent, reference_w=None):
        """Whether a step is at most this much slower than at the reference, by default the default limit."""
        reference_s = self.step(self.default_w if reference_w is None else reference_w)[1]
        return self.step(limit_w)[1] <= reference_s * (1 + slowdown_percent / 100) * (1 + 1e-12)

    def best_w(self, goal, slowdown_percent=None, from_w=None):
        """The best limit in steps of 0.1 W, from from_w (by default the minimum) to the default; for a slowdown bound
        goal is "energy"."""
        low = max(self.min_w, from_w or 0)
        limits = [low + i * 0.1 for i in range(int(round((self.default_w - low) * 10)) + 1)]
        if slowdown_percent is not None:
            limits = [watts for watts in limits if self.allowed(watts, slowdown_percent)]
        return min(limits, key=lambda watts: self.objective(goal, watts))

    def worse_percent(self, goal, limit_w, **bounds):
        """How far the objective at limit_w is above that at the best limit."""
        best = self.objective(goal, self.best_w(goal, **bounds))
        return (self.objective(goal, limit_w) / best - 1) * 100

    def best_clock_mhz(self, goal):
        """The best of the available locked clocks, at the default limit."""
        clocks = range(self.clock_min_mhz, self.clock_max_mhz + 1, self.clock_step_mhz)
        return min(clocks, key=lambda mhz: self.objective(goal, self.default_w, locked_mhz=mhz))
