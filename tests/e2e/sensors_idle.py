"""wattle sensors --calibrate-idle: the idle power of a machine that is shown to be idle."""
import json
import re
import shutil
import threading
import time

try:
    import jsonschema
except ImportError:
    jsonschema = None

from harness import BURNER, main, near, run_first, test, wait_until
from sensor_machines import METAL, VM, cards, doctor, machine, row_of, simulate


class MovingStat:
    """A /proc of two cores that are busy for a fraction of the time."""

    def __init__(self, workdir, share=lambda t: 0.0):
        self.folder = workdir.tree("proc", {"cpuinfo": METAL})
        self.share, self.stop = share, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        wait_until(lambda: (self.folder / "stat").exists(), "the first stat")

    def run(self):
        run_first()
        started = last = time.monotonic()
        busy = idle = 1000.0
        while not self.stop.wait(0.01):
            now = time.monotonic()
            share = self.share(now - started)
            busy, idle, last = busy + 200 * share * (now - last), idle + 200 * (1 - share) * (now - last), now
            new = self.folder / "stat.new"
            new.write_text(f"cpu  {busy:.0f} 0 0 {idle:.0f} 0 0 0 0 0 0\ncpu0 1 0 0 1\ncpu1 1 0 0 1\n")
            new.rename(self.folder / "stat")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def calibrate(workdir, env, seconds=2):
    return workdir.wattle("sensors", "--calibrate-idle", "--seconds", seconds,
                       env={**env, "WATTLE_STATE": str(workdir.folder / "state/wattle")})


def stored(workdir):
    path = workdir.folder / "state/wattle/idle.json"
    return json.loads(path.read_text()) if path.exists() else None


IDLE_ZONES = ["--zone", "package-0=20+0.4*sin@0.7", "--zone", "package-0/core=3", "--zone", "package-0/dram=2"]


@test
def idle_power(workdir):
    """idle power of each domain: stored within its error, with date and host"""
    with MovingStat(workdir) as proc:
        env = {**simulate(workdir, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        done = calibrate(workdir, env, seconds=3)
    assert done.returncode == 0, done
    baseline = stored(workdir)
    if jsonschema is not None:
        jsonschema.Draft202012Validator(json.loads(workdir.wattle("schema", "idle-baseline").stdout)).validate(baseline)
    assert baseline["schema"] == "wattle-idle/1" and re.fullmatch("[0-9a-f]{16}", baseline["host"]), baseline
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", baseline["date"]), baseline
    found = {row["domain"]: row for row in baseline["domains"]}
    assert set(found) == {"package-0", "core-0", "dram-0"}, found
    for domain, expected_w in (("package-0", 20), ("core-0", 3), ("dram-0", 2)):
        row = found[domain]
        near(row["idle_w"], expected_w, relative=0.01)
        assert abs(row["idle_w"] - expected_w) <= 1.5 * row["error_w"] + 0.1 and row["error_w"] < 0.5, row
        assert row["source"] == "powercap" and row["device"].startswith("intel-rapl:0") and row["seconds"] > 2, row


@test
def attribution_active(workdir):
    """run --attribution active: uses the stored idle power, with its date, and sensors shows it"""
    with MovingStat(workdir) as proc:
        sim = simulate(workdir, "sim", *IDLE_ZONES)
        assert calibrate(workdir, {**sim, "WATTLE_PROCFS": str(proc.folder)}).returncode == 0
    state = {**sim, "WATTLE_STATE": str(workdir.folder / "state/wattle")}
    date = stored(workdir)["date"]
    report, done = workdir.report("--attribution", "active", "--", "sleep", "0.5", env=state)
    assert "idle" not in done.stderr, done.stderr
    kept = workdir.rows("select idle_w, idle_error_w, idle_date from device where name = 'package-0'")
    near(kept[0][0], 20, relative=0.01)
    assert kept[0][1] > 0 and kept[0][2] == date, kept
    package = next(d for d in report["energy"]["domains"] if d["domain"] == "package-0")
    assert date[:10] in package["attribution"], package
    workdir.report("--", "sleep", "0.1", env=state)
    assert workdir.rows("select idle_w from device where name = 'package-0'") == [(None,)]
    row = row_of(doctor(workdir, state)[0], "powercap", "package-0")
    near(row["idle_w"], 20, relative=0.01)
    assert row["idle_date"] == date and f"Idle power, measured {date[:10]}" in workdir.wattle("sensors",
                                                                                              env=state).stdout


@test
def not_while_busy(workdir):
    """program that uses a core: nothing is stored, and the message names it"""
    env = simulate(workdir, "sim", *IDLE_ZONES)
    burner = workdir.start("cpu", "30", program=BURNER)
    done = calibrate(workdir, env)
    burner.kill()
    assert done.returncode == 1 and stored(workdir) is None, done
    assert len(done.stderr.splitlines()) == 1 and "% busy" in done.stderr and "burner" in done.stderr, done.stderr


@test
def not_for_a_moment(workdir):
    """burst during the measurement: starts it again; refused if the machine is never idle for long enough"""
    with MovingStat(workdir, lambda t: 0.5 if 1 < t < 1.5 else 0.0) as proc:
        env = {**simulate(workdir, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        started = time.monotonic()
        assert calibrate(workdir, env).returncode == 0
        assert time.monotonic() - started > 2.5
    shutil.rmtree(workdir.folder / "state")
    with MovingStat(workdir, lambda t: 0.5 if t % 1 < 0.3 else 0.0) as proc:
        done = calibrate(workdir, env)
    assert done.returncode == 1 and stored(workdir) is None, done


@test
def not_unless_known(workdir):
    """load unknown, power not steady, no sensors: no idle power"""
    refusals = {
        "does not report how busy": {**simulate(workdir, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(workdir.tree(
            "still", {"cpuinfo": METAL, "stat": "cpu  1 0 0 1 0 0 0 0\n"}))},
        "this machine has no readable energy sensor": machine(workdir, "vm", cpuinfo=VM),
    }
    with MovingStat(workdir) as proc:
        refusals["was not steady"] = {**simulate(workdir, "wild", "--zone", "package-0=20+15*step@4"),
                                      "WATTLE_PROCFS": str(proc.folder)}
        for reason, env in refusals.items():
            done = calibrate(workdir, env, seconds=4 if "steady" in reason else 2)
            assert done.returncode == 1 and stored(workdir) is None, (reason, done)
            assert len(done.stderr.splitlines()) == 1 and reason in done.stderr, (reason, done.stderr)


@test
def gpus_have_to_be_idle(workdir):
    """GPU with a process or with load: refuses the calibration; an idle one is measured with its UUID, a suspended one
    is not"""
    uuid = "GPU-12345678-1234-1234-1234-123456789abc"
    card = f"gpu\nuuid {uuid}\npower_mw constant 30000\nenergy_period_ms 20\n"
    with MovingStat(workdir) as proc:
        base = {**simulate(workdir, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        for what, reason in (("process 4711 C 0 1000000\n", "process"), ("utilization_percent 3 0\n", "3 % busy")):
            done = calibrate(workdir, {**base, **cards(workdir, card + what)})
            assert done.returncode == 1 and stored(workdir) is None, (what, done)
            assert "gpu-0" in done.stderr and reason in done.stderr, (what, done.stderr)
        asleep = {"class/drm/card0/device/vendor": "0x1002\n", "class/drm/card0/device/uevent": "DRIVER=amdgpu\n",
                  "class/drm/card0/device/power/runtime_status": "suspended\n"}
        workdir.tree("sim", asleep)
        done = calibrate(workdir, {**base, **cards(workdir, card)})
    assert done.returncode == 0, done
    gpu = next(row for row in stored(workdir)["domains"] if row["domain"] == "gpu-0")
    near(gpu["idle_w"], 30, relative=0.02)
    assert gpu["uuid"] == uuid and gpu["source"] == "nvml", gpu


@test
def other_domains_stay(workdir):
    """calibration: replaces the measured domains and keeps the others with their own dates"""
    with MovingStat(workdir) as proc:
        env = {**simulate(workdir, "one", "--zone", "package-0=20", "--zone", "package-1=10"),
               "WATTLE_PROCFS": str(proc.folder)}
        assert calibrate(workdir, env, seconds=1).returncode == 0
        path = workdir.folder / "state/wattle/idle.json"
        old = json.loads(path.read_text())
        for row in old["domains"]:
            row["date"] = "2020-01-02T03:04:05Z"
        path.write_text(json.dumps(old))
        env["WATTLE_SYSFS"] = simulate(workdir, "two", "--zone", "package-0=30")["WATTLE_SYSFS"]
        assert calibrate(workdir, env, seconds=1).returncode == 0
    rows = {row["domain"]: row for row in stored(workdir)["domains"]}
    near(rows["package-0"]["idle_w"], 30, relative=0.02)
    near(rows["package-1"]["idle_w"], 10, relative=0.02)
    assert rows["package-1"]["date"] == "2020-01-02T03:04:05Z" != rows["package-0"]["date"], rows
    assert not [path for path in (workdir.folder / "state/wattle").iterdir() if path.name != "idle.json"]


@test
def not_any_baseline(workdir):
    """baseline that is old, another machine's or invalid: not used, and the run reports it"""
    with MovingStat(workdir) as proc:
        sim = simulate(workdir, "sim", *IDLE_ZONES)
        assert calibrate(workdir, {**sim, "WATTLE_PROCFS": str(proc.folder)}, seconds=1).returncode == 0
    path = workdir.folder / "state/wattle/idle.json"
    good = json.loads(path.read_text())
    state = {**sim, "WATTLE_STATE": str(path.parent)}
    old = {**good, "domains": [{**row, "date": "2020-01-02T03:04:05Z"} for row in good["domains"]]}
    for text, says in ((json.dumps(old), "more than 90 days"),
                       (json.dumps({**good, "host": "0" * 16}), "another machine"),
                       ("{", str(path)), ("[]", str(path)), (json.dumps({**good, "schema": "x"}), str(path))):
        path.write_text(text)
        _, done = workdir.report("--attribution", "active", "--", "true", env=state)
        assert says in done.stderr and len(done.stderr.splitlines()) == 1, (says, done.stderr)
        assert workdir.rows("select idle_w from device where name = 'package-0'") == [(None,)], says
        assert says in json.loads(workdir.wattle("sensors", "--json", env=state).stdout)["idle_note"], says
    path.unlink()
    _, done = workdir.report("--attribution", "active", "--", "true", env=state)
    assert not done.stderr, done.stderr


@test
def no_state_folder(workdir):
    """state folder that cannot be created: named with the variable that selects another"""
    with MovingStat(workdir) as proc:
        env = {**simulate(workdir, "sim", *IDLE_ZONES), "WATTLE_PROCFS": str(proc.folder)}
        (workdir.folder / "state").write_text("a file")
        done = calibrate(workdir, env, seconds=1)
    assert done.returncode == 1 and "state" in done.stderr and "WATTLE_STATE" in done.stderr, done


if __name__ == "__main__":
    main()
