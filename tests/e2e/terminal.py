"""wattle on a terminal."""
import os
import pty
import signal
import sys

from harness import WATTLE, main, test


def on_terminal(workdir, *arguments, typed=b"", typed_after=None, env=None):
    """Runs wattle as a terminal's foreground program; its status and all output of the terminal.

    Input is typed at once, or as soon as the terminal has shown `typed_after`.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workdir.folder)
        os.execve(WATTLE, [str(WATTLE), *map(str, arguments)], {**workdir.environment, "TERM": "xterm", **(env or {})})
    shown = b""
    try:
        if typed_after is None:
            os.write(terminal, typed)
        while chunk := os.read(terminal, 65536):
            shown += chunk
            if typed_after is not None and typed_after in shown:
                typed_after = None
                os.write(terminal, typed)
    except OSError:  # EIO: everybody has closed it
        pass
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


@test
def colour(workdir):
    """summary: coloured on a terminal, and not with NO_COLOR"""
    status, shown = on_terminal(workdir, "run", "-o", "1.sqlite", "--", "true")
    assert status == 0 and "\x1b[" in shown, shown
    status, shown = on_terminal(workdir, "run", "-o", "2.sqlite", "--", "true", env={"NO_COLOR": "1"})
    assert status == 0 and "\x1b[" not in shown, shown


@test
def no_text_for_a_terminal(workdir):
    """page and trace: not written to a terminal: one line with the remedy, status 2"""
    workdir.wattle("run", "-q", "-o", "run.sqlite", "--", "true")
    for words in (["report", "run.sqlite", "--format", "html"],
                  ["export", "run.sqlite", "--format", "perfetto", "-o", "-"]):
        status, shown = on_terminal(workdir, *words)
        assert status == 2 and shown.count("\n") == 1 and "give -o FILE" in shown, (words, shown[:300])


@test
def an_interactive_command(workdir):
    """command: reads from the terminal as its foreground program"""
    status, shown = on_terminal(workdir, "run", "-q", "-o", "run.sqlite", "--", "sh", "-c",
                                "test -t 0 && test -t 1 && read line && echo got $line", typed=b"word\n")
    assert status == 0 and "got word" in shown, shown


@test
def interrupt_key(workdir):
    """Ctrl-C: ends the command by SIGINT; the run is complete"""
    status, shown = on_terminal(workdir, "run", "-o", "run.sqlite", "--", "sh", "-c", "echo began; exec sleep 20",
                                typed=b"\x03", typed_after=b"began")
    assert status == 128 + signal.SIGINT, (status, shown)
    assert workdir.rows("select count(*) from segment where complete") == [(1,)]


@test
def interrupt_key_counts_once(workdir):
    """Ctrl-C: reaches every program of the terminal; wattle does not send it to the command a second time"""
    script = ("import signal, time\n"
              "came = []\n"
              "signal.signal(signal.SIGINT, lambda *_: came.append(time.monotonic()))\n"
              "print('began', flush=True)\n"
              "end = time.monotonic() + 20\n"
              "while time.monotonic() < (came[0] + 0.7 if came else end): time.sleep(0.001)\n"
              "print('came', len(came))\n")
    for _ in range(3):
        status, shown = on_terminal(workdir, "run", "-q", "--overwrite", "-o", "run.sqlite", "--", sys.executable, "-c",
                                    script, typed=b"\x03", typed_after=b"began")
        assert status == 0 and "came 1\r\n" in shown, (status, shown)


if __name__ == "__main__":
    main()
