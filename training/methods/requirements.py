"""What a method needs that its settings alone can tell, without the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from valleyscope.training.methods.catalog import OPTIONS
from valleyscope.training.settings import Training

_ALTSDP_OPTIONS = {"mode", "mu", "c", "target"}


def missing_requirement(
    settings: Training, batch_norm: bool | None = None, given: AbstractSet[str] | None = None
) -> tuple[str, str] | None:
    """The field that is wrong, and why: no wish, an option without a method, a network without BatchNorm.

    `batch_norm` says whether the network has it (None: unknown), `given` which fields count (by default all).
    """
    info = settings.method_info
    if info is None:
        given = settings.model_fields_set if given is None else given
        for field in sorted((OPTIONS - _ALTSDP_OPTIONS | {"of"}) & given):
            if getattr(settings, field) is not None:
                return field, f"{field} belongs to pruning methods: give method, too, or remove it"
        return None
    if info.needs_wish and settings.wish is None:
        wanted = "give sparsity (share of groups to prune) or macs (share of multiply-adds left)"
        return "method", f"method {settings.method_name!r} must know how much to prune: {wanted}"
    if settings.method_name == "sdp" and settings.wish is None and settings.strength is None:
        return "method", "method 'sdp' must know how much to prune: give sparsity, macs or strength (lambda)"
    if batch_norm is False and info.needs_batch_norm:
        return "method", f"method {settings.method_name!r} prunes by the factors of BatchNorm, and the network has none"
    if batch_norm is False and settings.score == "gamma":
        return "score", "score 'gamma' is the factor of BatchNorm, and the network has none: use norm or taylor"
    return None


def kept_at_least(groups: int, floor: float) -> int:
    """Groups of a layer that a cut never removes: the share `floor`, and at least one, without which nothing passes.

    >>> kept_at_least(10, 0.0), kept_at_least(10, 0.25)
    (1, 3)
    """
    return min(groups, max(1, math.ceil(floor * groups)))


def largest_share(sizes: Sequence[int], settings: Training) -> float:
    """The largest share of groups that can be zero in layers with these numbers of groups.

    Only a threshold without floor can empty a layer.
    """
    info = settings.method_info
    if not sizes or (info is not None and info.kind == "optimizer" and not settings.floor):
        return 1.0
    return sum(groups - kept_at_least(groups, settings.floor) for groups in sizes) / sum(sizes)


def impossible_sparsity(sizes: Sequence[int], settings: Training) -> str | None:
    """Why a wished share of zero groups cannot be reached; None if it can."""
    most = largest_share(sizes, settings)
    if settings.sparsity is None or settings.sparsity <= most + 1e-9:
        return None
    return (
        f"sparsity={settings.sparsity} cannot be reached: with floor={settings.floor}, and one group of each layer "
        f"kept, {most:.3f} is the most"
    )


def impossible_operations(fewest: float, settings: Training) -> str | None:
    """Why a wished share of multiply-adds cannot be reached where `fewest` are always left; None if it can."""
    if settings.macs is None or settings.macs >= fewest:
        return None
    return (
        f"macs={settings.macs} cannot be reached: with floor={settings.floor}, and one group of each layer kept, "
        f"{fewest:.3f} of the multiply-adds are left at least"
    )
