"""Eigenvalues at both ends of the spectrum of a symmetric matrix that is known by its products alone.

A Krylov-Schur method (Stewart 2001): Lanczos with full orthogonalisation, restarted with the best Ritz vectors when the
basis is full. It holds H V = V T + residual e^T, so the residual norm of a Ritz vector V s is |residual| |s_last|.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.curvature.saved_state import SavedState, State
from valleyscope.landscape.geometry.inner_products import chunks

Floats = NDArray[np.float64]
_BREAKDOWNS = 3
"""So many random directions in turn that give nothing new mean that the rest of the spectrum is one eigenvalue."""
_BASIS, _FOUND = "basis", "pairs"
"""Stages of the saved state."""

Foresee = Callable[[Floats, Floats], object]
Product = Callable[[Tensor], Tensor]
"""Rows [n, D] to their products [n, D] in float64."""


class NotConverged(ArithmeticError):
    """The wanted eigenvalues were not found within the allowed products or memory."""


@dataclass(frozen=True)
class Wanted:
    """Which eigenvalues to find: the ``top`` largest, the ``lowest`` smallest, all of absolute value ``above``."""

    top: int = 0
    lowest: int = 0
    above: float | None = None
    share: bool = False
    """``above`` is a share of the largest absolute value."""

    def cut(self, values: Floats) -> float | None:
        return self.above if self.above is None or not self.share else self.above * float(np.abs(values).max())

    def mask(self, values: Floats) -> NDArray[np.bool_]:
        """Which of the values, in ascending order, are wanted."""
        chosen = np.zeros(len(values), dtype=bool)
        chosen[: self.lowest] = True
        chosen[len(values) - self.top :] |= self.top > 0
        cut = self.cut(values)
        return chosen if cut is None else chosen | (np.abs(values) > cut)


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenvalues in ascending order, their vectors as rows, and the residual norms |H v - value v|."""

    values: Floats
    vectors: Tensor
    residuals: Floats
    converged: NDArray[np.bool_]
    products: int


class KrylovBasis:
    """Orthonormal rows V, with T = V H V^T."""

    def __init__(self, product: Product, dimension: int, size: int, seed: int, like: Tensor) -> None:
        self._product = product
        self.dimension = dimension
        self.size = min(size, dimension)
        self.rows = torch.zeros(min(self.size + 1, dimension), dimension, dtype=like.dtype, device=like.device)
        self.matrix = np.zeros((self.size, self.size))
        self.used = 0
        self.residual = 0.0
        self.breakdowns = 0
        self.restarted = False
        self._scale = 0.0
        self._generator = torch.Generator().manual_seed(seed)
        self._append(self._random())

    def expand(self) -> None:
        """Multiply the last row by H; the part of the product orthogonal to all rows is the next row."""
        last = self.used
        new = self._product(self.rows[last : last + 1])[0].to(torch.float64)
        self._scale = max(self._scale, float(new.norm()))
        coefficients = self._orthogonalise(new, last + 1)
        self.matrix[: last + 1, last] = self.matrix[last, : last + 1] = coefficients
        self.used += 1
        self.residual = float(new.norm())
        if self.used == self.dimension:
            self.residual = 0.0
        elif self.residual <= 1e-13 * self._scale:
            # The rows span an invariant subspace: go on in a random direction outside of it.
            self.residual = 0.0
            self.breakdowns += 1
            self._append(self._random())
        else:
            self.breakdowns = 0
            self._append(new)

    def ritz(self) -> tuple[Floats, Floats, Floats]:
        """Approximate eigenvalues in ascending order, their coefficients as columns, their residual norms."""
        values, coefficients = np.linalg.eigh(self.matrix[: self.used, : self.used])
        return values, coefficients, self.residual * np.abs(coefficients[-1])

    def combine(self, coefficients: Floats) -> Tensor:
        """The combinations of the rows by the columns of ``coefficients``."""
        found = torch.empty(coefficients.shape[1], self.dimension, dtype=self.rows.dtype, device=self.rows.device)
        self._combine_into(found, coefficients)
        return found

    def restart(self, values: Floats, coefficients: Floats) -> None:
        """Keep these Ritz vectors and the last row."""
        count = len(values)
        following = self.rows[self.used].clone()
        self._combine_into(self.rows, coefficients)
        self.restarted = True
        self.matrix[:] = 0.0
        self.matrix[range(count), range(count)] = values
        self.rows[count] = following
        self.used = count

    def state(self) -> State:
        """Everything that expanding further needs."""
        return {
            "rows": self.rows[: self.used + 1].cpu().clone(),
            "matrix": torch.from_numpy(self.matrix[: self.used, : self.used].copy()),
            "used": self.used,
            "residual": self.residual,
            "breakdowns": self.breakdowns,
            "restarted": self.restarted,
            "scale": self._scale,
            "generator": self._generator.get_state(),
        }

    def restore(self, state: State) -> None:
        """Go on from the state of a basis of the same size."""
        self.used = state["used"]
        self.rows[: len(state["rows"])] = state["rows"].to(self.rows.device)
        self.matrix[: self.used, : self.used] = state["matrix"].numpy()
        self.residual, self.breakdowns, self._scale = state["residual"], state["breakdowns"], state["scale"]
        self.restarted = state["restarted"]
        self._generator.set_state(state["generator"])

    def _combine_into(self, target: Tensor, coefficients: Floats) -> None:
        table = torch.from_numpy(np.ascontiguousarray(coefficients.T)).to(self.rows.device)
        for part in chunks(self.dimension):
            target[: len(table), part] = (table @ self.rows[: self.used, part].to(torch.float64)).to(target.dtype)

    def _orthogonalise(self, vector: Tensor, count: int) -> Floats:
        """Subtract from the vector its part in the first rows, twice against rounding; returns the coefficients."""
        total = torch.zeros(count, dtype=torch.float64, device=vector.device)
        for _ in range(2):
            found = torch.zeros_like(total)
            for part in chunks(self.dimension):
                found += self.rows[:count, part].to(torch.float64) @ vector[part]
            for part in chunks(self.dimension):
                vector[part] -= found @ self.rows[:count, part].to(torch.float64)
            total += found
        return np.asarray(total.cpu().numpy(), dtype=np.float64)

    def _random(self) -> Tensor:
        vector = torch.randn(self.dimension, generator=self._generator, dtype=torch.float64).to(self.rows.device)
        if self.used:
            self._orthogonalise(vector, self.used)
        return vector

    def _append(self, vector: Tensor) -> None:
        if self.used < len(self.rows):
            self.rows[self.used] = (vector / vector.norm()).to(self.rows.dtype)


def eigenpairs(
    product: Product,
    dimension: int,
    wanted: Wanted,
    *,
    like: Tensor,
    basis: int,
    tolerance: float = 1e-4,
    most_products: int,
    seed: int = 0,
    saved: SavedState | None = None,
    foresee: Foresee | None = None,
) -> Eigenpairs:
    """The wanted eigenvalues with their vectors, with at most ``basis`` + 1 vectors in memory.

    A pair counts as converged when its residual norm is at most ``tolerance`` times the largest absolute eigenvalue.
    Ends after ``most_products``, whatever has converged. With ``saved`` a computation that was killed goes on. Until
    the first restart ``foresee`` gets the spectrum as the basis sees it: values, and about how many there are of each.
    """
    if saved is not None and (found := saved.stage(_FOUND)) is not None:
        return Eigenpairs(
            found["values"].numpy(),
            found["vectors"].to(like.device),
            found["residuals"].numpy(),
            found["converged"].numpy(),
            found["products"],
        )
    krylov = KrylovBasis(product, dimension, basis, seed, like)
    smallest = min(krylov.size, wanted.top + wanted.lowest + 2)
    products = 0
    check = smallest
    if saved is not None and (state := saved.stage(_BASIS)) is not None:
        krylov.restore(state["basis"])
        products, check = state["products"], state["check"]
    while True:
        if saved is not None:
            saved.offer(_BASIS, partial(_begun, krylov, products, check))
        krylov.expand()
        products += 1
        full = krylov.used == krylov.size
        over = products >= most_products or krylov.used == dimension
        if not (full or over or krylov.used >= check):
            continue
        check = krylov.used + max(5, krylov.used // 10)
        values, coefficients, residuals = krylov.ritz()
        if foresee is not None and not krylov.restarted:
            foresee(values, dimension * coefficients[0] ** 2)  # Gauss quadrature from a random direction
        mask, done = _state(wanted, values, residuals, tolerance)
        # After a breakdown all residuals are 0, yet a repeated eigenvalue may have been found once only.
        done = done and (krylov.breakdowns == 0 or krylov.breakdowns >= _BREAKDOWNS)
        if over or (krylov.used >= smallest and done):
            return _keep(_result(krylov, mask, tolerance, products), saved)
        if full:
            kept = _kept(values, mask, krylov.size)
            krylov.restart(values[kept], coefficients[:, kept])
            check = krylov.used + max(5, (krylov.size - krylov.used) // 4)


def _begun(krylov: KrylovBasis, products: int, check: int) -> State:
    return {"basis": krylov.state(), "products": products, "check": check}


def _keep(pairs: Eigenpairs, saved: SavedState | None) -> Eigenpairs:
    """The pairs, which need not be found again if a later stage is killed."""
    if saved is not None:
        arrays = {name: torch.from_numpy(getattr(pairs, name).copy()) for name in ("values", "residuals", "converged")}
        saved.drop(_BASIS)
        saved.offer(_FOUND, lambda: {**arrays, "vectors": pairs.vectors.cpu(), "products": pairs.products}, now=True)
    return pairs


def _state(wanted: Wanted, values: Floats, residuals: Floats, tolerance: float) -> tuple[NDArray[np.bool_], bool]:
    """Which Ritz values are wanted, and whether these are all of the wanted eigenvalues and have converged."""
    mask = wanted.mask(values)
    scale = float(np.abs(values).max())
    done = bool((residuals[mask] <= tolerance * scale).all())
    if (cut := wanted.cut(values)) is not None:
        # A value below the cut that may still rise above it must be known to a tenth of the cut, and so must the one
        # next to the cut: as long as it moves, a larger one may be hidden.
        undecided = ~mask & (np.abs(values) + residuals > cut)
        if not mask.all():
            undecided[np.argmax(np.where(mask, -1.0, np.abs(values)))] = True
        done = done and bool((residuals[undecided] <= 0.1 * cut).all())
    return mask, done


def _kept(values: Floats, mask: NDArray[np.bool_], size: int) -> NDArray[np.intp]:
    """The Ritz vectors to restart with: the wanted ones, and the next ones at both ends up to half of the free rows."""
    count = int(mask.sum())
    if count > size - 5:
        raise NotConverged(
            f"more than {size - 5} eigenvalues are wanted, and memory_limit allows a basis of {size} vectors: raise "
            "the cut or the memory_limit"
        )
    order = np.argsort(np.where(mask, np.inf, np.abs(values)))[::-1]
    return np.sort(order[: count + (size - count) // 2])


def _result(krylov: KrylovBasis, mask: NDArray[np.bool_], tolerance: float, products: int) -> Eigenpairs:
    values, coefficients, residuals = krylov.ritz()
    converged = residuals[mask] <= tolerance * np.abs(values).max()
    return Eigenpairs(values[mask], krylov.combine(coefficients[:, mask]), residuals[mask], converged, products)
