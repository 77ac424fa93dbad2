"""Random crops and mirror images of whole batches, the customary augmentation of CIFAR."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def crop_and_flip(x: Tensor, generator: torch.Generator, border: Sequence[float] | Tensor, padding: int = 4) -> Tensor:
    """Return the images of a batch (N, C, H, W), each shifted at random and mirrored with probability 1/2.

    Image i is padded by `padding` pixels of the border's colour and cropped to its own size at an offset (a, b), both
    uniform on 0 ... 2 padding: y[i, :, r, s] = padded[i, :, a + r, b + s], or b + W - 1 - s where it is mirrored.
    The whole batch is one gather. Memory format and device are those of `x`. The draws come from `generator` on its own
    device, so a generator of the CPU augments alike on every device; the same state gives the same images.

    For training only: losses and errors are always evaluated on the original images.

    >>> generator = torch.Generator().manual_seed(0)
    >>> crop_and_flip(torch.ones(1, 1, 2, 2), generator, border=[7.0], padding=0).flatten().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if x.dim() != 4:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, but only images (N, C, H, W) can be cropped and flipped: "
            "train on flat features without augmentation"
        )
    if padding < 0:
        raise ValueError(f"padding is {padding}, must be 0 or more pixels")
    count, channels, height, width = x.shape
    colour = torch.as_tensor(border, dtype=x.dtype, device=x.device)
    if colour.shape != (channels,):
        raise ValueError(f"border has shape {tuple(colour.shape)}, must hold one value for each of {channels} channels")

    offsets = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=generator, device=generator.device).to(
        x.device
    )
    mirrored = torch.randint(0, 2, (count, 1), generator=generator, device=generator.device).to(x.device).bool()

    padded_height, padded_width = height + 2 * padding, width + 2 * padding
    padded = x.new_empty((count, channels, padded_height, padded_width))
    padded.copy_(colour.view(1, channels, 1, 1).expand_as(padded))
    padded[:, :, padding : padding + height, padding : padding + width] = x

    rows = offsets[0] + torch.arange(height, device=x.device)
    columns = torch.arange(width, device=x.device)
    columns = offsets[1] + torch.where(mirrored, width - 1 - columns, columns)
    pixels = (rows[:, :, None] * padded_width + columns[:, None, :]).view(count, 1, height * width)
    cropped = padded.view(count, channels, -1).gather(2, pixels.expand(count, channels, -1))
    cropped = cropped.view(count, channels, height, width)
    if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        return cropped.contiguous(memory_format=torch.channels_last)
    return cropped
