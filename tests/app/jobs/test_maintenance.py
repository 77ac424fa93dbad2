"""Maintenance: a service starts also if files cannot be deleted, and reports do not grow without bound."""

from __future__ import annotations

from pathlib import Path

from dbos import DBOS

from tests.app.cluster import TINY
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.maintenance import KEEP_REPORTS, Maintenance
from valleyscope.app.jobs.queue import CONTROL, JobQueue
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events, read_events
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.tables import experiments


def test_a_folder_that_cannot_be_removed_does_not_keep_a_service_from_starting(
    database: Database, tmp_path: Path
) -> None:
    experiment_table, storage = ExperimentTable(database), Home(tmp_path / "home")
    storage.prepare()
    with database.write() as connection:
        doomed = experiment_table.add(connection, Spec.model_validate(TINY), key=None, priority=100).id
        experiment_table.mark_deleted(connection, doomed)
    storage.experiment(doomed).mkdir()
    (storage.path / "trash").rmdir()
    (storage.path / "trash").write_text("in the way")
    DBOS.migrate(database.engine.url.render_as_string(hide_password=False))
    jobs = JobQueue(database, "api-1-0", CONTROL, print)
    jobs.connect()
    maintenance = Maintenance(database, experiment_table, jobs, storage, open_store(None, storage), set)
    maintenance.start()
    maintenance.stop()
    jobs.stop()
    assert storage.experiment(doomed).is_dir()


def test_only_the_latest_reports_of_a_running_experiment_stay(database: Database, tmp_path: Path) -> None:
    experiment_table = ExperimentTable(database)
    with database.write() as connection:
        row = experiment_table.add(connection, Spec.model_validate(TINY), key=None, priority=100)
        connection.execute(experiments.update().values(state="running"))
        for number in range(KEEP_REPORTS + 50):
            append_events(connection, row.id, [("progress", {"progress": number}), ("epoch", {"epoch": number})])
    storage = Home(tmp_path)
    jobs = JobQueue(database, "api-1-0", CONTROL, print)
    maintenance = Maintenance(database, experiment_table, jobs, storage, open_store(None, storage), lambda: {row.id})
    for _ in range(2):
        maintenance.prune_reports()
        with database.read() as connection:
            kept = read_events(connection, row.id, 0, 10_000)
        told = [event.data["progress"] for event in kept if event.kind == "progress"]
        assert told == list(range(50, KEEP_REPORTS + 50))
        assert len(kept) == 1 + KEEP_REPORTS + KEEP_REPORTS + 50
