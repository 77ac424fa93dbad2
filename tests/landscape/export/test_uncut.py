"""Exported pictures are whole: labels, titles and colour bars end inside the canvas."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.landscape import cases
from valleyscope.landscape.export import export
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PlaneRecord


def border_of(picture: Image.Image) -> np.ndarray:
    """The pixels of the outermost lines, on white."""
    ground = Image.new("RGBA", picture.size, "white")
    pixels = np.asarray(Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB"))
    return np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])


def shaped(height: float) -> Landscape:
    """The landscape on planes that are flatter or taller, with long names."""
    landscape = cases.landscape(13)
    for name, plane in landscape.planes.items():
        points = {point: (x, height * y) for point, (x, y) in plane.points.items()}
        paths = {path: places * (1, height) for path, places in plane.paths.items()}
        landscape.planes[name] = PlaneRecord(**{**vars(plane), "y": height * plane.y, "points": points, "paths": paths})
    landscape.verdict = cases.VERDICT | {"test_error_verdict": {"tolerance": 0.01}}
    return landscape


@pytest.mark.parametrize("height", [0.05, 1.0, 12.0])
def test_nothing_of_an_exported_picture_is_cut(height: float, tmp_path: Path) -> None:
    pictures = export(shaped(height), tmp_path, ["png"])
    assert len(pictures) == 10
    for path in pictures:
        assert (border_of(Image.open(path)) == 255).all(), path.name


def test_a_pdf_has_the_size_of_the_svg_and_its_text_as_text(tmp_path: Path) -> None:
    """Both grow with what is drawn; the page of the PDF is as large as the canvas of the SVG, so nothing is cut."""
    landscape = shaped(1.0)
    pictures = {path.name: path.read_bytes() for path in export(landscape, tmp_path, ["svg", "pdf"])}
    assert len(pictures) == 20
    pdf, svg = pictures["paper.pdf"], pictures["paper.svg"].decode()
    assert pdf.startswith(b"%PDF-")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    canvas = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    assert canvas is not None
    assert [float(side) for side in box.groups()] == pytest.approx([float(side) for side in canvas.groups()], abs=1.5)
    assert b"/Subtype /Type0" in pdf, "its letters are letters of a font"


def test_the_check_would_notice_a_cut() -> None:
    inked = Image.new("RGB", (8, 8), "white")
    inked.putpixel((7, 3), (0, 0, 0))
    buffer = io.BytesIO()
    inked.save(buffer, "PNG")
    assert not (border_of(Image.open(buffer)) == 255).all()
