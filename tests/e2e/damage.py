"""Every machine of tests/machines/, damaged at random: files truncated, emptied, filled with garbage, replaced by
folders, loops and fifos, before wattle reads them and during the measurement. wattle must end in time, print valid
output, and its figures must agree with each other. A seed names the damage, so failures repeat."""
import json
import os
import random
import shutil

from harness import TESTS, sum_without_none, main, test

MACHINES = sorted(folder.name for folder in (TESTS / "machines").iterdir() if (folder / "sys").is_dir())
SEEDS = int(os.environ.get("DAMAGE_SEEDS", "2"))
WRONG = [b"", b"\n", b"-1\n", b"18446744073709551616\n", b"9" * 400 + b"\n", b"12 J\n", b"nan\n",
         b"\0" * 64, b"\xff\xfe\x00",
         b"0x10\n", b"1e9\n", b" 5 \n", b"5\n6\n", b"/../..\n", b"%s%n\n", b"A" * 100000]


def damage(path, chance):
    """A defect of a file; a folder may only vanish."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
        return
    kind = chance.randrange(8)
    if kind < 4:
        path.unlink()
        path.write_bytes(chance.choice(WRONG))
        return
    path.unlink()
    if kind == 4:
        path.mkdir()
    elif kind == 5:
        path.symlink_to(path.name)
    elif kind == 6:
        os.mkfifo(path)


def choose(top, chance, count):
    """Some of the tree's files, and occasionally a folder below its first level."""
    files = sorted(path for path in top.rglob("*") if path.is_file() or path.is_symlink())
    folders = sorted(path for path in top.rglob("*") if path.is_dir() and not path.is_symlink() and
                     len(path.relative_to(top).parts) > 2)
    chosen = chance.sample(files, min(count, len(files)))
    return chosen + (chance.sample(folders, 1) if folders and chance.random() < 0.3 else [])


def spoil(top, chance, share):
    count = 1 + int(len(list(top.rglob("*"))) * share)
    for path in choose(top, chance, count):
        if path.is_symlink() or path.exists():
            damage(path, chance)


def check_energy(energy, what):
    total_j = energy["total_j"]
    for domain in energy["domains"]:
        assert domain["energy_j"] is None or (domain["energy_j"] >= 0 and domain["error_j"] >= 0), (what, domain)
        if domain["energy_j"] is not None:  # no machine here draws more than 50 kW
            assert domain["energy_j"] < 50000 * 60, (what, domain)
    if total_j is not None:
        rows = sum_without_none(energy["ledger"])
        assert abs(rows - total_j) <= 1e-9 * max(1, total_j), (what, energy["ledger"], total_j)


def strict(text):
    """JSON without NaN and Infinity, which Python would accept."""
    return json.loads(text, parse_constant=lambda name: 1 / 0)


def check_run(workdir, top, what):
    process = workdir.start("run", "-q", "--disable-logs", "--overwrite", "-o", "run.sqlite", "--json", "-", "-i",
                            "20ms",
                            "--", "sh", "-c", "echo ready >&2; sleep 0.15", env={"WATTLE_SYSFS": str(top / "sys")})
    assert process.stderr.readline() == b"ready\n", what
    spoil(top / "sys", random.Random(f"{what} later"), 0.05)
    done = workdir.finish(process)
    assert done.returncode == 0, (what, done.stderr)
    check_energy(strict(done.stdout)["energy"], what)


def check_sensors(workdir, top, what):
    done = workdir.wattle("sensors", "--json", env={"WATTLE_SYSFS": str(top / "sys"),
                                                    "WATTLE_PROCFS": str(top / "proc")})
    assert done.returncode in (0, 1), (what, done.stderr)
    names = [row["domain"] for row in strict(done.stdout)["sensors"] if row["used"]]
    assert len(names) == len(set(names)), (what, names)


def check_machine(workdir, machine):
    for seed in range(SEEDS):
        what = f"{machine} {seed}"
        top = workdir.folder / what.replace(" ", "-")
        shutil.copytree(TESTS / "machines" / machine, top, symlinks=True)
        spoil(top / "sys", random.Random(what), 0.1 * (seed + 1))
        spoil(top / "proc", random.Random(what), 0.1)
        check_run(workdir, top, what)
        check_sensors(workdir, top, what)
        shutil.rmtree(top)


for name in MACHINES:
    def one(workdir, machine=name):
        check_machine(workdir, machine)
    one.__doc__ = f"{name}, damaged before and during the run: measured or reported as unknown"
    one.__name__ = name
    test(one)

if __name__ == "__main__":
    main()
