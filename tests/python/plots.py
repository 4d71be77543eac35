"""run.plot(): every kind that a run has, by matplotlib, on given or new axes; refusals."""
import json

import synthetic_runs
from harness import WATTLE, main, near, test
from package import python

DRAW = """
    import json, warnings
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot
    import wattle
    run = wattle.open("run.sqlite")
    try:
        run.plot("nothing")
    except ValueError as error:
        refusal = str(error)
    kinds = refusal.split("it has ")[1].split(", ") if "it has " in refusal else []
    drawn, parts = {}, []
    for kind in [kind for kind in kinds if not kind.startswith("metric:")]:
        ax = matplotlib.pyplot.subplots()[1]
        assert run.report.plot(kind, ax) is ax
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fonts that lack what a name has
            ax.figure.canvas.draw()
        drawn[kind] = [ax.get_xlabel(), ax.get_ylabel()]
        if kind == "ledger":
            parts = [[bar.get_label(), bar[0].get_x(), bar[0].get_width()] for bar in ax.containers]
        matplotlib.pyplot.close("all")
    axis = run.charts["axis"]
    power = {s["name"]: sum((m or 0) * (to - begin) for m, begin, to in zip(s["mean"], axis["from_s"], axis["to_s"]))
             for c in run.charts["charts"] if c["id"] == "power" for s in c["series"]}
    print(json.dumps({"refusal": refusal, "drawn": drawn, "parts": parts, "power": power, "report": run.report["energy"]}))
"""


def drawn(workdir, kind):
    synthetic_runs.make(WATTLE, workdir.folder / "run.sqlite", synthetic_runs.KINDS[kind])
    lines, _ = python(workdir, DRAW)
    return json.loads(lines[-1])


@test
def every_kind(workdir):
    """all kinds of a run with a GPU: drawn, with units on the axes; the integral of power is the energy"""
    found = drawn(workdir, "training")
    assert {"power", "cpu", "memory", "gpu_utilization", "spans", "blocks", "ledger"} <= set(found["drawn"]), found
    assert found["drawn"]["power"][1] == "Power, W" and "kJ" in found["drawn"]["blocks"][0], found["drawn"]
    near(found["power"]["total"], found["report"]["total_j"], relative=1e-4)
    near(found["power"]["target"], found["report"]["ledger"]["target_j"], relative=1e-4)


@test
def idle_unknown(workdir):
    """unknown idle energy: no part of the bar, and the others lie side by side and fill it"""
    found = drawn(workdir, "training")
    assert found["report"]["ledger"]["idle_j"] is None, found["report"]["ledger"]
    assert found["parts"] and not any("idle" in label for label, _, _ in found["parts"]), found["parts"]
    end = 0
    for _, left, width in found["parts"]:
        near(left, end, relative=1e-9)
        end = left + width
    near(end * 1e3, found["report"]["total_j"], relative=1e-4)  # kJ


@test
def hostile_names(workdir):
    """names with $, control characters and 10,000 letters: drawn as text"""
    assert "blocks" in drawn(workdir, "hostile")["drawn"]


@test
def nothing(workdir):
    """empty run: no picture, and a message"""
    assert "nothing to show" in drawn(workdir, "empty")["refusal"]


if __name__ == "__main__":
    main()
