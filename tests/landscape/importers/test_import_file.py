"""Files of others, written here as their scripts write them, become the same surfaces, points and curves."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.landscape import cases
from tests.landscape.importers.other_tools import PENALTY, GaripovPlane, accuracy, bowl, li_surface
from valleyscope.landscape.importers import NotImportable, import_file
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape


def test_plane_of_mode_connectivity_has_the_loss_at_its_places(tmp_path: Path) -> None:
    theirs = GaripovPlane()
    plane = import_file(theirs.save(tmp_path)).planes["connection"]
    assert plane.shape == (5, 7)
    for row, y in enumerate(plane.y):
        for column, x in enumerate(plane.x):
            w = theirs.origin + x * theirs.u + y * theirs.v
            assert plane.splits["train"].loss[row, column] == pytest.approx(bowl(w), rel=1e-5)
            assert plane.splits["test"].loss[row, column] == pytest.approx(bowl(w) + 0.1, rel=1e-5)
            assert plane.splits["train"].error[row, column] == pytest.approx(1 - accuracy(w) / 100, abs=1e-6)
    assert plane.complete
    assert "without the L2 term" in plane.note
    assert "--use_test" in plane.note


def test_points_and_curve_of_mode_connectivity_are_where_they_were(tmp_path: Path) -> None:
    theirs = GaripovPlane()
    landscape = import_file(theirs.save(tmp_path))
    plane = landscape.planes["connection"]
    assert plane.points["start"] == (0.0, 0.0)
    assert plane.points["end"] == pytest.approx(tuple(theirs.arrays["bend_coordinates"][2]))
    assert plane.points["bend"] == pytest.approx(tuple(theirs.arrays["bend_coordinates"][1]))
    assert plane.defining == ("start", "end", "bend")
    np.testing.assert_allclose(
        plane.paths["connection"][[0, -1]], [plane.points["start"], plane.points["end"]], atol=1e-5
    )
    assert landscape.provenance["source"] == "dnn-mode-connectivity plane.npz"
    assert landscape.provenance["fingerprint"] is None
    landscape.save(tmp_path / "landscape.h5")
    assert Landscape.open(tmp_path / "landscape.h5").planes["connection"].shape == (5, 7)


def test_loss_with_the_penalty_is_there_for_the_asking(tmp_path: Path) -> None:
    path = GaripovPlane().save(tmp_path)
    plain = import_file(path).planes["connection"].splits["train"].loss
    total = import_file(path, regularised=True).planes["connection"]
    np.testing.assert_allclose(total.splits["train"].loss, plain + PENALTY)
    assert "with the L2 term" in total.note


def test_more_bends_have_names_of_their_own(tmp_path: Path) -> None:
    plane = import_file(GaripovPlane(bends=5).save(tmp_path)).planes["connection"]
    assert list(plane.points) == ["start", "bend1", "bend2", "bend3", "end"]
    assert plane.defining == ("start", "bend2", "bend1")


def test_copies_that_leave_out_the_curve_or_a_split_are_read(tmp_path: Path) -> None:
    less = dict.fromkeys(["curve_coordinates", "ts", "bend_coordinates", "te_loss", "te_nll", "te_acc", "te_err"])
    plane = import_file(GaripovPlane().save(tmp_path, **less)).planes["connection"]
    assert not plane.points
    assert not plane.paths
    assert list(plane.splits) == ["train"]
    shares = GaripovPlane().arrays["tr_acc"] / 100
    assert (
        import_file(GaripovPlane().save(tmp_path, tr_acc=shares)).planes["connection"].splits["train"].error.max() <= 1
    )


def test_divergence_is_a_value(tmp_path: Path) -> None:
    theirs = GaripovPlane()
    theirs.arrays["tr_nll"][6, 4] = np.nan
    plane = import_file(theirs.save(tmp_path)).planes["connection"]
    assert plane.splits["train"].loss[4, 6] == np.inf
    assert plane.complete


def test_curve_of_mode_connectivity(tmp_path: Path) -> None:
    t = np.linspace(0.0, 1.0, 61)
    steps = np.full(61, 0.25)
    steps[0] = 0.0
    nll = 0.1 + 0.3 * t * (1 - t)
    values = {"tr_nll": nll, "tr_loss": nll + PENALTY, "tr_acc": 100 - 20 * nll, "tr_err": 20 * nll}
    values |= {name.replace("tr_", "te_"): 2 * array for name, array in values.items() if name != "tr_acc"}
    scalars = {f"{name}_{kind}": array.max() for name, array in values.items() for kind in ("min", "max", "avg", "int")}
    np.savez(tmp_path / "curve.npz", ts=t, dl=steps, **values, **scalars)
    landscape = import_file(tmp_path / "curve.npz")
    curve = landscape.curves["connection"]
    np.testing.assert_array_equal(curve.t, t)
    np.testing.assert_allclose(curve.splits["train"].loss, nll)
    np.testing.assert_allclose(curve.splits["test"].error, 0.4 * nll)
    assert curve.arc[-1] == pytest.approx(15.0)
    assert landscape.minima["start"].final["train_loss"] == pytest.approx(0.1)
    assert landscape.minima["end"].final["test_accuracy"] == pytest.approx(0.96)


@pytest.mark.parametrize(("columns", "rows"), [(6, 6), (7, 4), (3, 8)])
def test_surface_of_loss_landscape_has_the_loss_at_its_places(tmp_path: Path, columns: int, rows: int) -> None:
    path = tmp_path / "model_300.t7_weights_xignore=biasbn_xnorm=filter.h5_[-1.0,1.0,6]x[-0.5,1.5,6].h5"
    x, y = li_surface(path, columns, rows)
    plane = import_file(path).planes["surface"]
    np.testing.assert_array_equal(plane.x, x)
    np.testing.assert_array_equal(plane.y, y)
    expected = [[bowl(np.array([across, up, 0])) for across in x] for up in y]
    np.testing.assert_allclose(plane.splits["train"].loss, expected)
    np.testing.assert_allclose(plane.splits["train"].error, 0.1 + np.repeat(y[:, None], columns, axis=1) / 100)
    assert (plane.kind, plane.points) == ("around", {"model": (0.0, 0.0)})
    assert plane.unit == "step along the direction"


def test_points_that_were_not_computed_are_not_done(tmp_path: Path) -> None:
    path = tmp_path / "surface.h5"
    li_surface(path, 5, 4, unfinished=7)
    plane = import_file(path).planes["surface"]
    assert plane.done.sum() == 13
    assert plane.done.ravel()[:13].all()
    assert np.isnan(plane.splits["train"].loss[~plane.done]).all()


def test_a_point_with_a_loss_and_no_accuracy_is_not_done(tmp_path: Path) -> None:
    """Their writer was killed after it had saved the losses."""
    path = tmp_path / "surface.h5"
    li_surface(path, 5, 4, unfinished=7)
    with h5py.File(path, "r+") as file:
        losses = file["train_loss"][()]
        losses.ravel()[13] = 0.7
        file["train_loss"][:] = losses
    plane = import_file(path).planes["surface"]
    assert plane.done.sum() == 13
    assert np.isnan(plane.splits["train"].loss.ravel()[13])


def test_split_that_is_less_far_has_its_own_plane(tmp_path: Path) -> None:
    path = tmp_path / "surface.h5"
    li_surface(path, 5, 4, splits=("train", "test"))
    assert list(import_file(path).planes["surface"].splits) == ["train", "test"]
    with h5py.File(path, "r+") as file:
        file["test_loss"][-1] = -1.0
    landscape = import_file(path)
    assert list(landscape.planes) == ["surface", "surface-test"]
    assert landscape.planes["surface"].complete
    assert not landscape.planes["surface-test"].complete


def test_trajectory_beside_a_surface_is_drawn_on_it(tmp_path: Path) -> None:
    path = tmp_path / "directions.h5_[-1.0,1.0,5]x[-0.5,1.5,5].h5"
    li_surface(path, 5, 5)
    with h5py.File(path, "r+") as file:
        del file["dir_file"]
        file["dir_file"] = np.bytes_("nets/PCA_weights_save_epoch=1/directions.h5")
    with h5py.File(tmp_path / "directions.h5_proj_cos.h5", "w") as file:
        file["proj_xcoord"], file["proj_ycoord"] = np.linspace(-1, 0, 4), np.linspace(1, 0, 4)
    plane = import_file(path).planes["surface"]
    np.testing.assert_array_equal(plane.paths["trajectory:model"][:, 1], np.linspace(1, 0, 4))
    assert (plane.kind, plane.unit) == ("principal", "distance in weight space")


@pytest.mark.parametrize("end", ["model2", "direction"])
def test_surface_of_one_dimension_is_a_line(tmp_path: Path, end: str) -> None:
    x = np.linspace(-0.5, 1.5, 41)
    directions = (
        "a_model_300.t7_b_model_300.t7_states.h5" if end == "model2" else "model_300.t7_weights_xnorm=filter.h5"
    )
    with h5py.File(tmp_path / "line.h5", "w") as file:
        file["dir_file"], file["xcoordinates"] = directions, x
        file["train_loss"], file["train_acc"] = 0.1 + x**2, np.full(41, 95.0)
        file["train_loss"][-1] = -1.0
    landscape = import_file(tmp_path / "line.h5")
    line = landscape.lines[f"model-{end}"]
    np.testing.assert_allclose(line.t, x[:-1])
    np.testing.assert_allclose(line.splits["train"].loss, 0.1 + x[:-1] ** 2)
    assert "1 of 41 points are not computed" in line.note
    assert landscape.minima["model"].final == {"train_loss": pytest.approx(0.1), "train_accuracy": pytest.approx(0.95)}
    assert ("model2" in landscape.minima) == (end == "model2")


def test_file_written_by_python_2_is_read(tmp_path: Path) -> None:
    def member(values: np.ndarray[Any, Any]) -> bytes:
        shape = ", ".join(f"{length}L" for length in values.shape) + ("," if values.ndim == 1 else "")
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}"
        header = header.ljust(-(-(len(header) + 11) // 16) * 16 - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes()

    with zipfile.ZipFile(tmp_path / "plane.npz", "w") as file:
        for name, values in GaripovPlane().arrays.items():
            file.writestr(f"{name}.npy", member(np.asarray(values, dtype="<f8")))
    assert import_file(tmp_path / "plane.npz").planes["connection"].shape == (5, 7)


def test_a_landscape_of_ours_is_opened(tmp_path: Path) -> None:
    cases.landscape(5).save(tmp_path / "landscape.h5")
    assert import_file(tmp_path / "landscape.h5").name == "digits"


def npz(**arrays: Any) -> Callable[[Path], None]:
    return lambda path: np.savez(path.open("wb"), **arrays)


def hdf5(**members: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, values in members.items():
                file[name] = values

    return write


def pickled(path: Path) -> None:
    np.savez(path.open("wb"), grid=np.array([{"a": 1}], dtype=object))


def lying(path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("grid.npy", buffer.getvalue())


def cut(path: Path) -> None:
    np.savez(path.open("wb"), **GaripovPlane().arrays)
    path.write_bytes(path.read_bytes()[:2000])


def with_header(shape: str) -> Callable[[Path], None]:
    """A .npz file whose only array has this shape in its header."""

    def write(path: Path) -> None:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("grid.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(80))

    return write


GRID = GaripovPlane().arrays
X = np.linspace(-1, 1, 5)
REFUSED: dict[str, Callable[[Path], Any]] = {
    "is empty": lambda path: path.write_bytes(b""),
    "is neither a .npz nor an HDF5 file": lambda path: path.write_text("a,b\n1,2\n"),
    "has neither grid (plane.npz) nor ts (curve.npz) but weights": npz(weights=np.zeros(3)),
    "but no arrays of numbers": pickled,
    "grid.npy: has 1000000000 values": lying,
    "is a damaged .npz file": cut,
    "grid.npy: is not a numpy array (": with_header("(7, 5"),
    "grid.npy: is not a numpy array": with_header("('''7,)"),
    "grid.npy: has the negative shape (-2,)": with_header("(-2,)"),
    "grid: has shape (7, 5), not (points, points, 2)": npz(**{**GRID, "grid": GRID["grid"][..., 0]}),
    "the grid is not rectangular": npz(**{**GRID, "grid": GRID["grid"].transpose(1, 0, 2)}),
    "tr_nll: has shape (5, 7), the grid or curve has (7, 5)": npz(**{**GRID, "tr_nll": GRID["tr_nll"].T}),
    "has no losses or errors": npz(grid=GRID["grid"]),
    "error: has the value": npz(**{**GRID, "tr_err": GRID["tr_err"] * 1000}),
    "holds directions of loss-landscape": hdf5(xdirection=np.zeros(3)),
    "holds a projected trajectory": hdf5(proj_xcoord=np.zeros(3), proj_ycoord=np.zeros(3)),
    "holds eigenvalues of loss-landscape": hdf5(xcoordinates=X, max_eig=X, min_eig=X),
    "train_loss: none of its points is computed yet": hdf5(xcoordinates=X, ycoordinates=X, train_loss=-np.ones((5, 5))),
    "train_loss: has shape (5, 4), the coordinates make (5, 5)": hdf5(
        xcoordinates=X, ycoordinates=X, train_loss=np.ones((5, 4))
    ),
    "without xcoordinates and train_loss; it holds data": hdf5(data=X),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_imported_is_named_with_what_could(tmp_path: Path, message: str) -> None:
    path = tmp_path / "file"
    REFUSED[message](path)
    with pytest.raises(NotImportable, match=re.escape(message)) as caught:
        import_file(path)
    assert str(path) in str(caught.value)
    assert "expected plane.npz or curve.npz of dnn-mode-connectivity" in str(caught.value)


def test_surface_without_accuracies_is_read(tmp_path: Path) -> None:
    hdf5(xcoordinates=X, ycoordinates=X, train_loss=np.ones((5, 5)))(tmp_path / "surface.h5")
    grid = import_file(tmp_path / "surface.h5").planes["surface"].splits["train"]
    assert np.isnan(grid.error).all()
    assert (grid.loss == 1).all()


def test_a_changed_byte_of_an_archive_leads_to_no_other_error(tmp_path: Path) -> None:
    content, path = GaripovPlane(3, 3).save(tmp_path).read_bytes(), tmp_path / "file"
    draw = random.Random(0)
    for place in draw.sample(range(len(content)), 400):
        path.write_bytes(content[:place] + bytes([content[place] ^ draw.randrange(1, 256)]) + content[place + 1 :])
        with suppress(NotImportable):
            import_file(path)


def test_names_that_are_no_text_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "surface.h5"
    hdf5(first=X, second=X)(path)
    path.write_bytes(path.read_bytes().replace(b"second", b"\xff\xfecond"))
    with pytest.raises(NotImportable, match="without xcoordinates and train_loss; it holds"):
        import_file(path)
    with pytest.raises(NotALandscape, match="is an HDF5 file of another program"):
        Landscape.open(path)


def test_damaged_and_absent_files_are_named(tmp_path: Path) -> None:
    cases.landscape(5).save(tmp_path / "landscape.h5")
    with h5py.File(tmp_path / "landscape.h5", "r+") as file:
        del file["planes/valley/x"]
    with pytest.raises(DamagedLandscape, match="planes/valley/x: is missing"):
        import_file(tmp_path / "landscape.h5")
    with pytest.raises(FileNotFoundError, match="absent"):
        import_file(tmp_path / "absent.npz")
