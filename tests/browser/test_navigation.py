"""What holds on every view: accessible, by keyboard alone, on a phone, in both themes, and across lost connections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG_PATIENCE, Server, violations

VIEWS = {
    "/": "Experiments",
    "/new": "New experiment",
    "/workers": "Workers and queue",
    "/help": "What the words mean",
}
LOST = r"Failed to load resource|ERR_|network error"
SETTLED = {"/": "tr.experiment canvas", "/new": ".cost", "/workers": "tbody tr", "/help": ".terms"}


def wait_until_settled(page: Page, path: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(VIEWS[path])
    expect(page.locator(SETTLED[path]).first).to_be_visible(timeout=LONG_PATIENCE)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", VIEWS)
def test_axe_finds_nothing_serious(
    server: Server, finished: str, open_page: Any, axe: str, path: str, dark: bool
) -> None:
    assert finished
    page = open_page(server, path, dark=dark)
    wait_until_settled(page, path)
    for details in page.locator("details").all():
        details.evaluate("details => { details.open = true; }")
    assert violations(page, axe) == []


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_is_wider_than_a_phone(server: Server, finished: str, open_page: Any, path: str) -> None:
    assert finished
    page = open_page(server, path, width=390, height=844)
    wait_until_settled(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, select, nav a, .button')]
            .filter((control) => control.checkVisibility())
            .map((control) => [control.outerHTML.slice(0, 80), control.getBoundingClientRect().height])
            .filter(([, height]) => height < 24)"""
    )
    assert small == []


def test_the_theme_follows_the_system_until_one_is_chosen(server: Server, open_page: Any) -> None:
    page = open_page(server, "/help", dark=True)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    switch = page.get_by_role("button", name=re.compile("Theme"))
    switch.click()
    switch.click()
    expect(switch).to_have_attribute("data-choice", "dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_everything_is_reached_and_done_by_keyboard(server: Server, open_page: Any) -> None:
    experiment = server.submit(name="keys", training={"epochs": 2000, "batch_size": 8})
    page = open_page(server, "/?search=keys")
    expect(page.get_by_role("link", name="keys")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    press_until(page, page.get_by_role("button", name="Cancel keys"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Delete keys")).to_be_visible(timeout=LONG_PATIENCE)
    press_until(page, page.get_by_role("button", name="Delete keys"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert server.client.experiment(experiment)["state"] == "cancelled"
    press_until(page, page.get_by_role("link", name="Workers"), backwards=True)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page).to_have_url(re.compile("/workers$"))


def press_until(page: Page, target: Any, *, backwards: bool = False) -> None:
    """Go through the page with Tab; every stop on the way must show that it has the focus."""
    for _ in range(80):
        if target.evaluate("control => control === document.activeElement"):
            return
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        assert page.evaluate(
            """() => {
                const at = document.activeElement;
                if (at === document.body) return true;
                const shown = getComputedStyle(at.matches('.visually-hidden') ? at.parentElement : at);
                return shown.outlineStyle !== 'none' && parseFloat(shown.outlineWidth) >= 1;
            }"""
        ), "a control with the focus does not show it"
    raise AssertionError("the control cannot be reached by Tab")


def test_a_killed_server_is_noticed_quietly_and_the_list_goes_on_when_it_is_back(
    server: Server, open_page: Any
) -> None:
    experiment = server.submit(name="survivor", training={"epochs": 2000, "batch_size": 8})
    page = open_page(server)
    page.guard.expect(LOST)
    row = page.locator(f'tr[data-id="{experiment}"]')
    expect(row).to_have_attribute("data-state", "running", timeout=LONG_PATIENCE)
    server.kill()
    expect(page.locator("#notice")).to_contain_text("does not answer")
    expect(row).to_be_visible()
    server.start()
    expect(page.locator("#notice")).to_be_hidden()
    page.get_by_role("button", name="Cancel survivor").click()
    expect(row).to_have_attribute("data-state", "cancelled", timeout=LONG_PATIENCE)


def test_an_answer_that_breaks_off_is_asked_for_again_and_what_is_shown_stays(
    server: Server, finished: str, open_page: Any
) -> None:
    page = open_page(server, "/?search=finished")
    expect(page.locator(f'tr[data-id="{finished}"]')).to_be_visible()
    page.evaluate(
        """() => {
          globalThis.answers = [];
          for (const read of ['text', 'json']) {
            const whole = Response.prototype[read];
            Response.prototype[read] = async function () {
              if (!this.url.includes('/api/experiments?')) return whole.call(this); // a thumbnail
              answers.push(this.url);
              if (answers.length === 1) throw new TypeError('network error');
              return whole.call(this);
            };
          }
          globalThis.lost = 0;
          new MutationObserver((changes) => { for (const { removedNodes } of changes) lost += removedNodes.length; })
            .observe(document.querySelector('.experiments tbody'), { childList: true });
        }"""
    )
    page.wait_for_function("() => answers.length > 1")
    expect(page.locator("#notice")).to_be_hidden()
    first, second, *_ = page.evaluate("answers")
    assert first == second
    assert page.evaluate("lost") == 0
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_submission_that_the_server_did_not_hear_says_so_and_can_be_repeated(
    empty_server: Server, open_page: Any
) -> None:
    page = open_page(empty_server, "/new")
    expect(page.get_by_role("button", name="Run it")).to_be_visible()
    page.guard.expect(LOST)
    empty_server.kill()
    page.get_by_role("button", name="Run it").click()
    expect(page.get_by_role("alert")).to_contain_text("try again")
    empty_server.start()
    expect(page.locator("#notice")).to_be_hidden()
    page.get_by_role("button", name="Run it").click()
    page.wait_for_url(re.compile("/experiments/"), timeout=LONG_PATIENCE)
    assert len(list(empty_server.client.experiments())) == 1


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "locked", workers=0, environment={"VALLEY_API_KEY": "open sesame, said the tester"})
    made.start()
    yield made
    made.stop()


def test_a_key_is_asked_for_once(locked: Server, open_page: Any) -> None:
    page = open_page(locked)
    page.guard.expect("status of 401")
    expect(page.get_by_role("dialog")).to_contain_text("API key required")
    page.get_by_role("textbox", name="Key").fill("wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog")).to_contain_text("rejected that key")
    page.get_by_role("textbox", name="Key").fill("open sesame, said the tester")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Run the demo")).to_be_visible()
    page.goto("/workers")
    expect(page.get_by_text("No workers are running")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_addresses_that_do_not_exist_say_so(server: Server, open_page: Any) -> None:
    page = open_page(server, "/help")
    page.evaluate("history.pushState(null, '', '/nowhere'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.get_by_role("heading", level=1)).to_have_text("Page not found")


def test_the_policy_forbids_eval_and_files_are_kept_for_ever(server: Server, open_page: Any) -> None:
    page = open_page(server, "/")
    answer = page.request.get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe-eval" not in policy
    assert "script-src 'self'" in policy
    plotly = page.locator('meta[name="plotly"]').get_attribute("content")
    script = page.request.get(plotly)
    assert script.ok
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-encoding"] == "gzip"
    again = page.request.get(plotly, headers={"If-None-Match": script.headers["etag"]})
    assert again.status == 304
    style = page.locator('link[rel="stylesheet"]').first.get_attribute("href")
    assert "immutable" in page.request.get(style).headers["cache-control"]
    assert page.request.get("/static/0/nothing.js").status == 404
