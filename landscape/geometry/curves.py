"""Paths in weight space: Bezier curves and polygonal chains between two minima.

A path is a matrix of control points [k, D] and k coefficient functions of t in [0, 1]:
``w(t) = sum_j c_j(t) p_j``. The first and last control points are the minima; those between are the bends.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from valleyscope.landscape.geometry.inner_products import gram
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import Weights, flat_tensor

Floats = NDArray[np.float64]


class Curve(ABC):
    """A path through weight space from ``start`` to ``end``, given by control points and coefficients.

    ``points`` are flat vectors [k, D] with both ends, or a sequence of k of them.
    """

    kind: ClassVar[str]

    def __init__(self, points: Tensor | Sequence[Tensor]) -> None:
        stacked = points if isinstance(points, Tensor) else _stack(points)
        if stacked.dim() != 2 or stacked.shape[0] < 2 or stacked.shape[1] < 1:
            raise ValueError(
                f"points has shape {tuple(stacked.shape)}; a curve needs two or more flat vectors stacked as [k, D]"
            )
        if not stacked.is_floating_point():
            raise ValueError(f"points have data type {stacked.dtype}; weights are floating-point numbers")
        self.points = stacked.detach()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.points.shape[0]} points of {self.points.shape[1]} weights)"

    @abstractmethod
    def _coefficients(self, t: Floats) -> Floats:
        """The coefficient functions at values of t in [0, 1]: [n, k]."""

    @abstractmethod
    def _length(self, t: Floats) -> Floats:
        """Arc length from 0 to each t, in weight space."""

    @property
    def start(self) -> Tensor:
        return self.points[0]

    @property
    def end(self) -> Tensor:
        return self.points[-1]

    @property
    def bends(self) -> Tensor:
        """The free points between the ends: [k - 2, D], a view."""
        return self.points[1:-1]

    @property
    def bend(self) -> Tensor:
        """The free point of a curve that has one."""
        if len(self.bends) != 1:
            raise ValueError(f"the curve has {len(self.bends)} bends, not one: use .bends")
        return self.bends[0]

    def coefficients(self, t: ArrayLike) -> Floats:
        """The matrix [n, k] with ``w(t_i) = coefficients[i] @ points``; its rows sum to one."""
        return self._coefficients(_checked_t(t))

    def point(self, t: float) -> Tensor:
        """The flat vector w(t) in the data type of the control points; exact at control points on the curve."""
        if np.ndim(t) != 0:
            raise ValueError(f"t has shape {np.shape(t)}; point() takes one number, coefficients() takes many")
        row = self.coefficients([t])[0]
        # Points with coefficient zero are skipped: the ends are bit-equal to their minima.
        used = np.flatnonzero(row)
        first = int(used[0])
        result = self.points[first] * float(row[first])
        for index in used[1:]:
            result.add_(self.points[int(index)], alpha=float(row[index]))
        return result

    def arc(self, t: ArrayLike) -> Floats:
        """Arc length in weight space from the start to each t."""
        return self._length(_checked_t(t))

    def length(self) -> float:
        """Length of the whole path in weight space."""
        return float(self.arc([1.0])[0])

    def _gram(self) -> Floats:
        """Inner products of the differences p_{j+1} - p_j, accumulated in float64: [k - 1, k - 1]."""
        return gram(self.points[1:], minus=self.points[:-1])


class Bezier(Curve):
    """Bezier curve of degree k - 1 with ``c_j(t) = binomial(k - 1, j) t^j (1 - t)^(k - 1 - j)``.

    With one bend it is Garipov's quadratic curve (1 - t)^2 w_1 + 2 t (1 - t) theta + t^2 w_2.

    >>> curve = Bezier([torch.tensor([0.0, 0.0]), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 0.0])])
    >>> curve.point(0.5)
    tensor([1., 1.])
    """

    kind: ClassVar[str] = "bezier"

    def _coefficients(self, t: Floats) -> Floats:
        return bernstein(len(self.points) - 1, t)

    def _length(self, t: Floats) -> Floats:
        """Integral of the speed |w'(t)| by composite Gauss-Legendre quadrature between neighbouring nodes.

        w'(t) is a Bezier curve over the differences of the control points, so its norm needs only their Gram matrix.
        """
        degree = len(self.points) - 1
        products = self._gram() * degree**2
        # 64 panels of five nodes: exact to rounding except at cusps, where the speed is not smooth.
        nodes = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), t]))
        abscissae, weights = np.polynomial.legendre.leggauss(5)
        half = np.diff(nodes)[:, None] / 2
        inner = nodes[:-1, None] + half * (1 + abscissae)
        basis = bernstein(degree - 1, inner.ravel())
        squared = np.einsum("ni,ij,nj->n", basis, products, basis)
        speed = np.sqrt(np.maximum(squared, 0.0)).reshape(inner.shape)
        cumulative = np.concatenate([[0.0], np.cumsum((half * weights * speed).sum(axis=1))])
        return np.asarray(cumulative[np.searchsorted(nodes, t)], dtype=np.float64)


class PolyChain(Curve):
    """Polygonal chain through its control points at equal steps of t: ``c_j(t) = max(0, 1 - |t (k - 1) - j|)``."""

    kind: ClassVar[str] = "polychain"

    def _coefficients(self, t: Floats) -> Floats:
        segments = len(self.points) - 1
        return np.maximum(0.0, 1.0 - np.abs(t[:, None] * segments - np.arange(segments + 1)))

    def _length(self, t: Floats) -> Floats:
        steps = np.sqrt(np.maximum(np.diagonal(self._gram()), 0.0))
        knots = np.linspace(0.0, 1.0, len(steps) + 1)
        return np.asarray(np.interp(t, knots, np.concatenate([[0.0], np.cumsum(steps)])), dtype=np.float64)


class Line(PolyChain):
    """The straight line between two points of weight space."""

    kind: ClassVar[str] = "line"

    def __init__(self, points: Tensor | Sequence[Tensor]) -> None:
        super().__init__(points)
        if len(self.points) != 2:
            raise ValueError(f"a line has two points, got {len(self.points)}; a PolyChain takes more")


def line(start: Weights, end: Weights, *, model: nn.Module | None = None, parameters: Parameters = None) -> Line:
    """The straight line between two networks: flat vectors or modules, or, with ``model``, weights in any form."""
    ends = {"start": start, "end": end}
    return Line([flat_tensor(weights, name, model, parameters) for name, weights in ends.items()])


CURVES: dict[str, type[Curve]] = {"bezier": Bezier, "polychain": PolyChain}
"""The kinds of curve that can be fitted."""


def curve_class(kind: str) -> type[Curve]:
    if kind not in CURVES:
        raise ValueError(f"kind of curve is {kind!r}; known are {', '.join(CURVES)}")
    return CURVES[kind]


def bernstein(degree: int, t: Floats) -> Floats:
    """Bernstein polynomials ``binomial(degree, j) t^j (1 - t)^(degree - j)``: [n, degree + 1]."""
    index = np.arange(degree + 1)
    binomials = np.array([math.comb(degree, int(j)) for j in index], dtype=np.float64)
    column = t[:, None]
    return np.asarray(binomials * column**index * (1.0 - column) ** (degree - index), dtype=np.float64)


def _stack(points: Sequence[Tensor]) -> Tensor:
    shapes = [tuple(point.shape) for point in points]
    if len(set(shapes)) > 1 or any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"the points of a curve are flat vectors of one length, got shapes {shapes}")
    if not points:
        raise ValueError("a curve needs two or more points, got none")
    return torch.stack(list(points))


def _checked_t(t: ArrayLike) -> Floats:
    """Values of t as a vector; raises an error outside [0, 1] (and for NaN)."""
    values = np.atleast_1d(np.asarray(t, dtype=np.float64))
    if values.ndim != 1:
        raise ValueError(f"t has shape {values.shape}; give one number or a list of numbers")
    outside = ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        raise ValueError(f"t = {values[outside][0]} is outside [0, 1], where the curve is defined")
    return values
