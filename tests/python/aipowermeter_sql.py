"""AIPowerMeter's interface with a database as its driver: SQLite, and a PostgreSQL started by the test."""
import datetime
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "e2e"))
from harness import BURNER, Skip, main, near, test

from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers

AT = datetime.datetime(2026, 3, 1, 10)
RECORD = {"cpu": {"intel_power": 10.0, "per_process_cpu_uses": {"12": 0.5, "13": None}, "total_mem_use": 5},
          "gpu": {"nvidia_draw_absolute": 90.0, "per_gpu_power_draw": {"0": 20.0, "1": 70.0},
                  "per_gpu_attributable_mem_use": {"1": {"12": 1000}}}}


class Postgresql:
    """A private server without a port, with the user `meter`; ends with the block."""

    def __enter__(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise Skip("no PostgreSQL server is installed")
        self.bin = pathlib.Path(programs[-1])
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="wpg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.as_user = []
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(self.folder, "postgres", "postgres")
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "meter", "--no-sync", "-E", "UTF8",
                  "--locale=C.UTF-8")
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o",
                  f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off", "start")
        return f"postgresql://meter@/postgres?host={self.folder}"

    def __exit__(self, *_):
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program, *arguments):
        words = [*self.as_user, "env", "-i", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", self.bin / program, *arguments]
        done = subprocess.run(list(map(str, words)), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr.decode()


def keep_and_read(database):
    """Saved values are read back unchanged; two segments; another experiment of the database is not touched."""
    driver = parsers.SqlParser(database, meta_data="by hand", experiment="a")
    parsers.SqlParser(database, experiment="b").save_power_metrics(RECORD, date=AT)
    for begin in (0, 60):
        for second in (0, 2):
            driver.save_power_metrics(RECORD, date=AT + datetime.timedelta(seconds=begin + second))
        driver.close_driver()
    driver.save_exp_metrics({"accuracy": 0.5})
    driver.save_model_card({"total_params": 28, "total_mult_adds": 444528})

    reader = parsers.SqlParser(database, experiment="a")
    records = [item for item in reader.records() if item != parsers.SEGMENT_END]
    assert len(records) == 4 and records[0].metrics == RECORD and records[0].date == AT, records
    read = experiment.ExpResults(reader)
    near(read.total_("intel_power"), 40, relative=1e-12)
    assert read.total_("per_gpu_power_draw") == {"0": 80, "1": 280}
    assert read.max_("accuracy") == 0.5 and read.max_("per_process_cpu_uses") == 0.5
    assert reader.get_description() == "by hand" and reader.get_model_card()["total_params"] == 28
    try:
        driver.save_exp_metrics({"name": "resnet"})
    except ValueError as error:
        assert "is not a number" in str(error)
    else:
        raise AssertionError("a text was kept as a number")
    driver.erase()
    assert list(reader.records()) == [] and reader.get_model_card() is None
    assert len(list(parsers.SqlParser(database, experiment="b").records())) == 2


def record(workdir, database, state):
    """Two recordings of a burner in one experiment, read from the database only: the run files are gone."""
    os.environ["XDG_STATE_HOME"] = str(state)
    driver = parsers.SqlParser(database, experiment="burner")
    measured = experiment.Experiment(driver)
    for _ in range(2):
        burner = workdir.start("cpu", "0.4", program=BURNER)
        process, queue = measured.measure_from_pid_list([burner.pid], period=0.1)
        process.join(20)
        assert not process.is_alive() and process.exitcode == 0, queue.get()
    read = experiment.ExpResults(parsers.SqlParser(database, experiment="burner"))
    assert len(read.get_curve("intel_power")) == 2, read.get_curve("intel_power")
    near(read.get_summary()["cpu"]["absolute_cpu_time_per_pid"], 0.8, absolute=0.2)  # each may end a period late
    assert read.total_power_draw() > 0
    assert not list(pathlib.Path(state).rglob("*.sqlite*-run*")) and not list(pathlib.Path(state).rglob("wattle-*"))


def reads_a_killed_program(workdir, database, state):
    """The program is killed: the next reader on this machine finds the recording, and moves it into the database."""
    program = ("import os, signal, time\n"
               "from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers\n"
               f"driver = parsers.SqlParser({database!r}, experiment='killed')\n"
               "experiment.Experiment(driver).measure_yourself(period=0.05)\n"
               "end = time.monotonic() + 0.6\n"
               "while time.monotonic() < end: pass\n"
               "os.kill(os.getpid(), signal.SIGKILL)\n")
    done = workdir.finish(workdir.start("-c", program, program=sys.executable, env={"XDG_STATE_HOME": str(state)}))
    assert done.returncode == -9, done
    os.environ["XDG_STATE_HOME"] = str(state)
    for _ in range(2):  # from the run file, then from the rows
        read = experiment.ExpResults(parsers.SqlParser(database, experiment="killed"))
        assert len(read.get_curve("intel_power")) == 1 and read.get_exp_duration()[0] > 0.4, read.get_exp_duration()


@test
def sqlite_by_hand(workdir):
    """SQLite: records, figures and the model card unchanged; experiments are separate"""
    keep_and_read(f"sqlite:///{workdir.folder / 'all.sqlite'}")
    keep_and_read(str(workdir.folder / "other.sqlite"))


@test
def sqlite_recorded(workdir):
    """SQLite: recordings of processes, and of a killed program"""
    database = str(workdir.folder / "all.sqlite")
    record(workdir, database, workdir.folder)
    reads_a_killed_program(workdir, database, workdir.folder)


@test
def postgresql(workdir):
    """PostgreSQL: the same on a real server"""
    with Postgresql() as url:
        keep_and_read(url)
        record(workdir, url, workdir.folder)
        reads_a_killed_program(workdir, url, workdir.folder)


@test
def other_databases(workdir):
    """URL of another kind: refused with the supported ones"""
    try:
        parsers.SqlParser("mysql://here/x")
    except ValueError as error:
        assert "postgresql://" in str(error)
    else:
        raise AssertionError("no error")


main()
