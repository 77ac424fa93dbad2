"""A plane that is added to an experiment later: its spec with the plane, which is all that is computed anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.spec_parts import Plane


def plane_through(spec: Spec, points: tuple[str, str, str]) -> str | None:
    """The plane that already goes through three points, in any order."""
    known = spec.all_planes.items()
    return next(
        (name for name, plane in known if plane.through is not None and set(plane.through) == set(points)), None
    )


def with_plane(spec: Spec, plane: Mapping[str, Any], name: str | None = None) -> tuple[str, Spec]:
    """The spec with one plane more, and its name. Raises a ValidationError if the plane or its name is wrong."""
    planes = {key: _given(known) for key, known in spec.all_planes.items()}
    taken = {*planes, *spec.minima, *spec.all_curves}
    chosen = name or next(f"plane{number}" for number in range(1, len(taken) + 2) if f"plane{number}" not in taken)
    planes[chosen] = dict(plane)
    return chosen, Spec.model_validate(spec.to_json() | {"planes": planes})


def extends(spec: Spec, before: Spec) -> bool:
    """Whether a spec is another one with planes added, so that results of the first are results of both."""
    fields = set(Spec.model_fields) - {"planes"}
    if any(getattr(spec, field) != getattr(before, field) for field in fields):
        return False
    planes = spec.all_planes
    return all(planes.get(name) == plane for name, plane in before.all_planes.items())


def _given(plane: Plane) -> dict[str, Any]:
    return plane.model_dump(mode="json", exclude_unset=True)
