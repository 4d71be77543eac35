"""De Feo's power-cap profiler, on wattle's search: change `from profiler import …` and keep the rest.

    from wattle.compat.profiler import power_cap_profiler, reset_power_cap, set_power_cap

    optimal_cap = power_cap_profiler(model, dataloader, gpu_num=0, train=True, loss_fn=criterion, optimizer=optimizer,
                                     out_file="caps.csv")
    set_power_cap(gpu_num=0, cap=optimal_cap)
    train()
    reset_power_cap(gpu_num=0)

The model, the optimizer and all random numbers are restored bit by bit afterwards. docs/migrate-defeo.md lists
the differences from the original.
"""
from .caps import reset_power_cap, set_power_cap
from .search import power_cap_profiler

__all__ = ["power_cap_profiler", "reset_power_cap", "set_power_cap"]
