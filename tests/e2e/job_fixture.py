"""A machine with simulated counters and the ranks of a job on it, shared by the tests of jobs."""
import os
import sys

from harness import BUILD, TESTS

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
RANGE_UJ = 60_000_000
# No variables from the environment of the tests themselves.
PREFIXES = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "TORCHELASTIC_", "PBS_", "LSB_", "FLUX_")
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "JOB_ID")
NO_JOB = {name: None for name in os.environ if name.startswith(PREFIXES) or name in NAMES}

class Machine:
    """A machine with counters, on which ranks run."""

    def __init__(self, workdir, *zones):
        self.workdir, self.top = workdir, workdir.folder / "sim"
        zones = zones or ("--zone", "package-0=50", "--zone", "package-0/dram=5")
        self.simulator = workdir.start(self.top, *zones, "--range", f"package-0={RANGE_UJ}", program=SIMULATOR)
        assert self.simulator.stdout.readline() == b"ready\n"
        self.environment = {**NO_JOB, "WATTLE_SYSFS": str(self.top)}

    def start(self, rank, size, *command, options=(), name="run-%r.sqlite", **more):
        environment = {**self.environment, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                       "LOCAL_WORLD_SIZE": str(size), **more}
        return self.workdir.start("run", "-q", "-i", "50ms", *options, "-o", name, "--", *command, env=environment)

    def joules(self, zone, from_ns, to_ns):
        return expected_values.energy_j(expected_values.load(self.top), zone, from_ns, to_ns)


def facts(workdir, path):
    return dict(workdir.rows("select key, value from run", path))


def finish_all(workdir, processes):
    for process in processes:
        done = workdir.finish(process)
        assert done.returncode == 0, done


READINGS = ("select t_ns, energy_uj, energy_raw_uj from device_sample join device on device_sample.device = device.id "
            "where device.name = '{}' and energy_uj is not null order by t_ns")


def rows_of(workdir, path, device):
    """Readings of a device's counter: (t_ns, energy_uj, energy_raw_uj)."""
    return workdir.rows(READINGS.format(device), path)


def has_energy(workdir, path, device="package-0"):
    return bool(rows_of(workdir, path, device))


def assert_one_after_the_other(pieces):
    """No two recorders have read at the same time."""
    spans = sorted((piece[0][0], piece[-1][0]) for piece in pieces if piece)
    assert spans and all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), spans


def sensor_events(workdir, path):
    return [text for text, in workdir.rows("select text from event where kind = 'sensors' order by t_ns", path)]


def joined(pieces, range_uj):
    """From the first reading of all ranks to the last: (from_ns, to_ns, J), joined by a simple algorithm."""
    pieces = sorted(piece for piece in pieces if piece)
    total_uj, first, end_raw = 0, pieces[0][0][0], None
    for piece in pieces:
        assert piece[0][2] is not None, f"the first reading of a piece has no raw value: {piece[0]}"
        raw = piece[0][2]
        if end_raw is not None:
            total_uj += (raw - end_raw) % (range_uj + 1)
        total_uj += piece[-1][1] - piece[0][1]
        end_raw = (raw + piece[-1][1] - piece[0][1]) % (range_uj + 1)
    return first, pieces[-1][-1][0], total_uj / 1e6
