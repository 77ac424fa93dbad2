"""Checks of a method against its network, before a run starts."""

from __future__ import annotations

from valleyscope.training.batch_norm import norms_of
from valleyscope.training.methods.method import RunContext
from valleyscope.training.methods.requirements import (
    impossible_operations,
    impossible_sparsity,
    missing_requirement,
)
from valleyscope.training.methods.selection import fewest_operations, group_count


def check_method(context: RunContext) -> None:
    """Raise a ValueError if the method does not fit the network, or cannot do what is wished."""
    settings = context.settings
    missing = missing_requirement(settings, bool(context.norm_parameters))
    if missing is not None:
        raise ValueError(missing[1])
    info = settings.method_info
    if info is None:
        return
    if settings.method_name == "sdp" and settings.option("factors") == "hessian" and context.direction_factors is None:
        raise ValueError(
            "factors='hessian': train() does not know the Hessian; pass direction_factors=, a function such as "
            "lambda model, groups, _: valleyscope.direction_factors(model, model, (x, y), groups), or factors='ones'"
        )
    if settings.method_name in ("sfp", "fpgm") and norms_of(context.model) and not settings.bias:
        raise ValueError(
            f"bias=false: method {settings.method_name!r} must set BatchNorm's factors to zero, too: use bias: true"
        )
    if settings.wish is None:
        return
    if not context.layers:
        raise ValueError(f"{settings.wish}: {type(context.model).__name__} has no layer that can be pruned")
    impossible = impossible_sparsity([group_count(layer) for layer in context.layers], settings)
    if settings.macs is not None:
        fewest = fewest_operations(context.operations, context.layers, settings.floor)
        impossible = impossible_operations(fewest, settings)
    if impossible is not None:
        raise ValueError(impossible)
