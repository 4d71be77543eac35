"""Saving and restoring everything that training changes: every tensor, number and random generator, bit by bit, in the same
objects."""
from __future__ import annotations

import collections
import functools
import random
import sys
from typing import Any, Callable, Iterable

import torch

Restore = Callable[[], None]


class Kept:
    """The state of models, optimizers, loss functions and data loaders, and of the random generators of the process.

        kept = Kept(model, optimizer)
        try:
            train()
        finally:
            kept.restore()

    Their attributes are followed, and in them dicts, lists, tuples, sets, deques, modules, tensors, arrays, generators.
    Copies of tensors are in the computer's memory, not the GPU's.
"""

    def __init__(self, *objects: Any) -> None:
        self._seen: dict[int, Any] = {}  # objects already visited, held so that their ids stay unique
        self._restores: list[Restore] = [*_global_generators()]
        try:
            for thing in objects:
                self._keep(thing)
                if id(thing) not in self._seen:
                    self._keep_small(thing)
        except BaseException:
            self.restore()
            raise

    def restore(self) -> None:
        """Restores everything, also if a part fails or on Ctrl-C; raises the first failure at the end."""
        failure: BaseException | None = None
        left = list(self._restores)
        while left:
            try:
                left[-1]()
            except KeyboardInterrupt as why:
                failure = failure or why
                continue  # this part again
            except BaseException as why:
                failure = failure or why
            left.pop()
        if failure is not None:
            raise failure

    def _keep(self, thing: Any) -> None:
        if id(thing) in self._seen:
            return
        for kinds, keep in self._kinds():
            if isinstance(thing, kinds):
                self._seen[id(thing)] = thing
                keep(thing)
                return

    def _kinds(self) -> Iterable[tuple[Any, Callable[[Any], None]]]:
        data = torch.utils.data
        yield torch.Tensor, self._keep_tensor
        yield torch.jit.ScriptModule, self._keep_script
        yield (torch.nn.Module, torch.optim.Optimizer, data.Sampler), lambda thing: self._keep(vars(thing))
        yield data.DataLoader, self._keep_loader
        yield dict, self._keep_dict
        yield (list, set, collections.deque), self._keep_list
        yield tuple, self._keep_all
        yield torch.Generator, self._keep_generator
        yield random.Random, lambda thing: self._add(thing.setstate, thing.getstate())
        if "numpy" in sys.modules:
            numpy = sys.modules["numpy"]
            yield numpy.ndarray, lambda thing: self._add(lambda old: thing.__setitem__(..., old), thing.copy())
            yield numpy.random.RandomState, lambda thing: self._add(thing.set_state, thing.get_state())
            yield numpy.random.Generator, lambda thing: self._keep_bits(thing.bit_generator)

    def _add(self, restore: Callable[[Any], Any], value: Any) -> None:
        self._restores.append(lambda: restore(value))

    def _keep_all(self, things: Iterable[Any]) -> None:
        for thing in things:
            self._keep(thing)

    def _keep_dict(self, thing: dict[Any, Any]) -> None:
        items = dict(thing)

        def restore() -> None:
            if [*map(id, thing)] == [*map(id, items)]:  # an optimizer's are tensors, which == compares by element
                thing.update(items)  # the same keys in the same order
                return
            thing.clear()
            thing.update(items)
        self._restores.append(restore)
        self._keep_all(items.values())

    def _keep_list(self, thing: Any) -> None:
        items = list(thing)

        def restore() -> None:
            thing.clear()
            (thing.update if isinstance(thing, set) else thing.extend)(items)
        self._restores.append(restore)
        self._keep_all(items)

    def _keep_script(self, module: Any) -> None:
        """TorchScript's state in C++, which is not in the attributes of Python's object."""
        for part in module.modules():
            self._add(functools.partial(setattr, part, "training"), part.training)
        self._keep_all([*module.parameters(), *module.buffers()])

    def _keep_tensor(self, tensor: torch.Tensor) -> None:
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError("the model has parameters without a shape yet (lazy modules): call it once with a batch first")
        home = tensor.data  # its location: another device may follow, under the same name
        content = home.to("cpu", copy=True)
        needs_grad, gradient = tensor.requires_grad, tensor.grad if tensor.is_leaf else None

        def restore() -> None:
            with torch.no_grad():
                if _can_be_written(home):
                    home.copy_(content)
                    tensor.data = home
                else:
                    tensor.data = content.to(home.device)
            if tensor.is_leaf:
                tensor.requires_grad_(needs_grad)
                tensor.grad = gradient
        self._restores.append(restore)
        if gradient is not None:
            self._keep(gradient)

    def _keep_generator(self, generator: torch.Generator) -> None:
        self._add(generator.set_state, generator.get_state())

    def _keep_bits(self, bits: Any) -> None:
        def restore(state: Any) -> None:
            bits.state = state
        self._add(restore, bits.state)

    def _keep_loader(self, loader: Any) -> None:
        """Its own generators and numbers and those of its samplers; of its data set only these too, because it may be large."""
        attributes = vars(loader)
        for name in ("generator", "sampler", "batch_sampler"):
            self._keep_sampler(attributes.get(name))
        self._add(functools.partial(attributes.__setitem__, "_iterator"), attributes.get("_iterator"))
        attributes["_iterator"] = None  # persistent workers and half-read data are not shared
        self._keep_small(attributes.get("dataset"))

    def _keep_sampler(self, sampler: Any) -> None:
        """Any object may be a sampler, and a batch sampler contains another one."""
        attributes = getattr(sampler, "__dict__", None)
        if attributes is None:
            self._keep(sampler)
        elif id(attributes) not in self._seen:
            self._keep(attributes)
            self._keep_sampler(attributes.get("sampler"))

    def _keep_small(self, thing: Any) -> None:
        """Numbers and generators of data sets and their wrappers; no large data."""
        attributes: dict[str, Any] = getattr(thing, "__dict__", {})
        if id(attributes) in self._seen:
            return
        self._seen[id(attributes)] = attributes
        numbers = {name: value for name, value in attributes.items() if isinstance(value, (bool, int, float, str))}
        self._restores.append(lambda: attributes.update(numbers))
        data = torch.utils.data
        parts: tuple[Any, ...] = (torch.nn.Module, torch.optim.Optimizer, torch.Generator, random.Random,
                                  data.DataLoader, data.Sampler)
        if "numpy" in sys.modules:
            numpy_random = sys.modules["numpy"].random
            parts += (numpy_random.RandomState, numpy_random.Generator)
        for value in attributes.values():
            if isinstance(value, parts):
                self._keep(value)
            for inner in value if isinstance(value, (list, tuple)) and len(value) < 1000 else [value]:
                if isinstance(inner, data.Dataset):
                    self._keep_small(inner)


def _can_be_written(tensor: torch.Tensor) -> bool:
    """Not one whose elements share memory, as expand() makes them."""
    if tensor.layout is not torch.strided:
        return True
    return all(stride != 0 or size <= 1 for stride, size in zip(tensor.stride(), tensor.shape))


def _global_generators() -> Iterable[Restore]:
    """The generators of Python, NumPy, PyTorch and each CUDA device."""
    python, cpu = random.getstate(), torch.get_rng_state()
    yield lambda: random.setstate(python)
    yield lambda: torch.set_rng_state(cpu)
    if "numpy" in sys.modules:
        numpy_random = sys.modules["numpy"].random
        state = numpy_random.get_state()
        yield lambda: numpy_random.set_state(state)
    if torch.cuda.is_available():
        cuda = torch.cuda.get_rng_state_all()
        yield lambda: torch.cuda.set_rng_state_all(cuda)
