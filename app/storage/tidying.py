"""Copies of files that a host with a store of objects does not need any more."""

from __future__ import annotations

import logging
import time
from typing import Final

import sqlalchemy as sa

from valleyscope.app.experiments.experiment_writer import SPEC
from valleyscope.app.storage.ages import older_than
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ACTIVE
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.tables import checkpoints, experiments

log = logging.getLogger(__name__)

_KEEP_SECONDS: Final = 3600.0


def remove_unused_copies(database: Database, storage: Home) -> list[str]:
    """Remove a worker's copies of experiments that ended an hour ago or are gone; returns their ids.

    All that was worth keeping is in the store. A folder with spec.json in it is the API's, and is left alone.
    """
    here = {name for name in storage.stored_experiments() if not (storage.experiment(name) / SPEC).is_file()}
    uploads = storage.stored_checkpoints()
    needed = sa.or_(experiments.c.state.in_(ACTIVE), experiments.c.finished > time.time() - _KEEP_SECONDS)
    with database.read() as connection:
        kept = set(connection.execute(sa.select(experiments.c.id).where(needed)).scalars())
        known = set(connection.execute(sa.select(checkpoints.c.id)).scalars())
    removed = sorted(here - kept)
    for experiment in removed:
        storage.remove_experiment(experiment)
    copies = [storage.checkpoint(upload) for upload in uploads - known]
    for copy in older_than(storage.home, copies, _KEEP_SECONDS):  # an API beside this worker may be taking one in
        copy.unlink(missing_ok=True)
    if removed:
        log.info("removed the copies of %d experiments that ended; they are in the store", len(removed))
    return removed
