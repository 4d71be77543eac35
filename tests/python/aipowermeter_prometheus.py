"""AIPowerMeter's interface with Prometheus as its driver: five gauges while an experiment runs."""
import os
import socket
import sys
import time
import unittest.mock
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
from aipowermeter_parts import IMPORTS
from harness import BURNER, is_alive, main, near, test, wait_until
from serving import powercap

from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers, prometheus_client

GAUGES = {"power_draw_cpu", "intel_power", "mem_used_cpu", "mem_used_gpu", "power_draw_gpu"}
KILLED = IMPORTS + """
from wattle.compat.deep_learning_power_measure.power_measure import prometheus_client
driver = prometheus_client.PrometheusClient(port=0)
process, queue = experiment.Experiment(driver).measure_yourself(period=0.1)
print(process.pid, driver.url, flush=True)
time.sleep(60)
"""


def gauges(url, token=None):
    """The five gauges, as a scraper gets them."""
    request = urllib.request.Request(url + "metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {words[0]: float(words[1]) for words in lines if words[0] in GAUGES}


@test
def scraped(workdir):
    """one busy process on a machine of 55 W: gauges of its own power while the experiment runs, no server afterwards"""
    environment, _ = powercap(workdir, "package-0=50", "package-0/dram=5")
    burner = workdir.start("cpu", "60", program=BURNER)
    driver = prometheus_client.PrometheusClient(port=0)
    with unittest.mock.patch.dict(os.environ, environment):
        process, queue = experiment.Experiment(driver).measure_from_pid_list([burner], period=0.2)
    url = driver.url
    wait_until(lambda: gauges(url)["power_draw_cpu"] > 1, "watts of the burner")
    wait_until(lambda: gauges(url)["power_draw_cpu"] > 1, "watts of the burner")
    now = gauges(url)
    assert set(now) == GAUGES, now
    # The simulated counter may be late by some ms, and one reading is of 0.2 s.
    wait_until(lambda: abs(gauges(url)["intel_power"] - 55) < 5.5, "55 W of the machine")
    assert 1 < now["power_draw_cpu"] < now["intel_power"], now
    assert 0 < now["mem_used_cpu"] < 1e8 and now["mem_used_gpu"] != now["mem_used_gpu"], now
    assert process.is_alive() and process.exitcode is None and is_alive(process.pid)
    queue.put(experiment.STOP_MESSAGE)
    assert queue.get(timeout=1) == (None, None) and process.exitcode == 0 and driver.url is None
    assert not is_alive(process.pid)
    try:
        gauges(url)
    except urllib.error.URLError:
        pass
    else:
        raise AssertionError("somebody answers after the end")


@test
def all_processes(workdir):
    """monitor_machine: memory of all processes, not only of this one; it ends when asked"""
    driver = prometheus_client.PrometheusClient(port=0)
    assert not any(word.startswith("--pid") for word in driver.arguments(1, 5))
    begin = time.monotonic()
    experiment.Experiment(driver).monitor_machine(period=0.1, duration_s=0.3)
    assert 0.3 <= time.monotonic() - begin and driver.url is None


@test
def ends_with_the_program(workdir):
    """killed program: leaves no server behind"""
    program = workdir.start("-c", KILLED, program=sys.executable)
    pid, url = program.stdout.readline().decode().split()
    assert set(gauges(url)) == GAUGES
    program.kill()
    program.wait()
    wait_until(lambda: not is_alive(int(pid)), "the end of the server")


@test
def who_may_ask(workdir):
    """address other than loopback: needs a token; requests without it get nothing"""
    try:
        experiment.Experiment(prometheus_client.PrometheusClient(0, host="0.0.0.0")).measure_yourself()
    except ValueError as error:
        assert "--token-file" in str(error), error
    else:
        raise AssertionError("served everybody")
    token = workdir.folder / "token"
    token.touch(0o600)
    token.write_text("abcdefghijklmnopqrstuvwxyz012345\n")
    driver = prometheus_client.PrometheusClient(0, host="0.0.0.0", token_file=token)
    _, queue = experiment.Experiment(driver).measure_yourself(period=0.1)
    url = driver.url.replace("0.0.0.0", "127.0.0.1")
    try:
        gauges(url)
    except urllib.error.HTTPError as error:
        assert error.code == 401, error
    else:
        raise AssertionError("no token was asked for")
    assert set(gauges(url, token.read_text().strip())) == GAUGES
    queue.put(experiment.STOP_MESSAGE)


@test
def refused(workdir):
    """port in use, invalid port and lists of several: reported at once; nothing keeps running"""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        client = prometheus_client.PrometheusClient(taken.getsockname()[1])
        for start, kind, text in (
                (lambda: experiment.Experiment(client).measure_yourself(), RuntimeError,
                 "another program uses this port"),
                (lambda: prometheus_client.PrometheusClient(65536), ValueError, "65535"),
                (lambda: experiment.Experiment(client).measure_from_pid_list([os.getpid(), os.getppid()]), ValueError,
                 "one process"),
                (lambda: experiment.ExpResults(client), ValueError, "stores no recording"),
                (lambda: client.save_exp_metrics({"accuracy": 1}), NotImplementedError, "JsonParser")):
            try:
                start()
            except kind as error:
                assert text in str(error), error
            else:
                raise AssertionError(text)
    assert isinstance(client, parsers.Driver) and prometheus_client.PrometheusClient().port == 5001


if __name__ == "__main__":
    main()
