"""`valley prune`: deletes what ended long ago, and nothing else."""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.app.commands.test_serve import call
from tests.app.servers import serving
from valleyscope.app.commands.admin import parse_age
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.tables import experiments


@pytest.mark.parametrize(("text", "age"), [("12h", timedelta(hours=12)), ("30d", timedelta(30)), ("2w", timedelta(14))])
def test_ages_are_hours_days_or_weeks(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["30", "d", "-3d", "1.5d", "3 months", "999999d"])
def test_another_age_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="12h, 30d or 8w"):
        parse_age(text)


def test_only_experiments_that_ended_before_the_age_are_deleted(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        old, older, young = (server.still(name=name) for name in ("old", "older", "young"))
        waiting = server.submit(name="waiting")
        for id, days in ((old, 40), (older, 50), (waiting, 60)):
            _age(server.home, id, days)
        shown = call(server, "prune", "--older-than", "30d", "--dry-run")
        assert [line.split()[0] for line in shown.stdout.splitlines()] == [older, old, "2"]
        assert "2 experiments would be deleted" in shown.stdout
        assert "0 experiments" in call(server, "prune", "--older-than", "30d", "--state", "done").stdout
        assert "1 experiments deleted" in call(server, "prune", "--older-than", "45d", "--state", "cancelled").stdout
        assert "1 experiments deleted" in call(server, "prune", "--older-than", "30d").stdout
        left = {row["id"] for row in server.client.get("/api/experiments").json()["items"]}
        assert left == {young, waiting}
        assert not server.directory(old).exists()


def _age(home: Path, id: str, days: float) -> None:
    """Let an experiment have ended long ago; one that has not ended was made long ago."""
    database = Database(f"sqlite:///{home / 'valley.db'}")
    moment = time.time() - days * 86_400
    with database.write() as connection:
        mine = experiments.update().where(experiments.c.id == id)
        connection.execute(mine.values(created=moment))
        connection.execute(mine.where(experiments.c.finished.is_not(None)).values(finished=moment))
    database.close()
