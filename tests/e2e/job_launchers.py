"""Identity of a rank with real and simulated launchers, and the name of its file."""
import os
import shutil

from harness import WATTLE, Skip, main, test, wait_until
from job_fixture import Machine, assert_one_after_the_other, facts, finish_all, has_energy, rows_of, sensor_events


@test
def groups_apart(workdir):
    """other jobs, other steps and --alone read for themselves; --job joins ranks without a launcher"""
    machine = Machine(workdir)
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "RANK": None, "WORLD_SIZE": None, "LOCAL_RANK": None}
    started = [machine.start(0, 1, "sleep", "2", name="a.sqlite", SLURM_JOB_ID="1", SLURM_STEP_ID="0", **slurm),
               machine.start(0, 1, "sleep", "2", name="b.sqlite", SLURM_JOB_ID="1", SLURM_STEP_ID="1", **slurm),
               machine.start(0, 1, "sleep", "2", name="c.sqlite", SLURM_JOB_ID="2", SLURM_STEP_ID="0", **slurm)]
    alone = [machine.start(rank, 2, "sleep", "2", name="alone-%r.sqlite", options=["--alone"]) for rank in range(2)]
    named = [machine.start(0, 1, "sleep", "2", name=f"named-{n}.sqlite", options=["--job", "exp 7"], RANK=None,
                           WORLD_SIZE=None) for n in range(2)]
    finish_all(workdir, started + alone + named)
    for path in ("a", "b", "c", "alone-0", "alone-1"):
        assert has_energy(workdir, f"{path}.sqlite"), path
    assert facts(workdir, "a.sqlite")["job_id"] == "1" and facts(workdir, "b.sqlite")["job_step"] == "1"
    assert [facts(workdir, f"named-{n}.sqlite")["job_id"] for n in range(2)] == ["exp 7"] * 2
    assert_one_after_the_other(rows_of(workdir, f"named-{n}.sqlite", "package-0") for n in range(2))


@test
def names(workdir):
    """one name for all ranks: refused by the second one, with a correct name; without -o the names always differ"""
    machine = Machine(workdir)
    done = workdir.finish(machine.start(0, 4, "true", name="same.sqlite"))
    assert done.returncode == 0, done
    done = workdir.finish(machine.start(1, 4, "true", name="same.sqlite"))
    assert done.returncode == 125 and "%r" in done.stderr and "one of 4 ranks" in done.stderr, done.stderr
    first = machine.start(0, 4, "sleep", "20", name="same.sqlite", options=["--overwrite"])
    written = workdir.folder / "same.sqlite"  # in between, the old one has ended
    wait_until(lambda: written.exists() and sensor_events(workdir, "same.sqlite") and
               not facts(workdir, "same.sqlite").get("complete") == "true", "rank 0 writes")
    for option in ("--overwrite", "--append"):
        done = workdir.finish(machine.start(1, 4, "true", name="same.sqlite", options=[option]))
        assert done.returncode == 125 and "%r" in done.stderr and "one of 4 ranks" in done.stderr, done.stderr
    first.terminate()
    workdir.finish(first)
    environment = {**machine.environment, "SLURM_JOB_ID": "42", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3",
                   "SLURM_NTASKS": "4"}
    assert workdir.wattle("run", "-q", "true", env=environment).returncode == 0
    name, = [path.name for path in workdir.folder.glob("wattle-*.sqlite")]
    assert name.endswith(f"-42-r3-{os.uname().nodename}.sqlite"), name


@test
def job_choices_are_sorted(workdir):
    """array jobs that begin at once: identified by their numbers, 9 before 10"""
    for job in ("5_10", "5_9", "7"):
        assert workdir.wattle("run", "-q", "--job", job, "-o", "%j.sqlite", "--", "true").returncode == 0
    refused = workdir.wattle("report", ".")
    assert refused.returncode == 1 and refused.stderr.endswith("--job: 5_9, 5_10, 7\n"), refused


@test
def mpirun(workdir):
    """real mpirun: three ranks, a job with mpirun's own name, one reader"""
    if shutil.which("mpirun") is None:
        raise Skip("mpirun is not installed (Debian: openmpi-bin)")
    machine = Machine(workdir)
    wattle = [WATTLE, "run", "-q", "-o", "%j-%r.sqlite", "--", "sleep", "1.5"]
    done = workdir.finish(workdir.start("--allow-run-as-root", "--oversubscribe", "-np", "3", *wattle,
                                  program=shutil.which("mpirun"), env=machine.environment))
    assert done.returncode == 0, done
    paths = sorted(path.name for path in workdir.folder.glob("*-?.sqlite"))
    assert len(paths) == 3 and len({path[:-9] for path in paths}) == 1, paths
    for rank, path in enumerate(paths):
        said = facts(workdir, path)
        assert (said["rank"], said["world_size"], said["local_rank"], said["local_size"], said["n_nodes"]) == (
            str(rank), "3", str(rank), "3", "1"), said
        assert said["job_launcher"] == "openmpi" and path == f"{said['job_id']}-{rank}.sqlite", said
    assert_one_after_the_other(rows_of(workdir, path, "package-0") for path in paths)


@test
def torchrun(workdir):
    """real torchrun whose workers fail once: the new ones have their ranks, a restart count, and files of their own"""
    if shutil.which("torchrun") is None:
        raise Skip("torchrun is not installed (Debian: python3-torch)")
    machine = Machine(workdir)
    worker = workdir.folder / "worker.sh"
    worker.write_text('sleep 0.5\n[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 3\n')
    # Debian's torchrun does not work on Python 3.11 without --redirects and --tee.
    options = ["--no_python", "--nproc_per_node", "2", "--max_restarts", "1", "--monitor_interval", "1",
               "--redirects", "2", "--tee", "2", "--master_port", "29641"]
    done = workdir.finish(workdir.start(*options, WATTLE, "run", "-q", "-o", "r%r.sqlite", "--", "sh", worker,
                                  program=shutil.which("torchrun"), env=machine.environment))
    assert done.returncode == 0, done
    paths = sorted(path.name for path in workdir.folder.glob("r?*.sqlite"))
    assert paths == ["r0-restart1.sqlite", "r0.sqlite", "r1-restart1.sqlite", "r1.sqlite"], paths
    for path in paths:
        said = facts(workdir, path)
        assert (said["job_launcher"], said["rank"], said["world_size"]) == ("torchrun", path[1], "2"), said
        assert said["restart"] == ("1" if "restart" in path else "0") and "job_id" not in said, said


if __name__ == "__main__":
    main()
