#!/usr/bin/env python3
"""Trains ResNet-18 on synthetic images and shows the energy per layer, step, image and multiply-add.

    python3 examples/train_resnet18.py                          # under a minute on one core
    python3 examples/train_resnet18.py --size 224 --batch 32 --steps 200 --device cuda

The run file is kept: `wattle report resnet18.sqlite`, `wattle blocks resnet18.sqlite`.
"""
import argparse
from typing import Iterator

import torch
import torchvision
import wattle
import wattle.torch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=32, help="height and width of the images")
    parser.add_argument("--batch", type=int, default=8, help="images per step")
    parser.add_argument("--steps", type=int, default=40, help="steps per epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", default="resnet18.sqlite", help="run file; an existing file is replaced")
    return parser.parse_args()


def made_data(n: int, batch: int, size: int, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Images of noise that are slightly brighter in one colour, which is their class."""
    for _ in range(n):
        labels = torch.randint(3, (batch,))
        images = torch.rand(batch, 3, size, size)
        images[torch.arange(batch), labels] += 0.5
        yield images.to(device), labels.to(device)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, options: argparse.Namespace) -> float:
    """Trains all epochs and returns the loss of the last step."""
    loss = torch.tensor(float("nan"))
    for _ in range(options.epochs):
        with wattle.span("epoch"):
            for images, labels in made_data(options.steps, options.batch, options.size, options.device):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
        wattle.metric("loss", loss.item())
    return loss.item()


def main() -> None:
    options = arguments()
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=3).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    counted = wattle.torch.complexity(model, (options.batch, 3, options.size, options.size))

    with wattle.torch.layers(model, output=options.output, overwrite=True) as measured, \
            wattle.torch.step(optimizer, samples=options.batch):
        loss = train(model, optimizer, options)
    counted.keep(options.output)

    layers = sorted(counted.join(measured).rows, key=lambda row: -(row.energy_j or 0))
    print(f"{'layer':24}{'J':>10}{'share':>8}{'J/GMAC':>10}")
    for row in layers[:10]:
        per_gmac = f"{row.j_per_gmac:.3f}" if row.j_per_gmac is not None else ""
        energy, share = (f"{row.energy_j:.3f}", f"{row.share:.1%}") if row.share is not None else ("n/a", "n/a")
        print(f"{row.name or '(model)':24}{energy:>10}{share:>8}{per_gmac:>10}")

    run = wattle.open(options.output)
    step = run.blocks.find("step")
    images = step["num_calls"] * options.batch
    gmac = counted.multiply_adds / 1e9 / options.batch
    print(f"\nloss {loss:.3f} after {images} images, {gmac:.4f} GMAC each (forward)")
    per_image = next(unit["j_per_unit"] for unit in step["units"] if unit["name"] == "samples")
    if per_image is not None:
        estimated = " (estimated: no counter can be read here)" if measured.estimated else ""
        print(f"{step['mean_j']:.3f} J a step, {per_image:.4f} J an image{estimated}")
    print(f"wattle report {options.output} shows more")


if __name__ == "__main__":
    main()
