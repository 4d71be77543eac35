"""Runs one test program and removes what it leaves behind: processes, cgroups, files in its temporary folder, mounts
there.

usage: keep-test.py FD FOLDER CMD [ARG...]

FD is the reading end of a pipe of the runner's: when the runner exits or closes the other end, all processes that the
program has started are ended. FOLDER is an empty folder, the program's temporary one; the keeper removes it. Orphans
become children of this process, daemons too, so none is missed and none of another program is hit. Leftovers are
reported in a line of TAP that makes the program fail. The last line is the CPU time of all processes. The exit status
is the program's own.
"""
import ctypes
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, MNT_DETACH = 1, 36, 2
CLONE_NEWNS, CLONE_NEWIPC, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x8000000, 0x1000, 0x4000, 0x40000
GRACE_S = 5  # guards of limits and recorders end by themselves, soon after their owners
KILLED_S = 10
LIBC = ctypes.CDLL(None, use_errno=True)


def children(pid):
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def describe(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8",
            "backslashreplace")
    except OSError:
        words = ""
    return f"process {pid}: {' '.join(words.split())[:200]}"


def own_tmp(command, folder):
    """Where allowed, mounts the folder as /tmp, so that files of any name there are detected, and mounts and shared
    memory end with the processes. The tested build must be elsewhere. Returns the folder's name from then on."""
    places = [*command, os.environ.get("WATTLE_BUILD", ""), os.environ.get("WATTLE_TESTS", "")]
    if any(place.startswith("/tmp/") for place in places) or LIBC.unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0:
        return folder
    LIBC.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    # A server that a test kills leaves its POSIX shared memory there.
    LIBC.mount(b"none", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"mode=1777")
    return "/tmp" if LIBC.mount(os.fsencode(folder), b"/tmp", None, ctypes.c_ulong(MS_BIND), None) == 0 else folder


def start(command, folder):
    keeper, pid = os.getpid(), os.fork()
    if pid != 0:
        return pid
    try:
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == keeper:
            os.execvpe(command[0], command, {**os.environ, "TMPDIR": own_tmp(command, folder)})
    except OSError as error:
        print(f"Bail out! {command[0]}: {error.strerror}", flush=True)
    os._exit(127)


class Keeper:
    def __init__(self, runner_fd, folder, command):
        self.runner_fd = runner_fd
        self.folder = folder
        os.chmod(self.folder, 0o1777)  # some tests become another user
        self.status = None
        self.wake_fd, wake_write_fd = os.pipe()
        os.set_blocking(wake_write_fd, False)
        signal.set_wakeup_fd(wake_write_fd)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.program = start(command, self.folder)

    def reap(self):
        """False: no child remains."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.program:
                self.status = status

    def wait(self):
        """Until the program has ended. False: the runner has exited or closed the pipe."""
        while True:
            self.reap()
            if self.status is not None:
                return True
            ready, _, _ = select.select([self.runner_fd, self.wake_fd], [], [])
            if self.runner_fd in ready:
                return False
            os.read(self.wake_fd, 4096)

    def wait_for_rest(self, seconds):
        end = time.monotonic() + seconds
        while self.reap() and time.monotonic() < end:
            select.select([self.wake_fd], [], [], 0.05)

    def end_processes(self):
        left = [describe(pid) for pid in descendants(os.getpid())]
        end = time.monotonic() + KILLED_S
        while self.reap() and time.monotonic() < end:
            for pid in descendants(os.getpid()):  # they may fork meanwhile
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.01)
        return left

    def end_cgroups(self):
        """Tests name their cgroups wattle-PID, wattle-PID-NAME or wattle-test-PID-NAME, PID being the program's."""
        own = re.compile(rf"wattle-(test-)?{self.program}(-.*)?")
        tops = [os.path.join(top, name) for top, names, _ in os.walk("/sys/fs/cgroup") for name in names
                if own.fullmatch(name)]
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        return [f"cgroup {top}" for top in tops]

    def end_mounts(self):
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = [line.split()[4] for line in lines if line.split()[4].startswith(self.folder + "/")]
        for mount in reversed(mounts):
            LIBC.umount2(os.fsencode(mount), MNT_DETACH)
        return [f"mount {mount}" for mount in mounts]

    def remove_files(self):
        left = [f"$TMPDIR/{name}" for name in sorted(os.listdir(self.folder))]
        shutil.rmtree(self.folder, ignore_errors=True)
        return left

    def finish(self):
        has_ended = self.wait()
        if has_ended:
            self.wait_for_rest(GRACE_S)
        left = self.end_processes() + self.end_cgroups() + self.end_mounts() + self.remove_files()
        for what in left if has_ended else []:
            print(f"\nBail out! left behind: {what}", flush=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"\n# cpu_s: {used.ru_utime + used.ru_stime:.2f}", flush=True)
        return self.status if has_ended else 1 << 8


def main(runner_fd, folder, *command):
    code = os.waitstatus_to_exitcode(Keeper(int(runner_fd), folder, list(command)).finish())
    if code < 0:  # end with the program's status
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    sys.exit(code)


main(*sys.argv[1:])
