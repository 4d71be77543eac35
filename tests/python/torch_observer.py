"""The C++ observer is equivalent to hooks: the same spans, calls and gradients, and times as similar as those of two
runs."""
import collections
import copy
import gc
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import threading

import torch
import torchvision
from harness import Skip, main, test
from torch import nn
from torch.utils.checkpoint import checkpoint

import wattle.torch
from wattle import _wattle
from wattle.torch import _built_for, observer

torch.set_num_threads(1)
STEPS = 3


def needs_observer():
    try:
        observer.load()
    except ImportError as error:
        raise Skip(str(error)) from None


def spans(path, rows):
    """How often each row's spans were, inside which other's. Inside itself is nothing new: torch wraps the node of an
    operation that writes into a view. Gradients of modules that are not called (out_proj of an attention) are assigned
    to their owner with hooks, to their user with the observer."""
    run = _wattle.Run(path)
    column = {c.name: list(memoryview(c.buffer)) for c in run.spans()}
    names = [row_of(run.span_names()[i], rows) for i in column["name_index"]]
    by_id = dict(zip(column["id"], names))
    pairs = ((by_id.get(parent), name) for parent, name in zip(column["parent"], names))
    return collections.Counter((outer, inner) for outer, inner in pairs if outer != inner)


def row_of(name, rows):
    layer, is_backward, _ = name.partition(" backward")
    while "." in layer and layer not in rows:
        layer = layer.rpartition(".")[0]
    return layer + is_backward


def measure(workdir, make, work, by_observer, steps=STEPS):
    torch.manual_seed(0)
    model = make()
    path = workdir.folder / f"{by_observer}.sqlite"
    with wattle.torch.layers(model, observer=by_observer, output=path, overwrite=True) as measured:
        for step in range(steps):
            torch.manual_seed(step)
            work(model)
    assert measured.backward_by == ("observer" if by_observer else "hooks")
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    return measured, spans(path, {row.name for row in measured.rows}), gradients


def same(workdir, make, work):
    """Both ways, compared with each other; the rows of both."""
    needs_observer()
    (hooks, hooks_spans, expected), (seen, seen_spans, actual) = (
        measure(workdir, make, work, by_observer) for by_observer in (False, True))
    assert seen_spans == hooks_spans, (seen_spans - hooks_spans, hooks_spans - seen_spans)
    assert [(r.name, r.type, r.calls, r.parameters) for r in seen.rows] == [
        (r.name, r.type, r.calls, r.parameters) for r in hooks.rows]
    assert {r.name for r in seen.rows if r.backward_s > 0} == {r.name for r in hooks.rows if r.backward_s > 0}
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(actual, expected))
    return {r.name: r for r in hooks.rows}, {r.name: r for r in seen.rows}


def square(*shape):
    def work(model):
        model(torch.randn(*shape)).float().pow(2).mean().backward()
    return work


@test
def resnet(workdir):
    """ResNet-18: the same spans; layers have the same share of backward in both, within the variation of two runs"""
    def classify(model):
        nn.functional.cross_entropy(model(torch.randn(4, 3, 64, 64)), torch.arange(4)).backward()

    hooks, seen = same(workdir, lambda: torchvision.models.resnet18(num_classes=10), classify)
    for part in ("layer1", "layer2", "layer3", "layer4"):
        a, b = (sum(r.backward_s for n, r in rows.items() if n.startswith(part))
                / sum(r.backward_s for r in rows.values()) for rows in (hooks, seen))
        assert abs(a - b) < 0.15, (part, a, b)


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 8))
        self.reentrant = reentrant

    def forward(self, x):
        return torch.sin(checkpoint(self.b, self.a(x), use_reentrant=self.reentrant))


@test
def checkpointing(workdir):
    """recomputed forward and its cause, both ways of checkpointing"""
    for reentrant in (True, False):
        same(workdir, lambda: Checkpointed(reentrant), square(4, 8))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.again = self.first
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.first.weight

    def forward(self, x):
        return self.tied(self.again(torch.tanh(self.first(x))))


@test
def shared(workdir):
    """module used twice, and a weight of two modules, whose gradient is accumulated by the first"""
    same(workdir, Twice, square(4, 8))


@test
def tied_embedding(workdir):
    """language model whose last layer is its embedding"""
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.body, self.head = nn.Embedding(30, 8), nn.LayerNorm(8), nn.Linear(8, 30, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.body(self.embedding(x)))

    same(workdir, Tied, lambda model: model(torch.randint(0, 30, (2, 5))).pow(2).mean().backward())


@test
def recurrent(workdir):
    """LSTM, packed"""
    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(8, 8, num_layers=2, dropout=0.3), nn.Linear(8, 1)

        def forward(self, x):
            y, (h, c) = self.lstm(nn.utils.rnn.pack_padded_sequence(x, [5, 3]))
            return self.out(nn.utils.rnn.pad_packed_sequence(y)[0]) + h.mean() + c.mean()

    same(workdir, Lstm, square(5, 2, 8))


@test
def transformer(workdir):
    """transformer encoder, partly frozen"""
    def make():
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
        model.layers[0].requires_grad_(False)
        return model

    same(workdir, make, square(5, 2, 8))


@test
def accumulated(workdir):
    """gradients accumulated over calls whose graphs exist at the same time, from the last to the first"""
    def work(model):
        losses = [model(torch.randn(2, 8)).mean() for _ in range(4)]
        for loss in reversed(losses):
            loss.backward()

    same(workdir, lambda: nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)), work)


@test
def threads(workdir):
    """two threads at once; then forward in threads that have ended, backward in this one"""
    def at_once(model):
        workers = [threading.Thread(target=square(4, 8), args=(model,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def handed_over(model):
        losses = []
        for _ in range(3):
            worker = threading.Thread(target=lambda: losses.append(model(torch.randn(4, 8)).mean()))
            worker.start()
            worker.join()
        sum(losses).backward()

    make = lambda: nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))  # noqa: E731
    needs_observer()
    counts = [collections.Counter() for _ in range(2)]
    for by_observer in (False, True):  # gradients of threads are accumulated in any order: only spans are compared
        counts[by_observer] = measure(workdir, make, at_once, by_observer)[1]
    assert counts[0] == counts[1], counts
    same(workdir, make, handed_over)


@test
def memory(workdir):
    """steps and threads: no memory remains; a graph older than the history is reported"""
    needs_observer()
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    x, grown = torch.randn(2, 8), []
    with wattle.torch.layers(model, observer=True, tracker=False) as measured:
        old = model(x).mean()
        for _ in range(6):
            for _ in range(8000):
                model(x)  # a graph without a backward
            for _ in range(20):
                worker = threading.Thread(target=model, args=(x,))
                worker.start()
                worker.join()
            gc.collect()
            grown.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        assert not any("forgotten" in note for note in measured.notes)
        old.backward()
    assert grown[-1] - grown[-2] < 2048, grown  # KiB
    assert any("forgotten" in note for note in measured.notes), measured.notes


@test
def one_at_a_time(workdir):
    """second layers() meanwhile: uses hooks; observer=True reports why it is not available"""
    needs_observer()
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    with wattle.torch.layers(first, tracker=False) as one, wattle.torch.layers(second, tracker=False) as other:
        assert (one.backward_by, other.backward_by) == ("observer", "hooks")
        try:
            wattle.torch.layers(second, tracker=False, observer=True).start()
            raise AssertionError("two observers")
        except RuntimeError as error:
            assert "one layers() at a time" in str(error), error
    with wattle.torch.layers(second, tracker=False, observer=True) as again:
        second(torch.ones(2)).sum().backward()
    assert again.backward_by == "observer"
    assert wattle.torch.layers(copy.deepcopy(first), tracker=False).backward_by is None


PROGRAM = """
import torch, wattle.torch
from wattle.torch import _built_for, observer
if {other!r}:
    real = _built_for.tag
    observer.tag = lambda: real() + "other"
with wattle.torch.layers(torch.nn.Linear(2, 2), tracker=False) as measured: pass
print(measured.backward_by)
try:
    wattle.torch.layers(torch.nn.Linear(2, 2), tracker=False, observer=True).start()
except RuntimeError as error: print(error)
"""


def program(cache, other=False):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": os.environ["PYTHONPATH"]}
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(other=other)], env=environment, capture_output=True,
                          text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@test
def other_torch(workdir):
    """observer built for another torch: not used, with a message on request"""
    needs_observer()
    (workdir.folder / "wattle").mkdir()
    shutil.copy(observer.load().__file__, workdir.folder / "wattle")
    assert program(workdir.folder) == ["observer"]
    by, why = program(workdir.folder, other=True)
    assert by == "hooks" and _built_for.tag() + "other" in why and "build_observer" in why, why


@test
def built_by_users(workdir):
    """python3 -m wattle.torch.build_observer: puts one into the user's cache folder; without a compiler it reports what
    is missing"""
    needs_observer()
    command = [sys.executable, "-m", "wattle.torch.build_observer"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(workdir.folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    path = pathlib.Path(done.stdout.strip())
    assert done.returncode == 0 and path.parent == workdir.folder / "wattle", done
    assert list(path.parent.iterdir()) == [path] and path.stem == _built_for.file_stem()
    done = subprocess.run(command, env={**environment, "CXX": "no-such-compiler"}, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == 1 and "no-such-compiler" in done.stderr and "libtorch-dev" in done.stderr, done
    assert list(path.parent.iterdir()) == [path]


if __name__ == "__main__":
    main()
