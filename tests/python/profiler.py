"""De Feo's power-cap profiler on a fake card that obeys limits: what it finds, and that it leaves nothing behind, neither on
the card nor in the model, the optimizer and the random generators."""
import copy
import csv
import os
import random
import sys
import time

import numpy
import torch
from gpu_card import Card
from harness import BUILD, main, near, test
from torch import nn

torch.set_num_threads(1)

CARD = Card(memory_share=0.5, now_w=350, more=("energy_period_ms 1", "set_uid 0"))
STEP_S = 0.004


class Work(nn.Module):
    """As long on the fake card as the limit of the moment makes it."""

    def forward(self, x):
        watts = CARD.now_w
        cards = os.environ.get("WATTLE_FAKE_NVML", "")
        if os.path.exists(cards + ".limits"):
            with open(cards + ".limits", encoding="ascii") as file:
                watts = int(file.read().split("\n")[-2].split()[2]) / 1000
        time.sleep(CARD.step(watts, STEP_S)[1])
        return x


def make(learns=True):
    """A model with all that training changes: weights, running means, a counter in an attribute, frozen and shared ones."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Linear(8, 2))
    model[3].weight = model[3].weight  # its own
    model[4].bias.requires_grad_(False)
    model[1].eval()  # frozen statistics, while the rest trains
    model.register_buffer("minus_zero", torch.tensor([-0.0, float("nan")]))
    model.calls = 7
    return model


def state(model, optimizer, *more):
    """All of it as bytes, to be compared bit by bit."""
    def plain(thing):
        if isinstance(thing, torch.Tensor):
            return (id(thing), thing.dtype, tuple(thing.shape), thing.requires_grad, thing.detach().numpy().tobytes(),
                    None if thing.grad is None else thing.grad.numpy().tobytes())
        if isinstance(thing, dict):
            return [(key if isinstance(key, (str, int)) else id(key), plain(value)) for key, value in thing.items()]
        if isinstance(thing, (list, tuple)):
            return [plain(value) for value in thing]
        return thing if isinstance(thing, (int, float, str, bool, type(None))) else type(thing).__name__
    return [plain([vars(module) for module in model.modules()]), plain(vars(optimizer)), plain(more),
            torch.get_rng_state().numpy().tobytes(), random.getstate(), plain(list(numpy.random.get_state()[1]))]


def data(n=16, **options):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(n, 6, generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), batch_size=4, **options)


def same(before, after):
    names = ("model", "optimizer", "more", "torch's generator", "random", "numpy.random")
    differ = [name for name, old, new in zip(names, before, after) if repr(old) != repr(new)]
    assert not differ, f"not as before: {differ}"


def train_some(model, optimizer, loader, batches):
    """What a search does to its victims, and worse."""
    model.train()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad(set_to_none=i % 2 == 0)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        model.calls += 1
        random.random(), numpy.random.rand(), torch.rand(1)
        if i + 1 == batches:
            break


OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "AdamW in two groups": lambda parameters: torch.optim.AdamW([
        {"params": list(parameters)[:2], "lr": 0.5}, {"params": list(parameters)[2:]}]),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


@test
def everything_is_put_back(room):
    """model, optimizer, scheduler, generators: bit by bit, whether the optimizer had state before or none"""
    from wattle.compat.profiler.state import Kept
    for make_optimizer in OPTIMIZERS.values():
        for has_trained in (False, True):
            model = make()
            optimizer = make_optimizer(model.parameters())
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            loader = data(shuffle=True, generator=torch.Generator().manual_seed(5))
            if has_trained:
                train_some(model, optimizer, loader, 3)
                scheduler.step()
            shown = {name: value for name, value in vars(scheduler).items() if name != "optimizer"}
            before = state(model, optimizer, shown, loader.generator.get_state().tolist())
            kept = Kept(model, optimizer, None, loader)
            train_some(model, optimizer, loader, 9)
            optimizer.param_groups[0]["lr"] *= 0.1
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            kept.restore()
            same(before, state(model, optimizer, shown, loader.generator.get_state().tolist()))


@test
def training_goes_on_as_if_nothing_had_been(room):
    """the weights after a search and ten more steps are those of ten more steps"""
    from wattle.compat.profiler.state import Kept
    results = []
    for searches in (False, True):
        model, loader = make(), data(shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        torch.manual_seed(11)
        train_some(model, optimizer, loader, 2)
        if searches:
            kept = Kept(model, optimizer, loader)
            train_some(model, optimizer, loader, 4)
            kept.restore()
        for _ in range(3):
            train_some(model, optimizer, loader, 4)
        results.append([parameter.detach().numpy().tobytes() for parameter in model.parameters()])
    assert results[0] == results[1]


@test
def a_module_without_its_shape_is_refused(room):
    """a lazy module can't be made lazy again: the sentence says to call it first"""
    from wattle.compat.profiler.state import Kept
    try:
        Kept(nn.LazyLinear(3))
    except ValueError as why:
        assert "call it once" in str(why), why
    else:
        raise AssertionError("it was accepted")


if __name__ == "__main__":
    main()
