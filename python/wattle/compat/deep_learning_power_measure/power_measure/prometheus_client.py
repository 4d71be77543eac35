"""A driver for Prometheus: five gauges of current values; nothing is stored.

    driver = prometheus_client.PrometheusClient(port=5001)
    experiment.Experiment(driver).monitor_machine(period=5)

The gauges are at http://localhost:5001/metrics while an experiment runs, among wattle's own metrics; a live page
is at /. They come from `wattle serve --seed-names`, a process that ends with the experiment, at the latest with the
program.
"""
from __future__ import annotations

import os
import subprocess
from typing import Any, Iterable, Optional, Sequence

from wattle import _program

from ._driver import Driver, PathLike
from ._recording import Beside, _running
from ._records import Item

__all__ = ["PrometheusClient"]

PORT = 5001
SHORTEST_S, LONGEST_S = 0.1, 60.0  # between two polls of `wattle serve`
END_S = 10.0  # it ends in milliseconds, on a busy machine in seconds
STARTED = "serving at "
NEXT_TO_ALL = 1  # whose descendants all processes are


class PrometheusClient(Driver):
    """Serves power_draw_cpu, intel_power, mem_used_cpu, mem_used_gpu and power_draw_gpu while an experiment runs.

    port: 0 uses any free one, see `url`. host: an address of this machine. Because power readings reveal what other
    users do, addresses other than loopback need a token_file: a file that only its owner may read, with one
    line that clients must send (`Authorization: Bearer`, Prometheus's `authorization: {credentials_file: …}`).
"""

    def __init__(self, port: Optional[int] = None, *, host: str = "127.0.0.1",
                 token_file: Optional[PathLike] = None) -> None:
        port = PORT if port is None else port
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            raise ValueError(f"port is a number from 0 (any free one) to 65535, not {port!r}")
        self.port = port
        self.host = host
        self.token_file = token_file
        self.url: Optional[str] = None  # : while an experiment runs

    def record(self, pids: Sequence[int], period_s: float) -> Beside:
        """Starts the server. Raises ValueError for an address or file that it cannot use, RuntimeError if it does not start."""
        if len(pids) > 1:
            raise ValueError(f"PrometheusClient follows one process and all that it starts, not {len(pids)}; "
                             "monitor_machine() has all processes, and a driver that records has lists")
        return Serving(self, pids[0], period_s)

    def arguments(self, pid: int, period_s: float) -> list[str]:
        """Arguments of `wattle serve`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        interval_s = min(max(period_s, SHORTEST_S), LONGEST_S)
        arguments = [f"--listen={host}:{self.port}", "--seed-names", f"--interval={interval_s:.3f}s",
                     f"--exit-with={os.getpid()}"]
        if pid != NEXT_TO_ALL:
            arguments.append(f"--pid={pid or os.getpid()}")
        if self.token_file is not None:
            arguments.append(f"--token-file={os.path.abspath(self.token_file)}")
        return arguments

    def erase(self) -> None:
        """No effect: nothing is stored here, and Prometheus keeps its own data."""

    def records(self) -> Iterable[Item]:
        """Raises ValueError: earlier data are in Prometheus."""
        raise ValueError("PrometheusClient stores no recording: query Prometheus for past values, "
                         "or use parsers.JsonParser")

    def save_power_metrics(self, metrics: dict[str, Any], date: Any = None) -> None:
        """Raises NotImplementedError: the gauges are measured where they are served."""
        raise NotImplementedError("PrometheusClient serves only its own measurements; use parsers.JsonParser")

    def save_exp_metrics(self, metrics: dict[str, Any]) -> None:
        """Raises NotImplementedError, as Prometheus accepts no figures."""
        raise NotImplementedError("PrometheusClient stores no figures; use parsers.JsonParser")


class Serving(Beside):
    """`wattle serve`, from start to stop. pid: the process reported separately; 0: this one."""

    def __init__(self, client: PrometheusClient, pid: int, period_s: float) -> None:
        super().__init__()
        program = _program.find()
        if program is None:
            raise RuntimeError("cannot find the program wattle in the package or in PATH")
        self._client = client
        # A session of its own: Ctrl-C is for the program, which determines the end.
        self._process = subprocess.Popen([program, "serve", *client.arguments(pid, period_s)],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         start_new_session=True, text=True, encoding="utf-8", errors="replace")
        client.url = self._wait_for_start()
        _running.add(self)

    def __repr__(self) -> str:
        return f"<Serving pid={self.pid} {'ended' if self._ended else 'running'} {self._client.url}>"

    @property
    def pid(self) -> Optional[int]:
        return self._process.pid

    def is_alive(self) -> bool:
        return not self._ended and self._process.poll() is None

    def _wait_for_start(self) -> str:
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            _, found, rest = line.partition(STARTED)
            if found:
                return rest.split(" ", 1)[0]
            said.append(line)
        status = self._process.wait()
        self._process.stderr.close()
        why = said[0].strip().removeprefix("wattle: ") if said else f"exit status {status}"
        raise (ValueError if status == 2 else RuntimeError)(f"wattle serve: {why}")

    def _end(self) -> None:
        if self._process.poll() is not None:  # before it was asked to
            self._fail("the server", RuntimeError(f"it had ended with status {self._process.returncode}"))
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._client.url = None
