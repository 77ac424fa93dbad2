"""The matrix of minima: cells choose the pair that verdict, pictures and paths are about, and the address keeps it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, idle, violations
from tests.landscape.fork_cases import EPOCHS, KINDS, forked
from tests.landscape.many_minima import T, many_minima
from valleyscope.landscape.storage.records import PathValues

POINT_OF = """(plot, name) => {
  plot.scrollIntoView({ block: 'center' });
  const { xaxis, yaxis } = plot._fullLayout;
  const at = plot.data[0].text.findIndex((text) => text.split(', ').includes(name));
  const box = plot.getBoundingClientRect();
  return {
    x: box.left + xaxis._offset + xaxis.d2p(plot.data[0].x[at]),
    y: box.top + yaxis._offset + yaxis.d2p(plot.data[0].y[at]),
  };
}"""


@pytest.fixture(scope="module")
def five(shared_server: Server) -> str:
    """The path of a page of five minima: m0, m2, m4 in one basin, m1 and m3 in another."""
    return many_minima(5).send(shared_server.address).removeprefix(shared_server.address)


def cell(page: Page, first: str, second: str) -> Any:
    return page.locator(".heat").get_by_role("button", name=re.compile(f"^{first} to {second}:"))


def test_a_cell_judges_its_pair_everywhere_and_back_returns(open_page: Any, server: Server, five: str) -> None:
    page = open_page(server, five)
    idle(page)
    finding = page.locator(".verdict")
    expect(cell(page, "m0", "m2")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".heat button")).to_have_count(20)
    cell(page, "m1", "m3").click()
    expect(page).to_have_url(re.compile(r"[?&]pair=m1,m3"))
    expect(finding).to_contain_text("from m1 to m3")
    expect(page.locator(".matrix-judged")).to_contain_text("m1 and m3")
    expect(page.locator(".profiles .summary tbody tr").first).to_contain_text("line: m1 to m3")
    expect(page.get_by_role("radio", name="others")).to_be_checked()
    cell(page, "m0", "m3").click()
    expect(finding.locator(".badge")).to_have_text("separate")
    page.go_back()
    expect(finding).to_contain_text("from m1 to m3")
    page.go_back()
    expect(finding).to_contain_text("from m0 to m2")
    expect(page).not_to_have_url(re.compile("pair="))
    expect(page.get_by_role("radio", name="basins")).to_be_checked()


def test_clusters_order_the_matrix_and_forks_have_their_curves(open_page: Any, server: Server, five: str) -> None:
    page = open_page(server, five)
    idle(page)
    expect(page.locator(".minima-map")).to_contain_text("of the differences")
    for name in ("m3", "m1"):  # two clicks on the map open a pair
        place = page.locator(".minima-map .plot").evaluate(POINT_OF, name)
        page.mouse.click(**place)
    expect(page).to_have_url(re.compile(r"[?&]pair=m1,m3"))
    expect(page.locator(".verdict")).to_contain_text("from m1 to m3")
    expect(page.locator(".profiles")).to_be_in_viewport()
    cell(page, "m0", "m2").click()
    page.get_by_role("button", name="By clusters").click()
    names = page.locator(".heat tbody th").all_inner_texts()
    assert [int(name[1:]) % 2 for name in names] in ([0, 0, 0, 1, 1], [1, 1, 0, 0, 0])
    cell(page, "m1", "m3").click()
    expect(page.locator(".verdict")).to_contain_text("from m1 to m3")
    page = open_page(server, forked().send(server.address).removeprefix(server.address))
    idle(page, ".forks .plot")
    expect(page.locator(".forks .remarks")).to_contain_text("altsdp: from epoch 20 on")
    expect(page.locator(".forks tbody tr")).to_have_count(len(KINDS) * len(EPOCHS))


def test_keys_reach_every_cell_and_the_address_restores_the_pair(
    open_page: Any, server: Server, five: str, axe: str
) -> None:
    page = open_page(server, f"{five}?pair=m3,m4&matrix=rise", width=390, dark=True)
    idle(page)
    expect(page.locator(".verdict")).to_contain_text("from m3 to m4")
    expect(page.get_by_role("radio", name="rise")).to_be_checked()
    cell(page, "m0", "m1").focus()
    page.keyboard.press("ArrowDown")  # over the diagonal
    expect(cell(page, "m2", "m1")).to_be_focused()
    page.keyboard.press("End")
    expect(cell(page, "m2", "m4")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_contain_text("from m2 to m4")
    page.locator(".matrix").get_by_role("button", name="Table").click()
    expect(page.locator(".matrix .behind tbody tr")).to_have_count(10)
    assert not violations(page, axe)
    page.get_by_role("button", name="Back to m0 and m2").click()
    expect(page.locator(".verdict")).to_contain_text("from m0 to m2")


def test_the_aligned_matrix_stands_beside_the_one_as_given(open_page: Any, server: Server) -> None:
    landscape = many_minima(3)
    for name, path in landscape.lines.items():  # aligned, no line has a hill
        flat = {split: PathValues(np.full_like(T, 0.01), values.error) for split, values in path.splits.items()}
        landscape.aligned[name] = replace(path, splits=flat)
    path = landscape.send(server.address).removeprefix(server.address)
    page = open_page(server, f"{path}?pair=m0,m1")
    idle(page)
    expect(page.locator(".heat.aligned td[title]")).to_have_count(6)
    expect(page.locator(".profiles .summary")).to_contain_text("line: m0 to m1, aligned")
    expect(page.locator(".heat.aligned td[title^='m0 to m1']")).to_contain_text("✓")
    expect(page.locator(".verdict .badge")).to_have_text(["separate", "one basin up to permutation"])
