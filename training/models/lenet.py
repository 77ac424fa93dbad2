"""LeNet with 20 and 50 filters and 500 hidden units, the network of the paper's MNIST experiments."""

from __future__ import annotations

from torch import nn

from valleyscope.training.models.cnn import cnn


def lenet(input_shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two 5x5 convolutions without padding, each with ReLU and 2x2 max-pooling, and two linear layers."""
    return cnn(input_shape, classes, channels=(20, 50), hidden=500, kernel=5, padding="valid")
