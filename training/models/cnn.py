"""A small convolutional network of adjustable size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from valleyscope.training.models._options import whole, wholes


def cnn(
    input_shape: tuple[int, ...],
    classes: int,
    *,
    channels: Sequence[int],
    hidden: int,
    kernel: int,
    padding: str,
) -> nn.Sequential:
    """Two convolutions, each with ReLU and 2x2 max-pooling, and two linear layers.

    With `padding` "same" a convolution keeps the size of its input, with "valid" it takes kernel - 1 off each side.
    """
    first, second = wholes("cnn", "channels", channels, count=2)
    hidden, kernel = whole("cnn", "hidden", hidden), whole("cnn", "kernel", kernel)
    if padding not in ("same", "valid"):
        raise ValueError(f"model 'cnn': padding is {padding!r}, must be 'same' or 'valid'")
    if padding == "same" and kernel % 2 == 0:
        raise ValueError(f"model 'cnn': kernel is {kernel}, must be odd with padding 'same'; or use padding 'valid'")
    margin = kernel // 2 if padding == "same" else 0
    height, width = (_pooled(_pooled(side, kernel, margin), kernel, margin) for side in input_shape[1:])
    if height < 1 or width < 1:
        raise ValueError(
            f"model 'cnn' does not fit samples of shape {input_shape}: they are too small for two "
            f"{kernel}x{kernel} convolutions with padding {padding!r} and pooling; use a smaller kernel"
        )
    # Max-pooling and ReLU commute, value and gradient, and ReLU after pooling has a quarter of the work.
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(input_shape[0], first, kernel, padding=margin),
            pool1=nn.MaxPool2d(2),
            relu1=nn.ReLU(),
            conv2=nn.Conv2d(first, second, kernel, padding=margin),
            pool2=nn.MaxPool2d(2),
            relu2=nn.ReLU(),
            flatten=nn.Flatten(),
            linear1=nn.Linear(second * height * width, hidden),
            relu3=nn.ReLU(),
            linear2=nn.Linear(hidden, classes),
        )
    )


def _pooled(side: int, kernel: int, margin: int) -> int:
    """Return the side of an image after one convolution and one 2x2 pooling."""
    return max(0, side + 2 * margin - kernel + 1) // 2
