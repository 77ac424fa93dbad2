"""Durable jobs by DBOS: experiments on the queue `control`, their tasks on the queue `gpu`.

DBOS owns which jobs wait or run, in which process and with which priority. A job records no steps: what is done is in
our tables and in the experiment's directory, and a job that starts again continues from there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, WorkflowStatus
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.shutdown import run_with_timeout
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message

log = logging.getLogger(__name__)

CONTROL = "control"
GPU = "gpu"
ORCHESTRATED_AT_ONCE = 8
"""Experiments that one API process runs side by side, or two per worker if that is more; later ones wait."""
LARGEST_PRIORITY = 200

GENERATION = 2
"""Counts changes of what a job means. Processes of one generation share the queues, whatever the version of the
program; those of a newer one take over what an older one left in the queues, and never the other way round."""

_APPLICATION = "valleyscope"
_IDLE_POLL_SECONDS = 0.25  # each poll costs about 2 ms of CPU time, in every process
_BUSY_CONTROL_POLL_SECONDS = 0.1
_BUSY_POLL_SECONDS = 0.04
_POLLS_PER_SECOND = 50.0  # of all workers together: the load on Postgres stays the same for more of them
_STOP_SECONDS = 5.0
_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_BATCH = 500

Handler = Callable[..., None]
_handlers: dict[str, Handler] = {}


class Requeue(BaseException):
    """A handler raises it to put its job back into the queue.

    Not an Exception: DBOS records those as the outcome of the job, which then never runs again.
    """


@dataclass(frozen=True)
class Job:
    """A job as DBOS has it; that of an experiment has no task. `process` is set while it runs."""

    experiment: str
    run: int
    task: str | None
    state: Literal["queued", "running", "ended"]
    process: str | None
    priority: int
    since: datetime


@DBOS.workflow(name="experiment", max_recovery_attempts=None)
def _experiment(experiment: str, run: int) -> None:
    _handlers[CONTROL](experiment, run)


@DBOS.workflow(name="task", max_recovery_attempts=None)
def _task(experiment: str, run: int, task: str) -> None:
    _handlers[GPU](experiment, run, task)


def _version(generation: int) -> str:
    return f"jobs-{generation}"


def experiment_job(experiment: str, run: int) -> str:
    return f"{experiment}.{run}"


def task_job(experiment: str, run: int, task: str) -> str:
    return f"{experiment}.{run}:{task}"


def task_priority(experiment_priority: int, number: int, stage: int) -> int:
    """The position of a task in the queue, the lowest first: by priority, then earlier experiments and stages."""
    return 1 + (experiment_priority * 100_000 + number % 100_000) * 100 + min(stage, 99)


def orchestrated_at_once(workers: int) -> int:
    """How many experiments an API process runs side by side: enough to keep all workers busy with small ones."""
    return max(ORCHESTRATED_AT_ONCE, 2 * workers)


def poll_seconds(*, busy: bool, workers: int) -> float:
    """How long a worker waits between two polls of its queue."""
    return max(_BUSY_POLL_SECONDS if busy else _IDLE_POLL_SECONDS, workers / _POLLS_PER_SECOND)


class JobQueue:
    """DBOS in this process: runs the jobs of one queue by `handler`, and enqueues jobs of both."""

    def __init__(self, database: Database, process: str, queue: str, handler: Handler) -> None:
        self._database = database
        self._process = process
        self._queue = queue
        self._handler = handler
        self._client: DBOSClient | None = None
        self._lock = threading.Lock()
        self._active: set[str] = set()
        self._unstarted: set[str] = set()
        self.listening = False

    @property
    def client(self) -> DBOSClient:
        if self._client is None:
            raise RuntimeError("the job queue is not connected")
        return self._client

    @property
    def active(self) -> set[str]:
        """The jobs that run in this process."""
        with self._lock:
            return set(self._active)

    def start(self) -> None:
        """Take jobs, also again after `pause`. Call it inside `database.exclusive`: DBOS migrates its tables."""
        if self._client is None:
            self.connect()
        config: DBOSConfig = {
            "name": _APPLICATION,
            "system_database_engine": self._database.engine,
            "application_version": _version(GENERATION),
            "executor_id": self._process,
            "log_level": "ERROR",  # it warns at every poll while the database is away, and so do we
            "use_listen_notify": False,
            "scheduler_polling_interval_sec": 3600.0,
        }
        _handlers[self._queue] = self._run
        try:
            DBOS(config=config)
            _use_our_log_format()
            DBOS.listen_queues([self._queue])
            DBOS.launch()
            self._register_queues()
        except BaseException:
            DBOS.destroy()
            raise
        self.listening = True

    def connect(self) -> None:
        """Enqueue and read jobs without running any."""
        self._client = DBOSClient(
            system_database_engine=self._database.engine,
            application_name=_APPLICATION,
            lazy=True,
            retry_connection_errors=False,  # callers retry, unless the process shuts down
        )

    def pause(self) -> None:
        """Take no more jobs, and put those of this process back into the queue."""
        self.listening = False
        run_with_timeout(DBOS.destroy, _STOP_SECONDS)  # its threads wait for a database that does not answer
        try:
            self.requeue_jobs_of(self._process)
        except SQLAlchemyError as error:
            log.warning("jobs could not be requeued (%s); the reaper does it", short_message(error))

    def stop(self) -> None:
        if self.listening:
            self.pause()
        if self._client is not None:
            self._client.destroy()
            self._client = None

    def set_limits(self, *, busy: bool, workers: int, orchestrated: int) -> None:
        """How often processes poll, and how many experiments each API process runs at once."""
        control_seconds = _BUSY_CONTROL_POLL_SECONDS if busy else _IDLE_POLL_SECONDS
        for name, seconds in ((GPU, poll_seconds(busy=busy, workers=workers)), (CONTROL, control_seconds)):
            queue = self.client.retrieve_queue(name)
            if queue is None:
                continue
            if queue.polling_interval_sec != seconds:
                queue.set_polling_interval_sec(seconds)
            if name == CONTROL and queue.worker_concurrency != orchestrated:
                queue.set_worker_concurrency(orchestrated)

    def enqueue_experiment(self, connection: sa.Connection, experiment: str, run: int, priority: int) -> None:
        self._enqueue(connection, "experiment", CONTROL, experiment_job(experiment, run), priority + 1, experiment, run)

    def enqueue_task(self, connection: sa.Connection, experiment: str, run: int, task: str, priority: int) -> None:
        self._enqueue(connection, "task", GPU, task_job(experiment, run, task), priority, experiment, run, task)

    def find(self, jobs: Iterable[str]) -> dict[str, Job]:
        """Those of the jobs that DBOS has, by id."""
        wanted = list(jobs)
        found = self._list(workflow_ids=wanted) if wanted else []
        return {status.workflow_id: _job(status) for status in found}

    def running_tasks(self) -> list[Job]:
        return [_job(status) for status in self._list(queue_name=GPU, status="PENDING")]

    def queued_tasks(self) -> list[Job]:
        """Tasks that wait, in the order in which workers take them."""
        found = [_job(status) for status in self._list(queue_name=GPU, status="ENQUEUED")]
        return sorted(found, key=lambda job: (job.priority, job.since))

    def cancel_queued(self, jobs: Sequence[str]) -> set[str]:
        """Take jobs out of their queue that no process runs yet; returns them."""
        queued = [id for id, job in self.find(jobs).items() if job.state == "queued"]
        self.delete(queued)
        return set(queued)

    def jobs_of(self, process: str) -> dict[str, Job]:
        """The jobs that a process took and did not end, by id."""
        return {status.workflow_id: _job(status) for status in self._list(status="PENDING", executor_id=process)}

    def requeue_jobs_of(self, process: str, only: set[str] | None = None) -> int:
        """Put jobs that a process took back into their queues; returns how many. It must not run them any more."""
        found = self.jobs_of(process)
        count = 0
        for queue, is_task in ((CONTROL, False), (GPU, True)):
            chosen = [id for id, job in found.items() if (job.task is not None) is is_task]
            chosen = [id for id in chosen if only is None or id in only]
            if chosen:
                self.client.resume_workflows(chosen, queue_name=queue)
                count += len(chosen)
        return count

    def requeue_unstarted(self) -> None:
        """Put back jobs that this process took and never started, because the database failed at that moment.

        Call it every few seconds: a job counts as unstarted if two calls find it so.
        """
        idle = self.jobs_of(self._process).keys() - self.active
        lost = idle & self._unstarted
        if lost:
            self.requeue_jobs_of(self._process, only=lost)
            log.warning("%d jobs were taken and never started; they are back in their queues", len(lost))
        self._unstarted = idle - lost

    def drop_older(self) -> set[str]:
        """Delete the jobs that an older generation left in the queues; returns them.

        Maintenance enqueues their experiments again, and the orchestrators of those their tasks. A job that a process
        of the older generation runs goes on.
        """
        older = [_version(generation) for generation in range(1, GENERATION)]
        dropped = (
            {status.workflow_id for status in self._list(app_version=older, status="ENQUEUED")} if older else set()
        )
        self.delete(sorted(dropped))
        return dropped

    def delete_ended(self) -> None:
        """Delete the jobs that ended: their outcome is in our tables."""
        self.delete([status.workflow_id for status in self._list(status=_ENDED, limit=20_000)])

    def delete_experiment(self, experiment: str) -> None:
        self.delete([status.workflow_id for status in self._list(workflow_id_prefix=f"{experiment}.")])

    def delete(self, jobs: Sequence[str]) -> None:
        for start in range(0, len(jobs), _BATCH):
            self.client.delete_workflows(list(jobs[start : start + _BATCH]))

    def _register_queues(self) -> None:
        # What is registered already stays as it is when a worker joins: the API process sets the polling intervals.
        on_conflict: Literal["always_update", "never_update"]
        on_conflict = "always_update" if self._queue == CONTROL else "never_update"
        for name, concurrency in ((CONTROL, ORCHESTRATED_AT_ONCE), (GPU, 1)):
            DBOS.register_queue(
                name, worker_concurrency=concurrency, polling_interval_sec=_IDLE_POLL_SECONDS, on_conflict=on_conflict
            )

    def _run(self, *arguments: str | int) -> None:
        job = DBOS.workflow_id or ""
        with self._lock:
            self._active.add(job)
        try:
            self._handler(*arguments)
        except Requeue:
            with suppress(SQLAlchemyError):  # else `requeue_unstarted` does it
                self.requeue_jobs_of(self._process, only={job})
            raise
        finally:
            with self._lock:
                self._active.discard(job)

    def _enqueue(
        self, connection: sa.Connection, name: str, queue: str, job: str, priority: int, *arguments: str | int
    ) -> None:
        options: EnqueueOptions = {
            "workflow_name": name,
            "queue_name": queue,
            "workflow_id": job,
            "priority": priority,
            "app_version": _version(GENERATION),
        }
        self.client.enqueue_in_transaction(connection, options, *arguments)

    def _list(
        self,
        *,
        workflow_ids: list[str] | None = None,
        workflow_id_prefix: str | None = None,
        status: str | list[str] | None = None,
        queue_name: str | None = None,
        executor_id: str | None = None,
        app_version: list[str] | None = None,
        limit: int | None = None,
    ) -> list[WorkflowStatus]:
        return self.client.list_workflows(
            workflow_ids=workflow_ids,
            workflow_id_prefix=workflow_id_prefix,
            status=status,
            queue_name=queue_name,
            executor_id=executor_id,
            app_version=app_version,
            limit=limit,
            load_input=False,
            load_output=False,
        )


def _job(status: WorkflowStatus) -> Job:
    run, _, task = status.workflow_id.partition(":")
    experiment, _, number = run.rpartition(".")
    running = status.status == "PENDING"
    since = status.dequeued_at if running and status.dequeued_at is not None else status.created_at
    return Job(
        experiment=experiment,
        run=int(number) if number.isdecimal() else 0,
        task=task or None,
        state="running" if running else "queued" if status.status == "ENQUEUED" else "ended",
        process=status.executor_id if running else None,
        priority=status.priority or 0,
        since=datetime.fromtimestamp((since or 0) / 1000, UTC),
    )


def _use_our_log_format() -> None:
    """DBOS adds a log handler with its own format."""
    logger = logging.getLogger("dbos")
    logger.handlers.clear()
    logger.propagate = True
