"""BatchNorm layers with the statistics of the model (``batch_norm="frozen"``), in fewer passes over memory."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, fx
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.network.batchnorm_layers import is_standard, scale_and_shift
from valleyscope.landscape.network.fx_graph import batch_norm_nodes
from valleyscope.landscape.network.graph_rewrites import Window, is_temporary, remove_pooling_after


class StoredBatchNorm:
    """Replaces the forward pass of a layer whose input nothing else reads: normalises it in place, after max-pooling.

    The scales are parameters and move; the statistics stay.
    """

    is_replacement = True

    def __init__(self, layer: _BatchNorm, window: Window | None) -> None:
        self._layer = layer
        self._window = window
        layer.forward = self  # type: ignore[method-assign, assignment]

    def __call__(self, x: Tensor) -> Tensor:
        mean, variance = self._layer.running_mean, self._layer.running_var
        assert mean is not None
        assert variance is not None
        normalise = scale_and_shift(self._layer, mean.double(), variance.double(), x.dtype, self._window)
        return normalise(x) if self._window is not None else normalise.in_place(x)


def normalise_in_place(graph: fx.GraphModule) -> None:
    """Replace the plain BatchNorm layers of a traced network that follow a convolution or linear layer."""
    nodes = batch_norm_nodes(graph)
    calls = Counter(nodes.values())
    for node, layer in nodes.items():
        mean = layer.running_mean
        plain = calls[layer] == 1 and is_standard(layer) and mean is not None and mean.dtype is torch.float32
        if plain and is_temporary(graph, node.all_input_nodes[0]):
            StoredBatchNorm(layer, remove_pooling_after(graph, node))
