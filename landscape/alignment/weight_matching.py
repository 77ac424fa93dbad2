"""Order the units of a network so that its weights are closest to those of a reference.

Coordinate ascent on the sum of products of corresponding weights (Ainsworth et al. 2023, "Git Re-Basin"): the units of
one group are assigned optimally while those of all others stay. Two things save steps: a first pass from input to
output compares a layer only with weights whose other side is in order already, and later a group is assigned again only
after one of its neighbours has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from valleyscope.landscape.alignment.symmetries import Symmetries, TensorAxis, UnitGroup, permute_axis

_LEAST_GAIN = 1e-6
"""A step counts if the sum of products grows by more than this share of it (single precision is not more exact)."""


@dataclass(frozen=True, eq=False)
class Matching:
    """An order for each group of units, and the number of assignments that were solved."""

    orders: dict[str, Tensor]
    assignments: int


def match_weights(symmetries: Symmetries, reference: Mapping[str, Any], weights: Mapping[str, Any]) -> Matching:
    """The orders of the units of ``weights`` that bring them closest to the reference; both are state dicts."""
    return Ascent(symmetries, reference, weights).run()


class Ascent:
    """The state of a matching: the weights in the order found so far."""

    def __init__(self, symmetries: Symmetries, reference: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        self.places = {group.name: _matched(group) for group in symmetries.groups}
        names = {place.tensor for places in self.places.values() for place in places}
        self.reference = {name: reference[name].detach().float() for name in names}
        self.weights = {name: weights[name].detach().float() for name in names}
        self.orders = {group.name: torch.arange(group.units) for group in symmetries.groups}
        self.on_tensor: dict[str, list[str]] = {name: [] for name in names}
        for group, places in self.places.items():
            for place in places:
                self.on_tensor[place.tensor].append(group)
        self.rows: dict[tuple[str, int, str], Tensor] = {}
        self.assignments = 0

    def run(self) -> Matching:
        done: set[str] = set()
        for group, places in self.places.items():
            ready = [place for place in places if set(self.on_tensor[place.tensor]) <= done | {group}]
            ready = [place for place in ready if self.on_tensor[place.tensor].count(group) == 1]
            self.assign(group, ready or places, always=True)
            done.add(group)
        waiting = dict.fromkeys(self.places)
        while waiting:
            group = next(iter(waiting))
            del waiting[group]
            if self.assign(group, self.places[group]):
                near = {other for place in self.places[group] for other in self.on_tensor[place.tensor]}
                coupled = any(self.on_tensor[place.tensor].count(group) > 1 for place in self.places[group])
                near -= set() if coupled else {group}
                waiting |= dict.fromkeys(other for other in self.places if other in near)
        return Matching(self.orders, self.assignments)

    def assign(self, group: str, places: list[TensorAxis], *, always: bool = False) -> bool:
        """Assign the units of a group by their weights at these places; says whether the order changed."""
        products = self.products(group, places)
        order = self.assignment(products)
        if torch.equal(order, torch.arange(len(order))):
            return False
        gain = float(products[torch.arange(len(order)), order].sum() - products.trace())
        if not always and gain <= _LEAST_GAIN * float(products.trace().abs()):
            return False
        before = {place.tensor: self.weights[place.tensor] for place in self.places[group]}
        self.apply(group, order)
        twice = any(self.on_tensor[name].count(group) > 1 for name in before)
        if twice and not always:  # the products of such weights are not linear in the order
            least = sum(self._product(name, value) for name, value in before.items())
            if sum(self._product(name, self.weights[name]) for name in before) <= least + _LEAST_GAIN * abs(least):
                self.apply(group, order.argsort())
                return False
        return True

    def products(self, group: str, places: list[TensorAxis] | None = None) -> Tensor:
        """The products of the weights of every unit of the reference (rows) with those of every unit of the network."""
        chosen = self.places[group] if places is None else places
        found = [self._reference_rows(group, place) @ _rows(self.weights[place.tensor], place).T for place in chosen]
        return torch.stack(found).sum(0) if len(found) > 1 else found[0]

    def assignment(self, scores: Tensor) -> Tensor:
        """The order with the largest sum of scores."""
        from scipy.optimize import linear_sum_assignment  # takes a third of a second, in every child process

        self.assignments += 1
        return torch.as_tensor(linear_sum_assignment(scores.cpu().double().numpy(), maximize=True)[1])

    def apply(self, group: str, order: Tensor) -> None:
        """Change the order of a group, given its present one."""
        for place in self.places[group]:
            self.weights[place.tensor] = permute_axis(self.weights[place.tensor], place, order)
        self.orders[group] = self.orders[group][order]

    def _product(self, name: str, value: Tensor) -> float:
        return float((self.reference[name] * value).sum())

    def _reference_rows(self, group: str, place: TensorAxis) -> Tensor:
        key = (place.tensor, place.axis, group)
        if key not in self.rows:
            self.rows[key] = _rows(self.reference[place.tensor], place)
        return self.rows[key]


def _matched(group: UnitGroup) -> list[TensorAxis]:
    """Statistics of BatchNorm move with their channels, but say little about which channel is which."""
    statistics = ("running_mean", "running_var")
    return [place for place in group.places if not place.tensor.endswith(statistics)] or list(group.places)


def _rows(tensor: Tensor, place: TensorAxis) -> Tensor:
    """The weights of each unit, one row a unit."""
    units, _ = place.positions.shape
    chosen = tensor.movedim(place.axis, 0)[place.positions.flatten()]
    return chosen.reshape(units, -1)
