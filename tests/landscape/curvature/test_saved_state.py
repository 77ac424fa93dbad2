"""A computation that was killed goes on with the same numbers, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from valleyscope.landscape.curvature.krylov import Eigenpairs, Wanted, eigenpairs
from valleyscope.landscape.curvature.saved_state import SavedState
from valleyscope.landscape.curvature.spectral_density import quadrature

SIZE = 120
MATRIX = torch.diag(torch.linspace(-0.2, 1, SIZE, dtype=torch.float64) ** 3)


class Killed(Exception):
    pass


class Products:
    """Products with a matrix, until there were `most` of them."""

    def __init__(self, most: int = 10**9) -> None:
        self.most = most
        self.count = 0

    def __call__(self, rows: Tensor) -> Tensor:
        if self.count >= self.most:
            raise Killed
        self.count += 1
        return rows.double() @ MATRIX


def found(products: Products, saved: SavedState | None) -> tuple[Eigenpairs, Any]:
    pairs = eigenpairs(
        products,
        SIZE,
        Wanted(top=5, lowest=1),
        like=torch.empty(0, dtype=torch.float64),
        basis=20,  # so it restarts
        tolerance=1e-6,
        most_products=500,
        saved=saved,
    )
    known = (pairs.values, pairs.vectors)
    return pairs, quadrature(products, SIZE, known, probes=3, steps=10, seed=1, saved=saved)


@pytest.mark.parametrize("share", [0.2, 0.7, 0.98])
def test_a_killed_computation_goes_on_with_identical_numbers(tmp_path: Path, share: float) -> None:
    path = tmp_path / "state.pt"
    whole = Products()
    expected, (trace, density) = found(whole, None)
    first = Products(int(share * whole.count))
    with pytest.raises(Killed):
        found(first, SavedState(path, {"a": 1}, every=0))
    rest = Products()
    pairs, (same_trace, same_density) = found(rest, SavedState(path, {"a": 1}, every=0))
    assert rest.count <= whole.count - first.count + 1
    np.testing.assert_array_equal(pairs.values, expected.values)
    assert torch.equal(pairs.vectors, expected.vectors)
    assert (pairs.products, same_trace) == (expected.products, trace)
    np.testing.assert_array_equal(same_density.values, density.values)


def test_a_state_of_something_else_or_a_damaged_one_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.pt"
    saved = SavedState(path, {"a": 1}, every=0)
    saved.offer("basis", lambda: {"rows": torch.ones(3)})
    assert SavedState(path, {"a": 1}).stage("basis") is not None
    assert SavedState(path, {"a": 2}).stage("basis") is None
    path.write_bytes(path.read_bytes()[:100])
    assert SavedState(path, {"a": 1}).stage("basis") is None
    saved.remove()
    assert not path.exists()


def test_a_state_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    SavedState(path, {}, every=0, most_bytes=1000).offer("basis", lambda: {"rows": torch.ones(1000)})
    assert not path.exists()
