"""How long experiments have been running, without the pauses between a cancel or failure and a retry."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from valleyscope.app.storage.tables import events


def active_seconds(connection: sa.Connection, ids: Sequence[str]) -> dict[str, float]:
    """The sum of the runs of each experiment, by the events that began and ended them."""
    if not ids:
        return {}
    chosen = sa.select(events.c.experiment, events.c.at, events.c.text).where(
        events.c.experiment.in_(ids), events.c.kind == "state"
    )
    states: dict[str, list[tuple[float, bool]]] = {}
    for experiment, at, text in connection.execute(chosen.order_by(events.c.id)):
        states.setdefault(experiment, []).append((at, json.loads(text)["state"] == "running"))
    return {experiment: running_time(found, time.time()) for experiment, found in states.items()}


def running_time(states: Iterable[tuple[float, bool]], now: float) -> float:
    """The seconds within which an experiment ran, from the times at which it was seen to run or not.

    >>> running_time([(0, False), (10, True), (15, False), (900, False), (901, True), (903, False)], now=1000)
    7.0
    """
    total, began = 0.0, None
    for at, running in (*states, (now, False)):
        if running and began is None:
            began = at
        elif not running and began is not None:
            total += max(0.0, at - began)
            began = None
    return total
