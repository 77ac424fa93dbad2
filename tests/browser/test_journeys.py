"""The ways to a new experiment: the short form, one's own checkpoints, and a variation of another experiment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import LONG_PATIENCE, Server, violations
from tests.browser.test_new import field, spec_on_screen, wait_for_cost
from valleyscope.app.experiments.recipes import load_recipe

RUN = "Run it"


def run_button(page: Page) -> Any:
    return page.get_by_role("button", name=RUN)


def usable(page: Page) -> None:
    expect(run_button(page)).to_be_enabled(timeout=LONG_PATIENCE)


def draft(page: Page) -> dict[str, Any]:
    """The spec in the address."""
    found: dict[str, Any] = page.evaluate("JSON.parse(new URLSearchParams(location.search).get('spec'))")
    return found


def test_a_new_experiment_opens_as_a_short_form_that_runs_the_demo(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    usable(page)
    expect(page.locator(".new .field, .new .choices")).to_have_count(5)
    expect(page.get_by_role("radio", name="More than half")).to_be_checked()
    expect(page.get_by_role("radio", name="Normal")).to_be_checked()
    told = server.client.post("/api/estimate", {"recipe": "digits"})["service"]
    assert (told["workers"], told["devices"]) == (1, {"core": 1})
    expect(page.locator(".run-text")).to_contain_text("on the worker of this service (1 core)")
    sent: list[Any] = []

    def refuse(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=429, json={"detail": "too many"})

    page.guard.expect("429")
    page.route("**/api/experiments", refuse)
    run_button(page).click()
    expect(page.get_by_role("alert")).to_contain_text("too many")
    assert sent == [{"recipe": "digits"}]


def test_the_choices_of_the_short_form_are_settings_of_the_full_one_and_nothing_is_lost(
    server: Server, open_page: Any
) -> None:
    page = open_page(server, "/new")
    usable(page)
    page.get_by_role("radio", name="Most").check()
    page.get_by_role("radio", name="Draft").check()
    page.get_by_role("button", name="All settings").click()
    expect(field(page, "minima.altsdp.sparsity").locator("input")).to_have_value("0.8")
    expect(field(page, "training.epochs").locator("input")).to_have_value("20")
    expect(field(page, "planes.basins.resolution").locator("input")).to_have_value("15")
    field(page, "training.lr").locator("input").fill("0.07")
    field(page, "training.epochs").locator("input").fill("21")
    page.get_by_role("button", name="Fewer settings").click()
    expect(page.get_by_role("radio", name="Most")).to_be_checked()
    expect(page.get_by_role("radio", name="As in all settings")).to_be_checked()
    page.get_by_role("radio", name="Normal").check()
    page.get_by_role("radio", name="More than half").check()
    page.get_by_role("button", name="All settings").click()
    expect(field(page, "training.lr").locator("input")).to_have_value("0.07")
    expected = load_recipe("digits", {"training": {"lr": 0.07}}).to_json()
    assert spec_on_screen(page) == expected


def test_without_pruning_two_seeds_are_compared_and_pruning_comes_back(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    usable(page)
    page.get_by_role("radio", name="Nothing").check()
    page.wait_for_url(re.compile("spec="))
    spec = draft(page)
    assert list(spec["minima"]) == ["sgd", "control"]
    assert spec["curves"] == {"valley": {"from": "sgd", "to": "control", "epochs": 30}}
    assert spec["planes"] == {"valley": {"through": ["sgd", "control", "valley.bend"], "resolution": 41}}
    usable(page)
    page.get_by_role("radio", name="More than half").check()
    page.wait_for_url(re.compile(r"/new$"))


def test_run_waits_for_an_estimate_of_what_is_on_screen(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    usable(page)
    held: list[Route] = []
    page.route("**/api/estimate", lambda route: held.append(route))
    with page.expect_request("**/api/estimate"):
        page.get_by_role("radio", name="Draft").check()
        expect(run_button(page)).to_be_disabled()
        expect(page.locator(".run-text")).to_have_text("Estimating …")
    expect(run_button(page)).to_be_disabled()
    page.guard.expect("status of 503")
    held[0].fulfill(status=503, json={"detail": "the database cannot be reached"})
    expect(page.get_by_role("alert")).to_contain_text("the database cannot be reached")
    usable(page)


def test_more_than_an_hour_asks_before_it_runs(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    usable(page)
    page.get_by_label("Data", exact=True).select_option("mnist")
    page.get_by_role("radio", name="Fine").check()
    usable(page)
    before = len(server.client.get("/api/experiments")["items"])
    run_button(page).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"about \d+ (h|days)"))
    dialog.get_by_role("button", name="Not yet").click()
    expect(dialog).to_have_count(0)
    assert len(server.client.get("/api/experiments")["items"]) == before


def test_a_network_that_does_not_fit_the_data_is_refused_beside_it(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    page.guard.expect("status of 422")
    usable(page)
    page.get_by_label("Network", exact=True).select_option("lenet")
    expect(field(page, "model.name").locator(".wrong")).to_contain_text("does not fit")
    expect(page.get_by_label("Network", exact=True)).to_have_attribute("aria-invalid", "true")


def test_vary_names_its_origin_proposes_a_name_and_marks_what_changes(
    server: Server, finished: str, open_page: Any
) -> None:
    page = open_page(server, f"/new?from={finished}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Vary finished")
    expect(field(page, "name").locator("input")).to_have_value("finished 2")
    expect(page.locator(".origin")).to_contain_text("Nothing is changed yet")
    field(page, "training.lr").locator("input").fill("0.02")
    expect(page.locator(".origin")).to_contain_text("training.lr: default → 0.02")
    expect(field(page, "training.lr")).to_contain_text("changed")
    expect(page.locator(".field.changed")).to_have_count(2)
    page.wait_for_url(re.compile("spec="))
    page.reload()
    expect(page.locator(".origin")).to_contain_text("training.lr: default → 0.02")
    expect(page.get_by_role("heading", level=1)).to_have_text("Vary finished")


def test_the_form_looks_the_same_after_pictures_were_shown(server: Server, finished: str, open_page: Any) -> None:
    styles = """() => [...document.querySelectorAll('.new *')].map((one) => {
      const found = getComputedStyle(one);
      return ['fontSize', 'display', 'margin', 'padding', 'position', 'gap', 'width'].map((name) => found[name]).join();
    })"""
    page = open_page(server, f"/new?from={finished}")
    usable(page)
    fresh = page.evaluate(styles)
    page.goto(f"/experiments/{finished}")
    page.locator(".surfaces .plot").first.wait_for()
    page.get_by_role("link", name="Vary").click()
    usable(page)
    page.evaluate("document.activeElement.blur()")
    assert page.evaluate(styles) == fresh
    foreign = """() => [...document.styleSheets].filter(({ href }) => !href || href.endsWith('plots.css'))
      .flatMap(({ cssRules }) => [...cssRules].map(({ selectorText }) => selectorText).filter(Boolean))
      .filter((selector) => document.querySelector('.new')?.querySelector(selector))"""
    assert page.evaluate(foreign) == []


@pytest.fixture
def weights(server: Server, finished: str, tmp_path: Path) -> list[Path]:
    """Three networks of the finished experiment, as files from elsewhere."""
    made = []
    for name in ("sgd", "altsdp", "control"):
        server.client.download(finished, f"{name}.safetensors", tmp_path / f"my {name}.safetensors")
        made.append(tmp_path / f"my {name}.safetensors")
    return made


def test_checkpoints_are_dropped_named_and_compared(server: Server, weights: list[Path], open_page: Any) -> None:
    page = open_page(server, "/new?way=checkpoints")
    expect(page.locator(".run-text")).to_have_text("Drop two or three checkpoints to begin.")
    expect(run_button(page)).to_be_disabled()
    page.locator('input[type="file"]').set_input_files(weights)
    expect(page.locator(".entry")).to_have_count(3, timeout=LONG_PATIENCE)
    expect(page.get_by_label("Network", exact=True)).to_have_value("cnn")
    expect(page.get_by_label("Data", exact=True)).to_have_value("digits")
    expect(page.locator(".field[data-path='model.name'] .hint")).to_contain_text("channels 4, 8; hidden 16")
    name = page.get_by_label("name (judged)").first
    name.fill("plain")
    name.press("Tab")
    expect(page).to_have_url(re.compile("plain"))
    usable(page)
    page.reload()
    usable(page)
    run_button(page).click()
    page.wait_for_url(re.compile(r"/experiments/[0-9a-f]{16}"), timeout=LONG_PATIENCE)
    made = server.client.experiment(page.url.rsplit("/", 1)[-1].partition("?")[0])
    assert made["name"] == "plain and my-altsdp and my-control"
    assert made["minima"] == ["plain", "my-altsdp", "my-control"]
    assert made["resolved"]["verdict"]["between"] == ["plain", "my-altsdp"]
    server.client.post(f"/api/experiments/{made['id']}/cancel")


def test_the_network_is_guessed_from_shapes_alone(
    server: Server, weights: list[Path], open_page: Any, tmp_path: Path
) -> None:
    content = weights[0].read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = {key: value for key, value in json.loads(content[8 : 8 + length]).items() if key != "__metadata__"}
    text = json.dumps(header).encode()
    bare = tmp_path / "bare.safetensors"
    bare.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    page = open_page(server, "/new?way=checkpoints")
    page.locator('input[type="file"]').set_input_files(bare)
    expect(page.locator(".entry")).to_have_count(1, timeout=LONG_PATIENCE)
    expect(page.get_by_label("Network", exact=True)).to_have_value("cnn")
    expect(page.get_by_label("Data", exact=True)).to_have_value("digits")
    expect(page.locator(".run-text")).to_have_text("Add one more checkpoint.")


def test_a_file_that_is_no_checkpoint_is_refused_where_it_is_dropped(
    server: Server, open_page: Any, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.safetensors"
    wrong.write_bytes(b"PK nothing of the kind")
    page = open_page(server, "/new?way=checkpoints")
    page.guard.expect("status of 422")
    page.locator('input[type="file"]').set_input_files(wrong)
    expect(page.get_by_role("alert")).to_contain_text("wrong.safetensors", timeout=LONG_PATIENCE)
    expect(page.locator(".entry")).to_have_count(0)


def test_the_ways_have_addresses(server: Server, open_page: Any) -> None:
    page = open_page(server, "/new")
    wait_for_cost(page)
    page.get_by_role("link", name="Compare my checkpoints").click()
    expect(page).to_have_url(re.compile(r"way=checkpoints"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare my checkpoints")
    page.get_by_role("link", name="Open a landscape").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Open a landscape")
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("New experiment")
    usable(page)


WAYS = ("/new", "/new?settings=all", "/new?way=checkpoints", "/new?way=landscape")
FORMS = ((1440, True), (390, False))


@pytest.mark.parametrize(
    ("path", "width", "dark"),
    [
        pytest.param(path, *form, marks=[] if (number + place) % 2 == 0 else pytest.mark.drill)
        for number, path in enumerate(WAYS)
        for place, form in enumerate(FORMS)
    ],
)
def test_nobody_is_shut_out_and_run_is_in_reach(
    server: Server, open_page: Any, axe: str, path: str, width: int, dark: bool
) -> None:
    page = open_page(server, path, width=width, dark=dark)
    if path.endswith("landscape"):
        page.locator(".panel").first.wait_for()
    else:
        expect(run_button(page)).to_be_in_viewport(ratio=1)
    if "way" not in path:
        usable(page)
        page.locator(".new :is(input, select):visible").last.focus()
        covered = """() => document.activeElement.getBoundingClientRect().bottom
          <= document.querySelector('.run-bar').getBoundingClientRect().top"""
        assert page.evaluate(covered), "the bar covers the field with the focus"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page, axe) == []
