"""C programs of the tests, compiled against the installed header and library."""
import subprocess

from harness import BUILD, TESTS

LIBRARY = BUILD / "src"


def build(workdir, name):
    """programs/NAME.c as the executable `program` in the test's folder."""
    program = workdir.folder / "program"
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                    "-I", TESTS.parent / "include", TESTS / f"e2e/programs/{name}.c", "-o", program,
                    "-L", LIBRARY, f"-Wl,-rpath,{LIBRARY}", "-lwattle", "-lm", "-pthread"], check=True)
    return program
