"""Shared by the tests of the package: programs in Python, run as a user runs them."""
import sys
import textwrap


def python(workdir, code, *arguments, status=0, interpreter=(sys.executable,), **options):
    """Runs a program; its lines, and the completed process."""
    path = workdir.folder / "program.py"
    path.write_text(textwrap.dedent(code))
    done = workdir.finish(workdir.start(*interpreter[1:], path, *arguments, program=interpreter[0], **options))
    assert done.returncode == status, done
    return done.stdout.splitlines(), done
