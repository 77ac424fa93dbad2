"""Make the screenshots of docs/images and the demo picture of the empty list: `make screenshots`.

Shows the landscapes of the gallery on a new server, so nothing is computed; `python docs/gallery.py` computes them.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import CHROMIUM, FLAGS
from valleyscope.app.commands.client import Client
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.gallery import gallery_entries

HOUSE = Path(__file__).resolve().parents[1]
IMAGES = HOUSE / "docs" / "images"
DEMO_PICTURES = {"light": HOUSE / "static" / "demo-light.webp", "dark": HOUSE / "static" / "demo-dark.webp"}
DEMO = "gallery-demo"
OTHER = "gallery-sloping"
WIDTHS = {"": 1440, "-tablet": 1024, "-phone": 390}
DRAWN = """() => {
  const plots = [...document.querySelectorAll('.plot')].filter((plot) => !plot.closest('[hidden]'));
  const whole = (plot) => plot.dataset.room === String(Math.floor(plot.closest('figure').clientWidth));
  const small = [...document.querySelectorAll('[data-state=done] canvas')];
  const painted = (canvas) => canvas.getAttribute('aria-label') !== 'no surface yet';
  return plots.length + small.length > 0 && plots.every(whole) && small.every(painted);
}"""


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        main_view = f"{address}/experiments/{DEMO}"
        for theme in ("light", "dark"):
            for name, width in WIDTHS.items():
                shoot(browser, main_view, f"dashboard-{theme}{name}", width, theme)
        shoot(browser, f"{main_view}?plane=basins&show=train-loss&form=3d", "relief-light", 1440, "light")
        shoot(browser, f"{address}/compare?ids={DEMO},{OTHER}&plane=basins", "compare-light", 1440, "light")
        shoot(browser, f"{address}/", "list-light", 1440, "light", whole=False)
        for theme, path in DEMO_PICTURES.items():
            save(taken(browser, f"{main_view}?show=train-loss", 720, theme, part=".surfaces .pictures", scale=2), path)
        browser.close()
    export()
    return 0


@contextmanager
def served() -> Iterator[str]:
    """The URL of a server whose list has the landscapes of the gallery; it ends with this block."""
    with tempfile.TemporaryDirectory() as home:
        command = [
            sys.executable,
            "-m",
            "valleyscope.app.cli",
            "serve",
            "--port",
            "0",
            "--workers",
            "0",
            "--home",
            home,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = next(match for line in process.stdout if (match := re.search(r"http://[\d.:]+", line)))
            for entry in reversed(gallery_entries()):
                Client(found[0]).send_landscapes([entry.folder / LANDSCAPE], name=entry.title)
            yield found[0]
        finally:
            process.terminate()
            process.wait()


def shoot(browser: Browser, address: str, name: str, width: int, theme: str, *, whole: bool = True) -> None:
    """A view as docs/images/<name>.webp, from top to bottom or as much as a screen shows."""
    save(taken(browser, address, width, theme, whole=whole), IMAGES / f"{name}.webp")


def taken(
    browser: Browser,
    address: str,
    width: int,
    theme: str,
    *,
    whole: bool = True,
    part: str | None = None,
    scale: float = 1,
) -> bytes:
    """The picture of a page, or of a part of it."""
    scheme = "dark" if theme == "dark" else "light"
    viewport = {"width": width, "height": 900}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, device_scale_factor=scale)
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


def export() -> None:
    """The picture for a paper, as `valley export` makes it, in docs/images/digits.png."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("export", DEMO, "--out", folder, "--formats", "png")
        subprocess.run([sys.executable, "-m", "valleyscope.app.cli", *command], check=True, stdout=subprocess.DEVNULL)
        shutil.copyfile(Path(folder) / "paper.png", IMAGES / "digits.png")


def save(shot: bytes, path: Path) -> None:
    Image.open(io.BytesIO(shot)).convert("RGB").save(path, "WEBP", quality=88, method=6)
    print(f"{path.relative_to(HOUSE)}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
