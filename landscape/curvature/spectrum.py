"""The curvature of the loss at a point: largest and smallest eigenvalues, trace, spectral density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.curvature._memory import check_memory
from valleyscope.landscape.curvature.krylov import Floats, Wanted, eigenpairs
from valleyscope.landscape.curvature.products import BatchNorm, CurvatureProducts, Kind
from valleyscope.landscape.curvature.saved_state import SavedState
from valleyscope.landscape.curvature.spectral_density import Density, Trace, quadrature
from valleyscope.landscape.curvature.vector_memory import DOUBLE_UP_TO, basis_size
from valleyscope.landscape.evaluation.objectives import Loss
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.fitting.checkpoint import digest
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.weight_files import Weights
from valleyscope.landscape.network.buffers import network_at

Progress = Callable[[int, int], object]
"""Called with the products done, and about how many there will be."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """The spectrum of the Hessian (or generalised Gauss-Newton matrix) at a point.

    ``eigenvalues`` are the largest ones in descending order, ``eigenvectors`` [k, D] their orthonormal vectors, and
    ``residuals`` the norms |H v - value v|. ``lowest`` are the smallest (most negative) ones in ascending order.
    ``trace`` has the standard error ``trace_error``; both are NaN without random directions. ``density`` is None unless
    computed. ``converged`` is False where a residual is above the tolerance.
    """

    eigenvalues: Floats
    eigenvectors: Tensor
    residuals: Floats
    lowest: Floats
    lowest_vectors: Tensor
    lowest_residuals: Floats
    trace: float
    trace_error: float
    trace_interval: tuple[float, float]
    density: Density | None
    dimension: int
    samples: int
    products: int
    converged: bool
    kind: Kind


def curvature(
    model: nn.Module,
    weights: Weights,
    data: Data,
    top: int = 20,
    *,
    lowest: int = 2,
    kind: Kind = "hessian",
    density: bool = True,
    probes: int = 10,
    density_steps: int = 20,
    batch_norm: BatchNorm = "population",
    split: str = "train",
    samples: int | None = None,
    loss: Loss = None,
    parameters: Parameters = None,
    tolerance: float = 1e-5,
    most_products: int | None = None,
    seed: int = 0,
    memory_limit: int | None = None,
    state_path: Path | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> Curvature:
    """Eigenvalues, trace and spectral density of the Hessian of the mean loss, without forming the matrix.

    ``weights`` is a state dict, flat vector, module or path of a checkpoint. ``loss`` is a name such as ``"mse"`` or a
    function ``loss(model, batch)``, by default cross-entropy. ``kind="ggn"`` takes the generalised Gauss-Newton matrix.
    ``parameters`` are patterns of the weights that move; the matrix is that of these alone. All samples of the split
    count, or the first ``samples``. BatchNorm is that of a surface: ``population`` statistics change with the weights
    and are differentiated, ``frozen`` ones are constant. A pair has converged when its residual norm is below
    ``tolerance`` times the largest eigenvalue; the error of its eigenvalue is about the square of that. The trace uses
    ``probes`` random directions, the density ``density_steps`` products each.

    With ``state_path`` a call that was killed goes on from there with identical numbers; the file is removed at the
    end. ReLU networks are smooth except on kinks; the Hessian is that of the smooth piece around the point.

    >>> model = nn.Linear(1, 2, bias=False); _ = model.weight.data.zero_()
    >>> found = curvature(model, model, (torch.ones(4, 1), torch.tensor([0, 1, 0, 1])), top=1, lowest=1)
    >>> [round(float(value), 6) + 0.0 for value in (*found.eigenvalues, *found.lowest, found.trace)]
    [0.5, 0.0, 0.5]
    """
    network, point = network_at(model, weights, statistics=batch_norm == "frozen", parameters=parameters)
    size = len(point)
    _check_numbers(size, top, lowest, probes, density_steps, tolerance)
    basis = min(size, basis_size(top, lowest))
    limit = most_products or 20 * (top + lowest) + 200
    extra = probes * (density_steps if density else 1) if probes else 0
    like = basis_like(point)
    check_memory(size, basis + 1 + top + lowest, 3 * probes + 3, like, memory_limit, f"top={top}")
    report = Report(progress, basis + extra, extra)
    products = CurvatureProducts(
        network,
        point,
        data,
        kind=kind,
        batch_norm=batch_norm,
        split=split,
        samples=samples,
        loss=loss,
        parameters=parameters,
        memory_limit=memory_limit,
        cancelled=cancelled,
        on_product=report.on_product,
    )
    asked = {
        **{"top": top, "lowest": lowest, "kind": kind, "density": density, "probes": probes, "steps": density_steps},
        **{"tolerance": tolerance, "products": limit, "seed": seed, "batch_norm": batch_norm, "samples": samples},
        **{"split": split, "loss": str(loss), "point": digest([point, products.labels])},
    }
    saved = SavedState(state_path, asked)
    wanted = Wanted(top=top, lowest=lowest)
    pairs = eigenpairs(
        products,
        size,
        wanted,
        like=like,
        basis=basis,
        tolerance=_reachable(tolerance, point.dtype),
        most_products=limit,
        seed=seed,
        saved=saved,
    )
    products.count = max(products.count, pairs.products)
    extra = probes * min(density_steps if density else 1, size - len(pairs.values)) if probes else 0
    report.total, report.after = pairs.products + extra, 0
    trace, shape = Trace(float("nan"), float("nan"), 0), None
    if probes:
        trace, found = quadrature(
            products,
            size,
            (pairs.values, pairs.vectors),
            probes=probes,
            steps=density_steps if density else 1,
            seed=seed + 1,
            saved=saved,
        )
        shape = found if density else None
    saved.remove()
    order = np.arange(len(pairs.values))[::-1][:top]
    low = slice(0, lowest)
    return Curvature(
        eigenvalues=pairs.values[order],
        eigenvectors=pairs.vectors[order.copy()],
        residuals=pairs.residuals[order],
        lowest=pairs.values[low],
        lowest_vectors=pairs.vectors[low],
        lowest_residuals=pairs.residuals[low],
        trace=trace.value,
        trace_error=trace.error,
        trace_interval=trace.interval(),
        density=shape,
        dimension=size,
        samples=products.samples,
        products=pairs.products + extra,
        converged=bool(pairs.converged.all()),
        kind=kind,
    )


def basis_like(point: Tensor) -> Tensor:
    """An empty tensor with the data type and device of the eigenvectors of a network."""
    dtype = torch.float64 if len(point) <= DOUBLE_UP_TO else point.dtype
    return torch.empty(0, dtype=dtype, device=point.device)


def _reachable(tolerance: float, dtype: torch.dtype) -> float:
    """Not below the rounding of the products: float32 gives residuals of about 1e-6 of the largest eigenvalue."""
    return max(tolerance, 20 * torch.finfo(dtype).eps)


def _check_numbers(size: int, top: int, lowest: int, probes: int, steps: int, tolerance: float) -> None:
    if not 1 <= top <= size:
        raise ValueError(f"top is {top}; the network has {size:,} weights: give 1 to {size}")
    if not 0 <= lowest <= size:
        raise ValueError(f"lowest is {lowest}; the network has {size:,} weights: give 0 to {size}")
    if probes < 0 or probes == 1:
        raise ValueError(f"probes is {probes}; a standard error needs 2 or more random directions (0 for no trace)")
    if steps < 1:
        raise ValueError(f"density_steps is {steps}; give 1 or more")
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}; give a number between 0 and 1")


class Report:
    """Passes the products done, and about how many there will be, on to the caller; ``after`` are of a later stage."""

    def __init__(self, progress: Progress | None, total: int, after: int = 0) -> None:
        self._progress = progress
        self.total = total
        self.after = after

    def on_product(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, max(done + self.after, self.total))
