"""Runs the plan of an experiment: enqueues tasks that are ready, and writes their results into landscape.h5.

An orchestrator may die at any moment: another one reads the tables and the experiment's directory, and continues. It is
the only writer of landscape.h5.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from valleyscope.app.experiments.experiment_writer import LANDSCAPE, DirectoryLocked, ExperimentWriter
from valleyscope.app.experiments.judged_figures import judged_figures
from valleyscope.app.experiments.plan import PlanState, Task
from valleyscope.app.experiments.progress import ProgressEstimator
from valleyscope.app.experiments.report_renderer import ReportRenderer
from valleyscope.app.experiments.result_codec import decode
from valleyscope.app.experiments.spec import Spec, parse_spec
from valleyscope.app.jobs.file_sync import SnapshotSync, missing_weights, retry_store
from valleyscope.app.jobs.process_registry import ProcessEntry, process_ids
from valleyscope.app.jobs.queue import Job, JobQueue, Requeue, task_job
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.event_table import EventRow, append_events, prune_progress
from valleyscope.app.storage.experiment_table import ExperimentRow, ExperimentState, ExperimentTable
from valleyscope.app.storage.file_store import FileStore
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, NotALandscape

log = logging.getLogger(__name__)

T = TypeVar("T")

_REFRESH_SECONDS = 1.0
_WAITING_REFRESH_SECONDS = 5.0
_REFRESHES_PER_SECOND = 10.0  # of all orchestrators of a process: each costs Postgres, and this process, milliseconds
_LOCKED_SECONDS = 10.0
_CANCEL_SECONDS = 10.0
_QUEUED_AT_LEAST = 16


class Cancelled(Exception):
    """The run was cancelled."""


class RunOver(Exception):
    """The run ended, or another process orchestrates it."""


@dataclass(frozen=True)
class OrchestratorContext:
    """What all orchestrators of a process share."""

    database: Database
    experiment_table: ExperimentTable
    task_table: TaskTable
    jobs: JobQueue
    event_feed: EventFeed
    process: ProcessEntry
    orchestrated: Callable[[], int]
    directory: Callable[[str], Path]
    store: FileStore
    stopping: threading.Event
    report_renderer: ReportRenderer
    on_end: Callable[[str], None]


def refresh_seconds(orchestrated: int) -> float:
    """How long an orchestrator waits for an event before it looks for changes and reports progress."""
    return max(_REFRESH_SECONDS, orchestrated / _REFRESHES_PER_SECOND)


def orchestrate(context: OrchestratorContext, experiment: str, run: int) -> None:
    """Run an experiment to its end. Raises Requeue if the process shuts down first."""
    try:
        if context.stopping.is_set():
            raise Requeue("the service stops")
        row = context.database.with_retry(lambda: context.experiment_table.find_run(experiment, run), context.stopping)
        if row is not None:
            Orchestrator(context, row).run()
    except Stopped as error:
        raise Requeue(str(error)) from error
    except RunOver:
        log.info("the run is over, or another process orchestrates it", extra={"experiment": experiment})
        raise Requeue("the run is over") from None  # if the job is another process's by now, nothing is requeued


class Orchestrator:
    """One run of one experiment."""

    def __init__(self, context: OrchestratorContext, row: ExperimentRow) -> None:
        self._context = context
        self._row = row
        self._directory = context.directory(row.id)
        self._evictions = context.process.times_evicted
        self._seen = context.event_feed.latest
        self._plan = PlanState(())
        self._enqueued: set[str] = set()
        self._unsaved: set[str] = set()
        self._reported = 0.0
        self._sync = SnapshotSync(context.store, row.id)

    def run(self) -> None:
        extra = {"experiment": self._row.id}
        try:
            spec = parse_spec(self._row.spec, source="spec")
            writer = self._open(spec)
            try:
                self._run_tasks(writer)
                writer.finish(self._context.report_renderer.render)
                retry_store(self._sync.upload, self._check)
                if not self._plan.failed:
                    store, tasks = self._context.store, writer.tasks
                    self._plan.failed |= missing_weights(store, self._row.id, self._directory, tasks, self._check)
                self._end("failed" if self._plan.failed else "done", error=self._failures(), writer=writer)
            except Requeue:
                _save(writer)
                self._sync.upload_before_exit()
                raise
            except Cancelled:
                self._stop_tasks()
                _save(writer)
                self._sync.try_upload()
                self._end("cancelled", writer=writer)
            finally:
                writer.close()
        except (Stopped, RunOver):
            raise
        except Cancelled:
            self._stop_tasks()
            self._end("cancelled")
        except (OSError, ValueError, DirectoryLocked) as error:
            log.warning("the experiment failed: %s", error, extra=extra)
            self._fail(_explained(error))
        except Exception as error:
            log.exception("the experiment failed unexpectedly", extra=extra)
            self._fail(f"unexpectedly: {type(error).__name__}: {error}")

    def _open(self, spec: Spec) -> ExperimentWriter:
        elsewhere = retry_store(self._sync.download, self._check)
        deadline = time.monotonic() + _LOCKED_SECONDS
        while True:
            try:
                return ExperimentWriter(spec, self._directory, elsewhere=elsewhere)
            except DirectoryLocked:
                if time.monotonic() > deadline:
                    raise
                self._check()
                time.sleep(0.1)
            except (DamagedLandscape, NotALandscape) as error:
                kept = _quarantine(self._directory / LANDSCAPE)
                self._warn(f"{error}; it was set aside as {kept.name} and is computed again")

    def _run_tasks(self, writer: ExperimentWriter) -> None:
        estimator = ProgressEstimator(writer.spec, writer.tasks)
        self._plan = PlanState(writer.tasks, (task.id for task in writer.tasks if writer.is_done(task)))
        self._enqueued = set(self._plan.open)
        while True:
            self._check()
            # First the jobs, then the results: a job that ended has its result, so no task is enqueued twice.
            jobs = self._jobs()
            waiting = self._collect(writer)
            open_tasks = set(self._plan.open) - waiting
            active = {task: job for task, job in jobs.items() if job.state != "ended" and task in open_tasks}
            queued = sum(job.state == "queued" for job in active.values())
            room = max(_QUEUED_AT_LEAST, 2 * len(self._workers())) - queued
            chosen = self._plan.ready(active.keys() | waiting)[: max(0, room)]
            if chosen:
                self._enqueue(chosen, jobs)
            elif not active:
                return
            self._enqueued = active.keys() | {task.id for task in chosen}
            self._report(estimator)
            writer.snapshot(force=False)
            if writer.saved:
                self._sync.upload_when_due()
            self._drop_saved(writer)
            self._wait(waiting_for_worker=queued == len(active))

    def _jobs(self) -> dict[str, Job]:
        """The jobs of the tasks that were enqueued, by task."""
        row, tasks = self._row, sorted(self._enqueued)
        found = self._with_retry(lambda: self._context.jobs.find(task_job(row.id, row.run, task) for task in tasks))
        return {job.task: job for job in found.values() if job.task is not None}

    def _enqueue(self, tasks: list[Task], jobs: dict[str, Job]) -> None:
        """Put tasks into the queue. DBOS may still have jobs of theirs that ended without a result."""
        row, context = self._row, self._context
        ended = [task_job(row.id, row.run, task.id) for task in tasks if task.id in jobs]
        self._with_retry(lambda: context.jobs.delete(ended))
        self._with_retry(
            lambda: context.task_table.enqueue(
                context.jobs, row.id, row.run, tasks, priority=row.priority, number=row.number
            )
        )

    def _collect(self, writer: ExperimentWriter) -> set[str]:
        """Write results whose needs are done; returns the tasks whose results have to wait for theirs."""
        row, plan = self._row, self._plan
        found = self._with_retry(lambda: self._context.task_table.results(row.id, row.run))
        results = {result.task: result for result in found}
        waiting: set[str] = set()
        for task in plan.tasks.values():
            result = results.get(task.id)
            if result is None or task.id in self._unsaved or task.id in plan.failed:
                continue
            if result.payload is None:
                plan.failed[task.id] = result.error or "failed"
            elif not plan.has_needs_of(task):
                waiting.add(task.id)
            else:
                if task.id not in plan.done:  # a plane that is added twice would lose its surface
                    writer.add_result(task, decode(result.payload))
                    plan.done.add(task.id)
                    self._sync.mark_changed()
                self._unsaved.add(task.id)
        return waiting

    def _drop_saved(self, writer: ExperimentWriter) -> None:
        """Drop payloads that a snapshot has, in the store if there is one: this disk may be lost."""
        if self._unsaved and writer.saved and not self._sync.behind:
            tasks = sorted(self._unsaved)
            self._with_retry(lambda: self._context.task_table.drop_payloads(self._row.id, tasks))
            self._unsaved.clear()

    def _check(self) -> None:
        """Raise if the run must not continue here."""
        row, context = self._row, self._context
        if context.stopping.is_set():
            raise Requeue("the service stops")
        state = self._with_retry(lambda: context.experiment_table.run_state(row.id, row.run))
        if state == "over" or context.process.times_evicted != self._evictions:
            raise RunOver
        if state == "cancelling":
            raise Cancelled

    def _wait(self, *, waiting_for_worker: bool) -> None:
        """Wait for an event that may change what to do next, or until it is time to refresh."""
        pause = refresh_seconds(self._context.orchestrated())
        deadline = time.monotonic() + (max(_WAITING_REFRESH_SECONDS, pause) if waiting_for_worker else pause)
        while (left := deadline - time.monotonic()) > 0 and not self._context.stopping.is_set():
            found = self._context.event_feed.wait(self._row.id, self._seen, min(left, _REFRESH_SECONDS))
            if found:
                self._seen = found[-1].id
                if any(_matters(event) for event in found):
                    return

    def _report(self, estimator: ProgressEstimator) -> None:
        if time.monotonic() - self._reported < refresh_seconds(self._context.orchestrated()):
            return
        self._reported = time.monotonic()
        row, context = self._row, self._context
        share = estimator.share(self._plan.done, self._with_retry(lambda: context.task_table.shares(row.id, row.run)))
        left = estimator.seconds_left(share)
        stage = estimator.stage(self._plan.done | self._plan.failed.keys())
        self._with_retry(
            lambda: context.experiment_table.report(row.id, progress=share, stage=stage, seconds_left=left)
        )

    def _workers(self) -> set[str]:
        def read() -> set[str]:
            with self._context.database.read() as connection:
                return set(process_ids(connection, "worker"))

        return self._with_retry(read)

    def _stop_tasks(self) -> None:
        """Take tasks out of the queue, and wait until workers stopped those that run.

        A worker that does not answer is not waited for: results of a run that is over are ignored.
        """
        row, jobs = self._row, self._context.jobs
        queued = [task_job(row.id, row.run, task) for task in sorted(self._enqueued)]
        self._with_retry(lambda: jobs.cancel_queued(queued))
        deadline = time.monotonic() + _CANCEL_SECONDS
        while time.monotonic() < deadline:
            processes = {job.process for job in self._jobs().values() if job.state == "running"}
            if processes.isdisjoint(self._workers()):
                return
            time.sleep(0.1)

    def _fail(self, reason: str) -> None:
        def stop_workers() -> None:
            with self._context.database.write() as connection:
                self._context.experiment_table.cancel(connection, self._row.id, announce=False)

        self._with_retry(stop_workers)
        self._stop_tasks()
        self._end("failed", error=reason)

    def _end(self, state: ExperimentState, *, error: str | None = None, writer: ExperimentWriter | None = None) -> None:
        verdict = None if writer is None else writer.landscape.verdict
        figures = None if writer is None else judged_figures(writer.landscape)
        if writer is not None:
            self._drop_saved(writer)

        def write() -> None:
            with self._context.database.write(durable=True) as connection:
                prune_progress(connection, self._row.id)
                self._context.experiment_table.end(
                    connection, self._row.id, state, error=error, verdict=verdict, figures=figures
                )

        self._with_retry(write)
        log.info("the experiment is %s", state, extra={"experiment": self._row.id})
        self._context.on_end(self._row.id)

    def _failures(self) -> str | None:
        """What failed, and what could not be computed without it."""
        plan = self._plan
        if not plan.failed:
            return None
        reasons = [f"{task}: {reason}" for task, reason in plan.failed.items()]
        if blocked := plan.open:
            shown = ", ".join(blocked[:6]) + (f" and {len(blocked) - 6} more" if len(blocked) > 6 else "")
            reasons.append(f"not run, since they need it: {shown}")
        return "; ".join(reasons)

    def _warn(self, message: str) -> None:
        def write() -> None:
            with self._context.database.write() as connection:
                append_events(connection, self._row.id, [("warning", {"message": message})])

        self._with_retry(write)

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._context.database.with_retry(action, self._context.stopping)


def _matters(event: EventRow) -> bool:
    """Whether an event may change what is to be done next."""
    if event.kind == "progress":
        return "task" in event.data
    return event.kind in ("tile", "error", "state")


def _save(writer: ExperimentWriter) -> None:
    try:
        writer.snapshot()
    except OSError as error:
        log.warning("the last snapshot could not be written: %s", error)


def _quarantine(path: Path) -> Path:
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(target)


def _explained(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; retry when the cause is gone"
    return str(error)
