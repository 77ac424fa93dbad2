"""Order the units of a network so that they respond to data like those of a reference.

Each group of units is assigned once, by the correlations between its activations in the two networks (Li et al. 2015,
"Convergent Learning"), at the inputs of all layers that read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from valleyscope.landscape.alignment.symmetries import Observed, Symmetries
from valleyscope.landscape.alignment.weight_matching import Ascent, Matching
from valleyscope.landscape.network.copying import copied

_TIE = 1e-4
"""The share of weights in the score of a unit; correlations have the rest."""


class Correlations:
    """Correlations of the units of two networks, added up over batches; rows are units of the first.

    >>> found = Correlations()
    >>> found.add(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[2.0, 4.0, 6.0], [3.0, 2.0, 1.0]]))
    >>> found.values().round(decimals=6)
    tensor([[ 1., -1.]], dtype=torch.float64)
    """

    def __init__(self) -> None:
        self.count = 0
        self.sums: tuple[Tensor, ...] = ()

    def add(self, one: Tensor, other: Tensor) -> None:
        """More observations of the units, one row a unit."""
        found = [one.sum(1), other.sum(1), one.square().sum(1), other.square().sum(1), one @ other.T]
        found = [value.double() for value in found]
        self.sums = tuple(a + b for a, b in zip(self.sums, found, strict=True)) if self.sums else tuple(found)
        self.count += one.shape[1]

    def values(self) -> Tensor:
        """The correlations; 0 for units that never change."""
        a, b, aa, bb, ab = (value / self.count for value in self.sums)
        deviations = ((aa - a.square()).clamp_min(0).sqrt(), (bb - b.square()).clamp_min(0).sqrt())
        scale = deviations[0][:, None] * deviations[1]
        return torch.where(scale > 1e-12, (ab - a[:, None] * b) / scale.clamp_min(1e-12), 0.0)


def match_activations(
    symmetries: Symmetries, reference: Mapping[str, Any], weights: Mapping[str, Any], batches: Iterable[Sequence[Any]]
) -> Matching:
    """The orders of the units of ``weights`` that make them respond like the reference to batches of inputs.

    Groups whose units no layer reads one by one, such as the heads of an attention layer, are ordered by their weights.
    """
    graphs = [_loaded(symmetries.graph, state) for state in (reference, weights)]
    found: dict[str, dict[Observed, Correlations]] = {
        group.name: {place: Correlations() for place in group.observed} for group in symmetries.groups
    }
    places: dict[str, list[tuple[Observed, Correlations]]] = defaultdict(list)
    for own in found.values():
        for place, correlations in own.items():
            places[place.node].append((place, correlations))
    for batch in batches:
        seen = [_Observer(graph, places).observe(batch) for graph in graphs]
        for node, listed in places.items():
            one, other = (values[node] for values in seen)
            for place, correlations in listed:
                correlations.add(_by_unit(one, place), _by_unit(other, place))
    ascent = Ascent(symmetries, reference, weights)
    scores: dict[str, Tensor] = {}
    for name, own in found.items():
        if own:
            scores[name] = torch.stack([correlations.values() for correlations in own.values()]).sum(0)
            ascent.apply(name, ascent.assignment(scores[name]))
    # Units that never respond correlate with none: their weights decide, beside all that are in order already.
    for name in found:
        products = ascent.products(name)
        if name in scores:
            products = products.double() * (_TIE / products.abs().max().clamp_min(1e-30))
            products += scores[name][:, ascent.orders[name]]
        ascent.apply(name, ascent.assignment(products))
    return Matching(ascent.orders, ascent.assignments)


def observed_numbers(symmetries: Symmetries, inputs: Sequence[Any]) -> int:
    """How many numbers are compared for these inputs: what one batch holds in memory, for each network."""
    nodes = {place.node for group in symmetries.groups for place in group.observed}
    return sum(value.numel() for value in _Observer(symmetries.graph, nodes).observe(inputs).values())


def _loaded(graph: fx.GraphModule, state: Mapping[str, Any]) -> fx.GraphModule:
    network = copied(graph).eval()
    known = {**dict(network.named_parameters(remove_duplicate=False)), **dict(network.named_buffers())}
    with torch.no_grad():
        for name, tensor in known.items():
            if name in state:
                tensor.copy_(state[name])
    return network


class _Observer(fx.Interpreter):
    """Runs a graph and keeps the first argument of some nodes."""

    def __init__(self, graph: fx.GraphModule, nodes: Iterable[str]) -> None:
        super().__init__(graph)
        self._inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._nodes = set(nodes)
        self._seen: dict[str, Tensor] = {}

    def observe(self, inputs: Sequence[Any]) -> dict[str, Tensor]:
        defaults = [node.args[0] if node.args else None for node in self._inputs[len(inputs) :]]
        with torch.no_grad():
            self.run(*inputs, *defaults, enable_io_processing=False)
        return self._seen

    def run_node(self, n: fx.Node) -> Any:
        if n.name in self._nodes:
            arguments, _ = self.fetch_args_kwargs_from_env(n)
            value = arguments[0]
            assert isinstance(value, Tensor)
            self._seen[n.name] = value.detach().clone()
        return super().run_node(n)


def _by_unit(value: Tensor, place: Observed) -> Tensor:
    """What each unit does: one row a unit, with its places, pixels and samples."""
    units, _ = place.positions.shape
    return value.movedim(place.axis, 0)[place.positions.flatten()].reshape(units, -1).float()
