"""The virtual environments of the suite 'frameworks', outside of the source tree.

usage: environments.py create                 creates the missing ones; an existing one is used as it is
       environments.py run NAME [--long] FILE   runs a test in environment NAME; prints a skip if it does not exist

requirements.txt has a section for each environment. Its folder has a hash of the section in its name, so changed requirements
make a new one: ${WATTLE_FRAMEWORKS:-${XDG_CACHE_HOME:-~/.cache}/wattle/frameworks}/NAME-HASH. --long: a test that needs minutes,
which runs only with WATTLE_FRAMEWORKS_LONG=1, as set by `make test-frameworks`.
"""
import fcntl
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"
SECTION = re.compile(r"^# \[(\w+)\]", re.MULTILINE)
LEFTOVERS = ("torchinductor_*", ".ses")  # : of the frameworks, in the folder for temporary files
COMPLETE = "complete"  # : created last: an interrupted installation has none


def sections():
    """{name: its lines}"""
    _, *parts = SECTION.split(REQUIREMENTS.read_text())
    return {name: "\n".join(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
            for name, text in zip(parts[::2], parts[1::2])}


def top():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("WATTLE_FRAMEWORKS") or os.path.join(cache, "wattle", "frameworks"))


def folder(name):
    key = f"{sys.version_info[0]}.{sys.version_info[1]}\n{sections()[name]}"
    return top() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def create(name):
    where = folder(name)
    if (where / COMPLETE).exists():
        return
    print(f"creating {where}", flush=True)
    shutil.rmtree(where, ignore_errors=True)
    venv.create(where, with_pip=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(sections()[name])
        file.flush()
        subprocess.run([where / "bin/python", "-m", "pip", "install", "--quiet", "--use-pep517", "-r", file.name], check=True)
    (where / COMPLETE).touch()


def create_all():
    top().mkdir(parents=True, exist_ok=True)
    with open(top() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in sections():
            create(name)


def run(name, *words):
    skip = None
    if not (folder(name) / COMPLETE).exists():
        skip = f"there is no environment '{name}': make test-frameworks"
    elif words[0] == "--long" and os.environ.get("WATTLE_FRAMEWORKS_LONG") != "1":
        skip = "takes minutes: make test-frameworks"
    if skip is not None:
        print(f"1..0 # SKIP {skip}")
        return 0
    python = str(folder(name) / "bin/python")
    # Kernels that PyTorch compiles stay for the next run; nothing is written into the user's folders, and nothing is downloaded.
    cache = {variable: str(folder(name) / "cache" / variable.lower())
             for variable in ("TORCHINDUCTOR_CACHE_DIR", "HF_HOME", "KERAS_HOME", "TRITON_CACHE_DIR")}
    done = subprocess.run([python, words[-1]], env={**os.environ, **cache, "HF_HUB_OFFLINE": "1"})
    for pattern in LEFTOVERS:
        for path in glob.glob(os.path.join(tempfile.gettempdir(), pattern)):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return done.returncode


if __name__ == "__main__":
    if sys.argv[1:] == ["create"]:
        create_all()
    elif len(sys.argv) in (4, 5) and sys.argv[1] == "run" and sys.argv[2] in sections():
        sys.exit(run(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
