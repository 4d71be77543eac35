"""The process tree: every process counts, however it detaches. Compared with the kernel's own sum."""
from harness import BURNER, main, near, test


@test
def one_process(workdir):
    """one computing process: CPU time agrees with its own rusage"""
    report, expected_values = workdir.burn("cpu", "1")
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"], relative=0.01)
    near(report["cpu"]["main_cpu_s"], expected_values["self_cpu_s"], relative=0.01)
    near(report["cpu"]["descendants_cpu_s"], 0, absolute=0.001)
    assert report["cpu"]["processes_seen"] == 1, report["cpu"]


@test
def threads(workdir):
    """threads: counted, with their time"""
    report, expected_values = workdir.burn("threads", "6", "0.2")
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"], relative=0.01)
    assert report["resource_usage"]["cpu_utilization"]["main_n_threads"] == 7, report["resource_usage"]


@test
def a_thousand_short_children(workdir):
    """1,000 children of 2 ms: CPU time within 1 % of the kernel's own sum, all of them seen"""
    report, expected_values = workdir.burn("children", "1000", "2")
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"] + expected_values["children_cpu_s"],
         relative=0.01)
    near(report["cpu"]["descendants_cpu_s"], expected_values["children_cpu_s"], relative=0.01)


@test
def process_is_not_waited_for(workdir):
    """children reaped by the kernel (SIGCHLD ignored) that live for several samples: counted"""
    report, expected_values = workdir.burn("ignored", "4", "400", options=["-i", "10ms"])
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"] + 1.6, relative=0.05)


@test
def orphans(workdir):
    """grandchild with a session of its own, whose parents have ended: counted"""
    report, _ = workdir.burn("orphan", "1")
    near(report["cpu"]["target_cpu_s"], 1, relative=0.02, absolute=0.02)
    near(report["cpu"]["descendants_cpu_s"], 1, relative=0.02, absolute=0.02)


@test
def daemons(workdir):
    """--wait-all: a daemon that outlives the command counts to its end"""
    report, _ = workdir.burn("daemon", "0.7", options=["--wait-all"])
    near(report["cpu"]["target_cpu_s"], 0.7, relative=0.03, absolute=0.02)
    assert report["run"]["duration_s"] >= 0.69, report["run"]


@test
def zombies(workdir):
    """ended children that are not waited for yet: no effect"""
    report, expected_values = workdir.burn("zombies", "50", "500")
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"] + expected_values["children_cpu_s"],
         absolute=0.02)


@test
def fork_bomb(workdir):
    """tree of 2^7 leaves that forks as fast as it can: the sum is the kernel's"""
    report, expected_values = workdir.burn("bomb", "7", "5")
    near(report["cpu"]["target_cpu_s"], expected_values["self_cpu_s"] + expected_values["children_cpu_s"],
         relative=0.01)


@test
def exec_keeps_the_process(workdir):
    """process that executes another program: stays the main one, with all its time"""
    report, expected_values = workdir.burn("exec", "0.4")
    near(report["cpu"]["main_cpu_s"], expected_values["self_cpu_s"], relative=0.01)
    assert expected_values["self_cpu_s"] > 0.79 and report["cpu"]["processes_seen"] == 1, (expected_values,
                                                                                           report["cpu"])


@test
def a_hundred_sleepers(workdir):
    """100 concurrent children: all are found"""
    report, _ = workdir.burn("tree", "100", "2")
    assert report["cpu"]["processes_seen"] == 101, report["cpu"]
    assert report["cpu"]["processes_sampled"] == 101, report["cpu"]
    assert max(row[0] for row in workdir.rows("select processes from sample")) == 101


@test
def a_pipeline(workdir):
    """shell pipeline: the sum over all its programs"""
    report, done = workdir.report("--", "sh", "-c", f"'{BURNER}' cpu 0.3 | cat | '{BURNER}' cpu 0.2 | cat")
    near(report["cpu"]["target_cpu_s"], 0.5, absolute=0.05)
    assert report["cpu"]["processes_seen"] >= 5, report["cpu"]


@test
def per_process(workdir):
    """--per-process: keeps a row for each process and sample; their CPU times add up"""
    report, _ = workdir.report("--per-process", "-i", "20ms", "--", "sh", "-c",
                            f"'{BURNER}' cpu 0.4 & '{BURNER}' cpu 0.2; wait")
    pids = workdir.rows("select count(distinct pid) from process_sample")[0][0]
    assert pids >= 3, pids
    named = dict(workdir.rows("select command, max(cpu_ns) from process where cpu_ns is not null group by pid"))
    assert any("burner" in (command or "") for command in named), named


@test
def referee(workdir):
    """perf task-clock: agrees within 10 %, where this kernel allows it"""
    workdir.burn("cpu", "0.5")
    last = workdir.rows("select referee_cpu_ns from sample where referee_cpu_ns is not null order by t_ns desc limit 1")
    if last:
        near(last[0][0] * 1e-9, 0.5, relative=0.1)


if __name__ == "__main__":
    main()
