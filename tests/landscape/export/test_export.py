"""What other programs get: the same numbers in CSV, surfaces that VTK reads, small vector pictures."""

from __future__ import annotations

import base64
import csv
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.landscape import cases
from valleyscope.landscape.export import export
from valleyscope.landscape.export.vtk import surface_heights, write_vtk
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid

TYPES = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def vtk_arrays(path: Path, section: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of one section of a VTK XML file: base64 of an eight-byte length and the values."""
    root = ElementTree.parse(path).getroot()
    assert root.attrib["byte_order"] == "LittleEndian"
    assert root.attrib["header_type"] == "UInt64"
    found = {}
    for element in root.findall(f".//{section}/DataArray"):
        raw = base64.b64decode(element.text or "")
        (length,) = struct.unpack("<Q", raw[:8])
        assert length == len(raw) - 8
        values = np.frombuffer(raw[8:], TYPES[element.attrib["type"]])
        components = int(element.attrib["NumberOfComponents"])
        found[element.attrib["Name"]] = values.reshape(-1, components) if components > 1 else values
    return found


def overflowing() -> Landscape:
    landscape = cases.landscape(7)
    plane = landscape.planes["valley"]
    known = np.ones(plane.shape, dtype=bool)
    known[-3:] = False
    landscape.planes["valley"] = cases.half_done(plane, known)
    landscape.planes["valley"].splits["train"].loss[1, 2] = np.inf
    return landscape


def test_surface_csv_reads_back_bit_by_bit(tmp_path: Path) -> None:
    landscape = overflowing()
    export(landscape, tmp_path, ["csv"])
    table = rows(tmp_path / "surface.csv")
    assert list(table[0]) == ["plane", "x", "y", "done", "train_loss", "train_error", "test_loss", "test_error"]
    for name, plane in landscape.planes.items():
        own = [row for row in table if row["plane"] == name]
        assert len(own) == plane.done.size
        for quantity in ("loss", "error"):
            cells = [row[f"train_{quantity}"] for row in own]
            values = np.array([float(cell) if cell else np.nan for cell in cells]).reshape(plane.shape)
            np.testing.assert_array_equal(values, plane.splits["train"][quantity])
        x = np.array([float(row["x"]) for row in own]).reshape(plane.shape)
        y = np.array([float(row["y"]) for row in own]).reshape(plane.shape)
        np.testing.assert_array_equal(x, np.meshgrid(plane.x, plane.y)[0])
        np.testing.assert_array_equal(y, np.meshgrid(plane.x, plane.y)[1])
        np.testing.assert_array_equal([row["done"] == "1" for row in own], plane.done.ravel())
    assert "inf" in {row["train_loss"] for row in table}


def test_paths_points_and_training_are_tables_too(tmp_path: Path) -> None:
    landscape = cases.landscape(5)
    written = [path.name for path in export(landscape, tmp_path, ["csv"])]
    assert written == [
        "surface.csv",
        "points.csv",
        "tracks.csv",
        "paths.csv",
        "matrix.csv",
        "map.csv",
        "minima.csv",
        "training.csv",
        "layers.csv",
    ]
    line = [row for row in rows(tmp_path / "paths.csv") if row["path"] == "sgd-control"]
    expected = landscape.lines["sgd-control"].splits["test"].error
    np.testing.assert_array_equal([float(row["test_error"]) for row in line], expected)
    points = {(row["plane"], row["point"]): row for row in rows(tmp_path / "points.csv")}
    assert float(points["valley", "control"]["distance"]) == 14.4
    assert len(rows(tmp_path / "training.csv")) == 360
    pruned = [row for row in rows(tmp_path / "layers.csv") if row["minimum"] == "altsdp"]
    assert [row["zero_groups"] for row in pruned] == ["3", "13", "88", "0"]


def test_cells_that_open_like_a_formula_are_text(tmp_path: Path) -> None:
    landscape = cases.landscape(5)
    landscape.minima["sgd"].optimizer = "=1+1"
    export(landscape, tmp_path, ["csv"])
    assert rows(tmp_path / "minima.csv")[0]["optimizer"] == "'=1+1"


def test_vtk_grid_has_the_points_and_values_of_the_plane(tmp_path: Path) -> None:
    landscape = overflowing()
    write_vtk(landscape, tmp_path)
    plane = landscape.planes["valley"]
    extent = ElementTree.parse(tmp_path / "valley.vts").getroot()[0].attrib["WholeExtent"]
    assert extent == f"0 {len(plane.x) - 1} 0 {len(plane.y) - 1} 0 0"
    points = vtk_arrays(tmp_path / "valley.vts", "Points")["points"].reshape(*plane.shape, 3)
    np.testing.assert_array_equal(points[..., 0], np.meshgrid(plane.x, plane.y)[0])
    np.testing.assert_array_equal(points[..., 1], np.meshgrid(plane.x, plane.y)[1])
    data = vtk_arrays(tmp_path / "valley.vts", "PointData")
    loss = plane.splits["train"].loss
    finite = np.isfinite(loss)
    shown = data["train_loss"].reshape(plane.shape)
    np.testing.assert_array_equal(shown[finite], loss[finite])
    np.testing.assert_allclose(data["log10_train_loss"].reshape(plane.shape)[finite], np.log10(loss[finite]))
    assert shown[1, 2] == loss[finite].max()
    assert all(np.isfinite(values).all() for values in data.values())
    np.testing.assert_array_equal(data["done"].reshape(plane.shape) == 1, plane.done)
    assert data["overflow"].reshape(plane.shape)[1, 2] == 1
    assert data["overflow"].sum() == 1
    np.testing.assert_array_equal(data["vtkGhostType"] == 2, ~plane.done.ravel())
    hidden = vtk_arrays(tmp_path / "valley.vts", "CellData")["vtkGhostType"]
    assert (hidden == 32).sum() == 3 * (len(plane.x) - 1)


def test_height_is_log_of_the_clipped_loss_or_flat() -> None:
    plane = cases.plane("basins", 21, 21)
    heights = surface_heights(plane)
    loss = plane.splits["train"].loss
    lower = loss <= 10 ** heights.max()
    np.testing.assert_allclose(heights[lower], np.log10(loss[lower]))
    assert (surface_heights(plane, "flat") == 0).all()
    with pytest.raises(ValueError, match="height is 'cubic'; choose log or flat"):
        surface_heights(plane, "cubic")  # type: ignore[arg-type]


def test_vtk_paths_lie_on_the_surface(tmp_path: Path) -> None:
    landscape = cases.landscape(21)
    write_vtk(landscape, tmp_path)
    lines = vtk_arrays(tmp_path / "basins-paths.vtp", "Lines")
    points = vtk_arrays(tmp_path / "basins-paths.vtp", "Points")["points"]
    plane = landscape.planes["basins"]
    assert len(lines["offsets"]) == len(plane.paths) + 3
    assert lines["offsets"][-1] == len(points) == len(lines["connectivity"])
    heights = surface_heights(plane)
    assert points[:, 2].min() >= heights.min()
    assert points[:, 2].max() <= heights.max() + 0.02 * np.ptp(heights)


def svg_elements(path: Path) -> Iterator[str]:
    return (element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter())


def test_svg_is_vector_small_and_has_text(tmp_path: Path) -> None:
    landscape = Landscape("fine", planes={"basins": cases.plane("basins", 401, 401)})
    (path, *_) = export(landscape, tmp_path, ["svg"])
    assert path.name == "basins-train-loss.svg"
    elements = list(svg_elements(path))
    assert "image" not in elements
    assert elements.count("text") > 10
    assert path.stat().st_size < 300_000
    content = path.read_text()
    for words in ("distance in weight space", "control", "bend (projected)", "train loss, nats"):
        assert words in content


def test_pictures_of_half_a_plane_and_of_paths(tmp_path: Path) -> None:
    landscape = overflowing()
    for plane in landscape.planes.values():
        plane.splits = {
            "train": plane.splits["train"],
            "test": Grid(*[plane.splits["test"][q] for q in ("loss", "error")]),
        }
    landscape.planes = {"valley": landscape.planes["valley"]}
    written = export(landscape, tmp_path, ["png"])
    assert [path.name for path in written] == [
        "valley-train-loss.png",
        "valley-train-error.png",
        "valley-test-loss.png",
        "valley-test-error.png",
        "profile.png",
        "paper.png",
    ]
    for path in written:
        header = path.read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", header[16:24])
        assert 900 < width < 2000
        assert 300 < height < 2000


def test_unknown_formats_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="formats has 'gif'; choose from csv, vtk, png, svg, pdf"):
        export(cases.landscape(5), tmp_path / "out", ["csv", "gif"])
    assert not (tmp_path / "out").exists()
