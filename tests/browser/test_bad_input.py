"""What people do not plan: a failed experiment, a cancelled one, names with tags in them, a plane that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import expect
from safetensors.torch import load_file, save_file

from tests.browser.conftest import AWKWARD, LONG_PATIENCE, TINY, Server, idle, violations
from tests.browser.test_experiment import drawn, point_at


def test_a_name_is_text_and_never_markup(server: Server, finished: str, failed: str, open_page: Any) -> None:
    page = open_page(server, "/?search=averyvery")
    expect(page.locator("tr.experiment .name a").first).to_have_text(AWKWARD)
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
    reasons = server.client.experiment(failed)["error"].split("; ")
    expect(page.locator(".verdict .reasons li")).to_have_text(reasons)
    expect(page.locator(".verdict .badge")).to_have_text("failed")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    expect(page.locator(".surfaces")).to_contain_text("was not computed")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, axe) == []


def test_a_cancelled_experiment_keeps_what_it_has_and_goes_on(server: Server, open_page: Any) -> None:
    experiment = server.submit(name="stopped", training={"epochs": 2000, "batch_size": 8})
    page = open_page(server, f"/experiments/{experiment}")
    page.locator(".training .plot[data-draws]").wait_for(timeout=LONG_PATIENCE)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel it").click()
    expect(page.locator(".verdict .badge")).to_have_text("cancelled", timeout=LONG_PATIENCE)
    expect(page.locator(".training .plot")).to_be_visible()
    page.reload()
    page.locator(".training .plot[data-draws]").wait_for()
    epochs, losses = page.locator(".training .plot").evaluate("({ data: [{ x, y }] }) => [x, y]")
    assert len(epochs) == len(losses), "each loss stands at its epoch"
    assert None not in losses
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".verdict .badge")).to_have_text(re.compile("queued|running"))
    server.client.post(f"/api/experiments/{experiment}/cancel")
    expect(page.locator(".verdict .badge")).to_have_text("cancelled", timeout=LONG_PATIENCE)


def test_an_address_that_makes_no_sense_shows_the_default(server: Server, finished: str, open_page: Any) -> None:
    page = open_page(
        server, f"/experiments/{finished}?plane=nowhere&show=all&form=4d&clip=-1&zoom=1,2&camera=x&hide=,,"
    )
    idle(page)
    expect(page.get_by_role("radio", name="basins")).to_be_checked()
    expect(page.get_by_role("radio", name="contour")).to_be_checked()


def upload(server: Server, path: Path, model: dict[str, Any]) -> str:
    """Somebody's own weights; returns their id."""
    form = {"name": path.stem, "model": json.dumps(model), "dataset": "digits"}
    with path.open("rb") as file:
        found = httpx.post(f"{server.address}/api/checkpoints", data=form, files={"file": file}, timeout=180)
    assert found.status_code == 201, found.text
    return str(found.json()["id"])


def test_values_beyond_all_numbers_are_drawn_and_told(
    server: Server, finished: str, open_page: Any, tmp_path: Path
) -> None:
    """Somebody's own weights, far too large: everything in between is beyond what a float can hold."""
    model = TINY["model"]
    mine, huge = tmp_path / "mine.safetensors", tmp_path / "huge.safetensors"
    server.client.download(finished, "sgd.safetensors", mine)
    save_file({name: 1e13 * tensor for name, tensor in load_file(mine).items()}, huge)
    minima = {path.stem: {"checkpoint": upload(server, path, model)} for path in (mine, huge)}
    experiment = server.submit(
        name="huge",
        minima={**minima, "control": {"seed": 5}},
        curves={},
        planes={"basins": {"through": ["mine", "huge", "control"], "resolution": 9, "complete": "random"}},
    )
    ended = server.wait(experiment)
    assert ended["state"] == "done", ended["error"]
    page = open_page(server, f"/experiments/{experiment}")
    idle(page)
    expect(page.locator(".verdict .badge")).to_have_text("undecided")
    expect(page.locator(".verdict")).to_contain_text("the loss at an end of the line is infinite")
    expect(page.locator(".profiles")).to_contain_text("2.26 to ∞")
    x, y = server.client.get(f"/api/experiments/{experiment}/surface?plane=basins")["points"]["huge"]
    point_at(page, drawn(page).first, x, y)
    expect(page.locator(".tooltip")).to_contain_text("train loss∞")


def test_a_network_with_batchnorm_says_how_its_statistics_are_made(server: Server, open_page: Any) -> None:
    experiment = server.submit(
        name="normalised", model={"name": "resnet56", "depth": 8, "width": 4}, samples=200, batch_norm="running"
    )
    ended = server.wait(experiment)
    assert ended["state"] == "done", ended["error"]
    page = open_page(server, f"/experiments/{experiment}")
    idle(page)
    expect(page.locator(".provenance-facts")).to_contain_text("running: averages over batches")
    expect(page.locator(".verdict .figures")).to_be_visible()
    ticks = drawn(page, ".training").first.locator(".yaxislayer-above .ytick, .ytick").count()
    assert ticks >= 3, "a narrow range of losses has ticks on a logarithmic axis, too"
