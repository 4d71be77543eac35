"""`wattle` and `python -m wattle` where pip installed the package: the program wattle replaces the process."""
import os
import signal
import sys
from typing import NoReturn

from . import _program


def main() -> NoReturn:
    """Executes the program wattle, of the package or else of $PATH."""
    program = _program.find()
    if program is None or os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        sys.exit("wattle: cannot find the program in the package or in PATH")
    # Python ignores these for itself; measured programs must not.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    os.execv(program, ["wattle", *sys.argv[1:]])


if __name__ == "__main__":
    main()
