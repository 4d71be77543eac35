"""wattle through wattled, as users with and without rights: readings and their accuracy, limits, and the state after
kills."""
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import harness
from gpu_card import Card
from harness import BUILD, NOBODY, TESTS, Skip, children_of, test, wait_until
from helper_client import LEASE, NVML, SET, Helper

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values  # noqa: E402

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
GROUP = 54321  # a uid without a user on any machine
MEMBER = {"user": NOBODY, "group": NOBODY, "extra_groups": [GROUP]}
STRANGER = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
POLICY = f"group {GROUP} read\ngroup {GROUP} cap package-0 80..120\ngroup {GROUP} cap gpus\n"


def needs_root():
    if os.geteuid() != 0:
        raise Skip("only root can run as another user")


def simulate(workdir, load="50+20*sin@2"):
    """Moving counters, readable by root only."""
    top = workdir.folder / "sys"
    assert workdir.start(top, "--zone", f"package-0={load}", "--zone", "package-0/dram=5",
                      program=SIMULATOR).stdout.readline() == b"ready\n"
    for file in top.rglob("energy_uj"):
        file.chmod(0o400)
    return expected_values.load(top)


def package(top, previous_w=125, number=0):
    """A CPU package whose counter and limits are accessible to root only."""
    zone = top / f"class/powercap/intel-rapl:{number}"
    zone.mkdir(parents=True)
    limits = {f"constraint_{i}_{what}": text for i, name in enumerate(("long_term", "short_term")) for what, text in
              (("name", name), ("power_limit_uw", f"{previous_w}000000"), ("max_power_uw", f"{previous_w}000000"))}
    for name, text in {"name": f"package-{number}", "energy_uj": "5000", "enabled": "1",
                       "max_energy_range_uj": "262143328850", **limits}.items():
        (zone / name).write_text(f"{text}\n")
    (zone / "energy_uj").chmod(0o400)


class User:
    """wattle as another user, in a folder with a helper."""

    def __init__(self, workdir, who, **environment):
        self.workdir, self.who = workdir, who
        self.wattle = workdir.folder / "wattle"
        if not self.wattle.exists():
            workdir.for_everybody()
        self.environment = {"WATTLE_SYSFS": str(workdir.folder / "sys"), "WATTLE_NVML": "/nonexistent",
                            "WATTLE_HELPER": str(workdir.folder / "run/wattled.sock"),
                            "WATTLE_STATE": str(workdir.folder / "state-of-users"), **environment}

    def start(self, *words, **options):
        return self.workdir.start(*words, program=self.wattle, env=self.environment, **self.who, **options)

    def __call__(self, *words):
        return self.workdir.finish(self.start(*words))

    def sensors(self):
        rows = json.loads(self("sensors", "--json").stdout)["sensors"]
        return {row["domain"]: row for row in rows if row["sensor"] == "powercap"}

    def caps(self):
        return {row["device"]: row for row in json.loads(self("cap", "list", "--json").stdout)}


def limit_w(workdir, number=0):
    return int((workdir.folder
                / f"sys/class/powercap/intel-rapl:{number}/constraint_0_power_limit_uw").read_text()) / 1e6


# ---- reading ----

@test
def who_may_read(workdir):
    """members, others, root, and a refused user: readable or not, period, reason and remedy"""
    needs_root()
    simulate(workdir)
    helper = Helper(workdir, policy=f"group {GROUP} read\nuser 65533 read every 20ms\n")
    member = User(workdir, MEMBER).sensors()
    for row in member.values():
        assert row["readable"] and row["used"] and "through the helper" in row["note"], member
    assert set(member) == {"package-0", "dram-0"} and member["package-0"]["update_period_s"] < 0.02, member
    slow = User(workdir, {"user": 65533, "group": 65533, "extra_groups": []}).sensors()["package-0"]
    assert slow["readable"] and 0.019 < slow["update_period_s"] < 0.06 and "every 20 ms" in slow["note"], slow
    stranger = User(workdir, STRANGER)
    row = stranger.sensors()["package-0"]
    assert not row["readable"] and row["why"].endswith("the helper does not serve this user"), row
    assert row["remedy"] == 'sudo usermod -aG wattle "$USER" && newgrp wattle', row
    root = User(workdir, {}).sensors()["package-0"]
    assert root["readable"] and root["note"] is None, root  # root reads the file itself and needs no helper
    helper.stop()
    row = stranger.sensors()["package-0"]
    assert not row["readable"] and row["why"].endswith("no helper is running"), row


def run_energy(workdir, user, seconds):
    """(J, error J, true J) of each domain of a run, by powercap."""
    report = workdir.folder / "out" / "report.json"
    run = workdir.folder / "out" / "run.sqlite"
    done = user("run", "-q", "--overwrite", "-o", run, "--json", report, "--", "sleep", seconds)
    assert done.returncode == 0, done
    ((start_ns, end_ns),) = workdir.rows("SELECT start_ns, end_ns FROM segment", path="out/run.sqlite")
    zones = {"package-0": "package-0", "dram-0": "package-0/dram"}
    domains = {d["domain"]: d for d in json.loads(report.read_text())["energy"]["domains"] if d["source"] == "powercap"}
    assert set(domains) == set(zones), domains
    known = expected_values.load(workdir.folder / "sys")
    return [(domains[name]["energy_j"], domains[name]["error_j"],
             expected_values.energy_j(known, zone, start_ns, end_ns))
            for name, zone in zones.items()]


@test
def energy_within_its_error(workdir):
    """runs of members (new readings) and of others (of up to 100 ms ago): the true energy lies within the stated
    error"""
    needs_root()
    simulate(workdir)
    out = workdir.folder / "out"
    out.mkdir()
    out.chmod(0o777)
    helper = Helper(workdir, policy=f"group {GROUP} read\nothers read\n")
    for who in (MEMBER, STRANGER):
        user = User(workdir, who)
        found = [figures for seconds in (0.3, 0.5, 0.7) for figures in run_energy(workdir, user, seconds)]
        outside = [figures for figures in found if not abs(figures[0] - figures[2]) <= figures[1]]
        assert len(outside) <= 1, outside  # one in twenty may be outside
        for energy_j, error_j, true_j in found:
            assert abs(energy_j - true_j) <= max(3 * error_j, 0.02 * true_j), (energy_j, error_j, true_j)
        # Without power readings the power within an update of 100 ms is unknown (docs/accuracy.md), so short runs are
        # uncertain.
        relative = sorted(error_j / true_j for _, error_j, true_j in found)
        assert relative[len(relative) // 2] < 0.15, found
    helper.stop()


@test
def helper_dies_and_comes_back(workdir):
    """killed helper: a gap with its reason; restarted helper: used again, and no energy is lost"""
    needs_root()
    simulate(workdir, "40")
    (workdir.folder / "out").mkdir()
    (workdir.folder / "out").chmod(0o777)
    helper = Helper(workdir, policy=POLICY)
    run = workdir.folder / "out" / "run.sqlite"
    process = User(workdir, MEMBER).start("run", "-q", "-o", run, "--json", workdir.folder / "out/report.json", "--",
                                          "cat",
                                          stdin=subprocess.PIPE)
    told = lambda kind, words: [text for (text,) in workdir.rows(f"SELECT text FROM event WHERE kind = '{kind}'", run)
                                if words in text]
    wait_until(lambda: run.exists() and workdir.rows("SELECT count(*) FROM device_sample", run)[0][0] > 5, "samples")
    for pid in (helper.pid, helper.process.pid):
        os.kill(pid, signal.SIGKILL)
    helper.process.wait()
    wait_until(lambda: told("note", "not read now: ") and told("gap", "can't be read"), "the gap is reported")
    helper.log.unlink()
    helper = Helper(workdir, policy=POLICY)
    wait_until(lambda: told("gap-end", "can be read again"), "the end of the gap is reported")
    time.sleep(0.3)
    process.stdin.close()
    process.stdin = None
    assert workdir.finish(process).returncode == 0
    report = json.loads((workdir.folder / "out/report.json").read_text())
    ((start_ns, end_ns),) = workdir.rows("SELECT start_ns, end_ns FROM segment", run)
    found = next(d for d in report["energy"]["domains"] if d["domain"] == "package-0")
    harness.near(found["energy_j"], expected_values.energy_j(expected_values.load(workdir.folder / "sys"), "package-0",
                                                             start_ns, end_ns),
                 relative=0.02, absolute=found["error_j"])
    helper.stop()


@test
def helper_that_hangs(workdir):
    """helper that hangs: delays neither the command nor the samples by more than a moment"""
    needs_root()
    simulate(workdir, "40")
    (workdir.folder / "out").mkdir()
    (workdir.folder / "out").chmod(0o777)
    helper = Helper(workdir, policy=POLICY)
    user = User(workdir, MEMBER)
    run = workdir.folder / "out" / "run.sqlite"
    process = user.start("run", "-q", "-i", "20ms", "-o", run, "--", "cat", stdin=subprocess.PIPE)
    wait_until(lambda: run.exists() and workdir.rows("SELECT count(*) FROM sample", run)[0][0] > 5, "samples")
    os.kill(helper.pid, signal.SIGSTOP)
    time.sleep(1.0)
    os.kill(helper.pid, signal.SIGCONT)
    process.stdin.close()
    process.stdin = None
    assert workdir.finish(process).returncode == 0
    times = [t_ns for (t_ns,) in workdir.rows("SELECT t_ns FROM sample ORDER BY t_ns", run)]
    late = [b - a for a, b in zip(times, times[1:]) if b - a > 35e6]
    assert len(times) > 30 and len(late) < len(times) / 3, late
    # And at the start: a helper that does not answer is given up.
    os.kill(helper.pid, signal.SIGSTOP)
    row = user.sensors()["package-0"]
    os.kill(helper.pid, signal.SIGCONT)
    assert not row["readable"] and row["why"].endswith("the helper does not respond"), row
    helper.stop()


# ---- limiting ----

@test
def limits_of_a_member(workdir):
    """cap list, set, reset, set -- CMD, --for as nobody with a group in the policy: as for root, within the policy's
    range"""
    needs_root()
    package(workdir.folder / "sys")
    helper = Helper(workdir, policy=POLICY)
    user = User(workdir, MEMBER)
    row = user.caps()["package-0"]
    assert row["settable"] and (row["min_w"], row["max_w"]) == (80, 120) and row["lease"] is None, row
    done = user("cap", "set", "package-0", "130")
    assert done.returncode == 1 and "80 to 120 W" in done.stderr and limit_w(workdir) == 125, done.stderr
    assert user("cap", "set", "package-0", "90").returncode == 0 and limit_w(workdir) == 90
    assert user("cap", "reset", "package-0").returncode == 0 and limit_w(workdir) == 125
    process = user.start("cap", "set", "package-0", "100", "--", "cat", stdin=subprocess.PIPE)
    wait_until(lambda: limit_w(workdir) == 100, "the limit")
    owner = f"wattle cap set, pid {process.pid}, user nobody"
    assert user.caps()["package-0"]["lease"] == owner
    for words in (("set", "package-0", "90"), ("reset", "package-0")):
        done = user("cap", *words)
        assert done.returncode == 1 and owner in done.stderr, done.stderr
    process.stdin.close()
    process.stdin = None
    assert workdir.finish(process).returncode == 0 and limit_w(workdir) == 125
    assert user("cap", "set", "package-0", "90", "--for", "1s").returncode == 0 and limit_w(workdir) == 90
    wait_until(lambda: limit_w(workdir) == 125, "restored after its time")
    helper.stop()


@test
def limits_of_others(workdir):
    """user outside the policy, and user without a helper: refused, with both remedies; nothing is changed"""
    needs_root()
    package(workdir.folder / "sys")
    helper = Helper(workdir, policy=POLICY)
    user = User(workdir, STRANGER)
    for remedy in ("as this user: add a `cap` rule to the policy file of wattled", "as this user: sudo"):
        row = user.caps()["package-0"]
        assert not row["settable"] and "sudo wattle cap set package-0" in row["remedy"] and remedy in row["remedy"], row
        done = user("cap", "set", "package-0", "90")
        assert done.returncode == 1 and remedy in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        if helper.process.poll() is None:
            helper.stop()
    assert limit_w(workdir) == 125


@test
def tune_of_a_member(workdir):
    """cap tune as nobody: sets its limits through the helper and restores the previous one"""
    needs_root()
    card = Card(more=("limit_delay_ms 20", "set_uid 0"))
    (workdir.folder / "cards").write_text(card.text())
    (workdir.folder / "sys").mkdir()
    helper = Helper(workdir, policy=POLICY)
    (workdir.folder / "out").mkdir()
    (workdir.folder / "out").chmod(0o777)
    worker, library, _ = (shutil.copy2(path, workdir.folder) for path in (BUILD / "tests/fakes/gpu_worker", NVML,
                                                                       BUILD / "src/libwattle.so.0"))
    user = User(workdir, MEMBER, WATTLE_NVML=str(library), WATTLE_FAKE_NVML=str(workdir.folder / "cards"),
                LD_LIBRARY_PATH=str(workdir.folder))
    result = workdir.folder / "out/tune.json"
    work = [worker, "--step-ms", "2", "--seconds", "6"]
    done = workdir.finish(user.start("cap", "tune", "gpu-0", "--caps", "4", "--seconds", "0.3", "--settle", "0.06",
                                  "--objective", "edp", "--json", result, "--step", "step", "--", *work,
                                  cwd=workdir.folder / "out"))
    assert done.returncode == 0, done.stderr
    found = json.loads(result.read_text())
    assert len(found["caps"]) >= 3 and found["previous_w"] == card.default_w, found
    calls = helper.gpu_calls()
    assert calls[-1][1] == 1000 * card.default_w and len({limit for _, limit in calls}) >= 4, calls
    pids = {int(line.split()[3]) for line in pathlib.Path(f"{helper.cards}.limits").read_text().splitlines()}
    assert pids == {helper.pid}, (pids, helper.pid)
    helper.stop()


# ---- kills ----

PROMISE_S, BUSY_MACHINE = 1.0, 10
WHO = ("wattle", "command", "server", "guard", "wattle and command", "wattle and server", "server and guard",
       "wattle, server and guard", "command and guard", "wattle and guard")
TRIALS, SIDE_BY_SIDE = 60, 4


class Place:
    """The folders and environment that Helper and User need, for concurrent trials."""

    def __init__(self, workdir, folder):
        self.workdir, self.folder = workdir, folder
        folder.mkdir()
        folder.chmod(0o755)
        for name in ("wattle", "burner"):
            os.link(workdir.folder / name, folder / name)
        for number in range(2):
            package(folder / "sys", number=number)

    def start(self, *words, **options):
        return self.workdir.start(*words, **{"cwd": "/", **options})

    def finish(self, process):
        return self.workdir.finish(process)


def helper_of(place, before=None):
    """A new helper, once both processes of the previous one have ended: a second one at its socket would be refused."""
    if before is not None:
        wait_until(lambda: before.process.poll() is not None and not harness.is_alive(before.pid), "both have ended")
    (place.folder / "log").unlink(missing_ok=True)
    return Helper(place, policy=f"group {GROUP} cap any\n")


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def end_of(process):
    """Ends the command, and its wattle; one may have ended already."""
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass
    process.stdin = None
    process.communicate(timeout=harness.TIMEOUT_S)


def one_kill(place, number, helper):
    """One process is killed at a random moment of `cap set package-0 90 -- cat`, beside a limit of another client.
    Returns the helper that serves afterwards."""
    chance = random.Random(number)
    who = WHO[number % len(WHO)]
    process = User(place, MEMBER).start("cap", "set", "-q", "package-0", "90", "--", "cat", stdin=subprocess.PIPE)
    if chance.random() < 0.5:
        wait_until(lambda: limit_w(place) == 90 or process.poll() is not None, "the limit")
    time.sleep(chance.uniform(0, 0.06))
    os.kill(process.pid, signal.SIGSTOP)
    victims = {"wattle": [process.pid], "command": children_of(process.pid), "server": [helper.pid],
               "guard": [helper.process.pid]}
    if "guard" in who and "server" in who:
        helper.process.send_signal(signal.SIGSTOP)  # otherwise it may have restored the limit before its turn
    kill_all(pid for name, pids in victims.items() if name in who for pid in pids)
    if "wattle" not in who:
        os.kill(process.pid, signal.SIGCONT)
    data = f"trial {number}: {who} killed"
    killed = time.monotonic()
    is_back = lambda: limit_w(place) == 125
    if "server" in who and "guard" in who:
        helper.process.wait()
        helper = helper_of(place, helper)  # its start finds the remaining limits
        # A wattle that had not requested its limit before the kill requests it from the new helper.
        owner = f"wattle cap set, pid {process.pid}, user nobody"
        wait_until(lambda: is_back() or User(place, MEMBER).caps()["package-0"]["lease"] == owner,
                   f"{data}: back after the next start")
    elif "server" in who or "guard" in who:
        helper.process.wait(harness.TIMEOUT_S)
        wait_until(is_back, f"{data}: back by the other one", PROMISE_S * BUSY_MACHINE)
    elif "wattle" in who:
        wait_until(is_back, f"{data}: back", PROMISE_S * BUSY_MACHINE)
    took_s = time.monotonic() - killed
    end_of(process)
    wait_until(is_back, f"{data}: back at the end of all")
    helper_died = "server" in who or "guard" in who
    if helper_died and helper.process.poll() is not None:
        helper = helper_of(place, helper)
    return helper, took_s if who in ("wattle", "wattle and command", "server") else 0.0, helper_died


def many_kills(place, numbers):
    helper = helper_of(place)
    took_s, other = [], None
    for number in numbers:
        if other is None:
            other = helper.client()
            row = helper.row(other, "package-1")
            other.outcome(SET, row, mode=LEASE, value=100_000)
        helper, seconds, helper_died = one_kill(place, number, helper)
        took_s.append(seconds)
        if helper_died:
            other.socket.close()
            other = None
            wait_until(lambda: limit_w(place, 1) == 125, f"trial {number}: the other's went with the helper")
        else:
            assert limit_w(place, 1) == 100, f"trial {number}: another user's limit was changed"
    if other is not None:
        other.socket.close()
    helper.stop()
    assert limit_w(place) == 125 and not list((place.folder / "state/caps").glob("*.lease"))
    return took_s


@test
def sixty_kills(workdir):
    """60 kills of wattle, its command, the helper's two processes, pairs: the limit is restored, another client's is
    unchanged"""
    needs_root()
    workdir.for_everybody()
    places = [Place(workdir, workdir.folder / f"place-{i}") for i in range(SIDE_BY_SIDE)]
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        took_s = sum(pool.map(lambda i: many_kills(places[i], range(i, TRIALS, SIDE_BY_SIDE)), range(SIDE_BY_SIDE)), [])
    print(f"# the slowest restore took {1000 * max(took_s):.0f} ms")


if __name__ == "__main__":
    harness.main()
