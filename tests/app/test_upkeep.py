"""Upkeep: what cannot be removed is no reason not to start, and reports do not grow without bound."""

from __future__ import annotations

from pathlib import Path

from dbos import DBOS

from app.experiments.spec import Spec
from app.runners.jobs import CONTROL, Jobs
from app.runners.upkeep import KEEP_REPORTS, Upkeep
from app.storage.catalogue import Catalogue
from app.storage.database import Database
from app.storage.events import read_events, record
from app.storage.folders import Storage
from app.storage.store import open_store
from app.storage.tables import experiments
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
    (storage.home / "trash").rmdir()
    (storage.home / "trash").write_text("in the way")
    DBOS.migrate(database.engine.url.render_as_string(hide_password=False))
    jobs = Jobs(database, "api-1-0", CONTROL, print)
    jobs.connect()
    upkeep = Upkeep(database, catalogue, jobs, storage, open_store(None, storage), set)
    upkeep.start()
    upkeep.stop()
    jobs.client.destroy()
    assert storage.experiment(doomed).is_dir()


def test_only_the_latest_reports_of_a_running_experiment_stay(database: Database, tmp_path: Path) -> None:
    catalogue = Catalogue(database)
    with database.write() as connection:
        row = catalogue.add(connection, Spec.model_validate(TINY), key=None, priority=100)
        connection.execute(experiments.update().values(state="running"))
        for number in range(KEEP_REPORTS + 50):
            record(connection, row.id, [("progress", {"progress": number}), ("epoch", {"epoch": number})])
    storage = Storage(tmp_path)
    jobs = Jobs(database, "api-1-0", CONTROL, print)
    upkeep = Upkeep(database, catalogue, jobs, storage, open_store(None, storage), lambda: {row.id})
    for _ in range(2):
        upkeep.forget_reports()
        with database.read() as connection:
            kept = read_events(connection, row.id, 0, 10_000)
        told = [event.data["progress"] for event in kept if event.kind == "progress"]
        assert told == list(range(50, KEEP_REPORTS + 50))
        assert len(kept) == 1 + KEEP_REPORTS + KEEP_REPORTS + 50
