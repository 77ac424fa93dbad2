"""Wishes of a spec that its network cannot fulfil, found before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from valleyscope.app.experiments.model_info import BadModel, ModelInfo
from valleyscope.app.experiments.spec import BadSpec, Spec
from valleyscope.app.experiments.spec_errors import InvalidField
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.training.methods.requirements import impossible_sparsity

# Below, a wish is impossible only for layers with hardly any filters; to know them, the network must be built.
_BOLD = 0.7


def wish_errors(spec: Spec, groups: Sequence[int]) -> Iterator[InvalidField]:
    """Shares of zero filters that layers with these numbers of filters cannot have."""
    for name, own in spec.minima.items():
        run = spec.minimum(name)
        if own.checkpoint is not None or run.structure != "filter" or run.tie_residual or not run.skip_output:
            continue
        impossible = impossible_sparsity(groups, run)
        if impossible is not None:
            yield InvalidField(("minima", name, "sparsity"), run.sparsity, impossible)


def check_wishes(spec: Spec, inspect: Callable[[Model, str], ModelInfo]) -> None:
    """Inspect the network if some wish is bold; raises BadSpec if it is impossible."""
    runs = [spec.minimum(name) for name, own in spec.minima.items() if own.checkpoint is None]
    if not any(run.sparsity is not None and run.sparsity + run.floor > _BOLD for run in runs):
        return
    try:
        groups = inspect(spec.model, spec.dataset).groups
    except BadModel:  # the first task says it
        return
    if errors := list(wish_errors(spec, groups)):
        raise BadSpec("; ".join(f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors))
