"""The gallery on the first screen, and the view of a read-only link."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import LONG_PATIENCE, Server, idle, opened, violations
from tests.landscape.importers.other_tools import GaripovPlane, li_surface
from valleyscope.app.experiments.gallery import FOLDER, gallery_entries

ENTRIES = gallery_entries()
KEY = "correct-horse-battery-staple"


class Embedding(BaseHTTPRequestHandler):
    """A site that shows a page in an iframe: `/?ADDRESS`."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        address = self.path.partition("?")[2]
        self.wfile.write(f'<!doctype html><iframe src="{address}" width="1200" height="800"></iframe>'.encode())

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Embedding) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, site: str) -> Iterator[Server]:
    """A server with a key and no experiments, which lets one site embed shared views."""
    home: Path = tmp_path_factory.mktemp("gallery") / "home"
    made = Server(home, workers=0, environment={"VALLEY_API_KEY": KEY, "VALLEY_EMBED": site})
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def uploaded(guarded: Server) -> str:
    return str(guarded.client.send_landscapes([FOLDER / "demo" / "landscape.h5"], name="my valley")["id"])


def share(server: Server, id: str) -> dict[str, Any]:
    found: dict[str, Any] = server.client.post(f"/api/experiments/{id}/share", {"days": 7})
    return found


def unlocked(page: Page) -> None:
    """Enter the key of the server."""
    page.get_by_label("Key", exact=True).fill(KEY)
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_the_first_screen_shows_the_gallery(
    empty_server: Server, open_page: Any, axe: str, width: int, dark: bool
) -> None:
    page = open_page(empty_server, "/", width=width, dark=dark)
    expect(page.get_by_role("button", name="Run the demo")).to_be_visible()
    cards = page.locator(".gallery-card")
    expect(cards).to_have_count(len(ENTRIES))
    for card, entry in zip(cards.all(), ENTRIES, strict=True):
        expect(card.locator(".badge")).to_have_text(entry.verdict)
        expect(card.locator("canvas")).to_have_attribute("aria-label", "train loss on the first plane")
        expect(card).to_contain_text(entry.shows)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert not violations(page, axe)
    cards.first.get_by_role("link", name=ENTRIES[0].title).click()
    idle(page, count=2)
    expect(page.locator(".verdict .badge")).to_have_text("level valley")
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    expect(page.get_by_role("link", name="Vary")).to_be_visible()


def test_gallery_entries_are_compared_with_experiments(server: Server, finished: str, open_page: Any) -> None:
    page = open_page(server, "/")
    page.get_by_role("link", name="Gallery").click()
    page.get_by_label("Compare One level valley").check()
    page.get_by_role("link", name="Add experiments").click()
    page.get_by_label("Select finished", exact=True).check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="Compare One level valley · finished")).to_be_visible()
    idle(page, count=2)
    assert finished in page.url


def test_a_link_opens_one_experiment_read_only(guarded: Server, uploaded: str, open_page: Any, axe: str) -> None:
    page = open_page(guarded, share(guarded, uploaded)["path"], width=390, dark=True)
    idle(page, count=2)
    expect(page.get_by_role("heading", name="my valley")).to_be_visible()
    expect(page.get_by_text("Read-only link, valid until")).to_be_visible()
    for name in ("Cancel", "Retry", "Share"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="Vary")).to_have_count(0)
    expect(page.get_by_role("navigation")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert not violations(page, axe)
    page.locator("summary", has_text="Download").click()
    with page.expect_download() as download:
        page.locator("[data-file='landscape.h5']").click()
    assert download.value.path().stat().st_size > 100_000


def test_a_link_that_does_not_work_says_why(guarded: Server, uploaded: str, open_page: Any) -> None:
    link = share(guarded, uploaded)
    guarded.client.delete(f"/api/experiments/{uploaded}/share/{link['id']}")
    page = open_page(guarded, link["path"])
    page.guard.expect("401")
    expect(page.get_by_role("heading", name="This link cannot be opened")).to_be_visible()
    expect(page.get_by_text("not valid, or was revoked")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_is_made_and_revoked_in_the_page(guarded: Server, uploaded: str, open_page: Any, axe: str) -> None:
    guarded.client.delete(f"/api/experiments/{uploaded}/share")
    page = open_page(guarded, f"/experiments/{uploaded}")
    page.guard.expect("401")
    unlocked(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Valid for").select_option("a week")
    dialog.get_by_role("button", name="Make a read-only link").click()
    expect(dialog.locator(".share-link")).to_have_count(1)
    [made] = guarded.client.get(f"/api/experiments/{uploaded}/share")["items"]
    address = guarded.address + made["path"]
    expect(dialog.get_by_label("address of the link")).to_have_text(address)
    expect(dialog.get_by_label("code of an iframe")).to_contain_text(f'src="{address}"')
    expect(page.locator(".toast")).to_contain_text("Read-only link copied")
    assert page.evaluate("navigator.clipboard.readText()") == address
    assert not violations(page, axe)
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog.locator(".share-link")).to_have_count(0)
    assert guarded.client.get(f"/api/experiments/{uploaded}/share")["items"] == []
    dialog.get_by_role("button", name="Copy the address of this view").click()
    expect(dialog).to_have_count(0)
    assert page.evaluate("navigator.clipboard.readText()") == page.url


DROP = """([name, content]) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name));
  for (const kind of ['dragover', 'drop'])
    document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: files }));
}"""


def test_landscapes_are_opened_by_choosing_or_dropping_files(guarded: Server, open_page: Any, tmp_path: Path) -> None:
    """Plane and curve of one run become one landscape; a surface without test data is shown as far as it goes."""
    theirs = GaripovPlane()
    page = open_page(guarded, "/new?way=landscape")
    page.guard.expect("40[14]|422")
    page.locator('input[type="file"]').set_input_files([theirs.save(tmp_path), theirs.save_curve(tmp_path)])
    unlocked(page)
    expect(page.get_by_role("heading", name="plane and curve")).to_be_visible(timeout=LONG_PATIENCE)
    idle(page, count=2)
    expect(page.get_by_text("Read off the surface 'connection' by interpolation").first).to_be_visible()
    expect(page.get_by_role("link", name="Vary")).to_have_count(0)
    page.get_by_role("link", name="Experiments", exact=True).click()
    expect(page.get_by_role("link", name="plane and curve").first).to_be_visible()
    page.evaluate(DROP, ["junk.h5", b64encode(b"nothing of the kind").decode()])
    expect(page.get_by_role("alert")).to_contain_text("junk.h5: is neither a .npz nor an HDF5 file")
    li_surface(tmp_path / "surface.h5", 7, 5)
    page.evaluate(DROP, ["surface.h5", b64encode((tmp_path / "surface.h5").read_bytes()).decode()])
    expect(page.get_by_role("heading", name="surface")).to_be_visible(timeout=LONG_PATIENCE)
    idle(page, count=2)
    expect(page.get_by_label("show", exact=True)).to_have_value("train-pair")
    expect(page.locator(".verdict .badge")).to_have_text("no verdict")


def test_an_allowed_site_shows_a_link_in_an_iframe(browser: Browser, guarded: Server, uploaded: str, site: str) -> None:
    page = opened(browser, guarded, f"{site}/?{guarded.address}{share(guarded, uploaded)['path']}")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="my valley")).to_be_visible()
    page.goto(f"{site}/?{guarded.address}/experiments/{uploaded}")  # everything else stays refused
    page.wait_for_function("() => document.querySelector('iframe').contentDocument === null")
    expect(frame.get_by_role("heading", name="my valley")).to_have_count(0)
    page.context.close()
