"""wattle.torch.layers leaves models, gradients and random numbers unchanged, and assigns each node of the graph to its
layer."""
import copy
import dataclasses
import gc
import io
import pickle
import threading
import time
import weakref

import torch
import torch_marks
import torchvision
from harness import main, test
from torch import nn
from torch.nn.modules import module as nn_module
from torch.utils.checkpoint import checkpoint

import wattle.torch

torch.set_num_threads(1)


def gradients(model, run, seed=1):
    """Everything that a step leaves behind, bitwise"""
    torch.manual_seed(seed)
    model.zero_grad(set_to_none=True)
    result = run(model)
    return ([None if p.grad is None else p.grad.clone() for p in model.parameters()] +
            [b.clone() for b in model.buffers()] + [result.detach().clone(), torch.get_rng_state()])


def same(a, b):
    return len(a) == len(b) and all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b))


def unchanged(make, run):
    """The marks of a step whose gradients are bitwise those of the same step unmeasured."""
    torch.manual_seed(0)
    plain, model = make(), None
    model = copy.deepcopy(plain)
    expected = gradients(plain, run)
    with torch_marks.layers(model) as (marks, measured):
        actual = gradients(model, run)
    assert same(actual, expected)
    return marks, measured


def classify(model):
    x = torch.randn(2, 3, 32, 32)
    loss = nn.functional.cross_entropy(model(x), torch.randint(0, 10, (2,)))
    loss.backward()
    return loss


def mean_of(*shape):
    def run(model):
        loss = model(torch.randn(*shape)).float().pow(2).mean()
        loss.backward()
        return loss
    return run


@test
def resnet(workdir):
    """ResNet-18, which full backward hooks break: gradients, running statistics and random numbers are bitwise equal,
    and each layer with parameters has a backward"""
    marks, measured = unchanged(lambda: torchvision.models.resnet18(num_classes=10), classify)
    names = [name for name, module in torchvision.models.resnet18().named_modules()
             if next(module.parameters(recurse=False), None) is not None]
    assert marks.backward() >= set(names) | {"layer1.0", "relu", "maxpool", "ResNet"}, marks.backward()
    assert {row.name: row.calls for row in measured.rows}["layer1.0.relu"] == 2
    assert measured.rows[-1].name == "outside layers" and measured.rows[0].name == ""


@test
def dropout(workdir):
    """dropout: the same random numbers"""
    unchanged(lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 2)), mean_of(4, 8))


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.act = nn.Linear(8, 8), nn.Linear(8, 8), nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.a(x)
        y[:, 0] = 1  # a view is written
        y.mul_(2)
        left, right = y.split(4, dim=1)
        z = self.b(torch.cat([right, left], 1).add_(x))
        z += y
        return self.act(z).view(-1)[::2]


@test
def in_place(workdir):
    """in-place operations on outputs and on views of them"""
    marks, _ = unchanged(InPlace, mean_of(4, 8))
    assert marks.backward() == {"InPlace", "a", "b", "act"}


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
    """module under two names: one row, under the first; a tied weight counts once"""
    marks, measured = unchanged(Twice, mean_of(4, 8))
    rows = {row.name: row for row in measured.rows}
    assert list(rows) == ["", "first", "tied", "outside layers"] and rows["first"].calls == 2
    assert (rows["first"].parameters, rows["tied"].parameters) == (72, 8)


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout())
        self.reentrant = reentrant

    def forward(self, x):
        return checkpoint(self.b, self.a(x), use_reentrant=self.reentrant)


@test
def checkpointing(workdir):
    """recomputed forward: counts as forward of its layers, inside the backward that requires it; both ways of
    checkpointing"""
    for reentrant in (True, False):
        marks, measured = unchanged(lambda: Checkpointed(reentrant), mean_of(4, 8))
        assert marks.forward().count("b.0") == 2 and {"a", "b.0", "b.1", "b.2"} <= marks.backward(), marks.log
        assert any(outer is not None and outer.endswith(" backward") and inner == "b"
                   for outer, inner in marks.pairs()), marks.pairs()


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2)
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.head(self.body(x))


@test
def frozen(workdir):
    """frozen parts: no backward"""
    marks, _ = unchanged(Frozen, mean_of(4, 8))
    assert marks.backward() == {"head"} and "body.0" in marks.forward()


@test
def without_gradients(workdir):
    """evaluation: forward only"""
    model = torchvision.models.resnet18(num_classes=10).eval()
    x = torch.randn(1, 3, 32, 32)
    with torch.inference_mode():
        expected = model(x)
        with torch_marks.layers(model) as (marks, _):
            assert torch.equal(model(x), expected)
    assert not marks.backward() and "layer4.1.bn2" in marks.forward()


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: list


class Rich(nn.Module):
    """Inputs by keyword, outputs in dicts and dataclasses, as Hugging Face's models have them"""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, *, hidden, scale=None):
            return {"hidden": self.linear(hidden) * scale["by"], "nothing": None}

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([self.Block(), self.Block()])

    def forward(self, x):
        hidden = [x]
        for block in self.blocks:
            before = torch.exp(hidden[-1])  # this model's own
            hidden.append(block(hidden=before, scale={"by": before.mean()})["hidden"])
        return Output(hidden[-1], hidden)


@test
def rich_outputs(workdir):
    """operations of a container between modules that take keywords and return dicts: the container's"""
    def run(model):
        loss = model(torch.randn(4, 8, requires_grad=True)).logits.mean()
        loss.backward()
        return loss

    marks, _ = unchanged(Rich, run)
    count = marks.names(" backward").count
    assert count("Rich backward") == 5, marks.names()  # exp and mean, twice, and x's gradient
    assert count("blocks.0 backward") == count("blocks.1 backward") == 1, marks.names()  # the product


class Linked:
    """One of many objects that all refer to each other"""

    def __init__(self):
        self.links, self.value = [], torch.randn(8, requires_grad=True)


class LooksInto(dict):
    def values(self):
        raise AssertionError("code of the model's own data was run")


@test
def objects_without_end(workdir):
    """inputs that are object graphs, or a hundred thousand numbers: searched quickly, without running the data's own
    code; tensors in them are found"""
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 1)

        def forward(self, graph, ids, lazy):
            return self.linear(graph.exp)

    graph = [Linked() for _ in range(200)]
    for one in graph:
        one.links, one.exp = graph, torch.exp(one.value)
    with torch_marks.layers(Sums()) as (marks, measured):
        begin = time.perf_counter()
        y = next(iter(measured._hooked))(graph[0], list(range(100000)), LooksInto(x=1))
        assert time.perf_counter() - begin < 0.5
        y.sum().backward()
    # exp belongs to no layer; Linear's nodes are its own
    assert marks.names(" backward").count("Sums backward") == 0, marks.names()
    assert not [note for note in measured.notes if "followed" in note], measured.notes


@test
def nothing_called(workdir):
    """modules in a list of Python: no layers, and a note that names the reason; none for a model that is called"""
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = [nn.Linear(4, 4)]

    model = Listed()
    with torch_marks.layers(model) as (_, measured):
        model.parts[0](torch.randn(2, 4))
    assert len(measured.rows) == 1 and any("ModuleList" in note for note in measured.notes), measured.notes
    with torch_marks.layers(model.parts[0]) as (_, measured):
        model.parts[0](torch.randn(2, 4))
    assert not any("ModuleList" in note for note in measured.notes), measured.notes


@test
def lazy(workdir):
    """lazy modules get their parameters in the first call: the rows have their number, and backward is theirs"""
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(), nn.LazyLinear(2))
    with torch_marks.layers(model) as (marks, measured):
        model(torch.randn(1, 3, 4, 4)).sum().backward()
    assert {row.name: row.parameters for row in measured.rows if row.type} == {"": 0, "0": 112, "1": 0, "2": 34}
    assert {"0", "2"} <= marks.backward()


@test
def recurrent(workdir):
    """LSTM and transformer encoder"""
    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(8, 8, num_layers=2, dropout=0.3), nn.Linear(8, 1)

        def forward(self, x):
            y, (h, c) = self.lstm(nn.utils.rnn.pack_padded_sequence(x, [5, 3]))
            return self.out(nn.utils.rnn.pad_packed_sequence(y)[0]) + h.mean() + c.mean()

    marks, _ = unchanged(Lstm, mean_of(5, 2, 8))
    assert {"lstm", "out"} <= marks.backward()
    marks, _ = unchanged(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2), mean_of(5, 2, 8))
    assert {"layers.1.self_attn", "layers.0.linear2", "layers.0.norm1"} <= marks.backward(), marks.backward()


@test
def two_models(workdir):
    """GAN: two models used through each other, both measured"""
    class Gan(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
            self.d = nn.Sequential(nn.Linear(8, 8), nn.ReLU(True), nn.Linear(8, 1))

    torch.manual_seed(0)
    plain = Gan()
    gan = copy.deepcopy(plain)

    def run(model):
        fake = model.g(torch.randn(3, 4))
        (model.d(fake.detach()).mean() - model.d(torch.randn(3, 8)).mean()).backward()
        model.d.requires_grad_(False)
        loss = model.d(fake).mean()
        loss.backward()
        model.d.requires_grad_(True)
        return loss

    expected = gradients(plain, run)
    with torch_marks.layers({"generator": gan.g, "discriminator": gan.d}) as (marks, measured):
        assert same(gradients(gan, run), expected)
    assert [row.name for row in measured.rows][:3] == ["generator", "generator.0", "generator.1"]
    assert {"generator.0", "discriminator.0"} <= marks.backward()


class Square(torch.autograd.Function):
    fails = False

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, gradient):
        if Square.fails:
            raise RuntimeError("on purpose")
        return 2 * gradient * context.saved_tensors[0]


class Squares(nn.Module):
    def forward(self, x):
        return Square.apply(x)


@test
def higher_gradients(workdir):
    """retained graphs, gradients of gradients, accumulation, and a gradient computed inside forward"""
    def penalty(model):
        x = torch.randn(4, 8, requires_grad=True)
        y = model(x).sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        y.backward(retain_graph=True)
        loss = slope.pow(2).sum()
        loss.backward()
        return loss

    marks, _ = unchanged(lambda: nn.Sequential(nn.Linear(8, 8), nn.Tanh(), Squares()), penalty)
    assert marks.backward() == {"0", "1", "2"} and marks.names(" backward").count("1 backward") > 3

    class Force(nn.Module):
        def __init__(self):
            super().__init__()
            self.energy = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

        def forward(self, x):
            x.requires_grad_()
            return torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)[0]

    marks, _ = unchanged(Force, mean_of(4, 8))
    assert ("Force", "energy.0 backward") in marks.pairs() and (None, "energy.0 backward") in marks.pairs()


class Failing(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.inner = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), self.Stop())

    class Stop(nn.Module):
        fails = False

        def forward(self, x):
            if self.fails:
                raise ValueError("on purpose")
            return x

    def forward(self, x):
        x = self.a(x)
        try:
            return self.inner(x)
        except ValueError:
            if x.shape[0] > 4:
                raise
            return x


@test
def forward_raises(workdir):
    """forward that raises, caught inside the model or outside of it: later calls are assigned correctly"""
    model = Failing()
    with torch_marks.layers(model) as (marks, _):
        model.inner[1].fails = True
        model(torch.randn(2, 8)).sum().backward()
        for _ in range(3):
            try:
                model(torch.randn(8, 8))
            except ValueError:
                pass
        model.inner[1].fails = False
        (lambda: model(torch.randn(2, 8)))().sum().backward()
    assert {outer for outer, inner in marks.pairs() if inner == "Failing"} == {None}, marks.pairs()
    assert {outer for outer, inner in marks.pairs() if inner.endswith("backward")} == {None}, marks.pairs()


@test
def backward_raises(workdir):
    """backward that raises in a node of Python or of C++: the next step is not affected"""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), Squares())

    def step(hook=None):
        y = model[0](torch.randn(2, 8))
        if hook is not None:
            y.register_hook(hook)
        try:
            model[2](model[1](y)).sum().backward()
        except RuntimeError:
            pass

    def fail(_):
        raise RuntimeError("on purpose")

    with torch_marks.layers(model) as (marks, _):
        for _ in range(2):
            Square.fails = True
            step()
            Square.fails = False
            step(fail)
        step()
    assert {outer for outer, _ in marks.pairs()} == {None}, marks.pairs()


@test
def recursion(workdir):
    """module that calls itself: nested in itself"""
    class Tree(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x, depth=2):
            return self.linear(x) if depth == 0 else torch.sin(self(x, depth - 1))

    marks, measured = unchanged(Tree, mean_of(2, 8))
    assert ("Tree", "Tree") in marks.pairs() and measured.rows[0].calls == 3


@test
def threads(workdir):
    """models used by several threads at once: each thread's layers are its own"""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for _ in range(20):
            model(torch.randn(2, 8)).sum().backward()

    with torch_marks.layers(model) as (marks, measured):
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert measured.rows[0].calls == 80 and len({thread for thread, _, _ in marks.log}) == 4


@test
def scripted(workdir):
    """scripted part: one layer"""
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.script = nn.Linear(8, 8), torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.Tanh()))

        def forward(self, x):
            return self.script(self.linear(x))

    model = Half()
    with torch_marks.layers(model) as (marks, measured):
        model(torch.randn(2, 8)).sum().backward()
    assert marks.forward() == ["Half", "linear", "script"] and {"linear", "script"} <= marks.backward()


def state(model):
    return [{key: (id(value), list(value)) if isinstance(value, dict) else value
             for key, value in module.__dict__.items()}
            for module in model.modules()]


@test
def no_handler_is_left(workdir):
    """during the measurement the model behaves as before and can be copied, pickled and saved; afterwards neither torch
    nor a remaining graph has a hook"""
    model = torchvision.models.resnet18(num_classes=10)
    before, hooks = state(model), (len(nn_module._global_forward_hooks), len(nn_module._global_forward_pre_hooks))
    with torch_marks.layers(model) as (marks, _):
        assert state(model) == before
        loss = classify(model)
        loss = nn.functional.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.tensor([1, 2]))
        for clone in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert state(clone)[3].keys() == before[3].keys()
        torch.save(model.state_dict(), io.BytesIO())
    n = len(marks.log)
    loss.backward()
    model(torch.randn(2, 3, 32, 32)).sum().backward()
    assert len(marks.log) == n and state(model) == before
    assert hooks == (len(nn_module._global_forward_hooks), len(nn_module._global_forward_pre_hooks))


@test
def memory(workdir):
    """steps: no tensor lives longer, and the number of objects is constant"""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), Squares(), nn.Linear(8, 1))
    with torch_marks.layers(model) as (marks, measured):
        counts = []
        for round_ in range(6):
            for _ in range(400):
                x = torch.randn(2, 8)
                y = model(x)
                y.sum().backward()
            marks.log.clear()
            alive = weakref.ref(y), weakref.ref(x)
            del x, y
            assert alive[0]() is None and alive[1]() is None
            gc.collect()
            counts.append(len(gc.get_objects()) + len(measured._graph._handles))
        handles = len(measured._graph._handles)
    assert counts[-1] - counts[2] < 5000 and handles < 5000, (counts, handles)


@test
def misuse(workdir):
    """errors state the correct form"""
    measured = wattle.torch.layers(nn.Linear(2, 2), tracker=False)
    for call, kind, words in ((lambda: measured.rows, RuntimeError, "after stop()"),
                              (measured.stop, RuntimeError, "before start()"),
                              (lambda: wattle.torch.layers("model"), TypeError, "torch.nn.Module"),
                              (lambda: wattle.torch.layers([nn.Linear(2, 2)]), TypeError, "dict of names")):
        try:
            call()
            raise AssertionError(f"{words}: no error")
        except kind as error:
            assert words in str(error), error
    with measured:
        pass
    try:
        measured.start()
        raise AssertionError("started twice")
    except RuntimeError as error:
        assert "create another one" in str(error)


if __name__ == "__main__":
    main()
