"""A multi-layer perceptron."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from valleyscope.training.models._options import wholes


def mlp(input_shape: tuple[int, ...], classes: int, *, hidden: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them on the flattened input; without hidden layers, multinomial regression."""
    sizes = [math.prod(input_shape), *wholes("mlp", "hidden", hidden), classes]
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for index, (before, after) in enumerate(pairwise(sizes), start=1):
        layers[f"linear{index}"] = nn.Linear(before, after)
        layers[f"relu{index}"] = nn.ReLU()
    layers.popitem()
    return nn.Sequential(layers)
