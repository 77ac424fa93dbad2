"""The list as a table: figures to sort by, tags and notes, and a trash."""

from __future__ import annotations

import json

import sqlalchemy as sa

SUITS = 5
_ADDED = {
    "dataset": "VARCHAR(400)",
    "model": "TEXT",
    "rise": "DOUBLE PRECISION",
    "barrier": "DOUBLE PRECISION",
    "control_barrier": "DOUBLE PRECISION",
    "zero_groups": "DOUBLE PRECISION",
    "accuracy": "DOUBLE PRECISION",
    "tags": "TEXT",
    "note": "TEXT",
    "trashed": "DOUBLE PRECISION",
}
_experiments = sa.table(
    "valley_experiments",
    *(sa.column(name) for name in ("id", "spec", "dataset", "model", "barrier", "control_barrier")),
)
_events = sa.table("valley_events", sa.column("id"), sa.column("experiment"), sa.column("kind"), sa.column("text"))


def apply(connection: sa.Connection) -> None:
    # Empty where a program of the version before adds an experiment: old and new ones work side by side in an upgrade.
    for name, kind in _ADDED.items():
        connection.execute(sa.text(f"ALTER TABLE valley_experiments ADD COLUMN {name} {kind}"))
    verdicts = {
        row.experiment: json.loads(row.text)
        for row in connection.execute(sa.select(_events).where(_events.c.kind == "verdict").order_by(_events.c.id))
    }
    for row in connection.execute(sa.select(_experiments.c.id, _experiments.c.spec)).all():
        spec = json.loads(row.spec)
        facts = spec.get("imported", spec)
        model = facts.get("model", "cnn")
        values = {
            "dataset": facts.get("dataset", "digits"),
            "model": model if isinstance(model, str) else " ".join([model["name"], *_options(model)]),
        }
        if (verdict := verdicts.get(row.id)) is not None:
            control = verdict.get("control") or {}
            values |= {
                "barrier": _number(verdict.get("line")),
                "control_barrier": _number(control.get("line")),
            }
        connection.execute(_experiments.update().where(_experiments.c.id == row.id).values(values))


def _options(model: dict[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in model.items() if key != "name"]


def _number(path: dict[str, object] | None) -> float | None:
    value = (path or {}).get("barrier")
    return float(value) if isinstance(value, int | float) else None
