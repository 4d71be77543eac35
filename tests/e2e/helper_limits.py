"""wattled and the limits that it sets: their lifetime, and the state after kills."""
import os
import signal
import time

import harness
from harness import is_alive, test, wait_until
from helper_client import CHECK, END, KEEP, LEASE, NVML, RESET, SET, PERSISTENT, Helper, holder, is_refused


# ---- limits ----

@test
def lease_ends_with_its_process(workdir):
    """kill -9 of the process with a limit: the limit ends within a second; no other user can end it or use the
    device"""
    helper = Helper(workdir)
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
        process = holder(helper, gpu, 300000)
        row = client.device(gpu)
        assert (row["lease_pid"], row["lease"]) == (process.pid, "test"), row
        assert str(process.pid) in is_refused(16, client.outcome, SET, gpu, mode=LEASE, value=400000)
        is_refused(16, client.outcome, SET, gpu, mode=PERSISTENT, value=400000)
        is_refused(16, client.outcome, RESET, gpu)
        for kind in (CHECK, END, KEEP):
            is_refused(2, client.outcome, kind, gpu)
        killed = time.monotonic()
        process.kill()
        wait_until(lambda: helper.gpu_calls() == [(0, 300000), (0, 700000)], "the limit is back", 5)
        assert time.monotonic() - killed < 1
        assert client.device(gpu)["lease_pid"] == 0


@test
def lease_outlives_its_connection(workdir):
    """connection closed: the limit stays and belongs to the process's next connection; it ends with the process"""
    helper = Helper(workdir)
    with helper.client() as client:
        gpu = helper.row(client, "gpu-0")
    with helper.client() as client:
        assert client.outcome(SET, gpu, mode=LEASE, value=300000)["previous"] == 700000
    with helper.client() as client:
        assert client.outcome(CHECK, gpu)["was_foreign"] == 0
        assert client.outcome(SET, gpu, mode=LEASE, value=400000)["set"] == 400000
        assert client.outcome(END, gpu)["set"] == 700000
        is_refused(2, client.outcome, END, gpu)
        other = holder(helper, gpu, 300000, "hang up")
        assert client.device(gpu)["lease_pid"] == other.pid
        other.stdin.close()
        other.wait(10)
        wait_until(lambda: client.device(gpu)["lease_pid"] == 0, "the limit has gone", 5)
    assert helper.gpu_calls() == [(0, mw) for mw in (300000, 400000, 700000, 300000, 700000)]


@test
def foreign_change(workdir):
    """limit changed by another program: stays, and the client is informed"""
    helper = Helper(workdir)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=LEASE, value=100000)
        assert helper.package_uw() == 100_000_000
        helper.package_file().write_text("150000000\n")
        told = client.outcome(CHECK, package)
        assert told["was_foreign"] == 1 and told["foreign"] == 150000, told
        told = client.outcome(END, package)
        assert told["was_foreign"] == 1 and helper.package_uw() == 150_000_000, told


@test
def standing(workdir):
    """persistent limit: outlives its client and wattled; reset restores the limit from before the first one"""
    helper = Helper(workdir)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=PERSISTENT, value=100000)
        client.outcome(SET, package, mode=LEASE, value=90000)
        client.outcome(KEEP, package)
    helper.stop()
    assert helper.package_uw() == 90_000_000
    helper.log.unlink()
    helper = Helper(workdir)
    with helper.client() as client:
        assert helper.package_uw() == 90_000_000
        client.outcome(RESET, package)
    assert helper.package_uw() == 205_000_000


@test
def for_a_time(workdir):
    """limit for a time: ends when the time is over, or by a reset of its user, wherever that process runs"""
    helper = Helper(workdir)
    with helper.client() as client:
        package = helper.row(client, "package-0")
        client.outcome(SET, package, mode=PERSISTENT, value=100000, for_s=1)
        assert helper.package_uw() == 100_000_000
        is_refused(16, client.outcome, SET, package, mode=LEASE, value=90000)
        wait_until(lambda: helper.package_uw() == 205_000_000, "the time is over")
        client.outcome(SET, package, mode=PERSISTENT, value=100000, for_s=1000)
        client.outcome(RESET, package)
        assert helper.package_uw() == 205_000_000
        client.outcome(SET, package, mode=PERSISTENT, value=100000, for_s=1000)
    told = workdir.wattle("cap", "reset", "package-0", env={
        "WATTLE_HELPER": str(helper.path), "WATTLE_STATE": str(workdir.folder / "state"),
        "WATTLE_SYSFS": str(helper.sysfs), "WATTLE_NVML": NVML, "WATTLE_FAKE_NVML": str(helper.cards)})
    # root could write it, but not end the time
    assert told.returncode == 0 and helper.package_uw() == 205_000_000, told


# ---- after the end ----

def held(workdir):
    helper = Helper(workdir)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
        client.outcome(SET, helper.row(client, "package-0"), mode=LEASE, value=100000)
    assert helper.package_uw() == 100_000_000
    return helper


def is_back(helper):
    return helper.gpu_calls()[-1] == (0, 700000) and helper.package_uw() == 205_000_000


@test
def terminated(workdir):
    """SIGTERM: restores all limits, removes the socket and is no failure; a limit for a time ends too"""
    helper = held(workdir)
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "package-1"), mode=PERSISTENT, value=100000, for_s=1000)
    helper.stop()
    assert is_back(helper) and helper.package_uw(1) == 205_000_000
    assert not helper.path.exists() and not is_alive(helper.pid)


@test
def killed(workdir):
    """kill -9 of the serving process or of its guard: the limits are restored within a second, and both end"""
    for which in ("server", "guard"):
        helper = held(workdir)
        when = time.monotonic()
        os.kill(helper.pid if which == "server" else helper.process.pid, signal.SIGKILL)
        wait_until(lambda: is_back(helper), "the limits are back", 5)
        assert time.monotonic() - when < 1, which
        assert helper.process.wait(20) != 0
        wait_until(lambda: not is_alive(helper.pid), "both are gone")
        helper.log.unlink()


@test
def both_killed(workdir):
    """kill -9 of both: the next start finds their limits, restores and reports them, and serves at the same socket"""
    helper = held(workdir)
    helper.process.send_signal(signal.SIGSTOP)
    os.kill(helper.pid, signal.SIGKILL)
    helper.process.kill()
    helper.process.wait(20)
    assert not is_back(helper) and helper.path.exists()
    helper.log.unlink()
    helper = Helper(workdir)
    assert is_back(helper) and "gpu-0: restored to 700 W" in helper.said(), helper.said()
    with helper.client() as client:
        assert client.hello()["may_cap"] == 1


@test
def second(workdir):
    """second wattled at the same socket: refused, and the first is not disturbed"""
    helper = held(workdir)
    late = Helper(workdir, wait=False)
    assert late.process.wait(20) == 1
    assert "another wattled" in late.said(), late.said()
    assert helper.package_uw() == 100_000_000
    with helper.client() as client:
        assert client.hello()["pid"] == helper.pid


@test
def no_socket_there(workdir):
    """file that is no socket: not replaced"""
    (workdir.folder / "run").mkdir()
    (workdir.folder / "run/wattled.sock").write_text("precious")
    helper = Helper(workdir, wait=False)
    assert helper.process.wait(20) == 1 and "not a socket" in helper.said(), helper.said()
    assert helper.path.read_text() == "precious"


harness.main()
