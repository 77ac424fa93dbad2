"""The list of experiments: live, filtered, acted upon, and never lost."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG_PATIENCE, Server, occupied

LONG = {"training": {"epochs": 2000, "batch_size": 8}}


def row(page: Page, name: str) -> Any:
    return page.locator("tr.experiment").filter(has=page.get_by_role("link", name=name, exact=True))


def test_an_empty_list_offers_the_demo_in_one_click(empty_server: Server, open_page: Any) -> None:
    page = open_page(empty_server)
    expect(page.get_by_role("button", name="Run the demo")).to_be_visible()
    picture = page.get_by_role("img", name=re.compile("one valley"))
    expect(picture).to_be_visible()
    shown = "image => image.decode().then(() => image.naturalWidth > 0)"
    assert picture.evaluate(shown)
    page.emulate_media(color_scheme="dark")
    expect(picture).to_have_attribute("src", re.compile("dark"))
    assert picture.evaluate(shown)
    page.get_by_role("button", name="Run the demo").click()
    page.wait_for_url(re.compile(r"/experiments/[0-9a-f]{16}"), timeout=LONG_PATIENCE)
    expect(page.locator(".active-worker"), "nobody is there to run it").to_contain_text("valley worker")
    (item,) = empty_server.client.experiments()
    assert item["name"] == "digits"


def test_a_finished_experiment_shows_its_verdict_and_its_surface(server: Server, finished: str, open_page: Any) -> None:
    page = open_page(server, "/?search=finished")
    found = row(page, "finished")
    experiment = server.client.experiment(finished)
    expect(found).to_contain_text(experiment["verdict_kind"])
    for figure in ("rise", "barrier"):
        expect(found.locator(f"[data-column={figure}]")).to_have_text(f"{experiment[figure]:.3f}")
    for column, figure in (("zero", "zero_groups"), ("accuracy", "accuracy")):
        expect(found.locator(f"[data-column={column}]")).to_have_text(f"{100 * experiment[figure]:.1f} %")
    expect(found.locator("canvas")).to_have_attribute("aria-label", re.compile("train loss"))
    colours = found.locator("canvas").evaluate(
        "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
    )
    assert colours > 10
    found.get_by_role("link", name="finished", exact=True).click()
    page.wait_for_url(f"**/experiments/{finished}")


@pytest.mark.usefixtures("finished")
def test_the_list_looks_the_same_after_a_visit_to_an_experiment(server: Server, open_page: Any) -> None:
    page = open_page(server, "/?search=finished", width=1400)
    before = row(page, "finished").bounding_box()
    page.get_by_role("link", name="finished", exact=True).click()
    page.locator(".surfaces .plot[data-draws]").first.wait_for()
    page.go_back()
    expect(row(page, "finished")).to_be_visible()
    assert row(page, "finished").bounding_box() == before


def test_an_experiment_appears_runs_and_ends_while_one_watches(server: Server, open_page: Any) -> None:
    page = open_page(server)
    experiment = server.submit(name="appears")
    expect(row(page, "appears")).to_be_visible()
    server.wait(experiment, "done")
    expect(row(page, "appears")).to_have_attribute("data-state", "done")
    expect(row(page, "appears").locator("canvas")).to_have_attribute("aria-label", re.compile("train loss"))


def test_cancel_retry_and_delete_work_and_delete_asks_first(server: Server, open_page: Any) -> None:
    page = open_page(server)
    experiment = server.submit(name="doomed", **LONG)
    expect(row(page, "doomed")).to_be_visible()
    page.get_by_role("button", name="Cancel doomed").click()
    expect(row(page, "doomed")).to_have_attribute("data-state", "cancelled", timeout=LONG_PATIENCE)
    page.get_by_role("button", name="Retry doomed").click()
    expect(row(page, "doomed")).to_have_attribute("data-state", re.compile("queued|running"))
    page.get_by_role("button", name="Cancel doomed").click()
    expect(row(page, "doomed")).to_have_attribute("data-state", "cancelled", timeout=LONG_PATIENCE)

    page.get_by_role("button", name="Delete doomed").click()
    expect(page.get_by_role("dialog")).to_contain_text("moves to the trash")
    page.get_by_role("button", name="Keep it").click()
    assert server.client.experiment(experiment)["state"] == "cancelled"
    page.get_by_role("button", name="Delete doomed").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(page, "doomed")).to_have_count(0)
    assert experiment not in [item["id"] for item in server.client.experiments()]
    assert page.evaluate("document.activeElement.matches('tr.experiment .name a, h1')"), "focus stays in the list"
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "doomed")).to_be_visible()
    server.client.delete(f"/api/experiments/{experiment}?permanent=true")


def test_a_button_keeps_its_focus_when_its_experiment_begins(server: Server, open_page: Any) -> None:
    with occupied(server):
        experiment = server.submit(name="waits", **LONG)
        page = open_page(server, "/?search=waits")
        expect(row(page, "waits")).to_have_attribute("data-state", "queued")
        page.get_by_role("button", name="Cancel waits").focus()
    expect(row(page, "waits")).to_have_attribute("data-state", "running", timeout=LONG_PATIENCE)
    expect(page.get_by_role("button", name="Cancel waits")).to_be_focused()
    server.client.post(f"/api/experiments/{experiment}/cancel")


def test_a_choice_made_while_the_list_is_asked_for_counts(
    server: Server, finished: str, failed: str, open_page: Any
) -> None:
    page = open_page(server, "/help")
    page.clock.install()
    page.clock.pause_at(time.time() + 60)  # so that it is not asked again for no other reason than the time
    asked: list[str] = []

    def choose_meanwhile(route: Any) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            page.get_by_role("combobox", name="State").select_option("failed")
        route.continue_()

    page.route("**/api/experiments?*", choose_meanwhile)
    page.get_by_role("link", name="Experiments", exact=True).click()
    expect(page.locator(f'tr[data-id="{failed}"]')).to_be_visible()
    expect(page.locator(f'tr[data-id="{finished}"]')).to_have_count(0)


def test_search_state_and_order_stand_in_the_address_and_come_back(
    server: Server, finished: str, open_page: Any
) -> None:
    assert server.client.experiment(finished)["state"] == "done"
    page = open_page(server)
    page.get_by_label("Search name, tag or note").fill("no such name")
    expect(page.get_by_text("No experiments match.")).to_be_visible()
    page.get_by_label("Search name, tag or note").fill("finished")
    expect(row(page, "finished")).to_be_visible()
    page.get_by_role("combobox", name="State").select_option("done")
    page.get_by_role("button", name="name", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?search=finished&state=done&sort=name$"))
    page.reload()
    expect(page.get_by_label("Search name, tag or note")).to_have_value("finished")
    expect(page.get_by_role("combobox", name="State")).to_have_value("done")
    expect(row(page, "finished")).to_be_visible()
    expect(page.get_by_role("columnheader", name="name")).to_have_attribute("aria-sort", "ascending")
    page.go_back()
    expect(page.get_by_role("columnheader", name="submitted")).to_have_count(0)
    expect(page.locator("th[aria-sort]:visible")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("combobox", name="State")).to_have_value("")


def test_two_ticked_experiments_can_be_compared(
    server: Server, finished: str, finished_too: str, open_page: Any
) -> None:
    page = open_page(server, "/?search=finished")
    page.get_by_role("checkbox", name="Select finished", exact=True).check()
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_disabled()
    page.get_by_role("checkbox", name="Select finished too").check()
    expect(page.locator(".bulk")).to_contain_text("2 selected")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(re.compile(rf"/compare\?ids={finished},{finished_too}"))


@pytest.mark.parametrize("width", [1440, pytest.param(1024, marks=pytest.mark.drill), 390])
def test_every_control_of_a_row_can_be_hit_at_every_width(
    server: Server, finished: str, open_page: Any, width: int
) -> None:
    assert finished
    page = open_page(server, "/?search=finished", width=width)
    found = row(page, "finished")
    found.get_by_role("checkbox").check()
    found.get_by_role("button", name="Delete finished", exact=True).click()
    page.get_by_role("button", name="Keep it").click()
    # All at once: the list is asked for again now and then, and may move.
    boxes = found.evaluate(
        """row => ['.tick input', 'canvas', '.name a', '[data-column=verdict]', '[data-column=rise]', '.row-actions']
          .map((part) => {
          const { x, y, width, height } = row.querySelector(part).getBoundingClientRect();
          return { x, y, width, height };
        })"""
    )
    for index, a in enumerate(boxes):
        for b in boxes[index + 1 :]:
            apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"], (a, b)
