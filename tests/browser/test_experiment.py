"""The main view of one experiment: what it shows, how its parts are linked, and that its address holds all of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server, idle, violations
from valleyscope.landscape.report.html_text import interval


def drawn(page: Page, panel: str = ".surfaces") -> Locator:
    plots = page.locator(f"{panel} .plot[data-draws]")
    plots.first.wait_for()
    return plots


def point_at(page: Page, plot: Locator, x: float, y: float | None = None) -> None:
    """Move the mouse to a place of a picture's axes."""
    plot.scroll_into_view_if_needed()
    place = plot.evaluate(
        """(plot, [x, y]) => {
          const { xaxis, yaxis } = plot._fullLayout;
          const box = plot.getBoundingClientRect();
          const up = y === null ? yaxis._length / 2 : yaxis.d2p(y);
          return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + up];
        }""",
        [x, y],
    )
    page.mouse.move(place[0] - 3, place[1])
    page.mouse.move(*place)


@pytest.fixture(scope="module")
def kept(share_page: Any, shared_server: Server, finished: str) -> Page:
    found: Page = share_page(shared_server, f"/experiments/{finished}")
    idle(found)
    return found


@pytest.fixture
def still(kept: Page) -> Page:
    """The view as it opens, for tests that leave it so: nothing is pointed at, and nothing has the focus.

    A pointer that a test left on a picture would leave that picture when the next test scrolls, and take with it what
    that one has just come to see.
    """
    kept.mouse.move(5, 5)
    kept.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    expect(kept.locator(".mark, .rule")).to_have_count(0)
    expect(kept.locator(".tooltip")).to_be_hidden()
    return kept


@pytest.fixture
def page(open_page: Any, server: Server, finished: str) -> Page:
    found: Page = open_page(server, f"/experiments/{finished}")
    idle(found)
    return found


def test_the_default_is_the_figure_of_the_paper(still: Page) -> None:
    surfaces = drawn(still)
    assert surfaces.count() == 2
    assert drawn(still, ".profiles").count() == 2
    captions = still.locator(".surfaces figcaption").all_inner_texts()
    assert captions == ["train loss, nats", "test error"], "linear colours"
    expect(still.get_by_role("radio", name="basins")).to_be_checked()
    white = surfaces.first.evaluate(
        """({ data }) => data.filter(({ name }) => name === 'straight line from sgd to control')
          .map(({ line }) => line.color)"""
    )
    assert "#ffffff" in white
    ratio = surfaces.first.evaluate(
        """({ _fullLayout: { xaxis, yaxis } }) => {
          const [across, up] = [xaxis, yaxis].map(({ _length, range }) => _length / (range[1] - range[0]));
          return across / up;
        }"""
    )
    assert ratio == pytest.approx(1, rel=0.01), "both axes have the same unit"


def test_the_verdict_stands_first_in_words_with_its_numbers(still: Page, server: Server, finished: str) -> None:
    verdict = server.client.get(f"/api/experiments/{finished}/verdict")
    shown = still.locator(".verdict")
    expect(shown.locator(".badge")).to_have_text(verdict["kind"])
    assert shown.locator(".badge svg").count() == 1, "never colour alone"
    words = " ".join((shown.locator(".finding").inner_text() + " " + shown.locator(".rest").inner_text()).split())
    assert words == " ".join(verdict["sentence"].split())
    numbers = shown.locator(".figures").inner_text()
    line = verdict["line"]
    barriers = [
        (path["barrier"], path["low"], path["high"]) for path in (line, verdict["curve"], verdict["control"]["line"])
    ]
    for value, low, high in (*barriers, (line["rise"]["value"], line["rise"]["low"], line["rise"]["high"])):
        assert f"{value:.3f}" in numbers
        assert interval(low, high) in numbers, "as in the report"


def test_the_page_has_the_colours_of_the_report(still: Page, server: Server, finished: str) -> None:
    """The scale that the page computes is the one that landscape.figures computes from the same values."""
    for index, (split, value) in enumerate((("train", "loss"), ("test", "error"))):
        path = f"/api/experiments/{finished}/figure?kind=contour&plane=basins&split={split}&value={value}"
        wanted = server.client.get(path)["data"][0]
        shown = (
            drawn(still)
            .nth(index)
            .evaluate("({ data: [{ zmin, zmax, colorbar, contours }] }) => ({ zmin, zmax, colorbar, contours })")
        )
        assert shown["zmin"] == pytest.approx(wanted["zmin"])
        assert shown["zmax"] == pytest.approx(wanted["zmax"])
        assert shown["colorbar"]["ticktext"] == wanted["colorbar"]["ticktext"]
        assert shown["contours"]["size"] == pytest.approx(wanted["contours"]["size"])


def test_hovering_shows_both_coordinates_and_all_values(still: Page, server: Server, finished: str) -> None:
    surface = server.client.get(f"/api/experiments/{finished}/surface?plane=basins")
    x, y = surface["points"]["sgd"]
    point_at(still, drawn(still).first, x, y)
    tooltip = still.locator(".tooltip")
    expect(tooltip).to_contain_text("sgd: x")
    for quantity in ("train loss", "train error", "test loss", "test error"):
        expect(tooltip).to_contain_text(quantity)
    assert re.search(r"x -?[\d.e-]+, y -?[\d.e-]+", tooltip.inner_text())


def test_the_profile_moves_marks_on_the_surfaces_and_back(still: Page, server: Server, finished: str) -> None:
    surfaces, profiles = drawn(still), drawn(still, ".profiles")
    point_at(still, profiles.first, 0.5)
    expect(still.locator(".surfaces .stage").first.locator(".mark")).to_have_count(3)
    expect(still.locator(".surfaces .stage").last.locator(".mark")).to_have_count(3)
    expect(still.locator(".tooltip")).to_contain_text("t 0.50")
    middle = server.client.get(f"/api/experiments/{finished}/surface?plane=basins")["points"]
    halfway = [(middle["sgd"][axis] + middle["altsdp"][axis]) / 2 for axis in (0, 1)]
    expected = surfaces.first.evaluate(
        """({ _fullLayout: { xaxis, yaxis } }, [x, y]) =>
          [xaxis._offset + xaxis.d2p(x), yaxis._offset + yaxis.d2p(y)]""",
        halfway,
    )
    marks = (
        still.locator(".surfaces .stage")
        .first.locator(".mark")
        .evaluate_all("marks => marks.map((mark) => [parseFloat(mark.style.left), parseFloat(mark.style.top)])")
    )
    assert any(place == pytest.approx(expected, abs=2) for place in marks), "one mark is in the middle of the line"

    still.mouse.move(5, 5)
    expect(still.locator(".mark")).to_have_count(0)
    point_at(still, surfaces.first, *halfway)
    rule = still.locator(".profiles .rule").first
    expect(rule).to_be_visible()
    for place in (still.locator(".surfaces .stage").first, still.locator(".profiles .stage").first):
        expect(place.locator(".mark:not(.minor)"), "only the path under the pointer has a large dot").to_have_count(1)
    left = rule.evaluate("rule => parseFloat(rule.style.left)")
    at = profiles.first.evaluate("({ _fullLayout: { xaxis } }, left) => xaxis.p2d(left - xaxis._offset)", left)
    assert at == pytest.approx(0.5, abs=0.3)


def test_contour_and_relief_show_the_same_surface(page: Page) -> None:
    page.get_by_role("radio", name="3-D").check()
    page.wait_for_function("() => document.querySelectorAll('.surfaces .plot canvas').length >= 2")
    idle(page)
    expect(page).to_have_url(re.compile("form=3d"))
    assert drawn(page).first.evaluate("({ data: [{ type }] }) => type") == "surface"
    drawn_by = "({ _fullLayout: { scene } }) => scene._scene.glplot.gl.constructor.name"
    assert drawn(page).first.evaluate(drawn_by).startswith("WebGL")
    point_at(page, drawn(page, ".profiles").first, 0.5)
    expect(page.locator(".surfaces .stage").first.locator(".mark")).to_have_count(3)
    page.go_back()
    page.wait_for_function("() => document.querySelector('.surfaces .plot')?.data?.[0].type === 'contour'")


def test_the_address_holds_the_whole_view(page: Page, open_page: Any, server: Server) -> None:
    page.get_by_role("radio", name="valley").check()
    page.get_by_label("show", exact=True).select_option("test-loss")
    page.locator(".surfaces").get_by_label("log", exact=True).check()
    page.get_by_label("clip", exact=True).focus()
    page.get_by_label("clip", exact=True).press("ArrowLeft")
    page.locator(".profiles").get_by_label("log loss").check()
    page.locator(".training").get_by_label("log loss").uncheck()
    page.locator(".legend button").first.click()
    box = drawn(page).first.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile("zoom="))
    idle(page)
    other = open_page(server, page.url.removeprefix(server.address))
    idle(other)
    state = """() => {
      const [plot] = document.querySelectorAll('.surfaces .plot');
      const { xaxis, yaxis } = plot._fullLayout;
      return {
        chosen: [...document.querySelectorAll('.surfaces input[type=radio]:checked')].map((input) => input.value),
        show: document.querySelector('.surfaces select').value,
        boxes: [...document.querySelectorAll('input[type=checkbox]')].map((input) => input.checked),
        pressed: [...document.querySelectorAll('.legend button')].map((button) => button.getAttribute('aria-pressed')),
        clip: plot.data[0].zmax.toPrecision(3),
        zoom: [...xaxis.range, ...yaxis.range].map((value) => value.toPrecision(3)),
      };
    }"""
    assert other.evaluate(state) == page.evaluate(state)
    assert page.evaluate(state)["chosen"] == ["valley", "contour"]


def test_back_undoes_the_last_choice(page: Page) -> None:
    page.get_by_role("radio", name="valley").check()
    expect(page.get_by_role("radio", name="valley")).to_be_checked()
    page.go_back()
    expect(page.get_by_role("radio", name="basins")).to_be_checked()
    page.go_forward()
    expect(page.get_by_role("radio", name="valley")).to_be_checked()


def test_an_old_link_with_its_own_plane_scale_and_clip_opens_as_it_was(
    open_page: Any, server: Server, finished: str
) -> None:
    page = open_page(server, f"/experiments/{finished}?plane=valley&log=0&clip=2.5&show=train-loss")
    idle(page)
    expect(page.get_by_role("radio", name="valley")).to_be_checked()
    expect(page.locator(".surfaces").get_by_label("log", exact=True)).not_to_be_checked()
    assert drawn(page).first.evaluate("({ data: [{ zmax }] }) => zmax") == pytest.approx(2.5)


def test_the_tolerance_is_a_contour_with_its_value(still: Page, server: Server, finished: str) -> None:
    verdict = server.client.get(f"/api/experiments/{finished}/verdict")
    lines = server.client.get(f"/api/experiments/{finished}/profile")["lines"]
    loss = lines["sgd-altsdp"]["loss"]["train"]
    level = max(loss[0], loss[-1]) + verdict["tolerance"]
    texts = drawn(still).first.evaluate("({ layout }) => layout.annotations.map(({ text }) => text)")
    contours = drawn(still).first.evaluate("({ data }) => data.filter(({ name }) => name === 'tolerance').length")
    assert contours == 2, "a line and its halo"
    shown = next(text for text in texts if text.startswith("tolerance: loss ≤"))
    assert float(shown.rpartition(" ")[2]) == pytest.approx(level, rel=0.01)
    expect(still.locator(".surfaces .caption")).to_contain_text("Bold contour")


def test_every_picture_has_its_numbers_behind_it(page: Page, server: Server, finished: str) -> None:
    buttons = page.get_by_role("button", name="Table", exact=True)
    plots = page.locator(".plot:visible, .matrix:visible").count()
    assert buttons.count() == plots
    for index in range(plots):
        buttons.nth(index).click()
    expect(page.locator(".behind table")).to_have_count(plots)
    surface = page.locator(".surfaces .behind table").first
    assert surface.locator("tbody tr").count() == 9
    epochs = server.client.get(f"/api/experiments/{finished}/minima")["minima"]
    rows = page.locator(".training .behind tbody tr").count()
    assert rows == sum(len(minimum["epochs"]["epoch"]) for minimum in epochs.values())


def test_minima_training_and_sparsity_are_those_of_the_experiment(still: Page, server: Server, finished: str) -> None:
    minima = server.client.get(f"/api/experiments/{finished}/minima")["minima"]
    rows = still.locator(".minima tbody tr")
    assert rows.count() == len(minima)
    for index, minimum in enumerate(minima.values()):
        expect(rows.nth(index)).to_contain_text(f"{100 * minimum['final']['test_accuracy']:.1f} %")
    titles = drawn(still, ".training").first.evaluate("({ layout }) => layout.annotations.map(({ text }) => text)")
    assert len(titles) == 6
    shared = drawn(still, ".training").first.evaluate(
        "({ layout }) => ['xaxis2', 'xaxis5'].map((axis) => layout[axis].matches)"
    )
    assert shared == ["x", "x"], "one axis of epochs for all"
    bars = drawn(still, ".sparsity").first.evaluate("({ data }) => data.length")
    assert bars == 2 * len(minima)


def test_provenance_names_data_seeds_versions_workers_and_times(page: Page, server: Server, finished: str) -> None:
    contents = server.client.get(f"/api/experiments/{finished}/contents")
    facts = page.locator(".provenance-facts")
    known = contents["provenance"]
    expect(facts).to_contain_text(known["fingerprint"])
    for name, version in known["versions"].items():
        expect(facts).to_contain_text(f"{name} {version}")
    for hand in contents["workers"]:
        expect(facts).to_contain_text(f"{hand['worker']}: {hand['tasks']} tasks")
    for words in (
        "sgd 0, altsdp 0, control 5",
        "population",
        "the first 400 samples of train and test",
        known["machine"],
    ):
        expect(facts).to_contain_text(words)
    page.get_by_role("tab", name="Spec").click()
    expect(page.get_by_label("spec of this experiment")).to_contain_text('"samples": 400')


def test_nothing_is_sent_to_plotlys_cloud(still: Page) -> None:
    plots = still.locator(".plot:visible").all()
    assert len(plots) == 7
    for plot in plots:
        assert plot.evaluate("({ _context }) => [_context.showSendToCloud, _context.plotlyServerURL]") == [False, ""]
    assert still.locator(".modebar-btn").count() == 0


def test_the_keyboard_reaches_values_and_paths(still: Page) -> None:
    drawn(still).first.focus()
    still.keyboard.press("ArrowRight")
    expect(still.locator(".tooltip")).to_contain_text("train loss")
    before = still.locator(".tooltip p").inner_text()
    still.keyboard.press("ArrowUp")
    expect(still.locator(".tooltip p")).not_to_have_text(before)
    still.keyboard.press("Escape")
    expect(still.locator(".tooltip")).to_be_hidden()
    drawn(still, ".profiles").first.focus()
    still.keyboard.press("ArrowRight")
    expect(still.locator(".tooltip")).to_contain_text("t 0.52")
    expect(still.locator(".surfaces .mark").first).to_be_visible()


def test_plots_follow_the_theme_at_once(page: Page) -> None:
    ink = "() => document.querySelector('.profiles .plot')._fullLayout.font.color"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => ({ink})() !== before", arg=light)


@pytest.mark.parametrize("width", [1440, pytest.param(1024, marks=pytest.mark.drill), 390])
def test_nothing_overflows(open_page: Any, server: Server, finished: str, width: int) -> None:
    page = open_page(server, f"/experiments/{finished}", width=width)
    idle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for plot in page.locator(".plot:visible").all():
        box, panel = plot.bounding_box(), plot.locator("xpath=ancestor::section").bounding_box()
        assert box["x"] >= panel["x"]
        assert box["x"] + box["width"] <= panel["x"] + panel["width"] + 1


def test_a_phone_shows_the_verdict_first_and_hides_no_path_and_no_barrier(
    open_page: Any, server: Server, finished: str
) -> None:
    page = open_page(server, f"/experiments/{finished}", width=390, height=844)
    idle(page)
    expect(page.locator(".summary td").first).to_be_visible()
    tops = page.evaluate(
        "['.verdict', '.surfaces', '.profiles'].map((part) => document.querySelector(part).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    legend = page.locator(".profiles .legend")
    assert legend.evaluate("list => list.scrollHeight <= list.clientHeight"), "every entry is in sight"
    tables = page.locator(".summary .scroll, .minima .scroll")
    assert tables.evaluate_all("all => all.every((table) => table.scrollWidth <= table.clientWidth)")
    cell = page.locator(".summary td[data-title='barrier, nats']").first.bounding_box()
    assert cell["x"] + cell["width"] <= 390


def test_pictures_stay_whole_when_the_window_changes(page: Page) -> None:
    for width in (1024, 390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => innerWidth === width", arg=width)
        idle(page)
        assert page.evaluate(
            """() => [...document.querySelectorAll(':is(.surfaces, .profiles) .plot')].every((plot) => {
              const { width, height, xaxis, yaxis } = plot._fullLayout;
              const room = plot.closest('figure').clientWidth;
              return width <= room && width > 0.4 * room && xaxis._length > 0.5 * width && yaxis._length > 0.4 * height;
            })"""
        )
    point_at(page, drawn(page, ".profiles").first, 0.5)
    expect(page.locator(".surfaces .stage").first.locator(".mark")).to_have_count(3)
    surface = drawn(page).first
    surface.evaluate("plot => plot.scrollIntoView({ block: 'center' })")
    box = surface.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"], steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("zoom="))


@pytest.mark.parametrize("dark", [False, True])
def test_nobody_is_shut_out(open_page: Any, server: Server, finished: str, axe: str, dark: bool) -> None:
    page = open_page(server, f"/experiments/{finished}", dark=dark)
    idle(page)
    assert violations(page, axe) == []


def test_an_experiment_can_be_varied(page: Page, server: Server, finished: str) -> None:
    page.get_by_role("link", name="Vary").click()
    expect(page.locator(".chooser .hint")).to_have_text("The spec of finished.")
    page.get_by_role("tab", name="Spec").click()
    shown = json.loads(page.get_by_label("The spec as JSON").inner_text())
    assert shown.pop("name") != "finished"
    assert shown == {key: value for key, value in server.client.experiment(finished)["spec"].items() if key != "name"}


def test_an_unknown_experiment_is_told(open_page: Any, server: Server) -> None:
    page = open_page(server, "/experiments/0123456789abcdef")
    page.guard.expect("404")
    expect(page.get_by_role("heading", level=1)).to_have_text("Experiment not found")
