"""Conducts experiments: issues their tasks as these become ready, and keeps what comes back.

Everything that it knows it can learn again from the task_table and the experiment's directory, so it may die at any
moment and another one goes on. It is the only writer of landscape.h5.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from valleyscope.app.experiments.experiment_writer import LANDSCAPE, DirectoryLocked, ExperimentWriter
from valleyscope.app.experiments.plan import Task, blocked_tasks, ready_tasks
from valleyscope.app.experiments.progress import ProgressEstimator
from valleyscope.app.experiments.report_renderer import ReportRenderer
from valleyscope.app.experiments.result_codec import decode
from valleyscope.app.experiments.spec import Spec, parse_spec
from valleyscope.app.jobs.file_sync import SnapshotSync, retry_store
from valleyscope.app.jobs.missing_weights import missing_weights
from valleyscope.app.jobs.process_registry import process_ids
from valleyscope.app.jobs.queue import JobQueue, Requeue
from valleyscope.app.jobs.task_table import ActiveTask, TaskTable
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.event_table import EventRow, append_events, prune_progress
from valleyscope.app.storage.experiment_table import ExperimentRow, ExperimentState, ExperimentTable
from valleyscope.app.storage.file_store import FileStore
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, NotALandscape

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_SECONDS = 1.0
_IDLE_LOOK_SECONDS = 5.0
_LONGEST_LOOK_SECONDS = 10.0
_LOOKS_A_SECOND = (
    10.0  # of all orchestrators of a process together: each costs Postgres, and this process, milliseconds
)
_SEARCH_SECONDS = 10.0
_BUSY_PATIENCE = 10.0
_DRAIN_PATIENCE = 10.0
_WINDOW = 16


class Cancelled(Exception):
    """Somebody cancelled the run."""


class OwnershipLost(Exception):
    """Another process conducts the experiment now, or it is gone."""


@dataclass(frozen=True)
class OrchestratorContext:
    """What all orchestrators of a process share."""

    database: Database
    experiment_table: ExperimentTable
    task_table: TaskTable
    jobs: JobQueue
    event_feed: EventFeed
    process: str
    orchestrated: Callable[[], int]
    directory: Callable[[str], Path]
    store: FileStore
    stopping: threading.Event
    call_workers: Callable[[], None]
    report_renderer: ReportRenderer


def refresh_seconds(orchestrated: int) -> float:
    """How long a orchestrator waits before it looks around and reports, where so many are at work in its process.

    Nothing waits for it: whatever changes what is to be done is an event, and an event wakes it.
    """
    return min(max(_LOOK_SECONDS, orchestrated / _LOOKS_A_SECOND), _LONGEST_LOOK_SECONDS)


def orchestrate(stage: OrchestratorContext, experiment: str, run: int) -> None:
    """Run an experiment to its end, whatever that is. Raises HandedBack when the process ends first."""
    try:
        row = stage.database.with_retry(
            lambda: stage.experiment_table.claim(experiment, run, stage.process), stage.stopping
        )
        if row is not None:
            Orchestrator(stage, row).run()
    except Stopped as error:
        raise Requeue(str(error)) from error
    except OwnershipLost:
        log.info("another process conducts this experiment now", extra={"experiment": experiment})


class Orchestrator:
    """One run of one experiment."""

    def __init__(self, stage: OrchestratorContext, row: ExperimentRow) -> None:
        self._stage = stage
        self._row = row
        self._directory = stage.directory(row.id)
        self._seen = stage.event_feed.latest
        self._failed: dict[str, str] = {}
        self._done: set[str] = set()
        self._taken: set[str] = set()
        self._lost: set[str] = set()
        self._searched = time.monotonic()
        self._reported = 0.0
        self._idle = False
        self._file_sync = SnapshotSync(stage.store, row.id)

    def run(self) -> None:
        extra = {"experiment": self._row.id}
        try:
            spec = parse_spec(self._row.spec, source="spec")
            writer = self._open(spec)
            try:
                self._go_on(writer)
                writer.finish(self._stage.report_renderer.render)
                retry_store(self._file_sync.deliver, self._check)
                if not self._failed:
                    self._failed |= missing_weights(
                        self._stage.store, self._row.id, self._directory, writer.tasks, self._check
                    )
                self._end("failed" if self._failed else "done", error=self._missing(writer), writer=writer)
            except Requeue:
                _save(writer)
                self._file_sync.deliver_briefly()
                raise
            except Cancelled:
                self._wind_down()
                _save(writer)
                self._file_sync.deliver_if_possible()
                self._end("cancelled", writer=writer)
            finally:
                writer.close()
        except (Stopped, OwnershipLost):
            raise
        except Cancelled:
            self._wind_down()
            self._end("cancelled")
        except (OSError, ValueError, DirectoryLocked) as error:
            log.warning("the experiment failed: %s", error, extra=extra)
            self._give_up(_explained(error))
        except Exception as error:
            log.exception("the experiment failed unexpectedly", extra=extra)
            self._give_up(f"unexpectedly: {type(error).__name__}: {error}")

    def _open(self, spec: Spec) -> ExperimentWriter:
        elsewhere = retry_store(self._file_sync.fetch, self._check)
        deadline = time.monotonic() + _BUSY_PATIENCE
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
                self._tell("warning", {"message": f"{error}; it was set aside as {kept.name} and is computed again"})

    def _go_on(self, writer: ExperimentWriter) -> None:
        tasks = {task.id: task for task in writer.tasks}
        meter = ProgressEstimator(writer.spec, writer.tasks)
        self._done = {task.id for task in writer.tasks if writer.is_done(task)}
        while True:
            self._check()
            # First who is at work, then what has ended: a task that ends in between is in both, never in neither,
            # where it would be issued once more.
            at_work = self._with_retry(lambda: self._stage.task_table.under_way(self._row.id))
            waiting = self._collect(writer, tasks)
            ended = waiting | self._done | self._failed.keys()
            under_way = {name: found for name, found in at_work.items() if name not in ended}
            lost = blocked_tasks(writer.tasks, self._failed.keys())
            ready = [
                task
                for task in ready_tasks(writer.tasks, self._done, lost)
                if task.id not in under_way and task.id not in waiting
            ]
            self._give_up_lost(under_way)
            self._idle = not any(found.running for found in under_way.values())
            room = max(_WINDOW, 2 * len(self._workers())) - sum(not found.running for found in under_way.values())
            chosen = ready[: max(0, room)]
            if chosen:
                self._issue(chosen)
            elif not under_way:
                return
            self._report(meter, {task: found.share for task, found in under_way.items()})
            writer.snapshot(force=False)
            if writer.saved:
                self._file_sync.deliver_when_due()
            self._keep(writer)
            self._wait()

    def _give_up_lost(self, under_way: Mapping[str, ActiveTask]) -> None:
        """Tasks whose jobs ended without a word are issued again; two looks in a row must find them so."""
        if time.monotonic() - self._searched < _SEARCH_SECONDS:
            return
        self._searched = time.monotonic()
        alive = self._workers()
        idle = {task: found.job for task, found in under_way.items() if found.owner not in alive}
        gone = self._with_retry(lambda: self._stage.jobs.lost(list(idle.values())))
        lost = {task for task, job in idle.items() if job in gone}
        if again := lost & self._lost:
            log.warning("the jobs of %s are gone; issuing them again", ", ".join(sorted(again)))
            self._with_retry(lambda: self._stage.task_table.withdraw_lost(self._row.id, sorted(again)))
        self._lost = lost - again

    def _issue(self, chosen: list[Task]) -> None:
        row, stage = self._row, self._stage
        self._with_retry(
            lambda: stage.task_table.issue(stage.jobs, row.id, chosen, priority=row.priority, number=row.number)
        )
        stage.call_workers()

    def _collect(self, writer: ExperimentWriter, tasks: dict[str, Task]) -> set[str]:
        """Take results in whose predecessors are in; returns those that have to wait for them."""
        ended = {found.task: found for found in self._with_retry(lambda: self._stage.task_table.ended(self._row.id))}
        for name in tasks:
            found = ended.get(name)
            if found is None or name in self._taken or name in self._failed:
                continue
            if found.payload is None:
                self._failed[name] = found.error or "failed"
            elif all(need in self._done for need in tasks[name].needs):
                if name not in self._done:  # a frame that is taken twice would wipe its surface
                    writer.take(tasks[name], decode(found.payload))
                    self._done.add(name)
                    self._file_sync.note()
                self._taken.add(name)
        return {name for name, found in ended.items() if found.payload is not None} - self._taken

    def _keep(self, writer: ExperimentWriter) -> None:
        """Let go of results that a snapshot has: one in the store, where there is one, since this disk may be lost."""
        if self._taken and writer.saved and not self._file_sync.behind:
            ids = sorted(self._taken)
            self._with_retry(lambda: self._stage.task_table.keep(self._row.id, ids))
            self._taken.clear()

    def _check(self) -> None:
        if self._stage.stopping.is_set():
            raise Requeue("the service stops")
        row, stage = self._row, self._stage
        mine, cancel = self._with_retry(
            lambda: stage.experiment_table.is_orchestrated_by(row.id, row.run, stage.process)
        )
        if not mine:
            raise OwnershipLost
        if cancel:
            raise Cancelled

    def _wait(self) -> None:
        """Until a task has ended, or it is time to look around: seldom while all tasks wait for a worker."""
        pause = refresh_seconds(self._stage.orchestrated())
        deadline = time.monotonic() + (max(_IDLE_LOOK_SECONDS, pause) if self._idle else pause)
        while (left := deadline - time.monotonic()) > 0 and not self._stage.stopping.is_set():
            found = self._stage.event_feed.wait(self._row.id, self._seen, min(left, _LOOK_SECONDS))
            if found:
                self._seen = found[-1].id
                if any(_matters(event) for event in found):
                    return

    def _report(self, meter: ProgressEstimator, under_way: dict[str, float]) -> None:
        if time.monotonic() - self._reported < refresh_seconds(self._stage.orchestrated()):
            return
        self._reported = time.monotonic()
        share = meter.share(self._done, under_way)
        left = meter.seconds_left(share)
        name = meter.stage(self._done | self._failed.keys())
        self._with_retry(
            lambda: self._stage.experiment_table.report(self._row.id, progress=share, stage=name, seconds_left=left)
        )

    def _workers(self) -> list[str]:
        def read() -> list[str]:
            with self._stage.database.read() as connection:
                return process_ids(connection, "worker")

        return self._with_retry(read)

    def _wind_down(self) -> None:
        """Nothing of this experiment runs any more when this returns.

        A worker that was stopped for so long that it does not answer is fenced off: what it reports later is ignored.
        """
        task_table, experiment = self._stage.task_table, self._row.id
        jobs = self._with_retry(lambda: task_table.withdraw(experiment))
        deadline = time.monotonic() + _DRAIN_PATIENCE
        while running := self._with_retry(lambda: task_table.under_way(experiment)):
            alive = self._workers()
            if all(found.owner not in alive for found in running.values()) or time.monotonic() > deadline:
                self._with_retry(lambda: task_table.revoke(experiment))
                break
            self._stage.event_feed.wait(experiment, self._seen, 0.1)
        self._with_retry(lambda: self._stage.jobs.forget(jobs))

    def _give_up(self, reason: str) -> None:
        self._with_retry(lambda: self._stage.experiment_table.request_cancel(self._row.id))
        self._wind_down()
        self._end("failed", error=reason)

    def _end(self, state: ExperimentState, *, error: str | None = None, writer: ExperimentWriter | None = None) -> None:
        verdict = None if writer is None else writer.landscape.verdict
        if writer is not None:
            self._keep(writer)

        def write() -> None:
            with self._stage.database.write(durable=True) as connection:
                prune_progress(connection, self._row.id)
                self._stage.experiment_table.end(connection, self._row.id, state, error=error, verdict=verdict)

        self._with_retry(write)
        log.info("the experiment is %s", state, extra={"experiment": self._row.id})

    def _missing(self, writer: ExperimentWriter) -> str | None:
        """What failed, and what could not be computed without it."""
        if not self._failed:
            return None
        reasons = [f"{task}: {reason}" for task, reason in self._failed.items()]
        lost = [task.id for task in writer.tasks if task.id not in self._done and task.id not in self._failed]
        if lost:
            shown = ", ".join(lost[:6]) + (f" and {len(lost) - 6} more" if len(lost) > 6 else "")
            reasons.append(f"not run, since they need it: {shown}")
        return "; ".join(reasons)

    def _tell(self, kind: str, data: dict[str, str]) -> None:
        def write() -> None:
            with self._stage.database.write() as connection:
                append_events(connection, self._row.id, [(kind, data)])

        self._with_retry(write)

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._stage.database.with_retry(action, self._stage.stopping)


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
