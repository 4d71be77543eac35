"""Joules of code blocks far shorter than the time between two updates of the counter, from the program to the table."""
import json

import c_programs
from harness import Skip, main, test

ZONE = "devices/virtual/powercap/intel-rapl/intel-rapl:0"
BLOCKS, SECONDS, PERIOD_MS = 10, 12, 47  # a period in no step with the samples
LATE_S = 3e-4  # a simulated counter that is held up more than this shows jitter that no machine has


def powercap(room):
    top = room.tree("sys", {f"{ZONE}/name": "package-0\n", f"{ZONE}/max_energy_range_uj": "262143328850\n",
                            f"{ZONE}/enabled": "0\n", f"{ZONE}/energy_uj": f"{1000000:<22}\n"})
    (top / "class/powercap").mkdir(parents=True)
    (top / "class/powercap/intel-rapl:0").symlink_to(f"../../{ZONE}")
    return top


def deviations(room, program, top):
    """How far each block's power is from the truth, and the error that is stated, both as parts of it"""
    report, done = room.report("--", program, top / ZONE / "energy_uj", SECONDS, PERIOD_MS, BLOCKS,
                               env={"WATTLE_SYSFS": str(top)})
    truth = json.loads(done.stdout)
    if truth["late_s"] > LATE_S:
        raise Skip(f"the simulated counter was late by {truth['late_s'] * 1e3:.1f} ms, root mean square")
    share = report["energy"]["ledger"]["target_j"] / report["energy"]["total_j"]
    found = {block["name"]: block for block in report["blocks"]}
    result = {}
    for name, true in truth["blocks"].items():
        block, true_j = found[name], true["energy_j"] * share
        assert block["num_calls"] == true["calls"] and block["energy"]["method"] == "folded", block
        off = block["energy"]["self_j"] / block["self_time_s"] * true["time_s"] / true_j - 1
        result[name] = off, block["energy"]["self_error_j"] / true_j
    return result


@test
def known_powers(room):
    """blocks of 0.2 to 5 ms, 47 ms counter, whatever else runs here: powers within 10 %, in one of two short runs at least"""
    top, program = powercap(room), c_programs.build(room, "block_loop")
    for _ in range(2):
        result = deviations(room, program, top)
        inside = sum(abs(off) <= error for off, error in result.values())
        assert inside >= BLOCKS - 1, result
        if all(abs(off) <= 0.1 for off, _ in result.values()):
            return
    raise AssertionError(result)


if __name__ == "__main__":
    main()
