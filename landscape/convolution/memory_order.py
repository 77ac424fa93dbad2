"""The order in which the values of a batch of images lie in memory.

Images have the axes samples, channels, rows and columns, whatever their order in memory: elementwise operations keep
the order that they are given, so it is chosen by whoever makes images, for whoever needs them next.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

Order = tuple[int, int, int, int]
"""The axes from the one with the longest steps to the one with steps of 1."""

CHANNELS_LAST: Order = (0, 2, 3, 1)
"""For the convolutions of the library."""
PIXELS_FIRST: Order = (2, 3, 0, 1)
"""For matrix products over channels, a pixel at a time."""
SAMPLES_LAST: Order = (2, 3, 1, 0)
"""For networks with few channels: the samples fill the lanes of a processor that their channels do not."""


def empty_images(shape: Sequence[int], order: Order, like: Tensor) -> Tensor:
    """Images of the shape (samples, channels, rows, columns) that lie in memory in this order.

    >>> import torch
    >>> empty_images((5, 2, 3, 4), SAMPLES_LAST, torch.empty(0)).stride()
    (1, 5, 40, 10)
    """
    return as_images(like.new_empty([shape[axis] for axis in order]), order)


def as_images(values: Tensor, order: Order) -> Tensor:
    """Values whose axes lie in this order, seen with the usual axes."""
    return values.permute([order.index(axis) for axis in range(4)])


def in_order(images: Tensor, order: Order) -> Tensor:
    """Images seen with their axes in this order."""
    return images.permute(order)


def to_samples_last(images: Tensor) -> Tensor:
    """The same images with the samples last in memory: as a matrix that is turned over, which torch does quickly."""
    samples, channels, rows, columns = images.shape
    turned = in_order(images, CHANNELS_LAST).reshape(samples, -1).t().contiguous()
    return as_images(turned.view(rows, columns, channels, samples), SAMPLES_LAST)
