"""The table of experiments: spec, state, progress and verdict of each."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import sqlalchemy as sa

from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.cancel_notify import notify_cancel
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events
from valleyscope.app.storage.ids import is_id, new_id
from valleyscope.app.storage.tables import experiments

ExperimentState = Literal["queued", "running", "done", "failed", "cancelled"]
STATES: tuple[ExperimentState, ...] = get_args(ExperimentState)
ACTIVE: tuple[ExperimentState, ...] = ("queued", "running")
RunState = Literal["active", "cancelling", "over"]


class Unknown(LookupError):
    """Nothing has this id."""


class WrongState(RuntimeError):
    """The experiment's state does not allow the request."""


class KeyReused(RuntimeError):
    """An idempotency key was sent again with another spec."""


class BadCursor(ValueError):
    """The cursor is not one that this service returned."""


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


@dataclass(frozen=True)
class Page:
    """Some experiments, newest first; pass `after` for the next page, None on the last one."""

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
            query = sa.select(experiments).where(experiments.c.id == experiment, experiments.c.deleted.is_(False))
            row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
            if row is not None:
                return _row(row)
        raise Unknown(f"there is no experiment {experiment!r}")

    def list(
        self,
        *,
        state: ExperimentState | None = None,
        search: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page:
        """Newest first; `search` matches any part of a name."""
        query = sa.select(experiments).where(experiments.c.deleted.is_(False))
        if state is not None:
            query = query.where(experiments.c.state == state)
        if search:
            query = query.where(experiments.c.name.icontains(search, autoescape=True))
        if after is not None:
            query = query.where(experiments.c.number < _read_cursor(after))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(experiments.c.number.desc()).limit(limit + 1)).all()
        items = [_row(row) for row in rows[:limit]]
        return Page(items, _cursor(items[-1].number) if len(rows) > limit else None)

    def count(self) -> dict[ExperimentState, int]:
        """The number of experiments in each state."""
        query = sa.select(experiments.c.state, sa.func.count()).where(experiments.c.deleted.is_(False))
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

    def mark_deleted(self, connection: sa.Connection, experiment: str) -> None:
        """Hide an experiment, and free its key."""
        connection.execute(experiments.update().where(experiments.c.id == experiment).values(deleted=True, key=None))

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
    ) -> None:
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
            values |= {"verdict_kind": verdict["kind"], "sentence": verdict["sentence"]}
            events.append(("verdict", verdict))
        row = connection.execute(
            experiments.update().where(experiments.c.id == experiment).values(values).returning(experiments.c.run)
        ).one()
        append_events(connection, experiment, [*events, ("state", {"state": state, "run": row.run, "error": error})])


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


def _row(row: Any) -> ExperimentRow:
    values = {field.name: getattr(row, field.name) for field in fields(ExperimentRow)}
    values |= {"spec": json.loads(row.spec), "stage": "cancelling" if row.cancel else row.stage}
    for name in ("created", "started", "finished"):
        if values[name] is not None:
            values[name] = datetime.fromtimestamp(values[name], UTC)
    return ExperimentRow(**values)


def _cursor(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(8)).decode().rstrip("=")


def _read_cursor(text: str) -> int:
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if len(content) != 8 or content[0] >= 0x80:  # larger than the column
        raise BadCursor("is not a valid cursor: pass `next` from the previous page")
    return int.from_bytes(content)
