"""What one question costs Postgres: each is asked some hundred times, through the code that asks it in use.

It is asked on twenty connections in turn, with a pause after each time. On one connection alone, or without a pause,
it would cost less than in a service, where every session is asked seldom, and finds nothing of its own in the caches of
the processor.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import sqlalchemy as sa
from dbos._utils import generate_uuid

from tests.cluster.light_tasks import LIGHT
from tests.cluster.worker_fleet import Fleet, processor_seconds
from valleyscope.app.devices import Memory
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs import queue as jobs_module
from valleyscope.app.jobs.leases import free_leases
from valleyscope.app.jobs.process_registry import ProcessEntry, process_ids
from valleyscope.app.jobs.queue import CONTROL, GENERATION, GPU, JobQueue, experiment_job, task_job
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events, prune_progress, read_all_events
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.tables import tasks

_REPETITIONS = 300
_CONNECTIONS = 20
_PAUSE_SECONDS = 0.01
_WARMING = 6 * _CONNECTIONS  # psycopg prepares a statement when a connection has seen it five times


@dataclass(frozen=True)
class Costs:
    """CPU milliseconds of Postgres for each thing that is asked of it, and wall milliseconds of one event's lock."""

    heartbeat: float
    greeting: float
    search: float
    poll: float
    round: float
    wanted: float
    task: float
    experiment: float
    look: float
    report: float
    read: float
    lock: float


class Bench:
    """An experiment on the database of a fleet whose API is stopped, so that nothing else is measured."""

    def __init__(self, fleet: Fleet) -> None:
        self._pid = fleet.postgres.pid
        self._database = Database(fleet.postgres.url("fleet"), connections=_CONNECTIONS)
        self._member = ProcessEntry(self._database, "worker")
        self._jobs = JobQueue(self._database, self._member.id, GPU, lambda *_: None)
        self._jobs.connect()
        self._task_table = TaskTable(self._database)
        self._experiment_table = ExperimentTable(self._database)
        self._spec = Spec.model_validate(LIGHT)
        with self._database.write() as connection:
            self._experiment = self._experiment_table.add(connection, self._spec, key=None, priority=100).id
        self._numbers = count()
        self._system = self._jobs.client._sys_db
        self._version = jobs_module._format(GENERATION)
        url = fleet.postgres.url("fleet")
        self._sessions = sa.create_engine(url, isolation_level="AUTOCOMMIT", pool_size=_CONNECTIONS)
        for engine in (self._database.engine, self._sessions):
            for connection in [engine.connect() for _ in range(_CONNECTIONS)]:
                connection.close()  # into the pool, which gives out what has been in it for longest

    def costs(self) -> Costs:
        return Costs(
            heartbeat=self._cost(self.heartbeat),
            greeting=self._cost(lambda: self._member.heartbeat(Memory(1, 2))),
            search=self._cost(lambda: self._jobs.begun_by(self._member.id)),
            poll=self._cost(lambda: self.take(GPU)),
            round=self._cost(self.round),
            wanted=self._cost(lambda: self._task_table.is_wanted(self._experiment, "train:sgd", "bench")),
            task=self._cost(self.task),
            experiment=self._cost(self.experiment),
            look=self._cost(lambda: self.look(self._experiment)),
            report=self._cost(self.report),
            read=self._cost(self.read),
            lock=1000 * statistics.median(self.lock() for _ in range(_REPETITIONS)),
        )

    def close(self) -> None:
        self._sessions.dispose()
        self._member.lease.release()
        self._jobs.client.destroy()
        self._database.close()

    def heartbeat(self) -> None:
        with self._sessions.connect() as connection:
            connection.execute(sa.text("SELECT 1"))

    def take(self, name: str) -> list[str]:
        """What a process asks of its queue, and of a job that is in it."""
        queue = self._system.get_queue(name)
        assert queue is not None
        token = generate_uuid()
        running = max(0, (queue._worker_concurrency or 1) - 1)
        chosen, _ = self._system.start_queued_workflows(queue, "bench", self._version, None, running, owner_xid=token)
        if chosen:
            self._system.get_workflow_statuses(chosen)
        return chosen

    def round(self) -> None:
        """What the API process does once a second: the rounds of DBOS, and the search for the dead."""
        self._system.list_queues(application_name=self._system.app_name)
        self._system.transition_delayed_workflows()
        self._system.cancel_timed_out_workflows(100)
        self.take(CONTROL)
        with self._database.read() as connection:
            everyone = process_ids(connection)
        free_leases(self._database, everyone)

    def task(self) -> None:
        """All of a task's life: issued, taken, begun, advanced, completed, over, kept, and forgotten."""
        task = Task(Kind.SURFACE, "valley", next(self._numbers))
        self._task_table.issue(self._jobs, self._experiment, [task], priority=100, number=1)
        job = task_job(self._experiment, task.id, 1)
        assert self.take(GPU) == [job]
        self._task_table.begin(self._experiment, task.id, 1, "bench")
        self._task_table.advance(self._experiment, task.id, "bench", 0.5)
        told = [("tile", {"task": task.id, "values": [0.5] * 50})]
        self._task_table.complete(self._experiment, task.id, "bench", b"0" * 2000, 1.0, told)
        self._system.update_workflow_outcome(job, "SUCCESS")
        self._task_table.keep(self._experiment, [task.id])
        self._jobs.forget([job])
        with self._database.write() as connection:
            connection.execute(tasks.delete().where(tasks.c.experiment == self._experiment))

    def experiment(self) -> None:
        """All of an experiment's life but its tasks: submitted, taken, claimed, looked at when it runs, and ended."""
        with self._database.write(durable=True) as connection:
            row = self._experiment_table.add(connection, self._spec, key=None, priority=100)
            self._jobs.enqueue_experiment(connection, row.id, 1, 100)
        assert self.take(CONTROL) == [experiment_job(row.id, 1)]
        self._experiment_table.claim(row.id, 1, "bench")
        self.look(row.id)
        with self._database.write() as connection:
            append_events(connection, row.id, [("state", {"state": "running", "run": 1})])
        self.look(row.id)
        with self._database.write(durable=True) as connection:
            prune_progress(connection, row.id)
            self._experiment_table.end(connection, row.id, "done")
        self._system.update_workflow_outcome(experiment_job(row.id, 1), "SUCCESS")

    def look(self, experiment: str) -> None:
        """What a orchestrator asks when it looks around."""
        self._experiment_table.is_orchestrated_by(experiment, 1, "bench")
        self._task_table.under_way(experiment)
        self._task_table.ended(experiment)
        with self._database.read() as connection:
            process_ids(connection, "worker")

    def report(self) -> None:
        self._experiment_table.report(self._experiment, progress=0.5, stage="minima", seconds_left=1.0)

    def read(self) -> None:
        """What the event_feed asks for when nothing has happened."""
        with self._database.read() as connection:
            read_all_events(connection, 2**40, 1000)

    def lock(self) -> float:
        """Seconds for which one event keeps others waiting: from the lock to the end of the commit."""
        with self._database.write() as connection:
            append_events(
                connection, self._experiment, [("progress", {"task": "none"})]
            )  # the lock is this one's already
            began = time.monotonic()
            append_events(connection, self._experiment, [("progress", {"task": "none"})])
        return time.monotonic() - began

    def _cost(self, action: Callable[[], object]) -> float:
        """CPU milliseconds of Postgres for one of these."""
        for _ in range(_WARMING):
            action()
        before = processor_seconds(self._pid)
        for _ in range(_REPETITIONS):
            action()
            time.sleep(_PAUSE_SECONDS)
        return 1000 * (processor_seconds(self._pid) - before) / _REPETITIONS
