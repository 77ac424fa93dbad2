"""Bezier curves and polygonal chains against closed forms and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from valleyscope.landscape.geometry.curves import Bezier, Curve, Line, PolyChain, curve_class, line

KINDS = [Bezier, PolyChain]


def control_points(count: int, size: int = 7, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(count), dtype=dtype)


def de_casteljau(points: torch.Tensor, t: float) -> torch.Tensor:
    """Point of a Bezier curve by repeated interpolation: an independent way."""
    while len(points) > 1:
        points = (1 - t) * points[:-1] + t * points[1:]
    return points[0]


@settings(deadline=None)
@given(count=st.integers(2, 8), t=st.floats(0, 1))
def test_bezier_equals_repeated_interpolation(count: int, t: float) -> None:
    points = control_points(count)
    torch.testing.assert_close(Bezier(points).point(t), de_casteljau(points, t), rtol=1e-12, atol=1e-12)


def test_quadratic_bezier_is_the_formula_of_garipov() -> None:
    first, bend, last = control_points(3)
    for t in np.linspace(0, 1, 11):
        expected = (1 - t) ** 2 * first + 2 * t * (1 - t) * bend + t**2 * last
        torch.testing.assert_close(Bezier([first, bend, last]).point(t), expected)


@settings(deadline=None)
@given(count=st.integers(2, 8), t=st.floats(0, 1))
def test_chain_interpolates_between_its_neighbouring_points(count: int, t: float) -> None:
    points = control_points(count)
    segment = min(int(t * (count - 1)), count - 2)
    inside = t * (count - 1) - segment
    expected = (1 - inside) * points[segment] + inside * points[segment + 1]
    torch.testing.assert_close(PolyChain(points).point(t), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_curve_starts_and_ends_at_its_minima_bit_by_bit(kind: type[Curve], dtype: torch.dtype) -> None:
    points = control_points(4, dtype=dtype)
    curve = kind(points)
    assert torch.equal(curve.point(0.0), points[0])
    assert torch.equal(curve.point(1.0), points[-1])
    assert curve.point(0.3).dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(count=st.integers(2, 9), t=st.floats(0, 1))
def test_coefficients_are_weights_that_sum_to_one(kind: type[Curve], count: int, t: float) -> None:
    rows = kind(control_points(count)).coefficients(t)
    assert rows.shape == (1, count)
    assert rows.dtype == np.float64
    assert rows.min() >= 0
    assert rows.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_coefficients_times_control_points(kind: type[Curve]) -> None:
    curve = kind(control_points(5))
    t = np.linspace(0, 1, 9)
    expected = torch.from_numpy(curve.coefficients(t)) @ curve.points
    torch.testing.assert_close(torch.stack([curve.point(value) for value in t]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_reversed_points_run_the_same_path_backwards(kind: type[Curve]) -> None:
    points = control_points(4)
    torch.testing.assert_close(kind(points).point(0.3), kind(points.flip(0)).point(0.7))
    assert kind(points).length() == pytest.approx(kind(points.flip(0)).length())


@pytest.mark.parametrize("kind", KINDS)
def test_arc_length_is_the_limit_of_inscribed_polygons(kind: type[Curve]) -> None:
    curve = kind(control_points(4))
    t = np.linspace(0, 1, 6001)
    path = curve.coefficients(t) @ curve.points.numpy()
    polygon = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    np.testing.assert_allclose(curve.arc(t), polygon, atol=1e-5)
    assert curve.length() == pytest.approx(polygon[-1], rel=1e-6)


def test_length_of_a_quadratic_bezier_is_its_closed_form() -> None:
    """For the parabola y = 2 x (1 - x) from (0, 0) to (1, 0): integral of sqrt(1 + (2 - 4 x)^2)."""
    curve = Bezier([torch.tensor([0.0, 0.0]), torch.tensor([0.5, 1.0]), torch.tensor([1.0, 0.0])])
    assert curve.length() == pytest.approx((2 * math.sqrt(5) + math.asinh(2)) / 4, rel=1e-9)


def test_degenerate_bezier_on_a_line_is_as_long_as_the_way_travelled() -> None:
    """Control points 0, 1, 0 go to 1/2 and back."""
    curve = Bezier(torch.tensor([[0.0], [1.0], [0.0]]))
    assert curve.length() == pytest.approx(1.0)


def test_line_is_the_shortest_curve_with_even_speed() -> None:
    start, end = control_points(2)
    straight = line(start, end)
    assert isinstance(straight, Line)
    assert straight.length() == pytest.approx(float(torch.dist(start, end)))
    np.testing.assert_allclose(straight.arc([0, 0.25, 1]), straight.length() * np.array([0, 0.25, 1]))
    assert straight.length() < Bezier(torch.stack([start, torch.zeros(7).double(), end])).length()


def test_bend_is_the_single_free_point() -> None:
    points = control_points(3)
    assert torch.equal(Bezier(points).bend, points[1])
    assert torch.equal(Bezier(control_points(4)).bends, control_points(4)[1:3])
    with pytest.raises(ValueError, match="2 bends"):
        _ = Bezier(control_points(4)).bend
    with pytest.raises(ValueError, match="0 bends"):
        _ = line(points[0], points[1]).bend


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("t", [-1e-9, 1.0000001, math.nan, math.inf])
def test_t_outside_of_the_unit_interval_is_refused(kind: type[Curve], t: float) -> None:
    curve = kind(control_points(3))
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        curve.point(t)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        curve.arc([0.5, t])


def test_points_of_different_shapes_are_refused_by_shape() -> None:
    with pytest.raises(ValueError, match=r"\(3,\), \(4,\)"):
        Bezier([torch.zeros(3), torch.zeros(4)])
    with pytest.raises(ValueError, match="two or more"):
        Bezier(torch.zeros(1, 4))
    with pytest.raises(ValueError, match="two points"):
        Line(torch.zeros(3, 4))
    with pytest.raises(ValueError, match="floating-point"):
        PolyChain(torch.zeros(3, 4, dtype=torch.int64))


def test_unknown_kind_of_curve_is_refused_with_the_known_ones() -> None:
    assert curve_class("bezier") is Bezier
    with pytest.raises(ValueError, match="'spline'; known are bezier, polychain"):
        curve_class("spline")
