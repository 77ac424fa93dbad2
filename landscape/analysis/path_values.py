"""Losses and errors of the paths that a verdict is given: profiles, per-sample values or means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def losses_of(path: Any, split: str, name: str) -> Floats:
    """Per-sample losses (points, samples) of a path, else its mean losses (points,)."""
    splits = getattr(path, "splits", None)
    if splits is not None:
        if split not in splits:
            raise ValueError(f"{name} has no split {split!r}; it has {', '.join(map(repr, splits))}")
        samples = getattr(splits[split], "samples", None)
        path = splits[split].loss if samples is None else samples
    return _checked(path, name)


def errors_of(path: Any, split: str, name: str) -> Floats | None:
    """Per-sample errors (points, samples) of a profile, else its mean errors; None for a path without this split."""
    splits = getattr(path, "splits", None)
    if splits is None or split not in splits:
        return None
    if splits[split].error is None or np.isnan(splits[split].error).all():
        return None
    wrong = getattr(splits[split], "wrong", None)
    return _checked(splits[split].error if wrong is None else wrong, name)


def means(values: Floats) -> NDArray[np.float64]:
    """The mean over samples at every point."""
    return np.asarray(values if values.ndim == 1 else values.mean(axis=1, dtype=np.float64), dtype=np.float64)


def guessing_loss_of(path: Any, split: str) -> float | None:
    """The loss of guessing on the samples of a profile; None if unknown."""
    splits = getattr(path, "splits", None)
    known = None if splits is None else getattr(splits[split], "guessing", None)
    return None if known is None else float(known)


def unit_of(path: Any, split: str) -> str:
    """The unit of a profile's loss; nats if unknown."""
    splits = getattr(path, "splits", None)
    return "nats" if splits is None else str(getattr(splits[split], "unit", "nats"))


def _checked(path: Any, name: str) -> Floats:
    values = np.asarray(path)
    if values.ndim not in (1, 2) or values.shape[0] < 2 or values.size == 0:
        raise ValueError(
            f"{name} has losses of shape {values.shape}; give (points,) or (points, samples) with two or more points"
        )
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float32 if values.dtype == np.bool_ else np.float64)
    if np.isnan(values).any() or np.isneginf(values).any():
        raise ValueError(f"{name} has losses that are NaN or -inf; a loss that overflows is inf")
    return values
