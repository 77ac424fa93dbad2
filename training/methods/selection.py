"""Which groups are removed, given a score for each: the lowest, down to the wished share of groups or multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from valleyscope.training.methods.method import RunContext
from valleyscope.training.methods.requirements import kept_at_least
from valleyscope.training.models.remaining_operations import RemainingOperations
from valleyscope.training.parameter_groups import ParameterGroup, group_norms

Removed = dict[str, Tensor]


def select(context: RunContext, scores: Mapping[str, Tensor], *, by_layer: bool = False, part: float = 1.0) -> Removed:
    """The groups to remove: those of the lowest scores, of the network or `by_layer` of each layer alike.

    A score of infinity keeps a group. `part` is the part of the way to the wish (for a method that goes in portions).
    """
    settings = context.settings
    sizes = {name: len(score) for name, score in scores.items()}
    total = sum(sizes.values())
    limits = {
        name: min(size - kept_at_least(size, settings.floor), int((scores[name] < math.inf).sum()))
        for name, size in sizes.items()
    }

    def removed(count: int) -> Removed:
        counts = spread(count, sizes, limits) if by_layer else _lowest_counts(scores, limits, count)
        return {name: _lowest_of(scores[name], counts[name]) for name in scores}

    most = sum(limits.values())
    if settings.macs is None:
        assert settings.sparsity is not None
        return removed(min(most, round(part * settings.sparsity * total)))
    wanted = 1 - part * (1 - settings.macs)
    low, high = 0, most  # removing `high` is enough, or all that is possible
    while low < high:
        middle = (low + high) // 2
        if context.operations.share(removed(middle)) <= wanted:
            high = middle
        else:
            low = middle + 1
    return removed(high)


def select_below(context: RunContext, scores: Mapping[str, Tensor], threshold: float) -> Removed:
    """The groups whose score is below a threshold, but for the largest ones that a layer must keep."""
    floor = context.settings.floor
    return {
        name: _lowest_of(score, min(int((score < threshold).sum()), len(score) - kept_at_least(len(score), floor)))
        for name, score in scores.items()
    }


def spread(count: int, sizes: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    """Distribute a number of groups over layers in proportion to their sizes, by largest remainders.

    >>> spread(6, {"a": 4, "b": 6}, {"a": 3, "b": 5})
    {'a': 2, 'b': 4}
    """
    total = sum(sizes.values())
    exact = {name: count * size / total for name, size in sizes.items()}
    found = {name: min(int(exact[name]), limits[name]) for name in sizes}
    order = sorted(sizes, key=lambda name: exact[name] - int(exact[name]), reverse=True)
    while sum(found.values()) < min(count, sum(limits.values())):
        for name in order:
            if found[name] < limits[name] and sum(found.values()) < count:
                found[name] += 1
    return found


def fewest_operations(operations: RemainingOperations, layers: Iterable[ParameterGroup], floor: float) -> float:
    """The smallest share of multiply-adds that a cut can leave."""
    removed = {}
    for layer in layers:
        groups = group_count(layer)
        removed[layer["name"]] = torch.arange(groups) >= kept_at_least(groups, floor)
    return operations.share(removed)


def group_count(layer: Mapping[str, object]) -> int:
    return group_norms(layer).numel()


def _lowest_counts(scores: Mapping[str, Tensor], limits: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of the `count` lowest scores of the network are in each layer, which gives at most its limit."""
    names = list(scores)
    ranked = [score.double().sort(stable=True).values[: limits[name]] for name, score in scores.items()]
    owner = torch.cat([torch.full((len(values),), index) for index, values in enumerate(ranked)])
    order = torch.cat(ranked).cpu().argsort(stable=True)[:count]
    counts = torch.bincount(owner[order], minlength=len(names))
    return {name: int(counts[index]) for index, name in enumerate(names)}


def _lowest_of(score: Tensor, count: int) -> Tensor:
    removed = torch.zeros(len(score), dtype=torch.bool, device=score.device)
    removed[score.double().argsort(stable=True)[:count]] = True
    return removed
