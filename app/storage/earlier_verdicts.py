"""Verdicts that earlier versions gave: the list gets what is judged anew from their landscapes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from valleyscope.app.experiments.judged_figures import judged_figures
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentRow, ExperimentTable, Unknown, verdict_columns
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.tables import experiments
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape

log = logging.getLogger(__name__)

_AT_ONCE: Final = 20


class EarlierVerdicts:
    """Some finished experiments a round: those whose verdict has no rise."""

    def __init__(
        self, database: Database, experiment_table: ExperimentTable, located: Callable[[ExperimentRow], Path]
    ) -> None:
        self._database = database
        self._experiment_table = experiment_table
        self._located = located
        self._tried: set[str] = set()

    def run_if_due(self) -> None:
        query = sa.select(experiments.c.id).where(
            experiments.c.state == "done",
            experiments.c.verdict_kind.is_not(None),
            experiments.c.rise.is_(None),
            experiments.c.deleted.is_(False),
            experiments.c.id.not_in(self._tried),
        )
        with self._database.read() as connection:
            found = list(connection.execute(query.limit(_AT_ONCE)).scalars())
        for experiment in found:
            self._tried.add(experiment)
            self._update(experiment)

    def _update(self, experiment: str) -> None:
        try:
            row = self._experiment_table.get(experiment)
            landscape = Landscape.open(self._located(row))
        except (Unknown, OSError, StoreUnavailable, DamagedLandscape, NotALandscape) as error:
            log.info("the verdict is not judged anew: %s", error, extra={"experiment": experiment})
            return
        if landscape.verdict is None:
            return
        values = verdict_columns(landscape.verdict) | judged_figures(landscape)
        with self._database.write() as connection:
            unchanged = experiments.c.id == experiment, experiments.c.run == row.run, experiments.c.state == "done"
            connection.execute(experiments.update().where(*unchanged).values(values))
