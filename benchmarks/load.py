"""The API under load: fifty readers while two workers train at full speed, a large surface, and a long list.

    python benchmarks/load.py            # figures beside their limits
    python benchmarks/load.py --check    # the same, and exit status 1 where one is above its limit

A server is started on a home with 10,000 finished experiments, one of them with a surface of 401 x 401 points. Server
times are those of its own log: from the arrival of a request to the start of the answer. Then two workers train while
fifty clients, each with a connection of its own and about one request a second, read lists, details, metrics, profiles,
verdicts and surfaces for thirty seconds; latencies are measured at the clients, to the last byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from valleyscope.app.commands.client import Client
from valleyscope.app.experiments.recipes import load_recipe
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.storage.tables import events, experiments
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, MinimumRecord, PathRecord, PathValues, PlaneRecord

EXPERIMENTS = 10_000
RESOLUTION = 401
CLIENTS = 50
SECONDS = 30.0
PAUSE = 1.0
LATENCY_LIMIT = 0.100
SURFACE_LIMIT = 0.030
LIST_LIMIT = 0.050
_HOUSE = Path(__file__).parents[1]
_BUSY = {
    "name": "busy",
    "training": {"epochs": 2000, "batch_size": 32},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 1.6}},
    "curves": {},
    "planes": {},
}


@dataclass
class Tally:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A number beside its limit."""

    what: str
    value: float
    limit: float
    unit: str = "ms"

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{self.what:<68} {self.value:9.1f} {self.unit:<6} limit {self.limit:g}{'' if self.holds else '  ABOVE'}"


def fill(home: Path) -> str:
    """Enter finished experiments into a new catalogue; returns the id of the one with the large surface."""
    home.mkdir(parents=True)
    database = Database(f"sqlite:///{home / 'valley.db'}")
    migrate(database)
    experiment_table, spec = ExperimentTable(database), load_recipe("digits")
    with database.write() as connection:
        rows = [experiment_table.add(connection, spec, key=None, priority=100) for _ in range(EXPERIMENTS)]
        connection.execute(events.delete())
        connection.execute(
            experiments.update().values(
                state="done",
                stage="done",
                progress=1.0,
                started=experiments.c.created,
                finished=experiments.c.created + 60,
                verdict_kind="level valley",
                sentence="Level valley. Along the line from sgd to altsdp the train loss stays within 0.004 nats.",
                name=sa.literal("digits ") + sa.cast(experiments.c.number, sa.String),
            )
        )
    database.close()
    folder = home / "experiments" / rows[-1].id
    folder.mkdir(parents=True)
    large_landscape().save(folder / "landscape.h5")
    return rows[-1].id


def large_landscape() -> Landscape:
    """A landscape as an experiment leaves it, with smooth random values."""
    numbers = np.random.default_rng(0)
    axis = np.linspace(-3.0, 3.0, RESOLUTION)
    x, y = np.meshgrid(axis, axis)
    loss = 0.01 + (x**2 + 2 * y**2) / 9 + 0.01 * numbers.random(x.shape)
    grids = {split: Grid(loss * scale, 1 - np.exp(-loss)) for split, scale in (("train", 1.0), ("test", 1.2))}
    done = np.ones(x.shape, dtype=bool)
    plane = PlaneRecord("valley", "through", axis, axis, done, grids, points={"sgd": (0.0, 0.0), "altsdp": (1.0, 0.0)})
    t = np.linspace(0, 1, 61)
    path = PathValues(0.01 + 0.03 * t, 0.01 + 0.01 * t)
    line = PathRecord("sgd-altsdp", "line", "sgd", "altsdp", t, 9.7 * t, {"train": path, "test": path})
    epochs = {
        name: numbers.random(120) for name in ("epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
    }
    minima = {name: MinimumRecord(name, name, epochs=epochs, final={"train_loss": 0.01}) for name in ("sgd", "altsdp")}
    verdict = {"kind": "level valley", "sentence": "Level valley."}
    return Landscape("large", minima=minima, planes={"valley": plane}, lines={line.name: line}, verdict=verdict)


class Server:
    """A running `valley serve` and its log."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        self.address = process.stdout.readline().split()[-1]
        self.process = process
        self._log = log

    def seconds(self, path: str, status: int = 200) -> list[float]:
        """Server times of the requests for a path so far."""
        entries = (json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines())
        return [entry["seconds"] for entry in entries if entry.get("path") == path and entry.get("status") == status]


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    log = home.with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "valleyscope.app.cli", "serve", "--home", home, "--port", "0", "--workers", "2"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=_HOUSE,
            env={name: value for name, value in os.environ.items() if not name.startswith("VALLEY_")},
        )
    try:
        yield Server(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Connection:
    """HTTP/1.1 by hand, kept alive: a client library would cost as much as the server on the same machine."""

    def __init__(self, address: str) -> None:
        self._host, self._port = address.removeprefix("http://").split(":")
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def get(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], int]:
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port), limit=2**22)
        assert self._reader is not None
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._host}", *(f"{key}: {value}" for key, value in headers.items())]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        found = {key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:] if line)}
        status = int(head[0].split()[1])
        size = 0 if status == 304 else int(found["content-length"])
        await self._reader.readexactly(size)
        if found.get("connection") == "close":
            self._writer.close()
        return status, found, size


async def read_on(address: str, id: str, until: float, tally: Tally) -> None:
    """One client: reads one thing after another, with pauses, as a page that is open does."""
    connection, tags, choice = Connection(address), dict[str, str](), random.Random()
    own = f"/api/experiments/{id}"
    paths = [
        *("/api/experiments", "/api/experiments?limit=20&state=running", own, own, f"{own}/minima", f"{own}/profile"),
        *(f"{own}/verdict", f"{own}/surface", f"{own}/surface?split=test&value=error", "/api/workers", "/api/queue"),
    ]
    await asyncio.sleep(PAUSE * choice.random())
    while time.monotonic() < until:
        path = choice.choice(paths)
        headers = {"If-None-Match": tags[path]} if path in tags else {}
        started = time.perf_counter()
        try:
            status, found, _ = await connection.get(path, headers)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.errors.append(f"{path}: {error!r}")
            connection = Connection(address)
            continue
        tally.seconds.append(time.perf_counter() - started)
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
        if status not in (200, 304):
            tally.errors.append(f"{path}: {status}")
        if "etag" in found:
            tags[path] = found["etag"]
        await asyncio.sleep(PAUSE * 2 * choice.random())


async def crowd(address: str, id: str) -> Tally:
    tally = Tally()
    until = time.monotonic() + SECONDS
    await asyncio.gather(*(read_on(address, id, until, tally) for _ in range(CLIENTS)))
    return tally


async def measure_single(server: Server, id: str) -> list[Figure]:
    """The large surface and the long list, one request after another."""
    connection = Connection(server.address)
    surface, found = f"/api/experiments/{id}/surface", []
    binary = {"Accept": "application/octet-stream"}
    tags: list[str] = []
    for headers in (binary, {}, {"Accept-Encoding": "gzip"}):
        for _ in range(21):
            _, answered, _ = await connection.get(surface, headers)
        tags.append(answered["etag"])
    times = server.seconds(surface)
    names = ("binary", "JSON with base64", "JSON with base64, gzip")
    for number, name in enumerate(names):
        first, rest = times[21 * number], times[21 * number + 1 : 21 * (number + 1)]
        found.append(
            Figure(
                f"surface {RESOLUTION} x {RESOLUTION}, {name}, median of 20", 1e3 * median(rest), 1e3 * SURFACE_LIMIT
            )
        )
        print(f"  (the first time: {1e3 * first:.1f} ms)")
    for _ in range(20):
        status, _, size = await connection.get(surface, {**binary, "If-None-Match": tags[0]})
        assert (status, size) == (304, 0)
    found.append(
        Figure("the same again with its ETag: 304", 1e3 * median(server.seconds(surface, 304)), 1e3 * SURFACE_LIMIT)
    )
    await connection.get("/api/experiments", {})
    before = len(server.seconds("/api/experiments"))
    queries = ("", "?limit=200", "?search=digits%209", "?state=done", "?state=running", f"?cursor={deep_cursor()}")
    for query in queries:
        for _ in range(20):
            await connection.get(f"/api/experiments{query}", {})
    times = server.seconds("/api/experiments")[before:]
    for number, query in enumerate(queries):
        name = f"list among {EXPERIMENTS:,} {query or '(first page)'}, median of 20"
        found.append(Figure(name, 1e3 * median(times[20 * number : 20 * (number + 1)]), 1e3 * LIST_LIMIT))
    return found


def deep_cursor() -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode((EXPERIMENTS // 2).to_bytes(8)).decode().rstrip("=")


def median(values: list[float]) -> float:
    return float(np.median(values))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit status 1 where a limit is exceeded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        id = fill(home)
        with serving(home) as server:
            figures = asyncio.run(measure_single(server, id))
            client = Client(server.address)
            busy = client.submit(_BUSY)["id"]
            while sum(worker["state"] == "busy" for worker in client.get("/api/workers")["items"]) < 2:
                time.sleep(0.2)
            time.sleep(3)
            tally = asyncio.run(crowd(server.address, id))
            assert client.experiment(busy)["state"] == "running"
            client.post(f"/api/experiments/{busy}/cancel")
    latencies = np.quantile(tally.seconds, (0.5, 0.99, 1.0)) * 1e3
    print(
        f"{len(tally.seconds)} requests of {CLIENTS} clients in {SECONDS:g} s while two workers train: {tally.statuses}"
    )
    print(f"  latency: median {latencies[0]:.1f} ms, longest {latencies[2]:.1f} ms; load {os.getloadavg()[0]:.1f}")
    for error in tally.errors[:10]:
        print(f"  {error}")
    figures.append(Figure("errors under load", float(len(tally.errors)), 0.0, ""))
    figures.append(Figure("p99 under load", float(latencies[1]), 1e3 * LATENCY_LIMIT))
    for figure in figures:
        print(figure)
    return 1 if options.check and not all(figure.holds for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
