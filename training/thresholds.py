"""The thresholds of AltSDP: g(n, γ) of the paper, its accumulation over a run, and the c that reaches a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Mode = Literal["prox", "dual", "cumulative"]
MODES: tuple[Mode, ...] = ("prox", "dual", "cumulative")

# A wanted share of zero groups should be reached after this part of a run: the rest is for SGD to recover in.
PRUNING_PART = 0.4
# After it c doubles with each further part of this size,
DOUBLING_PART = 0.05
# until here: what is still missing is then cut by norm, with the rest of the run to recover in.
LATEST_PART = 0.5
# The mean penalty G/Σγ up to there is at most this. In a short run the threshold that does it all shrinks the weights
# faster than gradients restore them, and the network never learns (digits, 6 epochs: a penalty of 0.15, loss 2.3).
PENALTY_LIMIT = 0.022


def effective_rate(lr: float, momentum: float) -> float:
    """γ/(1-β): momentum lengthens the steps by that factor, and the thresholds grow with it."""
    return lr / (1.0 - momentum)


def threshold(n: int, rate: float, c: float, mu: float) -> float:
    """g(n, γ) = c √γ (nγ)^μ, the paper's threshold at step n (the first step is n = 1).

    >>> threshold(n=4, rate=1.0, c=0.5, mu=0.5)
    1.0
    """
    return float(c * math.sqrt(rate) * (n * rate) ** mu)


def dual_increment(n: int, rate: float, c: float, mu: float) -> float:
    """c γ^(μ+1/2) (n^μ - (n-1)^μ), what step n adds in `dual`: at constant γ the sum is g(n, γ) itself.

    At n = 1 the increment is g(1, γ), also for μ = 0, where 0^μ = 1^μ.
    """
    if n == 1:
        return threshold(1, rate, c, mu)
    return float(c * rate ** (mu + 0.5) * (n**mu - (n - 1) ** mu))


def accumulated_threshold(
    rates: Sequence[float] | npt.NDArray[np.float64],
    c: float,
    mu: float,
    *,
    mode: Mode = "prox",
    momentum: float | Sequence[float] | npt.NDArray[np.float64] = 0.0,
    before: int = 0,
) -> float:
    """G, the threshold that a run accumulates over the learning rates of all its steps.

    A step is one of the optimiser: with gradient accumulation there are fewer than batches. ``momentum`` is one number,
    or one for each step where it is cycled.

    In `prox` and `cumulative` G = Σ g(n, γ_n); in `dual` it is the sum of the increments. A group whose norm
    stays above G cannot be pruned, so compare G with the initial group norms. `before` counts steps that were taken
    without a threshold: n goes on from there.

    >>> round(accumulated_threshold([0.1] * 100, c=1.0, mu=0.5, mode="dual"), 6)  # = g(100, 0.1)
    1.0
    """
    gamma = np.asarray(rates, dtype=np.float64) / (1.0 - np.asarray(momentum, dtype=np.float64))
    n = np.arange(before + 1, before + len(gamma) + 1, dtype=np.float64)
    if mode == "dual":
        steps = n**mu - np.where(n > 1, (n - 1) ** mu, 0.0)
        return float(c * np.sum(gamma ** (mu + 0.5) * steps))
    return float(c * np.sum(np.sqrt(gamma) * (n * gamma) ** mu))


def c_for_target(
    target: float,
    rates: Sequence[float] | npt.NDArray[np.float64],
    mu: float,
    *,
    mode: Mode = "prox",
    momentum: float = 0.0,
    before: int = 0,
) -> float:
    """The c with which a run over these learning rates accumulates G = `target`."""
    if not (math.isfinite(target) and target >= 0):
        raise ValueError(f"target={target}: the threshold G to reach must be a finite number, zero or more")
    if len(rates) == 0:
        raise ValueError("rates is empty: a target needs the learning rate of every step of the run")
    return target / accumulated_threshold(rates, 1.0, mu, mode=mode, momentum=momentum, before=before)


def c_for_sparsity(
    share: float,
    median: float,
    rates: Sequence[float] | npt.NDArray[np.float64],
    mu: float,
    *,
    mode: Mode = "prox",
    momentum: float = 0.0,
    before: int = 0,
) -> float:
    """A c with which about `share` of the groups, whose initial norms have this median, are zero after `PRUNING_PART`.

    An empirical guess: on digits that takes G of about 1.1 median/(1 - share), in `dual` 1.1 median (1 + share).
    `grown` corrects it on the way. In a short run it is less, so that the penalty stays below its limit.
    """
    needed = 1.1 * median * (1 + share) if mode == "dual" else 1.1 * median / (1 - share)
    first = rates[: max(1, int(PRUNING_PART * len(rates)))]
    return c_for_target(bearable(needed, first, momentum), first, mu, mode=mode, momentum=momentum, before=before)


def bearable(needed: float, rates: Sequence[float] | npt.NDArray[np.float64], momentum: float) -> float:
    """A threshold to accumulate over these rates, lowered to what the penalty's limit allows.

    >>> bearable(1.5, [0.1] * 1000, 0.0), round(bearable(1.5, [0.1] * 100, 0.0), 6)
    (1.5, 0.22)
    """
    return min(needed, PENALTY_LIMIT * float(np.sum(rates)) / (1.0 - momentum))


def grown(c: float, epoch: int, epochs: int) -> float:
    """The c for the epochs after `epoch` of a run that has not reached its share of zero groups yet.

    >>> grown(1.0, epoch=40, epochs=120), grown(1.0, epoch=60, epochs=120) ** 6
    (1.0, 2.0)
    """
    return c * 2 ** (1 / (DOUBLING_PART * epochs)) if epoch >= PRUNING_PART * epochs else c
