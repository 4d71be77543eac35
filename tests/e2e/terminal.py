"""wattle on a terminal."""
import os
import pty
import signal

from harness import WATTLE, main, test


def on_terminal(room, *arguments, typed=b"", env=None):
    """Runs wattle as a terminal's foreground program; its status and all that the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(room.folder)
        os.execve(WATTLE, [str(WATTLE), *arguments], {**room.environment, "TERM": "xterm", **(env or {})})
    shown = b""
    try:
        os.write(terminal, typed)
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # EIO: everybody has closed it
        pass
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


@test
def colour(room):
    """the summary is coloured on a terminal, and not where NO_COLOR is set"""
    status, shown = on_terminal(room, "run", "-o", "1.sqlite", "--", "true")
    assert status == 0 and "\x1b[" in shown, shown
    status, shown = on_terminal(room, "run", "-o", "2.sqlite", "--", "true", env={"NO_COLOR": "1"})
    assert status == 0 and "\x1b[" not in shown, shown


@test
def an_interactive_command(room):
    """the command reads from the terminal as its foreground program"""
    status, shown = on_terminal(room, "run", "-q", "-o", "run.sqlite", "--", "sh", "-c",
                                "test -t 0 && test -t 1 && read line && echo got $line", typed=b"word\n")
    assert status == 0 and "got word" in shown, shown


@test
def interrupt_key(room):
    """Ctrl-C on the terminal ends the command by SIGINT; the run is finished"""
    status, shown = on_terminal(room, "run", "-o", "run.sqlite", "--", "sh", "-c", "kill -INT 0; sleep 20")
    assert status == 128 + signal.SIGINT, (status, shown)
    assert room.rows("select count(*) from segment where complete") == [(1,)]


if __name__ == "__main__":
    main()
