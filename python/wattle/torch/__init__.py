"""Energy per layer and per step of PyTorch models, without changing them.

    with wattle.torch.layers(model) as measured:
        train()
    print(measured)

    step = wattle.torch.step(optimizer, samples=64)   # each optimizer.step() is a step: J/step, J/sample

    wattle.torch.join_profile("run.sqlite", "profile.json", "both.pftrace")   # torch.profiler's events, and joules
"""
from .complexity import complexity
from .profile import join_profile
from .session import layers
from .steps import step

__all__ = ["complexity", "join_profile", "layers", "step"]
