"""What a network reaches that knows nothing but how frequent the classes are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_LEAST_SHARE = 0.05


def guessing_loss(counts: ArrayLike) -> float:
    """Loss of always predicting the frequencies p of the classes, given how many samples each has: -sum p log p.

    >>> round(guessing_loss([7, 7]), 4), guessing_loss([5, 0])
    (0.6931, 0.0)
    """
    numbers = np.asarray(counts, dtype=np.float64)
    shares = numbers[numbers > 0] / numbers.sum()
    return float(abs((shares * np.log(shares)).sum()))


def is_guessing(loss: float, guessing: float | None, tolerance: float) -> bool:
    """Whether a loss is not clearly below that of guessing, as far as the latter is known.

    Clearly is more than the tolerance: at a smaller distance even networks that know nothing would count as equally
    low. It is also a twentieth of the loss of guessing, which networks without training may come closer to by chance.
    """
    return guessing is not None and not loss < guessing - max(tolerance, _LEAST_SHARE * guessing)
