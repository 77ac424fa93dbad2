"""Make the pictures of the dashboard in docs/images: `python docs/screenshots.py`.

Starts a server of its own and runs the demo in it, which takes minutes. To use a server that runs already, with its
newest experiments that are done: `python docs/screenshots.py --server http://127.0.0.1:8360`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from app.commands.client import Client

IMAGES = Path(__file__).parent / "images"
DEMO = "digits"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic"]
WIDTHS = {"": 1440, "-tablet": 1024, "-phone": 390}
DRAWN = """() => {
  const plots = [...document.querySelectorAll('.plot')].filter((plot) => !plot.closest('[hidden]'));
  return plots.length > 0 && plots.every((plot) => plot.dataset.draws);
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description="make the pictures of the dashboard")
    parser.add_argument("--server", metavar="URL", help="a server that runs already (default: start one)")
    options = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    with served(options.server) as address, sync_playwright() as playwright:
        experiment, others = chosen(Client(address))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        main_view = f"{address}/experiments/{experiment}"
        for theme in ("light", "dark"):
            for name, width in WIDTHS.items():
                shoot(browser, main_view, f"dashboard-{theme}{name}", width, theme)
        shoot(browser, f"{main_view}?plane=basins&show=train-loss&form=3d", "relief-light", 1440, "light")
        if others:
            shoot(
                browser, f"{address}/compare?ids={experiment},{others[0]}&plane=basins", "compare-light", 1440, "light"
            )
        browser.close()
    return 0


@contextmanager
def served(address: str | None) -> Iterator[str]:
    """The address of a server, which ends with this block if it was started here."""
    if address is not None:
        yield address
        return
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--home", home]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = next(match for line in process.stdout if (match := re.search(r"http://[\d.:]+", line)))
            run_demo(Client(found[0]))
            yield found[0]
        finally:
            process.terminate()
            process.wait()


def run_demo(client: Client) -> None:
    experiment = client.post("/api/experiments", {"recipe": DEMO})["id"]
    while client.experiment(experiment)["state"] in ("queued", "running"):
        time.sleep(2)


def chosen(client: Client) -> tuple[str, list[str]]:
    """The newest demo that is done, and further experiments to compare it with."""
    done = client.get("/api/experiments?state=done")["items"]
    demos = [found["id"] for found in done if found["name"] == DEMO]
    if not demos:
        raise SystemExit(f"no experiment {DEMO!r} is done at that server: run the recipe {DEMO} first")
    return demos[0], demos[1:]


def shoot(browser: Browser, address: str, name: str, width: int, theme: str) -> None:
    """The whole page, from top to bottom."""
    scheme = "dark" if theme == "dark" else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(1000)
    page.screenshot(path=IMAGES / f"{name}.png", full_page=True)
    print(IMAGES / f"{name}.png")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
