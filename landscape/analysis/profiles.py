"""Loss and error along a path through weight space, and their summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from valleyscope.landscape.analysis.barriers import barrier
from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.drawing import result_figures
from valleyscope.landscape.evaluation.accumulators import Values
from valleyscope.landscape.evaluation.evaluator import BatchNorm, Evaluator, Progress, evaluator_for
from valleyscope.landscape.evaluation.objectives import ErrorRate, Loss
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.geometry.curves import Curve, line
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import dimension

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["PathSummary", "Profile", "Summary", "along", "barrier", "line"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """A value along a path: smallest, largest, mean over t, and mean over arc length."""

    min: float
    max: float
    mean: float
    integral: float


@dataclass(frozen=True)
class PathSummary:
    """Summaries of loss and error along a path, and the barrier of the loss."""

    loss: Summary
    error: Summary
    barrier: float


@dataclass(frozen=True, eq=False)
class Profile:
    """Values at points of a path: ``t``, ``arc`` (length from the start in weight space), and loss and error by split.

    ``profile["train"].loss`` and ``.error`` have one value per point, ``.samples`` the loss of every sample (points,
    samples) if requested.
    """

    kind: str
    t: Floats
    arc: Floats
    splits: Mapping[str, Values]

    def __getitem__(self, split: str) -> Values:
        if split not in self.splits:
            raise KeyError(f"the profile has no split {split!r}; it has {', '.join(map(repr, self.splits))}")
        return self.splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __repr__(self) -> str:
        return f"Profile({self.kind}, {len(self.t)} points, splits {', '.join(self.splits)})"

    def figure(self, **options: Any) -> Figure:
        """Loss and, where there is one, error along the path as a plotly figure; ``options`` are those of profile."""
        figure: Figure = result_figures().profile_figure(self, **options)
        return figure

    def reversed(self) -> Profile:
        """The same path from its end to its start."""
        splits = {name: values.reversed() for name, values in self.splits.items()}
        return Profile(self.kind, 1.0 - self.t[::-1], self.arc[-1] - self.arc[::-1], splits)

    def summary(self, split: str = "train") -> PathSummary:
        """Smallest, largest, mean and arc-length mean of loss and error, and the barrier."""
        values = self[split]
        return PathSummary(
            loss=_summary(values.loss, self.arc), error=_summary(values.error, self.arc), barrier=barrier(values.loss)
        )


def along(
    model: nn.Module,
    path: Curve,
    data: Data | None = None,
    points: int = 61,
    *,
    samples: bool = False,
    loss: Loss = None,
    error: ErrorRate = None,
    parameters: Parameters = None,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> Profile:
    """Loss and error at equally spaced t along a curve or line, over all samples of every split.

    ``data`` maps splits to (x, y), or is one pair, the split ``train``; or give an ``evaluator`` that has the data.
    ``samples`` keeps every sample's loss, which the intervals of the verdict need. ``loss``, ``error``, ``parameters``
    and ``memory_limit`` are those of ``Evaluator``.
    """
    if points < 3:
        raise ValueError(f"points is {points}; a profile needs its two ends and at least one point between them")
    size = dimension(model, parameters if evaluator is None else evaluator.parameters)
    if path.points.shape[1] != size:
        raise ValueError(
            f"the path has points of {path.points.shape[1]} weights, but {type(model).__name__} has {size}: "
            "use the network of the path"
        )
    options = {"loss": loss, "error": error, "parameters": parameters, "memory_limit": memory_limit}
    evaluator = evaluator_for(model, data, evaluator, batch_norm, **options)
    t = np.linspace(0.0, 1.0, points)
    splits = evaluator.at(path.points, path.coefficients(t), samples=samples, progress=progress, cancelled=cancelled)
    return Profile(kind=path.kind, t=t, arc=path.arc(t), splits=splits)


def _summary(values: Floats, arc: Floats) -> Summary:
    return Summary(float(values.min()), float(values.max()), float(values.mean()), _arc_mean(values, arc))


def _arc_mean(values: Floats, arc: Floats) -> float:
    """Integral of the values over arc length by the trapezoidal rule, divided by the length of the path."""
    steps = np.diff(arc)
    length = float(steps.sum())
    if length == 0:
        return float(values.mean())
    if not np.isfinite(values).all():
        return math.inf
    return float(((values[1:] + values[:-1]) / 2 * steps).sum() / length)
