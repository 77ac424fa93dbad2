"""A new experiment: a form that is the server's own schema, its cost, its errors at their fields, and uploads."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG_PATIENCE, Server

REFUSED = r"status of 422"


def field(page: Page, path: str) -> Any:
    return page.locator(f'.field[data-path="{path}"]')


def wait_for_cost(page: Page) -> None:
    expect(page.get_by_text("on one core").first).to_be_visible(timeout=LONG_PATIENCE)


def spec_on_screen(page: Page) -> dict[str, Any]:
    page.get_by_role("tab", name="Spec").click()
    shown: dict[str, Any] = json.loads(page.get_by_label("The spec as JSON").inner_text())
    return shown


def shrink(page: Page) -> None:
    """Make the demo on screen a matter of seconds."""
    for path, value in {
        "name": "by clicking",
        "model.channels": "4, 8",
        "model.hidden": "16",
        "training.epochs": "2",
        "curves.valley.epochs": "1",
        "curves.contrast.epochs": "1",
        "planes.valley.resolution": "9",
        "planes.basins.resolution": "9",
        "points": "5",
    }.items():
        field(page, path).locator("input").fill(value)


def test_the_demo_is_submitted_by_clicking(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    wait_for_cost(page)
    shrink(page)
    page.get_by_role("button", name="Run it").click()
    page.wait_for_url(re.compile(r"/experiments/[0-9a-f]{16}"), timeout=LONG_PATIENCE)
    made = server.client.experiment(page.url.rsplit("/", 1)[-1].partition("?")[0])
    assert made["name"] == "by clicking"
    assert made["spec"]["model"] == {"name": "cnn", "channels": [4, 8], "hidden": 16}
    assert made["spec"]["training"]["epochs"] == 2
    server.client.post(f"/api/experiments/{made['id']}/cancel")


def test_the_form_has_every_field_of_the_servers_schema_with_its_explanation(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    expect(field(page, "name")).to_be_visible()
    schemas = server.client.get("/api/openapi.json")["components"]["schemas"]
    for path, name in (
        ("training", "Training"),
        ("minima.altsdp", "Minimum-Input"),
        ("curves.valley", "Curve"),
        ("planes.valley", "Plane"),
        ("verdict", "Judgement"),
    ):
        for member, schema in schemas[name]["properties"].items():
            inner = {"schedule": ".kind", "retrain": ".epochs", "fork": ".epoch"}.get(member, "")
            place = f"{path}.{member}{inner}"
            expect(field(page, place)).to_have_count(1)
            if "description" in schema and member not in ("retrain", "fork"):
                expect(field(page, place).locator(".hint")).to_have_text(schema["description"].replace("`", ""))


def test_the_cost_and_the_reach_of_the_threshold_follow_what_is_typed(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?recipe=digits")
    reach = page.locator('.reach[data-minimum="altsdp"]')
    field(page, "minima.altsdp.sparsity").locator("input").fill("")
    field(page, "minima.altsdp.c").locator("input").fill("2e-4")
    wait_for_cost(page)
    expect(reach).to_contain_text("groups will become zero")
    overrides = {"minima": {"altsdp": {"c": 2e-4}}}
    told = server.client.post("/api/estimate", {"recipe": "digits", "overrides": overrides})["minima"]["altsdp"]
    expect(reach).to_contain_text(f"{told['reach']:.3g}")
    expect(reach).to_contain_text(f"{told['smallest_norm']:.3g}")
    field(page, "minima.altsdp.c").locator("input").fill("1e-6")
    expect(reach).to_contain_text("nothing will become zero")


def test_errors_of_the_server_stand_at_their_fields(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    page.guard.expect(REFUSED)
    field(page, "training.lr").locator("input").fill("-1")
    field(page, "planes.valley.resolution").locator("input").fill("many")
    page.get_by_role("button", name="Run it").click()
    expect(field(page, "training.lr").locator(".wrong")).to_have_text("Input should be greater than 0")
    expect(field(page, "training.lr").locator("input")).to_have_attribute("aria-invalid", "true")
    expect(field(page, "training.lr").locator("input")).to_be_focused()
    expect(field(page, "planes.valley.resolution").locator(".wrong")).to_contain_text("integer")
    expect(page.get_by_role("alert")).to_contain_text("2 fields are wrong")
    field(page, "training.lr").locator("input").fill("0.1")
    field(page, "planes.valley.resolution").locator("input").fill("9")
    expect(page.locator(".wrong:visible")).to_have_count(0)
    wait_for_cost(page)


def test_an_error_in_a_hidden_setting_opens_it(server: Server, open_page: Any) -> None:
    spec = {"minima": {"sgd": {}}, "verdict": {"level": 0.2}}
    page = open_page(server, f"/new?spec={json.dumps(spec)}")
    page.guard.expect(REFUSED)
    expect(field(page, "verdict.level").locator(".wrong")).to_be_visible()


def test_what_is_typed_stands_in_the_address_and_survives_a_reload(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?recipe=digits")
    field(page, "seed").locator("input").fill("7")
    field(page, "minima.control").locator("input").fill("stranger")
    field(page, "minima.control").locator("input").press("Tab")
    expect(page).to_have_url(re.compile("stranger"))
    page.reload()
    expect(field(page, "seed").locator("input")).to_have_value("7")
    expect(page.locator(".chooser .hint")).to_have_text("Your draft.")
    expect(field(page, "minima.stranger")).to_be_visible()
    spec = spec_on_screen(page)
    assert list(spec["minima"]) == ["sgd", "altsdp", "stranger"]
    assert spec["curves"]["contrast"]["to"] == "stranger"
    assert spec["planes"]["basins"]["through"] == ["sgd", "altsdp", "stranger"]


def test_a_choice_made_while_the_cost_is_worked_out_counts(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?recipe=blank")
    expect(field(page, "minima.sgd")).to_be_visible()
    held: list[Any] = []
    page.route("**/api/estimate", lambda route: held.append(route))
    page.reload()
    page.get_by_label("Start from").select_option("digits")
    expect(field(page, "minima.altsdp")).to_be_visible()
    page.get_by_label("Start from").select_option("blank")
    expect(field(page, "minima.altsdp")).to_have_count(0)
    page.unroute("**/api/estimate")
    for route in held:
        with suppress(PlaywrightError):  # the page gave up the question
            route.continue_()


def test_one_can_start_blank_and_add_minima(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    page.get_by_label("Start from").select_option("blank")
    expect(page).to_have_url(re.compile("recipe=blank"))
    expect(field(page, "minima.altsdp")).to_have_count(0)
    page.get_by_role("button", name="Add a minimum").click()
    field(page, "minima.minimum.optimizer").locator("select").select_option("altsdp")
    field(page, "minima.minimum.target").locator("input").fill("0.8")
    spec = spec_on_screen(page)
    assert spec["minima"] == {"sgd": {"optimizer": "sgd"}, "minimum": {"optimizer": "altsdp", "target": 0.8}}
    page.get_by_role("button", name="Remove minimum").click()
    assert list(spec_on_screen(page)["minima"]) == ["sgd"]
    page.go_back()
    expect(field(page, "minima.altsdp")).to_be_visible()


def test_curl_and_python_submit_what_is_on_screen(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    shrink(page)
    field(page, "name").locator("input").fill("it's the same")
    command = page.get_by_label("The same by curl").inner_text()
    done = subprocess.run(
        [*shlex.split(command.replace("\\\n", " ")), "-s"], capture_output=True, text=True, check=True
    )
    by_curl = json.loads(done.stdout)
    assert by_curl["name"] == "it's the same"
    page.get_by_role("tab", name="Python").click()
    script = page.get_by_label("The same by Python").inner_text().partition("for event")[0]
    names: dict[str, Any] = {}
    exec(script, names)
    assert names["experiment"]["spec"] == by_curl["spec"] == spec_on_screen(page)
    for made in (by_curl, names["experiment"]):
        server.client.post(f"/api/experiments/{made['id']}/cancel")


@pytest.fixture
def checkpoint(server: Server, finished: str, tmp_path: Path) -> Path:
    """Weights of the finished experiment's sgd, as a file of one's own."""
    target = tmp_path / "dropped.safetensors"
    server.client.download(finished, "sgd.safetensors", target)
    return target


def test_a_checkpoint_is_uploaded_by_drag_and_drop_and_becomes_a_minimum(
    server: Server, checkpoint: Path, open_page: Any
) -> None:
    page = open_page(server, "/new?settings=all")
    page.guard.expect(REFUSED)
    shrink(page)
    data = list(checkpoint.read_bytes())
    transfer = page.evaluate_handle(
        """([bytes, name]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name));
            return transfer;
        }""",
        [data, checkpoint.name],
    )
    page.locator(".drop").dispatch_event("drop", {"dataTransfer": transfer})
    expect(page.locator(".checkpoints")).to_contain_text("dropped", timeout=LONG_PATIENCE)
    (kept,) = [item for item in server.client.get("/api/checkpoints")["items"] if item["name"] == "dropped"]
    assert kept["size"] == len(data)
    expect(field(page, "minima.dropped.checkpoint").locator("select")).to_have_value(kept["id"])
    assert spec_on_screen(page)["minima"]["dropped"] == {"checkpoint": kept["id"]}
    page.get_by_role("button", name="Delete dropped").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".checkpoints")).not_to_contain_text("dropped")
    expect(field(page, "minima.dropped.checkpoint").locator(".wrong")).to_contain_text(kept["id"])


def test_a_file_that_misses_the_place_of_dropping_does_not_take_the_page_away(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new?settings=all")
    page.guard.expect(REFUSED)
    transfer = page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(['no weights'], 'beside.safetensors'));
            return transfer;
        }"""
    )
    page.locator(".drop").wait_for()
    for kind in ("dragover", "drop"):
        page.locator(".chooser").dispatch_event(kind, {"dataTransfer": transfer})
        expect(page.locator(".drop.over")).to_have_count(1 if kind == "dragover" else 0)
    expect(page.get_by_role("alert")).to_contain_text("beside.safetensors", timeout=LONG_PATIENCE)


def test_a_file_that_is_no_checkpoint_is_refused_beside_the_place_of_dropping(
    server: Server, open_page: Any, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.safetensors"
    wrong.write_bytes(b"nothing of the kind")
    page = open_page(server, "/new?settings=all")
    page.guard.expect(REFUSED)
    page.locator('input[type="file"]').set_input_files(wrong)
    expect(page.get_by_role("alert")).to_contain_text("wrong.safetensors", timeout=LONG_PATIENCE)
