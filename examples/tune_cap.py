#!/usr/bin/env python3
"""Finds the most efficient power limit for a training step, and trains under this limit.

    python3 examples/tune_cap.py                         # gpu-0; minimizes energy × time² of a step
    python3 examples/tune_cap.py gpus --objective slowdown=5 --seconds 10 --csv caps.csv --plot caps.png

The work is a matrix product in PyTorch, on the GPU if there is one; replace it with your own step. Setting limits needs
root, or a rule in the policy of the helper wattled (docs/helper.md); `wattle cap list` shows whether you may set one. wattle
restores the previous limit when this program ends, even if it is killed.
"""
import argparse
import sys
from typing import Callable, Optional

import wattle


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="?", default="gpu-0", help="gpu-0; gpu-0,gpu-1; gpus; package-0")
    parser.add_argument("--objective", default="ed2p", help="ed2p, edp, energy, slowdown=PERCENT")
    parser.add_argument("--seconds", type=float, default=30, help="maximum measuring time for each limit")
    parser.add_argument("--settle", type=float, help="seconds to wait after each change of the limit; default: until power is steady")
    parser.add_argument("--caps", type=int, default=8, help="number of limits to try")
    parser.add_argument("--steps", type=int, default=100, help="number of steps to train under the best limit")
    parser.add_argument("--csv", help="file for the table")
    parser.add_argument("--plot", help="file for a picture")
    return parser.parse_args()


def make_step() -> Callable[[], None]:
    """Returns a step that launches its GPU work asynchronously; wattle synchronizes at the ends of its windows."""
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 4096 if device == "cuda" else 256
    weights = torch.rand(size, size, device=device, requires_grad=True)
    batch = torch.rand(size, size, device=device)

    def step() -> None:
        (batch @ weights).square().mean().backward()
        weights.grad = None
    return step


def show(progress: wattle.cap.Progress) -> None:
    print(f"{progress.done:4.0%}  {progress.limit:g} W, {progress.steps} steps, at most {progress.seconds_left:.0f} s "
          "left",
          file=sys.stderr)


def main(step: Optional[Callable[[], None]] = None) -> None:
    options = arguments()
    step = step or make_step()
    result = wattle.cap.tune(options.device, step, objective=options.objective, caps=options.caps,
                             seconds=options.seconds, settle=options.settle, progress=show)
    print(result)
    if options.csv:
        result.to_csv(options.csv)
    if options.plot:
        result.plot().figure.savefig(options.plot)
    with result.apply(), wattle.measure() as m:
        for _ in range(options.steps):
            step()
    print(f"{options.steps} steps under {result.chosen:.0f} W: {m.seconds:.2f} s")


if __name__ == "__main__":
    try:
        main()
    except (LookupError, PermissionError, ValueError) as why:
        sys.exit(f"tune_cap: {why}")
