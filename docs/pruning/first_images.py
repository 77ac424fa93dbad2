"""Writes the first images of each class of a data set as an npz file, for experiments that must be short.

    python docs/pruning/first_images.py npz:cifar10-subset.npz DIR/cifar-photographs.npz --train 6000 --test 2000
    python docs/pruning/first_images.py cifar10 DIR/cifar-photographs.npz --train 6000 --test 2000
    python docs/pruning/first_images.py cifar10 DIR/cifar-small.npz --train 3000 --test 1000 --side 16

`--side` makes images smaller, by means of their pixels. Use the file in a spec as `dataset: npz:cifar-photographs.npz`,
with VALLEY_DATA=DIR.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from valleyscope import load_dataset


def first_of_each_class(labels: torch.Tensor, count: int) -> torch.Tensor:
    """The places of the first images of each class, as many of each, in their order."""
    classes = int(labels.max()) + 1
    places = [(labels == label).nonzero().flatten()[: count // classes] for label in range(classes)]
    return torch.cat(places).sort().values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="cifar10, npz:PATH, ...")
    parser.add_argument("file", help="the npz file to write")
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--side", type=int, help="pixels a side; by default as they are")
    options = parser.parse_args()
    data = load_dataset(options.dataset)
    arrays = {}
    for split, count in (("train", options.train), ("test", options.test)):
        x, y = data.splits[split]
        places = first_of_each_class(y, count)
        images = x[places] if options.side is None else adaptive_avg_pool2d(x[places].float(), options.side)
        arrays |= {f"x_{split}": images.numpy(), f"y_{split}": y[places].numpy()}
        print(f"{split}: {len(places)} of {len(y)} images")
    np.savez(options.file, **arrays)


if __name__ == "__main__":
    main()
