"""Shared by the tests of the package: programs in Python, run as a user runs them."""
import sys
import textwrap


def python(room, code, *arguments, status=0, interpreter=(sys.executable,), **options):
    """Runs a program; its lines, and the completed process."""
    path = room.folder / "program.py"
    path.write_text(textwrap.dedent(code))
    done = room.finish(room.start(*interpreter[1:], path, *arguments, program=interpreter[0], **options))
    assert done.returncode == status, done
    return done.stdout.splitlines(), done
