"""Files that no row tells of: somebody's upload or deletion was interrupted, or another service has just begun one.

Nothing is removed at once. A checkpoint must have been without a row for hours under the eyes of one process, since a
row may also be missing because a database was restored; a part of an upload must not have grown for hours.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from valleyscope.app.storage.ages import older_than
from valleyscope.app.storage.checkpoint_table import CheckpointTable
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.safetensors_check import FOLDER

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 6 * 3600.0
_LOOK_SECONDS: Final = 600.0


class Orphans:
    """Looks for them now and then; one for each API process."""

    def __init__(
        self,
        checkpoints: CheckpointTable,
        storage: Home,
        identity: HomeIdentity,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checkpoints = checkpoints
        self._storage = storage
        self._identity = identity
        self._clock = clock
        self._looked: float | None = None
        self._since: dict[str, float] = {}

    def look(self) -> None:
        """Remove what was an orphan for long enough."""
        now = self._clock()
        if self._looked is not None and now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        self._remove_checkpoints(now)
        self._remove_parts()

    def _remove_checkpoints(self, now: float) -> None:
        stored = self._storage.stored_checkpoints()  # before the rows: an upload that ends in between has one
        orphans = stored - {row.id for row in self._checkpoints.list()}
        self._since = {name: self._since.get(name, now) for name in orphans}
        if new := sorted(name for name, since in self._since.items() if since == now):
            hours = GRACE_SECONDS / 3600
            log.warning("files of checkpoints without a row are removed in %.0f h: %s", hours, ", ".join(new))
        for name in sorted(name for name, since in self._since.items() if now - since >= GRACE_SECONDS):
            self._identity.check()
            log.warning("checkpoint %s had no row for %.0f h and is removed", name, (now - self._since[name]) / 3600)
            self._checkpoints.discard(name)

    def _remove_parts(self) -> None:
        folder = self._storage.home / FOLDER
        for part in older_than(folder, folder.glob("*.part"), GRACE_SECONDS):
            log.warning("an upload that was interrupted is removed: %s", part.name)
            part.unlink(missing_ok=True)
