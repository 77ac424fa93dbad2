"""A real server with real workers, and a real Chromium that must stay silent and must not call another host."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chromium import CHROMIUM, FLAGS
from tests.waiting import until
from valleyscope.app.commands.client import Client, Unreachable

HOUSE = Path(__file__).parents[2]
QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = "axe-core@4.14.0"
PATIENCE = 60_000
LONG_PATIENCE = 180_000  # for what a worker does, or needs a fresh process with torch, on cores busy with other tests

expect.set_options(timeout=PATIENCE)

TINY: dict[str, Any] = {
    "name": "tiny",
    "model": {"name": "cnn", "channels": [4, 8], "hidden": 16},
    "training": {"epochs": 2, "batch_size": 64},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.5}, "control": {"seed": 5}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 1}},
    "planes": {
        "valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9},
        "basins": {"through": ["sgd", "altsdp", "control"], "resolution": 9},
    },
    "points": 5,
    "samples": 400,
    "verdict": {"resamples": 100},
}


AWKWARD = "<img src=x onerror='document.title=1'><b>&amp; %{y} " + 3 * "averyveryverylongword"
STOCK: dict[str, dict[str, Any]] = {
    "done": {"name": "finished"},
    "done too": {"name": "finished too", "seed": 1, "training": {"epochs": 2, "batch_size": 64, "lr": 0.05}},
    "failed": {"name": AWKWARD, "training": {"epochs": 2, "batch_size": 64, "lr": 1000.0}},
}


class Server:
    """`valley serve` in a process that can be killed and started again at the same address."""

    def __init__(self, home: Path, *, workers: int = 1, environment: dict[str, str] | None = None) -> None:
        self.home = home
        self.workers = workers
        self.environment = environment or {}
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "valleyscope.app.cli",
            "serve",
            "--port",
            str(self.port),
            "--home",
            str(self.home),
        ]
        self.address = ""
        self.process = subprocess.Popen(
            [*command, "--workers", str(self.workers)],
            cwd=HOUSE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"VALLEY_LOG_LEVEL": "WARNING"} | self.environment,
        )
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port, self.address = int(found[1]), found[0]
                break
        assert self.address, f"the server did not start: {said}"
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # so that it never blocks on a pipe

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """As a power cut would: no time for anything."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def client(self) -> Client:
        return Client(self.address, self.environment.get("VALLEY_API_KEY"))

    def submit(self, **changes: Any) -> str:
        """Submit the small experiment with some changes; the key makes it safe to ask a busy machine again."""
        key = uuid.uuid4().hex
        for _ in range(4):
            try:
                return str(self.client.submit(TINY | changes, key=key)["id"])
            except Unreachable as error:
                reason = error
        raise reason

    def wait(self, experiment: str, *states: str, seconds: float = 300.0) -> dict[str, Any]:
        """Until the experiment is in one of these states, by default at its end."""
        wanted = states or ("done", "failed", "cancelled")
        found: dict[str, Any] = {}

        def arrived() -> bool:
            assert self.alive, "the server has ended"
            with suppress(Unreachable):  # a busy machine is asked again
                found.update(self.client.experiment(experiment))
            return found.get("state") in wanted

        until(arrived, seconds, lambda: f"{found.get('state')} at {found.get('stage')}, not yet {' or '.join(wanted)}")
        return found


@contextmanager
def occupied(server: Server) -> Iterator[None]:
    """While the worker is busy with something else: what is submitted waits until a page is there to see it begin."""
    other = server.submit(name="in the way", training={"epochs": 2000, "batch_size": 8})
    server.wait(other, "running")
    yield
    server.client.post(f"/api/experiments/{other}/cancel")


class Guard:
    """Listens to a page: what a test does not expect in the console, or at another host, fails it."""

    def __init__(self, own: str) -> None:
        self._own = urlsplit(own).netloc
        self._expected: list[re.Pattern[str]] = []
        self.said: list[str] = []
        self.foreign: list[str] = []

    def expect(self, pattern: str) -> None:
        """Let the console say this: a browser notes every answer of 400 and above, and every lost connection."""
        self._expected.append(re.compile(pattern))

    def watch(self, page: Page) -> None:
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(f"uncaught: {error}"))
        page.on("request", lambda request: self._see(request.url))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _see(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self._own:
            self.foreign.append(url)

    def check(self) -> None:
        unexpected = [said for said in self.said if not any(pattern.search(said) for pattern in self._expected)]
        assert not unexpected, f"the console says {unexpected}"
        assert not self.foreign, f"the page calls {self.foreign}"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with the browser tests: Playwright's event loop would make `asyncio.run` fail in later tests."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *QUIET])
        yield found
        found.close()


@pytest.fixture(scope="session")
def stocked(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A home with small experiments that have ended, computed once for all processes of a test run."""
    alone = worker_id == "master"
    shared = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    home, ready = shared / "stocked", shared / "stocked.ready"
    with (shared / "stocked.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            maker = Server(home)
            maker.start()
            try:
                ids = [maker.submit(**changes) for changes in STOCK.values()]
                for experiment, kind in zip(ids, STOCK, strict=True):
                    found = maker.wait(experiment)
                    assert kind.startswith(found["state"]), found["error"]
            finally:
                maker.stop()
            ready.write_text(" ".join(ids))
    return home


@pytest.fixture(scope="session")
def shared_server(stocked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server") / "home")
    shutil.copytree(stocked, made.home)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """A server with experiments that have ended, which the tests of a process share: one may kill it, too."""
    yield shared_server
    if not shared_server.alive:
        shared_server.start()


@pytest.fixture
def empty_server(tmp_path: Path) -> Iterator[Server]:
    """A server without experiments and without workers, for one test."""
    made = Server(tmp_path / "home", workers=0)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def finished(stocked: Path) -> str:
    """The id of a small experiment that is done."""
    return stocked.with_suffix(".ready").read_text().split()[0]


@pytest.fixture(scope="session")
def finished_too(stocked: Path) -> str:
    """A second one, with another seed and another learning rate."""
    return stocked.with_suffix(".ready").read_text().split()[1]


@pytest.fixture(scope="session")
def failed(stocked: Path) -> str:
    """One with an awkward name that has failed: its learning rate makes it diverge."""
    return stocked.with_suffix(".ready").read_text().split()[2]


def opened(
    browser: Browser, server: Server, path: str = "/", *, width: int = 1440, height: int = 900, dark: bool = False
) -> Page:
    """A page of its own, with the guard as `page.guard`."""
    context = browser.new_context(
        base_url=server.address,
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
        has_touch=width < 600,
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.guard = Guard(server.address)  # type: ignore[attr-defined]
    page.guard.watch(page)  # type: ignore[attr-defined]
    page.bring_to_front()  # a page behind others draws no frames, and sees neither keys nor scrolling
    page.goto(path)
    return page


def opener(browser: Browser) -> Iterator[Any]:
    """A function that opens pages; at the end all of them must have been silent."""
    pages: list[Page] = []

    def open_(server: Server, path: str = "/", **how: Any) -> Page:
        pages.append(opened(browser, server, path, **how))
        return pages[-1]

    yield open_
    for page in pages:
        page.context.close()
    for page in pages:
        page.guard.check()  # type: ignore[attr-defined]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Any]:
    """Opens pages for one test: `open_page(server, "/new", width=390, dark=True)`."""
    yield from opener(browser)


@pytest.fixture(scope="module")
def share_page(browser: Browser) -> Iterator[Any]:
    """Opens pages that several tests of a module look at, and leave as they are."""
    yield from opener(browser)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, fetched from npm once and kept in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "valleyscope-tests"
    script = cache / f"{AXE}.js"
    if not script.exists():
        cache.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        assert npm, "npm is needed once, to fetch axe-core for the tests of accessibility"
        # In a folder of its own: other processes of a test run may fetch it at the same time.
        with TemporaryDirectory(dir=cache) as folder:
            pack = [npm, "pack", AXE, "--silent"]
            done = subprocess.run(pack, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            with tarfile.open(Path(folder) / done.stdout.split()[-1]) as packed:
                member = packed.extractfile("package/axe.min.js")
                assert member is not None
                part = Path(folder) / script.name
                part.write_bytes(member.read())
                part.replace(script)
    return script.read_text(encoding="utf-8")


def idle(page: Page, needed: str = ".surfaces .plot", count: int = 1) -> None:
    """Until so many pictures are there, and all of the page are drawn, as wide as there is room for them."""
    page.wait_for_function(
        """([needed, count]) => {
          const plots = [...document.querySelectorAll('.plot')].filter((plot) => !plot.closest('[hidden]'));
          const room = (plot) => String(Math.floor(plot.closest('figure').clientWidth));
          const there = document.querySelectorAll(needed).length;
          return there >= count && plots.every((plot) => plot.dataset.room === room(plot));
        }""",
        arg=[needed, count],
    )


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core finds serious or critical on a page, with the elements."""
    page.evaluate(axe)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", tags)
    return [
        f"{violation['id']} ({violation['impact']}): {[node['target'] for node in violation['nodes'][:5]]}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
