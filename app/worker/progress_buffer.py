"""Progress of a task on its way from the child process into the tables: collected, and saved in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from valleyscope.app.experiments.plan import Kind, Task, plane_tiles
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import EstimatedPlane, Judged, Result, SurfaceTile
from valleyscope.app.worker.child_process import Advance

_SAVE_SECONDS = 0.5
_MOST_EVENTS = 1000  # of one task, however long

Events = list[tuple[str, Mapping[str, Any]]]


class ProgressBuffer:
    """Collects progress of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._share = 0.0
        self._latest_share = -1.0
        self._latest: tuple[str, Mapping[str, Any]] | None = None
        """An event of which only the newest counts."""
        self._events: Events = []
        self._changed = False
        self._flushed = time.monotonic()

    def add(self, message: Advance) -> None:
        self._share = message.share
        self._changed = True
        details = message.details
        if "forecast" in details:
            self._add_forecast(details["forecast"])
        if self.task.kind is Kind.FIT:
            for record in details.get("records", ()):
                self._add_curve_epoch(record, details["epochs"])
            shown = {key: details[key] for key in ("epoch", "epochs", "loss") if key in details}
            self._latest = ("curve", {"curve": self.task.subject, "share": message.share} | shown)
        elif "products" in details:
            self._latest = ("progress", {"working": self.task.id, "share": message.share} | dict(details))
        elif "record" in details:
            self._add_epoch(details["record"], details["epochs"])

    @property
    def due(self) -> bool:
        """Whether it is time to flush."""
        return self._changed and time.monotonic() - self._flushed >= _SAVE_SECONDS

    def flush(self) -> tuple[float, Events]:
        """The share that is done, and the events since the last flush."""
        events, latest = self._events, self._latest
        # A share may fall: how many products a search takes is known better as it goes on.
        if latest is not None and abs(self._share - self._latest_share) >= 1 / _MOST_EVENTS:
            events.append(latest)
            self._latest_share = self._share
        self._events, self._latest, self._changed = [], None, False
        self._flushed = time.monotonic()
        return self._share, events

    def _add_forecast(self, forecast: Mapping[str, Any]) -> None:
        prunes = bool(forecast["reach"] >= forecast["smallest"])
        warning = {"minimum": self.task.subject, "message": forecast["text"], "harmless": prunes}
        self._events.append(("warning", warning))

    def _add_curve_epoch(self, record: Mapping[str, Any], epochs: int) -> None:
        """The mean loss of a complete epoch of a fit; the first report of a resumed fit has all of them."""
        if _is_kept(record["epoch"], epochs):
            shown = {"share": record["epoch"] / epochs, "epochs": epochs, "record": record}
            self._events.append(("curve", {"curve": self.task.subject} | shown))

    def _add_epoch(self, record: Mapping[str, Any], epochs: int) -> None:
        if _is_kept(record["epoch"], epochs):
            values = {key: value for key, value in record.items() if key != "layers"}
            self._events.append(("epoch", {"minimum": self.task.subject, "epochs": epochs} | values))


def _is_kept(epoch: int, epochs: int) -> bool:
    """Whether an epoch gets an event of its own: all of them, unless there are very many."""
    return epoch % max(1, epochs // _MOST_EVENTS) == 0 or epoch == epochs


def outcome_events(spec: Spec, task: Task, result: Result, seconds: float) -> Events:
    """The events of a task's end, with the values of a tile."""
    ended = {"task": task.id, "seconds": round(seconds, 3)}
    if isinstance(result, SurfaceTile):
        tile = plane_tiles(spec, task.subject)[task.index]
        values = {split: {"loss": result.loss[split], "error": result.error[split]} for split in result.loss}
        about = {"plane": task.subject, "index": task.index, "level": tile.level}
        return [("tile", ended | about | {"rows": tile.rows, "columns": tile.columns, "values": values})]
    if isinstance(result, EstimatedPlane) and result.grids:
        return [("tile", ended | _picture(task, result))]
    if task.kind is Kind.FIT:
        return [("curve", {"curve": task.subject, "share": 1.0}), ("progress", ended)]
    if isinstance(result, Judged):
        return [("progress", ended | {"verdict": result.verdict["kind"]})]
    return [("progress", ended)]


def _picture(task: Task, result: EstimatedPlane) -> dict[str, Any]:
    """The values of an estimated plane that are known, as those of a tile."""
    rows, columns = np.nonzero(~np.isnan(next(iter(result.grids.values())).loss))
    names = ("loss", "error", "loss_error", "error_error")
    values = {
        split: {name: grid[name][rows, columns] for name in names if not np.isnan(grid[name]).all()}
        for split, grid in result.grids.items()
    }
    about = {"plane": task.subject, "index": task.index, "level": task.index, "estimate": result.about}
    return about | {"rows": rows, "columns": columns, "values": values}
