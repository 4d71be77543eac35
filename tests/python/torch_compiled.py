"""A compiled part is one layer, with a note. torch.compile came with torch 2.0; with an older one a stand-in for its
OptimizedModule and for module.compile() tests wattle's handling, not torch's."""
import copy
import pickle
import sys
import types

import torch
import torch_marks
from harness import main, test
from torch import nn

torch.set_num_threads(1)


class OptimizedModule(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._orig_mod = module

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x, *, scale=1):
        return torch.tanh(self.inner(x)) * scale


class CompiledInPlace(InPlace):
    """A module whose __call__ is that of torch 2.x."""

    def compile(self, **_):
        self._compiled_call_impl = self.run

    def run(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        compiled = self.__dict__.get("_compiled_call_impl")
        return compiled(*args, **kwargs) if compiled is not None else super().__call__(*args, **kwargs)

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key != "_compiled_call_impl"}


def can_compile():
    """torch 2.0 has torch.compile, but not for Python 3.11."""
    try:
        torch.compile(nn.Linear(1, 1), backend="eager")
    except (AttributeError, RuntimeError):
        return False
    return True


if can_compile():
    CompiledInPlace = InPlace  # noqa: F811

    def compiled(module):
        return torch.compile(module, backend="eager")
else:
    eval_frame = types.ModuleType("torch._dynamo.eval_frame")
    eval_frame.OptimizedModule = compiled = OptimizedModule
    sys.modules["torch._dynamo.eval_frame"] = eval_frame


def wrapped():
    return nn.Sequential(nn.Linear(8, 8), compiled(nn.Sequential(nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 1))


@test
def by_wrapper(workdir):
    """torch.compile(module): one layer with its parameters' gradients, no hook inside, and a note"""
    model = wrapped()
    inside = [dict(module._forward_hooks) for module in model[1]._orig_mod.modules()]
    with torch_marks.layers(model) as (marks, measured):
        assert not torch.nn.modules.module._global_forward_hooks
        assert [dict(module._forward_hooks) for module in model[1]._orig_mod.modules()] == inside
        model(torch.randn(2, 8)).sum().backward()
        pickle.dumps(model)
    assert marks.forward() == ["Sequential", "0", "1", "2"] and marks.backward() == {"0", "1", "2"}, marks.log
    assert [row.name for row in measured.rows] == ["", "0", "1", "2", "outside layers"]
    assert any("1" in note and "one layer" in note for note in measured.notes), measured.notes
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())


@test
def copies(workdir):
    """copies and pickles made meanwhile: their hooks do nothing"""
    model = wrapped()
    with torch_marks.layers(model) as (marks, _):
        clones = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for clone in clones:
            clone(torch.randn(2, 8))
        assert not marks.log


@test
def in_place(workdir):
    """module.compile(): one layer too, keywords and exceptions included, and its compiled call is restored
    afterwards"""
    model = nn.Sequential(nn.Linear(8, 8), CompiledInPlace())
    model[1].compile(backend="eager")
    before = model[1].__dict__["_compiled_call_impl"]
    with torch_marks.layers(model) as (marks, measured):
        model(torch.randn(2, 8)).sum().backward()
        model[1](torch.randn(2, 8), scale=torch.exp(model[0](torch.randn(2, 8))).mean()).sum().backward()
        for _ in range(2):
            try:
                model[1](torch.randn(3, 3))
            except RuntimeError:
                pass
        model(torch.randn(2, 8))
    assert model[1].__dict__["_compiled_call_impl"] == before
    assert {"0", "1"} <= marks.backward() and "1.inner" not in marks.names(), marks.log
    assert {outer for outer, inner in marks.pairs() if inner == "1"} == {"Sequential", None}
    assert {row.name: row.calls for row in measured.rows}["1"] == 5


@test
def inside_on_request(workdir):
    """break_graphs=True: measures inside, also where the model was called before, notes the effect, and ends with the measurement"""
    model = wrapped()
    model(torch.randn(2, 8))
    with torch_marks.layers(model, break_graphs=True) as (marks, measured):
        model(torch.randn(2, 8)).sum().backward()
    assert "1._orig_mod.0" in marks.forward() and any("graph breaks" in note for note in measured.notes)
    before = list(marks.log)
    model(torch.randn(2, 8)).sum().backward()
    assert marks.log == before


if __name__ == "__main__":
    main()
