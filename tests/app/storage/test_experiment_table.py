"""The table of experiments, events and migrations, in SQLite and in Postgres."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from tests.app.databases import postgres_url
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.queue import LARGEST_PRIORITY, task_priority
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.event_table import (
    EventRow,
    MinimumWarning,
    append_events,
    newest_event,
    prune_old_events,
    prune_progress,
    read_all_events,
    read_events,
    warnings_of,
)
from valleyscope.app.storage.experiment_table import BadCursor, ExperimentTable, KeyReused, Unknown, mark_running
from valleyscope.app.storage.ids import is_id, new_id
from valleyscope.app.storage.migrations import NewerDatabase, migrate, steps
from valleyscope.app.storage.tables import events, experiments, metadata
from valleyscope.landscape.json_encoding import to_json

SPEC = Spec.model_validate({"name": "one", "minima": {"sgd": {}}})


def add(database: Database, spec: Spec = SPEC, key: str | None = None) -> str:
    with database.write() as connection:
        return ExperimentTable(database).add(connection, spec, key=key, priority=100).id


def tell(database: Database, experiment: str, *numbers: int) -> None:
    with database.write() as connection:
        append_events(connection, experiment, [("progress", {"number": number}) for number in numbers])


def test_migrations_build_the_described_tables(database: Database) -> None:
    inspector = sa.inspect(database.engine)
    for table in metadata.tables.values():
        found = {column["name"]: column["nullable"] for column in inspector.get_columns(table.name)}
        assert found == {column.name: bool(column.nullable) for column in table.columns}
        assert set(inspector.get_pk_constraint(table.name)["constrained_columns"]) == {
            column.name for column in table.primary_key
        }
        indexes = {index["name"] for index in inspector.get_indexes(table.name) if not index["unique"]}
        assert indexes == {index.name for index in table.indexes}


def test_migrating_again_changes_nothing(database: Database) -> None:
    experiment = add(database)
    assert migrate(database) == max(steps())
    assert ExperimentTable(database).get(experiment).name == "one"


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    with database.write() as connection:
        connection.execute(sa.text("INSERT INTO valley_version (version) VALUES (9999)"))
    with pytest.raises(NewerDatabase, match="9999"):
        migrate(database)


def test_many_processes_may_start_on_an_empty_database_at_once(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'new.db'}", postgres_url()):
        failures: list[BaseException] = []

        def start(url: str = url, failures: list[BaseException] = failures) -> None:
            try:
                found = Database(url)
                with found.exclusive("start"):
                    migrate(found)
                found.close()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="must name a file"):
        Database("sqlite://")


def test_an_experiment_comes_back_as_it_was_submitted(database: Database) -> None:
    row = ExperimentTable(database).get(add(database, key="k"))
    assert (row.state, row.stage, row.run, row.progress, row.key) == ("queued", "queued", 1, 0.0, "k")
    assert Spec.model_validate(row.spec) == SPEC
    assert abs(row.created.timestamp() - time.time()) < 60


def test_an_experiment_with_nothing_left_to_compute_has_a_start_time(database: Database) -> None:
    experiment_table = ExperimentTable(database)
    experiment = add(database)
    with database.write() as connection:
        experiment_table.end(connection, experiment, "done")
    row = experiment_table.get(experiment)
    assert row.started is not None
    assert row.finished is not None
    assert row.created <= row.started <= row.finished
    again = add(database)
    with database.write() as connection:
        experiment_table.end(connection, again, "cancelled")
    assert experiment_table.get(again).started is None


def test_an_invalid_id_is_unknown(database: Database) -> None:
    for text in ("", "../../etc", "0" * 16, "x" * 16, "' or 1=1"):
        with pytest.raises(Unknown, match="no experiment"):
            ExperimentTable(database).get(text)


def test_a_key_belongs_to_one_spec(database: Database) -> None:
    experiment = add(database, key="once")
    experiment_table = ExperimentTable(database)
    with database.read() as connection:
        known = experiment_table.find_by_key(connection, "once", SPEC)
        assert known is not None
        assert known.id == experiment
        assert experiment_table.find_by_key(connection, "other", SPEC) is None
        with pytest.raises(KeyReused, match="once"):
            experiment_table.find_by_key(connection, "once", SPEC.model_copy(update={"name": "two"}))
    with pytest.raises(IntegrityError):
        add(database, key="once")


def test_pages_show_every_experiment_once_and_the_newest_first(database: Database) -> None:
    added = [add(database, SPEC.model_copy(update={"name": f"n{number}"})) for number in range(7)]
    experiment_table = ExperimentTable(database)
    seen: list[str] = []
    after = None
    while True:
        page = experiment_table.list(after=after, limit=3)
        seen += [row.id for row in page.items]
        after = page.after
        if after is None:
            break
    assert seen == added[::-1]


def test_a_list_can_be_filtered(database: Database) -> None:
    add(database, SPEC.model_copy(update={"name": "100% done"}))
    add(database, SPEC.model_copy(update={"name": "Hundred"}))
    ended = add(database, SPEC.model_copy(update={"name": "ended"}))
    experiment_table = ExperimentTable(database)
    with database.write() as connection:
        experiment_table.end(connection, ended, "failed", error="why")
    assert [row.name for row in experiment_table.list(search="%").items] == ["100% done"]
    assert [row.name for row in experiment_table.list(search="hUND").items] == ["Hundred"]
    assert [row.name for row in experiment_table.list(state="failed").items] == ["ended"]
    assert experiment_table.count() == {"queued": 2, "running": 0, "done": 0, "failed": 1, "cancelled": 0}


@pytest.mark.parametrize("cursor", ["", "abc", "////////", "é", "A" * 400, "gAAAAAAAAAA"])
def test_an_invalid_cursor_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(BadCursor, match="not a valid cursor"):
        ExperimentTable(database).list(after=cursor)


def test_ten_thousand_experiments_are_listed_at_once(database: Database) -> None:
    first = add(database)
    with database.write() as connection:
        row = connection.execute(sa.select(experiments).where(experiments.c.id == first)).one()._asdict()
        del row["number"]
        states = ("done", "failed", "cancelled", "queued")
        rows = [row | {"id": f"{n:016x}", "name": f"n{n}", "state": states[n % 4]} for n in range(10_000)]
        connection.execute(experiments.insert(), rows)
    experiment_table = ExperimentTable(database)
    for options in ({}, {"state": "failed"}, {"search": "n5"}):
        seconds = []
        for _ in range(5):  # the best counts: other threads of this process may be at work, too
            began = time.thread_time()
            assert len(experiment_table.list(**options).items) == 50  # type: ignore[arg-type]
            seconds.append(time.thread_time() - began)
        assert min(seconds) < 0.05


def test_ids_sort_by_creation_time() -> None:
    born = [new_id() for _ in range(5000)]
    assert born == sorted(set(born))
    assert all(map(is_id, born))


def test_priorities_put_wishes_before_age_and_age_before_stage() -> None:
    order = [
        task_priority(wish, number, stage)
        for wish in (0, 100, LARGEST_PRIORITY)
        for number in (1, 2)
        for stage in (10, 60)
    ]
    assert order == sorted(set(order))
    assert min(order) >= 1
    assert max(order) < 2**31


def test_nan_and_infinity_become_what_javascript_reads() -> None:
    values = {"loss": np.array([1.5, np.inf, -np.inf, np.nan]), "count": np.int64(3), "pair": (1, float("inf"))}
    text = json.dumps(to_json(values, nan="NaN"), allow_nan=False)
    assert json.loads(text) == {"loss": [1.5, "Infinity", "-Infinity", "NaN"], "count": 3, "pair": [1, "Infinity"]}


def test_a_reader_misses_no_event_of_many_writers(database: Database) -> None:
    experiment = add(database)
    with database.read() as connection:
        last = newest_event(connection)
    seen: list[int] = []

    def write(start: int) -> None:
        for number in range(start, start + 40):
            tell(database, experiment, number)

    threads = [threading.Thread(target=write, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 240
    while len(seen) < 160 and time.monotonic() < deadline:
        with database.read() as connection:
            found = read_all_events(connection, last, 7)
        last = found[-1].id if found else last
        seen += [row.data["number"] for row in found]
    for thread in threads:
        thread.join()
    assert sorted(seen) == [1000 * writer + number for writer in range(4) for number in range(40)]


def test_an_event_gets_its_number_when_all_lower_ones_can_be_seen(database: Database) -> None:
    experiment = add(database)
    other = threading.Thread(target=tell, args=(database, experiment, 2))
    with database.write() as connection:
        append_events(connection, experiment, [("progress", {"number": 0}), ("progress", {"number": 1})])
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join(120)
    with database.read() as connection:
        found = read_events(connection, experiment, 0, 10)
    assert [row.data["number"] for row in found if row.kind == "progress"] == [0, 1, 2]


def test_a_hundred_watchers_see_every_event_in_order(database: Database) -> None:
    one, two = add(database), add(database)
    event_feed = EventFeed(database, interval=0.02)
    event_feed.start()

    async def watch(experiment: str, count: int) -> list[int]:
        seen: list[EventRow] = []
        while len(seen) < count:
            seen += await event_feed.wait_async(experiment, seen[-1].id if seen else 0, 20.0)
        return [row.data["number"] for row in seen if row.kind == "progress"]

    async def main() -> list[list[int]]:
        watchers = [asyncio.create_task(watch(one if n % 2 else two, 31)) for n in range(100)]
        for number in range(30):
            await asyncio.to_thread(tell, database, one, number)
            await asyncio.to_thread(tell, database, two, -number)
        return await asyncio.gather(*watchers)

    found = asyncio.run(main())
    event_feed.stop()
    assert found[1::2] == [list(range(30))] * 50
    assert found[0::2] == [[-number for number in range(30)]] * 50


def test_a_watcher_in_a_thread_wakes_up_for_events_and_times_out_without(database: Database) -> None:
    experiment = add(database)
    event_feed = EventFeed(database, interval=0.02)
    event_feed.start()
    last = event_feed.wait(experiment, 0, 60.0)[-1].id
    assert event_feed.wait(experiment, last, 0.05) == []
    threading.Timer(0.1, tell, (database, experiment, 5)).start()
    assert [row.data for row in event_feed.wait(experiment, last, 60.0)] == [{"number": 5}]
    event_feed.stop()
    assert event_feed.wait(experiment, last + 1000, 30.0) == []


def test_warnings_are_kept_once_each_without_harmless_ones(database: Database) -> None:
    experiment = add(database)
    weak = {"minimum": "altsdp", "message": "nothing will be pruned", "harmless": False}
    strong = {"minimum": "other", "message": "G will reach 2", "harmless": True}
    whole = {"message": "it is computed again"}
    with database.write() as connection:
        append_events(connection, experiment, [("warning", said) for said in (weak, strong, whole, weak)])
        prune_old_events(connection, [experiment])
        expected = [MinimumWarning("altsdp", "nothing will be pruned"), MinimumWarning(None, "it is computed again")]
        assert warnings_of(connection, experiment) == expected


def test_progress_events_are_removed_at_the_end_and_values_later(database: Database) -> None:
    experiment = add(database)
    with database.write() as connection:
        append_events(
            connection, experiment, [("progress", {}), ("tile", {}), ("epoch", {}), ("verdict", {"kind": "x"})]
        )
        prune_progress(connection, experiment)
        assert [row.kind for row in read_events(connection, experiment, 0, 9)] == ["state", "tile", "epoch", "verdict"]
        assert prune_old_events(connection, [experiment]) == 2
        assert [row.kind for row in read_events(connection, experiment, 0, 9)] == ["state", "verdict"]


def test_event_ids_are_never_reused(database: Database) -> None:
    experiment = add(database)
    tell(database, experiment, 1)
    with database.write() as connection:
        last = newest_event(connection)
        connection.execute(events.delete())
    tell(database, experiment, 2)
    with database.read() as connection:
        assert newest_event(connection) == last + 1


def test_waiting_for_the_exclusive_lock_does_not_block_index_creation() -> None:
    """DBOS makes indexes so, and waited for ever for the workers that started at the same time on an empty database."""
    first, second = (Database(url) for url in [postgres_url()] * 2)
    entered = threading.Event()

    def wait() -> None:
        with second.exclusive("start"):
            entered.set()

    waiting = threading.Thread(target=wait, daemon=True)
    with first.exclusive("start"):
        migrate(first)
        waiting.start()
        time.sleep(0.5)  # nothing tells when it waits; too short a time only makes the test weaker
        with first.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("SET statement_timeout = '60s'"))
            connection.execute(sa.text("CREATE INDEX CONCURRENTLY meanwhile ON valley_events (at)"))
        assert not entered.is_set()
    assert entered.wait(120)
    waiting.join()
    first.close()
    second.close()


def test_the_time_before_a_retry_does_not_count_as_active(database: Database) -> None:
    table, experiment = ExperimentTable(database), add(database)
    assert table.get(experiment).active_seconds is None
    for _ in range(2):
        with database.write() as connection:
            mark_running(connection, experiment, "minima")
            table.end(connection, experiment, "cancelled")
            table.start_next_run(connection, experiment)
    with database.write() as connection:
        kept = connection.execute(
            sa.select(events.c.id).where(events.c.kind == "state").order_by(events.c.id)
        ).scalars()
        # queued, running, cancelled, queued, running, cancelled, queued
        for id, at in zip(kept, (0, 10, 15, 1000, 1010, 1012, 5000), strict=True):
            connection.execute(events.update().where(events.c.id == id).values(at=float(at)))
    assert table.get(experiment).active_seconds == 7.0
    assert table.list().items[0].active_seconds == 7.0


@pytest.mark.parametrize("sort", ["rise", "-rise", "accuracy", "-state", "verdict_kind", "-dataset", "-active_seconds"])
def test_every_order_shows_every_experiment_once(database: Database, sort: str) -> None:
    values = [0.3, None, 0.1, 0.3, None, -1e-9, 0.2]
    kinds = ["separate", None, "level valley", "undecided", None, "one basin, sloping", "separate"]
    added = [add(database) for _ in values]
    with database.write() as connection:
        for id, value, kind in zip(added, values, kinds, strict=True):
            finished = None if value is None else 100.0 + value
            columns = {"rise": value, "accuracy": value, "verdict_kind": kind, "started": 100.0, "finished": finished}
            connection.execute(experiments.update().where(experiments.c.id == id).values(columns))
    table = ExperimentTable(database)
    seen: list[str] = []
    after = None
    while True:
        page = table.list(sort=sort, after=after, limit=2)
        seen += [row.id for row in page.items]
        after = page.after
        if after is None:
            break
    assert sorted(seen) == added
    if sort in ("rise", "-rise"):
        found = [values[added.index(id)] for id in seen]
        known = [value for value in found if value is not None]
        assert known == sorted(known, reverse=sort.startswith("-"))
        assert found[len(known) :] == [None, None], "those without a value come last"


def test_the_trash_is_emptied_by_age(database: Database) -> None:
    old, young = add(database), add(database)
    table = ExperimentTable(database)
    with database.write() as connection:
        for id in (old, young):
            table.move_to_trash(connection, id)
        connection.execute(experiments.update().where(experiments.c.id == old).values(trashed=time.time() - 100))
        table.empty_trash(connection, seconds=50)
    assert [row.id for row in table.list(trash=True).items] == [young]
    with database.write() as connection:
        with pytest.raises(Unknown, match="in the trash"):
            table.restore(connection, old)
        assert table.restore(connection, young).id == young
