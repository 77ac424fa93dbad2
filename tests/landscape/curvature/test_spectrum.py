"""Eigenvalues, trace and density against the full Hessian of torch.func."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.landscape.curvature import networks
from valleyscope import curvature
from valleyscope.landscape import Cancelled
from valleyscope.landscape.curvature.krylov import Wanted, eigenpairs
from valleyscope.landscape.curvature.products import CurvatureProducts
from valleyscope.landscape.curvature.spectral_density import quadrature, student_t_975
from valleyscope.landscape.geometry.vectors import views


@cache
def small(name: str) -> networks.Case:
    if name == "smooth":
        return networks.case(networks.smooth(), (6,))
    if name == "convolutional":
        return networks.case(networks.convolutional(), (1, 6, 6))
    return networks.case(networks.normalised(), (1, 6, 6), training=name == "population")


@pytest.mark.parametrize("name", ["smooth", "convolutional"])
def test_products_are_those_of_the_full_hessian_whatever_the_blocks(name: str) -> None:
    case = small(name)
    vectors = torch.randn(3, len(case.point), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for block, limit in ((None, None), (16, None), (16, 1)):  # with graphs kept, and without
        product = CurvatureProducts(case.model, case.point, case.data, block=block, memory_limit=limit)
        for _ in range(2):
            torch.testing.assert_close(product(vectors), vectors @ case.matrix, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", ["population", "frozen"])
def test_batch_norm_is_differentiated_in_the_mode_of_the_surface(mode: str) -> None:
    case = small(mode)
    before = {name: value.clone() for name, value in case.model.state_dict().items()}
    product = CurvatureProducts(case.model, case.point, case.data, batch_norm=mode)  # type: ignore[arg-type]
    vectors = torch.eye(len(case.point), dtype=torch.float64)[::20]
    torch.testing.assert_close(product(vectors), case.matrix[::20], rtol=1e-7, atol=1e-9)
    assert all(torch.equal(value, before[name]) for name, value in case.model.state_dict().items())


def test_gauss_newton_is_the_hessian_of_a_network_that_is_linear_in_its_weights() -> None:
    case = networks.case(nn.Linear(5, 3), (5,))
    product = CurvatureProducts(case.model, case.point, case.data, kind="ggn")
    torch.testing.assert_close(product(torch.eye(18, dtype=torch.float64)), case.matrix, rtol=1e-10, atol=1e-12)


def test_gauss_newton_of_a_deep_network_is_symmetric_and_not_negative() -> None:
    case = small("smooth")
    product = CurvatureProducts(case.model, case.point, case.data, kind="ggn")
    matrix = product(torch.eye(len(case.point), dtype=torch.float64))
    torch.testing.assert_close(matrix, matrix.T, rtol=0, atol=1e-12)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-12
    assert (matrix - case.matrix).norm() > 1e-2


@pytest.mark.parametrize("name", ["smooth", "convolutional"])
def test_largest_and_smallest_eigenvalues_are_those_of_the_full_hessian(name: str) -> None:
    case = small(name)
    expected = torch.linalg.eigvalsh(case.matrix).numpy()
    found = curvature(case.model, case.point, case.data, top=10, lowest=3, density=False)
    assert found.converged
    np.testing.assert_allclose(found.eigenvalues, expected[::-1][:10], atol=1e-6)
    np.testing.assert_allclose(found.lowest, expected[:3], atol=1e-6)
    residuals = found.eigenvectors @ case.matrix - torch.from_numpy(found.eigenvalues)[:, None] * found.eigenvectors
    np.testing.assert_allclose(residuals.norm(dim=1), found.residuals, atol=1e-8)
    torch.testing.assert_close(
        found.eigenvectors @ found.eigenvectors.T, torch.eye(10, dtype=torch.float64), rtol=0, atol=1e-10
    )


def test_a_float32_network_gives_the_same_eigenvalues_to_its_precision() -> None:
    case = small("convolutional")
    expected = torch.linalg.eigvalsh(case.matrix).numpy()[::-1][:5]
    model = networks.convolutional()
    found = curvature(model, case.point, (case.data[0].float(), case.data[1]), top=5, density=False)
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-4)


def test_restarts_find_the_same_eigenvalues_in_less_memory() -> None:
    matrix = torch.diag(torch.linspace(0, 1, 400, dtype=torch.float64) ** 4)
    found = eigenpairs(
        lambda rows: rows.double() @ matrix,
        400,
        Wanted(top=6, lowest=0),
        like=torch.empty(0, dtype=torch.float64),
        basis=24,
        tolerance=1e-7,
        most_products=2000,
    )
    assert found.products > 24
    assert found.converged.all()
    np.testing.assert_allclose(found.values, matrix.diagonal()[-6:], atol=1e-9)


def test_a_repeated_eigenvalue_is_found_as_often_as_it_occurs() -> None:
    values = torch.tensor([3.0] * 3 + [1.0] * 30 + [-2.0] * 2, dtype=torch.float64)
    found = eigenpairs(
        lambda rows: rows * values,
        35,
        Wanted(above=1.5),
        like=torch.empty(0, dtype=torch.float64),
        basis=35,
        most_products=100,
    )
    np.testing.assert_allclose(found.values, [-2, -2, 3, 3, 3], atol=1e-10)


def test_the_trace_lies_in_its_interval_for_95_of_100_seeds() -> None:
    matrix = small("smooth").matrix
    values, vectors = np.linalg.eigh(matrix.numpy())
    known = values[-5:], torch.from_numpy(vectors[:, -5:].T.copy())
    inside = 0
    for seed in range(100):
        trace, _ = quadrature(lambda rows: rows @ matrix, len(matrix), known, probes=10, steps=1, seed=seed)
        low, high = trace.interval()
        inside += low <= values.sum() <= high
    assert 90 <= inside <= 99  # 95 expected; the seeds are fixed


@pytest.mark.drill
@pytest.mark.parametrize("name", ["smooth", "convolutional", "population"])
def test_the_trace_of_a_network_lies_in_its_interval_for_95_of_100_seeds(name: str) -> None:
    case = small(name)
    exact = float(case.matrix.trace())
    inside = []
    for seed in range(500):
        found = curvature(case.model, case.point, case.data, top=4, lowest=1, density=False, seed=seed)
        low, high = found.trace_interval
        inside.append(low <= exact <= high)
    hundreds = np.array(inside).reshape(5, 100).sum(axis=1)
    print(f"{name}: inside the interval in {hundreds.tolist()} of 100 seeds each")
    assert abs(hundreds.mean() - 95) < 3  # three standard deviations of 500 throws


def test_the_density_has_the_moments_of_the_spectrum() -> None:
    case = small("convolutional")
    found = curvature(case.model, case.point, case.data, top=8, lowest=2, probes=20, density_steps=12)
    assert found.density is not None
    size = len(case.point)
    assert found.density.weights.sum() == pytest.approx(1)
    assert found.density.moment(1) == pytest.approx(found.trace / size, rel=1e-9)
    assert found.density.moment(1) == pytest.approx(float(case.matrix.trace()) / size, abs=4 * found.trace_error / size)
    assert found.density.moment(2) == pytest.approx(float((case.matrix**2).sum()) / size, rel=0.1)
    grid = np.linspace(found.lowest[0] - 1, found.eigenvalues[0] + 1, 4001)
    assert np.trapezoid(found.density.smooth(grid, 0.05), grid) == pytest.approx(1, abs=1e-3)


def test_student_quantiles_are_those_of_the_tables() -> None:
    for freedom, expected in ((1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (19, 2.093), (30, 2.042)):
        assert student_t_975(freedom) == pytest.approx(expected, abs=0.006)


def test_weights_come_as_state_dict_vector_module_or_path(tmp_path: Path) -> None:
    case = small("smooth")
    state = case.model.state_dict()
    save_file(state, tmp_path / "minimum.safetensors")
    torch.save(state, tmp_path / "minimum.pt")
    forms = [state, case.point, case.model, tmp_path / "minimum.safetensors", str(tmp_path / "minimum.pt")]
    found = [curvature(networks.smooth().double(), form, case.data, top=1, probes=0).eigenvalues for form in forms]
    assert all(np.array_equal(found[0], other) for other in found)


def test_weights_that_do_not_move_are_left_out_of_the_matrix() -> None:
    case = small("smooth")
    last = torch.linalg.eigvalsh(case.matrix[-24:, -24:]).numpy()
    found = curvature(case.model, case.model, case.data, top=3, lowest=1, probes=0, parameters="4.*")
    assert found.dimension == 24
    np.testing.assert_allclose([*found.eigenvalues, *found.lowest], last[[-1, -2, -3, 0]], atol=1e-6)
    frozen = deepcopy(case.model)
    for parameter in frozen[:4].parameters():  # type: ignore[index]
        parameter.requires_grad_(False)
    same = curvature(frozen, case.model, case.data, top=3, lowest=1, probes=0)
    np.testing.assert_array_equal(same.eigenvalues, found.eigenvalues)


def test_progress_counts_products_and_cancel_stops_the_work() -> None:
    case = small("smooth")
    seen: list[tuple[int, int]] = []
    found = curvature(case.model, case.point, case.data, top=2, progress=lambda *done: seen.append(done))
    assert seen[-1] == (found.products, found.products)
    assert all(done <= total for done, total in seen)
    with pytest.raises(Cancelled):
        curvature(case.model, case.point, case.data, top=2, cancelled=lambda: len(seen) > 0)


class TwiceForbidden(torch.autograd.Function):
    @staticmethod
    def forward(_context: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(_context: object, gradient: Tensor) -> Tensor:
        return gradient


class Rough(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return TwiceForbidden.apply(super().forward(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "top is 0; the network has 143 weights: give 1 to 143"),
        ({"top": 144}, "top is 144; the network has 143 weights"),
        ({"probes": 1}, "probes is 1; a standard error needs 2 or more"),
        ({"split": "test"}, "split is 'test'; the data has 'train'"),
        ({"samples": 61}, "samples is 61; the split has 60"),
        ({"kind": "fisher"}, "kind is 'fisher'; use one of 'hessian', 'ggn'"),
        ({"batch_norm": "running"}, "batch_norm is 'running'; use one of 'population', 'frozen'"),
        ({"memory_limit": 1000}, "top=20 needs 184 vectors of 143 weights, 0.00021 GB; the limit is 1e-06 GB"),
        ({"weights": torch.ones(3)}, r"weights has shape \(3,\)"),
        ({"model": Rough(6, 3).double(), "weights": Rough(6, 3)}, "cannot be differentiated twice"),
    ],
)
def test_bad_inputs_are_named_before_the_work(options: dict[str, object], message: str) -> None:
    case = small("smooth")
    given = {"model": case.model, "weights": case.point, "data": case.data, **options}
    with pytest.raises(ValueError, match=message):
        curvature(**given, progress=lambda *_: pytest.fail("work has started"))  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"weights: there is no file 'no/such\.pt'"):
        curvature(case.model, "no/such.pt", case.data)


def squared(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The loss of `mse`, as a function."""
    return ((model(batch[0]) - batch[1]) ** 2).mean(dim=1)


@pytest.mark.parametrize("loss", ["mse", squared])
def test_other_losses_have_their_own_hessian(loss: object) -> None:
    case = small("smooth")
    target = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))

    def mean(vector: Tensor) -> Tensor:
        output = torch.func.functional_call(case.model, views(case.model, vector), (case.data[0],))
        return ((output - target) ** 2).mean()

    expected = torch.func.hessian(mean)(case.point).detach()
    vectors = torch.eye(len(case.point), dtype=torch.float64)[::9]
    for block in (None, 16):
        product = CurvatureProducts(case.model, case.point, (case.data[0], target), loss=loss, block=block)  # type: ignore[arg-type]
        torch.testing.assert_close(product(vectors), expected[::9], rtol=1e-9, atol=1e-12)


def test_gauss_newton_of_a_squared_error_is_the_square_of_the_derivative() -> None:
    case = small("smooth")
    target = torch.zeros(60, 3, dtype=torch.float64)
    jacobian = torch.func.jacrev(
        lambda vector: torch.func.functional_call(case.model, views(case.model, vector), (case.data[0],)).flatten()
    )(case.point)
    product = CurvatureProducts(case.model, case.point, (case.data[0], target), kind="ggn", loss="mse")
    vectors = torch.eye(len(case.point), dtype=torch.float64)[::20]
    expected = (2 / (60 * 3) * jacobian.T @ jacobian).detach()[::20]
    torch.testing.assert_close(product(vectors), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="kind='ggn' needs the output of the network: use a loss by name"):
        CurvatureProducts(case.model, case.point, (case.data[0], target), kind="ggn", loss=squared)
