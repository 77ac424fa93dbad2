"""Watching an experiment: it fills in coarse to fine, survives a killed server, and does not eat memory."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.conftest import Server, idle, occupied

pytestmark = pytest.mark.long

# A lost connection is noted by the browser itself, not by the page.
LOST = r"ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|ERR_NETWORK|status of 50[23]"
FINE = {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 25}}
FINER = {"valley": FINE["valley"] | {"resolution": 61}}  # takes seconds, so that it is seen unfinished
QUICK = {"epochs": 1, "batch_size": 64}
PATIENCE = 240_000
MEGABYTE = 2**20
# The panels from top to bottom.
ORDER = """() => [...document.querySelectorAll('.panel')].map(({ classList }) => classList[1])
  .filter((name) => ['surfaces', 'training', 'fitting'].includes(name))"""
FIRSTS = ["training", "fitting", "surfaces"]


def watch(page: Page) -> None:
    """Keep a list of how much of the surface was computed each time it was drawn."""
    page.evaluate(
        """() => {
          globalThis.seen = [];
          globalThis.firsts = [];
          const note = () => {
            const first = document.querySelector('.verdict + .panel')?.classList[1];
            if (firsts.at(-1) !== first) firsts.push(first);
            const caption = document.querySelector('.caption')?.textContent ?? '';
            const [, share] = /\\((\\d+) % of the grid/.exec(caption) ?? [];
            if (share !== undefined && seen.at(-1) !== Number(share)) seen.push(Number(share));
          };
          new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
        }"""
    )


def test_training_surface_and_verdict_appear_by_themselves(server: Server, open_page: Any) -> None:
    with occupied(server):
        experiment = server.submit(name="live", planes=FINER, training={"epochs": 4, "batch_size": 64})
        page = open_page(server, f"/experiments/{experiment}")
        expect(page.locator(".verdict")).to_contain_text("No verdict yet")
        expect(page.locator(".hatched").first).to_be_visible()
        for panel in (".profiles", ".sparsity", ".training"):
            expect(page.locator(panel), "the layout is there before its numbers").to_be_visible()
        assert page.evaluate(ORDER)[0] == "training", "what comes first stands first"
        expect(page.locator(".stages li")).to_have_count(5)
        page.get_by_role("button", name="Cancel").focus()
        watch(page)
    expect(page.locator(".active-worker")).to_contain_text("cpu", timeout=PATIENCE)
    expect(page.get_by_role("button", name="Cancel"), "it is the same one").to_be_focused()
    page.locator(".training .plot[data-draws]").wait_for(timeout=PATIENCE)
    page.locator(".fitting .plot[data-draws]").wait_for(timeout=PATIENCE)
    page.locator(".surfaces .plot[data-draws]").first.wait_for(timeout=PATIENCE)
    expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".state")).to_contain_text("done in", timeout=PATIENCE)
    # The end is told before the last values of the surface are there.
    page.wait_for_function("() => document.querySelector('.surfaces .plot').layout.images.length === 0")
    idle(page)
    assert page.evaluate(ORDER) == ["surfaces", "training", "fitting"], "in the end all is in its usual place"
    fit = server.client.get(f"/api/experiments/{experiment}/profile")["curves"]["valley"]["fit"]
    shown = page.locator(".fitting .plot").evaluate("({ data: [{ x, y }] }) => [[...x], [...y]]")
    assert shown == [fit["epoch"], pytest.approx(fit["loss"])]
    firsts = page.evaluate("firsts")
    assert firsts[0] == "training"
    assert firsts == sorted(set(firsts), key=FIRSTS.index), "what runs stands first, in the order of the stages"
    seen = page.evaluate("seen")
    assert seen, "it was seen unfinished"
    assert seen == sorted(seen), "it only ever fills"
    assert page.locator(".surfaces .plot").first.evaluate("({ data }) => data[0].type") == "contour"


def test_a_killed_server_is_waited_for_and_caught_up_with(server: Server, open_page: Any) -> None:
    with occupied(server):
        experiment = server.submit(name="interrupted", training={"epochs": 40, "batch_size": 64})
        page = open_page(server, f"/experiments/{experiment}")
        page.guard.expect(LOST)
        expect(page.locator(".verdict")).to_contain_text("No verdict yet")
    page.locator(".training .plot[data-draws]").wait_for(timeout=PATIENCE)
    server.kill()
    expect(page.locator("#notice")).to_contain_text("does not answer", timeout=PATIENCE)
    assert page.locator(".training .plot").is_visible(), "what is shown stays"
    server.start()
    expect(page.locator("#notice")).to_be_hidden(timeout=PATIENCE)
    expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
    idle(page)
    assert server.client.experiment(experiment)["state"] == "done"


def test_memory_stays_where_it_is_while_tiles_arrive(server: Server, open_page: Any) -> None:
    """A quarter of a minute, and three experiments at least; VALLEY_DRILL_MINUTES makes it longer."""
    watched = remember(server, open_page, minutes=float(os.environ.get("VALLEY_DRILL_MINUTES", "0.25")))
    assert watched >= 3


@pytest.mark.drill
def test_any_three_minima_make_a_plane_though_its_worker_is_killed(server: Server, open_page: Any) -> None:
    minima = {
        "sgd": {},
        "reordered": {"fork": {"from": "sgd", "epoch": 1}, "seed": 7},
        "b": {"seed": 2},
        "c": {"seed": 3},
    }
    experiment = server.submit(name="family", minima=minima, curves={}, planes={}, align="weights", points=3)
    server.wait(experiment, seconds=900)
    page = open_page(server, f"/experiments/{experiment}")
    page.guard.expect(LOST)
    expect(page.locator(".minima-map")).to_contain_text("Click two minima")
    for place, name in enumerate(("c", "sgd", "b"), 1):
        page.get_by_label(f"Point {place} of the plane").select_option(name)
    page.get_by_label("Grid points along each axis").select_option("41")
    page.get_by_role("button", name="Add the plane").click()
    [worker] = server.client.get("/api/workers")["items"]
    expect(page.locator(".hatched").first, "it fills in").to_be_visible(timeout=PATIENCE)
    os.kill(worker["pid"], signal.SIGKILL)
    expect(page.locator(".state")).to_contain_text("done in", timeout=PATIENCE)
    page.wait_for_function("() => document.querySelector('.surfaces .plot')?.layout?.images.length === 0")
    idle(page)
    assert page.locator(".surfaces .plot").first.evaluate("({ data }) => data[0].z.length") == 41
    found = server.client.get(f"/api/experiments/{experiment}")
    assert (found["state"], found["planes"], found["error"]) == ("done", ["plane1"], None)


@pytest.mark.drill
def test_memory_stays_where_it_is_over_half_an_hour(server: Server, open_page: Any) -> None:
    watched = remember(server, open_page, minutes=float(os.environ.get("VALLEY_DRILL_MINUTES", "30")))
    assert watched >= 10


def remember(server: Server, open_page: Any, *, minutes: float) -> int:
    """Watch one experiment after the other in the same page, from its first epoch to its verdict; returns how many.

    What the page holds is measured after each of them, in the same state of the view and after a collection. The first
    one is not counted: it loads plotly.js.
    """
    page = open_page(server, "/help")
    page.guard.expect(LOST)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    held: list[tuple[float, float]] = []
    deadline = time.monotonic() + 60 * minutes
    while len(held) < 3 or time.monotonic() < deadline:
        experiment = server.submit(name="long", planes=FINE, training=QUICK, seed=len(held))
        go_to(page, f"/experiments/{experiment}")
        # Until then the pictures of the one before may still be there.
        page.locator(f'.experiment a[href="/new?from={experiment}"]').wait_for(timeout=PATIENCE)
        page.locator(".surfaces .plot[data-draws]").first.wait_for(timeout=PATIENCE)
        expect(page.locator(".verdict .figures")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".state")).to_contain_text("done in", timeout=PATIENCE)
        idle(page)
        held.append(holdings(session))
        print(f"{experiment}: {held[-1][0] / MEGABYTE:.1f} MB, {held[-1][1]:.0f} nodes")
    (heap, nodes), *_, (heap_at_last, nodes_at_last) = held[1:]
    assert heap_at_last - heap < 8 * MEGABYTE, f"the page holds more and more: {held}"
    assert nodes_at_last - nodes < 2000, f"elements are left behind: {held}"
    return len(held)


def go_to(page: Page, path: str) -> None:
    """As a click on a link does, without loading the page again."""
    page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
        path,
    )
    page.wait_for_url(f"**{path}")


def holdings(session: CDPSession) -> tuple[float, float]:
    """Bytes that scripts hold and nodes of the document, detached ones included, after a collection."""
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    nodes = next(float(metric["value"]) for metric in metrics if metric["name"] == "Nodes")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]), nodes
