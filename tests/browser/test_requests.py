"""How often a page asks the server, and that developers still see the modules as they are written."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Request, expect

from tests.browser.conftest import Server, idle

MOST = 25


def test_an_experiment_page_needs_few_requests(browser: Browser, server: Server, finished: str) -> None:
    page = browser.new_context(base_url=server.address, viewport={"width": 1440, "height": 900}).new_page()
    asked: list[str] = []

    def note(request: Request) -> None:
        if request.url.startswith("http"):
            asked.append(request.url.removeprefix(server.address))

    page.on("request", note)
    page.goto(f"/experiments/{finished}")
    idle(page)
    expect(page.locator(".verdict .figures")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.context.close()
    assert len(asked) <= MOST, f"{len(asked)} requests: {asked}"
    assert len(asked) == len(set(asked)), "nothing is asked twice"
    assert sum(url.endswith(".js") and "/static/" in url for url in asked) == 2, "the page's modules, and its theme"


def test_another_view_opens_without_loading_more_of_the_page(open_page: Any, server: Server) -> None:
    page = open_page(server, "/workers")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("link", name="Help").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What the words mean")
    assert not [url for url in asked if url.endswith((".js", ".css", ".json"))]


def test_the_source_map_names_the_modules(open_page: Any, server: Server) -> None:
    page = open_page(server, "/help")
    script = page.locator("script[type=module]").get_attribute("src")
    found = page.request.get(f"{script}.map")
    assert found.headers["content-type"] == "application/json"
    assert {"main.js", "views/experiment.js", "plots/contour.js"} <= set(found.json()["sources"])
