"""How the service scales: tiles over two workers, the cost of the queue, and a thousand experiments on fifty workers.

    python benchmarks/scale.py            # figures beside their limits
    python benchmarks/scale.py --check    # the same, and exit status 1 where one misses its limit

Everything runs on a real Postgres. What is measured is the time between tiles, in which a worker has none, from the
start of the first to the start of the last; other tasks that workers do meanwhile are no waiting. Tiles of two seconds
sleep, so that the wall clock tells what the queue adds even where the processor is busy with something else. Tiles that
compute are normalised: a tile counts as its CPU seconds on one worker, which is what it would take on a core of its own
that shares no cache with others. The fifty workers are light: the real loop of a
worker, forked from one process, whose tasks sleep for ten seconds and return results that were computed before.
Submission to start is that of urgent experiments while a thousand others wait and all workers are busy.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import psutil

from tests.cluster.deployment import Deployment
from tests.cluster.postgres import Postgres
from tests.cluster.worker_fleet import fleet, middle_and_longest

SPEED_UP_LIMIT = 1.8
OVERHEAD_LIMIT = 5.0
START_LIMIT = 2.0
DATABASE_LIMIT = 30.0
TASK_SECONDS = 10.0
_NETWORK = "tests.cluster.plugins:unhurried"
_BATCHES = 15  # of 128 samples, in which the 1797 digits are evaluated at a point
_TILES: dict[str, Any] = {
    "minima": {"sgd": {}},
    "training": {"epochs": 1, "batch_size": 1437},
    "planes": {"around": {"around": "sgd", "resolution": 5}},
    "points": 3,
}
SLEEPING = _TILES | {"name": "sleeping", "model": {"name": _NETWORK, "seconds": 2.0 / _BATCHES}}
COMPUTING = _TILES | {"name": "computing", "planes": {"around": {"around": "sgd", "resolution": 41}}}


@dataclass(frozen=True)
class Figure:
    what: str
    value: float
    limit: float
    unit: str
    at_least: bool = False

    @property
    def kept(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        bound = "at least" if self.at_least else "at most"
        return f"{self.what:62} {self.value:8.2f} {self.unit:3} {bound} {self.limit:g}{'' if self.kept else '  MISSED'}"


@dataclass(frozen=True)
class Stage:
    """The tiles of one run: how many, on how many workers, the time until all are done, and what one of them took.

    `overhead` are the seconds between two tasks of a worker, `processor` the CPU seconds of a tile.
    """

    workers: int
    tiles: int
    span: float
    seconds: float
    overhead: float
    processor: float

    def rate(self, seconds: float) -> float:
        """Tiles a second, if each takes so long."""
        return self.workers / (seconds + self.overhead)


def run_tiles(deployment: Deployment, spec: dict[str, Any], key: str) -> Stage:
    id = deployment.submit(spec, key)
    deployment.until(lambda: any(task.startswith("surface:") for _, task in deployment.tasks(id)), 300, "no tiles")
    before = _computed(deployment)
    deployment.until(lambda: deployment.experiment(id)["state"] in ("done", "failed"), 600, "it does not end")
    processor = _computed(deployment) - before
    assert deployment.experiment(id)["error"] is None
    everything = [row for row in deployment.tasks(id).values() if row.seconds is not None]
    rows = [row for row in everything if row.task.startswith("surface:")]
    first, last = min(row.started for row in rows), max(row.started for row in rows)
    busy = sum(max(0.0, min(row.started + (row.seconds or 0.0), last) - max(row.started, first)) for row in everything)
    workers = len(deployment.workers)
    return Stage(
        workers=workers,
        tiles=len(rows),
        span=max(row.started + (row.seconds or 0.0) for row in rows) - first,
        seconds=sum(row.seconds or 0.0 for row in rows) / len(rows),
        overhead=(workers * (last - first) - busy) / (len(rows) - 1),
        processor=processor / len(rows),
    )


def tiles() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="valley-scale-") as folder:
        postgres = Postgres()
        deployment = Deployment(postgres, Path(folder) / "home", "scale", {"VALLEY_ALLOWED_MODELS": _NETWORK})
        try:
            deployment.start(workers=1)
            runs: dict[tuple[str, int], Stage] = {}
            for workers in (1, 2):
                if workers == 2:
                    deployment.start_worker()
                run_tiles(deployment, COMPUTING, f"warm-{workers}")  # libraries are loaded from here on
                for spec in (SLEEPING, COMPUTING):
                    runs[spec["name"], workers] = run_tiles(deployment, spec, f"{spec['name']}-{workers}")
        finally:
            deployment.close()
            postgres.close()
    for (name, workers), run in runs.items():
        print(
            f"{run.tiles} {name} tiles on {workers}: {run.span:.1f} s; a tile {run.seconds:.2f} s, "
            f"{run.processor:.2f} CPU s; {1000 * run.overhead:.0f} ms between tiles",
            flush=True,
        )
    sleeping, computing = ([runs[name, workers] for workers in (1, 2)] for name in ("sleeping", "computing"))
    wall = computing[0].span / computing[1].span
    print(f"computing tiles, wall clock of this machine as busy as it is now: {wall:.2f} times sooner on two")
    alone = computing[0].processor
    overhead = max(100 * run.overhead / run.seconds for run in sleeping)
    return [
        Figure(
            "sleeping tiles, two workers for one",
            sleeping[1].rate(sleeping[1].seconds) / sleeping[0].rate(sleeping[0].seconds),
            SPEED_UP_LIMIT,
            "x",
            True,
        ),
        Figure(
            "computing tiles, two workers for one, CPU-normalised",
            computing[1].rate(alone) / computing[0].rate(alone),
            SPEED_UP_LIMIT,
            "x",
            True,
        ),
        Figure("queue overhead at tiles of 2 s", overhead, OVERHEAD_LIMIT, "%"),
    ]


def crowd(workers: int, queued: int, probes: int) -> list[Figure]:
    with fleet(TASK_SECONDS) as found:
        print(f"{workers} workers on the roster after {found.hire(workers):.1f} s", flush=True)
        time.sleep(10)
        with found.burden() as idle:
            time.sleep(20)
        print(
            f"idle: {100 * idle[0].core:.1f} % of a core, {idle[0].transactions:.0f} transactions a second", flush=True
        )
        began = time.monotonic()
        found.submit(queued)
        print(f"{queued} experiments submitted in {time.monotonic() - began:.1f} s", flush=True)
        with found.burden() as busy:
            starts = found.probe(probes, pause=1.0)
        burden = busy[0]
        print(
            f"busy: {100 * burden.core:.1f} % of a core, {burden.transactions:.0f} transactions and {burden.tasks:.1f} "
            f"tasks a second over {burden.seconds:.0f} s, {found.connections()} connections; "
            f"API with its helpers {100 * burden.api:.1f} % of a core, all workers {100 * burden.workers:.1f} %",
            flush=True,
        )
    middle, longest = middle_and_longest(starts)
    crowd = f"{queued} queued, {workers} workers"
    return [
        Figure(f"{crowd}: submission to start, median", middle, START_LIMIT, "s"),
        Figure(f"{crowd}: submission to start, longest of {probes}", longest, START_LIMIT, "s"),
        Figure(f"{crowd}: Postgres, of one core", 100 * burden.core, DATABASE_LIMIT, "%"),
    ]


def _computed(deployment: Deployment) -> float:
    """CPU seconds of the processes that compute."""
    found = [psutil.Process(pid) for worker in deployment.workers for pid in worker.children()]
    return float(sum(sum(process.cpu_times()[:2]) for process in found))


def main() -> int:
    parser = argparse.ArgumentParser(description="how the service scales")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a figure misses its limit")
    parser.add_argument("--workers", type=int, default=50, help="light workers (default 50)")
    parser.add_argument("--queued", type=int, default=1000, help="experiments that wait (default 1000)")
    parser.add_argument("--probes", type=int, default=20, help="urgent experiments (default 20)")
    parser.add_argument("--part", choices=["tiles", "crowd"], help="only this part")
    options = parser.parse_args()
    figures: list[Figure] = []
    if options.part != "crowd":
        figures += tiles()
    if options.part != "tiles":
        figures += crowd(options.workers, options.queued, options.probes)
    for figure in figures:
        print(figure)
    return 1 if options.check and not all(figure.kept for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
