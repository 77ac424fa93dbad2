"""A comparison of pruning methods, from its submission on the page's server to table, figure, REST and spreadsheet."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import LONG_PATIENCE, Server


def test_a_comparison_of_methods_fills_its_table_while_it_runs(server: Server, open_page: Any) -> None:
    fields = {"minima": None, "curves": {}, "planes": {}, "methods": ["altsdp", "one-shot"], "sparsities": [0.5]}
    experiment = server.submit(name="methods", **fields)
    page = open_page(server, f"/experiments/{experiment}")
    panel = page.locator(".methods")
    expect(panel).to_contain_text("one-shot_50", timeout=LONG_PATIENCE)
    expect(panel).to_contain_text("reordered", timeout=LONG_PATIENCE)
    server.wait(experiment, "done")
    expect(panel.get_by_role("columnheader", name="latency left, 32 samples")).to_be_visible(timeout=LONG_PATIENCE)
    expect(panel.get_by_role("columnheader", name="rise to SGD")).to_be_visible()
    found = server.client.get(f"/api/experiments/{experiment}/methods")
    rows = {row["name"]: row["values"] for row in found["rows"]}
    assert list(rows) == ["sgd", "altsdp_50", "one-shot_50", "control", "reordered"]
    assert rows["altsdp_50"]["zero_groups"]["mean"] == 0.5
    assert {"macs", "latency_1", "rise", "barrier", "time", "train_loss"} <= set(rows["one-shot_50"])
    assert found["published"] == []
    said = panel.locator(".remarks").inner_text()
    assert all(remark in said for remark in found["remarks"])
