"""The pages for users of other tools: their Python runs as it stands, one block after the other."""
import re

from caps_common import STEPS, Machine
from harness import TESTS, main, test
from package import python

BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(name):
    """Those to be run, and those that are marked."""
    found = BLOCK.findall((TESTS.parent / f"docs/{name}.md").read_text(encoding="utf-8"))
    return [block for mark, block in found if not mark], [block for mark, block in found if mark]


@test
def from_codecarbon(workdir):
    """docs/migrate-codecarbon.md: energies and the carbon figure are known, the row has CodeCarbon's columns"""
    ours, theirs = blocks("migrate-codecarbon")
    assert len(ours) == 8 and len(theirs) == 5 and all("wattle" not in block for block in theirs)
    python(workdir, "".join(ours) + """
assert run["duration_s"] > 0 and energy_kwh > 0 and emissions_kg > 0 and load.total_j > 0
assert abs(emissions_kg - energy_kwh * wattle.carbon.region("FR").g_per_kwh / 1000) < 1e-9
header, row = open("energy.csv").read().splitlines()
assert header == "timestamp,project_name,run_id,duration,energy_consumed,energy_error" and len(row.split(",")) == 6
assert open("samples.csv").readline().startswith("t_ns,timestamp,")
""")


@test
def from_zeus(workdir):
    """docs/migrate-zeus.md: windows with the energy of a GPU; the search for a limit on a simulated card"""
    ours, theirs = blocks("migrate-zeus")
    tune, = [block for block in theirs if "wattle.cap.tune" in block]
    assert len(ours) == 5 and len(theirs) == 3
    machine = Machine(workdir)
    machine.python("".join(ours) + """
assert window.domains["gpu-0"][0] == window.gpu_j >= 0 and m.gpu_j >= 0  # 0: the counter was not updated meanwhile
assert window.error_j > 0 and window.target_j >= 0 and window.total_j > 0
""")
    machine.python(STEPS + "train_one_step = step\n" + tune.replace("seconds=10", "seconds=0.2, settle=0.01"))
    assert machine.limit_w() == 400 and len(set(machine.log())) >= 3, machine.log()


if __name__ == "__main__":
    main()
