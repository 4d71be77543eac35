"""The C++ observer, built by `python3 -m wattle.torch.build_observer` for the PyTorch of the environment."""
import os
import pathlib
import subprocess
import sys

from harness import TESTS, main, test


def passes(workdir, program, **environment):
    done = subprocess.run([sys.executable, str(TESTS / "python" / program)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "XDG_CACHE_HOME": str(workdir.folder), **environment})
    assert done.returncode == 0 and "# SKIP" not in done.stdout, done.stdout + done.stderr[-4000:]


@test
def built(workdir):
    """build_observer: an observer that is equivalent to hooks, and passes the tests of layers()"""
    done = subprocess.run([sys.executable, "-m", "wattle.torch.build_observer"], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "XDG_CACHE_HOME": str(workdir.folder)})
    assert done.returncode == 0 and pathlib.Path(done.stdout.strip()).parent == workdir.folder / "wattle", done.stderr[-4000:]
    passes(workdir, "torch_observer.py")
    passes(workdir, "torch_layers.py", WATTLE_TEST_OBSERVER="1")


if __name__ == "__main__":
    main()
