"""De Feo's power-cap profiler on a fake card that obeys limits: its result, and that the card, the model, the optimizer
and the random generators are unchanged afterwards."""
import collections
import copy
import csv
import os
import random
import sys
import time

import numpy
import torch
from gpu_card import Card
from harness import BUILD, main, near, test, wait_until
from torch import nn

torch.set_num_threads(1)

CARD = Card(memory_share=0.8, now_w=350, more=("energy_period_ms 1", "set_uid 0"))
STEP_S = 0.008
FAKE_NVML = BUILD / "tests/fakes/nvml/libnvidia-ml-fake.so"


class Work(nn.Module):
    """One batch is a step of the fake card, as long as its current limit makes it; PyTorch's own time is part of it."""

    end_s = 0.0

    def forward(self, x):
        watts = CARD.now_w
        cards = os.environ.get("WATTLE_FAKE_NVML", "")
        if os.path.exists(cards + ".limits"):
            with open(cards + ".limits", encoding="ascii") as file:
                watts = int(file.read().split("\n")[-2].split()[2]) / 1000
        now_s = time.monotonic()
        self.end_s = (self.end_s if now_s - self.end_s < 1 else now_s) + CARD.step(watts, STEP_S)[1]
        time.sleep(max(0, self.end_s - now_s))
        return x


def make(learns=True):
    """A model with everything that training changes: weights, running means, a counter in an attribute, frozen ones."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Linear(8, 2))
    model[4].bias.requires_grad_(False)
    model[1].eval()  # frozen statistics, while the rest is trained
    model.register_buffer("minus_zero", torch.tensor([-0.0, float("nan")]))
    model.calls = 7
    return model


def state(model, optimizer, *more):
    """All of it as bytes, for a bitwise comparison."""
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
    examples = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
    return torch.utils.data.DataLoader(examples, batch_size=4, **options)


def same(before, after):
    names = ("model", "optimizer", "more", "torch's generator", "random", "numpy.random")
    differ = [name for name, old, new in zip(names, before, after) if repr(old) != repr(new)]
    assert not differ, f"not as before: {differ}"


def train_some(model, optimizer, loader, batches):
    """Changes as a search makes them, and worse ones."""
    model.train()
    for i, (x, y) in enumerate(loader):
        def closure():
            optimizer.zero_grad(set_to_none=i % 2 == 0)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step(closure)
        model.calls += 1
        random.random(), numpy.random.rand(), torch.rand(1)
        if i + 1 == batches:
            break


OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "AdamW in two groups": lambda parameters: torch.optim.AdamW([
        {"params": list(parameters)[:2], "lr": 0.5}, {"params": list(parameters)[2:]}]),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, max_iter=2),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


IMPORTS = """
import os, signal, sys, time
sys.path.insert(0, os.path.join(os.environ["WATTLE_TESTS"], "python"))
import torch
from profiler import Work, data, make, state, same
from wattle.compat.profiler import power_cap_profiler, reset_power_cap, set_power_cap
"""
SEARCH = IMPORTS + """
model = torch.nn.Sequential(Work(), make())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader, loss = data(n=64, shuffle=True), torch.nn.CrossEntropyLoss()
before = state(model, optimizer)
cap = power_cap_profiler(model, loader, gpu_num=0, train=TRAIN, loss_fn=loss, optimizer=optimizer, out_file="caps.csv",
                         seconds=0.4, settle=0.03)
same(before, state(model, optimizer))
print("answer", repr(cap))
"""


class Machine:
    """A fake card, no other sensors, and the log of its limits."""

    def __init__(self, workdir, card=CARD):
        self.workdir, self.cards = workdir, workdir.folder / "cards"
        self.cards.write_text(card.text())
        self.environment = {"WATTLE_NVML": str(FAKE_NVML), "WATTLE_FAKE_NVML": str(self.cards), "WATTLE_HELPER": "off",
                            "WATTLE_STATE": str(workdir.folder / "state"),
                            "WATTLE_SYSFS": str(workdir.tree("none", {})),
                            "CUDA_VISIBLE_DEVICES": None}

    def start(self, program, **environment):
        (self.workdir.folder / "program.py").write_text(program)
        return self.workdir.start("program.py", program=sys.executable, env={**self.environment, **environment})

    def run(self, program, status=0, **environment):
        done = self.workdir.finish(self.start(program, **environment))
        assert done.returncode == status, done
        return done

    def limits(self):
        """W, each limit that was set, in order."""
        path = self.workdir.folder / "cards.limits"
        return [int(line.split()[2]) / 1000 for line in path.read_text().splitlines()] if path.exists() else []


@test
def the_best_cap_is_found_and_printed_and_written(workdir):
    """training: within 10 % of the best objective, in whole watts; table, CSV; card and model as before"""
    machine = Machine(workdir)
    done = machine.run(SEARCH.replace("TRAIN", "True"))
    cap = int(done.stdout.split("answer ")[1])
    assert CARD.worse_percent("ed2p", cap, from_w=120) < 10, (cap, CARD.best_w("ed2p"), done.stdout)
    assert "Modeled Optimal Cap: " in done.stdout and "Tested: " in done.stdout, done.stdout
    with open(workdir.folder / "caps.csv", newline="", encoding="utf-8") as file:
        *rows, last = csv.reader(file)
    assert last == ["Modeled Optimal Cap:", str(cap)], last
    caps, batches, kwh, objective = zip(*[map(float, row) for row in rows])
    assert caps[0] == 400 and caps[-1] == 120 and len(caps) == 8 and list(caps) == sorted(caps, reverse=True), caps
    for watts, n, used, value in zip(caps, batches, kwh, objective):
        near(used * 3.6e6 / n, CARD.step(watts, STEP_S)[0], relative=0.3)
        near(value, CARD.objective("ed2p", watts, STEP_S), relative=0.5)
    limits = machine.limits()
    assert min(limits) >= CARD.min_w and max(limits) <= CARD.max_w and limits[-1] == CARD.now_w, limits


@test
def inference_leaves_no_trace_either(workdir):
    """train=False: the same with the model in eval mode, its statistics unchanged"""
    machine = Machine(workdir)
    machine.run(SEARCH.replace("TRAIN", "False").replace("seconds=0.4", "seconds=0.1"))
    assert machine.limits()[-1] == CARD.now_w, machine.limits()


@test
def an_exception_in_the_work_puts_everything_back(workdir):
    """loss function that fails after some batches: its exception reaches the program, model and limit are restored"""
    machine = Machine(workdir)
    machine.run(IMPORTS + """
model = torch.nn.Sequential(Work(), make())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
calls = []
def loss(outputs, labels):
    calls.append(1)
    if len(calls) == 60:
        raise ArithmeticError("no more")
    return torch.nn.functional.cross_entropy(outputs, labels)
before = state(model, optimizer)
try:
    power_cap_profiler(model, data(), train=True, loss_fn=loss, optimizer=optimizer, seconds=0.1, settle=0.01)
except ArithmeticError as why:
    assert str(why) == "no more"
else:
    sys.exit("no exception")
same(before, state(model, optimizer))
""")
    limits = machine.limits()
    assert len(limits) > 1 and limits[-1] == CARD.now_w, limits


@test
def killed_in_the_search(workdir):
    """SIGKILL during the search: the limit is restored within a second"""
    machine = Machine(workdir)
    program = machine.start(SEARCH.replace("TRAIN", "True").replace("seconds=0.4", "seconds=30"))
    wait_until(lambda: len(machine.limits()) >= 2 and machine.limits()[-1] != CARD.now_w, "a cap is being tested")
    program.kill()
    killed_s = time.monotonic()
    wait_until(lambda: machine.limits()[-1] == CARD.now_w, "the limit is restored")
    assert time.monotonic() - killed_s < 1


@test
def set_and_reset(workdir):
    """cap set by the program: reset restores the previous one, so does the program's end; without a set, the default"""
    machine = Machine(workdir)
    machine.run(IMPORTS + "set_power_cap(gpu_num=0, cap=250)\nset_power_cap(0, 200)\nreset_power_cap(gpu_num=0)\n"
                + "import numpy\nset_power_cap(numpy.int64(0), 150)\nreset_power_cap('GPU-0000')\nset_power_cap('0', "
                  "150)\n")
    assert machine.limits() == [250, 200, 350, 150, 350, 150, 350], machine.limits()
    machine.run(IMPORTS + "reset_power_cap(0)\n")
    assert machine.limits()[7:] == [400], machine.limits()


@test
def what_is_refused(workdir):
    """invalid arguments: a message each, before anything is done: no limit is set, no batch is consumed"""
    machine = Machine(workdir)
    machine.run(IMPORTS + """
for call, error, words in [
        (lambda: set_power_cap(0, 90), ValueError, "100"), (lambda: set_power_cap(0, 401), ValueError, "400"),
        (lambda: set_power_cap(3, 200), LookupError, "gpu-0"),
        (lambda: power_cap_profiler(make(), data(), gpu_num=3), LookupError, "gpu-0"),
        (lambda: power_cap_profiler(make(), iter(data())), TypeError, "repeated iteration"),
        (lambda: power_cap_profiler(make(), data(), train=True), ValueError, "loss_fn and optimizer"),
        (lambda: power_cap_profiler(make(), data(), train=True, loss_fn=print, optimizer=7), TypeError, "not builtin"),
        (lambda: power_cap_profiler(make(), data(), out_file="nowhere/caps.csv"), FileNotFoundError, "nowhere"),
        (lambda: power_cap_profiler(make(), []), ValueError, "no batch")]:
    try:
        call()
    except error as why:
        assert words in str(why), why
    else:
        sys.exit(f"{error.__name__} with {words!r}: was not raised")
""")
    assert machine.limits() == [], machine.limits()


@test
def everything_is_put_back(workdir):
    """model, optimizer, scheduler, generators: bitwise equal, whether the optimizer had state before or none"""
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
def training_continues_without_profiler(workdir):
    """the weights after a search and ten more steps are those of ten steps without a search"""
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


class Counts(nn.Module):
    """Has state that is no tensor."""

    def __init__(self):
        super().__init__()
        self.seen, self.last = set(), collections.deque(maxlen=2)

    def forward(self, x):
        self.seen.add(len(self.seen))
        self.last.append(len(self.seen))
        return x


class AnySampler:
    """Not of PyTorch's classes, with a generator of its own."""

    def __init__(self, n):
        self.n, self.random, self.epoch = n, random.Random(3), 0

    def __iter__(self):
        self.epoch += 1
        return iter(self.random.sample(range(self.n), self.n))

    def __len__(self):
        return self.n


class Wrapped(torch.utils.data.Dataset):
    """A data set in another one that counts."""

    def __init__(self, inner=None):
        self.inner, self.reads = inner, 0

    def __getitem__(self, i):
        self.reads += 1
        return self.inner[i] if self.inner else (torch.randn(6), 0)


@test
def what_is_not_in_plain_attributes(workdir):
    """TorchScript's tensors and modes, sets and deques, samplers of any class, nested data sets, persistent workers"""
    from wattle.compat.profiler.state import Kept
    model = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))), Counts())
    inner = Wrapped()
    loader = torch.utils.data.DataLoader(Wrapped(inner), batch_size=4, sampler=AnySampler(16))
    loader._iterator = stays = object()  # as persistent_workers keeps it

    def seen():
        tensors = [tensor.detach().numpy().tobytes() for tensor in (*model.parameters(), *model.buffers())]
        return (tensors, [part.training for part in model.modules()], model[1].seen.copy(), list(model[1].last),
                loader.sampler.random.getstate(), loader.sampler.epoch, loader.dataset.reads, inner.reads)
    before = seen()
    kept = Kept(model, None, None, loader)
    assert loader._iterator is None, "the user's workers must not do the search's work"
    for x, _ in loader:
        model(x)
    with torch.no_grad():
        model[0][0].weight.add_(1)
    model.eval()
    assert all(old != new for old, new in zip(before, seen()))
    kept.restore()
    assert seen() == before and loader._iterator is stays


@test
def an_optimizer_whose_entries_are_in_another_order(workdir):
    """keys that are tensors: compared by identity, not by their elements"""
    from wattle.compat.profiler.state import Kept
    a, b = [nn.Parameter(torch.ones(3)) for _ in range(2)]
    state = {a: 1, b: 2}
    kept = Kept(state)
    del state[a]
    state[a] = 3
    kept.restore()
    assert [(id(key), value) for key, value in state.items()] == [(id(a), 1), (id(b), 2)]


@test
def a_key_press_while_it_is_put_back(workdir):
    """Ctrl-C during restore: the part is restored again, then KeyboardInterrupt reaches the program"""
    from wattle.compat.profiler.state import Kept
    kept = Kept(data := [1, 2])
    parts = iter([KeyboardInterrupt, None])

    def interrupted():
        if why := next(parts):
            raise why
        data.append(4)
    kept._restores.append(interrupted)
    data.clear()
    try:
        kept.restore()
    except KeyboardInterrupt:
        assert data == [1, 2] and next(parts, "none left") == "none left", data
    else:
        raise AssertionError("it was swallowed")


@test
def a_module_without_its_shape_is_refused(workdir):
    """lazy module, which cannot be made lazy again: the message says to call it first"""
    from wattle.compat.profiler.state import Kept
    try:
        Kept(nn.LazyLinear(3))
    except ValueError as why:
        assert "call it once" in str(why), why
    else:
        raise AssertionError("it was accepted")


if __name__ == "__main__":
    main()
