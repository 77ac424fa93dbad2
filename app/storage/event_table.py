"""Events of experiments: rows with ascending numbers that any process adds and anyone can read on from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from valleyscope.app.storage.database import lock_key
from valleyscope.app.storage.tables import events
from valleyscope.landscape.json_encoding import to_json

KINDS = ("state", "progress", "epoch", "curve", "tile", "warning", "error", "verdict")
_LASTING = ("state", "warning", "error", "verdict")

_IN_TURN = sa.text(
    f"WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock({lock_key('events')})) "
    "INSERT INTO valley_events (experiment, at, kind, text) SELECT :experiment, :at, :kind, :text FROM turn"
)


@dataclass(frozen=True)
class EventRow:
    """Something that happened to an experiment; `text` is its JSON, ready to be sent."""

    id: int
    experiment: str
    at: datetime
    kind: str
    text: str

    @property
    def data(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.text)
        return content


@dataclass(frozen=True)
class MinimumWarning:
    """Something that people should know: of a minimum, or of the experiment as a whole."""

    minimum: str | None
    message: str


def append_events(connection: sa.Connection, experiment: str, found: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Add events as the last act of a transaction that writes.

    Readers ask for ids above the last one they saw, so ids must become visible in their order. SQLite has one writer
    at a time; in Postgres a lock, held until the commit, makes it so. It is taken by the statement that gives out the
    ids: with one of its own everyone would wait while the answer travels to this process and the next one back.
    """
    rows = [
        {
            "experiment": experiment,
            "at": time.time(),
            "kind": kind,
            "text": json.dumps(to_json(data, nan="NaN"), allow_nan=False, separators=(",", ":")),
        }
        for kind, data in found
    ]
    if not rows:
        return
    connection.execute(_IN_TURN if connection.dialect.name == "postgresql" else events.insert(), rows)


def read_events(connection: sa.Connection, experiment: str, after: int, limit: int) -> list[EventRow]:
    chosen = sa.select(events).where(events.c.experiment == experiment, events.c.id > after)
    return [_row(row) for row in connection.execute(chosen.order_by(events.c.id).limit(limit))]


def warnings_of(connection: sa.Connection, experiment: str) -> list[MinimumWarning]:
    """What was said of an experiment that people should know, each thing once, in the order of time."""
    chosen = sa.select(events.c.text).where(events.c.experiment == experiment, events.c.kind == "warning")
    found = [json.loads(text) for text in connection.execute(chosen.order_by(events.c.id)).scalars()]
    said = [MinimumWarning(data.get("minimum"), data["message"]) for data in found if not data.get("harmless")]
    return list(dict.fromkeys(said))


def read_all_events(connection: sa.Connection, after: int, limit: int) -> list[EventRow]:
    """New events of all experiments."""
    chosen = sa.select(events).where(events.c.id > after).order_by(events.c.id).limit(limit)
    return [_row(row) for row in connection.execute(chosen)]


def newest_event(connection: sa.Connection) -> int:
    """The id of the latest event of all, or 0."""
    return connection.execute(sa.select(sa.func.max(events.c.id))).scalar() or 0


def prune_progress(connection: sa.Connection, experiment: str, keep: int = 0) -> None:
    """Remove progress, which is of interest only while it happens, but for the latest reports."""
    progress = (events.c.experiment == experiment, events.c.kind == "progress")
    doomed = events.delete().where(*progress)
    if keep:
        newest = sa.select(events.c.id).where(*progress).order_by(events.c.id.desc())
        doomed = doomed.where(events.c.id <= newest.offset(keep).limit(1).scalar_subquery())
    connection.execute(doomed)


def prune_old_events(connection: sa.Connection, finished_experiments: Iterable[str]) -> int:
    """Of experiments that ended long ago keep what people ask for; values and metrics are in landscape.h5."""
    removed = 0
    for experiment in finished_experiments:
        old = events.delete().where(events.c.experiment == experiment, events.c.kind.not_in(_LASTING))
        removed += connection.execute(old).rowcount
    return removed


def _row(row: Any) -> EventRow:
    return EventRow(row.id, row.experiment, datetime.fromtimestamp(row.at, UTC), row.kind, row.text)
