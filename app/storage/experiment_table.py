"""The table of experiments: spec, state, progress and verdict of each."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import sqlalchemy as sa

from valleyscope.app.experiments.landscape_import import IMPORTED, ImportedLandscape
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.active_time import active_seconds
from valleyscope.app.storage.cancel_notify import notify_cancel
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events
from valleyscope.app.storage.experiment_list import NEWEST_FIRST, BadCursor, Filters, cursor_after, page_query
from valleyscope.app.storage.ids import is_id, new_id
from valleyscope.app.storage.tables import experiments

__all__ = ["ACTIVE", "STATES", "BadCursor", "ExperimentRow", "ExperimentState", "ExperimentTable", "Page"]

ExperimentState = Literal["queued", "running", "done", "failed", "cancelled"]
STATES: tuple[ExperimentState, ...] = get_args(ExperimentState)
ACTIVE: tuple[ExperimentState, ...] = ("queued", "running")
RunState = Literal["active", "cancelling", "over"]
_PRESENT = (experiments.c.deleted.is_(False), experiments.c.trashed.is_(None))


class Unknown(LookupError):
    """Nothing has this id."""


class WrongState(RuntimeError):
    """The experiment's state does not allow the request."""


class KeyReused(RuntimeError):
    """An idempotency key was sent again with another spec."""


@dataclass(frozen=True)
class ExperimentRow:
    id: str
    number: int
    name: str
    state: ExperimentState
    stage: str
    spec: dict[str, Any]
    key: str | None
    priority: int
    run: int
    created: datetime
    started: datetime | None
    finished: datetime | None
    progress: float
    seconds_left: float | None
    error: str | None
    verdict_kind: str | None
    sentence: str | None
    rise: float | None
    barrier: float | None
    control_barrier: float | None
    zero_groups: float | None
    accuracy: float | None
    tags: tuple[str, ...]
    note: str
    active_seconds: float | None = None

    @property
    def imported(self) -> dict[str, Any] | None:
        """The files that an uploaded landscape was made from, and what is in them; None if it was computed here."""
        facts: dict[str, Any] | None = self.spec.get(IMPORTED)
        return facts


@dataclass(frozen=True)
class Page:
    """Some experiments in order; pass `after` for the next page, None on the last one."""

    items: list[ExperimentRow]
    after: str | None


def digest(spec: Spec) -> str:
    """A hash of the spec, independent of the order of its fields."""
    text = json.dumps(spec.to_json(), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class ExperimentTable:
    """All experiments; each change of state and its event are one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, connection: sa.Connection, spec: Spec, *, key: str | None, priority: int) -> ExperimentRow:
        """Insert a new experiment. A key in use violates a constraint."""
        insert = experiments.insert().values(
            id=new_id(),
            name=spec.name,
            state="queued",
            stage="queued",
            spec=json.dumps(spec.to_json(), allow_nan=False),
            dataset=spec.dataset,
            model=str(spec.model),
            digest=digest(spec),
            key=key,
            priority=priority,
            run=1,
            created=time.time(),
            progress=0.0,
            cancel=False,
            deleted=False,
        )
        row = connection.execute(insert.returning(experiments)).one()
        append_events(connection, row.id, [("state", {"state": "queued", "run": 1})])
        return _row(row)

    def add_imported(self, connection: sa.Connection, identifier: str, landscape: ImportedLandscape) -> ExperimentRow:
        """Insert an uploaded landscape as an experiment that is done."""
        now = time.time()
        text = json.dumps(landscape.spec, allow_nan=False)
        insert = experiments.insert().values(
            id=identifier,
            name=landscape.spec["name"],
            state="queued",
            stage="queued",
            spec=text,
            dataset=landscape.spec[IMPORTED]["dataset"],
            model=landscape.spec[IMPORTED]["model"],
            digest=hashlib.sha256(text.encode()).hexdigest(),
            priority=0,
            run=1,
            created=now,
            started=now,
            progress=1.0,
            cancel=False,
            deleted=False,
        )
        connection.execute(insert)
        if landscape.no_verdict is not None:
            append_events(connection, identifier, [("warning", {"message": landscape.no_verdict})])
        self.end(connection, identifier, "done", verdict=landscape.verdict, figures=landscape.figures)
        return self.find(connection, identifier)

    def find_by_key(self, connection: sa.Connection, key: str, spec: Spec) -> ExperimentRow | None:
        """The experiment submitted with this key; raises KeyReused if its spec differs."""
        row = connection.execute(sa.select(experiments).where(experiments.c.key == key)).one_or_none()
        if row is None:
            return None
        if row.digest != digest(spec):
            raise KeyReused(f"key {key!r} was used for another spec (experiment {row.id}): use a new key")
        return _row(row)

    def get(self, experiment: str) -> ExperimentRow:
        with self._database.read() as connection:
            return self.find(connection, experiment)

    def find(self, connection: sa.Connection, experiment: str, *, for_update: bool = False) -> ExperimentRow:
        """An experiment; `for_update` locks its row until the end of the transaction."""
        if is_id(experiment):
            query = sa.select(experiments).where(experiments.c.id == experiment, *_PRESENT)
            row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
            if row is not None:
                return _with_active_time(connection, [_row(row)])[0]
        raise Unknown(f"there is no experiment {experiment!r}")

    def list(
        self,
        *,
        state: ExperimentState | None = None,
        search: str | None = None,
        tag: str | None = None,
        trash: bool = False,
        ids: tuple[str, ...] | None = None,
        sort: str = NEWEST_FIRST,
        after: str | None = None,
        limit: int = 50,
    ) -> Page:
        """A page of the experiments, or of those in the trash."""
        query = page_query(Filters(state, search, tag, trash, ids), sort, after, limit + 1)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
            items = _with_active_time(connection, [_row(row) for row in rows[:limit]])
        return Page(items, cursor_after(rows[limit - 1], sort) if len(rows) > limit else None)

    def count(self) -> dict[ExperimentState, int]:
        """The number of experiments in each state."""
        query = sa.select(experiments.c.state, sa.func.count()).where(*_PRESENT)
        with self._database.read() as connection:
            found = {row[0]: int(row[1]) for row in connection.execute(query.group_by(experiments.c.state))}
        return {state: found.get(state, 0) for state in STATES}

    def active(self, connection: sa.Connection) -> Sequence[ExperimentRow]:
        """Queued and running experiments, oldest first."""
        query = sa.select(experiments).where(experiments.c.deleted.is_(False), experiments.c.state.in_(ACTIVE))
        return [_row(row) for row in connection.execute(query.order_by(experiments.c.number))]

    def find_run(self, experiment: str, run: int) -> ExperimentRow | None:
        """An experiment, if this run of it is not over."""
        mine = experiments.c.id == experiment, experiments.c.run == run, experiments.c.deleted.is_(False)
        with self._database.read() as connection:
            row = connection.execute(sa.select(experiments).where(*mine, experiments.c.state.in_(ACTIVE))).one_or_none()
        return None if row is None else _row(row)

    def run_state(self, experiment: str, run: int) -> RunState:
        """Whether a run is to continue, to be cancelled, or is over."""
        chosen = sa.select(experiments.c.run, experiments.c.cancel, experiments.c.state, experiments.c.deleted)
        with self._database.read() as connection:
            row = connection.execute(chosen.where(experiments.c.id == experiment)).one_or_none()
        if row is None or row.deleted or row.run != run or row.state not in ACTIVE:
            return "over"
        return "cancelling" if row.cancel else "active"

    def cancel(self, connection: sa.Connection, experiment: str, *, announce: bool = True) -> None:
        """Ask the orchestrator and the workers of a run to stop."""
        row = connection.execute(
            experiments.update()
            .where(experiments.c.id == experiment, experiments.c.cancel.is_(False))
            .values(cancel=True)
            .returning(experiments.c.state, experiments.c.run)
        ).one_or_none()
        if row is not None:
            notify_cancel(connection, experiment)
            state = {"state": row.state, "run": row.run, "cancelling": True}
            append_events(connection, experiment, [("state", state)] if announce else [])

    def amend(self, connection: sa.Connection, experiment: str, spec: Spec) -> None:
        """Replace a spec by one that asks for more. Its digest stays that of the submission, which its key names."""
        values = {"spec": json.dumps(spec.to_json(), allow_nan=False)}
        connection.execute(experiments.update().where(experiments.c.id == experiment).values(values))

    def start_next_run(self, connection: sa.Connection, experiment: str) -> ExperimentRow:
        values = {"state": "queued", "stage": "queued", "finished": None, "error": None, "cancel": False}
        row = connection.execute(
            experiments.update()
            .where(experiments.c.id == experiment)
            .values(run=experiments.c.run + 1, **values)
            .returning(experiments)
        ).one()
        append_events(connection, experiment, [("state", {"state": "queued", "run": row.run})])
        return _row(row)

    def describe(self, connection: sa.Connection, experiment: str, values: Mapping[str, Any]) -> ExperimentRow:
        """Change the name, the tags or the note of an experiment."""
        stored = dict(values)
        if "tags" in stored:
            stored["tags"] = "".join(f"\n{tag}" for tag in stored["tags"]) + "\n" if stored["tags"] else None
        connection.execute(experiments.update().where(experiments.c.id == experiment).values(stored))
        return self.find(connection, experiment)

    def move_to_trash(self, connection: sa.Connection, experiment: str) -> None:
        """Hide an experiment for a while, and free its key."""
        values = {"trashed": time.time(), "key": None}
        connection.execute(experiments.update().where(experiments.c.id == experiment).values(values))

    def restore(self, connection: sa.Connection, experiment: str) -> ExperimentRow:
        """Take an experiment out of the trash; raises Unknown if it is not there."""
        trashed = experiments.c.id == experiment, experiments.c.deleted.is_(False), experiments.c.trashed.is_not(None)
        if (
            not is_id(experiment)
            or connection.execute(experiments.update().where(*trashed).values(trashed=None)).rowcount != 1
        ):
            raise Unknown(f"there is no experiment {experiment!r} in the trash")
        return self.find(connection, experiment)

    def in_trash(self, connection: sa.Connection, experiment: str) -> bool:
        query = sa.select(experiments.c.trashed).where(experiments.c.id == experiment, experiments.c.deleted.is_(False))
        return is_id(experiment) and connection.execute(query).scalar() is not None

    def mark_deleted(self, connection: sa.Connection, experiment: str) -> None:
        """Delete an experiment for good: its files and rows are removed next."""
        connection.execute(experiments.update().where(experiments.c.id == experiment).values(deleted=True, key=None))

    def empty_trash(self, connection: sa.Connection, *, seconds: float) -> None:
        """Mark what has been in the trash for longer as deleted."""
        old = experiments.c.trashed < time.time() - seconds, experiments.c.deleted.is_(False)
        connection.execute(experiments.update().where(*old).values(deleted=True))

    def report(self, experiment: str, *, progress: float, stage: str, seconds_left: float | None) -> None:
        values = {"progress": round(progress, 4), "stage": stage, "seconds_left": seconds_left}
        with self._database.write() as connection:
            connection.execute(experiments.update().where(experiments.c.id == experiment).values(values))
            append_events(connection, experiment, [("progress", values)])

    def end(
        self,
        connection: sa.Connection,
        experiment: str,
        state: ExperimentState,
        *,
        error: str | None = None,
        verdict: Mapping[str, Any] | None = None,
        figures: Mapping[str, float | None] | None = None,
    ) -> None:
        """End a run; `figures` of the judged network are there to sort by."""
        now = time.time()
        values: dict[str, Any] = {
            "state": state,
            "stage": state,
            "finished": now,
            "seconds_left": None,
            "error": error,
            "cancel": False,
        }
        if state == "done":  # a run with nothing left to compute never had a worker
            values |= {"progress": 1.0, "started": sa.func.coalesce(experiments.c.started, now)}
        events: list[tuple[str, Mapping[str, Any]]] = []
        if verdict is not None:
            values |= {**verdict_columns(verdict), **(figures or {})}
            events.append(("verdict", verdict))
        row = connection.execute(
            experiments.update().where(experiments.c.id == experiment).values(values).returning(experiments.c.run)
        ).one()
        append_events(connection, experiment, [*events, ("state", {"state": state, "run": row.run, "error": error})])


def verdict_columns(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What the list shows of a verdict, and sorts by."""
    line, control = verdict.get("line") or {}, verdict.get("control") or {}
    return {
        "verdict_kind": verdict.get("kind"),
        "sentence": verdict.get("sentence"),
        "rise": (line.get("rise") or {}).get("value"),
        "barrier": line.get("barrier"),
        "control_barrier": (control.get("line") or {}).get("barrier"),
    }


def mark_running(connection: sa.Connection, experiment: str, stage: str) -> None:
    """An experiment is running once a worker begins its first task."""
    values = {"state": "running", "stage": stage, "started": sa.func.coalesce(experiments.c.started, time.time())}
    row = connection.execute(
        experiments.update()
        .where(experiments.c.id == experiment, experiments.c.state == "queued")
        .values(values)
        .returning(experiments.c.run)
    ).one_or_none()
    if row is not None:
        append_events(connection, experiment, [("state", {"state": "running", "run": row.run})])


def _with_active_time(connection: sa.Connection, rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
    """Rows with the time that they ran; only after a retry does it differ from the time since the start."""
    retried = active_seconds(connection, [row.id for row in rows if row.run > 1 and row.started is not None])
    return [replace(row, active_seconds=retried.get(row.id, row.active_seconds)) for row in rows]


def _row(row: Any) -> ExperimentRow:
    values: dict[str, Any] = {field.name: getattr(row, field.name, None) for field in fields(ExperimentRow)}
    if row.started is not None:
        values["active_seconds"] = max(0.0, (row.finished or time.time()) - row.started)
    values |= {"spec": json.loads(row.spec), "stage": "cancelling" if row.cancel else row.stage}
    values |= {"tags": tuple(filter(None, (row.tags or "").split("\n"))), "note": row.note or ""}
    for name in ("created", "started", "finished"):
        if values[name] is not None:
            values[name] = datetime.fromtimestamp(values[name], UTC)
    return ExperimentRow(**values)
