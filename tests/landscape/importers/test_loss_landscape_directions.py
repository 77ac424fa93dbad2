"""Surfaces of loss-landscape by what their directions are: other networks, random ones, those of a trajectory."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from valleyscope.landscape.analysis.barriers import path_barrier
from valleyscope.landscape.importers import NotImportable, import_file
from valleyscope.landscape.report.tables import paths_table

FILES = {
    "nets/model_300.t7_weights.h5": (),
    "nets/model_300.t7_weights_xignore=biasbn_xnorm=filter.h5": (),
    "nets/model_300.t7_model_200.t7_weights.h5": ("model2",),
    "sgd_model_300.t7_adam_model_300.t7_states_xignore=biasbn.h5": ("model2",),
    "nets/model_300.t7_model_200.t7_weightsnets/model_100.t7.h5": ("model2", "model3"),
    "nets/model_300.t7_weights_xnorm=filter_other/model_100.pth.h5": ("model3",),
}
PLACES = {"model": (0.0, 0.0), "model2": (1.0, 0.0), "model3": (0.0, 1.0)}


def surface(path: Path, directions: str, x: np.ndarray, y: np.ndarray | None, loss: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        file["dir_file"], file["xcoordinates"] = directions, x
        if y is not None:
            file["ycoordinates"] = y
        file["train_loss"], file["train_acc"] = loss, 100.0 - loss
    return path


def line(path: Path, directions: str) -> Path:
    """Two minima at 0 and 1, a hill of one nat between them, and walls outside."""
    x = np.linspace(-0.5, 1.5, 41)
    loss = np.where((x > 0) & (x < 1), np.sin(np.pi * x) ** 2, 20 * np.maximum(-x, x - 1)).clip(0)
    return surface(path, directions, x, None, loss)


@pytest.mark.parametrize(("directions", "targets"), FILES.items())
def test_networks_that_directions_lead_to_have_their_points(
    tmp_path: Path, directions: str, targets: tuple[str, ...]
) -> None:
    x = np.linspace(-1, 1, 5)
    plane = import_file(surface(tmp_path / "s.h5", directions, x, x, np.ones((5, 5)))).planes["surface"]
    assert plane.points == {name: PLACES[name] for name in ("model", *targets)}
    assert plane.kind == ("through" if targets else "around")
    assert plane.defining == ("model", *targets)


def test_the_barrier_of_a_line_is_that_between_its_networks(tmp_path: Path) -> None:
    found = import_file(line(tmp_path / "line.h5", "nets/model_300.t7_model_200.t7_weights.h5"))
    path = found.lines["model-model2"]
    assert path_barrier(path, "train") == pytest.approx(1.0)
    assert "1.000" in paths_table([path])
    assert found.minima.keys() == {"model", "model2"}


def test_a_random_direction_leads_to_no_network(tmp_path: Path) -> None:
    found = import_file(line(tmp_path / "line.h5", "nets/model_300.t7_weights.h5"))
    assert found.lines.keys() == {"model-direction"}
    assert found.minima.keys() == {"model"}


@pytest.mark.parametrize("directions", ["./directions.h5", "nets/PCA_weights_ignore=biasbn_save_epoch=1/directions.h5"])
def test_a_trajectory_is_found_by_the_name_of_the_directions(tmp_path: Path, directions: str) -> None:
    x = np.linspace(-1, 1, 3)
    path = surface(tmp_path / "mine.h5", directions, x, x, np.ones((3, 3)))
    with h5py.File(tmp_path / "directions.h5_proj_cos.h5", "w") as file:
        file["proj_xcoord"], file["proj_ycoord"] = np.array([0.5, 0.2, 0.0]), np.array([0.4, 0.1, 0.0])
    plane = import_file(path).planes["surface"]
    assert plane.kind == "principal"
    np.testing.assert_array_equal(plane.paths["trajectory:model"][0], [0.5, 0.4])


def test_a_damaged_trajectory_is_named_itself(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 3)
    path = surface(tmp_path / "mine.h5", "directions.h5", x, x, np.ones((3, 3)))
    (tmp_path / "directions.h5_proj_cos.h5").write_bytes(b"rubbish")
    with pytest.raises(NotImportable, match=r"the trajectory beside it, directions\.h5_proj_cos\.h5: is not an HDF5"):
        import_file(path)


def test_falling_coordinates_are_turned_round(tmp_path: Path) -> None:
    x, y = np.linspace(1, -1, 4), np.linspace(2, 0, 3)
    across, up = np.meshgrid(x, y)
    path = surface(tmp_path / "s.h5", "a.t7_weights.h5", x, y, (10 + across + 3 * up).reshape(4, 3))
    plane = import_file(path).planes["surface"]
    assert (np.diff(plane.x) > 0).all()
    assert (np.diff(plane.y) > 0).all()
    np.testing.assert_allclose(plane.splits["train"].loss, 10 + plane.x + 3 * plane.y[:, None])


def test_a_surface_without_values_is_called_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["dir_file"], file["xcoordinates"], file["ycoordinates"] = "a.t7_weights.h5", np.arange(3.0), np.arange(3.0)
    with pytest.raises(NotImportable, match="nothing of the surface is computed yet"):
        import_file(tmp_path / "s.h5")
    with pytest.raises(NotImportable, match="is a folder"):
        import_file(tmp_path)
