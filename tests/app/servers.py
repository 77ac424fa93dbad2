"""Real servers for tests: `valley serve` in a process, on a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.landscape import cases
from valleyscope.landscape.storage.landscape_file import Landscape

FINAL = ("done", "failed", "cancelled")
_STOP_SECONDS = 90.0  # a server has 30 s for its shutdown
TINY: dict[str, Any] = {
    "name": "tiny",
    "training": {"epochs": 2, "batch_size": 64},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.6}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 1}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9, "complete": "random"}},
    "points": 5,
    "verdict": {"resamples": 100},
}
"""All kinds of tasks in a second or two, on the network that is not inspected first."""


class Server:
    """A running server: its URL, its home and its log."""

    def __init__(self, process: subprocess.Popen[str], home: Path, errors: Path) -> None:
        self.process = process
        self.home = home
        self._errors = errors
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("Serving at "):
            process.wait(60)
            raise AssertionError(f"the server did not start: {line}{self.log}")
        self.url = line.split()[-1]
        threading.Thread(target=process.stdout.read, daemon=True).start()
        self.client = httpx.Client(base_url=self.url, timeout=150)  # longer than the server waits for torch

    @property
    def log(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.client.close()
        self.process.send_signal(number)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the server does not end: {self.log}") from None

    def submit(self, spec: Mapping[str, Any] | None = None, **changes: Any) -> str:
        response = self.client.post("/api/experiments", json={**(spec or TINY), **changes})
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def wait(self, id: str, *states: str, timeout: float = 240.0) -> dict[str, Any]:
        """Wait until an experiment is in one of the states, by default until it ends."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            row: dict[str, Any] = self.client.get(f"/api/experiments/{id}").json()
            if row["state"] in (states or FINAL):
                return row
            assert row["state"] not in FINAL, f"{id} is {row['state']}: {row['error']}"
            time.sleep(0.05)
        raise AssertionError(f"{id} is {row['state']} after {timeout} s; the server's log: {self.log[-3000:]}")

    def still(self, spec: Mapping[str, Any] | None = None, **changes: Any) -> str:
        """A cancelled experiment, so a test may put files into its directory."""
        id = self.submit(spec, **changes)
        assert self.client.post(f"/api/experiments/{id}/cancel").status_code == 202
        self.wait(id)
        return id

    def charted(self, landscape: Landscape | None = None, **changes: Any) -> str:
        """An experiment with a landscape of known values; `changes` are of its spec."""
        landscape = landscape or cases.landscape(21)
        spec = {
            "name": "charted",
            "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp"}, "control": {"seed": 5}},
            "planes": {
                "valley": {"through": ["sgd", "altsdp", "valley.bend"]},
                "basins": {"through": ["sgd", "altsdp", "control"]},
            },
        }
        id = self.still(spec | changes)
        self.directory(id).mkdir(exist_ok=True)
        landscape.save(self.directory(id) / "landscape.h5")
        return id

    def directory(self, id: str) -> Path:
        return self.home / "experiments" / id


@contextmanager
def serving(
    home: Path,
    *options: object,
    workers: int = 0,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[Server]:
    """A server on a free port, stopped at the end of the block; `prefix` is a command that runs it."""
    command = [
        sys.executable,
        "-m",
        "valleyscope.app.cli",
        "serve",
        "--home",
        str(home),
        "--port",
        "0",
        "--workers",
        str(workers),
    ]
    errors = home.with_name(f"{home.name}.log")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("VALLEY_") or name == "VALLEY_ONNX"
    }
    with errors.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*prefix, *command, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**inherited, **(environment or {})},
        )
    try:
        yield Server(process, home, errors)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
