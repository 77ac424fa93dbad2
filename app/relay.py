"""What a child tells about its task, on its way into the catalogue: seldom, and in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from app.child import Advance
from app.plan import Kind, Task, plane_tiles
from app.results import Judged, Result, SurfaceTile
from app.spec import Spec

_EVERY_SECONDS = 0.5


class Relay:
    """Collects progress of one task, and says when it is time to pass it on."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._share = 0.0
        self._curve: Mapping[str, Any] | None = None
        self._events: list[tuple[str, Mapping[str, Any]]] = []
        self._changed = False
        self._passed_on = time.monotonic()

    def hear(self, message: Advance) -> None:
        self._share = message.share
        self._changed = True
        details = message.details
        if "forecast" in details:
            self._events.append(("warning", {"minimum": self._task.subject, "message": details["forecast"]["text"]}))
        if "record" in details:
            record = {key: value for key, value in details["record"].items() if key != "layers"}
            about = {"minimum": self._task.subject, "epochs": details.get("epochs")}
            self._events.append(("epoch", about | record))
        elif self._task.kind is Kind.FIT:
            shown = {key: details[key] for key in ("epoch", "epochs", "loss") if key in details}
            self._curve = {"curve": self._task.subject, "share": message.share} | shown

    @property
    def due(self) -> bool:
        return self._changed and time.monotonic() - self._passed_on >= _EVERY_SECONDS

    def take(self) -> tuple[float, list[tuple[str, Mapping[str, Any]]]]:
        """The share that is done and the events since the last time."""
        events = self._events + ([] if self._curve is None else [("curve", self._curve)])
        self._events, self._curve, self._changed = [], None, False
        self._passed_on = time.monotonic()
        return self._share, events


def outcome(spec: Spec, task: Task, result: Result, seconds: float) -> list[tuple[str, Mapping[str, Any]]]:
    """The events that tell of a task's end; values of a tile go with them."""
    ended = {"task": task.id, "seconds": round(seconds, 3)}
    if isinstance(result, SurfaceTile):
        tile = plane_tiles(spec, task.subject)[task.index]
        values = {split: {"loss": result.loss[split], "error": result.error[split]} for split in result.loss}
        about = {"plane": task.subject, "index": task.index, "level": tile.level}
        return [("tile", ended | about | {"rows": tile.rows, "columns": tile.columns, "values": values})]
    if task.kind is Kind.FIT:
        return [("curve", {"curve": task.subject, "share": 1.0}), ("progress", ended)]
    if isinstance(result, Judged):
        return [("progress", ended | {"verdict": result.verdict["kind"]})]
    return [("progress", ended)]
