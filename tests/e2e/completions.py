"""Completions in the real shells: candidates of the Tab key for typical lines."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import BUILD, Skip, WATTLE, main, test

WORDS = ["list", "get", "set", "reset", "tune"]
# A line, with the cursor at its end; expected candidates; words that must not be candidates.
LINES = [
    ("wattle r", {"run", "report"}, {"list"}),
    ("wattle ", {"run", "attach", "cap", "model"}, {"gpu-0"}),
    ("wattle cap ", set(WORDS), {"run"}),
    ("wattle cap s", {"set"}, {"reset"}),
    ("wattle run --ti", {"--time-unit"}, {"--interval"}),
    ("wattle run --ram-unit ", {"bytes", "gigabytes", "terabytes"}, {"hours"}),
    ("wattle report two.sqlite --format js", {"json"}, {"text"}),
    ("wattle report t", {"two.sqlite"}, {"ten.txt"}),
    ("wattle run -o t", {"two.sqlite", "ten.txt"}, set()),
    ("wattle model n", {"net.onnx"}, {"new.txt"}),
    ("wattle run -q ech", {"echo"}, {"run"}),
    ("wattle run -o x -i 100ms -- ech", {"echo"}, set()),
    ("wattle run -q cat t", {"ten.txt"}, set()),
    ("wattle cap set gpu-0 250 -- ech", {"echo"}, set()),
    ("wattle cap set gpu-0 250 --fo", {"--for"}, set()),
    ("wattle cap tune gpu-0 --obj", {"--objective"}, set()),
    ("wattle cap tune gpu-0 --step s -- ech", {"echo"}, set()),
    ("wattle cap get gpu", {"gpu-0", "gpu-1"}, {"package-0"}),
    ("wattle list f", {"folder"}, {"ten.txt"}),
    ("wattle bench -- ./old ::: ech", {"echo"}, set()),
]


def prepare(workdir):
    """A folder with files to complete, the program in PATH, and two GPUs."""
    folder = workdir.tree("here", {"two.sqlite": "", "ten.txt": "", "net.onnx": "", "new.txt": "", "a b.sqlite": "",
                                   "co:lon.sqlite": "",
                                   "eq=ual.sqlite": "", "-dash.sqlite": "",
                                   "folder/in.sqlite": ""})
    (workdir.folder / "cards").write_text("gpu\npower_mw constant 100000\nlimits_mw 100000 400000 400000 400000\n" * 2)
    for shell in ("bash", "zsh", "fish"):
        (workdir.folder / f"completion.{shell}").write_text(workdir.wattle("--completion", shell).stdout)
    workdir.environment.update({
        "PATH": f"{WATTLE.parent}:{os.environ['PATH']}",
                                "WATTLE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"),
        "WATTLE_FAKE_NVML": str(workdir.folder / "cards"), "HOME": str(workdir.folder),
        "XDG_CONFIG_HOME": str(workdir.folder / "config"),
        "XDG_DATA_HOME": str(workdir.folder / "data"), "TERM": "xterm", "PS1": "> "})
    return folder


def check(offered_for):
    for line, wanted, unwanted in LINES:
        offered = offered_for(line)
        assert wanted <= offered, f"{line!r}: offered {sorted(offered)[:20]}, wanted {wanted}"
        assert not unwanted & offered, f"{line!r}: offered {sorted(offered)[:20]}, not wanted {unwanted}"


def shell(name):
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


BASH = r"""
%s
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"$2"
[[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_wattle wattle "${COMP_WORDS[COMP_CWORD]}" ''
printf '%%s\n' "${COMPREPLY[@]}"
"""


@test
def in_bash(workdir):
    """bash, with and without bash-completion: offers the words of the tables"""
    folder = prepare(workdir)
    for library in ("source /usr/share/bash-completion/bash_completion", ""):
        def offered(line):
            done = workdir.finish(workdir.start("-c", BASH % library, "bash", workdir.folder / "completion.bash", line,
                                          program=shell("bash"), cwd=folder))
            return {word.rstrip("/ ") for word in done.stdout.splitlines()}
        check(offered)


@test
def in_fish(workdir):
    """fish: offers the words of the tables, each with a description"""
    folder = prepare(workdir)
    script = 'source $argv[1]; complete -C "$argv[2]"'

    def offered(line):
        done = workdir.finish(workdir.start("--no-config", "-c", script, workdir.folder / "completion.fish", line,
                                      program=shell("fish"), cwd=folder))
        assert not done.stderr, (line, done.stderr)
        return {row.split("\t")[0].rstrip("/") for row in done.stdout.splitlines()}
    check(offered)
    done = workdir.finish(workdir.start("--no-config", "-c", script, workdir.folder / "completion.fish", "wattle at",
                                  program=shell("fish"), cwd=folder))
    assert "attach\tmeasure a running process" in done.stdout, done.stdout


# Tab lists the candidates and inserts nothing, however few there are.
ZSH = r"""
autoload -U compinit; compinit -D
zstyle ':completion:*' verbose no
LISTMAX=0
source %s
bindkey '^I' list-choices
PS1='READY> '
"""
ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")


class Terminal:
    """An interactive shell on a terminal of its own, and its output."""

    def __init__(self, workdir, folder, program, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(program, [program, *map(str, arguments)], workdir.environment)
        self.shown = b""

    def until(self, mark, seconds=15):
        end = time.monotonic() + seconds
        while mark not in self.shown:
            ready, _, _ = select.select([self.fd], [], [], max(end - time.monotonic(), 0))
            assert ready, (mark, self.shown)
            self.shown += os.read(self.fd, 65536)
        found, _, self.shown = self.shown.partition(mark)
        return found.decode()

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@test
def in_zsh(workdir):
    """zsh, on a terminal: Tab inserts the words of the tables"""
    folder = prepare(workdir)
    (workdir.folder / ".zshrc").write_text(ZSH % (workdir.folder / "completion.zsh"))
    terminal = Terminal(workdir, folder, shell("zsh"), "-i")
    try:
        terminal.until(b"READY> ")

        def offered(line):
            terminal.type(line + "\t")
            shown = terminal.until(b"\r\x1b[7C").rpartition("\x1b[J")[2]  # back behind the prompt, the list is drawn
            terminal.type("\x15")
            return {word.replace("\\", "").rstrip("/") for word in re.split(r"[\r\n]+|\s\s+", ESCAPE.sub("", shown))}
        check(offered)
    finally:
        terminal.close()


@test
def tab_in_bash(workdir):
    """Tab on a terminal: a name with a blank is quoted, --format= is completed after the ="""
    folder = prepare(workdir)
    (workdir.folder / "rc").write_text(
        f"source {workdir.folder}/completion.bash\nPS1='READY> '\nbind 'set bell-style none'\n")
    terminal = Terminal(workdir, folder, shell("bash"), "--rcfile", workdir.folder / "rc", "-i")
    try:
        for typed, line in (("wattle report a\t", "wattle report a\\ b.sqlite "),
                            ("wattle report two.sqlite --format=js\t", "wattle report two.sqlite --format=json "),
                            ("wattle compare old=tw\t", "wattle compare old=two.sqlite "),
                            ("wattle compare old=co:\t", "wattle compare old=co:lon.sqlite "),
                            ("wattle compare tw\t", "wattle compare two.sqlite "),
                            ("wattle report co:\t", "wattle report co:lon.sqlite "),
                            ("wattle report eq=u\t", "wattle report eq=ual.sqlite "),
                            ("wattle report -- -d\t", "wattle report -- -dash.sqlite "),
                            ("wattle sens\t", "wattle sensors ")):
            terminal.until(b"READY> ")
            terminal.type(typed)
            terminal.until(line.encode())
            terminal.type("\x15\n")
    finally:
        terminal.close()


@test
def vocabulary(workdir):
    """every option with a value: its placeholder is in the vocabulary, so that each has a completion"""
    commands = re.findall(r"^  (\w+) +", workdir.wattle("--help").stdout, re.MULTILINE)
    for command in commands:
        parts = re.findall(rf"^  {command} (\w+) +", workdir.wattle(command, "--help").stdout, re.MULTILINE)
        for name in [[command, part] for part in parts] or [[command]]:
            for option in re.findall(r"^  (?:-\w, )?--([\w-]+) \S", workdir.wattle(*name, "--help").stdout,
                                     re.MULTILINE):
                kind = workdir.wattle("--complete", *name, f"--{option}", "").stdout.partition("\n")[0]
                assert kind and kind != "unknown" and not kind.startswith("target"), (name, option, kind)


@test
def wrong_shell(workdir):
    """shell without a completion: one line that lists the supported ones"""
    for words in (["--completion"], ["--completion", "tcsh"]):
        done = workdir.wattle(*words)
        assert done.returncode == 2 and done.stderr == "wattle: --completion: give one of bash, zsh, fish\n", done


if __name__ == "__main__":
    main()
