"""Entries of the gallery as experiments that are done: the same as uploaded landscapes, but in no table."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.gallery import find_entry, gallery, is_gallery_id
from valleyscope.app.experiments.judged_figures import judged_figures
from valleyscope.app.experiments.landscape_import import imported_spec
from valleyscope.app.storage.experiment_table import ExperimentRow, Unknown, WrongState, verdict_columns


@cache
def gallery_row(id: str) -> ExperimentRow:
    """An entry of the gallery by its id, such as gallery-demo."""
    entry = find_entry(id)
    if entry is None or entry.id != id:
        raise Unknown(f"there is no entry {id!r} in the gallery")
    landscape = gallery(entry.name)
    landscape.name = entry.title
    made = datetime.fromisoformat(landscape.created)
    columns: dict[str, Any] = {**verdict_columns(landscape.verdict or {}), **judged_figures(landscape)}
    return ExperimentRow(
        id=id,
        number=0,
        name=entry.title,
        state="done",
        stage="done",
        spec=imported_spec(landscape, [LANDSCAPE]),
        key=None,
        priority=0,
        run=1,
        created=made,
        started=None,
        finished=made,
        progress=1.0,
        seconds_left=None,
        error=None,
        tags=(),
        note=entry.shows,
        **columns,
    )


def require_own(id: str) -> None:
    """Raise WrongState for an entry of the gallery, which cannot be changed."""
    if is_gallery_id(id):
        gallery_row(id)
        raise WrongState(f"{id} is part of the gallery, which cannot be changed: vary it to run your own")
