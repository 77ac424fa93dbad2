"""Figures of the judged network for the list: how much of it is zero, and how accurate it is."""

from __future__ import annotations

import math

from valleyscope.landscape.storage.landscape_file import Landscape


def judged_figures(landscape: Landscape) -> dict[str, float | None]:
    """The share of zero groups and the accuracy of the second of the two minima that the verdict is about."""
    name = None if landscape.verdict is None else landscape.verdict.get("between", (None, None))[1]
    minimum = landscape.minima.get(name) if name is not None else None
    if minimum is None:
        return {"zero_groups": None, "accuracy": None}
    groups = sum(layer.groups for layer in minimum.layers)
    zero = sum(layer.zero_groups for layer in minimum.layers)
    accuracy = minimum.final.get("test_accuracy", minimum.final.get("train_accuracy"))
    if accuracy is not None and not math.isfinite(accuracy):
        accuracy = None
    return {
        "zero_groups": zero / groups if groups else None,
        "accuracy": None if accuracy is None else float(accuracy),
    }
