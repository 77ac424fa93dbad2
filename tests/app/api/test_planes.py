"""Planes through any three minima, added to an experiment that has ended; forks and sets of minima on a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.app.servers import TINY, Server
from valleyscope.app.experiments.amendments import extends, plane_through, with_plane
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.landscape.storage.landscape_file import Landscape

SPEC: dict[str, Any] = TINY | {
    "minima": {
        "sgd": {},
        "other": {"fork": {"from": "sgd", "epoch": 1}, "seed": 7},
        "altsdp": {"fork": {"from": "sgd", "epoch": 1}, "optimizer": "altsdp", "target": 0.2},
    },
    "curves": {},
    "planes": {},
    "points": 3,
    "ensembles": {"both": ["sgd", "other"]},
}
PLANE = {"through": ["sgd", "other", "altsdp"], "resolution": 5}


def test_a_plane_is_added_to_what_is_there(lively: Server) -> None:
    id = lively.submit(SPEC)
    assert lively.wait(id)["state"] == "done"
    file = lively.home / "experiments" / id / "landscape.h5"
    before = Landscape.open(file)
    address = f"/api/experiments/{id}"
    answer = lively.client.post(f"{address}/planes", json=PLANE)
    assert answer.status_code == 202, answer.text
    assert answer.json()["plane"] == "plane1"
    row = lively.wait(id)
    assert (row["state"], row["planes"], row["run"]) == ("done", ["plane1"], 2)
    surface = lively.client.get(answer.headers["location"])
    assert surface.status_code == 200
    after = Landscape.open(file)
    assert after.planes["plane1"].complete
    for name, minimum in before.minima.items():  # nothing was trained again
        np.testing.assert_array_equal(minimum.epochs["seconds"], after.minima[name].epochs["seconds"])
    assert after.spec["planes"]["plane1"]["through"] == PLANE["through"]
    again = lively.client.post(f"{address}/planes", json=PLANE | {"through": PLANE["through"][::-1]})
    assert again.json() == {"experiment": id, "plane": "plane1", "state": "done"}
    sets = lively.client.get(f"{address}/ensembles").json()["items"]
    assert [member["name"] for member in sets[0]["members"]] == ["sgd", "other"]
    forks = lively.client.get(f"{address}/forks").json()["curves"]
    assert {curve["kind"] for curve in forks} == {"other", "altsdp"}


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"through": ["sgd", "other", "x"]}, 422, "'x' is unknown"),
        ({"through": ["sgd", "sgd", "other"]}, 422, "needs three different points"),
        ({"resolution": 1000}, 422, "less than or equal to 401"),
        ({"name": "1st"}, 422, "is not a valid name"),
        ({}, 409, "you can add a plane once it has ended"),
    ],
)
def test_planes_that_cannot_be_are_refused(bare: Server, changes: dict[str, Any], status: int, message: str) -> None:
    id = bare.submit(SPEC)
    bare.client.post(f"/api/experiments/{id}/cancel") if changes else None
    answer = bare.client.post(f"/api/experiments/{id}/planes", json=PLANE | changes)
    assert answer.status_code == status, answer.text
    assert message in answer.text


def test_only_planes_can_be_added_to_a_spec() -> None:
    spec = parse_spec(TINY)
    name, amended = with_plane(spec, {"around": "sgd"}, "near")
    assert name == "near"
    assert extends(amended, spec)
    assert not extends(spec, amended)
    assert not extends(parse_spec(TINY | {"seed": 1}), spec)
    assert not extends(parse_spec(TINY | {"planes": {}}), spec)
    assert plane_through(spec, ("altsdp", "valley.bend", "sgd")) == "valley"
    default = parse_spec({"minima": {"a": {}, "b": {}, "c": {"seed": 3}}})
    assert list(with_plane(default, {"through": ["c", "a", "b"]})[1].all_planes) == ["valley", "basins", "plane1"]
