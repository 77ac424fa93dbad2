"""Everything that can be taken away: downloaded by clicking, then opened by what people open it with."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Page
from safetensors.numpy import load_file

from tests.browser.conftest import LONG_PATIENCE, Server, idle
from tests.landscape.export.test_uncut import border_of
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.landscape.storage.landscape_file import Landscape

LARGEST_SVG = 1_000_000
# The texts that do not end inside the canvas.
OUTSIDE = """() => {
  const canvas = document.querySelector('svg').getBoundingClientRect();
  const inside = ({ left, top, right, bottom }) =>
    left >= canvas.left && top >= canvas.top && right <= canvas.right && bottom <= canvas.bottom;
  const texts = [...document.querySelectorAll('svg text')];
  return texts.filter((text) => !inside(text.getBoundingClientRect())).map((text) => text.textContent);
}"""


@pytest.fixture(scope="module")
def page(share_page: Any, shared_server: Server, finished: str) -> Page:
    found: Page = share_page(shared_server, f"/experiments/{finished}")
    idle(found)
    return found


def take(page: Page, name: str, folder: Path) -> Path:
    """Click on an entry of the menu; returns the file."""
    page.locator(".menu summary").click()
    with page.expect_download(timeout=LONG_PATIENCE) as download:
        page.locator(f".menu [data-file='{name}']").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_png_is_a_sharp_picture(page: Page, tmp_path: Path) -> None:
    picture = Image.open(take(page, "png", tmp_path))
    assert picture.format == "PNG"
    assert (border_of(picture) == 255).all(), "nothing is cut"
    assert picture.width == 2 * 1100
    colours = picture.convert("RGB").getcolors(maxcolors=2**24)
    assert colours is not None
    assert len(colours) > 100, "it is not blank"


def test_a_picture_of_another_plane_is_whole_too(page: Page, tmp_path: Path) -> None:
    page.get_by_role("radio", name="valley").check()
    idle(page)
    assert (border_of(Image.open(take(page, "png", tmp_path))) == 255).all()
    page.get_by_role("radio", name="basins").check()
    idle(page)


def test_svg_is_small_enough_for_latex(page: Page, tmp_path: Path) -> None:
    path = take(page, "svg", tmp_path)
    assert path.stat().st_size < LARGEST_SVG
    root = ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    text = " ".join(root.itertext())
    for words in ("train loss, nats", "test error", "distance in weight space", "t along the path", "sgd", "altsdp"):
        assert words in text
    sheet = page.context.new_page()
    sheet.set_content(path.read_text(encoding="utf-8"))
    assert sheet.evaluate(OUTSIDE) == [], "nothing is cut"
    sheet.close()


def test_pdf_is_the_figure_of_the_paper(page: Page, tmp_path: Path) -> None:
    assert take(page, "paper.pdf", tmp_path).read_bytes().startswith(b"%PDF-")


def test_a_relief_is_exported_as_it_is_shown(open_page: Any, server: Server, finished: str, tmp_path: Path) -> None:
    page = open_page(server, f"/experiments/{finished}")
    idle(page)
    page.get_by_role("radio", name="3-D").check()
    page.wait_for_function("() => document.querySelector('.surfaces .plot')?.data?.[0].type === 'surface'")
    both = Image.open(take(page, "png", tmp_path)).width
    page.get_by_label("show", exact=True).select_option("test-error")
    page.wait_for_function("() => document.querySelectorAll('.surfaces .plot').length === 1")
    assert Image.open(take(page, "png", tmp_path)).width == both / 2, "each relief that is on screen has its place"


def test_report_stands_alone(page: Page, tmp_path: Path, browser: Any) -> None:
    path = take(page, "report.html", tmp_path)
    context = browser.new_context(offline=True)
    report = context.new_page()
    asked: list[str] = []
    report.on("request", lambda request: asked.append(request.url))
    report.goto(path.as_uri())
    report.locator(".js-plotly-plot").first.wait_for()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    context.close()


def test_csv_has_a_row_for_every_point(page: Page, tmp_path: Path) -> None:
    text = take(page, "surface.csv", tmp_path).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2 * 9 * 9


def test_hdf5_is_the_landscape(page: Page, tmp_path: Path) -> None:
    landscape = Landscape.open(take(page, "landscape.h5", tmp_path))
    assert list(landscape.planes) == ["valley", "basins"]
    assert all(plane.complete for plane in landscape.planes.values())


def test_weights_are_those_of_the_minimum(page: Page, tmp_path: Path) -> None:
    tensors = load_file(take(page, "altsdp.safetensors", tmp_path))
    assert any(tensor.ndim == 4 for tensor in tensors.values()), "it has filters"


def test_spec_is_accepted_again(page: Page, tmp_path: Path) -> None:
    spec = json.loads(take(page, "spec.json", tmp_path).read_text(encoding="utf-8"))
    assert list(parse_spec(spec).minima) == ["sgd", "altsdp", "control"]


def test_the_same_by_curl_and_python_are_complete(page: Page, server: Server, finished: str) -> None:
    spec = server.client.experiment(finished)["spec"]
    page.get_by_role("tab", name="By curl").click()
    curl = page.get_by_label("the same by curl").inner_text()
    assert f"{server.address}/api/experiments" in curl
    shown = json.loads(curl.partition("-d '")[2].rstrip().removesuffix("'"))
    assert shown == spec
    assert server.client.post("/api/estimate", shown)["allowed"], "the server takes it as it is"
    page.get_by_role("tab", name="By Python").click()
    compile(page.get_by_label("the same by Python").inner_text(), "example", "exec")
