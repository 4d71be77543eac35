"""docs/tutorial.md from its first command to its last, in order, in one empty folder."""
import json
import re
import shutil

from harness import BUILD, Skip, TESTS, WATTLE, main, test

TUTORIAL = TESTS.parent / "docs/tutorial.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED_AS = re.compile(r"Save it as `([\w.]+)`")


def blocks(text):
    """(language, text, name of the file that it is saved as or None), in order."""
    for found in BLOCK.finditer(text):
        names = SAVED_AS.findall(text[:found.start()].rpartition("```")[2])
        yield found[1], found[2], names[0] if names else None


@test
def every_command(workdir):
    """every command of the tutorial: works unchanged, and creates the files that the text mentions"""
    for program in ("cc", "pkg-config"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    text = TUTORIAL.read_text()
    workdir.environment.update({
        "PATH": f"{WATTLE.parent}:{workdir.environment['PATH']}", "LD_LIBRARY_PATH": str(BUILD / "src"),
        "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "ASAN_OPTIONS": "detect_leaks=0"})
    n_commands = 0
    for language, block, name in blocks(text):
        if name is not None:
            (workdir.folder / name).write_text(block)
        if language != "sh":
            continue
        n_commands += len(block.splitlines())
        done = workdir.finish(workdir.start("-ec", block, program="/bin/sh"))
        allowed = (0, 1) if block == "wattle sensors\n" else (0,)  # 1: nothing measures energy here
        assert done.returncode in allowed, (block, done.stdout[-500:], done.stderr[-1500:])
        if "--progress" in block:
            assert "step 100/100" in done.stderr, done.stderr
    assert n_commands >= 18, n_commands
    for name in ("train.html", "both.html", "stacks.txt", "train.pftrace", "train.csv"):
        assert (workdir.folder / name).stat().st_size > 0, name
    report = json.loads((workdir.folder / "train.json").read_text())
    calls = {block["name"]: block["num_calls"] for block in report["blocks"]}
    assert calls == {"epoch": 4, "step": 100, "validation": 4}, calls
    assert list((workdir.folder / "pictures").glob("*.svg"))


def anchors(path):
    """The fragment identifiers of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@test
def links(workdir):
    """every link to a file or heading: its target exists"""
    top = TUTORIAL.parent.parent
    for page in [top / "README.md", top / "CONTRIBUTING.md", *TUTORIAL.parent.rglob("*.md")]:
        for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page.read_text()):
            path = page.parent / target if target else page
            assert path.exists(), (page.name, target)
            assert not anchor or anchor in anchors(path), (page.name, target, anchor)


@test
def index(workdir):
    """docs/README.md lists every page exactly once"""
    folder = TUTORIAL.parent
    listed = re.findall(r"^[|-] \[[^]]+\]\(([\w./-]+)\)", (folder / "README.md").read_text(), re.MULTILINE)
    pages = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.md") if path.name != "README.md")
    assert sorted(listed) == pages, sorted(set(pages) ^ set(listed)) or listed


if __name__ == "__main__":
    main()
