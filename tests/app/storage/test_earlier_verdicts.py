"""The list of a service that was upgraded: its verdicts of earlier versions are judged anew from their landscapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.landscape.analysis.test_earlier_verdict import T, earlier, opened
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.earlier_verdicts import EarlierVerdicts
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.tables import experiments


def test_verdicts_without_a_rise_are_judged_anew_once(database: Database, tmp_path: Path) -> None:
    table, asked = ExperimentTable(database), []
    opened(tmp_path, earlier(), 0.007 + 0.324 * T)
    with database.write() as connection:
        ids = [
            table.add(connection, Spec.model_validate({"name": name, "minima": {"sgd": {}}}), key=None, priority=1).id
            for name in ("there", "lost")
        ]
        old = {"state": "done", "verdict_kind": "one basin", "sentence": "One basin.", "barrier": 0.0}
        connection.execute(experiments.update().values(old))

    def located(row: object) -> Path:
        asked.append(row.id)  # type: ignore[attr-defined]
        return tmp_path / "landscape.h5" if row.name == "there" else tmp_path / "lost.h5"  # type: ignore[attr-defined]

    earlier_verdicts = EarlierVerdicts(database, table, located)
    for _ in range(2):
        earlier_verdicts.run_if_due()
    assert sorted(asked) == sorted(ids)
    there, lost = (table.get(id) for id in ids)
    assert there.verdict_kind == "one basin, sloping"
    assert there.rise == pytest.approx(0.324)
    assert there.sentence is not None
    assert there.sentence.startswith("One basin, sloping.")
    assert there.accuracy is not None
    assert (lost.verdict_kind, lost.rise) == ("one basin", None)
