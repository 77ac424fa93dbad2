"""BatchNorm statistics of the training set, estimated anew after weights were changed at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
# Enough for means and variances; a large training set is thinned evenly.
_MOST_SAMPLES = 10_000
_BLOCK = 500


def norms_of(model: nn.Module) -> list[_BatchNorm]:
    """The BatchNorm layers of a network that keep running statistics."""
    return [module for module in model.modules() if isinstance(module, NORMS) and module.track_running_stats]


@contextmanager
def frozen_statistics(model: nn.Module) -> Iterator[None]:
    """A pass over a batch inside does not count for the running statistics."""
    norms = norms_of(model)
    kept = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
        norm.num_batches_tracked = None
    try:
        yield
    finally:
        for norm, (momentum, batches) in zip(norms, kept, strict=True):
            norm.momentum = momentum
            norm.num_batches_tracked = batches


@torch.no_grad()
def reestimate_statistics(model: nn.Module, x: Tensor) -> None:
    """Replace all running means and variances by averages over batches of the training samples `x`.

    Nothing else changes: no weights, no generator, no mode. Dropout stays off.
    """
    norms = norms_of(model)
    if not norms:
        return
    modes = {module: module.training for module in model.modules()}
    kept = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    model.eval()
    for norm in norms:
        norm.num_batches_tracked = None if norm.num_batches_tracked is None else norm.num_batches_tracked.clone()
        norm.reset_running_stats()
        norm.momentum = None  # a plain average over the batches
        norm.train()
    stride = -(-len(x) // _MOST_SAMPLES)
    samples = x[::stride]
    for block in samples.chunk(max(1, len(samples) // _BLOCK)):
        model(block)
    for norm, (momentum, batches) in zip(norms, kept, strict=True):
        norm.momentum = momentum
        norm.num_batches_tracked = batches
    for module, training in modes.items():
        module.training = training
