"""Programs that send false data to the recorder: it ends as usual, and the spans of a regular program beside them are
intact."""
import signal
import time

from harness import BUILD, main, test, wait_until

SPANNER = BUILD / "tests/fakes/spanner"
LIAR = BUILD / "tests/fakes/ring_liar"
FILE = ["run", "-q", "--disable-logs", "--overwrite", "-o", "run.sqlite", "--"]


def beside_an_honest_one(workdir, lies, seconds=1.0):
    """Runs the hostile program beside a regular one, and returns the names of all spans."""
    done = workdir.wattle(*FILE, "sh", "-c", f"{SPANNER} pulse {seconds} & {lies}; wait")
    assert done.returncode == 0, (done.returncode, done.stderr)
    spans = workdir.rows("SELECT name, close, count(*) FROM span GROUP BY 1, 2")
    honest = {(name, close): n for name, close, n in spans if name in ("outer", "inner")}
    assert set(honest) == {("outer", "ended"), ("inner", "ended")}, spans
    assert honest["inner", "ended"] > 5 * seconds, spans
    assert workdir.rows("SELECT complete FROM segment") == [(1,)]
    return {name: n for name, close, n in spans if name not in ("outer", "inner")}


def warnings(workdir):
    return " ".join(text for text, in workdir.rows("SELECT text FROM event WHERE kind = 'warning'"))


@test
def rings_that_are_none(workdir):
    """anything but a sealed memfd of the right size: not mapped"""
    lies = "; ".join(f"{LIAR} {how}" for how in
                     ("unsealed", "unshrunk", "small", "large", "odd", "file", "nothing", "magic", "many"))
    assert beside_an_honest_one(workdir, lies) == {}


@test
def impossible_heads(workdir):
    """head that runs ahead or goes back: reading of that ring ends, and is reported"""
    assert beside_an_honest_one(workdir, f"{LIAR} ahead; {LIAR} back") == {"liar": 2}
    assert "2 span rings were damaged" in warnings(workdir)


@test
def noise(workdir):
    """random records: only complete rows"""
    beside_an_honest_one(workdir, "; ".join(f"{LIAR} noise {seed}" for seed in range(4)), 2)
    assert workdir.rows("SELECT count(*) FROM span WHERE end_ns < begin_ns OR name = '' OR parent >= id") == [(0,)]
    assert "invalid span records" in warnings(workdir)


@test
def forged(workdir):
    """any hello: spans belong to the process that sent it"""
    assert beside_an_honest_one(workdir, f"{LIAR} forged") == {"liar": 1, "forged": 1}
    assert workdir.rows("SELECT count(DISTINCT pid) FROM span WHERE name IN ('forged', 'liar')") == [(1,)]
    assert workdir.rows("SELECT count(*) FROM span WHERE pid <= 1") == [(0,)]


@test
def cut_memory(workdir):
    """memory cannot be truncated while it is read"""
    beside_an_honest_one(workdir, f"{LIAR} truncate")


@test
def silence(workdir):
    """silent connections: dropped"""
    assert beside_an_honest_one(workdir, f"{LIAR} silent 500") == {}


@test
def floods(workdir):
    """ten thousand half messages: no regular span is lost"""
    assert beside_an_honest_one(workdir, f"{LIAR} flood 10000", 2) == {}


@test
def never_done(workdir):
    """program that writes faster than the recorder reads: sampling continues"""
    begin = time.monotonic()
    beside_an_honest_one(workdir, f"{LIAR} fast 2", 2)
    assert time.monotonic() - begin < 30
    samples, gap = workdir.rows(
        "SELECT count(*), max(gap) FROM (SELECT (t_ns - lag(t_ns) OVER (ORDER BY t_ns)) / 1e9 AS gap "
                             "FROM sample)")[0]
    assert samples > 5 and gap < 3, (samples, gap)


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


@test
def chosen_numbers(workdir):
    """ranges whose numbers collide in an unkeyed hash: neither cost samples nor delay the end that SIGTERM requests"""
    process = workdir.start(*FILE, LIAR, "collide", 60)
    wait_until((workdir.folder / "run.sqlite").exists, "the run file")
    wait_until(lambda: workdir.rows("SELECT count(*) FROM sample")[0][0] >= 20, "twenty samples", 60)
    asked_s = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert workdir.finish(process).returncode == 128 + signal.SIGTERM
    # 0.6 s without sanitizers, 100 s before the hash was keyed
    assert time.monotonic() - asked_s < 10, time.monotonic() - asked_s
    samples, lost = workdir.rows("SELECT samples, lost_samples FROM segment")[0]
    assert lost <= samples / 10, (samples, lost)


@test
def crossing(workdir):
    """program that ends the outermost of 1,024 spans again and again: costs no samples"""
    beside_an_honest_one(workdir, f"{LIAR} cross 1", 1)
    samples, lost = workdir.rows("SELECT samples, lost_samples FROM segment")[0]
    assert lost <= samples / 5, (samples, lost)


@test
def large_rings(workdir):
    """rings of 64 MiB: refused and reported, without memory in the recorder"""
    process = workdir.start(*FILE, LIAR, "rings", 24, 1 << 22)
    peak = 0.0
    while process.poll() is None:
        try:
            peak = max(peak, peak_mib(process.pid))
        except (OSError, StopIteration):
            break
        time.sleep(0.05)
    workdir.finish(process)
    assert "24 span rings were refused" in warnings(workdir), warnings(workdir)
    assert peak < 300, peak  # 1.5 GiB if they were read


@test
def strangers(workdir):
    """program outside the target that learned the address: refused"""
    process = workdir.start(*FILE, "sh", "-c", f"echo $WATTLE_RING; {SPANNER} pulse 1.5")
    ring = process.stdout.readline().decode().strip()
    assert ring.startswith("1:"), ring
    # The first continues and is checked; the second ends at once, and does not know the token.
    stranger = workdir.start("pulse", 1, program=SPANNER, env={"WATTLE_RING": ring})
    parts = ring.split(":")
    for _ in range(5):
        workdir.start("nested", program=SPANNER, env={"WATTLE_RING": ":".join(parts[:3] + ["0" * 16] + parts[4:])})
    stranger.wait()
    workdir.finish(process)
    pids = {pid for pid, in workdir.rows("SELECT DISTINCT pid FROM span")}
    assert len(pids) == 1 and stranger.pid not in pids, pids
    assert "refused" in warnings(workdir)


main()
