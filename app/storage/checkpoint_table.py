"""Uploaded checkpoints: a database row and a file for each."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ACTIVE, Unknown, WrongState
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.tables import checkpoints, experiments
from valleyscope.training.losses import LossName

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointRow:
    """An uploaded checkpoint, its network, and the data set and loss it was trained with."""

    id: str
    name: str
    model: dict[str, Any]
    dataset: str
    loss: LossName
    size: int
    sha256: str
    created: datetime


class CheckpointTable:
    def __init__(self, database: Database, home: Home, store: FileStore) -> None:
        self._database = database
        self._home = home
        self._store = store

    def add(
        self,
        source: Path,
        *,
        name: str,
        model: dict[str, Any],
        dataset: str,
        sha256: str,
        loss: LossName = "cross_entropy",
    ) -> CheckpointRow:
        """Move a checked file into the home; `source` must be on the same disk."""
        identifier, size = new_id(), source.stat().st_size
        source.replace(self._home.checkpoint(identifier))  # a file without a row is removed later, see cleanup
        self._store.push_checkpoint(identifier)
        with self._database.write(durable=True) as connection:
            insert = checkpoints.insert().values(
                id=identifier,
                name=name,
                model=json.dumps(model),
                dataset=dataset,
                loss=loss,
                size=size,
                sha256=sha256,
                created=time.time(),
            )
            return _row(connection.execute(insert.returning(checkpoints)).one())

    def list(self) -> list[CheckpointRow]:
        """All checkpoints, newest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(checkpoints).order_by(checkpoints.c.id.desc())).all()
        return [_row(row) for row in rows]

    def find(self, identifier: str) -> CheckpointRow | None:
        with self._database.read() as connection:
            row = connection.execute(sa.select(checkpoints).where(checkpoints.c.id == identifier)).one_or_none()
        return None if row is None else _row(row)

    def get(self, identifier: str) -> CheckpointRow:
        """A checkpoint; raises Unknown."""
        row = self.find(identifier)
        if row is None:
            raise Unknown(f"there is no checkpoint {identifier!r}")
        return row

    def require(self, connection: sa.Connection, spec: Spec) -> None:
        """Raise Unknown unless the checkpoints that a spec names exist."""
        wanted = [minimum.checkpoint for minimum in spec.minima.values() if minimum.checkpoint is not None]
        known = set(connection.execute(sa.select(checkpoints.c.id).where(checkpoints.c.id.in_(wanted))).scalars())
        for name, minimum in spec.minima.items():
            if minimum.checkpoint is not None and minimum.checkpoint not in known:
                raise Unknown(f"minima.{name}.checkpoint={minimum.checkpoint!r}: this upload does not exist")

    def remove(self, identifier: str) -> None:
        """Remove a checkpoint, unless an active experiment uses it; experiments that ended have a copy."""
        self.get(identifier)
        with self._database.write(durable=True) as connection:
            active = sa.select(experiments.c.id, experiments.c.spec).where(
                experiments.c.state.in_(ACTIVE), experiments.c.deleted.is_(False)
            )
            for row in connection.execute(active):
                minima = json.loads(row.spec)["minima"].values()
                if any(minimum.get("checkpoint") == identifier for minimum in minima):
                    raise WrongState(f"checkpoint {identifier} is used by experiment {row.id}: cancel it first")
            connection.execute(checkpoints.delete().where(checkpoints.c.id == identifier))
        self.discard(identifier)

    def discard(self, identifier: str) -> None:
        """Remove the file from the store and from here; if the store fails, cleanup tries again later."""
        try:
            self._store.remove_checkpoint(identifier)
        except StoreUnavailable as error:
            log.warning("checkpoint %s stays in the store for now: %s", identifier, error)
        else:
            self._home.checkpoint(identifier).unlink(missing_ok=True)


def _row(row: Any) -> CheckpointRow:
    created = datetime.fromtimestamp(row.created, UTC)
    model = json.loads(row.model)
    return CheckpointRow(row.id, row.name, model, row.dataset, row.loss, row.size, row.sha256, created)
