"""Where one Postgres saturates: a model of any number of workers, checked against measurements of a few.

    python benchmarks/saturation.py            # costs, prediction beside measurement, and the table up to 2,000 workers
    python benchmarks/saturation.py --check    # the same, and exit status 1 where the model misses a measurement

Each thing that a process asks of Postgres is done some hundred times, through the code that does it in use, and the
CPU time of all Postgres processes is divided by their number (`benchmarks/costs.py`). What the processes of a service
ask in a second follows from its intervals. The sum of rate times cost is the share of one core; it is compared with
that of real deployments of light workers. Besides the processor, two things end: connections, and the lock that makes
events visible in their order, which is held from an event's insertion to its commit, flush to the disk included.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import time
from dataclasses import dataclass

from benchmarks.costs import Bench, Costs
from tests.cluster.worker_fleet import Burden, Fleet, fleet
from valleyscope.app.jobs import queue as jobs_module
from valleyscope.app.jobs.orchestrator import refresh_seconds
from valleyscope.app.worker.cancel_watch import ASK_SECONDS

TASK_SECONDS = 10.0
TASKS_AN_EXPERIMENT = 2  # of light ones; larger experiments cost less for each task
MISS_LIMIT = 1.6
CONNECTIONS_A_WORKER = 3
_GREETINGS = 0.1  # a second, of every process: `_HEARTBEAT_SECONDS`
_SEARCHES = 1 / 15  # for strays: `_STRAY_SECONDS`
_BEATS = 0.4  # of every lease: `LEASE_SECONDS`
_EVENT_READS = 10.0  # by the event_feed


@dataclass(frozen=True)
class Load:
    """What a service of so many workers asks of Postgres in a second."""

    workers: int
    busy: bool
    task_seconds: float = TASK_SECONDS

    @property
    def polls(self) -> float:
        """Looks into an empty queue; a worker that has a task looks when that ends, which is part of a task's life."""
        return 0.0 if self.busy else self.workers / jobs_module.poll_seconds(busy=False, workers=self.workers)

    @property
    def tasks(self) -> float:
        return self.workers / self.task_seconds if self.busy else 0.0

    @property
    def experiments(self) -> float:
        return self.tasks / TASKS_AN_EXPERIMENT

    @property
    def looks(self) -> float:
        """Of orchestrators whose task runs: when it ends, or when it is time; half of all orchestrators have one."""
        pause = min(refresh_seconds(jobs_module.conducted_at_once(self.workers)), self.task_seconds)
        return self.workers / pause if self.busy else 0.0

    @property
    def reports(self) -> float:
        return self.workers / refresh_seconds(jobs_module.conducted_at_once(self.workers)) if self.busy else 0.0

    @property
    def waiting_looks(self) -> float:
        """Of orchestrators whose task waits for a worker."""
        conducted = jobs_module.conducted_at_once(self.workers)
        return (conducted - self.workers) / max(5.0, refresh_seconds(conducted)) if self.busy else 0.0

    def core(self, costs: Costs) -> float:
        """The share of one core."""
        running = self.workers if self.busy else 0
        milliseconds = (
            (1 + self.workers) * (_BEATS * costs.heartbeat + _GREETINGS * costs.greeting + _SEARCHES * costs.search)
            + costs.round
            + _EVENT_READS * costs.read
            + self.polls * costs.poll
            + running * costs.wanted / ASK_SECONDS
            + self.tasks * costs.task
            + self.experiments * costs.experiment
            + (self.looks + self.waiting_looks) * costs.look
            + self.reports * costs.report
        )
        return milliseconds / 1000

    def locked(self, costs: Costs) -> float:
        """The share of time in which the lock of the events is held: ends of tasks, reports, states of experiments."""
        return (self.tasks + self.reports + 3 * self.experiments) * costs.lock / 1000

    @property
    def connections(self) -> int:
        return CONNECTIONS_A_WORKER * self.workers + 25


def measure(sizes: list[int], seconds: float) -> tuple[Costs, list[tuple[Load, Burden]]]:
    found: list[tuple[Load, Burden]] = []
    with fleet(TASK_SECONDS) as ships:
        for size in sizes:
            ships.hire(size - ships.workers)
            time.sleep(8)  # the pace of so many is set
            found.append((Load(size, busy=False), _burden(ships, seconds)))
            ships.submit(4 * size)
            time.sleep(TASK_SECONDS)
            found.append((Load(size, busy=True), _burden(ships, seconds)))
            ships.calm()
        ships.dismiss()
        bench = Bench(ships)
        costs = bench.costs()
        bench.close()
    return costs, found


def _burden(ships: Fleet, seconds: float) -> Burden:
    with ships.burden() as found:
        time.sleep(seconds)
    return found[0]


def main() -> int:
    parser = argparse.ArgumentParser(description="where one Postgres saturates")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where the model misses a measurement")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 25, 50], help="workers that are measured")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement (default 15)")
    options = parser.parse_args()
    costs, measured = measure(options.sizes, options.seconds)
    print("CPU milliseconds of Postgres: " + ", ".join(f"{name} {value:.2f}" for name, value in vars(costs).items()))
    worst = 1.0
    for load, burden in measured:
        predicted = load.core(costs)
        ratio = predicted / burden.core
        worst = max(worst, ratio, 1 / ratio)
        state = "busy" if load.busy else "idle"
        print(
            f"{load.workers:5} workers, {state}: measured {100 * burden.core:5.1f} % of a core "
            f"({burden.transactions:.0f} transactions/s, {burden.tasks:.1f} tasks/s), model {100 * predicted:5.1f} %",
        )
    print(f"tasks of {TASK_SECONDS:g} s; the model is off by a factor of {worst:.2f} at most")
    print(f"{'workers':>8} {'idle, core':>11} {'busy, core':>11} {'event lock':>11} {'connections':>12}")
    for workers in (10, 50, 100, 200, 500, 1000, 2000):
        busy, idle = Load(workers, busy=True), Load(workers, busy=False)
        print(
            f"{workers:8} {100 * idle.core(costs):9.0f} % {100 * busy.core(costs):9.0f} % "
            f"{100 * busy.locked(costs):9.0f} % {busy.connections:12}"
        )
    return 1 if options.check and worst > MISS_LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
