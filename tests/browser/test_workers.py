"""Workers and queue: who is alive and doing what, and what waits."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import LONG_PATIENCE, Server


def test_a_worker_is_shown_with_its_device_and_what_it_does(server: Server, open_page: Any) -> None:
    page = open_page(server, "/workers")
    workers = page.get_by_role("region", name="Workers")
    expect(workers.locator("tbody tr")).to_have_count(1, timeout=LONG_PATIENCE)
    expect(workers).to_contain_text("cpu")
    experiment = server.submit(name="busy", training={"epochs": 2000, "batch_size": 8})
    expect(workers.get_by_role("link", name="busy")).to_be_visible(timeout=LONG_PATIENCE)
    expect(workers).to_contain_text(re.compile("train:"))
    workers.get_by_role("link", name="busy").click()
    page.wait_for_url(f"**/experiments/{experiment}")
    server.client.post(f"/api/experiments/{experiment}/cancel")
    server.wait(experiment, "cancelled")


def test_what_waits_is_listed_in_order_with_its_priority(server: Server, open_page: Any) -> None:
    first = server.submit(name="first", priority=7, training={"epochs": 2000, "batch_size": 8})
    page = open_page(server, "/workers")
    queue = page.get_by_role("region", name="Queue")
    expect(queue.locator("tbody tr").first).to_contain_text("first")
    expect(queue.locator("tbody tr").first.locator("td").nth(3)).to_have_text("7")
    server.client.post(f"/api/experiments/{first}/cancel")
    expect(page.get_by_text("The queue is empty.")).to_be_visible()
