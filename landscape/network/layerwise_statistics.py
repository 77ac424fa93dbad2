"""Population statistics of BatchNorm layers for any network and any amount of data, one layer after the other.

For each BatchNorm layer all blocks run through the network up to it, with the layers before it already normalised, and
give its mean and variance. That holds one block in memory at a time, and costs about half as many forward passes as
there are layers; ``PopulationStatistics`` needs one pass, and the memory for all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.network.batchnorm_layers import (
    Normalise,
    check_accepts_statistics,
    is_standard,
    scale_and_shift,
    through_running_averages,
)
from valleyscope.landscape.network.batchnorm_statistics import Advance, batch_norms
from valleyscope.landscape.network.running_moments import RunningMoments


class _Paused(BaseException):
    """Ends a forward pass at a layer without statistics; not an Exception, so that networks do not catch it."""


class LayerwiseStatistics:
    """Population statistics layer by layer; replaces the forward passes of the BatchNorm layers.

    ``forward`` runs the network on a block, by default a tensor; ``size`` counts the samples of a block.
    """

    def __init__(
        self,
        network: nn.Module,
        forward: Callable[[Any], Any] | None = None,
        size: Callable[[Any], int] = len,
        example: Any = None,
    ) -> None:
        self._forward_pass = forward or network
        self._size = size
        self._statistics: list[Normalise] = []
        self._calls = 0
        self._moments: RunningMoments | None = None
        self._paused_at: tuple[_BatchNorm, torch.dtype] | None = None
        layers = batch_norms(network)
        self._custom_forwards = {layer: layer.forward for layer in layers.values() if not is_standard(layer)}
        self._names = {layer: name for name, layer in layers.items()}
        for layer in layers.values():
            layer.forward = partial(self._forward, layer)  # type: ignore[method-assign]
        if example is not None and self._custom_forwards:
            self._check_custom_layers(example)

    @torch.inference_mode()
    def measure(self, blocks: Sequence[Callable[[], Any]], advance: Advance) -> list[Any]:
        """Compute the statistics over blocks of samples (functions that load them); returns the output of each."""
        self._statistics = []
        while True:
            self._moments = moments = RunningMoments()
            self._paused_at = None
            outputs = []
            for load in blocks:
                block = load()
                try:
                    outputs.append(self(block))
                except _Paused:
                    advance(0.0)
                else:
                    advance(self._size(block))
            self._moments = None
            paused_at: tuple[_BatchNorm, torch.dtype] | None = self._paused_at
            if paused_at is None:
                return outputs
            if outputs:
                raise ValueError(
                    "the network calls BatchNorm layers more often for some inputs than for others, so population "
                    "statistics do not fit; use batch_norm='running' or 'frozen'"
                )
            layer, dtype = paused_at
            custom = self._custom_forwards.get(layer)
            self._statistics.append(
                scale_and_shift(layer, *moments.pooled(), dtype)
                if custom is None
                else through_running_averages(layer, custom, moments, dtype)
            )

    def __call__(self, block: Any) -> Any:
        """The output for a block with the last statistics."""
        self._calls = 0
        return self._forward_pass(block)

    def _forward(self, layer: _BatchNorm, x: Tensor, *arguments: object, **options: object) -> Tensor:
        if self._calls < len(self._statistics):
            self._calls += 1
            return self._statistics[self._calls - 1](x, *arguments, **options)
        if self._moments is None:
            raise ValueError(
                "the network calls BatchNorm layers more often for some inputs than for others, so population "
                "statistics do not fit; use batch_norm='running' or 'frozen'"
            )
        self._moments.add(x)
        self._paused_at = layer, x.dtype
        raise _Paused

    def _check_custom_layers(self, example: Any) -> None:
        """Raise an error for the first layer with a forward pass of its own that ignores its running averages."""
        inputs: list[tuple[_BatchNorm, Tensor]] = []
        hooks = [
            layer.register_forward_pre_hook(lambda layer, given: inputs.append((layer, given[0])), prepend=True)
            for layer in self._custom_forwards
        ]
        replaced = {layer: layer.forward for layer in self._names}
        for layer in self._names:
            del layer.forward
        try:
            with torch.no_grad():
                self._forward_pass(example)
            for layer, x in inputs:
                check_accepts_statistics(self._names[layer], layer, x)
        finally:
            for hook in hooks:
                hook.remove()
            for layer, forward in replaced.items():
                layer.forward = forward  # type: ignore[method-assign]
