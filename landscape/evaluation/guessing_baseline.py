"""The loss of a network that only knows the class frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_LEAST_SHARE = 0.05


def guessing_loss(counts: ArrayLike) -> float:
    """Loss of always predicting the class frequencies p, from the number of samples per class: -sum p log p.

    >>> round(guessing_loss([7, 7]), 4), guessing_loss([5, 0])
    (0.6931, 0.0)
    """
    numbers = np.asarray(counts, dtype=np.float64)
    shares = numbers[numbers > 0] / numbers.sum()
    return float(abs((shares * np.log(shares)).sum()))


def is_guessing(loss: float, guessing: float | None, tolerance: float) -> bool:
    """Whether a loss is not clearly below that of guessing; False if the latter is unknown.

    Clearly means by more than the tolerance, and by more than a twentieth of the loss of guessing, which untrained
    networks may reach by chance.
    """
    return guessing is not None and not loss < guessing - max(tolerance, _LEAST_SHARE * guessing)
