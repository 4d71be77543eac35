"""Two runs at the same time on one machine: one counter, and each gets its own share of it."""
import json
import sys

from harness import BUILD, BURNER, TESTS, sum_without_none, main, near, test

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"


class Run:
    """One run's report, and the kernel's figures of the whole machine meanwhile."""

    def __init__(self, workdir, name, process):
        done = workdir.finish(process)
        assert done.returncode == 0, done
        self.report = json.loads((workdir.folder / f"{name}.json").read_text())
        self.energy, self.cpu_s = self.report["energy"], self.report["cpu"]["target_cpu_s"]
        self.target_j = self.energy["ledger"]["target_j"]
        path = f"{name}.sqlite"
        self.start_ns, self.end_ns = workdir.rows("select start_ns, end_ns from segment", path)[0]
        self.samples = workdir.rows("select t_ns, main_cpu_ns + descendants_cpu_ns, system_cpu_busy_ns from sample "
                                 "where main_cpu_ns + descendants_cpu_ns + system_cpu_busy_ns is not null order by "
                                 "t_ns", path)

    def share_j(self, counter):
        """Its energy by a simple calculation: the counter's increase every 100 ms, by share of busy CPU time."""
        chosen = [*self.samples[:-1:2], self.samples[-1]]
        return sum(expected_values.energy_j(counter, "package-0", a[0], b[0]) * (b[1] - a[1]) / (b[2] - a[2])
                   for a, b in zip(chosen, chosen[1:]) if b[2] > a[2])


def measure(workdir, simulator_options, commands):
    """Runs all commands at once, each under a wattle of its own, on one simulated machine."""
    top = workdir.folder / "sim"
    simulator = workdir.start(top, *simulator_options, program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    started = {name: workdir.start("run", "-q", "-o", f"{name}.sqlite", "--json", workdir.folder / f"{name}.json", "-i",
                                   "50ms",
                                   "--", *command, env={"WATTLE_SYSFS": str(top)})
               for name, command in commands.items()}
    runs = {name: Run(workdir, name, process) for name, process in started.items()}
    simulator.terminate()
    simulator.wait()
    counter = expected_values.load(top)
    for run in runs.values():
        near(sum_without_none(run.energy["ledger"]), run.energy["total_j"], relative=1e-9)
        near(run.energy["total_j"], expected_values.energy_j(counter, "package-0", run.start_ns, run.end_ns),
             relative=0.01)
        run.expected_j = run.share_j(counter)
    first_ns, last_ns = min(run.start_ns for run in runs.values()), max(run.end_ns for run in runs.values())
    return runs, expected_values.energy_j(counter, "package-0", first_ns, last_ns)


ONE_CORE = [BURNER, "cpu", "1.5"]
TWO_CORES = [BURNER, "threads", "2", "1.25"]
NOTHING = ["sleep", "1.5"]


@test
def equal_runs(workdir):
    """two equal loads: equal energy, and together no more than the counter has"""
    runs, counter_j = measure(workdir, ["--zone", "package-0=60"], {"a": ONE_CORE, "b": ONE_CORE})
    for run in runs.values():
        near(run.target_j, run.expected_j, relative=0.1)
    assert runs["a"].target_j + runs["b"].target_j <= counter_j * 1.005, (runs["a"].energy, runs["b"].energy, counter_j)


@test
def unequal_runs(workdir):
    """two threads against one: each gets its share, though the counter's power changes all the time"""
    runs, counter_j = measure(workdir, ["--zone", "package-0=50+30*sin@1.1"], {"a": TWO_CORES, "b": ONE_CORE})
    for run in runs.values():
        near(run.target_j, run.expected_j, relative=0.12)
    assert runs["a"].target_j + runs["b"].target_j <= counter_j * 1.005, (runs["a"].energy, runs["b"].energy, counter_j)
    # While both run, one's use is among the other processes in the other's ledger.
    assert runs["b"].energy["ledger"]["others_j"] > 0.5 * runs["b"].target_j, runs["b"].energy


@test
def a_sleeping_run(workdir):
    """sleeping program beside a computing one: almost no energy"""
    runs, counter_j = measure(workdir, ["--zone", "package-0=60"], {"a": ONE_CORE, "b": NOTHING})
    assert runs["b"].target_j < 0.02 * runs["a"].target_j, (runs["a"].energy, runs["b"].energy)
    assert runs["a"].target_j + runs["b"].target_j <= counter_j * 1.005


if __name__ == "__main__":
    main()
