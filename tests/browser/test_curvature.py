"""The curvature on the page: spectrum, growth in training, direction factors and the theorem's trial."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Server, idle, violations
from tests.landscape.curved import curved


@pytest.fixture(scope="module")
def address(shared_server: Server) -> str:
    """The path of a page whose sgd has everything, and whose altsdp has a spectrum alone."""
    return curved().send(shared_server.address).removeprefix(shared_server.address)


def test_the_panel_draws_what_was_measured_and_its_tables_have_the_numbers(
    open_page: Any, server: Server, address: str, axe: str
) -> None:
    page = open_page(server, address)
    idle(page)
    panel = page.locator("section.curvature")
    expect(panel.locator("figure .plot[data-draws]")).to_have_count(6)
    expect(panel).to_contain_text("the theorem predicts")
    expect(panel).to_contain_text("Hessian of the mean train loss over 1,437 samples")
    spectrum = panel.locator("figure").first
    spectrum.get_by_role("button", name="Table").click()
    expect(spectrum.get_by_role("cell", name="eigenvalue 1", exact=True).first).to_be_visible()
    row = page.locator("section.minima tbody tr").filter(has_text="sgd").first
    expect(row).to_contain_text("39")
    expect(row).to_contain_text("81 ± 0.5")
    assert not violations(page, axe)
