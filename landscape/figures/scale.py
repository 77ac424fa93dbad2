"""The colour scale of a surface: logarithmic for losses, linear in percent for errors, clipped where detail ends.

A loss surface spans many decades and rises steeply at its rim. Shown on a linear scale, or up to its maximum, it would
be one dark spot on a bright ground. So values are encoded as log10, cut at a level that keeps basins and the ridge
between them visible, and labelled by what they are: 0.01, 0.1, 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from valleyscope.landscape.storage.records import Floats

Quantity = Literal["loss", "error"]

DECADES = 4.0
SHARE_SHOWN = 90.0
_FLAT = 1e-6


@dataclass(frozen=True)
class Scale:
    """From real values to what is drawn, between ``low`` and ``high`` in real values.

    >>> scale = Scale("loss", True, 0.001, 10.0)
    >>> scale.encode([0.0, 0.001, 0.1, 1e6, np.inf]).tolist()
    [-3.0, -3.0, -1.0, 1.0, 1.0]
    >>> scale.ticks()[1]
    ['0.001', '0.01', '0.1', '1', '10']
    """

    quantity: Quantity
    log: bool
    low: float
    high: float
    cut: bool = False

    def encode(self, values: ArrayLike) -> Floats:
        """The values as drawn: clipped, then log10 or, for errors, percent; NaN stays NaN."""
        clipped = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        encoded: Floats = np.log10(clipped) if self.log else clipped * self._factor
        return encoded

    @property
    def range(self) -> tuple[float, float]:
        low, high = self.encode([self.low, self.high])
        return float(low), float(high)

    def levels(self, most: int = 24) -> tuple[float, float, float]:
        """Start, end and step of contour levels: a round step, at most ``most`` of them."""
        low, high = self.range
        step = _round_step((high - low) / most)
        return math.floor(low / step) * step + step, high - step / 1e6, step

    def ticks(self) -> tuple[list[float], list[str]]:
        """Where the colour bar has ticks, as encoded values, and the real values that stand there."""
        low, high = self.range
        if self.log:
            values = _log_ticks(self.low, self.high)
        else:
            step = _round_step((high - low) / 5)
            values = [n * step / self._factor for n in range(math.ceil(low / step - 1e-9), int(high / step + 1e-9) + 1)]
        places = self.encode(values).tolist()
        labels = [self.label(value) for value in values]
        if self.cut:
            room = 0.12 * (high - low)
            kept = [(place, label) for place, label in zip(places, labels, strict=True) if place < high - room]
            places, labels = [place for place, _ in kept] + [high], [label for _, label in kept]
            labels.append(f"≥ {self.label(self.high)}")
        return places, labels

    def label(self, value: float) -> str:
        """A real value for people: two or three significant digits, percent for errors."""
        return f"{100 * value:.3g} %" if self.quantity == "error" else f"{value:.3g}"

    @property
    def _factor(self) -> float:
        return 100.0 if self.quantity == "error" else 1.0


def scale_for(
    values: Floats, quantity: Quantity = "loss", log: bool = True, clip: float | None = None, along: ArrayLike = ()
) -> Scale:
    """A scale that shows the values of a surface, and all of those ``along`` the paths drawn on it.

    Without a ``clip`` (in real units: nats, or a fraction) the scale ends at the level that nine tenths of the surface
    stay below, or at the highest point of the paths if that is higher: the ridge between basins is always visible.
    """
    if quantity == "error":
        log = False
    if clip is not None and not (math.isfinite(clip) and clip > 0):
        raise ValueError(f"clip is {clip}; give a value above zero, in nats for a loss and as a fraction for an error")
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(quantity, log, *((1e-3, 1.0) if log else (0.0, 1.0)))
    lowest, highest = float(finite.min()), float(finite.max())
    on_paths = np.asarray(along, dtype=np.float64)
    on_paths = on_paths[np.isfinite(on_paths)]
    high = clip if clip is not None else _two_digits_up(max(np.percentile(finite, SHARE_SHOWN), *on_paths, 0.0))
    if clip is None and (high >= highest or (np.isinf(values).any() and highest <= 1.5 * high)):
        high = highest
    low = max(lowest, high / 10**DECADES) if log else lowest
    if log and lowest <= 0:
        positive = finite[finite > 0]
        low = max(float(positive.min()) if positive.size else 0.0, high / 10**DECADES)
    if not low * (1 + _FLAT) < high:
        low, high = _around(high, log)
    cut = bool(highest > high * (1 + 1e-9) or np.isposinf(values).any())
    return Scale(quantity, log, low, high, cut)


def _around(value: float, log: bool) -> tuple[float, float]:
    """A range for a surface that is flat."""
    if log:
        return (value / 10, value) if value > 0 else (1e-3, 1.0)
    return max(value - 0.5, 0.0), value + 0.5


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; where fewer than three fit, also 2 and 5 between them, or else some round values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1,), (1, 3), (1, 2, 5)):
        ticks = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(inside) >= 3:
            return inside
    return [float(tick) for tick in np.geomspace(low, high, 4)]


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= step * (1 - 1e-9))


def _two_digits_up(value: float) -> float:
    if value <= 0:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit
