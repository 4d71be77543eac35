"""Energy per layer and per step of PyTorch models, without changing them.

    with wattle.torch.layers(model) as measured:
        train()
    print(measured)

    step = wattle.torch.step(optimizer, samples=64)   # each optimizer.step() is a step: J/step, J/sample

    wattle.torch.join_profile("run.sqlite", "profile.json", "both.pftrace")   # torch.profiler's events, and joules
"""
try:
    import torch as _torch  # noqa: F401  # the modules below need it
except ImportError as error:
    raise ImportError("wattle.torch needs PyTorch: pip install wattle[torch]") from error

from .complexity import complexity
from .profile import join_profile
from .session import layers
from .steps import step

__all__ = ["complexity", "join_profile", "layers", "step"]
