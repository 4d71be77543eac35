"""`wattle` and `python -m wattle` where the package was installed by pip: the program that lies in it takes over the process."""
import os
import shutil
import signal
import sys
from typing import NoReturn

_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "wattle")


def main() -> NoReturn:
    """Becomes the program wattle, of the package or else of $PATH."""
    program = _OWN if os.access(_OWN, os.X_OK) else shutil.which("wattle")
    if program is None or os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        sys.exit("wattle: the program is neither in the package nor in $PATH")
    # Python ignores these for itself; what is measured shall not.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    os.execv(program, ["wattle", *sys.argv[1:]])


if __name__ == "__main__":
    main()
