"""What people do not plan: a failed experiment, a cancelled one, names with tags in them, a plane that is not there."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import AWKWARD, Server, violations
from tests.browser.test_experiment import idle


def test_a_name_is_text_and_never_markup(server: Server, finished: str, failed: str, open_page: Any) -> None:
    page = open_page(server, "/?search=averyvery")
    expect(page.get_by_role("heading", level=2)).to_have_text(AWKWARD)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name=AWKWARD).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(AWKWARD)
    page.goto(f"/compare?ids={finished},{failed}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(AWKWARD)
    expect(page.get_by_label("verdicts")).to_contain_text("failed")
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_failed_experiment_says_why_and_can_be_tried_again(
    server: Server, failed: str, open_page: Any, axe: str
) -> None:
    page = open_page(server, f"/experiments/{failed}", width=390, height=844)
    reason = server.client.experiment(failed)["error"]
    expect(page.locator(".verdict")).to_contain_text(re.compile(re.escape(reason.rstrip(".")), re.IGNORECASE))
    expect(page.locator(".verdict .badge")).to_have_text("failed")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    expect(page.locator(".surfaces")).to_contain_text("was not computed")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, axe) == []


def test_a_cancelled_experiment_keeps_what_it_has_and_goes_on(server: Server, open_page: Any) -> None:
    experiment = server.submit(name="stopped", training={"epochs": 2000, "batch_size": 8})
    page = open_page(server, f"/experiments/{experiment}")
    page.locator(".training .plot[data-draws]").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel it").click()
    expect(page.locator(".verdict .badge")).to_have_text("cancelled")
    expect(page.locator(".training .plot")).to_be_visible()
    page.reload()
    page.locator(".training .plot[data-draws]").wait_for()
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".verdict .badge")).to_have_text(re.compile("queued|running"))
    server.client.post(f"/api/experiments/{experiment}/cancel")
    expect(page.locator(".verdict .badge")).to_have_text("cancelled")


def test_an_address_that_makes_no_sense_shows_the_default(server: Server, finished: str, open_page: Any) -> None:
    page = open_page(
        server, f"/experiments/{finished}?plane=nowhere&show=all&form=4d&clip=-1&zoom=1,2&camera=x&hide=,,"
    )
    idle(page)
    expect(page.get_by_role("radio", name="valley")).to_be_checked()
    expect(page.get_by_role("radio", name="contour")).to_be_checked()
