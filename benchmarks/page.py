"""Times the dashboard in a real browser: how soon a view can be used, and how long a fine contour takes to redraw.

    python benchmarks/page.py                                  # starts a server with one small experiment
    python benchmarks/page.py --check                          # the same, and exit status 1 above a limit
    python benchmarks/page.py --server http://127.0.0.1:8360   # a server that runs already, with a finished experiment

A visit is timed by the page's own clock, from the navigation to the moment at which its content can be used. Each is
made several times, and the best one counts. Where other programs share the processor, a visit takes longer in
proportion: how many share it is measured beside each visit and printed; `--check` takes the time divided by it. The
redraw is timed twice, by the clock and in processor seconds of the page's main thread, which others cannot lengthen.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import CHROMIUM, FLAGS
from valleyscope.app.commands.client import Client

VISITS = 5
REDRAWS = 5
SIDE = 401
FIRST, SECOND, REDRAW = 2.5, 1.0, 0.7
SPEC = {
    "name": "small",
    "model": {"name": "cnn", "channels": [4, 8], "hidden": 16},
    "training": {"epochs": 2, "batch_size": 64},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.5}, "control": {"seed": 5}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 1}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 41}},
    "points": 11,
    "samples": 400,
    "verdict": {"resamples": 100},
}
READY = {"list": "tr.experiment", "experiment": ".surfaces .plot[data-draws]"}
# Notes the page's own time at which an element that fits appears.
CLOCK = """(wanted) => {
  const look = () => {
    if (globalThis.readyAt || !document.querySelector(wanted)) return;
    requestAnimationFrame(() => setTimeout(() => { globalThis.readyAt ??= performance.now(); }));
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
}"""
FINE = """async ([redraws, size]) => {
  const base = document.querySelector('script[type=module]').src.replace('main.js', '');
  const { Plane } = await import(`${base}landscape/plane.js`);
  const { contourFigure } = await import(`${base}plots/contour.js`);
  const { Plot } = await import(`${base}plots/plot.js`);
  const places = Float64Array.from({ length: size }, (_, index) => (10 * index) / (size - 1));
  const packed = { dtype: 'f8', bdata: btoa(String.fromCharCode(...new Uint8Array(places.buffer))) };
  const names = { plane: 'fine', kind: 'through', unit: 'distance', note: '', defining: ['sgd', 'altsdp'] };
  const named = { points: { sgd: [2, 2], altsdp: [8, 8] }, distances: {}, paths: {} };
  const plane = new Plane({ ...names, ...named, x: packed, y: packed });
  const done = new Uint8Array(size * size).fill(1);
  const plot = new Plot({ label: 'fine' });
  document.querySelector('.surfaces').append(plot.node);
  const took = [];
  for (let turn = 0; turn < redraws; turn++) {
    const height = (x, y) => 0.01 + Math.abs(Math.sin(x + turn) * Math.cos(y));
    const values = Float64Array.from(done, (_, n) => height(places[n % size], places[Math.floor(n / size)]));
    const began = performance.now();
    plane.merge('train', 'loss', values, done);
    plane.markDone(done);
    const view = { split: 'train', value: 'loss', log: true, clip: null, mode: 'light' };
    await plot.draw(() => ({ ...contourFigure(plane, view), shape: 1 }));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    took.push((performance.now() - began) / 1000);
  }
  plot.close();
  plot.node.remove();
  return took;
}"""


@dataclass(frozen=True)
class Timing:
    """The best of some measurements: seconds, how many shared the processor meanwhile, and the limit."""

    title: str
    seconds: float
    crowd: float
    limit: float | None

    @property
    def fits(self) -> bool:
        return self.limit is None or self.seconds / self.crowd < self.limit

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"limit {self.limit:.1f} s"
        alone = self.seconds / self.crowd
        return f"{self.title:<44}{self.seconds:8.2f} s{self.crowd:8.1f}{alone:8.2f} s   {limit}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit status 1 where a limit is exceeded")
    parser.add_argument("--server", metavar="URL", help="a server that runs already (default: start one)")
    options = parser.parse_args()
    with served(options.server) as address, sync_playwright() as playwright:
        experiment = next(item["id"] for item in Client(address).get("/api/experiments?state=done")["items"])
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        load = os.getloadavg()[0]
        print(f"{os.cpu_count()} cores, load average {load:.1f}, {browser.browser_type.name} {browser.version}")
        print(f"{'':<44}{'clock':>10}{'crowd':>8}{'alone':>10}")
        timings: list[Timing] = []
        for timing in measured(browser, address, experiment):
            print(timing, flush=True)
            timings.append(timing)
        browser.close()
    return int(options.check and not all(timing.fits for timing in timings))


def measured(browser: Browser, address: str, experiment: str) -> Iterator[Timing]:
    yield from visits(browser, f"{address}/", "list of experiments", READY["list"], (FIRST, SECOND))
    one = f"{address}/experiments/{experiment}"
    yield from visits(browser, one, "one experiment, contours drawn", READY["experiment"], (FIRST, SECOND))
    yield from redraws(browser, one)


def visits(
    browser: Browser, address: str, title: str, wanted: str, limits: tuple[float | None, float | None]
) -> Iterator[Timing]:
    """The first visit with an empty cache, and the second one with what that left behind."""
    found: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for _ in range(VISITS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(f"({CLOCK})({wanted!r})")
        for visit in found:
            visit.append(timed_visit(page, address))
            page.goto("about:blank")
        context.close()
    for words, visit, limit in zip(("first", "second"), found, limits, strict=True):
        seconds, crowd = min(visit, key=lambda pair: pair[0] / pair[1])
        yield Timing(f"{title}, {words} visit", seconds, crowd, limit)


def timed_visit(page: Page, address: str) -> tuple[float, float]:
    crowd = crowding()
    page.goto(address, wait_until="commit")
    seconds = float(page.wait_for_function("() => globalThis.readyAt").json_value()) / 1000
    return seconds, (crowd + crowding()) / 2


def redraws(browser: Browser, address: str) -> Iterator[Timing]:
    """Contours of 401 by 401 new values, by the clock and in processor seconds of the main thread."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.locator(READY["experiment"]).first.wait_for()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.evaluate(FINE, [1, SIDE])
    before, crowd = task_seconds(session), crowding()
    took = page.evaluate(FINE, [REDRAWS, SIDE])
    crowd = (crowd + crowding()) / 2
    yield Timing(f"contour of {SIDE} by {SIDE}, redrawn", min(took), crowd, None)
    yield Timing("  of that on the main thread", (task_seconds(session) - before) / REDRAWS, 1.0, REDRAW)


def task_seconds(session: object) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]  # type: ignore[attr-defined]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def crowding() -> float:
    """How many share a core at the moment: the time that some work takes by the clock over that of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    while time.process_time() - processor < 0.2:
        sum(range(1000))
    return max(1.0, (time.perf_counter() - clock) / (time.process_time() - processor))


@contextmanager
def served(address: str | None) -> Iterator[str]:
    """The address of a server with a finished experiment; one that is started here ends with this block."""
    if address is not None:
        yield address
        return
    with tempfile.TemporaryDirectory() as home:
        command = [
            sys.executable,
            "-m",
            "valleyscope.app.cli",
            "serve",
            "--port",
            "0",
            "--home",
            home,
            "--workers",
            "1",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = next(match for line in process.stdout if (match := re.search(r"http://[\d.:]+", line)))
            client = Client(found[0])
            experiment = client.submit(SPEC, key="page")["id"]
            while (state := client.experiment(experiment)["state"]) in ("queued", "running"):
                time.sleep(1)
            assert state == "done", f"the experiment has {state}"
            yield found[0]
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
