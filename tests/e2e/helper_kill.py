"""SIGKILL at random moments of wattled, its guard, its client, and all sets of them: the limits are restored each time,
at the latest at the next start, and the journal is empty."""
import itertools
import os
import random
import signal
import time

import harness
from harness import children_of, guards_of, is_alive, test, wait_until
from helper_client import CARD, END, LEASE, NVML, SET, Client, Helper, Refused

ROUNDS = 8  # for each set of victims
WHO = ("server", "guard", "client")
SETS = [victims for n in (1, 2, 3) for victims in itertools.combinations(WHO, n)]


def play(path, gpu, package, dice):
    """A client that changes its limit all the time; never returns."""
    client = Client(path)
    try:
        while True:
            client.outcome(SET, gpu, mode=LEASE, value=dice.randrange(200, 700) * 1000)
            client.outcome(SET, package, mode=LEASE, value=dice.randrange(50, 200) * 1000)
            if dice.random() < 0.3:
                client.outcome(END, gpu)
                client.outcome(END, package)
    except Refused:
        time.sleep(60)  # rate limited: keeps its limit
    except OSError:
        time.sleep(60)


def start_client(helper, dice):
    with helper.client() as client:
        gpu, package = helper.row(client, "gpu-0"), helper.row(client, "package-0")
    pid = os.fork()
    if pid == 0:
        try:
            play(helper.path, gpu, package, dice)
        finally:
            os._exit(0)
    return pid


def left_in_journal(workdir):
    """Entries; one that was being written when its writer died (.ID.lease.new) does not count."""
    return [path.name for path in (workdir.folder / "state/caps").glob("[!.]*") if path.suffix != ".lock"]


def is_back(helper):
    calls = helper.gpu_calls()
    return (not calls or calls[-1] == (0, 700000)) and helper.package_uw() == 205_000_000


def n_threads(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def wait_for_death(pid):
    """All its threads: the last one to end releases the locks."""
    wait_until(lambda: not is_alive(pid) and n_threads(pid) <= 1, "the process has ended")


def one_round(workdir, victims, dice):
    helper = Helper(workdir)
    client = start_client(helper, random.Random(dice.random()))
    pids = {"server": helper.pid, "guard": helper.process.pid, "client": client}
    time.sleep(dice.random() * 0.03)
    when = time.monotonic()
    for victim in victims:
        os.kill(pids[victim], signal.SIGKILL)
    try:
        if "server" in victims and "guard" in victims:
            wait_for_death(helper.pid)
            helper.process.wait(20)
            helper.log.unlink()
            helper = Helper(workdir)
        try:
            wait_until(lambda: is_back(helper) and not left_in_journal(workdir), f"{victims}: all is back", 5)
        except AssertionError as error:
            raise AssertionError(
                f"{error}: {left_in_journal(workdir)}, {helper.gpu_calls()[-1:]}, {helper.package_uw()}, "
                                 f"{helper.said()}") from None
        assert time.monotonic() - when < 2, victims
    finally:
        if "client" not in victims:
            os.kill(client, signal.SIGKILL)
        os.waitpid(client, 0)
        if helper.process.poll() is None and victims == ("client",) or {"server", "guard"} <= set(victims):
            helper.stop()
        helper.process.wait(20)
        wait_for_death(helper.pid)
    assert is_back(helper) and not left_in_journal(workdir), (victims, helper.said())
    helper.log.unlink()


def make(victims):
    def kills(workdir):
        dice = random.Random(repr(victims))
        for _ in range(ROUNDS):
            one_round(workdir, victims, dice)
    kills.__name__ = "_".join(victims)
    kills.__doc__ = (f"kill -9 of {' and '.join(victims)} at {ROUNDS} random moments: all limits are restored, "
                     "the journal is empty")
    return kills


@test
def slow_card(workdir):
    """card that takes 300 ms for a change, wattled killed during it: its limit is restored all the same"""
    Helper.prepare(workdir, cards=CARD + "set_delay_ms 300\n")
    dice = random.Random(1)
    for victims in (("server",), ("guard",), ("client",), ("server", "guard")):
        one_round(workdir, victims, dice)


@test
def others_leave_a_limit(workdir):
    """limits of root's own wattle and its guard, both killed: restored by a running wattled"""
    helper = Helper(workdir)
    places = {"WATTLE_STATE": str(workdir.folder / "state"), "WATTLE_NVML": str(NVML),
              "WATTLE_FAKE_NVML": str(helper.cards)}
    wattle = workdir.start("cap", "set", "-q", "gpu-0", "300", "--", "sleep", "60", env=places)
    wait_until(lambda: helper.gpu_calls()[-1:] == [(0, 300000)], "the limit")
    [guard] = guards_of(wattle.pid)
    os.kill(guard, signal.SIGSTOP)  # otherwise it may be faster than the test
    for pid in (*children_of(wattle.pid), wattle.pid, guard):
        os.kill(pid, signal.SIGKILL)
    wattle.wait()
    wait_until(lambda: helper.gpu_calls()[-1] == (0, 700000), "wattled reads the journal")
    wait_until(lambda: not left_in_journal(workdir), "the journal is empty")
    wait_until(lambda: "from 300 W, which an owner that died had set" in helper.said(), "wattled reports it")
    helper.stop()


for each in SETS:
    test(make(each))

harness.main()
