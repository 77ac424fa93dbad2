"""Comparing experiments: one colour scale, one zoom, overlaid profiles, and what differs in the specs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, idle, violations


@pytest.fixture(scope="module")
def page(share_page: Any, shared_server: Server, finished: str, finished_too: str) -> Page:
    found: Page = share_page(shared_server, f"/compare?ids={finished},{finished_too}")
    idle(found, ".plot", 5)
    return found


def test_surfaces_share_one_colour_scale_and_one_frame(page: Page) -> None:
    read = (
        "plots => plots.map(({ data: [{ zmin, zmax }], _fullLayout: { xaxis, yaxis } }) => "
        "[zmin, zmax, ...xaxis.range, ...yaxis.range])"
    )
    first, second = page.locator(".pictures").first.locator(".plot").evaluate_all(read)
    assert first == pytest.approx(second)


def test_a_zoom_in_one_is_a_zoom_in_all_and_in_the_address(page: Page) -> None:
    surfaces = page.locator(".pictures").first.locator(".plot")
    before = surfaces.last.evaluate("({ _fullLayout: { xaxis } }) => [...xaxis.range]")
    box = surfaces.first.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile("zoom="))
    page.wait_for_function(
        """() => {
          const [one, two] = [...document.querySelectorAll('.pictures .plot')].map((plot) => plot._fullLayout.xaxis);
          const pixel = (one.range[1] - one.range[0]) / one._length;
          return one.range.every((end, index) => Math.abs(end - two.range[index]) <= 2 * pixel);
        }"""
    )
    after = surfaces.last.evaluate("({ _fullLayout: { xaxis } }) => [...xaxis.range]")
    assert after[1] - after[0] < before[1] - before[0]
    page.get_by_role("button", name="whole plane").click()
    page.wait_for_function(
        "wanted => document.querySelectorAll('.pictures .plot')[1]._fullLayout.xaxis.range[0].toPrecision(4) == wanted",
        arg=page.evaluate("value => value.toPrecision(4)", before[0]),
    )


def test_profiles_and_training_lie_over_each_other(page: Page) -> None:
    names = page.locator(".overlays .plot").evaluate_all(
        "plots => plots.map(({ data }) => data.map(({ name }) => name))"
    )
    for traces in names:
        assert any(name.startswith("finished too") for name in traces)
        assert any(name.startswith("finished") and not name.startswith("finished too") for name in traces)


def test_only_the_fields_that_differ_are_listed(page: Page) -> None:
    rows = page.get_by_label("differences of the specs").locator("tbody tr")
    assert sorted(row.split()[0] for row in rows.all_inner_texts()) == ["name", "seed", "training.lr"]
    expect(rows.filter(has_text="seed").locator("td")).to_have_text(["seed", "0", "1"])


def test_verdicts_and_minima_of_all_are_in_one_table(page: Page) -> None:
    expect(page.get_by_label("verdicts").locator(".badge")).to_have_count(2)
    expect(page.get_by_label("minima of all experiments").locator("tbody tr")).to_have_count(6)


def test_verdicts_are_compared_by_kind_rise_barriers_zero_groups_and_accuracy(
    page: Page, shared_server: Server, finished: str, finished_too: str
) -> None:
    rows = page.get_by_label("verdicts").locator("tbody tr")
    for found, id in zip(rows.all(), (finished, finished_too), strict=True):
        item = shared_server.client.experiment(id)
        shown = found.locator("td").all_inner_texts()
        assert shown[1].strip() == item["verdict_kind"]
        numbers = [text.split()[0] for text in shown[2:6]]
        assert (numbers[0], numbers[1], numbers[3]) == tuple(
            f"{item[name]:.3f}" for name in ("rise", "barrier", "control_barrier")
        )
        assert shown[6:] == [f"{100 * item[name]:.1f} %" for name in ("zero_groups", "accuracy")]


def test_one_experiment_alone_is_nothing_to_compare(open_page: Any, server: Server, finished: str) -> None:
    page = open_page(server, f"/compare?ids={finished}")
    expect(page.locator("#view")).to_contain_text("Choose two or more experiments")


@pytest.mark.parametrize("width", [1440, 390])
def test_nobody_is_shut_out(
    open_page: Any, server: Server, finished: str, finished_too: str, axe: str, width: int
) -> None:
    page = open_page(server, f"/compare?ids={finished},{finished_too}", width=width)
    idle(page, ".plot", 5)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page, axe) == []
