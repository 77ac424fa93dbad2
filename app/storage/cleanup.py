"""Remove files that are no longer needed: orphaned uploads, and a worker's copies of experiments that ended."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from valleyscope.app.experiments.experiment_writer import SPEC
from valleyscope.app.storage.checkpoint_table import CheckpointTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ACTIVE
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.safetensors_check import UPLOAD_FOLDER
from valleyscope.app.storage.tables import checkpoints, experiments

log = logging.getLogger(__name__)

ORPHAN_SECONDS: Final = 6 * 3600.0
_INTERVAL_SECONDS: Final = 600.0
_KEEP_COPY_SECONDS: Final = 3600.0


class OrphanCleanup:
    """Removes checkpoint files without a database row, and parts of interrupted uploads; one per API process.

    A checkpoint must have had no row for hours, seen by one process, because its row may also be missing after the
    database was restored. A part of an upload must not have grown for hours.
    """

    def __init__(
        self,
        checkpoints: CheckpointTable,
        home: Home,
        identity: HomeIdentity,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checkpoints = checkpoints
        self._home = home
        self._identity = identity
        self._clock = clock
        self._last_run: float | None = None
        self._orphaned_since: dict[str, float] = {}

    def run_if_due(self) -> None:
        now = self._clock()
        if self._last_run is not None and now - self._last_run < _INTERVAL_SECONDS:
            return
        self._last_run = now
        self._remove_checkpoints(now)
        self._remove_upload_parts()

    def _remove_checkpoints(self, now: float) -> None:
        stored = self._home.stored_checkpoints()  # before the rows: an upload that ends in between has one
        orphans = stored - {row.id for row in self._checkpoints.list()}
        self._orphaned_since = {name: self._orphaned_since.get(name, now) for name in orphans}
        if new := sorted(name for name, since in self._orphaned_since.items() if since == now):
            hours = ORPHAN_SECONDS / 3600
            log.warning("checkpoint files without a database row, removed in %.0f h: %s", hours, ", ".join(new))
        for name, since in sorted(self._orphaned_since.items()):
            if now - since >= ORPHAN_SECONDS:
                self._identity.check()
                log.warning("removing checkpoint %s: it had no row for %.0f h", name, (now - since) / 3600)
                self._checkpoints.discard(name)

    def _remove_upload_parts(self) -> None:
        folder = self._home.path / UPLOAD_FOLDER
        for part in older_than(folder, folder.glob("*.part"), ORPHAN_SECONDS):
            log.warning("removing an interrupted upload: %s", part.name)
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink(missing_ok=True)


def remove_unused_copies(database: Database, home: Home) -> list[str]:
    """Remove a worker's copies of experiments that ended an hour ago or were deleted; returns their ids.

    The store has all files worth keeping. A folder with spec.json in it is the API's, and stays.
    """
    here = {name for name in home.stored_experiments() if not (home.experiment(name) / SPEC).is_file()}
    uploads = home.stored_checkpoints()
    needed = sa.or_(experiments.c.state.in_(ACTIVE), experiments.c.finished > time.time() - _KEEP_COPY_SECONDS)
    with database.read() as connection:
        kept = set(connection.execute(sa.select(experiments.c.id).where(needed)).scalars())
        known = set(connection.execute(sa.select(checkpoints.c.id)).scalars())
    removed = sorted(here - kept)
    for experiment in removed:
        home.remove_experiment(experiment)
    copies = [home.checkpoint(upload) for upload in uploads - known]
    for copy in older_than(home.path, copies, _KEEP_COPY_SECONDS):  # an API on this host may be receiving one
        copy.unlink(missing_ok=True)
    if removed:
        log.info("removed the local copies of %d ended experiments; the store has them", len(removed))
    return removed


def older_than(folder: Path, paths: Iterable[Path], seconds: float) -> list[Path]:
    """The files in a folder that were not written for `seconds`, by the clock of their disk (hosts may differ)."""
    found = list(paths)
    if not found:
        return []
    with tempfile.TemporaryFile(dir=folder) as now:
        now.write(b".")
        now.flush()
        limit = os.fstat(now.fileno()).st_mtime - seconds
    old = []
    for path in found:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                old.append(path)
    return old
