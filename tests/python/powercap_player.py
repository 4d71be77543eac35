"""A package's energy counter whose power the test sets at any moment, updated by a process of its own once in
PERIOD_S.

The test's side: player.watts(W) from now on. The true energies are in player.joules, one for each setting.
"""
import mmap
import os
import struct
import subprocess
import sys
import time

ZONE = "devices/virtual/powercap/intel-rapl/intel-rapl:0"
PERIOD_S = 0.011
SLOTS, SLOT = 64, struct.Struct("ddd")  # since, power until now, energy until since
START_UJ = 1000000


def tree(workdir):
    top = workdir.tree("sys", {f"{ZONE}/name": "package-0\n", f"{ZONE}/max_energy_range_uj": "262143328850\n",
                            f"{ZONE}/enabled": "0\n", f"{ZONE}/energy_uj": f"{START_UJ:<22}\n"})
    link = top / "class/powercap/intel-rapl:0"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(f"../../{ZONE}")
    return top


class Player:
    def __init__(self, workdir, top, watts):
        path = workdir.folder / "power"
        path.write_bytes(bytes(8 + SLOTS * SLOT.size))
        self._file = open(path, "r+b")
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._n, self._energy_j, self._since, self._watts = 0, 0.0, time.monotonic(), watts
        self._put()
        self.process = subprocess.Popen([sys.executable, __file__, str(path), str(top / ZONE / "energy_uj")])

    def _put(self):
        """The last setting goes into the next slot first, then its number: the reader sees complete ones."""
        self._n += 1
        SLOT.pack_into(self._map, 8 + self._n % SLOTS * SLOT.size, self._since, self._watts, self._energy_j)
        struct.pack_into("q", self._map, 0, self._n)

    def watts(self, watts):
        """From now on; returns the joules since the previous setting."""
        now = time.monotonic()
        joules = self._watts * (now - self._since)
        self._energy_j += joules
        self._since, self._watts = now, watts
        self._put()
        return joules

    def close(self):
        self.process.kill()
        self.process.wait()


def play(path, counter):
    from harness import run_first
    run_first()
    with open(path, "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    out = os.open(counter, os.O_WRONLY)
    while os.getppid() > 1:
        time.sleep(PERIOD_S - time.monotonic() % PERIOD_S)
        now = time.monotonic()  # before the setting, which may change while this process waits: the counter would decrease later
        (n,) = struct.unpack_from("q", shared, 0)
        since, watts, energy_j = SLOT.unpack_from(shared, 8 + n % SLOTS * SLOT.size)
        uj = START_UJ + round((energy_j + watts * (max(now, since) - since)) * 1e6)
        os.pwrite(out, f"{uj:<22}\n".encode(), 0)


if __name__ == "__main__":
    play(*sys.argv[1:])
