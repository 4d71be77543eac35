"""NVTX ranges of unmodified programs: once with a re-implementation of the program's side, and once with NVIDIA's
headers where a CUDA toolkit is installed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

from harness import BUILD, TESTS, WATTLE, Skip, main, near, test, wait_until

APP = BUILD / "tests/fakes/nvtx_app"
LIBRARIES = BUILD / "src/span"


def toolkit():
    """The folder with NVIDIA's nvtx3, or None."""
    nvcc = shutil.which("nvcc")
    folders = [pathlib.Path(nvcc).resolve().parent.parent] if nvcc else []
    folders += [pathlib.Path("/usr/local/cuda"), *sorted(pathlib.Path("/usr/local").glob("cuda-*")),
                pathlib.Path("/opt/cuda"),
                pathlib.Path("/usr")]
    for folder in folders:
        for include in (folder / "include", folder / "targets/x86_64-linux/include"):
            if (include / "nvtx3/nvToolsExt.h").exists():
                return include
    return None


def app_with_nvidia_s_headers(workdir):
    """The same program, compiled with the header that CUDA programs use."""
    include, compiler = toolkit(), shutil.which("cc")
    if include is None or compiler is None:
        raise Skip("no CUDA toolkit with nvtx3 on this machine" if compiler else "no compiler")
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-DNVTX_HEADER=<nvtx3/nvToolsExt.h>", f"-I{include}"]
    part, app = workdir.folder / "libnvtx_part.so", workdir.folder / "nvtx_app"
    sources = TESTS / "fakes"
    subprocess.run([compiler, *flags, "-fPIC", "-shared", sources / "nvtx_part.c", "-o", part, "-ldl"], check=True)
    subprocess.run([compiler, *flags, sources / "nvtx_app.c", part, f"-Wl,-rpath,{workdir.folder}", "-o", app, "-ldl",
                    "-lpthread"], check=True)
    return app


def both(function):
    """Two tests from one: with the re-implementation and with NVIDIA's headers."""
    def own(workdir):
        function(workdir, APP)

    def nvidia(workdir):
        function(workdir, app_with_nvidia_s_headers(workdir))

    own.__name__, own.__doc__ = function.__name__, function.__doc__
    nvidia.__name__, nvidia.__doc__ = f"{function.__name__}_nvidia", f"{function.__doc__}; with NVIDIA's headers"
    test(own)
    test(nvidia)
    return function


def capture(workdir, app, act, *options):
    done = workdir.wattle("run", "-q", "--nvtx", "--overwrite", "-o", "run.sqlite", "--json", "report.json", *options,
                          "--", app,
                          act)
    assert done.returncode == 0, done
    return done


SPANS = ("select span.name, around.name, span.category, span.kind, span.close, (span.end_ns - span.begin_ns) / 1e6, "
         "span.pid, span.tid from span left join span around on around.id = span.parent order by span.begin_ns, "
         "span.id")


@both
def push_and_pop(workdir, app):
    """push and pop: calls, nesting, lengths, a wide name; the program gets the levels that NVTX documents"""
    capture(workdir, app, "nested")
    spans = workdir.rows(SPANS)
    assert [s[:5] for s in spans] == [("step", None, None, "nested", "ended"),
                                      ("caf\u00e9", "step", None, "nested", "ended")] * 3, spans
    assert all(s[5] >= (30 if s[0] == "step" else 20) for s in spans), spans


@both
def start_and_end(workdir, app):
    """start and end: may overlap, and end in another thread; a payload is a metric"""
    capture(workdir, app, "ranges")
    spans = workdir.rows(SPANS)
    assert [s[:5] for s in spans] == [("outer", None, None, "range", "ended"), ("across", None, None, "range", "ended"),
                                      ("dom/range", None, None, "range", "ended")], spans
    assert spans[1][5] >= 20, spans
    assert workdir.rows("select name, value from user_metric") == [("dom/range", 5.0)]


@both
def domains(workdir, app):
    """domains: named and nested independently, stacks may cross, handles outlive them; strings, categories"""
    capture(workdir, app, "domains")
    spans = workdir.rows(SPANS)
    assert [s[:3] for s in spans] == [("message", None, "plain category"),
                                      ("one/message", "message", "category of one"),
                                      ("two/registered", "one/message", None),
                                      ("one/message", "message", "category of one")], spans
    assert all(s[4] == "ended" for s in spans), spans
    assert spans[1][5] >= 5 and spans[2][5] >= 10, spans


@both
def tokens(workdir, app):
    """numeric payload of a range: work, in joules per unit of its block; of a mark: a metric of the run"""
    capture(workdir, app, "tokens", "-i", "20ms")
    rows = workdir.rows("select user_metric.name, value, span.name from user_metric left join span on span.id = span "
                     "order by t_ns")
    assert rows == [("decode", 100.0, "decode"), ("decode", 101.0, "decode"), ("decode", 102.0, "decode"),
                    ("decode", 103.0, "decode"), ("loss", 0.125, None)], rows
    marks = workdir.rows("select text from event where kind = 'mark' order by t_ns")
    assert marks == [("loss",), ("done",)], marks
    done = workdir.wattle("blocks", "run.sqlite", "--format", "json")
    block, = json.loads(done.stdout)["code_block_results"]
    unit, = [u for u in block["units"] if u["name"] == "decode"]
    assert block["num_calls"] == 4 and unit["sum"] == 406 and unit["count"] == 4, block
    if block["energy"]["total_j"]:
        near(unit["j_per_unit"], block["energy"]["total_j"] / 406, 1e-6)


@both
def threads(workdir, app):
    """four threads at once: every span in its own thread, none lost"""
    capture(workdir, app, "threads")
    spans = workdir.rows(SPANS)
    assert len(spans) == 800, len(spans)
    for number in range(4):
        own = [s for s in spans if s[0] == f"thread {number}"]
        assert len(own) == 100 and len({s[7] for s in own}) == 1, own[:2]
    assert all(s[1].startswith("thread ") for s in spans if s[0] == "part")
    assert len({s[7] for s in spans}) == 4


@both
def a_forked_child(workdir, app):
    """forked child: its ranges are its own, and it does not close the parent's"""
    done = capture(workdir, app, "fork")
    parent, child = map(int, done.stdout.split())
    spans = workdir.rows(SPANS)
    assert [(s[0], s[1], s[4], s[6]) for s in spans] == [("parent", None, "ended", parent),
                                                         ("child", None, "ended", child)], spans


@both
def a_library_of_its_own(workdir, app):
    """shared library with NVTX of its own: captured too, in the same stack"""
    capture(workdir, app, "library")
    assert [s[:2] for s in workdir.rows(SPANS)] == [("in the program", None), ("in the library", "in the program")]
    assert workdir.rows("select text from event where kind = 'mark'") == [("library's mark",)]


@both
def late_calls(workdir, app):
    """ranges from thread destructors and exit handlers; ranges left open end with their thread"""
    capture(workdir, app, "late")
    spans = {s[0]: s[4] for s in workdir.rows(SPANS)}
    assert spans == {"left open": "thread end", "at the thread's end": "ended", "at exit": "ended"}, spans


@both
def killed_in_mid_range(workdir, app):
    """kill -9 during a range: open ranges end at the death, and are marked"""
    process = workdir.start("run", "-q", "--nvtx", "-o", "run.sqlite", "--json", "report.json", "--", app, "killed")
    assert process.stdout.readline() == b"ready\n"
    pid = wait_until(lambda: [int(child) for child in
                              pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()],
                     "the command's start")[0]
    os.kill(pid, signal.SIGKILL)
    assert workdir.finish(process).returncode == 128 + signal.SIGKILL
    spans = {s[0]: (s[3], s[4]) for s in workdir.rows(SPANS)}
    assert spans == {"whole": ("nested", "ended"), "doomed": ("nested", "death"),
                     "doomed range": ("range", "death")}, spans


@test
def a_late_recorder(workdir):
    """threads and processes that end before the recorder reads them: nothing is lost or cut short"""
    late = '(sleep 0.5; kill -CONT $PPID) & kill -STOP $PPID; "$0" threads; exec "$0" ranges'
    done = workdir.wattle("run", "-q", "--nvtx", "-o", "run.sqlite", "--", "sh", "-c", late, APP)
    assert done.returncode == 0, done
    ranges = workdir.rows("select name, close from span where kind = 'range' order by id")
    assert ranges == [("outer", "ended"), ("across", "ended"), ("dom/range", "ended")], ranges
    assert workdir.rows("select count(*), min(close), max(close) from span where kind = 'nested'") == [
        (800, "ended", "ended")]
    assert workdir.rows("select text from event where text like '%no begin%'") == []


@test
def without_asking(workdir):
    """no --nvtx: nothing is captured, and the program runs unchanged"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", APP, "library")
    assert done.returncode == 0 and workdir.rows("select count(*) from span") == [(0,)], done


@test
def without_a_recorder(workdir):
    """captured program without a recorder: writes its spans to WATTLE_SPANS, and none without that"""
    library = {"NVTX_INJECTION64_PATH": str(LIBRARIES / "libwattle-nvtx.so")}
    done = workdir.finish(workdir.start("library", program=APP, env=library))
    assert done.returncode == 0 and not list(workdir.folder.iterdir()), done
    done = workdir.finish(workdir.start("library", program=APP, env={**library, "WATTLE_SPANS": "spans-%p"}))
    assert done.returncode == 0, done
    file, = workdir.folder.iterdir()
    blocks = json.loads(workdir.wattle("blocks", file, "--format", "json").stdout)["code_block_results"]
    assert [b["name"] for b in blocks] == ["in the library", "in the program"], blocks


@test
def another_users_injector(workdir):
    """injector named by the user's environment: replaced, with a message"""
    done = workdir.wattle("run", "-q", "--nvtx", "-o", "run.sqlite", "--", APP, "library",
                       env={"NVTX_INJECTION64_PATH": "/opt/nsys/libToolsInjection64.so"})
    assert done.returncode == 0 and "/opt/nsys/libToolsInjection64.so" in done.stderr, done
    assert workdir.rows("select count(*) from span") == [(2,)]
    done = workdir.wattle("run", "-q", "--nvtx", "--overwrite", "-o", "run.sqlite", "--", APP, "library",
                       env={"NVTX_INJECTION64_PATH": str((LIBRARIES / "libwattle-nvtx.so").resolve())})
    assert done.stderr == "", done


@test
def attach_is_refused(workdir):
    """attach: refuses --nvtx and --itt, because only a new process can be captured"""
    for option in ("--nvtx", "--itt"):
        done = workdir.wattle("attach", option, os.getpid())
        assert done.returncode == 2 and option in done.stderr and "wattle run" in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done.stderr


def copied_program(workdir, place):
    folder = workdir.folder / place
    folder.mkdir(parents=True)
    return shutil.copy2(WATTLE, folder / "wattle")


@test
def a_missing_library(workdir):
    """missing capture library: refused before anything runs: 125, one line that names it"""
    program = copied_program(workdir, "alone/bin")
    done = workdir.finish(workdir.start("run", "--nvtx", "--", "touch", "started", program=program))
    assert done.returncode == 125 and "libwattle-nvtx.so" in done.stderr, done
    assert len(done.stderr.splitlines()) == 1 and not (workdir.folder / "started").exists(), done


@test
def an_installed_tree(workdir):
    """installed program: finds its capture libraries, wherever the whole tree was moved to"""
    if shutil.which("meson") is None:
        raise Skip("no meson on the PATH")
    installed, moved = workdir.folder / "installed", workdir.folder / "moved somewhere"
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", installed],
                          capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    installed.rename(moved)
    program, = [p for p in moved.rglob("bin/wattle")]
    assert list(moved.rglob("wattle/libwattle-nvtx.so")), list(moved.rglob("*.so"))
    done = workdir.finish(workdir.start("run", "-q", "--nvtx", "-o", "run.sqlite", "--", APP, "library",
                                        program=program))
    assert done.returncode == 0 and workdir.rows("select count(*) from span") == [(2,)], done


if __name__ == "__main__":
    main()
