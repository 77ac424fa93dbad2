"""Paths and training can be walked along and played; the camera has presets; the wheel scrolls the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server, idle, violations

SNAPSHOTS = {"epochs": 4, "batch_size": 64, "snapshots": 1}


@pytest.fixture(scope="module")
def trained(shared_server: Server) -> str:
    """An experiment whose minima kept a snapshot of every epoch."""
    planes = {
        "basins": {"through": ["sgd", "altsdp", "control"], "resolution": 9},
        "steps": {"trajectory": "altsdp", "resolution": 9},
    }
    experiment = shared_server.submit(name="with snapshots", training=SNAPSHOTS, planes=planes, samples=200)
    assert shared_server.wait(experiment)["state"] == "done"
    return experiment


@pytest.fixture
def page(open_page: Any, server: Server, finished: str) -> Page:
    found: Page = open_page(server, f"/experiments/{finished}")
    idle(found)
    return found


def slider(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name)


def places(page: Page) -> list[tuple[float, float]]:
    """Where the large marks of the first surface are."""
    found: list[tuple[float, float]] = (
        page.locator(".surfaces .stage")
        .first.locator(".mark:not(.minor)")
        .evaluate_all("marks => marks.map((mark) => [parseFloat(mark.style.left), parseFloat(mark.style.top)])")
    )
    return found


def pixel(page: Page, x: float, y: float) -> list[float]:
    place: list[float] = page.locator(".surfaces .plot").first.evaluate(
        """({ _fullLayout: { xaxis, yaxis } }, [x, y]) =>
          [xaxis._offset + xaxis.d2p(x), yaxis._offset + yaxis.d2p(y)]""",
        [x, y],
    )
    return place


def test_a_slider_walks_along_a_path_and_the_values_there_are_those_that_were_measured(
    page: Page, server: Server, finished: str
) -> None:
    line = server.client.get(f"/api/experiments/{finished}/profile")["lines"]["sgd-control"]
    points = server.client.get(f"/api/experiments/{finished}/surface?plane=basins")["points"]
    page.get_by_label("walk along", exact=True).select_option("sgd-control")
    position = slider(page, "position")
    position.focus()
    page.keyboard.press("End")
    expect(page.locator(".surfaces .mark").first).to_be_visible()
    assert places(page) == [pytest.approx(pixel(page, *points["control"]), abs=2)]
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("PageUp")
    assert position.input_value() == "50"
    halfway = [(points["sgd"][axis] + points["control"][axis]) / 2 for axis in (0, 1)]
    assert places(page) == [pytest.approx(pixel(page, *halfway), abs=2)]
    text = page.locator(".scrubber output").inner_text()
    assert text.startswith("t 0.50, distance")
    shown = float(re.search(r"train loss ([\d.e-]+)", text)[1])  # type: ignore[index]
    assert shown == pytest.approx(line["loss"]["train"][2], rel=0.01), "of five points the third is in the middle"
    expect(page.locator(".surfaces .mark span").first).to_have_text(re.compile(re.escape(str(shown))[:4]))
    assert position.get_attribute("aria-valuetext") == text
    expect(page).to_have_url(re.compile(r"t=0\.50.*along=sgd-control"))


def test_the_walk_is_in_the_address_and_hovering_comes_back_to_it(
    open_page: Any, server: Server, finished: str
) -> None:
    page = open_page(server, f"/experiments/{finished}?t=0.25&along=sgd-altsdp")
    idle(page)
    expect(page.locator(".scrubber output")).to_contain_text("t 0.25")
    before = places(page)
    profile = page.locator(".profiles .plot").first
    profile.scroll_into_view_if_needed()
    profile.hover()
    expect(page.locator(".tooltip")).to_contain_text("t 0.")
    page.mouse.move(5, 5)
    expect(page.locator(".tooltip")).to_be_hidden()
    assert places(page) == before
    page.get_by_role("button", name="clear").click()
    expect(page.locator(".mark")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("along"))


def test_the_walk_is_on_the_surface_in_three_dimensions_too(open_page: Any, server: Server, finished: str) -> None:
    page = open_page(server, f"/experiments/{finished}?form=3d&show=train-loss&t=0.5&along=sgd-control")
    idle(page)
    expect(page.locator(".surfaces .mark:not(.minor) span")).to_have_count(1)


def test_a_path_that_another_plane_shows_is_said_to_be_elsewhere(page: Page) -> None:
    page.get_by_label("walk along", exact=True).select_option("valley")
    expect(page.locator(".scrubber output")).to_contain_text("not drawn on the plane basins")


def test_the_walk_plays_and_pauses(page: Page) -> None:
    page.get_by_label("speed of the walk along the path").select_option("4")
    page.get_by_role("button", name="Play the walk along the path").click()
    expect(page.get_by_role("button", name="Play the walk along the path")).to_be_visible()
    expect(page.locator(".scrubber output"), "it ends at the other end").to_contain_text("t 1.00")
    slider(page, "position").focus()
    page.get_by_label("speed of the walk along the path").select_option("0.5")
    slider(page, "position").press(" ")
    pause = page.get_by_role("button", name="Pause the walk along the path")
    pause.click()
    expect(pause).to_have_count(0)
    stopped = page.locator(".scrubber output").inner_text()
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    assert page.locator(".scrubber output").inner_text() == stopped


@pytest.mark.parametrize("plane", ["basins", "steps"])
def test_training_plays_on_the_surface(open_page: Any, server: Server, trained: str, plane: str) -> None:
    page = open_page(server, f"/experiments/{trained}?plane={plane}")
    page.emulate_media(reduced_motion="reduce")
    idle(page)
    expect(page.locator(".player")).to_be_visible()
    answer = server.client.get(f"/api/experiments/{trained}/surface?plane={plane}")
    tracks = [name for name in answer["paths"] if name.startswith("trajectory:")]
    assert "trajectory:altsdp" in tracks
    if plane == "basins":
        assert len(tracks) == 3, "each minimum kept snapshots"
    training = slider(page, "training")
    assert training.get_attribute("max") == "3", "four snapshots"
    training.press("End")
    assert places(page)[tracks.index("trajectory:altsdp")] == pytest.approx(
        pixel(page, *answer["points"]["altsdp"]), abs=2
    ), "it ends at its minimum"
    metrics = server.client.get(f"/api/experiments/{trained}/minima")["minima"]["altsdp"]["epochs"]
    training.press("Home")
    text = page.locator(".player output").inner_text()
    assert "altsdp: epoch 1 of 4" in text
    assert f"test accuracy {100 * metrics['test_accuracy'][0]:.1f} %" in text
    page.get_by_role("button", name="Play the training of the minima").click()
    expect(page.locator(".player output"), "with reduced motion it jumps from snapshot to snapshot").to_contain_text(
        "altsdp: epoch 4 of 4"
    )
    expect(page.get_by_role("button", name="Play the training of the minima"), "and stops").to_be_visible()


def test_without_snapshots_there_is_no_player(page: Page) -> None:
    expect(page.locator(".player")).to_be_hidden()


def test_the_camera_goes_where_it_is_sent(open_page: Any, server: Server, finished: str) -> None:
    page = open_page(server, f"/experiments/{finished}?form=3d&show=train-loss")
    idle(page)
    eye = "() => document.querySelector('.surfaces .plot')._fullLayout.scene._scene.getCamera().eye"
    points = server.client.get(f"/api/experiments/{finished}/surface?plane=basins")["points"]
    group = page.get_by_role("group", name="Camera")
    group.get_by_role("button", name="top").click()
    page.wait_for_function(f"() => {{ const {{ x, y, z }} = ({eye})(); return Math.hypot(x, y) < 0.05 && z > 1; }}")
    expect(group.get_by_role("button", name="top")).to_have_attribute("aria-pressed", "true")
    group.get_by_role("button", name="along the line").click()
    page.wait_for_function(f"() => ({eye})().z < 1")
    seen = page.evaluate(eye)
    along = [points["altsdp"][axis] - points["sgd"][axis] for axis in (0, 1)]
    assert seen["x"] * along[0] + seen["y"] * along[1] < 0, "it looks from sgd towards altsdp"
    group.get_by_role("button", name="valley floor").click()
    page.wait_for_function(f"() => ({eye})().z < 0.5")
    expect(page).to_have_url(re.compile("camera="))
    group.locator("xpath=..").get_by_role("button", name="whole plane").click()
    expect(page).not_to_have_url(re.compile("camera="))


@pytest.mark.parametrize("form", ["contour", "3d"])
def test_the_wheel_scrolls_the_page_unless_ctrl_is_held(
    open_page: Any, server: Server, finished: str, form: str
) -> None:
    page = open_page(server, f"/experiments/{finished}?form={form}&show=train-loss", height=600)
    idle(page)
    plot = page.locator(".surfaces .plot").first
    plot.evaluate("plot => plot.scrollIntoView({ block: 'center' })")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 80)
    page.wait_for_function("before => scrollY > before", arg=before)
    expect(page, "the picture stays as it is").not_to_have_url(re.compile("zoom|camera"))
    plot.evaluate("plot => plot.scrollIntoView({ block: 'center' })")
    there = page.evaluate("scrollY")
    eye = "document.querySelector('.surfaces .plot')._fullLayout.scene._scene.getCamera().eye"
    distance = f"() => Math.hypot(...Object.values({eye}))"
    far = page.evaluate(distance) if form == "3d" else 0.0
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    expect(page).to_have_url(re.compile("camera=" if form == "3d" else "zoom="))
    assert page.evaluate("scrollY") == there
    if form == "3d":
        assert page.evaluate(distance) < far, "the camera comes nearer"


def test_a_finger_shows_the_values_and_scrolls(open_page: Any, server: Server, finished: str) -> None:
    page = open_page(server, f"/experiments/{finished}", width=390)
    idle(page)
    plot = page.locator(".surfaces .plot").first
    plot.scroll_into_view_if_needed()
    plot.tap()
    expect(page.locator(".tooltip")).to_contain_text("train loss")
    assert plot.evaluate("plot => plot._fullLayout.dragmode") is False, "a finger that moves scrolls the page"


def test_marks_stand_on_a_surface_with_log_colours(open_page: Any, server: Server, finished: str) -> None:
    """The mark of a walk that ends at a minimum is where the minimum's own marker is, seen from the side."""
    page = open_page(server, f"/experiments/{finished}?form=3d&show=train-loss&log=1&t=1&along=sgd-control")
    idle(page)
    gap = page.evaluate(
        """() => {
          const plot = document.querySelector('.surfaces .plot');
          const [surface] = plot.data;
          const control = plot.data.find(({ hovertemplate }) => hovertemplate?.includes('<b>control'));
          const [low, high] = [surface.cmin, surface.cmax];
          const column = surface.x.findIndex((x) => x >= control.x[0]);
          const row = surface.y.findIndex((y) => y >= control.y[0]);
          const near = [[row, column], [row - 1, column], [row, column - 1], [row - 1, column - 1]]
            .map(([down, across]) => surface.z[down]?.[across]).filter(Number.isFinite);
          return { z: (control.z[0] - low) / (high - low), from: (Math.min(...near) - low) / (high - low),
            to: (Math.max(...near) - low) / (high - low) };
        }"""
    )
    assert gap["from"] <= gap["z"] <= gap["to"] + 0.05, "its foot is on the cell of the surface where it is"


@pytest.mark.parametrize("dark", [pytest.param(False, marks=pytest.mark.drill), True])
def test_nobody_is_shut_out_of_the_players(open_page: Any, server: Server, trained: str, axe: str, dark: bool) -> None:
    page = open_page(server, f"/experiments/{trained}?form=3d&t=0.5&along=sgd-altsdp", dark=dark)
    idle(page)
    assert violations(page, axe) == []
