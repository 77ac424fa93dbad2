"""The report in a browser: one file, offline, drawn by the modules of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Guard
from tests.landscape import cases
from valleyscope.landscape.report import write_report
from valleyscope.landscape.storage.records import LayerRecord

HOSTILE = "<img src=x onerror='document.title=1'><b>bold</b>"
DRAWN = "() => [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"
READS_BACK = "willReadFrequently"  # what Chromium notes of the letters that plotly.js draws in a scene


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a surface that is half done, a loss that overflowed and a layer with an awkward name."""
    landscape = cases.landscape(15)
    done = np.zeros(landscape.planes["basins"].shape, dtype=bool)
    done[:7] = True
    landscape.planes["basins"] = cases.half_done(landscape.planes["basins"], done)
    landscape.planes["valley"].splits["train"].loss[0, 0] = np.inf
    landscape.planes["valley"].unit = HOSTILE
    landscape.minima["sgd"].layers.append(LayerRecord(HOSTILE, 4, 1, 40, 10))
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(landscape, path)
    return path


@pytest.fixture
def page(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The report, 1440 pixels wide unless a test wants another width."""
    context = browser.new_context(viewport={"width": getattr(request, "param", 1440), "height": 900}, offline=True)
    found = context.new_page()
    guard = Guard(report.as_uri())
    guard.expect(READS_BACK)
    guard.watch(found)
    found.goto(report.as_uri())
    found.wait_for_function(DRAWN)
    yield found
    context.close()
    guard.check()


@pytest.mark.parametrize("page", [1440, 390], indirect=True)
def test_every_figure_is_drawn_and_fits_the_page(page: Page) -> None:
    kinds = page.locator(".plot").evaluate_all("plots => plots.map((plot) => plot.data[0].type)")
    assert kinds == ["heatmap", "heatmap", "contour", "contour", "scatter", "bar", "scatter", "surface", "surface"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_names_are_shown_and_never_read_as_elements(page: Page) -> None:
    for kind in ("[data-kind=sparsity]", "[data-plane=valley]"):
        assert HOSTILE in (page.locator(f".plot{kind}").first.text_content() or ""), kind
    assert page.locator("img").count() == 0
    assert page.title() != "1"


@pytest.mark.parametrize("page", [390], indirect=True)
def test_figures_follow_the_theme_and_print_in_light(page: Page) -> None:
    ink = "() => document.querySelector('.plot')._fullLayout.font.color"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => ({ink})() !== light", arg=light)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ink) == light
    assert page.evaluate("document.querySelector('.plot').clientWidth") > 390, "laid out at the width of a sheet"


def test_hovering_shows_the_values_in_real_units(page: Page) -> None:
    surface = page.locator(".plot[data-plane=valley]").first
    surface.scroll_into_view_if_needed()
    box = surface.locator(".nsewdrag").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.move(box["x"] + 0.9 * box["width"] + 2, box["y"] + 0.1 * box["height"] + 2)
    label = surface.locator(".hoverlayer .hovertext")
    label.wait_for()
    for quantity in ("train loss", "train error", "test loss", "test error"):
        assert quantity in (label.text_content() or "")
