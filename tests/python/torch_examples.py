"""The examples in examples/ that train: run as by a user, and their figures add up."""
import json
import re

from harness import TESTS, main, near, test
from package import python

EXAMPLES = TESTS.parent / "examples"


def example(workdir, name, *arguments):
    """Its lines."""
    return python(workdir, (EXAMPLES / name).read_text(), *arguments)[0]


def page_lists_the_rows(workdir):
    """The page's layers are the rows of the program, containers and the rest included: they add up."""
    rows = json.loads(workdir.rows("SELECT value FROM run WHERE key = 'torch_layers'")[0][0])
    ledger = json.loads(workdir.wattle("report", "run.sqlite", "--format", "json").stdout)["energy"]["ledger"]
    near(sum(row["energy_j"] for row in rows), ledger["target_j"], relative=1e-9)
    page = workdir.wattle("report", "run.sqlite", "--format", "html").stdout
    table = re.search(r'<table id="layers-table".*?</table>', page, re.S)[0]
    told = {}
    for line in re.findall(r'<tr><th scope="row".*?</tr>', table, re.S):
        name, *cells = re.findall(r"<t[hd].*?</t[hd]>", line, re.S)
        told[re.sub("<[^>]*>", "", name)] = [re.search('data-value="([^"]*)"', cell) for cell in cells[4:6]]
    assert len(told) == len(rows) > 60, (len(told), len(rows))
    energies = [float(cells[1][1]) for cells in told.values()]
    assert energies == sorted(energies, reverse=True), energies
    for row in rows:
        name = "outside layers" if row["is_outside"] else row["name"] or "(model)"
        time_s, energy_j = (float(cell[1]) for cell in told[name])
        near(time_s, row["time_s"], relative=1e-6)
        near(energy_j, row["energy_j"], relative=1e-6)


@test
def training(workdir):
    """ResNet-18: layers with joules and multiply-adds, joules per step and image; the figures stay in the run file"""
    lines = example(workdir, "train_resnet18.py", "--size", 32, "--batch", 2, "--steps", 3, "--epochs", 2,
                    "--output", "run.sqlite")
    assert lines[0].split() == ["layer", "J", "share", "J/GMAC"], lines
    assert any(re.match(r"layer4\.\d\.conv\d +[0-9.]+ +[0-9.]+% +[0-9.]+$", line) for line in lines), lines
    #: 37.01e6 multiply-adds for 32 x 32 pixels: convolutions have 1 / 49 of those for 224 x 224
    assert any("after 12 images, 0.0370 GMAC each" in line for line in lines), lines
    step, image = map(float, re.search(r"([0-9.]+) J a step, ([0-9.]+) J an image", "\n".join(lines)).groups())
    near(step, 2 * image, absolute=0.002)
    assert workdir.rows("SELECT count(*) FROM span WHERE name = 'step' AND close = 'ended'") == [(6,)]
    summary = json.loads(workdir.rows("SELECT value FROM run WHERE key = 'meta.model_summary'")[0][0])
    assert summary["parameters"] == 11_689_512 - 997 * 513, summary["parameters"]
    page_lists_the_rows(workdir)


@test
def batch_sizes(workdir):
    """two batch sizes side by side, each with milliseconds and joules per image, in wattle.compare's order"""
    lines = example(workdir, "batch_sizes.py", 2, 4, "--size", 32, "--images", 8, "--rounds", 1)
    rows = [line.split() for line in lines[1:3]]
    assert [row[0] for row in rows] == ["2", "4"] and all(float(row[1]) > 0 for row in rows), lines
    joules = [float(re.search(r": ([0-9.]+) J", line)[1]) for line in lines[3:]]
    assert len(joules) == 2 and joules == sorted(joules), lines


if __name__ == "__main__":
    main()
