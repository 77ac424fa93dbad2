"""Planes: orthonormality, coordinates, grids through the minima, degenerate points."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape.geometry.curves import Bezier
from valleyscope.landscape.geometry.grid_axes import through_both, through_zero
from valleyscope.landscape.geometry.planes import Plane
from valleyscope.landscape.geometry.random_directions import filter_normalised
from valleyscope.landscape.geometry.vectors import flatten, views


def three(size: int = 1000, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_directions_are_orthonormal(dtype: torch.dtype) -> None:
    plane = Plane.through(*three(100_000, dtype))
    u, v = plane.u.double(), plane.v.double()
    assert float(u @ u) == pytest.approx(1, abs=1e-12)
    assert float(v @ v) == pytest.approx(1, abs=1e-12)
    assert abs(float(u @ v)) < 1e-12


def test_nearly_collinear_points_give_orthonormal_directions_too() -> None:
    a, b, noise = three(100_000)
    plane = Plane.through(a, b, (a + b) / 2 + 1e-3 * noise)
    assert abs(float(plane.u @ plane.v)) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coordinates_and_point_are_inverse_to_each_other(dtype: torch.dtype) -> None:
    points = three(dtype=dtype)
    plane = Plane.through(*points)
    for w in points:
        back = plane.point(*plane.coordinates(w))
        assert back.dtype == dtype
        assert float(torch.dist(back.double(), w.double())) <= 1e-6 * float(w.double().norm())
        assert plane.distance(w) <= 1e-6 * float(w.double().norm())
    x, y = plane.coordinates(plane.point(3.0, -2.0))
    assert (x, y) == pytest.approx((3.0, -2.0), rel=1e-5)


def test_origin_is_exact() -> None:
    a, b, c = three()
    assert torch.equal(Plane.through(a, b, c).point(0.0, 0.0), a)


def test_named_points_have_the_geometry_of_weight_space() -> None:
    a, b, c = three(dtype=torch.float64)
    plane = Plane.through(a, b, c, names=("sgd", "altsdp", "control"))
    assert plane.points["sgd"] == (0.0, 0.0)
    assert plane.points["altsdp"] == pytest.approx((float(torch.dist(a, b)), 0.0))
    assert plane.points["altsdp"][1] == 0.0
    assert plane.minima_distance == plane.points["altsdp"][0]
    place = np.array(plane.points["control"])
    assert place[1] > 0
    assert np.linalg.norm(place) == pytest.approx(float(torch.dist(a, c)))
    assert np.linalg.norm(place - plane.points["altsdp"]) == pytest.approx(float(torch.dist(b, c)))


def test_distance_measures_how_far_a_point_lies_off_the_plane() -> None:
    a, b, c = torch.eye(5, dtype=torch.float64)[:3]
    plane = Plane.through(a, b, c)
    off = plane.point(0.4, 0.7) + 3.0 * torch.eye(5, dtype=torch.float64)[4]
    assert plane.distance(off) == pytest.approx(3.0)
    assert plane.coordinates(off) == pytest.approx((0.4, 0.7))


def test_numpy_vectors_have_coordinates_too() -> None:
    a, b, c = three()
    plane = Plane.through(a, b, c)
    off = c + torch.randn(1000, generator=torch.Generator().manual_seed(9))
    assert plane.coordinates(off.numpy()) == plane.coordinates(off)
    assert plane.distance(off.numpy()) == plane.distance(off)
    np.testing.assert_array_equal(plane.project(np.stack([b, off])), plane.project([b, off]))


def test_basis_times_coefficients_is_a_point_of_the_plane() -> None:
    plane = Plane.through(*three(dtype=torch.float64))
    torch.testing.assert_close(torch.tensor([1.0, 2.0, 3.0]).double() @ plane.basis, plane.point(2.0, 3.0))
    assert Plane.through(*three()).basis.dtype == torch.float32


def test_curve_is_traced_by_its_projected_points() -> None:
    points = three(dtype=torch.float64)
    plane = Plane.through(*points)
    curve = Bezier([points[0], points[2], points[1]])
    trace = plane.trace(curve, [0, 0.3, 1])
    for t, place in zip([0, 0.3, 1], trace, strict=True):
        np.testing.assert_allclose(place, plane.coordinates(curve.point(t)), atol=1e-10)


def test_equal_points_are_refused_by_name() -> None:
    a, _, c = three()
    with pytest.raises(ValueError, match=r"'sgd' and 'altsdp' are equal \(distance 0\)"):
        Plane.through(a, a.clone(), c, names=("sgd", "altsdp", "bend"))


@pytest.mark.parametrize("t", [0.5, 2.0, 1.0])
def test_points_in_one_line_are_refused_even_after_rounding(t: float) -> None:
    a, b, _ = three()
    with pytest.raises(ValueError, match="'sgd', 'altsdp' and 'bend' lie in one line"):
        Plane.through(a, b, a + t * (b - a), names=("sgd", "altsdp", "bend"))


def test_a_missing_direction_is_completed_by_a_seeded_random_one_and_said() -> None:
    a, b, _ = three()
    plane = Plane.through(a, b, (a + b) / 2, complete="random", seed=4)
    assert "lie in one line" in plane.note
    assert "second axis is a random direction (seed 4)" in plane.note
    assert abs(float(plane.u @ plane.v)) < 1e-12
    assert torch.equal(plane.v, Plane.through(a, b, (a + b) / 2, complete="random", seed=4).v)
    assert not torch.equal(plane.v, Plane.through(a, b, (a + b) / 2, complete="random", seed=5).v)
    assert plane.points["c"] == pytest.approx((plane.points["b"][0] / 2, 0.0))


def test_the_distinct_point_gets_the_first_axis_when_two_are_equal() -> None:
    a, _, c = three()
    plane = Plane.through(a, a, c, complete="random")
    assert plane.points["b"] == (0.0, 0.0)
    assert plane.points["c"] == pytest.approx((float(torch.dist(a, c)), 0.0))
    same = Plane.through(a, a, a, complete="random")
    assert "both axes are random directions" in same.note
    x, y = same.axes(5)
    assert 0.0 in x
    assert 0.0 in y


def test_a_complete_plane_has_no_note() -> None:
    assert Plane.through(*three()).note == ""


def test_bad_points_of_a_plane_are_named() -> None:
    a, b, c = three()
    with pytest.raises(ValueError, match=r"'c': \(999,\)"):
        Plane.through(a, b, c[:-1])
    c[7] = math.nan
    with pytest.raises(ValueError, match="point 'c' has 1 of 1000 values that are not finite"):
        Plane.through(a, b, c)
    with pytest.raises(ValueError, match="three different names"):
        Plane.through(a, b, b, names=("a", "a", "b"))
    with pytest.raises(ValueError, match="'zeros'"):
        Plane.through(a, b, b, complete="zeros")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not orthonormal"):
        Plane(a, a, b)


@settings(deadline=None)
@given(
    resolution=st.integers(3, 60),
    distance=st.floats(1e-3, 1e3),
    extra=st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)),
)
def test_grid_goes_through_the_minima_and_frames_all_points(
    resolution: int, distance: float, extra: tuple[float, float]
) -> None:
    a = torch.zeros(3, dtype=torch.float64)
    b = torch.tensor([distance, 0.0, 0.0], dtype=torch.float64)
    c = torch.tensor([0.2 * distance, 0.1 * distance, 0.0], dtype=torch.float64)
    plane = Plane.through(a, b, c)
    place = (extra[0] * distance, extra[1] * distance)
    x, y = plane.axes(resolution, {"other": place})
    assert x.shape == y.shape == (resolution,)
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all()
    assert 0.0 in x
    assert plane.points["b"][0] in x
    assert 0.0 in y
    tiny = 1e-9 * distance
    if resolution > 6:
        assert x[0] <= min(0.0, place[0]) + tiny
        assert x[-1] >= max(distance, place[0]) - tiny
    assert y[0] <= min(-0.5 * distance, place[1]) + tiny
    assert y[-1] >= max(0.5 * distance, place[1]) - tiny


def test_default_grid_of_two_minima_has_even_steps_and_the_margin() -> None:
    plane = Plane.through(*torch.tensor([[0.0, 0.0], [10.0, 0.0], [5.0, 1.0]]))
    x, y = plane.axes(41)
    np.testing.assert_allclose(np.diff(x), 10 / 28)
    assert x[0] <= -2
    assert x[-1] >= 12
    np.testing.assert_allclose(np.diff(y), y[1] - y[0])
    assert (y[0], y[-1]) == pytest.approx((-5, 5))
    columns, rows = plane.axes((11, 7))
    assert (len(columns), len(rows)) == (11, 7)


@settings(deadline=None)
@given(low=st.floats(-100, 0), high=st.floats(0.01, 100), count=st.integers(3, 99))
def test_grid_through_zero_covers_its_range(low: float, high: float, count: int) -> None:
    lines = through_zero(low, high, count)
    assert len(lines) == count
    assert 0.0 in lines
    assert lines[0] <= low + 1e-9 * high
    assert lines[-1] >= high * (1 - 1e-9)
    assert np.allclose(np.diff(lines), lines[1] - lines[0])


def test_minima_stay_grid_points_where_the_grid_is_too_coarse_for_them() -> None:
    lines = through_both(-10.0, 1000.0, 1.0, 11)
    assert 0.0 in lines
    assert 1.0 in lines
    assert lines[-1] >= 1000
    assert (np.diff(lines) > 0).all()


def test_range_of_the_caller_is_taken_as_it_is() -> None:
    plane = Plane.through(*three())
    x, y = plane.axes(5, range=((-1, 3), (0, 1)))
    np.testing.assert_array_equal(x, [-1, 0, 1, 2, 3])
    np.testing.assert_array_equal(y, [0, 0.25, 0.5, 0.75, 1])
    with pytest.raises(ValueError, match=r"range of y is \(1, 1\)"):
        plane.axes(5, range=((-1, 3), (1, 1)))


@pytest.mark.parametrize("resolution", [2, 0, -1, (41, 2), 100_000])
def test_resolution_outside_of_the_sensible_is_refused(resolution: int | tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"a grid (needs 3 or more|has at most 2001) points a side"):
        Plane.through(*three()).axes(resolution)


@pytest.mark.parametrize("resolution", [4.5, "41", True, (3, 4, 5)])
def test_resolution_is_a_whole_number(resolution: object) -> None:
    with pytest.raises(ValueError, match="one whole number or a pair"):
        Plane.through(*three()).axes(resolution)  # type: ignore[arg-type]


def test_random_direction_has_the_norm_of_every_filter() -> None:
    model = network()
    weights = flatten(model)
    views(model, weights)["0.weight"][2] = 0.0
    direction = filter_normalised(model, weights, torch.Generator().manual_seed(0))
    drawn, given_weights = views(model, direction), views(model, weights)
    for name in ("0.weight", "3.weight"):
        torch.testing.assert_close(
            drawn[name].flatten(1).norm(dim=1), given_weights[name].double().flatten(1).norm(dim=1)
        )
    assert not drawn["0.weight"][2].any()
    for name in ("0.bias", "1.weight", "1.bias", "3.bias"):
        assert not drawn[name].any()


def test_random_direction_moves_biases_on_request() -> None:
    model = network()
    direction = filter_normalised(model, flatten(model), torch.Generator().manual_seed(0), biases=True)
    assert float(views(model, direction)["1.weight"].norm()) == pytest.approx(2.0)


def test_filter_normalised_plane_does_not_see_the_scale_of_a_filter() -> None:
    """Scaling all weights by two scales the plane by two: the picture in relative units stays."""
    model = network()
    small = Plane.around(flatten(model), model, seed=3)
    large = Plane.around(2 * flatten(model), model, seed=3)
    assert small.scale is not None
    assert large.scale is not None
    torch.testing.assert_close(small.u, large.u)
    assert np.array(large.scale) == pytest.approx(2 * np.array(small.scale))


def test_plane_around_a_minimum_is_orthonormal_seeded_and_one_unit_wide() -> None:
    model = network()
    plane = Plane.around(model.state_dict(), model, seed=1, name="sgd")
    assert plane.kind == "around"
    assert abs(float(plane.u @ plane.v)) < 1e-12
    assert torch.equal(plane.u, Plane.around(model.state_dict(), model, seed=1).u)
    assert not torch.equal(plane.u, Plane.around(model.state_dict(), model, seed=2).u)
    assert plane.scale is not None
    x, y = plane.axes(11)
    assert (x[0], x[5], x[-1]) == pytest.approx((-plane.scale[0], 0, plane.scale[0]))
    assert (y[0], y[5], y[-1]) == pytest.approx((-plane.scale[1], 0, plane.scale[1]))


def test_weights_that_are_all_zero_have_no_filter_normalised_plane() -> None:
    model = network()
    vector_to_parameters(torch.zeros_like(flatten(model)), model.parameters())
    with pytest.raises(ValueError, match="biases=True"):
        Plane.around(flatten(model), model)


def test_principal_plane_is_the_singular_value_decomposition_around_the_last_point() -> None:
    generator = torch.Generator().manual_seed(2)
    path = torch.cumsum(torch.randn(12, 300, generator=generator, dtype=torch.float64), 0)
    plane = Plane.principal(path, names={"start": 0, "middle": 6, "end": 11})
    matrix = (path[:-1] - path[-1]).numpy()
    _, singular, right = np.linalg.svd(matrix, full_matrices=False)
    assert abs(float(plane.u.numpy() @ right[0])) == pytest.approx(1, abs=1e-9)
    assert abs(float(plane.v.numpy() @ right[1])) == pytest.approx(1, abs=1e-9)
    assert plane.explained == pytest.approx(tuple(singular[:2] ** 2 / (singular**2).sum()))
    assert plane.trajectory is not None
    np.testing.assert_allclose(np.abs(plane.trajectory[:-1]), np.abs(matrix @ right[:2].T), atol=1e-8)
    assert plane.points["end"] == (0.0, 0.0)
    assert plane.points["middle"] == pytest.approx(tuple(plane.trajectory[6]))
    assert min(plane.points["start"]) >= 0
    x, y = plane.axes(21)
    assert x[0] <= plane.trajectory[:, 0].min()
    assert y[-1] >= plane.trajectory[:, 1].max()
    assert 0.0 in x
    assert 0.0 in y


def test_trajectory_in_a_plane_is_explained_in_full() -> None:
    u, v = torch.linalg.qr(torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q.T
    path = torch.stack([10 * (1 - s) * u + (1 - s) ** 2 * v for s in torch.linspace(0, 1, 9)])
    plane = Plane.principal(path)
    assert plane.explained is not None
    assert sum(plane.explained) == pytest.approx(1)
    assert max(plane.distance(w) for w in path) < 1e-9


def test_trajectory_in_one_line_is_refused_or_completed() -> None:
    a, b, _ = three()
    path = torch.stack([a + s * (b - a) for s in (0.0, 0.3, 0.6, 1.0)])
    with pytest.raises(ValueError, match="stays in one line"):
        Plane.principal(path)
    plane = Plane.principal(path, complete="random", seed=9)
    assert "random (seed 9)" in plane.note
    with pytest.raises(ValueError, match="three or more"):
        Plane.principal(path[:2])


def test_state_dicts_are_refused_with_the_remedy_and_arrays_are_taken() -> None:
    states = [nn.Linear(2, 2).state_dict() for _ in range(3)]
    for make in (lambda: Plane.through(*states), lambda: Plane.principal(states)):
        with pytest.raises(ValueError, match=r"is a state dict; give a flat vector: flatten\(model, state_dict\)"):
            make()
    arrays = [np.eye(4)[index] for index in range(3)]
    for plane in (Plane.through(*arrays), Plane.principal(arrays), Plane.principal(np.stack(arrays))):
        assert plane.distance(arrays[1]) == pytest.approx(0.0, abs=1e-6)
