"""wattle.open_job: a job in Python equals the program's report; unreadable jobs are an error."""
import json

import synthetic_jobs
from harness import WATTLE, main, near, test
from package import python


@test
def the_same_figures(workdir):
    """energies and times of ranks, nodes and blocks: those of `wattle report DIR --format json`"""
    expected_values = synthetic_jobs.make(WATTLE, workdir.folder / "runs", "imbalanced")
    lines, _ = python(workdir, """
        import json, wattle
        job = wattle.open_job("runs")
        print(json.dumps([job.id, job.energy_j, job.ranks["energy_j"].tolist(), job.nodes["energy_j"].tolist(),
                          job.blocks.find("forward")["total_j"], job.imbalance, job.warnings, len(job.ranks.to_pandas())]))
        print(repr(job))
        print("rank" in job._repr_html_() and "forward" in job._repr_html_())
    """)
    done = workdir.wattle("report", "runs", "--format", "json")
    report = json.loads(done.stdout)
    blocks = {block["name"]: block["energy"]["total_j"] for block in report["blocks"]}
    assert json.loads(lines[0]) == ["4242", report["energy"]["total_j"], [row["energy_j"] for row in report["ranks"]],
                                    [row["energy_j"] for row in report["nodes"]], blocks["forward"],
                                    report["imbalance"], report["warnings"], 8]
    near(report["energy"]["total_j"], expected_values["total_j"], relative=0.01)
    assert lines[1].startswith("<wattle job 4242: 8 ranks on 4 nodes, ") and lines[2] == "True", lines


@test
def unknown_stays_unknown(workdir):
    """no sensor: energies are None in rows and NaN in columns, never 0"""
    synthetic_jobs.make(WATTLE, workdir.folder / "runs", "no_energy")
    lines, _ = python(workdir, """
        import json, math, wattle
        job = wattle.open_job("runs")
        print(json.dumps([job.energy_j, job.ranks[0]["energy_j"], all(map(math.isnan, job.ranks["energy_j"]))]))
    """)
    assert json.loads(lines[0]) == [None, None, True], lines


@test
def problems_are_reported(workdir):
    """no folder, no run in it, several jobs, a wrong id, a folder and a store: an exception with the reason"""
    synthetic_jobs.make(WATTLE, workdir.folder / "runs", "clutter")
    (workdir.folder / "empty").mkdir()
    lines, _ = python(workdir, """
        import wattle
        for arguments, options in [(["nowhere"], {}), (["empty"], {}), (["runs"], {}), (["runs"], {"job": "7"}),
                                   (["runs"], {"store": "postgresql:///x"}), ([], {})]:
            try:
                print(wattle.open_job(*arguments, **options))
            except (OSError, ValueError) as error:
                print(type(error).__name__, str(error).replace("\\n", " "))
        print(wattle.open_job("runs", job="4242"))
    """)
    for line, words in zip(lines, [("FileNotFoundError", "nowhere"), ("ValueError", "empty"),
                                   ("ValueError", "4242", "999"),
                                   ("ValueError", "7"), ("ValueError", "either a folder or a store"),
                                   ("ValueError", "either a folder or a store"),
                                   ("<wattle job 4242: 4 ranks",)], strict=True):
        assert all(word in line for word in words), (line, words)


if __name__ == "__main__":
    main()
