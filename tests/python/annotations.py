"""The package's type hints, as a checker reads them."""
import os
import pathlib
import subprocess

from harness import BUILD, TESTS, Skip, main, test


@test
def strict(workdir):
    """mypy --strict: no message about the package"""
    if not pathlib.Path("/usr/bin/mypy").exists():
        raise Skip("no mypy")
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
    done = subprocess.run(["/usr/bin/mypy", "--config-file", "pyproject.toml", "--cache-dir", BUILD / "mypy-cache",
                           "-p", "wattle"], cwd=TESTS.parent, env=environment, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    main()
