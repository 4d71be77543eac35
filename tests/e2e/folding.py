"""Energy of code blocks far shorter than the counter's update period, from the program to the table."""
import json

import c_programs
from harness import Skip, main, test

ZONE = "devices/virtual/powercap/intel-rapl/intel-rapl:0"
BLOCKS, SECONDS, PERIOD_MS = 10, 12, 47  # a period not in phase with the samples
# Errors are 95 % intervals: no block may be off by more than twice its own, and on average, weighted by energy, blocks
# are off by less than one. In one run of six the search for the update times ends at a neighbouring solution, with
# errors of 0.41 to 0.47. The simulations of tests/unit prove the accuracy of a good run.
ERROR_MOST = 0.6  # weighted by energy, over all blocks
WAITED_MOST = 0.05  # fraction of the time that the program waited for a CPU
SHARE_LEAST = 0.8   # of the energy that is the program's: others move the counter as well
LATE_S = 3e-4  # a simulated counter delayed more than this shows jitter that no machine has


def powercap(workdir):
    top = workdir.tree("sys", {f"{ZONE}/name": "package-0\n", f"{ZONE}/max_energy_range_uj": "262143328850\n",
                            f"{ZONE}/enabled": "0\n", f"{ZONE}/energy_uj": f"{1000000:<22}\n"})
    (top / "class/powercap").mkdir(parents=True)
    (top / "class/powercap/intel-rapl:0").symlink_to(f"../../{ZONE}")
    return top


def deviations(workdir, program, top):
    """{block: (joules, relative error of its power, stated error)}, the last two relative to the true power"""
    report, done = workdir.report("--", program, top / ZONE / "energy_uj", SECONDS, PERIOD_MS, BLOCKS,
                               env={"WATTLE_SYSFS": str(top)})
    expected_values = json.loads(done.stdout)
    if expected_values["late_s"] > LATE_S:
        raise Skip(f"the simulated counter was late by {expected_values['late_s'] * 1e3:.1f} ms, root mean square")
    if expected_values["waited_s"] > WAITED_MOST * SECONDS:
        raise Skip(f"the program waited {expected_values['waited_s']:.1f} s for a CPU")
    share = report["energy"]["ledger"]["target_j"] / report["energy"]["total_j"]
    if share < SHARE_LEAST:
        raise Skip(f"other programs used {1 - share:.0%} of the energy")
    found = {block["name"]: block for block in report["blocks"]}
    result = {}
    for name, true in expected_values["blocks"].items():
        block, true_j = found[name], true["energy_j"] * share
        assert block["num_calls"] == true["calls"] and block["energy"]["method"] in ("folded", "interpolated"), block
        off = block["energy"]["self_j"] / block["self_time_s"] * true["time_s"] / true_j - 1
        result[name] = true_j, off, block["energy"]["self_error_j"] / true_j
    return result


def by_energy(result, value):
    return sum(row[0] * abs(row[value]) for row in result.values()) / sum(row[0] for row in result.values())


@test
def known_powers(workdir):
    """blocks of 0.2 to 5 ms, 47 ms counter: powers within the stated errors, and errors small enough to be useful"""
    top, program = powercap(workdir), c_programs.build(workdir, "block_loop")
    result = deviations(workdir, program, top)
    assert all(abs(off) < 2 * error for _, off, error in result.values()), result
    assert by_energy(result, 1) < by_energy(result, 2) < ERROR_MOST, result


if __name__ == "__main__":
    main()
