#!/usr/bin/python3
"""wattle serve in a cluster: a bounded number of series for jobs and cgroups, ended ones, restarts, a file for
node_exporter."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from harness import in_processes_of_its_own, is_alive, locked_by_a_reader, main, near, test, wait_until
from serving import BUSY, Server, gpus, job, names_of, powercap, restart, rows, samples, scrape, stop, textfile, total

ZONES = ["package-0=40", "package-0/dram=5"]


def state_file(workdir):
    files = list((workdir.folder / "state").glob("serve-*.json"))
    assert len(files) == 1, files
    return files[0]


@test
def each_joule_in_one_row(workdir):
    """jobs and cgroups: as many series as allowed, the others combined; all series and the unused energy make the
    total"""
    environment, _ = powercap(workdir, *ZONES)
    jobs = [job(workdir, 100 + i) for i in range(5)]
    server = Server(workdir, "--jobs", 3, "--cgroups", 2, "--interval", "200ms", env=environment)
    server.wait_for_samples(8)
    found = scrape(server)
    told = names_of(found, "wattle_job_energy_joules_total", "jobid")
    # As many rows, as many that were replaced and not scraped yet, and "other".
    assert 5 <= len(told) <= 3 + 3 + 2 and told > {"other", "none"}, told
    assert len(names_of(found, "wattle_cgroup_energy_joules_total", "cgroup")) <= 2 + 2 + 1
    everything = total(found, "wattle_energy_joules_total")
    near(total(found, "wattle_attributed_energy_joules_total"), everything,
         absolute=1e-4)  # each row is rounded to a millionth
    nobody = sum(total(found, "wattle_attributed_energy_joules_total", to=to) for to in ("idle", "unattributed"))
    for family in ("job", "cgroup"):
        near(total(found, f"wattle_{family}_energy_joules_total") + nobody, everything, absolute=1e-4)
    told -= {"other", "none"}
    # A job that got a row in the last sample may have used nothing since.
    assert sum(total(found, "wattle_job_energy_joules_total", jobid=number, user="nobody", resource="cpu")
               for number in told) > 0
    for number in told:
        assert total(found, "wattle_job_processes", jobid=number) == 1, (number, found)
    for process in jobs:
        stop(process)


@test
def children_without_words(workdir):
    """child started with an empty environment: belongs to the job of its parent"""
    environment, _ = powercap(workdir, *ZONES)
    parent = job(workdir, 7, f"env -i sh -c '{BUSY}' & wait")
    server = Server(workdir, "--interval", "200ms", env=environment)
    server.wait_for_samples(4)
    assert total(scrape(server), "wattle_job_processes", jobid="7") == 2
    for child in map(int, pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()):
        os.kill(child, signal.SIGKILL)
    parent.wait()


@test
def ended_until_scraped(workdir):
    """ended job and process: reported with their last energy until each of two scrapers has read them"""
    environment, _ = powercap(workdir, *ZONES)
    burning = job(workdir, 42)
    server = Server(workdir, "--processes", 50, "--interval", "200ms", env=environment)
    server.wait_for_samples(4)
    for agent in ("one", "two"):
        before = scrape(server, agent)
    assert rows(before, "wattle_process_energy_joules_total", pid=str(burning.pid)), before
    stop(burning)
    server.wait_for_samples(server.looks() + 3)
    server.ask("/metrics", method="HEAD")  # without output
    server.wait_for_samples(server.looks() + 2)
    for agent in ("one", "two"):
        after = scrape(server, agent)
        assert total(after, "wattle_job_energy_joules_total", jobid="42") >= \
            total(before, "wattle_job_energy_joules_total", jobid="42") > 0, agent
        assert total(after, "wattle_process_energy_joules_total", pid=str(burning.pid)) > 0, agent
        assert total(after, "wattle_process_cpu_seconds_total", pid=str(burning.pid)) > 0, agent
        assert not rows(after, "wattle_job_power_watts", jobid="42")
        assert not rows(after, "wattle_process_power_watts", pid=str(burning.pid))
    server.wait_for_samples(server.looks() + 2)
    later = scrape(server, "one")
    assert not rows(later, "wattle_job_energy_joules_total", jobid="42")
    assert not rows(later, "wattle_process_energy_joules_total", pid=str(burning.pid))


@test
def two_behind_one_address(workdir):
    """two scrapers with one program at one address, as behind a NAT: distinguished by their connections; each gets the
    final values"""
    environment, _ = powercap(workdir, *ZONES)
    burning = job(workdir, 42)
    server = Server(workdir, "--processes", 50, "--interval", "200ms", env=environment)
    server.wait_for_samples(3)
    pair = [http.client.HTTPConnection(server.host, server.port, timeout=10) for _ in range(2)]

    def ask(connection):
        connection.request("GET", "/metrics", headers={"User-Agent": "Prometheus/2.42"})
        return samples(connection.getresponse().read().decode())

    for connection in pair:
        assert total(ask(connection), "wattle_job_energy_joules_total", jobid="42") > 0
    stop(burning)
    server.wait_for_samples(server.looks() + 3)
    for connection in pair:
        found = ask(connection)
        assert rows(found, "wattle_job_energy_joules_total",
                    jobid="42"), "values that one has read must be read by the other too"
        assert rows(found, "wattle_process_energy_joules_total", pid=str(burning.pid))
        server.wait_for_samples(server.looks() + 2)
    assert not rows(ask(pair[0]), "wattle_job_energy_joules_total", jobid="42")


@test
def processes_over_a_restart(workdir):
    """killed and restarted: process counters continue; a process that ended meanwhile is reported until it is
    scraped"""
    environment, _ = powercap(workdir, *ZONES)
    stays, ends = job(workdir, 1), job(workdir, 2)
    options = ("--processes", 50, "--interval", "100ms")
    server = Server(workdir, *options, env=environment)

    def joules(found, process):
        return total(found, "wattle_process_energy_joules_total", pid=str(process.pid))

    for how in (signal.SIGKILL, signal.SIGTERM):
        wait_until(lambda: joules(scrape(server), stays) > 1, "a joule")
        before = scrape(server)
        stop(server.process, how)
        if ends.poll() is None:
            stop(ends)
        server = Server(workdir, *options, listen=f"{server.host}:{server.port}", env=environment)
        after = scrape(server)
        fell = {key: (value, after[key]) for key, value in counters(before).items() if after.get(key, value) < value}
        assert not fell, fell
        assert joules(after, stays) >= joules(before, stays)
        assert joules(after, ends) == joules(before, ends)
        if how == signal.SIGKILL:
            job_j = [total(found, "wattle_job_energy_joules_total", jobid="2") for found in (before, after)]
            assert job_j[0] == job_j[1] > 0, job_j
        server.wait_for_samples(server.looks() + 2)
    assert not rows(scrape(server), "wattle_process_energy_joules_total", pid=str(ends.pid)), "it has been scraped"
    assert state_file(workdir).stat().st_mode & 0o077 == 0, "command lines are readable by nobody else"
    stop(stays)


@test
def a_fork_storm(workdir):
    """a thousand short processes: no thousand series; a limited number at once, and a limited number of new ones"""
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--processes", 5, "--interval", "100ms", env=environment)
    storm = workdir.start("-c",
        "while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' & sh -c 'sleep .03'; done",
                       program="/bin/sh")
    met, end = set(), time.monotonic() + 4
    while time.monotonic() < end:
        found = scrape(server)
        pids = names_of(found, "wattle_process_cpu_seconds_total", "pid")
        assert len(pids) <= 2 * 5, pids
        met |= pids
        time.sleep(0.05)
    stop(storm)
    assert 5 <= len(met) <= 20 + 2, met  # a minute's


@test
def server_without_scraper(workdir):
    """no scrapes: as many ended processes as there are rows are kept, and the energy of the others is not lost"""
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--jobs", 2, "--interval", "100ms", env=environment)
    for number in range(6):
        burning = job(workdir, number)
        server.wait_for_samples(server.looks() + 3)
        stop(burning)
    server.wait_for_samples(server.looks() + 2)
    found = scrape(server)
    assert len(names_of(found, "wattle_job_energy_joules_total", "jobid")) <= 2 + 2 + 2
    assert total(found, "wattle_job_energy_joules_total", jobid="other") > 0
    nobody = sum(total(found, "wattle_attributed_energy_joules_total", to=to) for to in ("idle", "unattributed"))
    near(total(found, "wattle_job_energy_joules_total") + nobody, total(found, "wattle_energy_joules_total"),
         absolute=1e-4)


def counters(found):
    return {key: value for key, value in found.items() if key[0].startswith("wattle_") and key[0].endswith("_total")}


@test
def restarts(workdir):
    """killed or stopped regularly: counters continue, none decreases, and the hardware's energy meanwhile is
    included"""
    environment, top = powercap(workdir, *ZONES)
    raw = top / "class/powercap/intel-rapl:0/energy_uj"
    burning = job(workdir, 9)
    options = ("--cgroups", 20, "--interval", "200ms")
    first_uj = int(raw.read_text())
    server = Server(workdir, *options, env=environment)
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        server.wait_for_samples(3)
        before = counters(scrape(server))
        server = restart(workdir, server, how, *options, env=environment)
        after = counters(scrape(server))
        fell = {key: (value, after[key]) for key, value in before.items() if after.get(key, value) < value}
        assert not fell, fell
        gone = {key for key in before if key not in after and key[0] != "wattle_cgroup_energy_joules_total"}
        assert not {key for key in gone if not key[0].startswith("wattle_cgroup")}, gone
    last = scrape(server)
    last_uj = int(raw.read_text())
    near(total(last, "wattle_domain_energy_joules_total", domain="package-0"), (last_uj - first_uj) / 1e6,
         absolute=40 * 1.0)  # of several times as much: a second at 40 W for the edges
    assert total(last, "wattle_attributed_energy_joules_total", to="unattributed") > 0
    stop(burning)


@test
def other_boots(workdir):
    """counters continue from the saved state after a reboot; an unreadable state file starts at 0"""
    environment, _ = powercap(workdir, *ZONES)
    server = Server(workdir, "--interval", "100ms", env=environment)
    server.wait_for_samples(5)
    stop(server.process, signal.SIGTERM)
    file, address = state_file(workdir), f"{server.host}:{server.port}"
    told = json.loads(file.read_text())
    assert told["ended_in_order"] and told["energy"]["cpu"]["total_j"] > 0, told
    told["energy"]["cpu"]["total_j"] += 1e6
    # A simulated tree is no later boot of this machine: there another one's energy begins at 0.
    for change, goes_on in (({}, True), ({"boot": "another"}, False), ({"ended_in_order": False}, True),
                            ({"schema": "wattle-serve-state/9"}, False)):
        file.write_text(json.dumps({**told, **change}))
        os.utime(file)  # later than the last server's own state, also within one tick of the file system's clock
        server = Server(workdir, env=environment)
        energy_j = total(scrape(server), "wattle_energy_joules_total")
        assert (energy_j > 1e6) == goes_on, (change, energy_j)
        stop(server.process)
    for text in ("", "{", "[]", "null", '{"schema": 1}', "\0" * 100):
        file.write_text(text)
        server = Server(workdir, env=environment)
        assert 0 <= total(scrape(server), "wattle_energy_joules_total") < 1e6, text
        stop(server.process)
    for name in (file, file.with_name(file.name + ".tmp")):  # pipes without a reader or writer: not waited for
        name.unlink(missing_ok=True)
        os.mkfifo(name)
    server = Server(workdir, "--interval", "100ms", listen=address, env=environment)
    server.wait_for_samples(3)
    stop(server.process, signal.SIGTERM)
    assert json.loads(file.read_text())["ended_in_order"]


@test
def another_port(workdir):
    """server at another port: continues from the previous one's state, but never from that of a running one"""
    environment, _ = powercap(workdir, *ZONES)
    first = Server(workdir, "--interval", "100ms", env=environment)
    first.wait_for_samples(2)
    at_once = total(scrape(first), "wattle_energy_joules_total")
    second = Server(workdir, env=environment)
    assert total(scrape(second), "wattle_energy_joules_total") < at_once, "it used the state of a running server"
    stop(second.process)
    first.wait_for_samples(first.looks() + 1)
    before = total(scrape(first), "wattle_energy_joules_total")
    stop(first.process)
    assert len(list((workdir.folder / "state").glob("serve-*.json"))) == 2
    third = Server(workdir, env=environment)
    assert total(scrape(third), "wattle_energy_joules_total") > before
    assert len(list((workdir.folder / "state").glob("serve-*.json"))) == 2


@test
def two_of_one_name(workdir):
    """second server with the same textfile, or one that cannot serve: refused, as counters would alternate; the first
    one's file stays; unwritable state is reported"""
    environment, _ = powercap(workdir, *ZONES)
    one, path = textfile(workdir, env=environment)
    taken = ("--listen", "127.0.0.1:0")
    for options in ((), taken):
        done = workdir.wattle("serve", "--textfile", path, *options, env=environment)
        assert (done.returncode == 1 and "another wattle serve" in done.stderr
                and done.stderr.count("\n") == 1), done.stderr
        assert path.exists() and is_alive(one.pid)
    stop(one)
    done = workdir.wattle("serve", "--textfile", path, "--listen", "0.0.0.0:1", env=environment)
    assert done.returncode != 0 and path.exists(), "it removed a file that it did not write"
    (workdir.folder / "file").write_text("")
    third = Server(workdir, env={**environment, "WATTLE_STATE": str(workdir.folder / "file/below")})
    assert b"counters start at 0" in third.said and b"WATTLE_STATE" in third.said, third.said
    assert total(scrape(third), "wattle_energy_joules_total") >= 0


@test
def readers_locks(workdir):
    """reader that locks a textfile, or an earlier version's lock of the state file: does not stop the server"""
    environment, _ = powercap(workdir, *ZONES)
    one, path = textfile(workdir, env=environment)
    assert path.with_name("wattle.prom.lock").stat().st_mode & 0o777 == 0o600
    stop(one)
    with locked_by_a_reader(path):
        one, path = textfile(workdir, env=environment)
    one.terminate()
    assert workdir.finish(one).returncode == 0
    first = Server(workdir, env=environment)
    first.process.terminate()
    assert workdir.finish(first.process).returncode == 0
    (state,) = (workdir.folder / "state").glob("serve-*_*.json")
    lock = state.with_name(state.name + ".lock")
    lock.touch(0o644)
    second = restart(workdir, first, signal.SIGKILL, env=environment)
    assert b"counters start" not in second.said, second.said
    assert lock.stat().st_mode & 0o777 == 0o600


@test
def node_and_gpu(workdir):
    """every figure: has the host's name, or that of --node; GPUs have their number"""
    environment, _ = powercap(workdir, *ZONES)
    cards = gpus(workdir, "gpu\nname A\npower_mw constant 100000\n\ngpu\nname B\npower_mw constant 200000\n")
    for options, name in (((), socket.gethostname()), (("--node", 'rack 4 "x"'), r'rack 4 \"x\"')):
        server = Server(workdir, *options, env={**environment, **cards})
        lines = server.ask("/metrics")[2].decode().splitlines()
        told = [line for line in lines if line.startswith("wattle_")]
        assert told and all(f'node="{name}"' in line for line in told), [line for line in told if name not in line]
        assert [line for line in told
                if re.match(r'wattle_domain_power_watts\{domain="gpu-1",kind="gpu",gpu="1"', line)]
        stop(server.process)
    done = workdir.wattle("serve", "--listen", "127.0.0.1:0", "--node", "x" * 256, env=environment)
    assert done.returncode == 2 and "--node" in done.stderr and "255" in done.stderr, done


@test
def textfiles(workdir):
    """textfile: complete at every read, readable by others, without node_exporter's own names, removed at the end"""
    environment, _ = powercap(workdir, *ZONES)
    process, path = textfile(workdir, env=environment)
    assert path.stat().st_mode & 0o777 == 0o644
    energies, end = [], time.monotonic() + 1
    while time.monotonic() < end:
        found = samples(path.read_text())
        assert not [name for name, _ in found if not name.startswith("wattle_")]
        energies.append(total(found, "wattle_energy_joules_total"))
        assert total(found, "wattle_self_cpu_seconds_total") > 0  # the last series of the file
    assert energies == sorted(energies) and len(set(energies)) > 5, energies
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=path.read_bytes(), capture_output=True)
        assert checked.returncode == 0, checked
    stop(process, signal.SIGKILL)
    assert total(samples(path.read_text()), "wattle_energy_joules_total") >= energies[-1]
    path.chmod(0o640)
    process, path = textfile(workdir, env=environment)
    wait_until(lambda: total(samples(path.read_text()), "wattle_energy_joules_total") > energies[-1], "counting on")
    assert path.stat().st_mode & 0o777 == 0o640
    process.terminate()
    assert workdir.finish(process).returncode == 0
    assert sorted(p.name for p in workdir.folder.iterdir() if p.name.startswith("wattle.prom")) == []


@test
def wrong_textfiles(workdir):
    """textfile name that node_exporter would not read, or a missing folder: one line, and nothing is started; a full
    disk is survived"""
    for path, status, says in (("figures.txt", 2, ".prom"), (".prom", 2, ".prom"),
                               ("nowhere/x.prom", 1, "nowhere/x.prom")):
        done = workdir.wattle("serve", "--textfile", path)
        assert done.returncode == status and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    os.mkfifo(workdir.folder / "wattle.prom.tmp")  # another program's, without a reader: neither written nor waited for
    environment, _ = powercap(workdir, *ZONES)
    process, path = textfile(workdir, env=environment)
    path.unlink()
    (workdir.folder / "wattle.prom.tmp").mkdir()
    line = wait_until(lambda: next((l for l in iter(process.stderr.readline, b"") if b"warning" in l),
                                   None), "a warning")
    assert b"wattle.prom" in line and b"tries again" in line, line
    (workdir.folder / "wattle.prom.tmp").rmdir()
    wait_until(path.exists, "the file again")
    assert is_alive(process.pid)


in_processes_of_its_own()  # beside it others may run jobs of Slurm
main()
