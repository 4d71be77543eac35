#!/usr/bin/env python3
"""Compares two batch sizes: the same images through the same model: time and energy per image.

    python3 examples/batch_sizes.py              # batches of 4 and of 16, two rounds each, alternating
    python3 examples/batch_sizes.py 8 64 --size 64 --images 2048 --rounds 5

Rounds alternate, so that a machine that warms up or runs other programs favours neither. For the significance of a difference
use `wattle bench -- python3 … ::: python3 …`, which repeats whole programs in random order.
"""
import argparse
import os
import statistics
import tempfile
from typing import Optional

import torch
import torchvision
import wattle
import wattle.torch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batches", type=int, nargs="*", default=[4, 16], help="images a step")
    parser.add_argument("--size", type=int, default=32, help="height and width of the images")
    parser.add_argument("--images", type=int, default=128, help="a round")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if not all(1 <= batch <= options.images for batch in options.batches):
        parser.error(f"a batch has from 1 to {options.images} images, those of a round (--images)")
    return options


def train(batch: int, images: int, size: int) -> None:
    """Trains ResNet-18 on noise; `round` is the compared block, without the setup."""
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, labels = torch.rand(batch, 3, size, size), torch.randint(10, (batch,))
    with wattle.span("round"):
        for _ in range(images // batch):
            with wattle.torch.step(samples=batch):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(data), labels).backward()
                optimizer.step()


def record(path: str, batch: int, options: argparse.Namespace) -> None:
    with wattle.Tracker(sleep_time=0.05, output=path, disable_logs=True):
        train(batch, options.images, options.size)


def per_image(paths: list[str], images: int, figure: str) -> Optional[float]:
    """The median round's seconds or joules per image; None if unknown."""
    blocks = [wattle.open(path).blocks.find("round") for path in paths]
    values = [block[figure] for block in blocks]
    return None if None in values else statistics.median(values) / images


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        paths = {batch: [os.path.join(folder, f"{batch}-{number}.sqlite") for number in range(options.rounds)]
                 for batch in options.batches}
        for number in range(options.rounds):
            for batch in options.batches:
                record(paths[batch][number], batch, options)

        print(f"{'batch':>6}{'ms an image':>14}{'mJ an image':>14}")
        for batch in options.batches:
            images = options.images // batch * batch
            cells = [per_image(paths[batch], images, figure) for figure in ("total_s", "total_j")]
            print(f"{batch:>6}" + "".join(f"{'n/a' if value is None else f'{value * 1e3:.2f}':>14}" for value in cells))

        # The last rounds side by side, as `wattle compare 4=4-1.sqlite 16=16-1.sqlite` shows them.
        side_by_side = wattle.compare({str(batch): paths[batch][-1] for batch in options.batches})
        for name, joules in side_by_side["energy"]["blocks"].get("round", {}).items():
            print(f"batches of {name}: {'n/a' if joules is None else f'{joules:.2f} J'} for the last round")


if __name__ == "__main__":
    main()
