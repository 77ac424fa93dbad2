"""The flat subspace P of a minimum, the projection Pi on it, and the direction factors of a partition.

P is the complement of all eigenvectors whose eigenvalue is above a cut in absolute value. The direction factor of a
group is s_i = <E(w_i), Pi_i(E_G(w))>, where E normalises a vector and E_G every group (structured directional pruning,
Def. 1). s_i is 1 where shrinking the group is flat, smaller where it is steep, and negative where the group must grow
while the others shrink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.curvature._memory import check_memory, vectors_limit
from valleyscope.landscape.curvature.krylov import Floats, NotConverged, Wanted, eigenpairs
from valleyscope.landscape.curvature.products import BatchNorm, CurvatureProducts, Kind
from valleyscope.landscape.curvature.saved_state import SavedState
from valleyscope.landscape.curvature.spectrum import Progress, Report, basis_like
from valleyscope.landscape.curvature.weight_groups import Partition, WeightGroups, weight_groups
from valleyscope.landscape.evaluation.objectives import Loss
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.fitting.checkpoint import digest
from valleyscope.landscape.geometry.inner_products import chunks
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.weight_files import Weights
from valleyscope.landscape.network.buffers import network_at

_PRODUCTS_PER_DIRECTION = 2.5
"""Measured: 2.3 on spectra that fall like 1/n; a restart needs more."""
_SURE_AFTER = 150
"""After so many products the number of eigenvalues above a cut is known to a tenth."""
_FEWEST_VECTORS = 60
"""A basis that cannot hold this many vectors finds no flat subspace in a reasonable time."""


@dataclass(frozen=True, eq=False)
class FlatSubspace:
    """The complement of the steep directions: eigenvectors whose eigenvalue is above ``cut`` in absolute value.

    ``steep`` [k, D] are orthonormal, ``eigenvalues`` theirs in order of falling absolute value.
    """

    steep: Tensor
    eigenvalues: Floats
    cut: float
    largest: float
    products: int

    def at(self, cut: float) -> FlatSubspace:
        """The flat subspace for a higher cut."""
        if cut < self.cut:
            raise ValueError(f"cut is {cut}; eigenvalues are known above {self.cut:g} only: compute the subspace anew")
        count = int((np.abs(self.eigenvalues) > cut).sum())
        return FlatSubspace(self.steep[:count], self.eigenvalues[:count], cut, self.largest, self.products)

    def project(self, vector: Tensor, removed: int | None = None) -> Tensor:
        """Pi(vector) in float64: the vector without its part in the steep directions, or in the first ``removed``."""
        flat = vector.to(torch.float64).clone()
        rows = self.steep[:removed]
        inner = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        for part in chunks(len(flat)):
            inner += rows[:, part].to(torch.float64) @ flat[part]
        for part in chunks(len(flat)):
            flat[part] -= inner @ rows[:, part].to(torch.float64)
        return flat

    def factors(self, weights: Tensor, groups: WeightGroups, removed: int | None = None) -> Tensor:
        """s_i of every group; 0 for a group that is zero."""
        direction = groups.normalised(weights)
        return groups.sums(direction * self.project(direction, removed))


def flat_subspace(
    model: nn.Module,
    weights: Weights,
    data: Data,
    cut: float = 1e-3,
    *,
    relative: bool = False,
    kind: Kind = "hessian",
    batch_norm: BatchNorm = "population",
    split: str = "train",
    samples: int | None = None,
    loss: Loss = None,
    parameters: Parameters = None,
    most_products: int | None = None,
    seed: int = 0,
    memory_limit: int | None = None,
    state_path: Path | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> FlatSubspace:
    """The flat subspace at a point, from all eigenvalues above ``cut`` in absolute value.

    With ``relative`` the cut is a share of the largest one. How many eigenvalues there are is not known before; the
    basis takes as many vectors as ``memory_limit`` bytes allow (default: half of the machine's memory). With
    ``state_path`` a call that was killed goes on from there with identical numbers.
    """
    if not (np.isfinite(cut) and cut > 0):
        raise ValueError(f"cut is {cut}; give an eigenvalue above 0, or a share of the largest one with relative=True")
    if relative and cut >= 1:
        raise ValueError(f"cut is {cut} with relative=True; give a share of the largest eigenvalue, below 1")
    network, point = network_at(model, weights, statistics=batch_norm == "frozen", parameters=parameters)
    size = len(point)
    like = basis_like(point)
    check_memory(size, min(size, _FEWEST_VECTORS) + 1, 3, like, memory_limit, "a flat subspace")
    limit = vectors_limit(like.device, memory_limit)
    # Steep eigenvectors are copied from the basis at the end: they are a third of it at most, or a restart is due.
    basis = min(size, int(limit / size / like.element_size() * 3 / 4), 6000)
    most = most_products or max(2 * size if size < 2000 else size, 2000)
    report = Report(progress, most)
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
    rounding = 20 * torch.finfo(point.dtype).eps
    tolerance = max(1e-2 * cut if relative else 1e-5, rounding)
    asked = {
        **{"cut": cut, "relative": relative, "kind": kind, "batch_norm": batch_norm, "split": split, "basis": basis},
        **{"samples": samples, "loss": str(loss), "products": most, "seed": seed},
        "point": digest([point, products.labels]),
    }
    saved = SavedState(state_path, asked)
    wanted = Wanted(top=1, above=cut, share=relative)
    found = eigenpairs(
        products,
        size,
        wanted,
        like=like,
        basis=basis,
        tolerance=tolerance,
        most_products=most,
        seed=seed,
        saved=saved,
        foresee=partial(_foresee, report, products, wanted, basis),
    )
    saved.remove()
    if not found.converged.all():
        raise NotConverged(
            f"{int((~found.converged).sum())} of {len(found.values)} eigenvalues above the cut {cut:g} have not "
            f"converged after {found.products} products: raise the cut, or pass a larger most_products"
        )
    order = np.argsort(-np.abs(found.values), kind="stable")
    largest = float(np.abs(found.values).max())
    level = cut * largest if relative else cut
    order = order[np.abs(found.values[order]) > level]
    return FlatSubspace(found.vectors[order.copy()], found.values[order], level, largest, found.products)


def _foresee(
    report: Report, products: CurvatureProducts, wanted: Wanted, basis: int, values: Floats, counts: Floats
) -> None:
    """Tell about how many products the eigenvalues above the cut will take; an error if they cannot fit in memory."""
    cut = wanted.cut(values)
    assert cut is not None
    above = _at_least(values, counts, cut)
    report.total = int(_PRODUCTS_PER_DIRECTION * above) + _FEWEST_VECTORS
    if products.count < min(_SURE_AFTER, basis) or above < 1.5 * basis or basis == products.dimension:
        return
    higher = [factor for factor in (3, 10, 30, 100) if _at_least(values, counts, factor * cut) < basis / 4]
    advice = f"raise the cut, {higher[0]} times at least," if higher else "raise the cut"
    raise NotConverged(
        f"at least {above:,.0f} of {products.dimension:,} eigenvalues are above the cut {cut:.3g}, and memory_limit "
        f"allows a basis of {basis} vectors: {advice} or the memory_limit"
    )


def _at_least(values: Floats, counts: Floats, cut: float) -> float:
    """Eigenvalues beyond the cut: the weights of all nodes beyond the innermost (Chebyshev, Markov and Stieltjes)."""
    return float(counts[values > cut][1:].sum() + counts[values < -cut][:-1].sum())


def direction_factors(
    model: nn.Module,
    weights: Weights,
    data: Data,
    groups: Partition,
    cut: float = 1e-3,
    *,
    parameters: Parameters = None,
    **options: Any,
) -> Tensor:
    """The direction factor s_i of every group of a partition, in its order, in float64.

    ``groups`` is what ``partition(model)`` returns, or a part of it, whose weights must move (``parameters``). Options
    are those of ``flat_subspace``. The rest of a partition, which is never pruned, is 0 in E_G(w). A group that is zero
    has the factor 0.
    """
    numbered = weight_groups(model, groups, parameters)
    subspace = flat_subspace(model, weights, data, cut, parameters=parameters, **options)
    _, point = network_at(model, weights, statistics=False, parameters=parameters)
    return subspace.factors(point, numbered)


@dataclass(frozen=True, eq=False)
class FactorsByCut:
    """Direction factors for several cuts: ``factors`` [cuts, groups], and how many directions each cut removes."""

    cuts: Floats
    removed: NDArray[np.int64]
    factors: Floats
    layers: tuple[str, ...]


def factors_by_cut(
    model: nn.Module,
    weights: Weights,
    data: Data,
    groups: Partition,
    cuts: Sequence[float] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4),
    *,
    parameters: Parameters = None,
    **options: Any,
) -> FactorsByCut:
    """How the direction factors depend on the cut: the eigenvalues are found once, for the smallest cut."""
    numbered = weight_groups(model, groups, parameters)
    if not cuts:
        raise ValueError("cuts is empty; give eigenvalues above 0")
    subspace = flat_subspace(model, weights, data, min(cuts), parameters=parameters, **options)
    _, point = network_at(model, weights, statistics=False, parameters=parameters)
    scale = subspace.largest if options.get("relative") else 1.0
    levels = np.asarray(cuts, dtype=np.float64) * scale
    removed = np.array([int((np.abs(subspace.eigenvalues) > level).sum()) for level in levels])
    rows = [subspace.factors(point, numbered, int(count)).cpu().numpy() for count in removed]
    return FactorsByCut(levels, removed, np.stack(rows), numbered.layers)
