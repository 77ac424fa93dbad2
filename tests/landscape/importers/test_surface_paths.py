"""Lines read off a surface: exact for bilinear surfaces, and undecided where the grid is too coarse to tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.landscape.importers.other_tools import GaripovPlane
from valleyscope.landscape.importers import import_files, judged
from valleyscope.landscape.storage.landscape_file import Landscape


def ridged(height: float, columns: int = 21, rows: int = 21, width: float = 0.25) -> GaripovPlane:
    """A ridge of this height between the two ends, which a curve in the plane goes around at the height of the ends."""
    theirs = GaripovPlane(columns, rows)
    start, bend, end = theirs.arrays["bend_coordinates"]
    bend[0], t = end[0] / 2, theirs.arrays["ts"][:, None]
    theirs.arrays["curve_coordinates"] = (1 - t) ** 2 * start + 2 * t * (1 - t) * bend + t**2 * end
    x, y = (theirs.arrays["grid"][..., axis] for axis in (0, 1))
    middle, half = end[0] / 2, end[0] * width
    ridge = height * np.clip(1 - np.abs(x - middle) / half, 0, None) * np.clip(1 - 4 * y / bend[1], 0, 1)
    theirs.arrays |= {"tr_nll": 0.02 + ridge, "te_nll": 0.1 + ridge}
    return theirs


def read(folder: Path, theirs: GaripovPlane, *, with_curve: bool = False) -> Landscape:
    files = [theirs.save(folder)]
    if with_curve:
        t = np.linspace(0, 1, 31)
        files.append(theirs.save_curve(folder, tr_nll=np.full(31, 0.02), te_nll=np.full(31, 0.1), ts=t))
    [run] = import_files(files)
    return run.landscape


def test_the_line_of_a_surface_has_its_values(tmp_path: Path) -> None:
    """A surface that is bilinear in x and y is interpolated without error."""
    theirs = GaripovPlane(9, 7)
    x, y = (theirs.arrays["grid"][..., axis] for axis in (0, 1))
    theirs.arrays["tr_nll"] = 0.1 + 0.2 * x + 0.3 * y + 0.05 * x * y + 10
    line = read(tmp_path, theirs).lines["start-end"]
    start, _, end = theirs.arrays["bend_coordinates"]
    across, up = (start[axis] + line.t * (end[axis] - start[axis]) for axis in (0, 1))
    np.testing.assert_allclose(line.splits["train"].loss, 10.1 + 0.2 * across + 0.3 * up + 0.05 * across * up)
    assert line.arc[-1] == pytest.approx(np.linalg.norm(end - start))
    assert line.note.startswith("read off the surface 'connection' by interpolation")


@pytest.mark.parametrize("with_curve", [True, False])
def test_a_ridge_between_the_ends_is_judged(with_curve: bool, tmp_path: Path) -> None:
    landscape = read(tmp_path, ridged(3.0), with_curve=with_curve)
    found = judged(landscape)
    assert found["kind"] == "joined by a curve only"
    assert found["line"]["low"] < found["line"]["barrier"] <= found["line"]["high"]
    assert found["line"]["barrier"] == pytest.approx(3.0, rel=0.1)
    assert found["level"] is None
    assert "95 %" not in found["sentence"]
    assert any("read off the surface" in note for note in found["notes"])


def test_a_flat_surface_is_a_level_valley(tmp_path: Path) -> None:
    assert judged(read(tmp_path, ridged(0.0)))["kind"] == "level valley"


def test_a_grid_too_coarse_to_tell_leaves_it_open(tmp_path: Path) -> None:
    """A narrow ridge that only every second line of the grid sees."""
    found = judged(read(tmp_path, ridged(0.08, columns=15, width=0.08)))
    assert found["kind"] == "undecided"
    assert found["line"]["low"] <= 0.05 < found["line"]["high"]


def test_ends_are_those_of_the_measured_curve(tmp_path: Path) -> None:
    theirs = ridged(3.0)
    measured = np.linspace(0.011, 0.013, 31)
    [run] = import_files([theirs.save(tmp_path), theirs.save_curve(tmp_path, tr_nll=measured)])
    assert run.landscape.lines["start-end"].splits["train"].loss[[0, -1]].tolist() == [0.011, 0.013]
