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


class CompiledInPlace(nn.Module):
    """A module whose __call__ is that of torch 2.x."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x, *, scale=1):
        return torch.tanh(self.inner(x)) * scale

    def compile(self):
        self._compiled_call_impl = self.run

    def run(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        compiled = self.__dict__.get("_compiled_call_impl")
        return compiled(*args, **kwargs) if compiled is not None else super().__call__(*args, **kwargs)

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key != "_compiled_call_impl"}


if not hasattr(torch, "compile"):
    eval_frame = types.ModuleType("torch._dynamo.eval_frame")
    eval_frame.OptimizedModule = OptimizedModule
    sys.modules["torch._dynamo.eval_frame"] = eval_frame
else:
    OptimizedModule = torch._dynamo.eval_frame.OptimizedModule


def wrapped():
    return nn.Sequential(nn.Linear(8, 8), OptimizedModule(nn.Sequential(nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 1))


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
    model[1].compile()
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
    """break_graphs=True: measures inside, and notes the effect"""
    model = wrapped()
    with torch_marks.layers(model, break_graphs=True) as (marks, measured):
        model(torch.randn(2, 8)).sum().backward()
    assert "1._orig_mod.0" in marks.forward() and any("graph breaks" in note for note in measured.notes)


if __name__ == "__main__":
    main()
