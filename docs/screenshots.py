"""Make the screenshots of docs/images and the demo picture of the empty list: `make screenshots`.

Starts a server and runs the demo twice, with two seeds, which takes minutes. To use the newest finished demos of a
running server: `python docs/screenshots.py --server http://127.0.0.1:8360`.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from valleyscope.app.commands.client import Client

HOUSE = Path(__file__).resolve().parents[1]
IMAGES = HOUSE / "docs" / "images"
DEMO_PICTURES = {"light": HOUSE / "static" / "demo-light.webp", "dark": HOUSE / "static" / "demo-dark.webp"}
DEMO = "digits"
OTHER = "digits, seed 1"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic"]
WIDTHS = {"": 1440, "-tablet": 1024, "-phone": 390}
DRAWN = """() => {
  const plots = [...document.querySelectorAll('.plot')].filter((plot) => !plot.closest('[hidden]'));
  const whole = (plot) => plot.dataset.room === String(Math.floor(plot.closest('figure').clientWidth));
  const small = [...document.querySelectorAll('[data-state=done] canvas')];
  const painted = (canvas) => canvas.getAttribute('aria-label') !== 'no surface yet';
  return plots.length + small.length > 0 && plots.every(whole) && small.every(painted);
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description="make the pictures of the dashboard")
    parser.add_argument("--server", metavar="URL", help="a running server (default: start one)")
    options = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    with served(options.server) as address, sync_playwright() as playwright:
        experiment, other = chosen(Client(address))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        main_view = f"{address}/experiments/{experiment}"
        for theme in ("light", "dark"):
            for name, width in WIDTHS.items():
                shoot(browser, main_view, f"dashboard-{theme}{name}", width, theme)
        shoot(browser, f"{main_view}?plane=basins&show=train-loss&form=3d", "relief-light", 1440, "light")
        shoot(browser, f"{address}/compare?ids={experiment},{other}&plane=basins", "compare-light", 1440, "light")
        shoot(browser, f"{address}/", "list-light", 1440, "light", whole=False)
        for theme, path in DEMO_PICTURES.items():
            save(taken(browser, f"{main_view}?plane=basins", 1200, theme, part=".surfaces .pictures"), path)
        browser.close()
        export(address, experiment)
    return 0


@contextmanager
def served(address: str | None) -> Iterator[str]:
    """The URL of the given server, or of a new one that ends with this block."""
    if address is not None:
        yield address
        return
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "valleyscope.app.cli", "serve", "--port", "0", "--home", home]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = next(match for line in process.stdout if (match := re.search(r"http://[\d.:]+", line)))
            client = Client(found[0])
            run(client, {"recipe": DEMO, "name": OTHER, "seed": 1})
            run(client, {"recipe": DEMO})
            yield found[0]
        finally:
            process.terminate()
            process.wait()


def run(client: Client, submission: dict[str, object]) -> None:
    """Submit an experiment and wait for its end."""
    experiment = client.post("/api/experiments", submission)["id"]
    while client.experiment(experiment)["state"] in ("queued", "running"):
        time.sleep(2)


def chosen(client: Client) -> tuple[str, str]:
    """The newest finished demo, and the newest one with another seed."""
    done = client.get("/api/experiments?state=done&limit=200")["items"]
    newest = {found["name"]: found["id"] for found in reversed(done)}
    if not {DEMO, OTHER} <= set(newest):
        raise SystemExit(
            f"experiments {DEMO!r} and {OTHER!r} must be done on that server: run the recipe {DEMO}, then again "
            f"with seed 1 and the other name"
        )
    return newest[DEMO], newest[OTHER]


def shoot(browser: Browser, address: str, name: str, width: int, theme: str, *, whole: bool = True) -> None:
    """A view as docs/images/<name>.webp, from top to bottom or as much as a screen shows."""
    save(taken(browser, address, width, theme, whole=whole), IMAGES / f"{name}.webp")


def taken(
    browser: Browser, address: str, width: int, theme: str, *, whole: bool = True, part: str | None = None
) -> bytes:
    """The picture of a page, or of a part of it."""
    scheme = "dark" if theme == "dark" else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(1000)  # a 3-D surface is painted in later frames, without an event
    if part:
        page.add_style_tag(content=".table-button { visibility: hidden }")
    shot = page.locator(part).first.screenshot() if part else page.screenshot(full_page=whole)
    context.close()
    return shot


def export(address: str, experiment: str) -> None:
    """The picture for a paper, as `valley export` makes it, in docs/images/digits.png."""
    with tempfile.TemporaryDirectory() as folder:
        for command in (
            ("fetch", experiment, "--server", address, "--out", folder),
            ("export", folder, "--out", f"{folder}/export", "--formats", "png"),
        ):
            subprocess.run(
                [sys.executable, "-m", "valleyscope.app.cli", *command], check=True, stdout=subprocess.DEVNULL
            )
        shutil.copyfile(Path(folder) / "export" / "paper.png", IMAGES / "digits.png")


def save(shot: bytes, path: Path) -> None:
    Image.open(io.BytesIO(shot)).convert("RGB").save(path, "WEBP", quality=88, method=6)
    print(f"{path.relative_to(HOUSE)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
