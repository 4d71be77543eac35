"""Deprecated names: each still works, wattle prints the new one, and no list offers the old one."""
import json
import re

from harness import TESTS, main, test
from serving import Server

ROW = re.compile(r'^DEPRECATED\((COMMAND|OPTION), "(.*)", "(.*)", "(.*)", "(.*)"\)$', re.M)


def names(kind):
    found = [row[1:] for row in ROW.findall((TESTS.parent / "src/cli/deprecated.def").read_text()) if row[0] == kind]
    assert found, kind
    return found


@test
def commands(workdir):
    """deprecated command: the new one with a line on stderr; neither in the help nor in completions"""
    for _, old, new, _ in names("COMMAND"):
        was, now = workdir.wattle(old, "--help"), workdir.wattle(new, "--help")
        assert was.returncode == 0 and was.stdout == now.stdout and now.stderr == "", (was, now)
        assert was.stderr == f"wattle: 'wattle {old}' is deprecated; use 'wattle {new}'\n", was.stderr
        assert workdir.wattle("help", old).stdout == now.stdout
        lists = workdir.wattle("--help").stdout + workdir.wattle("--complete", "").stdout
        assert re.search(rf"^ *{new}\b", lists, re.M) and not re.search(rf"^ *{old}\b", lists, re.M), lists


@test
def options(workdir):
    """deprecated option: the same status and text as the new one, and a line on stderr; not in the help"""
    for command, old, new, _ in names("OPTION"):
        was, now = workdir.wattle(command, f"--{old}"), workdir.wattle(command, f"--{new}")
        note = f"wattle {command}: --{old} is deprecated; use --{new}\n"
        assert was.returncode == now.returncode and was.stderr == note + now.stderr, (was, now)
        assert "unknown" not in now.stderr, now.stderr
        assert f"--{old} " not in workdir.wattle(command, "--help").stdout.replace("\n", " ")


def deprecated_keys(workdir, document):
    """{old: new} of each object in a schema."""
    schema = json.loads(workdir.wattle("schema", document).stdout)
    return {old: text["description"].rpartition(" ")[2] for inner in schema["$defs"].values()
            for old, text in inner.get("properties", {}).items() if text.get("deprecated")}


@test
def keys_of_reports(workdir):
    """deprecated JSON key: the value of the new one"""
    report, _ = workdir.report("--", "true")
    keys = deprecated_keys(workdir, "report")
    assert keys == {"referee_cpu_s": "task_clock_cpu_s"}, keys
    assert report["cpu"]["referee_cpu_s"] == report["cpu"]["task_clock_cpu_s"], report["cpu"]


@test
def keys_of_the_live_view(workdir):
    """/now.json?trail=1: as ?history=1, with the keys of both names"""
    server = Server(workdir, "--interval", "60s")
    keys = deprecated_keys(workdir, "now")
    assert keys == {"look": "sample", "trail": "history"}, keys
    for name in ("trail", "history"):
        now = json.loads(server.ask(f"/now.json?{name}=1")[2])
        assert all(now[old] == now[new] for old, new in keys.items()), now
    assert not {"trail", "history"} & set(server.now())


@test
def metrics(workdir):
    """deprecated metric: the value of the new one"""
    families = re.findall(r'"(wattle_\w+)",.*"Deprecated: use (\w+)\."',
                          (TESTS.parent / "src/report/openmetrics.def").read_text())
    assert families
    text = Server(workdir, "--interval", "60s").ask("/metrics")[2].decode()
    for old, new in families:
        values = [re.search(rf"^{name}{{[^}}]*}} (\S+)$", text, re.M)[1] for name in (old, new)]
        assert values[0] == values[1], (old, new, values)


if __name__ == "__main__":
    main()
