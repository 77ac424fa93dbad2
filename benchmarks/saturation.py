"""Where one Postgres saturates: a model of any number of workers, checked against measurements of a few.

    python benchmarks/saturation.py            # costs, prediction beside measurement, and the table up to 2,000 workers
    python benchmarks/saturation.py --check    # the same, and exit status 1 where the model misses a measurement

Each thing that a process asks of Postgres is done some hundred times on one connection, through the code that does it
in use, and the CPU time of all Postgres processes is divided by their number. What the processes of a service ask in a
second follows from its intervals. The sum of rate times cost is the share of one core; it is compared with that of
real deployments of light workers. Besides the processor, two things end: connections, and the lock that makes events
visible in their order, which is held from an event's insertion to its commit, flush to the disk included.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import sqlalchemy as sa
from dbos._utils import generate_uuid

from app.experiments.plan import Kind, Task
from app.experiments.spec import Spec
from app.runners import jobs as jobs_module
from app.runners.conductor import look_seconds
from app.runners.jobs import GENERATION, GPU, Jobs, task_job
from app.runners.roster import process_ids
from app.storage.catalogue import Catalogue
from app.storage.database import Database
from app.storage.events import record
from app.storage.ledger import Ledger
from tests.cluster.fleet import Burden, Fleet, fleet, processor_seconds
from tests.cluster.light import LIGHT

TASK_SECONDS = 10.0
MISS_LIMIT = 1.6
CONNECTIONS_A_WORKER = 3
_REPETITIONS = 300


@dataclass(frozen=True)
class Costs:
    """CPU milliseconds of Postgres for each thing that is asked of it, and wall milliseconds of one event's lock."""

    heartbeat: float
    poll: float
    busy_poll: float
    round: float
    wanted: float
    task: float
    look: float
    report: float
    lock: float


@dataclass(frozen=True)
class Load:
    """What a service of so many workers asks of Postgres in a second."""

    workers: int
    busy: bool
    task_seconds: float = TASK_SECONDS

    @property
    def polls(self) -> float:
        pace = jobs_module.poll_seconds(busy=self.busy, workers=self.workers)
        return self.workers / pace

    @property
    def tasks(self) -> float:
        return self.workers / self.task_seconds if self.busy else 0.0

    @property
    def looks(self) -> float:
        """Of conductors whose task runs, which report as well; half of those that are conducted have one."""
        conducted = jobs_module.conducted_at_once(self.workers)
        return self.workers / look_seconds(conducted) if self.busy else 0.0

    @property
    def waiting_looks(self) -> float:
        """Of conductors whose task waits for a worker."""
        conducted = jobs_module.conducted_at_once(self.workers)
        return (conducted - self.workers) / max(5.0, look_seconds(conducted)) if self.busy else 0.0

    def core(self, costs: Costs) -> float:
        """The share of one core."""
        running = self.workers if self.busy else 0
        milliseconds = (
            self.workers * (0.4 * costs.heartbeat + 1.0 * costs.round)
            + self.polls * (costs.busy_poll if self.busy else costs.poll)
            + running * (2.5 * costs.wanted)
            + self.tasks * costs.task
            + self.looks * (costs.look + costs.report)
            + self.waiting_looks * costs.look
        )
        return milliseconds / 1000

    def locked(self, costs: Costs) -> float:
        """The share of time in which the lock of the events is held: ends of tasks, and reports."""
        return (2 * self.tasks + self.looks) * costs.lock / 1000

    @property
    def connections(self) -> int:
        return CONNECTIONS_A_WORKER * self.workers + 25


class Bench:
    """An experiment on the database of a fleet whose API is stopped, so that nothing else is measured."""

    def __init__(self, fleet: Fleet) -> None:
        self._pid = fleet.postgres.pid
        self._database = Database(fleet.postgres.url("fleet"), connections=1)
        self._jobs = Jobs(self._database, "bench", GPU, lambda *_: None)
        self._jobs.connect()
        self._ledger = Ledger(self._database)
        self._catalogue = Catalogue(self._database)
        with self._database.write() as connection:
            spec = Spec.model_validate(LIGHT)
            self._experiment = self._catalogue.add(connection, spec, key=None, priority=100).id
        self._numbers = count()
        self._system = self._jobs.client._sys_db
        self._version = jobs_module._format(GENERATION)
        self._lone = sa.create_engine(fleet.postgres.url("fleet"), isolation_level="AUTOCOMMIT").connect()

    def costs(self) -> Costs:
        return Costs(
            heartbeat=self._cost(lambda: self._lone.execute(sa.text("SELECT 1"))),
            poll=self._cost(self.poll),
            busy_poll=self._cost(lambda: self._system.get_queue(GPU)),
            round=self._cost(self.round),
            wanted=self._cost(lambda: self._ledger.is_wanted(self._experiment, "train:sgd", "bench")),
            task=self._cost(self.task),
            look=self._cost(self.look),
            report=self._cost(self.report),
            lock=1000 * statistics.median(self.lock() for _ in range(_REPETITIONS)),
        )

    def close(self) -> None:
        self._lone.close()
        self._jobs.client.destroy()
        self._database.close()

    def poll(self) -> list[str]:
        """What an idle worker asks of its queue."""
        queue = self._system.get_queue(GPU)
        assert queue is not None
        token = generate_uuid()
        chosen, _ = self._system.start_queued_workflows(queue, "bench", self._version, None, owner_xid=token)
        return chosen

    def round(self) -> None:
        """What DBOS does once a second in every process: its list of queues, delayed jobs, its internal queue."""
        self._system.list_queues(application_name=self._system.app_name)
        self._system.transition_delayed_workflows()
        self._system.get_queue("none")

    def task(self) -> None:
        """All of a task's life: issued, taken, begun, advanced, completed, over, and kept."""
        task = Task(Kind.SURFACE, "valley", next(self._numbers))
        self._ledger.issue(self._jobs, self._experiment, [task], priority=100, number=1)
        chosen = self.poll()
        assert chosen == [task_job(self._experiment, task.id, 1)]
        self._system.get_workflow_statuses(chosen)
        self._ledger.begin(self._experiment, task.id, 1, "bench")
        self._ledger.advance(self._experiment, task.id, "bench", 0.5)
        told = [("tile", {"task": task.id, "values": [0.5] * 50})]
        self._ledger.complete(self._experiment, task.id, "bench", b"0" * 2000, 1.0, told)
        self._system.update_workflow_outcome(chosen[0], "SUCCESS")
        self._ledger.keep(self._experiment, [task.id])

    def look(self) -> None:
        """What a conductor asks when it looks around."""
        self._catalogue.is_conducted_by(self._experiment, 1, "bench")
        self._ledger.under_way(self._experiment)
        self._ledger.ended(self._experiment)
        with self._database.read() as connection:
            process_ids(connection, "worker")

    def report(self) -> None:
        self._catalogue.report(self._experiment, progress=0.5, stage="minima", seconds_left=1.0)

    def lock(self) -> float:
        """Seconds for which one event keeps others waiting: from the lock to the end of the commit."""
        with self._database.write() as connection:
            record(connection, self._experiment, [("progress", {"task": "none"})])  # the lock is this one's already
            began = time.monotonic()
            record(connection, self._experiment, [("progress", {"task": "none"})])
        return time.monotonic() - began

    def _cost(self, action: Callable[[], object]) -> float:
        """CPU milliseconds of Postgres for one of these."""
        for _ in range(20):
            action()
        before = processor_seconds(self._pid)
        for _ in range(_REPETITIONS):
            action()
        time.sleep(0.3)
        return 1000 * (processor_seconds(self._pid) - before) / _REPETITIONS


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
            f"({burden.transactions:.0f} transactions/s), model {100 * predicted:5.1f} %",
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
