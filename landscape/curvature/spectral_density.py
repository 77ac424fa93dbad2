"""Spectral density and trace by stochastic Lanczos quadrature, with the known eigenvalues taken out.

Random directions in the complement of the known eigenvectors each give a Gauss quadrature of the spectrum there (Golub
and Welsch; Ubaru, Chen and Saad 2017): the eigenvalues of a small tridiagonal matrix, weighted by the squared first
entries of its eigenvectors. The known eigenvalues enter exactly, so the variance of the trace is that of the small
rest, as in Hutch++ (Meyer et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from valleyscope.landscape.curvature.saved_state import SavedState
from valleyscope.landscape.geometry.inner_products import chunks

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Density:
    """The distribution of the eigenvalues: ``values`` with ``weights`` that sum to one.

    Where an eigenvalue is known it is one of the values and has the weight 1/D; the others are nodes of quadratures.
    """

    values: Floats
    weights: Floats

    def moment(self, power: int) -> float:
        """The mean of the eigenvalues to this power; the first moment is trace / D."""
        return float(self.weights @ self.values**power)

    def smooth(self, at: ArrayLike, width: float | None = None) -> Floats:
        """The density at the given eigenvalues, with every value widened to a normal distribution.

        ``width`` is its standard deviation, by default a hundredth of the range of the values.
        """
        grid = np.asarray(at, dtype=np.float64)
        sigma = width or max(float(np.ptp(self.values)), 1e-12) / 100
        bells = np.exp(-0.5 * ((grid[..., None] - self.values) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        return np.asarray(bells @ self.weights, dtype=np.float64)


@dataclass(frozen=True)
class Trace:
    """An estimate of the trace, its standard error, and the number of random directions behind it."""

    value: float
    error: float
    probes: int

    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval, by Student's t."""
        half = student_t_975(self.probes - 1) * self.error if self.error else 0.0
        return self.value - half, self.value + half


def quadrature(
    product: Callable[[Tensor], Tensor],
    dimension: int,
    known: tuple[Floats, Tensor],
    *,
    probes: int,
    steps: int,
    seed: int,
    saved: SavedState | None = None,
) -> tuple[Trace, Density]:
    """Trace and spectral density from ``probes`` random directions of ``steps`` products each.

    ``known`` are eigenvalues and their vectors as rows. The first coefficient of every direction v is <v, H v>, so the
    trace costs nothing beyond the density, and the first moment of the density is the trace over D.
    """
    values, vectors = known
    rest = dimension - len(values)
    if rest == 0:
        return Trace(float(values.sum()), 0.0, probes), Density(values, np.full(len(values), 1 / dimension))
    steps = min(steps, rest)
    generator = torch.Generator().manual_seed(seed)
    now = torch.randn(probes, dimension, generator=generator, dtype=torch.float64).to(vectors.device)
    now = _outside(now, vectors)
    now /= now.norm(dim=1, keepdim=True)
    before = torch.zeros_like(now)
    diagonal, off_diagonal = np.zeros((probes, steps)), np.zeros((probes, steps))
    begun = 0
    if saved is not None and (state := saved.stage("density")) is not None:
        begun, now, before = state["step"], state["now"].to(now), state["before"].to(now)
        diagonal, off_diagonal = state["diagonal"].numpy(), state["off_diagonal"].numpy()
    for step in range(begun, steps):
        if saved is not None:
            saved.offer("density", partial(_lanczos_state, step, now, before, diagonal, off_diagonal))
        new = _outside(product(now), vectors)
        alpha = (new * now).sum(dim=1, keepdim=True)
        new -= alpha * now
        if step:
            new -= torch.from_numpy(off_diagonal[:, step - 1 : step]).to(new) * before
        beta = new.norm(dim=1, keepdim=True)
        diagonal[:, step], off_diagonal[:, step] = alpha[:, 0].cpu().numpy(), beta[:, 0].cpu().numpy()
        before, now = now, new / beta.clamp_min(torch.finfo(torch.float64).tiny)
    first = diagonal[:, 0]
    trace = Trace(
        float(values.sum() + rest * first.mean()), float(rest * first.std(ddof=1) / math.sqrt(probes)), probes
    )
    nodes, weights = zip(*(_gauss(a, b) for a, b in zip(diagonal, off_diagonal, strict=True)), strict=True)
    density = Density(
        np.concatenate([values, *nodes]),
        np.concatenate([np.full(len(values), 1.0), *(rest / probes * part for part in weights)]) / dimension,
    )
    return trace, density


def _lanczos_state(step: int, now: Tensor, before: Tensor, diagonal: Floats, off_diagonal: Floats) -> dict[str, Any]:
    table = {"diagonal": torch.from_numpy(diagonal.copy()), "off_diagonal": torch.from_numpy(off_diagonal.copy())}
    return {"step": step, "now": now.cpu().clone(), "before": before.cpu().clone(), **table}


def _gauss(diagonal: Floats, off_diagonal: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of a Gauss quadrature from the coefficients of Lanczos, up to where it broke down."""
    scale = max(np.abs(diagonal).max(), off_diagonal.max())
    ends = np.flatnonzero(off_diagonal <= 1e-12 * scale)
    size = int(ends[0]) + 1 if len(ends) else len(diagonal)
    inner = off_diagonal[: size - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal[:size]) + np.diag(inner, 1) + np.diag(inner, -1))
    return values, vectors[0] ** 2


def _outside(rows: Tensor, vectors: Tensor) -> Tensor:
    """The rows without their part in the span of orthonormal vectors."""
    if len(vectors) == 0:
        return rows
    inner = torch.zeros(len(rows), len(vectors), dtype=torch.float64, device=rows.device)
    for part in chunks(rows.shape[1]):
        inner += rows[:, part] @ vectors[:, part].to(torch.float64).T
    for part in chunks(rows.shape[1]):
        rows[:, part] -= inner @ vectors[:, part].to(torch.float64)
    return rows


def student_t_975(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by its expansion in 1/freedom (Abramowitz and Stegun 26.7.5)."""
    if freedom < 1:
        return math.inf
    if freedom < 3:
        return (12.706, 4.303)[freedom - 1]
    z = 1.959963984540054
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
