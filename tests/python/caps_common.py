"""Shared by the tests of wattle.cap: fake cards, and programs that use them."""
import sys
import time

from gpu_card import Card
from harness import BUILD, wait_until
from package import python

LIBRARY = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"
IMPORTS = "import os, signal, sys, threading, time, warnings\nimport wattle\n"
# A step of the program is as fast as the card under its limit: the last line of the fake's log.
STEPS = IMPORTS + """
from gpu_card import Card
card = Card(**CARD)
def limit_w(gpu=0):
    try:
        lines = [line.split() for line in open("cards.limits")]
    except FileNotFoundError:
        lines = []
    return next((int(line[2]) / 1000 for line in reversed(lines) if line[1] == str(gpu)), card.default_w)
due = time.monotonic()
def step():
    global due
    due = max(due, time.monotonic() - 0.5) + card.step(limit_w(), 0.01)[1]  # what came late is made up for
    time.sleep(max(due - time.monotonic(), 0))
"""


class Machine:
    """Cards for the programs of one test."""

    def __init__(self, workdir, *cards):
        self.workdir = workdir
        self.cards = cards or (Card(),)
        (workdir.folder / "cards").write_text("".join(card.text() for card in self.cards))
        (workdir.folder / "sys").mkdir()
        self.environment = {"WATTLE_NVML": str(LIBRARY), "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
                            "WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_SYSFS": str(workdir.folder / "sys"),
                            "WATTLE_HELPER": "off", "CUDA_VISIBLE_DEVICES": None}

    def python(self, code, *arguments, **options):
        environment = {**self.environment, **options.pop("env", {})}
        return python(self.workdir, code.replace("**CARD", "**{}"), *arguments, env=environment, **options)

    def start(self, code):
        """Runs it until it has printed a line."""
        (self.workdir.folder / "started.py").write_text(code)
        process = self.workdir.start("started.py", program=sys.executable, env=self.environment)
        line = process.stdout.readline().decode().strip()
        assert line, process.stderr.read().decode()
        return process, line

    def log(self, gpu=0, name="limits"):
        """Limits that were set, in W (or MHz), in order."""
        try:
            lines = [line.split() for line in (self.workdir.folder / f"cards.{name}").read_text().splitlines()]
        except FileNotFoundError:
            return []
        return [int(line[2]) / (1000 if name == "limits" else 1) for line in lines if int(line[1]) == gpu]

    def limit_w(self, gpu=0):
        return (self.log(gpu) or [self.cards[gpu].default_w])[-1]

    def another_program_sets(self, watts, gpu=0):
        with open(self.workdir.folder / "cards.limits", "a", encoding="ascii") as file:
            file.write(f"{time.monotonic_ns()} {gpu} {watts * 1000} 1\n")

    def is_back(self, watts=400, seconds=5.0):
        """And the journal is empty."""
        wait_until(lambda: self.limit_w() == watts, "the limit is restored", seconds)
        wait_until(lambda: not self.leases(), "the journal is empty", seconds)
        return True

    def leases(self):
        return list((self.workdir.folder / "state/caps").glob("*.lease"))
