"""The colour scale of a surface: linear or logarithmic for losses, linear in percent for errors, clipped.

A loss surface rises steeply at its rim; shown up to its maximum it would be one dark spot on a bright ground. A linear
scale ends a little above the highest of the paths that the verdict compares, so the ridge to the control is visible and
a cliff is cut. A logarithmic scale is wider. Ticks are labelled by real values: 0.01, 0.1, 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from valleyscope.landscape.claim import Level
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import Floats

Quantity = Literal["loss", "error"]

_RULES: Final = STYLE["scale"]
_NUMBERS: Final = STYLE["numbers"]
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Scale:
    """From real values to what is drawn, between ``low`` and ``high`` in real values.

    >>> scale = Scale("loss", True, 0.001, 10.0)
    >>> scale.encode([0.0, 0.001, 0.1, 1e6, np.inf]).tolist()
    [-3.0, -3.0, -1.0, 1.0, 1.0]
    >>> scale.ticks()["ticktext"]
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

    def share(self, value: float) -> float:
        """How far up the scale a value is, from 0 to 1."""
        low, high = self.range
        return float((self.encode([value])[0] - low) / (high - low))

    def levels(self) -> dict[str, float]:
        """Start, end and size of contour levels: a round step, not too many of them."""
        low, high = self.range
        size = _round_step((high - low) / _RULES["levels"])
        return {"start": math.floor(low / size) * size + size, "end": high - size / 1e6, "size": size}

    def ticks(self) -> dict[str, list[Any]]:
        """Where the colour bar has ticks, as encoded values, and the real values that stand there."""
        low, high = self.range
        if self.log:
            values = _log_ticks(self.low, self.high)
        else:
            step = _round_step((high - low) / _RULES["ticks"])
            first, last = math.ceil(low / step - _TOLERANCE), math.floor(high / step + _TOLERANCE)
            values = [n * step / self._factor for n in range(first, last + 1)]
        places = self.encode(values).tolist()
        labels = [self.label(value) for value in values]
        if self.cut:
            room = _RULES["cut_room"] * (high - low)
            kept = [(place, label) for place, label in zip(places, labels, strict=True) if place < high - room]
            places, labels = [place for place, _ in kept] + [high], [label for _, label in kept]
            labels.append(f"≥ {self.label(self.high)}")
        return {"tickvals": places, "ticktext": labels}

    def label(self, value: float) -> str:
        """A real value for people, percent for errors."""
        return f"{significant(100 * value)} %" if self.quantity == "error" else significant(value)

    @property
    def _factor(self) -> float:
        return 100.0 if self.quantity == "error" else 1.0


def scale_for(
    values: Floats,
    quantity: Quantity = "loss",
    log: bool = False,
    clip: float | None = None,
    along: ArrayLike = (),
    level: Level | None = None,
) -> Scale:
    """A scale for the values of a surface, those ``along`` the paths drawn on it, and the ``level`` of a claim.

    Without a ``clip`` (in real units: nats, or a fraction) a linear scale ends a little above the peak of the claim's
    paths; without a claim, of the paths drawn; without any, at the value that nine tenths of the surface stay below. It
    never ends above a hundred times the level, or, without one, a hundred times the lowest value plus 0.05 nats. A
    logarithmic scale ends at the value that nine tenths stay below, or at the highest point of the paths drawn.
    """
    if quantity == "error":
        log = False
    if clip is not None and not (math.isfinite(clip) and clip > 0):
        raise ValueError(f"clip is {clip}; give a value above zero, in nats for a loss and as a fraction for an error")
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(quantity, log, *(_RULES["none"] if log else (0.0, 1.0)))
    lowest, highest = float(finite.min()), float(finite.max())
    on_paths = np.asarray(along, dtype=np.float64)
    on_paths = on_paths[np.isfinite(on_paths)]
    share_shown = max(float(np.quantile(finite, _RULES["share_shown"])), 0.0)
    if log:
        end = max(share_shown, *on_paths, 0.0)
    else:
        peak = level.peak if level else float(on_paths.max()) if on_paths.size else share_shown
        cut_at = level.value if level else lowest + STYLE["claim"]["tolerance"][quantity]
        end = min(_RULES["headroom"] * peak, _RULES["most_levels"] * cut_at)
    high = clip if clip is not None else _two_digits_up(end)
    if clip is None and (high >= highest or (np.isinf(values).any() and highest <= _RULES["near_overflow"] * high)):
        high = highest
    low = lowest
    if log:
        smallest = float(finite[finite > 0].min(initial=highest)) if highest > 0 else 0.0
        low = max(smallest, high / 10 ** _RULES["decades"])
    if not low * (1 + _RULES["flat"]) < high:
        low, high = _around(high, log)
    cut = bool(highest > high * (1 + _TOLERANCE) or np.isposinf(values).any())
    return Scale(quantity, log, low, high, cut)


def _around(value: float, log: bool) -> tuple[float, float]:
    """A range for a surface that is flat."""
    if log:
        return (value / 10, value) if value > 0 else tuple(_RULES["none"])
    return max(value - 0.5, 0.0), value + 0.5


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; where fewer than three fit, also 2 and 5 between them, or else some round values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in _RULES["tick_digits"]:
        ticks = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
        inside = [tick for tick in ticks if low * (1 - _TOLERANCE) <= tick <= high * (1 + _TOLERANCE)]
        if len(inside) >= 3:
            return inside
    return [float(tick) for tick in np.geomspace(low, high, 4)]


def _round_step(step: float) -> float:
    power = float(f"1e{math.floor(math.log10(step))}")
    rounded: float = next(factor * power for factor in _RULES["steps"] if factor * power >= step * (1 - _TOLERANCE))
    return rounded


def _two_digits_up(value: float) -> float:
    if value <= 0:
        return value
    unit = float(f"1e{math.floor(math.log10(value)) - 1}")
    return math.ceil(value / unit - _TOLERANCE) * unit


def significant(value: float) -> str:
    """A number with three significant digits, without zeros at its end unless it has an exponent.

    >>> [significant(value) for value in (0.25, 1000.0, 1.125, 0.00003, 2.5e-9, 1e7, math.inf)]
    ['0.25', '1000', '1.13', '0.00003', '2.50e-9', '1.00e7', '∞']
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"  # noqa: RUF001
    digits = _NUMBERS["digits"]
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal_from_float(value)
    if value and not _NUMBERS["plain_from"] <= abs(value) < _NUMBERS["plain_below"]:
        return f"{rounded:.{digits - 1}e}".replace("e+", "e")
    return f"{rounded.normalize():f}"
