"""AIPowerMeter's interface: lists of processes, ends of all kinds, the whole machine, command lines, model cards."""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
from aipowermeter_parts import DOOR, IMPORTS, lines_of, read
from harness import BURNER, main, near, test, wait_until

from wattle.compat.deep_learning_power_measure.power_measure import _summary, experiment, parsers


@test
def lists_of_pids(workdir):
    """two burners with their children, one of which outlives the other; ended pids are left out"""
    gone = workdir.start("0", program="sleep")
    gone.wait()
    first, second = workdir.start("cpu", "0.3", program=BURNER), workdir.start("cpu", "0.9", program=BURNER)
    driver = parsers.JsonParser(workdir.folder / "out")
    process, queue = experiment.Experiment(driver).measure_from_pid_list([first.pid, second.pid, gone.pid], period=0.1)
    process.join(30)
    assert process.exitcode == 0, queue.get()
    near(read(workdir).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 1.2, absolute=0.12)
    sources = json.loads((workdir.folder / "out/metadata.json").read_text())["provenance"].values()
    assert ("ESTIMATED" in (read(workdir).db_driver.get_description() or "")) == ("estimated" in sources), sources
    many = [workdir.start("30", program="sleep") for _ in range(150)]
    _, queue = experiment.Experiment(driver).measure_from_pid_list(many, period=0.1)
    wait_until(lambda: len(workdir.rows("select distinct pid from process_sample", "out/wattle.sqlite")) == 150,
               "a sample of each")
    queue.put(experiment.STOP_MESSAGE)
    uses = [line["metrics"]["cpu"]["per_process_mem_use_abs"] for line in lines_of(workdir) if isinstance(line, dict)]
    assert {str(process.pid) for process in many} in [set(use) for use in uses], uses
    for wrong, text in (([gone.pid], "ended"), ([], "empty"), (["x"], "is not a process")):
        try:
            experiment.Experiment(driver).measure_from_pid_list(wrong)
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{wrong} was accepted")


@test
def wrong_periods(workdir):
    """period of 0, of an hour and more, or of a text: refused before anything starts"""
    measured = experiment.Experiment(parsers.JsonParser(workdir.folder / "out"))
    for period in (0, -1, 1e9, "2", None, True):
        try:
            measured.measure_yourself(period=period)
        except (ValueError, TypeError) as error:
            assert "period" in str(error), error
        else:
            raise AssertionError(f"period={period!r} was accepted")


@test
def ends_of_programs(workdir):
    """killed, ended by an exception, or exited: recorded data are available to readers of the folder"""
    begin = IMPORTS + """
experiment.Experiment(parsers.JsonParser(sys.argv[1])).measure_yourself(period=0.05)
work(0.5)
"""
    for name, end, status in (("killed", "os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
                              ("raised", "raise RuntimeError('no')", 1), ("ended", "", 0)):
        done = workdir.finish(workdir.start("-c", begin + end, name, program=sys.executable))
        assert done.returncode == status, done
        results = read(workdir, name)
        assert results.get_exp_duration()[0] > 0.3
        near(results.get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.5, absolute=0.2)
        assert (workdir.folder / name / "power_metrics.json").exists()


@test
def forked_children(workdir):
    """children: measured with their parent; a child that ends does not end the parent's recording"""
    program = IMPORTS + """
import multiprocessing
p, q = experiment.Experiment(parsers.JsonParser("out")).measure_yourself(period=0.1)
if os.fork() == 0:
    q.put(experiment.STOP_MESSAGE)
    sys.exit(0)
os.wait()
worker = multiprocessing.get_context("fork").Process(target=work, args=(0.5,))
worker.start()
worker.join()
assert p.is_alive()
q.put(experiment.STOP_MESSAGE)
"""
    done = workdir.finish(workdir.start("-c", program, program=sys.executable))
    assert done.returncode == 0, done
    near(read(workdir).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.5, absolute=0.2)


@test
def the_whole_machine(workdir):
    """monitor_machine: records all processes until it is asked to end"""
    program = IMPORTS + "experiment.Experiment(parsers.JsonParser('out')).monitor_machine(period=0.1)\nprint('ended')\n"
    burner = workdir.start("cpu", "60", program=BURNER)
    monitor = workdir.start("-c", program, program=sys.executable)
    wait_until(lambda: (workdir.folder / "out/wattle.sqlite").exists() and
               len(workdir.rows("select t_ns from sample", "out/wattle.sqlite")) > 3, "samples")
    monitor.send_signal(signal.SIGTERM)
    done = workdir.finish(monitor)
    assert done.returncode == 0 and done.stdout == "ended\n", done
    uses = [line["metrics"]["cpu"]["per_process_cpu_uses"] for line in lines_of(workdir) if isinstance(line, dict)]
    assert any(str(burner.pid) in one for one in uses), uses


@test
def command_lines(workdir):
    """--cmd: quoted as in a shell; its status, --cont, the reader and its curves"""
    def run(*arguments, module=DOOR, status=0):
        done = workdir.finish(workdir.start("-m", module, "--output_folder", "out", *arguments, program=sys.executable))
        assert done.returncode == status, done
        return done
    burn = f"'{BURNER}' cpu 0.3 > 'a file' && test -s 'a file'"
    assert "EXPERIMENT SUMMARY" in run("--cmd", burn).stdout
    near(read(workdir).get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.3, absolute=0.06)
    run("--cmd", f"{burn}; exit 3", "--cont", "True", status=3)
    assert len(read(workdir).get_curve("total_mem_use")) == 2
    run("--cmd", burn, "--cont", "False")
    assert len(read(workdir).get_curve("total_mem_use")) == 1
    run("--curve", "total_mem_use,per_process_cpu_uses", "--saveto", "a.png", module=f"{DOOR}.power_measure.experiment")
    assert (workdir.folder / "a.png").stat().st_size > 1000
    assert "no metric 'nothing'" in run("--curve", "nothing", status=125).stderr
    assert "use True or False" in run("--cmd", "true", "--cont", "perhaps", status=2).stderr
    assert "Not a directory" in run("--cmd", "true", "--output_folder", "a file/x", status=125).stderr
    assert "folder none does not exist" in workdir.finish(workdir.start("-m", DOOR, "--output_folder", "none",
                                                                        program=sys.executable)).stderr


@test
def two_runs_in_one_folder(workdir):
    """folder in which another program records: not erased; this program's own recording ends before its next one"""
    driver = parsers.JsonParser(workdir.folder / "out")
    first, _ = experiment.Experiment(driver).measure_yourself(period=0.05)
    try:
        experiment.ExpResults(parsers.JsonParser(workdir.folder / "out"))  # it may have no sample yet
    except ValueError as error:
        assert "no recording" in str(error)
    again = IMPORTS + "experiment.Experiment(parsers.JsonParser('out'))"
    done = workdir.finish(workdir.start("-c", again, program=sys.executable))
    assert done.returncode == 1 and "is still recording here" in done.stderr, done
    second, queue = experiment.Experiment(driver).measure_yourself(period=0.05)
    assert not first.is_alive() and second.is_alive()
    time.sleep(0.2)
    queue.put(experiment.STOP_MESSAGE)
    assert len(read(workdir).get_curve("total_mem_use")) == 1

    other = parsers.SqlParser(workdir.folder / "all.sqlite")
    recordings = [experiment.Experiment(other, cont=True).measure_yourself(period=0.05) for _ in range(2)]
    time.sleep(0.2)
    for _, queue in recordings:
        queue.put(experiment.STOP_MESSAGE)
    assert len(workdir.rows("select distinct recording from aipm_power_metric", "all.sqlite")) == 2


@test
def model_card(workdir):
    """torch model: its parameters and multiply-adds are stored with the run and in the summary"""
    import torch
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 1, 3))
    driver = parsers.JsonParser(workdir.folder / "out")
    measured = experiment.Experiment(driver, model=model, input_size=(1, 3, 128, 128))
    _, queue = measured.measure_yourself(period=0.1)
    model(torch.zeros(1, 3, 128, 128))
    queue.put(experiment.STOP_MESSAGE)
    card = json.loads((workdir.folder / "out/model_summary.json").read_text())
    # AIPowerMeter's documentation: 28 parameters and 444528 mac operations
    assert card["total_params"] == 28 and card["total_mult_adds"] == 126 * 126 * 28, card
    assert card["multiply_adds"] == 126 * 126 * 27, card
    assert "28 parameters and  444528 mac operations" in "\n".join(_summary.lines(experiment.ExpResults(driver)))
    assert experiment.ExpResults(driver).model_card == card
    try:
        experiment.Experiment(driver, model=model)
    except ValueError as error:
        assert "input_size" in str(error)
    else:
        raise AssertionError("a model without input_size was accepted")


main()
