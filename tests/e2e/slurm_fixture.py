"""A test cluster: a real slurmctld and a real slurmd on each of a few virtual nodes, which have their own host names,
network addresses, process ids (the same pids on each) and powercap trees.

    with Slurm(room) as slurm:
        slurm.power("vn0", "package-0=50"); slurm.power("vn1", "package-0=80")
        done = slurm.run("srun", "-N2", "-n4", WATTLE, "run", "-o", "run-%r.sqlite", "--", "sleep", "1")

All of it lives in one PID namespace; when its first process ends, everything else ends, whatever happened to the
test. It uses no systemd and no port of this machine, and a cgroup only on request. The nodes share the test's folder;
WATTLE_SYSFS is one path that is another folder on each of them.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from harness import BUILD, TESTS, Skip, near, wait_until

sys.path.insert(0, str(TESTS / "fakes"))
import expected_values  # noqa: E402

SIMULATOR = BUILD / "tests/fakes/powercap_sim"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "ip", "nsenter", "unshare", "mount")
UNIFIED = pathlib.Path("/sys/fs/cgroup/unified")  # of hybrid setups; slurmd needs to see cgroup v1
HEAD_ADDRESS = "10.99.1.1"

CONFIGURATION = """\
ClusterName={cluster}
SlurmctldHost=head({head})
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/{task}
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
KillWait=2
InactiveLimit=0
MailProg=/bin/true
PlugStackConfig={folder}/plugstack.conf
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"""
NODE = "NodeName={name} NodeHostname={name} NodeAddr={address} Port=16818 CPUs={cpus} State=UNKNOWN"


def needs_slurm():
    """Skips where no such cluster is possible."""
    if os.geteuid() != 0:
        raise Skip("virtual nodes need root")
    for name in PROGRAMS:
        if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise Skip(f"{name} is not installed")
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                           capture_output=True, text=True)
    if tried.returncode != 0:
        raise Skip(f"no namespaces here: {tried.stderr.strip()}")


class Cgroup:
    """A cgroup (v2) below that of this process; leaving the `with` kills its members and removes it."""

    def __init__(self):
        own = next(line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                   if line.startswith("0::"))
        mounts = (pathlib.Path("/sys/fs/cgroup"), UNIFIED)
        mount = next((path for path in mounts if (path / "cgroup.procs").exists()), None)
        if mount is None:
            raise Skip("no cgroup v2 here")
        self.path = mount / own.lstrip("/") / f"wattle-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise Skip(f"no cgroup can be made here: {error}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        (self.path / "cgroup.kill").write_text("1")
        for folder in (*self.below(), self.path):
            wait_until(lambda path=folder: self._remove(path), f"{folder} is empty")

    def below(self):
        return [path for path in self.path.glob("**/") if path != self.path][::-1]

    @staticmethod
    def _remove(path):
        try:
            path.rmdir()
        except OSError:
            return False
        return True


class Slurm:
    """names: of the nodes. plugins: lines of plugstack.conf. more: further lines of slurm.conf. cpus: what each node
    reports, whatever this machine has. cgroup: a Cgroup for the slurmds; None: nodes see no cgroups."""

    def __init__(self, workdir, names=("vn0", "vn1"), plugins=(), more="", cpus=8, proctrack="pgid", task="none",
                 cgroup=None):
        needs_slurm()
        self.cgroup = cgroup
        self.workdir, self.names = workdir, tuple(names)
        self.folder = workdir.folder / "slurm"
        self.sysfs = workdir.folder / "sys"  # seen from a node
        for path in (self.folder, self.folder / "state", self.sysfs, *map(self.tree, self.names)):
            path.mkdir()
        workdir.folder.chmod(0o777)  # jobs of other users have their files here
        addresses = {name: f"10.99.1.{number + 10}" for number, name in enumerate(self.names)}
        nodes = "\n".join(NODE.format(name=name, address=at, cpus=cpus) for name, at in addresses.items())
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            cluster="virtual", head=HEAD_ADDRESS, folder=self.folder, nodes=nodes, more=more, proctrack=proctrack,
            task=task))
        (self.folder / "plugstack.conf").write_text(f"include {self.folder}/wattle.conf\n")  # as docs/slurm.md has it
        (self.folder / "wattle.conf").write_text("".join(f"{line}\n" for line in plugins))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.addresses = addresses
        self.inits = {}  # of the head and of each node: the process that owns its namespaces, as seen from the test
        self.simulators, self.truths = {}, {}

    def tree(self, node):
        """A node's WATTLE_SYSFS, seen from outside."""
        return self.workdir.folder / f"sys-{node}"

    # ---- start and stop ----

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # The first process of the namespace takes all others along: nodes, daemons, jobs.
        for init in self.inits.values():
            try:
                os.kill(init, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.holders:
            process.wait(timeout=20)
        self.inits = {}

    holders = ()

    def _start(self):
        self._make_host("head", HEAD_ADDRESS)
        self._on_head("ip link add bridge0 type bridge && ip link set bridge0 up && ip link set lo up && "
                      f"ip address add {HEAD_ADDRESS}/24 dev bridge0")
        for name in self.names:
            self._make_node(name)
        self._daemon("head", "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
                     f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                     f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed")
        wait_until((self.folder / "munge.socket").exists, "munged listens")
        self._daemon("head", "slurmctld", "-D", "-i")
        for name in self.names:
            if self.cgroup is None and UNIFIED.exists():
                self.on(name, "mount", "-t", "tmpfs", "none", UNIFIED, check=True)
            join = f"echo 0 >{self.cgroup.path}/cgroup.procs && " if self.cgroup else ""
            self._daemon(name, "sh", "-c", f"{join}exec slurmd -D -N {name}", log="slurmd")
        wait_until(self._are_idle, f"all nodes are idle: {self.logs()}", seconds=30)

    def _make_host(self, name, address):
        """Namespaces with an idle first process; `unshare` waits for it, and dies with it."""
        # As the first process it inherits orphans; with SIGCHLD ignored the kernel reaps them, otherwise Slurm waits
        # for ever.
        inside = f"hostname {name} && mount --make-rprivate / && exec env --ignore-signal=CHLD sleep infinity"
        kinds = ["--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words = ["unshare", *kinds, "sh", "-c", inside]
        if name != "head":
            words = [*self._enter("head"), *words]
        process = self.workdir.start(*words[1:], program=words[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.holders = (*self.holders, process)
        self.inits[name] = wait_until(lambda: self._find_init(process.pid), f"{name} has its namespaces")

    def _find_init(self, pid):
        """The descendant that sleeps as the first process of its namespace."""
        waiting = [pid]
        while waiting:
            at = waiting.pop()
            try:
                status = pathlib.Path(f"/proc/{at}/status").read_text()
                waiting += map(int, pathlib.Path(f"/proc/{at}/task/{at}/children").read_text().split())
            except OSError:
                continue
            if re.search(r"^Name:\tsleep$", status, re.MULTILINE):
                return at
        return None

    def _make_node(self, name):
        self._make_host(name, self.addresses[name])
        # Its pid has no meaning on the head, so this is done from here.
        head = ["nsenter", f"--net=/proc/{self.inits['head']}/ns/net"]
        subprocess.run([*head, "ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns",
                        str(self.inits[name])], check=True)
        subprocess.run([*head, "ip", "link", "set", f"to-{name}", "master", "bridge0", "up"], check=True)
        self.on(name, "sh", "-c", f"ip link set lo up && ip address add {self.addresses[name]}/24 dev eth0 && "
                                  f"ip link set eth0 up && mount --bind {self.tree(name)} {self.sysfs}", check=True)

    def _on_head(self, script):
        self.on("head", "sh", "-c", script, check=True)

    def _enter(self, name):
        kinds = ("--net", "--uts", "--mount", "--pid")
        return ["nsenter", f"--target={self.inits[name]}", *kinds, f"--wdns={self.workdir.folder}", "--"]

    def _environment(self, **more):
        paths = f"{self.workdir.environment.get('PATH', '')}:/usr/sbin:/sbin"
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "WATTLE_SYSFS": str(self.sysfs), "PATH": paths, **more}

    def _daemon(self, host, *words, log=None):
        log = open(self.folder / f"{log or words[0]}-{host}.out", "wb")
        try:
            return self.start_on(host, *words, stdout=log, stderr=log)
        finally:
            log.close()

    def _are_idle(self):
        shown = self.run("sinfo", "-h", "-o", "%T %D")
        return shown.stdout.split() == ["idle", str(len(self.names))]

    def logs(self):
        """The daemons' logs, for a failing test."""
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}"
                         for path in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")]))

    # ---- use ----

    def start_on(self, host, *words, **options):
        """Starts a program on a node, or on the head, and returns at once."""
        entered = self._enter(host)
        options["env"] = self._environment(**options.get("env", {}))
        return self.workdir.start(*entered[1:], *words, program=entered[0], **options)

    def on(self, host, *words, check=False, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        done = self.workdir.finish(self.start_on(host, *words, **options), input)
        assert not check or done.returncode == 0, f"{words} on {host}: {done.stderr}"
        return done

    def start(self, *words, **options):
        """A client on the head: srun, sbatch, scontrol …"""
        return self.start_on("head", *words, **options)

    def run(self, *words, **options):
        return self.on("head", *words, **options)

    def as_user(self, uid, *words):
        return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words)

    def show_job(self, job_id):
        """{key: value} of scontrol show job."""
        shown = self.run("scontrol", "--oneliner", "show", "job", job_id).stdout
        return dict(re.findall(r"(?:^|\s)([A-Za-z/:]+)=(.*?)\s*(?=\s[A-Za-z/:]+=|$)", shown))

    def batch(self, *lines, options=()):
        """Runs a batch script to its end; its output is in slurm-JOB.out of the test's folder. Returns the job's id."""
        script = self.workdir.folder / "script.sh"
        script.write_text("\n".join(("#!/bin/sh", *map(str, lines), "")))
        done = self.run("sbatch", "--parsable", f"--output={self.workdir.folder}/slurm-%j.out", *options, script)
        assert done.stdout.strip(), f"{done.stderr}\n{self.logs()}"
        job = int(done.stdout.split(";")[0].split()[0])
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        # sbatch --wait polls every few seconds only.
        wait_until(lambda: self.show_job(job).get("JobState") in over, f"job {job} ends: {self.logs()}", seconds=60)
        return job

    def power(self, node, *zones, options=()):
        """Gives a node counters: NAME=LOAD as powercap_sim reads it. Their true energy: self.truths[node]."""
        simulator = self.workdir.start(self.tree(node), *(w for zone in zones for w in ("--zone", zone)), *options,
                                    program=SIMULATOR)
        assert simulator.stdout.readline() == b"ready\n"
        self.simulators[node], self.truths[node] = simulator, expected_values.load(self.tree(node))


# ---- results ----

def watts(slurm, **options):
    """50 W on one node, 80 W on the other."""
    for node, load in zip(slurm.names, ("50", "80")):
        slurm.power(node, f"package-0={load}", "package-0/dram=4", **options)


def asked(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def facts(path):
    return dict(asked(path, "select key, value from run"))


def runs(workdir, folder):
    """The run files of a folder by rank: {rank: path}."""
    return {int(facts(path)["rank"]): path for path in (workdir.folder / folder).glob("*.sqlite")}


def job_report(workdir, folder, *options):
    done = workdir.wattle("report", workdir.folder / folder, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def true_j(slurm, node, paths):
    """Energy of a node's package and memory from the first start to the last end of the runs in those files."""
    spans = [row for path in paths for row in asked(path, "select start_ns, end_ns from segment")]
    begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
    return sum(expected_values.energy_j(slurm.truths[node], zone, begin, end)
               for zone in ("package-0", "package-0/dram"))


def check_nodes(workdir, slurm, report, folder, relative=0.02):
    """Each node's energy equals its counters', once, however many ranks it has, and the total is their sum."""
    files = runs(workdir, folder)
    nodes = {node["node"]: node for node in report["nodes"]}
    assert set(nodes) == {facts(path)["node"] for path in files.values()}, (nodes, files)
    for name, node in nodes.items():
        near(node["energy_j"], true_j(slurm, name, [p for p in files.values() if facts(p)["node"] == name]), relative)
    near(report["energy"]["total_j"], sum(node["energy_j"] for node in nodes.values()), relative=1e-9)
