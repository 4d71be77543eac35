"""wattled and its environment: passed sockets, its sandbox, its options and its manual."""
import ctypes
import errno
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import harness
from harness import BUILD, Skip, children_of, test, wait_until
from helper_client import LEASE, SET, WATTLED, Client, Helper


# ---- environment ----

@test
def activated(workdir):
    """socket passed by systemd: served and left in place"""
    path = workdir.folder / "handed"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)

    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(workdir.folder / "notify"))
    notices.settimeout(20)
    os.dup2(listener.fileno(), 200)
    process = workdir.start("-c", "import os, sys; os.dup2(200, 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
                            "os.execv(sys.argv[1], sys.argv[1:])", WATTLED, "--sysfs",
                            workdir.tree("sys", {"class/x": ""}),
                            "--nvml", "/nowhere", "--state", workdir.folder / "state", program=sys.executable,
                            pass_fds=(200,),
                            env={"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(workdir.folder / "notify")})
    os.close(200)
    assert notices.recv(1000).decode().startswith("READY=1\nSTATUS=serves 0 counters and 0 limits at systemd's socket")
    with Client(path) as client:
        assert client.hello()["counters"] == 0
    process.terminate()
    assert notices.recv(1000) == b"STOPPING=1"
    assert process.wait(20) == 0 and path.exists()
    listener.close()
    notices.close()


@test
def sandboxed(workdir):
    """all processes: no new privileges and a filter; the only capability is CAP_SYS_ADMIN, and only with an NVIDIA GPU;
    the process that reads the policy has no capability and no descriptor of the others"""
    helper = Helper(workdir)

    def state(pid):
        lines = (line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return {key: value.strip() for key, value in lines}
    for pid in (helper.pid, helper.process.pid):
        wait_until(lambda pid=pid: state(pid)["Seccomp"] == "2",
                   "the sandbox is complete: the guard does not wait for the server")
        status = state(pid)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        assert int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16) in (0, 1 << 21), status
    reader, = children_of(helper.pid)
    assert state(reader)["NoNewPrivs"] == "1" and int(state(reader)["CapPrm"], 16) == 0, state(reader)
    assert len(os.listdir(f"/proc/{reader}/fd")) == 4, "standard files and its socket"
    helper.stop()
    (workdir.folder / "cards").write_text("")
    helper.log.unlink()
    helper = Helper(workdir)
    assert int(state(helper.pid)["CapEff"], 16) == 0 and "keeps no capability" in helper.said(), helper.said()


INTRUDER = BUILD / "tests/fakes/libintruder.so"


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def attempts(workdir, helper, library, pid):
    """Results of an attacker's attempts inside a process of wattled: {attempt: errno}."""
    done = pathlib.Path(f"{library}.done")
    done.write_text("")
    os.kill(pid, signal.SIGUSR2)
    wait_until(lambda: done.read_text().endswith(".\n"), "all attempts are made")
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in done.read_text().splitlines()[:-1]}


@test
def taken_over(workdir):
    """code injected into a process of wattled: cannot open root's other files or a service's socket; registers,
    counters and the journal stay accessible"""
    if os.geteuid() != 0:
        raise Skip("only a wattled of root could open them")
    library = shutil.copy(INTRUDER, workdir.folder / "intruder.so")
    Helper.prepare(workdir)
    secret, service = workdir.folder / "secret", workdir.folder / "service"
    secret.write_text("")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(service))
    listener.listen(16)
    zone = next(path for path in sorted((workdir.folder / "sys/class/powercap").glob("intel-rapl:?")))
    (workdir.folder / "state").mkdir()
    (workdir.folder / "state/note").write_text("")
    closed = ["w /proc/sys/kernel/core_pattern", "r /etc/shadow", f"w {secret}", f"r {secret}",
              f"w {zone}/name", "w /etc/passwd"]
    kept = [f"w {zone}/constraint_0_power_limit_uw", f"r {zone}/energy_uj", f"w {workdir.folder}/state/note",
            "r /proc/self/stat"]
    pathlib.Path(f"{library}.wanted").write_text("".join(f"{line}\n" for line in [*closed, *kept, f"c {service}"]))
    # A sanitizer's library must be first; this one may not.
    helper = Helper(workdir, env={"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"})
    for pid in (helper.pid, helper.process.pid):
        found = attempts(workdir, helper, library, pid)
        assert found[f"c {service}"] == errno.EPERM, (pid == helper.pid, found)
        assert not [line for line in kept if found[line] != 0], (pid == helper.pid, found)
        if has_landlock():
            assert all(found[line] == errno.EACCES for line in closed), (pid == helper.pid, found)
    listener.close()
    restricted = "file access is restricted (Landlock" if has_landlock() else "file access is not restricted"
    assert restricted in helper.said(), helper.said()
    helper.stop()
    assert not helper.path.exists()


# Runs its other arguments where the named system calls are refused, as some containers do.
REFUSING = """
import ctypes, os, sys
lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype = ctypes.c_void_p
lib.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
lib.seccomp_load.argtypes = [ctypes.c_void_p]
filter = lib.seccomp_init(0x7fff0000)
for name in sys.argv[1].split(","):
    assert lib.seccomp_rule_add(filter, 0x00050001, lib.seccomp_syscall_resolve_name(name.encode()), 0) == 0
assert lib.seccomp_load(filter) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


@test
def no_inherited_descriptors(workdir):
    """kernel or container refuses the sandbox: wattled reports what it could not restrict, and works"""
    helper = Helper(workdir, before=(sys.executable, "-c", REFUSING, "capset,seccomp,prctl,landlock_create_ruleset"))
    for expected in ("can't restrict file access", "can't set no_new_privs", "can't drop capabilities",
                     "can't filter system calls"):
        assert expected in helper.said(), helper.said()
    with helper.client() as client:
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    os.kill(helper.process.pid, signal.SIGKILL)
    wait_until(lambda: helper.gpu_calls()[-1] == (0, 700000), "its guard's death is seen all the same", 5)


@test
def no_rules(workdir):
    """Landlock that accepts no rules: wattled ends with one line that names the path, and serves nobody"""
    if not has_landlock():
        raise Skip("this kernel has no Landlock")
    Helper.prepare(workdir)
    words = (sys.executable, "-c", REFUSING, "landlock_add_rule", WATTLED, "--socket", workdir.folder / "s", "--sysfs",
             workdir.folder / "sys",
             "--state", workdir.folder / "state")
    done = workdir.finish(workdir.start(*words[1:], program=words[0]))
    assert done.returncode == 1 and "Landlock accepts no rule for it (Operation not permitted)" in done.stderr, done
    assert not (workdir.folder / "s").exists()


@test
def variables(workdir):
    """WATTLE_ variables: no effect on wattled"""
    decoy = workdir.tree("decoy", {"class/powercap/intel-rapl:0/name": "package-0\n",
                                "class/powercap/intel-rapl:0/energy_uj": "7\n"})
    helper = Helper(workdir, env={"WATTLE_SYSFS": str(decoy), "WATTLE_STATE": str(workdir.folder / "wrong"),
                               "WATTLE_NVML": "/nowhere", "WATTLE_HELPER": "off"})
    with helper.client() as client:
        assert client.hello()["counters"] == 4
        client.outcome(SET, helper.row(client, "gpu-0"), mode=LEASE, value=300000)
    assert not (workdir.folder / "wrong").exists() and (workdir.folder / "state/caps").is_dir()


@test
def usage_errors(workdir):
    """invalid options: one line each; --help and --version print to stdout"""
    for words, status, expected in ((["--help"], 0, "usage: wattled"), (["--version"], 0, "wattled "),
                                    (["--socket"], 2, "--socket"), (["x"], 2, "unknown option 'x'"),
                                    (["--polcy", "x"], 2, "unknown option '--polcy' (did you mean '--policy'?)"),
                                    (["--socket", "relative"], 1, "absolute"),
                                    (["--socket", "/" + "x" * 200], 1, "absolute"),
                                    (["--sysfs", "/not/there"], 1, "--sysfs"),
                                    (["--policy", "/not/there", "--socket", workdir.folder / "s"], 1, "/not/there")):
        done = workdir.finish(workdir.start(*words, program=WATTLED))
        assert done.returncode == status and expected in done.stdout + done.stderr, (words, done)
        assert status == 0 or done.stderr.count("\n") == 1, done.stderr


@test
def manual(workdir):
    """manual: has every option of the help"""
    texts = [workdir.finish(workdir.start(word, program=WATTLED)).stdout for word in ("--help", "--manual")]
    options = re.findall(r"^  (--[\w-]+)", texts[0], re.MULTILINE)
    assert len(options) == 10, options
    for option in options:
        escaped = option.replace("-", "\\-")
        assert f"\\fB{escaped}\\fR" in texts[1], (option, texts[1])


@test
def links(workdir):
    """wattled: linked with libc, libm and libseccomp only: no SQL, no JSON, no HTTP"""
    done = subprocess.run(["ldd", str(WATTLED)], capture_output=True, text=True, check=True)
    names = {pathlib.Path(line.split()[0]).name.split(".so")[0] for line in done.stdout.splitlines()}
    extra = names - {"linux-vdso", "libc", "libm", "libdl", "libseccomp", "libpthread", "ld-linux-x86-64",
                     "ld-linux-aarch64"}
    if any(name.endswith("san") for name in names):
        extra = {name for name in extra if not name.endswith("san")} - {"libstdc++", "libgcc_s"}
    assert not extra, extra
    symbols = subprocess.run(["nm", "-a", str(WATTLED)], capture_output=True, text=True, check=True).stdout
    assert not [word for word in ("sqlite3_", "json_object", "store_open", "PQ") if word in symbols]


harness.main()
