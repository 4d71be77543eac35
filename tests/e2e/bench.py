"""wattle bench: significant differences are found, others are not; stopping, failing and continuing."""
import json
import os
import pty
import signal
import statistics
import sys

from harness import BUILD, BURNER, TESTS, main, near, test, wait_until

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
QUANTITIES = ("time_s", "energy_j", "power_w")


def bench(workdir, *arguments, status=0, **options):
    path = workdir.folder / "bench.json"
    path.unlink(missing_ok=True)
    done = workdir.wattle("bench", "--json", path, "--settle", "0", *arguments, **options)
    assert done.returncode == status, f"status {done.returncode}, expected {status}: {done.stderr}"
    assert not list(workdir.folder.glob("wattle-bench-*")), "the temporary folder was not removed"
    return json.loads(path.read_text()) if path.exists() else None, done


def simulated(workdir, *zones):
    """A machine with counters: the environment that selects it."""
    top = workdir.folder / f"sim{len(workdir.started)}"
    simulator = workdir.start(top, *(word for zone in zones for word in ("--zone", zone)), program=SIMULATOR)
    assert simulator.stdout.readline() == b"ready\n"
    return {"WATTLE_SYSFS": str(top)}


def comparison(result, quantity, b=1):
    return next(c for c in result["comparisons"] if c["quantity"] == quantity and c["b_index"] == b)


def check_verdict(found, a, b):
    """The verdict on two lists of values, whatever a busy machine made of them: commands whose values do not overlap
    differ."""
    near(found["ratio"], statistics.median(b) / statistics.median(a), relative=1e-9)
    is_outside = found["low"] > 1 or found["high"] < 1
    assert found["different"] is (found["p_adjusted"] < 0.05 and is_outside), found
    if max(a) < min(b) and len(a) == len(b) == 6:
        assert found["different"] and found["p"] < 0.05 and found["low"] > 1, (found, a, b)


@test
def three_times_as_long(workdir):
    """sleep that takes three times as long: time and energy at constant power differ by that, power does not"""
    result, done = bench(workdir, "--runs", "6", "--seed", "1", "--", "sleep", "0.3", ":::", "sleep", "0.9",
                         env=simulated(workdir, "package-0=50", "package-0/dram=5"))
    assert result["schema"] == "wattle-bench/1" and result["seed"] == 1, result
    first, second = result["commands"]
    assert first["command"] == "sleep 0.3" and first["argv"] == ["sleep", "0.3"], first
    assert first["runs"] == 6 and first["warmup"] == 1, first
    assert min(first["values"]["time_s"]) >= 0.3 and min(second["values"]["time_s"]) >= 0.9, result
    for quantity in QUANTITIES:
        estimate = first[quantity]
        assert estimate["low"] <= estimate["median"] <= estimate["high"], estimate
        assert len(first["values"][quantity]) == 6, first
    for quantity in ("time_s", "energy_j"):
        found = comparison(result, quantity)
        assert found["a"] == "sleep 0.3" and found["b"] == "sleep 0.9", found
        check_verdict(found, first["values"][quantity], second["values"][quantity])
    unsure = 0
    for command in (first, second):
        error = 2 * command["energy_error_j"] / command["energy_j"]["median"]  # twice half of a 95 % interval
        near(command["power_w"]["median"], 55, relative=max(0.015, error))
        assert all(len(repr(watts)) <= 14 for watts in command["values"]["power_w"]), command
        unsure += error
    near(comparison(result, "power_w")["ratio"], 1, absolute=max(0.03, unsure))
    assert result["provenance"] == "measured" and "package-0 (powercap)" in result["meter"], result
    assert ("times (" in done.stdout) == comparison(result, "time_s")["different"], done.stdout
    assert "package-0 (powercap), dram-0 (powercap)" in done.stdout.replace("\n  ", " "), done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout


@test
def the_same_twice(workdir):
    """command compared with itself: the detectable difference is reported where none is found"""
    result, done = bench(workdir, "--runs", "5", "--", "sleep", "0.2", ":::", "sleep", "0.2",
                         env={"WATTLE_SYSFS": str(workdir.tree("none", {"keep": ""}))})
    found = comparison(result, "time_s")
    check_verdict(found, *(command["values"]["time_s"] for command in result["commands"]))
    if not found["different"]:
        assert found["smallest_effect_percent"] > 0 and "no difference seen" in done.stdout, (found, done.stdout)


@test
def work_that_differs(workdir):
    """two burners, one with six times the work: time differs"""
    result, _ = bench(workdir, "--runs", "6", "--", BURNER, "cpu", "0.05", ":::", BURNER, "cpu", "0.3")
    found = comparison(result, "time_s")
    check_verdict(found, *(command["values"]["time_s"] for command in result["commands"]))
    assert found["ratio"] > 1.5, found


@test
def without_energy(workdir):
    """no energy: null in JSON, n/a in the text, not compared; time is"""
    result, done = bench(workdir, "--runs", "5", "--warmup", "0", "--", "true", ":::", "sleep", "0.1",
                         env={"WATTLE_SYSFS": str(workdir.tree("none", {"keep": ""})),
                              "WATTLE_PROCFS": str(workdir.tree("proc", {"keep": ""}))})
    for command in result["commands"]:
        assert command["energy_j"]["median"] is None and command["power_w"]["low"] is None, command
        assert command["time_s"]["median"] > 0, command
    assert {c["quantity"] for c in result["comparisons"]} == {"time_s"}, result["comparisons"]
    assert result["provenance"] is None and "n/a" in done.stdout and "wattle sensors" in done.stdout, done.stdout


@test
def order(workdir):
    """same seed: same order; each round has each command once, after the warm-up"""
    def run(seed):
        log = workdir.folder / "log"
        log.unlink(missing_ok=True)
        words = [word for name in "abc" for word in (":::", "sh", "-c", f"echo {name} >> {log}")][1:]
        bench(workdir, "--runs", "4", "--warmup", "2", "--seed", seed, "--quiet", "--", *words)
        return log.read_text().split()
    first = run(7)
    assert first[:6] == list("abcabc"), first
    rounds = [first[i:i + 3] for i in range(6, 18, 3)]
    assert len(first) == 18 and all(sorted(r) == list("abc") for r in rounds), first
    assert run(7) == first
    assert any(run(seed) != first for seed in (8, 9, 10))


@test
def all_pairs(workdir):
    """three commands: two comparisons for each quantity, three with --compare all"""
    words = ["--runs", "2", "--", "true", ":::", "true", ":::", "true"]
    pairs = lambda result: [(c["a_index"], c["b_index"]) for c in result["comparisons"] if c["quantity"] == "time_s"]
    result, _ = bench(workdir, *words)
    assert pairs(result) == [(0, 1), (0, 2)], result
    result, done = bench(workdir, "--compare", "all", *words)
    assert pairs(result) == [(0, 1), (0, 2), (1, 2)] and "3 against 2" in done.stdout, result


@test
def a_failing_command(workdir):
    """failing command: the bench ends with one line that states which, how and when, and the command's last output"""
    result, done = bench(workdir, "--", "true", ":::", "sh", "-c", "echo no such luck >&2; exit 7", status=1)
    first, words = done.stderr.splitlines()
    assert "command 2 (sh -c " in first and "status 7" in first and "warm-up run 1" in first, first
    assert words == "no such luck" and done.stdout == "" and result is None, done
    counted, done = bench(workdir, "--ignore-failure", "--runs", "2", "--", "false")
    assert counted["commands"][0]["failures"] == 2 and "failed in 2 of 2 runs" in done.stdout, counted


@test
def fails_later(workdir):
    """command that fails in a later round: the earlier rounds are shown, and the status reports the failure"""
    script = "echo x >> count; test $(wc -l < count) -lt 4"
    result, done = bench(workdir, "--runs", "9", "--", "sh", "-c", script, status=1)
    assert result["end"] == "failed" and result["commands"][0]["runs"] == 2, result
    assert "in run 3" in done.stderr and "2 rounds before it" in done.stdout, done


@test
def not_found(workdir):
    """missing or non-executable command: nothing runs, status 1"""
    (workdir.folder / "data").write_text("no program\n")
    for command in ("wattle-no-such-program", "./data"):
        done = workdir.wattle("bench", "--", "touch", "started", ":::", command)
        assert done.returncode == 1 and command in done.stderr, done
        assert len(done.stderr.splitlines()) == 1 and not (workdir.folder / "started").exists(), done


@test
def wrong_usage(workdir):
    """invalid values and missing commands: status 2, one line that names the value, nothing runs"""
    rows = ((["--runs", "0"], "--runs"), (["--until", "0"], "--until"), (["--warmup", "-1"], "--warmup"),
            (["--max-runs", "1"], "--max-runs"), (["--settle", "soon"], "--settle"), (["--compare", "x"], "--compare"),
            (["--json", "/no/such/folder/x.json"], "--json"), (["--nonsense"], "--nonsense"))
    for arguments, named in rows:
        done = workdir.wattle("bench", *arguments, "--", "touch", "started")
        assert done.returncode == 2 and named in done.stderr, (arguments, done)
        assert len(done.stderr.splitlines()) == 1 and done.stdout == "", done
    for words in ([], ["--"], ["--", ":::"], ["--", ":::", "true"], ["--", "true", ":::"], ["a", ":::", ":::", "b"]):
        done = workdir.wattle("bench", *words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (words, done)
    assert not (workdir.folder / "started").exists()


@test
def json_on_stdout(workdir):
    """--json -: prints JSON only; the commands' output is discarded"""
    done = workdir.wattle("bench", "--runs", "2", "--json", "-", "--", "echo", "noise")
    assert done.returncode == 0 and done.stderr == "", done
    assert json.loads(done.stdout)["commands"][0]["command"] == "echo noise"
    done = workdir.wattle("bench", "--runs", "2", "--warmup", "0", "--show-output", "--", "echo", "noise")
    assert done.stdout.splitlines().count("noise") == 2, done.stdout


@test
def until_it_is_narrow(workdir):
    """--until: continues until the interval is narrow, at most --max-runs; both outcomes are reported"""
    environment = simulated(workdir, "package-0=50")
    result, done = bench(workdir, "--until", "20", "--", "sleep", "0.5", env=environment)
    is_narrow = result["width_percent"] < 20
    assert result["end"] == ("narrow enough" if is_narrow else "most runs"), result
    assert (5 <= result["commands"][0]["runs"] < 100 and "Stopped when" in done.stdout) == is_narrow, result
    result, done = bench(workdir, "--until", "0.001", "--max-runs", "6", "--", "sleep", "0.1", env=environment)
    assert result["end"] == "most runs" and result["commands"][0]["runs"] == 6, result
    assert "Stopped by --max-runs" in done.stdout, done.stdout


@test
def interrupted(workdir):
    """SIGINT: ends the running command; complete rounds are shown, status 130, no process remains"""
    path = workdir.folder / "bench.json"
    script = "echo $$ >> pids; test $(wc -l < pids) -lt 4 || exec sleep 60"
    process = workdir.start("bench", "--json", path, "--", "sh", "-c", script, env={"WATTLE_SYSFS": "/var/empty"}
                         if os.path.isdir("/var/empty") else {})
    pids = workdir.folder / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 4, "the fourth run")
    process.send_signal(signal.SIGINT)
    done = workdir.finish(process)
    assert done.returncode == 130, done
    result = json.loads(path.read_text())
    assert result["end"] == "interrupted" and result["commands"][0]["runs"] == 2, result
    assert "Interrupted: the result contains the 2 complete rounds" in done.stdout, done.stdout
    last = int(pids.read_text().split()[-1])
    wait_until(lambda: not os.path.exists(f"/proc/{last}"), "the end of the command")


@test
def interrupted_at_once(workdir):
    """interrupted before the first complete round: a message instead of results"""
    process = workdir.start("bench", "--", "sh", "-c", "echo > begun; exec sleep 60")
    wait_until((workdir.folder / "begun").exists, "the first run")
    process.send_signal(signal.SIGTERM)
    done = workdir.finish(process)
    assert done.returncode == 143 and done.stdout == "" and "interrupted" in done.stderr, done


@test
def at_a_terminal(workdir):
    """Ctrl-C on a terminal: reaches wattle and the command; a progress line is drawn and erased"""
    leader, follower = pty.openpty()
    process = workdir.start("bench", "--", "sh", "-c", "echo > begun; exec sleep 60", stdin=follower, stderr=follower,
                         preexec_fn=lambda: (os.setsid(), __import__("fcntl").ioctl(0, 0x540E, 0)))
    os.close(follower)
    wait_until((workdir.folder / "begun").exists, "the first run")
    os.write(leader, b"\x03")
    process.wait(20)
    said = os.read(leader, 4096).decode()
    os.close(leader)
    assert process.returncode == 130, process.returncode
    assert "warming up, command 1" in said and "\033[K" in said, said


@test
def run_files_are_kept(workdir):
    """--output: keeps each measured run as a run file that wattle report reads; existing files are not overwritten"""
    bench(workdir, "--runs", "2", "--output", "kept 100%", "--", "true", ":::", "true")
    names = sorted(path.name for path in (workdir.folder / "kept 100%").iterdir())
    assert names == ["1-001.sqlite", "1-002.sqlite", "2-001.sqlite", "2-002.sqlite"], names
    assert workdir.wattle("report", "kept 100%/1-001.sqlite").returncode == 0
    for folder in ("kept 100%", "kept 100%/1-001.sqlite"):
        _, done = bench(workdir, "--runs", "2", "--output", folder, "--", "touch", "started", status=2)
        assert "1-001.sqlite" in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert "choose another" in done.stderr and not (workdir.folder / "started").exists(), done


@test
def constant_power_is_no_difference(workdir):
    """constant power without scatter: no difference and no detectable difference, though energy and time differ"""
    (workdir.folder / "cards").write_text(
        "gpu\npower_mw constant 300000\nerror nvmlDeviceGetTotalEnergyConsumption 3\n")
    document, _ = bench(workdir, "--runs", "6", "--", "sleep", "0.1", ":::", "sleep", "0.15", env={
        "WATTLE_SYSFS": str(workdir.tree("none", {"keep": ""})),
        "WATTLE_PROCFS": str(workdir.tree("proc", {"keep": ""})),
        "WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
        "WATTLE_FAKE_NVML": str(workdir.folder / "cards"),
        "CUDA_VISIBLE_DEVICES": None})
    power, = [c for c in document["comparisons"] if c["quantity"] == "power_w"]
    assert {watts for command in document["commands"] for watts in command["values"]["power_w"]} == {300}, document
    assert not power["different"] and power["smallest_effect_percent"] is None and power["ratio"] == 1, power


@test
def settling(workdir):
    """before each run: waits until power is as at first: one reading if it is, up to --settle if not"""
    path = workdir.folder / "bench.json"

    def settle(load):
        done = workdir.wattle("bench", "--runs", "3", "--settle", "1s", "--json", path, "--", "sleep", "0.8",
                           env=simulated(workdir, f"package-0={load}"))
        assert done.returncode == 0, done
        return json.loads(path.read_text())["settling"], done.stdout
    found, text = settle("50")
    near(found["reference_w"], 50, relative=0.1)
    assert found["possible"] is True and found["unsettled"] == 0 and found["waited_s"] < 2, found
    assert "settle" not in text, text
    found, text = settle("20+1000*ramp@100")  # 10 W more each second
    assert found["unsettled"] > 0 and found["waited_s"] >= 0.5 and "warmer or busier" in text, (found, text)


if __name__ == "__main__":
    main()
