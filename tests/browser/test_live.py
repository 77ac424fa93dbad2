"""Watching an experiment: it fills in coarse to fine, survives a killed server, and does not eat memory."""

from __future__ import annotations

import os
import time
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.test_experiment import idle

# A lost connection and what was not ready yet are noted by the browser itself, not by the page.
LOST = r"ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load resource|ERR_NETWORK|502|503"
FINE = {
    "valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 33},
    "basins": {"through": ["sgd", "altsdp", "control"], "resolution": 33},
}
PATIENCE = 240_000
MEGABYTE = 2**20


def watch(page: Page) -> None:
    """Keep a list of how much of the surface was hatched each time it was drawn."""
    page.evaluate(
        """() => {
          globalThis.seen = [];
          const note = () => {
            const caption = document.querySelector('.caption')?.textContent ?? '';
            const [, share] = /\\((\\d+) % of the grid/.exec(caption) ?? [];
            if (share !== undefined && seen.at(-1) !== Number(share)) seen.push(Number(share));
          };
          new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
        }"""
    )


def test_training_surface_and_verdict_appear_by_themselves(own_server: Server, open_page: Any) -> None:
    experiment = own_server.submit(name="live", planes=FINE, training={"epochs": 8, "batch_size": 64})
    page = open_page(own_server, f"/experiments/{experiment}")
    expect(page.locator(".verdict")).to_contain_text("No verdict yet", timeout=PATIENCE)
    expect(page.locator(".hatched").first).to_be_visible()
    watch(page)
    page.locator(".training .plot[data-draws]").wait_for(timeout=PATIENCE)
    page.locator(".surfaces .plot[data-draws]").first.wait_for(timeout=PATIENCE)
    expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".state")).to_contain_text("done in", timeout=PATIENCE)
    idle(page)
    seen = page.evaluate("seen")
    assert seen == sorted(seen), "it only ever fills"
    kinds = page.locator(".surfaces .plot").first.evaluate("({ data }) => data[0].type")
    assert kinds == "contour"
    assert page.locator(".surfaces .plot").first.evaluate("({ layout }) => layout.images.length") == 0, (
        "nothing is hatched"
    )


def test_a_killed_server_is_waited_for_and_caught_up_with(own_server: Server, open_page: Any) -> None:
    experiment = own_server.submit(name="interrupted", training={"epochs": 20, "batch_size": 64})
    page = open_page(own_server, f"/experiments/{experiment}")
    page.guard.expect(LOST)
    page.locator(".training .plot[data-draws]").wait_for(timeout=PATIENCE)
    own_server.kill()
    expect(page.locator("#notice")).to_contain_text("does not answer", timeout=PATIENCE)
    assert page.locator(".training .plot").is_visible(), "what is shown stays"
    own_server.start()
    expect(page.locator("#notice")).to_be_hidden(timeout=PATIENCE)
    expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
    idle(page)
    assert own_server.client.experiment(experiment)["state"] == "done"


def test_memory_stays_where_it_is_while_tiles_arrive(own_server: Server, open_page: Any) -> None:
    """By default over one experiment of about a minute; VALLEY_DRILL_MINUTES makes it a drill."""
    deadline = time.monotonic() + 60 * float(os.environ.get("VALLEY_DRILL_MINUTES", "0"))
    experiment = own_server.submit(name="long", planes=FINE)
    page = open_page(own_server, f"/experiments/{experiment}")
    page.guard.expect(LOST)
    page.locator(".surfaces .plot[data-draws]").first.wait_for(timeout=PATIENCE)
    session = page.context.new_cdp_session(page)
    before = _heap(session)
    while True:
        own_server.wait(experiment, seconds=PATIENCE / 1000)
        expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
        if time.monotonic() > deadline:
            break
        experiment = own_server.submit(name="long", planes=FINE, seed=int(time.monotonic()))
        page.evaluate(
            "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
            f"/experiments/{experiment}",
        )
        page.locator(".surfaces .plot[data-draws]").first.wait_for(timeout=PATIENCE)
    assert _heap(session) - before < 40 * MEGABYTE


def _heap(session: Any) -> float:
    """Bytes that scripts hold after a collection."""
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"])
