"""Memory orders of a batch of images.

Images have the axes samples, channels, rows and columns in any memory order. Elementwise operations keep the order, so
each layer writes its output in the order that suits the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

Order = tuple[int, int, int, int]
"""The axes from the largest stride to stride 1."""

CHANNELS_LAST: Order = (0, 2, 3, 1)
"""For torch's convolutions."""
PIXELS_FIRST: Order = (2, 3, 0, 1)
"""For matrix products over channels, pixel by pixel."""
SAMPLES_LAST: Order = (2, 3, 1, 0)
"""For networks with few channels: samples fill the vector lanes of the processor."""


def empty_images(shape: Sequence[int], order: Order, like: Tensor) -> Tensor:
    """Empty images of the shape (samples, channels, rows, columns) in this memory order.

    >>> import torch
    >>> empty_images((5, 2, 3, 4), SAMPLES_LAST, torch.empty(0)).stride()
    (1, 5, 40, 10)
    """
    return as_images(like.new_empty([shape[axis] for axis in order]), order)


def as_images(values: Tensor, order: Order) -> Tensor:
    """A tensor with axes in this order as images with the usual axes."""
    return values.permute([order.index(axis) for axis in range(4)])


def in_order(images: Tensor, order: Order) -> Tensor:
    """Images as a tensor with axes in this order."""
    return images.permute(order)


def to_samples_last(images: Tensor) -> Tensor:
    """The same images with samples last in memory, by a matrix transpose, which is fast."""
    samples, channels, rows, columns = images.shape
    transposed = in_order(images, CHANNELS_LAST).reshape(samples, -1).t().contiguous()
    return as_images(transposed.view(rows, columns, channels, samples), SAMPLES_LAST)
