"""The list as a table: columns, order, pages without end, names and tags in place, many at once, the trash, endings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import LONG_PATIENCE, TINY, Server, occupied, violations
from tests.browser.test_list import row
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.migrations import migrate

COUNT = 57
PAGE = 50


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without workers whose list is longer than a page, of experiments that were cancelled."""
    made = Server(tmp_path_factory.mktemp("crowd"), workers=0)
    database = Database(f"sqlite:///{made.home / 'valley.db'}")
    migrate(database)
    table = ExperimentTable(database)
    with database.write() as connection:
        for number in range(COUNT):
            spec = parse_spec(TINY | {"name": f"number {number:02}"})
            table.end(connection, table.add(connection, spec, key=None, priority=100).id, "cancelled")
    database.close()
    made.start()
    yield made
    made.stop()


def names(page: Page) -> list[str]:
    found: list[str] = page.locator("tr.experiment .naming > a").all_inner_texts()
    return found


def select(page: Page, *wanted: str) -> None:
    for name in wanted:
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).check()


@pytest.mark.drill  # needs frames, which a busy headless browser may not draw for a minute
def test_pages_follow_each_other_without_end_in_the_order_of_the_server(crowd: Server, open_page: Any) -> None:
    page = open_page(crowd, "/?sort=name&search=number", height=500)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.locator("tr.experiment")).to_have_count(PAGE)
    assert names(page)[0] == "number 00"
    page.keyboard.press("End")
    expect(page.locator("tr.experiment")).to_have_count(COUNT)
    assert names(page) == [f"number {number:02}" for number in range(COUNT)]
    expect(page.locator(".end")).to_contain_text(f"{COUNT} shown")
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
    # What is polled afterwards is what is on screen: by ids, not the whole list.
    with page.expect_request(lambda request: "ids=" in request.url) as polled:
        pass
    assert polled.value.url.count("%2C") < 30
    page.get_by_role("button", name="name", exact=True).click()
    expect(page).to_have_url(re.compile(r"sort=-name"))
    expect(page.locator("tr.experiment").first).to_contain_text(f"number {COUNT - 1}")
    expect(page.get_by_role("columnheader", name="name")).to_have_attribute("aria-sort", "descending")


def test_the_button_is_the_way_of_the_keyboard_and_leads_to_the_first_new_row(crowd: Server, open_page: Any) -> None:
    page = open_page(crowd, "/?sort=name&search=number", height=500)
    expect(page.locator("tr.experiment")).to_have_count(PAGE)
    page.get_by_role("button", name="Show more").evaluate("button => { button.focus({ preventScroll: true }); }")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=f"number {PAGE}", exact=True)).to_be_focused()


@pytest.mark.drill  # needs frames, which a busy headless browser may not draw for a minute
def test_new_rows_appear_without_moving_focus_or_losing_what_is_loaded(crowd: Server, open_page: Any) -> None:
    page = open_page(crowd, "/?search=number", height=500)
    page.get_by_role("button", name="Show more").evaluate("button => button.click()")
    expect(page.locator("tr.experiment")).to_have_count(COUNT)
    expect(row(page, "number 56").get_by_role("link", name="number 56")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("link", name="number 56", exact=True).focus()
    new = crowd.submit(name="a newcomer, number 57")
    expect(page.locator("tr.experiment").first).to_contain_text("a newcomer")
    expect(page.get_by_role("link", name="number 56", exact=True)).to_be_focused()
    rest = [f"number {number:02}" for number in reversed(range(COUNT))]
    expect(page.locator("tr.experiment")).to_have_count(PAGE + 1)
    assert names(page) == ["a newcomer, number 57", *rest[:PAGE]], "rows far from the screen are not kept"
    page.keyboard.press("End")
    expect(page.locator("tr.experiment").last).to_contain_text("number 00")
    assert names(page)[-10:] == rest[-10:]
    crowd.client.post(f"/api/experiments/{new}/cancel")
    crowd.wait(new)
    crowd.client.delete(f"/api/experiments/{new}?permanent=true")


def test_rows_are_selected_one_by_one_by_range_and_all(crowd: Server, open_page: Any) -> None:
    page = open_page(crowd, "/?sort=name&search=number 0")
    expect(page.locator("tr.experiment")).to_have_count(10)
    page.get_by_role("checkbox", name="Select number 02").click()
    page.get_by_role("checkbox", name="Select number 06").click(modifiers=["Shift"])
    expect(page.locator(".bulk")).to_contain_text("5 selected")
    page.get_by_role("checkbox", name="Select number 04").click()
    expect(page.locator(".bulk")).to_contain_text("4 selected")
    page.reload()
    expect(page.get_by_role("checkbox", name="Select number 03"), "the address holds the selection").to_be_checked()
    everything = page.get_by_role("checkbox", name="Select all shown")
    assert everything.evaluate("box => box.indeterminate")
    everything.click()
    expect(page.locator(".bulk")).to_contain_text("10 selected")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".bulk")).to_be_hidden()


def test_many_are_tagged_cancelled_and_deleted_each_with_undo(crowd: Server, open_page: Any, axe: str) -> None:
    for letter in "abcd":
        crowd.submit(name=f"many {letter}")
    page = open_page(crowd, "/?sort=name&search=many")
    expect(page.locator("tr.experiment")).to_have_count(4)
    select(page, "many a", "many b")
    assert violations(page, axe) == []

    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_label("tags, with commas between").fill("Paper, wide")
    page.keyboard.press("Enter")
    expect(row(page, "many b").locator(".chip")).to_have_text(["Paper", "wide"])
    expect(page.get_by_role("link", name="many a", exact=True)).to_be_focused()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("tr.experiment .chip")).to_have_count(0)

    select(page, "many a", "many b", "many c")
    page.locator(".bulk").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    for name in ("many a", "many b", "many c"):
        expect(row(page, name)).to_have_attribute("data-state", "cancelled")
    expect(row(page, "many d")).to_have_attribute("data-state", "queued")
    page.locator(".toast").filter(has_text="cancelled").get_by_role("button", name="Undo").click()
    for name in ("many a", "many b", "many c"):
        expect(row(page, name)).to_have_attribute("data-state", "queued")
    for name in ("many a", "many b"):
        page.get_by_role("button", name=f"Cancel {name}").click()
        expect(row(page, name)).to_have_attribute("data-state", "cancelled")

    select(page, "many a", "many b", "many c")
    page.locator(".bulk").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 experiment still queued or running stays")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("tr.experiment")).to_have_count(2)
    expect(page.get_by_role("link", name="many c", exact=True), "the row that took their place").to_be_focused()
    page.locator(".toast").filter(has_text="in the trash").get_by_role("button", name="Undo").click()
    expect(page.locator("tr.experiment")).to_have_count(4)
    expect(page.get_by_role("link", name="many a", exact=True)).to_be_focused()


def test_the_trash_gives_back_and_deletes_for_good(crowd: Server, open_page: Any, axe: str) -> None:
    page = open_page(crowd, "/?search=number 2")
    page.wait_for_load_state("networkidle")  # a thumbnail of what is gone would be an error on the console
    for number in (20, 21):
        (item,) = crowd.client.experiments(search=f"number {number}")
        crowd.client.delete(f"/api/experiments/{item['id']}")
    expect(page.locator("tr.experiment")).to_have_count(8)
    page.get_by_role("link", name="Trash").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Trash")
    expect(page).to_have_url(re.compile("trash=true"))
    expect(page.locator("tr.experiment")).to_have_count(2)
    assert violations(page, axe) == []
    page.get_by_role("button", name="Restore number 20").click()
    expect(page.locator("tr.experiment")).to_have_count(1)
    expect(page.get_by_role("button", name="Restore number 21"), "nothing in the trash can be opened").to_be_focused()
    page.get_by_role("button", name="Delete for good number 21").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("The trash is empty.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    assert len(list(crowd.client.experiments(search="number 2"))) == 9


def test_name_tags_and_note_change_in_place_and_can_be_searched(crowd: Server, open_page: Any, axe: str) -> None:
    page = open_page(crowd, "/?search=number 3&sort=name")
    page.get_by_role("button", name="Edit number 30").click()
    expect(page.get_by_label("name", exact=True)).to_be_focused()
    assert violations(page, axe) == []
    page.get_by_label("name", exact=True).fill("never")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit number 30")).to_be_focused()
    page.get_by_role("link", name="number 30", exact=True).press("F2")
    page.get_by_label("name", exact=True).fill("number 3 renamed")
    page.get_by_label("tags").fill("shelf, wide")
    page.get_by_label("note", exact=True).fill("the flattest")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Edit number 3 renamed")).to_be_focused()
    expect(row(page, "number 3 renamed")).to_contain_text("the flattest")
    row(page, "number 3 renamed").get_by_role("link", name="shelf").click()
    expect(page).to_have_url(re.compile("tag=shelf"))
    expect(page.locator("tr.experiment")).to_have_count(1)
    page.get_by_role("button", name="Show all, not only the tag shelf").click()
    expect(page.locator("tr.experiment")).to_have_count(10)
    page.get_by_label("Search name, tag or note").fill("FLATTEST")
    expect(page.locator("tr.experiment")).to_have_count(1)
    (changed,) = crowd.client.experiments(search="flattest")
    assert (changed["name"], changed["tags"], changed["note"]) == (
        "number 3 renamed",
        ["shelf", "wide"],
        "the flattest",
    )
    page.get_by_role("button", name="Edit number 3 renamed").click()
    page.get_by_label("tags").fill(41 * "a")
    page.keyboard.press("Enter")
    page.guard.expect("422")
    expect(page.get_by_role("alert")).to_contain_text("tags")


def test_columns_are_chosen_kept_and_reset(crowd: Server, open_page: Any) -> None:
    page = open_page(crowd)
    heads = page.locator("thead th[data-column]:visible")
    usual = ["name", "verdict", "rise", "barrier", "control", "zero groups", "accuracy", "data", "state", "took"]
    expect(heads.get_by_role("button")).to_have_text(usual)
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_role("checkbox", name="network").check()
    page.get_by_role("checkbox", name="rise").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader", name="network")).to_be_visible()
    page.reload()
    expect(page.get_by_role("columnheader", name="network")).to_be_visible()
    expect(page.get_by_role("columnheader", name="rise")).to_have_count(0)
    expect(row(page, "number 56").locator("[data-column=network]")).to_have_text("cnn 4-8 16")
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_role("button", name="Reset").click()
    expect(heads.get_by_role("button")).to_have_text(usual)


def test_a_phone_shows_cards_with_the_verdict_first(server: Server, finished: str, open_page: Any) -> None:
    page = open_page(server, "/?search=finished", width=390, height=844)
    card = page.locator(f'tr[data-id="{finished}"]')
    parts = {
        name: card.locator(name).bounding_box()
        for name in ("[data-column=verdict]", ".name", "[data-column=rise]", "[data-column=barrier]")
    }
    assert parts["[data-column=verdict]"]["y"] == min(box["y"] for box in parts.values())
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in parts.values())
    page.get_by_label("Sort by").select_option("-rise")
    expect(page).to_have_url(re.compile("sort=-rise"))


SPY = """
  window.notices = [];
  const Real = window.Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.notices.push([title, options.tag]); }
  };
"""


def test_the_tab_and_the_browser_say_when_a_watched_experiment_ends(server: Server, open_page: Any) -> None:
    with occupied(server):
        experiment = server.submit(name="watched", planes={})
        pages = [open_page(server, "/help"), open_page(server, f"/experiments/{experiment}")]
        pages[0].context.grant_permissions(["notifications"])
        pages[0].add_init_script(SPY)
        pages[0].goto("/?search=watched")
        pages[0].get_by_role("button", name="Notify me").click()
        expect(pages[0].get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
        expect(pages[1]).to_have_title("watched · Valleyscope")
    kind = server.wait(experiment, "done")["verdict_kind"]
    for page in pages:
        expect(page).to_have_title(f"✓ watched · {kind}", timeout=LONG_PATIENCE)
    assert pages[0].evaluate("window.notices") == [[f"✓ watched · {kind}", experiment]]
    pages[0].get_by_role("heading", level=1).click()
    expect(pages[0]).to_have_title("Experiments · Valleyscope")


def test_the_page_of_an_experiment_has_its_name_tags_and_note(server: Server, open_page: Any) -> None:
    """An answer with the old name may arrive after the change."""
    answers: list[tuple[Route, APIResponse]] = []

    def answer(route: Route) -> None:
        if route.request.method != "GET":
            return route.continue_()
        answers.append((route, route.fetch()))
        if len(answers) != 2:  # the second one is held back
            route.fulfill(response=answers[-1][1])
        return None

    with occupied(server):
        experiment = server.submit(name="plain")
        page = open_page(server, "/help")
        page.route(f"**/api/experiments/{experiment}", answer)
        page.goto(f"/experiments/{experiment}")
        page.get_by_role("button", name="Edit name, tags and note").click()
        page.get_by_label("name", exact=True).fill("told")
        page.get_by_label("tags").fill("spoken")
        page.get_by_label("note", exact=True).fill("for later")
        while len(answers) < 2:
            page.wait_for_timeout(50)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("told")
        expect(page.get_by_role("button", name="Edit name, tags and note")).to_be_focused()
        expect(page.locator(".heading .note")).to_have_text("for later")
        held, old = answers[1]
        with page.expect_response("**/api/workers"):
            held.fulfill(response=old)
        page.evaluate("() => new Promise((resolve) => { setTimeout(resolve, 200); })")  # later than the page draws
        expect(page.get_by_role("heading", level=1)).to_have_text("told")
        expect(page).to_have_title("told · Valleyscope")
        page.get_by_role("link", name="spoken").click()
        expect(row(page, "told")).to_be_visible()
        expect(page.locator("tr.experiment")).to_have_count(1)
        server.client.post(f"/api/experiments/{experiment}/cancel")
