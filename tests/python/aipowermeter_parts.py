"""Shared by the tests of AIPowerMeter's interface: programs to measure, and readers of recorded data."""
import json

from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers

DOOR = "wattle.compat.deep_learning_power_measure"
IMPORTS = f"""
import os, signal, sys, time
from {DOOR}.power_measure import experiment, parsers
def work(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass
"""
ONE = IMPORTS + """
driver = parsers.JsonParser("out", meta_data="one")
p, q = experiment.Experiment(driver, cont="cont" in sys.argv).measure_yourself(period=0.1)
assert p.is_alive() and p.pid != os.getpid() and p.exitcode is None, p
work(0.8)
q.put(experiment.STOP_MESSAGE)
assert not p.is_alive() and p.exitcode == 0, q.get()
assert q.get(timeout=1) == (None, None)
"""


def read(workdir, folder="out"):
    return experiment.ExpResults(parsers.JsonParser(workdir.folder / folder))


def report_of(workdir, folder="out"):
    done = workdir.wattle("report", "--format", "json", workdir.folder / folder / "wattle.sqlite")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def lines_of(workdir):
    """power_metrics.json as AIPowerMeter reads it: with the json module only."""
    return [json.loads(line) for line in (workdir.folder / "out/power_metrics.json").read_text().splitlines()]
