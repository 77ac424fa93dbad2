"""Planes in weight space: an origin and two orthonormal directions.

Coordinates are distances in weight space along the two directions, so both axes have the same unit. Directions are
kept in float64 and every inner product is accumulated in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.geometry.grid_axes import axes_over_range, grid_axes
from valleyscope.landscape.geometry.inner_products import chunks, dot, norm
from valleyscope.landscape.geometry.orthonormal import (
    COLLINEAR_SINE,
    complete_basis,
    normalised,
    orthogonal_part,
    principal_directions,
    rounding_noise,
)
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.random_directions import filter_normalised
from valleyscope.landscape.geometry.vectors import Weights, as_vector, check_finite, flat_tensor

Floats = NDArray[np.float64]
Coordinates = tuple[float, float]
Vector = Tensor | NDArray[np.floating]
"""A flat vector of weights."""


@dataclass(frozen=True, eq=False)
class Plane:
    """The points ``origin + x u + y v`` with orthonormal u and v.

    ``points`` has the coordinates of the named points that define the plane, ``note`` a remark for the figure.
    ``scale`` is the length of the random directions before they were normalised, ``explained`` the share of a
    trajectory's squared distances from its last point that each principal direction carries, and ``trajectory`` its
    projection [n, 2].
    """

    origin: Tensor
    u: Tensor
    v: Tensor
    points: Mapping[str, Coordinates] = field(default_factory=dict)
    kind: Literal["through", "around", "principal"] = "through"
    note: str = ""
    scale: Coordinates | None = None
    explained: Coordinates | None = None
    trajectory: Floats | None = None

    def __post_init__(self) -> None:
        shapes = {name: tuple(getattr(self, name).shape) for name in ("origin", "u", "v")}
        if len(set(shapes.values())) != 1 or self.origin.dim() != 1:
            raise ValueError(f"origin, u and v of a plane are flat vectors of one length, got shapes {shapes}")
        lengths, product = (norm(self.u), norm(self.v)), dot(self.u, self.v)
        if not max(abs(lengths[0] - 1), abs(lengths[1] - 1), abs(product)) <= 1e-5:
            raise ValueError(
                f"u and v are not orthonormal (lengths {lengths[0]:.6g} and {lengths[1]:.6g}, inner product "
                f"{product:.6g}); Plane.through makes orthonormal directions from points"
            )

    def __repr__(self) -> str:
        return f"Plane({self.kind}, {self.origin.numel()} weights, points {', '.join(self.points) or 'none'})"

    @classmethod
    def through(
        cls,
        a: Weights,
        b: Weights,
        c: Weights,
        *,
        names: Sequence[str] = ("a", "b", "c"),
        complete: Literal["random"] | None = None,
        seed: int = 0,
        model: nn.Module | None = None,
        parameters: Parameters = None,
    ) -> Plane:
        """The plane of three networks: origin a, u along b - a, v along c - a less its part along u.

        They are flat vectors or modules; with ``model`` also state dicts and paths, of which the ``parameters`` move.
        Points that are equal or in one line span no plane: that is an error, or with ``complete="random"`` the missing
        direction is a random orthogonal one, as ``note`` then says.

        >>> plane = Plane.through(torch.zeros(3), torch.tensor([2.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 0.0]))
        >>> plane.points["c"]
        (1.0, 1.0)
        """
        _check_complete(complete)
        vectors = _three_vectors([a, b, c], names, model, parameters)
        origin, noise = vectors[0], rounding_noise(vectors)
        directions: list[Tensor] = []
        problems: list[str] = []
        for name, vector in zip(names[1:], vectors[1:], strict=True):
            offset = vector.to(torch.float64) - origin.to(torch.float64)
            rest = orthogonal_part(offset, directions)
            length, height = norm(offset), norm(rest)
            if length <= noise:
                problems.append(f"{names[0]!r} and {name!r} are equal (distance {length:.3g})")
            elif height <= max(COLLINEAR_SINE * length, noise):
                sine = height / length
                line = f"{names[0]!r}, {names[1]!r} and {name!r} lie in one line"
                problems.append(f"{line} (sine of the angle {sine:.3g})")
            else:
                directions.append(rest / height)
        if problems and complete is None:
            raise ValueError(
                f"points {', '.join(map(repr, names))} span no plane: {'; '.join(problems)}. Choose another third "
                "point, or complete='random' for a random orthogonal direction"
            )
        note, scale = "", None
        if problems:
            random_axes = "the second axis is a random direction" if directions else "both axes are random directions"
            note = f"{'; '.join(problems)}: {random_axes} (seed {seed})"
            scale = None if directions else (norm(origin) or 1.0,) * 2
            directions = complete_basis(directions, origin, seed)
        places = _project(origin, directions, vectors)
        places[np.abs(places) <= noise] = 0.0
        points = {name: (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)}
        u, v = directions
        return cls(origin, u, v, points, note=note, scale=scale)

    @classmethod
    def around(
        cls,
        w: Weights,
        model: nn.Module,
        seed: int = 0,
        *,
        name: str = "minimum",
        biases: bool = False,
        parameters: Parameters = None,
    ) -> Plane:
        """The plane of two filter-normalised random directions (Li et al. 2018) around one minimum.

        They are then made orthonormal; ``scale`` keeps their filter-normalised lengths, so one unit of Li et al. is
        ``scale`` in these coordinates, and the default range is one such unit to each side. With ``biases``, biases
        and BatchNorm parameters vary, too.
        """
        origin = as_vector(model, w, name, parameters)
        generator = torch.Generator().manual_seed(seed)
        first, second = (
            filter_normalised(model, origin, generator, biases=biases, parameters=parameters) for _ in range(2)
        )
        lengths = (norm(first), norm(second))
        u = normalised(first)
        rest = orthogonal_part(second, [u])
        if norm(rest) <= COLLINEAR_SINE * lengths[1]:
            raise ValueError(f"{name}: all but one of its weights are zero, so its random directions span no plane")
        cosine = dot(first, second) / (lengths[0] * lengths[1])
        note = f"filter-normalised random directions around {name!r} (seed {seed}, cosine {cosine:.2g} as drawn)"
        return cls(origin, u, normalised(rest), {name: (0.0, 0.0)}, "around", note, scale=lengths)

    @classmethod
    def principal(
        cls,
        snapshots: Vector | Sequence[Weights],
        *,
        names: Mapping[str, int] | None = None,
        complete: Literal["random"] | None = None,
        seed: int = 0,
        model: nn.Module | None = None,
        parameters: Parameters = None,
    ) -> Plane:
        """The plane through the last snapshot of a trajectory that lies closest to all others (Li et al. 2018).

        Its directions are the two leading right singular vectors of the matrix with rows w_i - w_n. ``names`` names
        snapshots by their index (default: ``start`` and ``end``); the trajectory's projection is ``trajectory``.
        """
        _check_complete(complete)
        tensors = [
            flat_tensor(snapshot, f"snapshot {index}", model, parameters) for index, snapshot in enumerate(snapshots)
        ]
        shapes = {tuple(snapshot.shape) for snapshot in tensors}
        if len(shapes) > 1:
            raise ValueError(f"snapshots have the shapes {sorted(shapes)}; they are flat vectors of one length")
        path = torch.stack(tensors) if tensors else torch.empty(0, 0)
        if path.dim() != 2 or len(path) < 3:
            raise ValueError(f"snapshots have shape {tuple(path.shape)}; give three or more flat vectors as [n, D]")
        for index, snapshot in enumerate(path):
            check_finite(snapshot, f"snapshot {index}")
        directions, explained = principal_directions(path)
        note = ""
        if len(directions) < 2:
            note = "the trajectory stays in one line" if directions else "the trajectory stays in one point"
            if complete is None:
                raise ValueError(f"{note}: it spans no plane; complete='random' adds a random orthogonal direction")
            note += f": the rest of the plane is random (seed {seed})"
            directions = complete_basis(directions, path[-1], seed)
        trajectory = _project(path[-1], directions, path)
        trajectory[np.abs(trajectory) <= rounding_noise([path[-1]])] = 0.0
        named = {"start": 0, "end": len(path) - 1} if names is None else names
        points = {name: (float(trajectory[index, 0]), float(trajectory[index, 1])) for name, index in named.items()}
        u, v = directions
        return cls(path[-1], u, v, points, "principal", note, explained=explained, trajectory=trajectory)

    @property
    def basis(self) -> Tensor:
        """Origin, u and v stacked as [3, D] in the data type of the weights: a grid point is (1, x, y) @ basis."""
        return torch.stack(self.vectors)

    @property
    def vectors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Origin, u and v in the data type of the weights; not copied where they have it."""
        return self.origin, self.u.to(self.origin), self.v.to(self.origin)

    @property
    def minima_distance(self) -> float | None:
        """Distance from the origin to the first named point on the first axis; None without one."""
        reach = COLLINEAR_SINE * max((math.hypot(*place) for place in self.points.values()), default=0.0)
        return next((x for x, y in self.points.values() if x > reach and abs(y) <= reach), None)

    def point(self, x: float, y: float) -> Tensor:
        """The flat vector at coordinates (x, y), in the data type of the weights."""
        result = torch.empty_like(self.origin)
        for part in chunks(self.origin.numel()):
            result[part] = self.origin[part].to(torch.float64) + float(x) * self.u[part] + float(y) * self.v[part]
        return result

    def coordinates(self, w: Vector) -> Coordinates:
        """Coordinates of a flat vector, projected on the plane."""
        x, y = self.project([w])[0]
        return float(x), float(y)

    def distance(self, w: Vector) -> float:
        """Distance of a flat vector from the plane."""
        x, y = self.coordinates(w)
        vector, total = self._tensor(w), 0.0
        for part in chunks(self.origin.numel()):
            offset = vector[part].to(torch.float64) - self.origin[part].to(torch.float64)
            rest = offset - x * self.u[part] - y * self.v[part]
            total += float(rest @ rest)
        return math.sqrt(total)

    def project(self, vectors: Vector | Sequence[Vector]) -> Floats:
        """Coordinates of several flat vectors: [n, 2]."""
        size = self.origin.numel()
        tensors = [self._tensor(vector) for vector in vectors]
        for vector in tensors:
            if vector.shape != (size,):
                raise ValueError(
                    f"a vector has shape {tuple(vector.shape)}; the plane has flat vectors of {size} weights"
                )
        return _project(self.origin, [self.u, self.v], tensors)

    def _tensor(self, vector: Vector) -> Tensor:
        return flat_tensor(vector, "the vector").to(self.origin.device)

    def trace(self, curve: Curve, t: ArrayLike) -> Floats:
        """The curve projected on the plane at values of t: [n, 2]."""
        return np.asarray(curve.coefficients(t) @ self.project(curve.points), dtype=np.float64)

    def axes(
        self,
        resolution: int | tuple[int, int] = 41,
        points: Mapping[str, Coordinates] | None = None,
        *,
        margin: float = 0.2,
        range: tuple[Coordinates, Coordinates] | None = None,
    ) -> tuple[Floats, Floats]:
        """Grid lines (x, y) of a surface on this plane; ``resolution`` is a number, or (columns, rows).

        By default they surround the plane's points, further named ``points`` and the trajectory with a margin (a share
        of the extent), and the first two points are grid points. A ``range`` ((left, right), (bottom, top)) is used as
        it is.
        """
        if range is not None:
            return axes_over_range(resolution, range)
        places = [*self.points.values(), *(points or {}).values()]
        if self.trajectory is not None:
            places += [(float(x), float(y)) for x, y in self.trajectory]
        if self.scale is not None:
            places += [self.scale, (-self.scale[0], -self.scale[1])]
            margin = 0.0
        return grid_axes(resolution, places, distance=self.minima_distance, margin=margin)


def _project(origin: Tensor, directions: Sequence[Tensor], vectors: Tensor | Sequence[Tensor]) -> Floats:
    """Inner products of vector - origin with two orthonormal directions, in float64: [n, 2]."""
    total = torch.zeros(len(vectors), 2, dtype=torch.float64, device=origin.device)
    for part in chunks(origin.numel()):
        units = torch.stack([direction[part] for direction in directions]).to(torch.float64)
        stacked = torch.stack([vector[part].to(torch.float64) for vector in vectors])
        total += (stacked - origin[part].to(torch.float64)) @ units.T
    return np.array(total.cpu().numpy(), dtype=np.float64)


def _three_vectors(
    points: Sequence[Weights], names: Sequence[str], model: nn.Module | None, parameters: Parameters
) -> list[Tensor]:
    if len(names) != 3 or len(set(names)) != 3:
        raise ValueError(f"names are {tuple(names)}; give three different names, one for each point")
    vectors = [
        flat_tensor(point, f"point {name!r}", model, parameters) for name, point in zip(names, points, strict=True)
    ]
    shapes = {name: tuple(vector.shape) for name, vector in zip(names, vectors, strict=True)}
    if len(set(shapes.values())) != 1 or vectors[0].dim() != 1:
        raise ValueError(f"the points of a plane are flat vectors of one length, got shapes {shapes}")
    for name, vector in zip(names, vectors, strict=True):
        if not vector.is_floating_point():
            raise ValueError(f"point {name!r} has data type {vector.dtype}; weights are floating-point numbers")
        check_finite(vector, f"point {name!r}")
    return vectors


def _check_complete(complete: str | None) -> None:
    if complete not in (None, "random"):
        raise ValueError(f"complete is {complete!r}; use None (degenerate points are an error) or 'random'")
