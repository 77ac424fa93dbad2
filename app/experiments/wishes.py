"""Wishes of a spec that its network cannot fulfil, found before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from valleyscope.app.experiments.model_info import BadModel, ModelInfo
from valleyscope.app.experiments.spec import BadSpec, Spec
from valleyscope.app.experiments.spec_errors import InvalidField
from valleyscope.app.experiments.spec_parts import Minimum, Model
from valleyscope.training.losses import LossName
from valleyscope.training.methods.requirements import impossible_operations, impossible_sparsity
from valleyscope.training.settings import Training

# Below, a wish is impossible only for layers with hardly any filters; to know them, the network must be built.
_BOLD = 0.7


class Networks(Protocol):
    """What a `ModelInfoCache` knows of networks."""

    def inspect(self, model: Model, dataset: str, loss: LossName = ...) -> ModelInfo: ...
    def fewest_share(self, model: Model, dataset: str, loss: LossName, run: Training) -> float: ...


def wish_errors(spec: Spec, networks: Networks) -> Iterator[InvalidField]:
    """Shares of zero filters, or of multiply-adds, that the network cannot have. Modest wishes cost no look at it."""
    for name, own in spec.minima.items():
        if own.checkpoint is not None:
            continue
        run = spec.minimum(name)
        try:
            impossible = _impossible(spec, run, networks)
        except BadModel:  # the first task says it, or whoever builds the network before
            return
        if impossible is not None:
            field = "sparsity" if run.macs is None else "macs"
            yield InvalidField(("minima", name, field), getattr(run, field), impossible)


def _impossible(spec: Spec, run: Minimum, networks: Networks) -> str | None:
    if run.structure != "filter":
        return None
    if run.macs is not None:
        return impossible_operations(networks.fewest_share(spec.model, spec.dataset, spec.loss, run), run)
    if run.sparsity is None or run.sparsity + run.floor <= _BOLD or run.tie_residual or not run.skip_output:
        return None
    return impossible_sparsity(networks.inspect(spec.model, spec.dataset, spec.loss).groups, run)


def check_wishes(spec: Spec, networks: Networks) -> None:
    """Raise BadSpec if a wish is impossible."""
    if errors := list(wish_errors(spec, networks)):
        raise BadSpec("; ".join(f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors))
