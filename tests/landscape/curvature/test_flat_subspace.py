"""The flat subspace, direction factors and exact SDP against their definitions, and the theorem's trial."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.landscape.curvature import networks
from valleyscope import (
    direction_factors,
    evaluate,
    factors_by_cut,
    flat_subspace,
    flatten,
    partition,
    sdp,
    sparsity,
    theorem_trial,
)
from valleyscope.landscape.curvature.krylov import NotConverged
from valleyscope.landscape.curvature.theorem_trial import auc, predict
from valleyscope.landscape.curvature.weight_groups import weight_groups
from valleyscope.training.parameter_groups import group_norms, prunable

CUT = 0.02


@cache
def small() -> networks.Case:
    return networks.case(networks.convolutional(), (1, 6, 6))


def projection(case: networks.Case, cut: float) -> Tensor:
    """Pi as a matrix, from all eigenvectors of the full Hessian."""
    values, vectors = torch.linalg.eigh(case.matrix)
    flat = vectors[:, values.abs() <= cut]
    assert 0 < flat.shape[1] < len(values)
    return flat @ flat.T


def factors_by_definition(case: networks.Case, cut: float) -> list[float]:
    """s_i = <E(w_i), Pi_i(E_G(w))>, with one mask per filter written by hand."""
    model = case.model
    masks = []
    for layer in (model[0], model[4]):  # type: ignore[index]
        for unit in range(len(layer.weight)):
            marked = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
            for name, value in model.named_parameters():
                if value is layer.weight or value is layer.bias:
                    marked[name][unit] = 1
            masks.append(torch.cat([value.flatten() for value in marked.values()]))
    normalised = sum(mask * case.point / (mask * case.point).norm() for mask in masks)
    projected = projection(case, cut) @ normalised
    return [float((mask * case.point / (mask * case.point).norm()) @ projected) for mask in masks]


def test_the_projection_is_that_of_the_full_hessian_idempotent_and_symmetric() -> None:
    case = small()
    subspace = flat_subspace(case.model, case.point, case.data, CUT)
    identity = torch.eye(len(case.point), dtype=torch.float64)
    matrix = torch.stack([subspace.project(row) for row in identity])
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-8)
    torch.testing.assert_close(matrix @ matrix, matrix, rtol=0, atol=1e-8)
    torch.testing.assert_close(matrix, projection(case, CUT), rtol=0, atol=1e-5)
    assert (np.abs(subspace.eigenvalues) > CUT).all()


def test_direction_factors_are_those_of_the_definition_in_the_order_of_the_partition() -> None:
    case = small()
    found = direction_factors(case.model, case.point, case.data, partition(case.model), cut=CUT)
    assert found.shape == (12,)
    np.testing.assert_allclose(found, factors_by_definition(case, CUT), atol=1e-6)


def test_direction_factors_of_some_layers_are_those_of_the_hessian_of_these() -> None:
    case = small()
    inside = slice(40, 40 + 136)  # the weights and biases of layer 4
    values, vectors = torch.linalg.eigh(case.matrix[inside, inside])
    flat = vectors[:, values.abs() <= CUT]
    rows = [[*range(16 * unit, 16 * unit + 16), 128 + unit] for unit in range(8)]
    units = torch.zeros(8, 136, dtype=torch.float64)
    for unit, row in enumerate(rows):
        units[unit, row] = torch.nn.functional.normalize(case.point[inside][row], dim=0)
    expected = units @ flat @ (flat.T @ units.sum(dim=0))
    options = {"cut": CUT, "parameters": "4.*"}
    _, layer, *_ = groups = partition(case.model)
    found = direction_factors(case.model, case.point[inside], case.data, [layer], **options)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(ValueError, match="groups: layer '0' has a parameter that does not move; leave the layer out"):
        direction_factors(case.model, case.model, case.data, groups, **options)  # type: ignore[arg-type]


def test_a_relative_cut_is_a_share_of_the_largest_eigenvalue() -> None:
    case = small()
    largest = float(torch.linalg.eigvalsh(case.matrix).abs().max())
    groups = partition(case.model)
    relative = direction_factors(case.model, case.point, case.data, groups, cut=CUT / largest, relative=True)
    np.testing.assert_allclose(relative, factors_by_definition(case, CUT), atol=1e-5)


def test_factors_by_cut_are_those_of_each_cut_and_one_where_nothing_is_removed() -> None:
    case = small()
    found = factors_by_cut(case.model, case.point, case.data, partition(case.model), cuts=(100.0, 0.1, CUT))
    assert found.removed[0] == 0
    assert (np.diff(found.removed) > 0).all()
    np.testing.assert_allclose(found.factors[0], 1)
    np.testing.assert_allclose(found.factors[1], factors_by_definition(case, 0.1), atol=1e-6)
    np.testing.assert_allclose(found.factors[2], factors_by_definition(case, CUT), atol=1e-6)
    assert found.layers == ("0",) * 4 + ("4",) * 8


@pytest.mark.parametrize("structure", ["filter", "kernel", "vector", "element"])
def test_group_norms_are_those_of_the_training_room(structure: str) -> None:
    case = small()
    groups = partition(case.model, structure)  # type: ignore[arg-type]
    expected = torch.cat([group_norms(group) for group in prunable(groups)])
    torch.testing.assert_close(weight_groups(case.model, groups).norms(case.point), expected)


def test_too_many_steep_directions_for_the_memory_are_noticed_after_a_few_products() -> None:
    torch.manual_seed(0)
    model = nn.Linear(30, 10, bias=False).double()
    data = torch.randn(200, 30, dtype=torch.float64), torch.randint(10, (200,))
    seen: list[tuple[int, int]] = []
    message = r"at least 2\d\d of 300 eigenvalues are above the cut 1e-06, and memory_limit allows a basis of 80"
    with pytest.raises(NotConverged, match=message):
        flat_subspace(model, model, data, 1e-6, memory_limit=256_000, progress=lambda *done: seen.append(done))
    assert len(seen) == 80
    assert all(done <= total for done, total in seen)
    assert 2 * 200 < seen[-1][1] < 3 * 300


def test_groups_of_another_network_are_named() -> None:
    case = small()
    with pytest.raises(ValueError, match=r"groups: layer '0' has a parameter that is not in this Sequential"):
        direction_factors(case.model, case.point, case.data, partition(networks.convolutional()))
    with pytest.raises(ValueError, match="cut is 0; give an eigenvalue above 0"):
        direction_factors(case.model, case.point, case.data, partition(case.model), cut=0)


@pytest.mark.parametrize("factors", [None, "random"])
def test_exact_sdp_minimises_its_objective(factors: str | None) -> None:
    case = small()
    groups = partition(case.model)
    numbered = weight_groups(case.model, groups)
    s = torch.ones(12) if factors is None else torch.linspace(-0.5, 1.5, 12, dtype=torch.float64)
    pruned = flatten(case.model, sdp(case.model, case.point, groups, None if factors is None else s, strength=0.9))

    def objective(w: Tensor) -> float:
        return float(0.5 * ((case.point - w) ** 2).sum() + 0.9 * (s * numbered.norms(w)).sum())

    generator = torch.Generator().manual_seed(1)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            step = size * torch.randn(len(pruned), generator=generator, dtype=torch.float64)
            assert objective(pruned) <= objective(pruned + step)
    rest = numbered.index == -1
    assert torch.equal(pruned[rest], case.point[rest])


def test_exact_sdp_reaches_a_share_of_zero_groups_and_says_when_it_cannot() -> None:
    case = small()
    groups = partition(case.model)
    s = torch.linspace(-0.5, 1.5, 12)
    state = sdp(case.model, case.model, groups, s, sparsity=0.5)
    model = networks.convolutional().double()
    model.load_state_dict(state)
    assert sparsity(model).groups == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"sparsity=0.9 cannot be reached: only 9 of 12 groups have a positive"):
        sdp(case.model, case.model, groups, s, sparsity=0.9)
    with pytest.raises(ValueError, match="give one of them"):
        sdp(case.model, case.model, groups, s)


def test_the_trial_of_exact_sdp_itself_finds_the_theorem_right() -> None:
    case = small()
    groups = partition(case.model)
    s = direction_factors(case.model, case.point, case.data, groups, cut=CUT)
    pruned = sdp(case.model, case.point, groups, s, strength=2.5)
    trial = theorem_trial(case.model, case.point, pruned, case.data, groups, 2.5, CUT, distances=[1e-2, 0.1])
    assert 0 < trial.zero < 12
    assert (trial.theorem.zero, trial.theorem.agreement, trial.theorem.auc) == (trial.zero, 1, 1)
    assert trial.theorem.correlation == pytest.approx(1)
    assert trial.null.correlation < 0.999
    assert trial.loss is not None
    at_point = evaluate(case.model, case.point, case.data)["train"].loss
    assert (np.abs(trial.loss.sharpest - at_point) > 5 * np.abs(trial.loss.flat - at_point)).all()


def test_agreement_auc_and_null_prediction_of_a_case_done_by_hand() -> None:
    start, measured = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 0.0, 3.0])
    found = predict(start, measured, np.array([1.0, 1.0, 3.0, 0.5]), 1.0)
    np.testing.assert_allclose(found.norms, [0, 1, 0, 3.5])
    assert (found.zero, found.agreement, found.auc) == (2, 1, 1)
    null = predict(start, measured, np.ones(4), 1.0)
    assert (null.zero, null.agreement, null.auc) == (1, 0.75, 0.75)
    assert np.isnan(auc(start, np.zeros(4, dtype=bool)))
