"""Upkeep: what cannot be removed is no reason not to start."""

from __future__ import annotations

from pathlib import Path

from app.experiments.spec import Spec
from app.runners.jobs import CONTROL, Jobs
from app.runners.upkeep import Upkeep
from app.storage.catalogue import Catalogue
from app.storage.database import Database
from app.storage.folders import Storage
from tests.app.cluster import TINY


def test_a_folder_that_cannot_be_removed_does_not_keep_a_service_from_starting(
    database: Database, tmp_path: Path
) -> None:
    catalogue, storage = Catalogue(database), Storage(tmp_path / "home")
    storage.prepare()
    with database.write() as connection:
        doomed = catalogue.add(connection, Spec.model_validate(TINY), key=None, priority=100).id
        catalogue.mark_deleted(connection, doomed)
    storage.experiment(doomed).mkdir()
    in_the_way = storage.home / "trash" / doomed
    (in_the_way / "something").mkdir(parents=True)
    jobs = Jobs(database, "api-1-0", CONTROL, print)
    upkeep = Upkeep(database, catalogue, jobs, storage, set)
    upkeep.start()
    upkeep.stop()
    assert storage.experiment(doomed).is_dir()
