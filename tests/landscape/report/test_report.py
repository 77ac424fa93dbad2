"""The report stands alone, says the verdict first, and shows nothing that a name could smuggle in."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.landscape import cases
from valleyscope.landscape.report import report_html, write_report
from valleyscope.landscape.report.verdict_section import BADGES, head
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, LayerRecord, PlaneRecord


class Page(HTMLParser):
    """Elements, their attributes and the visible text of a page; complains about tags that do not match."""

    VOID = frozenset({"meta", "path", "circle", "br", "link", "img", "input"})

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: dict[str, str] = {}
        self.feed(content)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[self.elements[-1][1].get("id") or f"script {len(self.scripts)}"] = data
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(report_html(cases.landscape(15)))


def test_verdict_is_said_first_with_icon_and_words(page: Page) -> None:
    assert cases.VERDICT["sentence"] in page.text
    assert page.text.index("level valley") < page.text.index("Plane valley")
    assert "95 %: 0.000 to 0.001" in page.text
    assert "A flat curve alone is no evidence" in page.text
    assert any(tag == "svg" for tag, _ in page.elements)


@pytest.mark.parametrize("kind", BADGES)
def test_every_verdict_has_a_badge_of_its_own(kind: str) -> None:
    shown = head({"kind": kind, "sentence": "It is so."})
    assert f"<span>{kind}</span>" in shown
    assert BADGES[kind].drawing in shown
    assert len({badge.drawing for badge in BADGES.values()}) == len(BADGES)


def test_minima_are_told_in_a_table(page: Page) -> None:
    for words in ("98.9 %", "55.9 % 104 of 186", "0.0436", "+0.0640", "population", "sha256:6f1a9c0d5be2"):
        assert words in page.text, words


def test_paths_are_told_in_a_table(page: Page) -> None:
    assert "line: sgd to control" in page.text
    assert f"{cases.line('sgd', 'control').splits['train'].loss.max() - 0.0007:.3f}" in page.text


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "img", "base"), tag
        assert not {"src", "href", "srcset"} & set(attributes), attributes
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert sum("plotly.js v" in script[:400] for script in page.scripts.values()) == 1


def test_every_plot_has_its_data_and_its_modules(page: Page) -> None:
    places = [attributes for _, attributes in page.elements if attributes.get("class") == "plot"]
    kinds = {(place["data-kind"], place.get("data-plane"), place.get("data-value")) for place in places}
    assert {("contour", "valley", "loss"), ("contour", "basins", "error"), ("surface3d", "basins", "loss")} < kinds
    assert {("profile", None, None), ("sparsity", None, None), ("training", None, None)} < kinds
    data = json.loads(page.scripts["data"])
    for place in places:
        assert place["aria-label"]
        if plane := place.get("data-plane"):
            assert f"{place['data-split']} {place['data-value']}" in data["planes"][plane]["grids"]
    modules = json.loads(page.scripts["modules"])["imports"]
    assert {"plots/contour.js", "plots/style.json", "plots/training.js"} < modules.keys()
    assert all(address.startswith("data:text/javascript;base64,") for address in modules.values())


HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>&'


def test_words_of_users_are_shown_and_never_run() -> None:
    landscape = cases.landscape(9)
    landscape.name = HOSTILE
    landscape.spec = {"dataset": HOSTILE, "model": {"name": HOSTILE}}
    landscape.provenance["worker"] = {HOSTILE: HOSTILE}
    landscape.verdict = {**cases.VERDICT, "sentence": HOSTILE, "notes": [HOSTILE], "kind": HOSTILE}
    landscape.planes["valley"].note = HOSTILE
    landscape.planes["valley"].unit = HOSTILE
    landscape.minima["sgd"].optimizer = HOSTILE
    landscape.minima["sgd"].layers.append(LayerRecord(HOSTILE, 4, 1, 40, 10))
    page = Page(report_html(landscape))
    assert page.text.count("alert") >= 8
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert sum(tag == "script" for tag, _ in page.elements) == 4
    assert "<" not in page.scripts["data"]


def test_a_landscape_with_little_in_it_has_a_report(tmp_path: Path) -> None:
    empty = PlaneRecord.empty("valley", "through", np.linspace(0, 1, 5), np.linspace(0, 1, 4), ("train",))
    sparse = Landscape("new", planes={"valley": empty})
    assert "No verdict" in Page(report_html(sparse)).text
    only_loss = cases.plane("basins", 9, 9)
    only_loss.splits = {"test": Grid(only_loss.splits["test"].loss, np.full((9, 9), np.nan))}
    text = Page(report_html(Landscape("one", planes={"basins": only_loss}))).text
    assert "test loss, nats" in text
    assert "test error" not in text
    write_report(sparse, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_half_a_surface_is_called_so() -> None:
    landscape = cases.landscape(9)
    known = np.zeros((25, 9), dtype=bool)
    known[:5] = True
    landscape.planes["valley"] = cases.half_done(landscape.planes["valley"], known)
    assert "Hatched: not computed yet (20% of the grid is)." in Page(report_html(landscape)).text


def test_fine_surfaces_do_not_make_a_huge_file() -> None:
    landscape = Landscape("fine", planes={"basins": cases.plane("basins", 401, 401)})
    assert len(report_html(landscape)) < 12e6
