"""How many samples to draw at the points of each level, for the least work that reaches an accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_SAFETY = 0.9
_PROMOTED_SHARES = (0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """Sizes of the draws, points to compute as those of level 0, the errors to expect, and the work in pairs."""

    counts: Floats
    promoted: Indices
    expected: Floats
    work: float


def allocate(variances: Floats, levels: Indices, counts: Indices, accuracy: float) -> Allocation:
    """The draws with the least work whose mean relative variance is that of the accuracy.

    ``variances`` has the terms of the variance at the points, as they are with ``counts``; points of level -1 are
    known. The work of a sum of variances v_j / n_j at w_j points is least where n_j goes with the root of v_j / w_j.
    Points whose interpolation is worst are promoted, as many as lower the work.
    """
    number = len(counts)
    target = (_SAFETY * accuracy) ** 2
    interpolated = np.flatnonzero(levels > 0)
    order = interpolated[np.argsort(-variances[1:, interpolated].sum(axis=0))] if number > 1 else interpolated
    best: Allocation | None = None
    for share in _PROMOTED_SHARES if len(order) else (0.0,):
        promoted = order[: int(share * len(order))]
        after = variances.copy()
        after[1:, promoted] = 0.0
        level = levels.copy()
        level[promoted] = 0
        points = np.array([max(1, int((level == each).sum())) for each in range(number)], dtype=np.float64)
        mean = after.mean(axis=1) * counts
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = np.nan_to_num(np.sqrt(mean / points) * float(np.sqrt(mean * points).sum()) / target)
        wanted = np.maximum.accumulate(np.maximum(counts, np.ceil(wanted))[::-1])[::-1]
        work = float((wanted * points).sum())
        if best is None or work < best.work:
            expected = np.sqrt((after * (counts / wanted)[:, None]).sum(axis=0))
            best = Allocation(wanted, promoted, expected, work)
    assert best is not None
    return best
