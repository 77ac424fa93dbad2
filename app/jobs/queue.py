"""Durable jobs by DBOS: experiments on the queue `control`, their tasks on the queue `gpu`.

Neither kind of job records steps. What is done is in the catalogue and in the experiment's directory, so a job that
begins again looks there and goes on; replaying thousands of recorded steps would cost more. From DBOS come the queues
with priorities, the guarantee that one process at a time runs a job, and that a job survives the process that runs it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, SetWorkflowID
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.jobs.taker import Taker
from valleyscope.app.shutdown import run_with_timeout
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message

log = logging.getLogger(__name__)

CONTROL = "control"
GPU = "gpu"
ORCHESTRATED_AT_ONCE = 8
"""Experiments that one API process conducts side by side, or two a worker where there are more; later ones wait."""
LARGEST_PRIORITY = 200

GENERATION = 1
"""Counts changes of what a job means. Processes of one generation share the queues, whatever the version of the
program; those of a newer one take over what an older one left in the queues, and never the other way round."""

_APPLICATION = "valleyscope"
_CONTROL_POLL_SECONDS = 1.0  # a submitted experiment is started at once where there is room
_IDLE_POLL_SECONDS = 0.35
_CALLED_POLL_SECONDS = 2.0
_BUSY_POLL_SECONDS = 0.08
_POLLS_A_SECOND = 50.0  # of all workers together, so that many of them ask Postgres no more than a few do
_LONGEST_POLL_SECONDS = 5.0
_STOP_PATIENCE = 5.0

Handler = Callable[..., None]
_duties: dict[str, Handler] = {}


class Requeue(BaseException):
    """A job stops because its process ends, and is to be run by another.

    Not an Exception: DBOS records those as the outcome of the job, and then it would never run again.
    """


@DBOS.workflow(name="experiment", max_recovery_attempts=None)
def _experiment(experiment: str, run: int) -> None:
    _duties[CONTROL](experiment, run)


@DBOS.workflow(name="task", max_recovery_attempts=None)
def _task(experiment: str, task: str, issue: int) -> None:
    _duties[GPU](experiment, task, issue)


def _log_as_we_do() -> None:
    """DBOS brings a handler of its own, whose lines are not those of our log."""
    logger = logging.getLogger("dbos")
    logger.handlers.clear()
    logger.propagate = True


def _format(generation: int) -> str:
    return f"jobs-{generation}"


def experiment_job(experiment: str, run: int) -> str:
    return f"{experiment}.{run}"


def task_job(experiment: str, task: str, issue: int) -> str:
    return f"{experiment}:{task}:{issue}"


def task_priority(experiment_priority: int, number: int, stage: int) -> int:
    """The place of a task in the queue, the lowest first: by wish, then earlier experiments, then earlier stages."""
    return 1 + (experiment_priority * 100_000 + number % 100_000) * 100 + min(stage, 99)


def orchestrated_at_once(workers: int) -> int:
    """How many experiments an API process conducts side by side: enough to keep all workers busy with small ones."""
    return max(ORCHESTRATED_AT_ONCE, 2 * workers)


def poll_seconds(*, busy: bool, workers: int, called: bool = False) -> float:
    """How long a worker waits between two looks into its queue; idle ones need not hurry where work calls them."""
    shared = min(workers / _POLLS_A_SECOND, _LONGEST_POLL_SECONDS)
    idle = _CALLED_POLL_SECONDS if called else _IDLE_POLL_SECONDS
    return max(shared, _BUSY_POLL_SECONDS if busy else idle)


class JobQueue:
    """DBOS in this process: it listens to one queue, and can put jobs into both."""

    def __init__(
        self, database: Database, process: str, listens_to: str, duty: Handler, most: Callable[[], int] = lambda: 1
    ) -> None:
        """`most` says how many jobs may be under way in this process, now."""
        self._database = database
        self._process = process
        self._listens_to = listens_to
        self._duty = duty
        self._taker = Taker(listens_to, process, _format(GENERATION), most, self._return)
        self._client: DBOSClient | None = None

    @property
    def client(self) -> DBOSClient:
        if self._client is None:
            raise RuntimeError("jobs are not started")
        return self._client

    def start(self) -> None:
        """Begin to take jobs, or raise and take none. Call it inside `database.alone`: DBOS migrates its tables."""
        _duties[self._listens_to] = self._perform
        try:
            self._launch()
            self.connect()
        except BaseException:
            DBOS.destroy()
            raise
        if self._listens_to == GPU:
            self._taker.quiet()
        self._taker.start()

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": _APPLICATION,
            "system_database_engine": self._database.engine,
            "application_version": _format(GENERATION),
            "executor_id": self._process,
            "log_level": "WARNING",
            "use_listen_notify": False,
            "scheduler_polling_interval_sec": 3600.0,
        }
        DBOS(config=config)
        _log_as_we_do()
        DBOS.listen_queues([] if self._taker.usable else [self._listens_to])
        DBOS.launch()
        # A worker that joins must not slow down the others, so what is registered already stays as it is.
        change: Literal["always_update", "never_update"] = (
            "always_update" if self._listens_to == CONTROL else "never_update"
        )
        DBOS.register_queue(
            CONTROL,
            worker_concurrency=ORCHESTRATED_AT_ONCE,
            polling_interval_sec=_CONTROL_POLL_SECONDS,
            on_conflict=change,
        )
        DBOS.register_queue(GPU, worker_concurrency=1, polling_interval_sec=_IDLE_POLL_SECONDS, on_conflict=change)

    def connect(self) -> None:
        """Be able to put jobs into queues, without taking any."""
        self._client = DBOSClient(
            system_database_engine=self._database.engine,
            application_name=_APPLICATION,
            retry_connection_errors=False,  # all our calls are repeated by whoever made them, unless the process ends
        )

    def stop(self) -> None:
        """Take no more jobs, and hand back those that were begun here."""
        self._taker.stop()
        run_with_timeout(DBOS.destroy, _STOP_PATIENCE)  # where the database is gone, its threads wait for it
        try:
            self.hand_back(self._process)
        except SQLAlchemyError as error:
            log.warning("jobs could not be handed back (%s); others take them over", short_message(error))
        self.client.destroy()
        self._client = None

    def pace(self, *, busy: bool, workers: int, called: bool) -> None:
        """Let workers look into their queue often while there is work, and the more seldom the more they are.

        Whoever ends a task looks at once, so this is about idle workers: of many, one looks soon.
        """
        interval = poll_seconds(busy=busy, workers=workers, called=called)
        for name, change in (
            (GPU, {"polling_interval_sec": interval}),
            (CONTROL, {"worker_concurrency": orchestrated_at_once(workers)}),
        ):
            queue = self.client.retrieve_queue(name)
            for field, wanted in change.items():
                if queue is not None and getattr(queue, field) != wanted:
                    getattr(queue, f"set_{field}")(wanted)

    def call(self) -> None:
        """There may be a job for this process, or room for one: look into the queue now."""
        self._taker.call()

    def _perform(self, *arguments: str | int) -> None:
        with self._taker.at_work(DBOS.workflow_id or ""):
            self._duty(*arguments)

    def _return(self, jobs: set[str]) -> None:
        self.hand_back(self._process, only=jobs)

    def enqueue_experiment(self, connection: sa.Connection, experiment: str, run: int, priority: int) -> None:
        self._enqueue(connection, "experiment", CONTROL, experiment_job(experiment, run), priority + 1, experiment, run)

    def start_experiment(self, experiment: str, run: int) -> None:
        """Run an experiment in this process without waiting for the queue to be looked into."""
        with SetWorkflowID(experiment_job(experiment, run)):
            DBOS.start_workflow(_experiment, experiment, run)

    def enqueue_task(self, connection: sa.Connection, experiment: str, task: str, issue: int, priority: int) -> None:
        self._enqueue(connection, "task", GPU, task_job(experiment, task, issue), priority, experiment, task, issue)

    def _enqueue(
        self, connection: sa.Connection, name: str, queue: str, job: str, priority: int, *arguments: str | int
    ) -> None:
        options: EnqueueOptions = {
            "workflow_name": name,
            "queue_name": queue,
            "workflow_id": job,
            "priority": priority,
            "app_version": _format(GENERATION),
        }
        self.client.enqueue_in_transaction(connection, options, *arguments)

    def lost(self, jobs: Sequence[str]) -> set[str]:
        """Those of the jobs that will not run: DBOS does not know them, or they ended."""
        if not jobs:
            return set()
        known = self.client.list_workflows(
            workflow_ids=list(jobs), status=["ENQUEUED", "PENDING"], load_input=False, load_output=False
        )
        return set(jobs) - {job.workflow_id for job in known}

    def begun_by(self, process: str) -> set[str]:
        """The jobs that a process has taken and not ended."""
        return {job for jobs in self._begun_by(process).values() for job in jobs}

    def hand_back(self, process: str, only: set[str] | None = None) -> int:
        """Put jobs that a process has taken back into their queues; returns how many. It must not be at them."""
        count = 0
        for queue, jobs in self._begun_by(process).items():
            chosen = [job for job in jobs if only is None or job in only]
            if chosen:
                self.client.resume_workflows(chosen, queue_name=queue)
                count += len(chosen)
        return count

    def drop_older(self) -> set[str]:
        """Drop the jobs that an older generation left in the queues; returns them.

        The catalogue knows what they were for: whoever conducts an experiment issues its tasks again, and the
        maintenance
        does so for experiments. What a worker of the older generation has begun it brings to its end.
        """
        older = [_format(generation) for generation in range(1, GENERATION)]
        if not older:
            return set()
        found = self.client.list_workflows(app_version=older, status="ENQUEUED", load_input=False, load_output=False)
        dropped = {job.workflow_id for job in found}
        self.forget(sorted(dropped))
        return dropped

    def forget(self, jobs: Sequence[str]) -> None:
        """Remove all traces of jobs that have ended, or whose experiment is gone."""
        for start in range(0, len(jobs), 500):
            self.client.delete_workflows(list(jobs[start : start + 500]))

    def forget_experiment(self, experiment: str) -> None:
        prefixes = [f"{experiment}.", f"{experiment}:"]
        found = self.client.list_workflows(workflow_id_prefix=prefixes, load_input=False, load_output=False)
        self.forget([job.workflow_id for job in found])

    def _begun_by(self, process: str) -> dict[str, list[str]]:
        begun = self.client.list_workflows(status="PENDING", executor_id=process, load_input=False, load_output=False)
        by_queue: dict[str, list[str]] = defaultdict(list)
        for job in begun:
            by_queue[GPU if job.name == "task" else CONTROL].append(job.workflow_id)
        return by_queue
