"""The optimisers of a minimum by name, with the options that each one has. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from valleyscope.training._plugins import is_plugin


@dataclass(frozen=True)
class OptimizerInfo:
    """One optimiser: `options` has the fields of a run that only some optimisers have, with their defaults."""

    description: str
    options: Mapping[str, Any] = field(default_factory=dict)
    momentum: bool = True
    lr: float | None = None
    """The usual learning rate, where it is not that of SGD."""


OPTIMIZERS: Final[Mapping[str, OptimizerInfo]] = {
    "sgd": OptimizerInfo("stochastic gradient descent, with momentum if given"),
    "altsdp": OptimizerInfo("group-sparse training: SGD that thresholds groups of weights"),
    "adamw": OptimizerInfo(
        "Adam with decoupled weight decay (Loshchilov and Hutter 2019)",
        {"betas": (0.9, 0.999), "eps": 1e-8},
        momentum=False,
        lr=0.001,
    ),
    "sam": OptimizerInfo(
        "sharpness-aware minimisation (Foret et al. 2021): SGD with the gradient at w + rho g/||g||; two passes a step",
        {"rho": 0.05},
    ),
}
OWN: Final = OptimizerInfo("your own code: factory(parameters, lr=..., **options)", {"options": {}}, momentum=False)
OPTIMIZER_OPTIONS: Final = frozenset(name for info in (*OPTIMIZERS.values(), OWN) for name in info.options)
"""All fields of a run that only some optimisers have."""


def optimizer_info(name: str) -> OptimizerInfo:
    """What is known of an optimiser; a ValueError for an unknown name."""
    if name in OPTIMIZERS:
        return OPTIMIZERS[name]
    if is_plugin(name):
        return OWN
    raise ValueError(
        f"optimizer {name!r} is unknown: use one of {', '.join(OPTIMIZERS)}, or package.module:factory for your own"
    )
