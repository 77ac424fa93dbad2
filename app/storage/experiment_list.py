"""Pages of the list of experiments: filters, sort keys, and cursors that go on after the last row of a page."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import sqlalchemy as sa

from valleyscope.app.storage.tables import experiments

SortKey = Literal[
    "created",
    "name",
    "state",
    "verdict_kind",
    "rise",
    "barrier",
    "control_barrier",
    "zero_groups",
    "accuracy",
    "dataset",
    "model",
    "active_seconds",
]
SORT_PATTERN: Final = rf"^-?({'|'.join(get_args(SortKey))})$"
NEWEST_FIRST: Final = "-created"
_STATES = ("running", "queued", "failed", "cancelled", "done")
_KINDS = ("level valley", "one basin, sloping", "one basin", "joined by a curve only", "separate", "undecided")
_columns = experiments.c
_EXPRESSIONS: Final[dict[str, sa.ColumnElement[Any]]] = {
    "created": _columns.number,
    "name": sa.func.lower(_columns.name),
    "state": sa.case({state: number for number, state in enumerate(_STATES)}, value=_columns.state),
    "verdict_kind": sa.case({kind: number for number, kind in enumerate(_KINDS)}, value=_columns.verdict_kind),
    "dataset": sa.func.lower(_columns.dataset),
    "model": sa.func.lower(_columns.model),
    "active_seconds": _columns.finished - _columns.started,
    **{name: _columns[name] for name in ("rise", "barrier", "control_barrier", "zero_groups", "accuracy")},
}
_TEXTS = ("name", "dataset", "model")


class BadCursor(ValueError):
    """The cursor is not one that this service returned for this order."""


@dataclass(frozen=True)
class Filters:
    """Which experiments to list; `search` matches any part of a name, a tag or a note."""

    state: str | None = None
    search: str | None = None
    tag: str | None = None
    trash: bool = False
    ids: tuple[str, ...] | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        found: list[sa.ColumnElement[bool]] = [_columns.deleted.is_(False)]
        found.append(_columns.trashed.is_not(None) if self.trash else _columns.trashed.is_(None))
        if self.ids is not None:
            found.append(_columns.id.in_(self.ids))
        if self.state is not None:
            found.append(_columns.state == self.state)
        if self.search:
            searched = (_columns.name, _columns.tags, _columns.note)
            found.append(sa.or_(*(column.icontains(self.search, autoescape=True) for column in searched)))
        if self.tag:
            found.append(_columns.tags.icontains(f"\n{self.tag}\n", autoescape=True))
        return found


def page_query(filters: Filters, sort: str, after: str | None, limit: int) -> sa.Select[Any]:
    """The rows of a page, each with its `sort_value`. Rows without a value come last, equal ones newest first."""
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    key, number = _EXPRESSIONS[name], _columns.number
    query = sa.select(experiments, key.label("sort_value")).where(*filters.conditions())
    if name == "created":
        if after is not None:
            last = _read_cursor(after, sort)[1]
            query = query.where(number < last if descending else number > last)
        return query.order_by(number.desc() if descending else number).limit(limit)
    if after is not None:
        value, last = _read_cursor(after, sort)
        if value is None:
            query = query.where(key.is_(None), number < last)
        else:
            beyond = key < value if descending else key > value
            query = query.where(sa.or_(beyond, sa.and_(key == value, number < last), key.is_(None)))
    return query.order_by(key.is_(None), key.desc() if descending else key, number.desc()).limit(limit)


def cursor_after(row: Any, sort: str) -> str:
    """The cursor of the page that follows a row."""
    value = None if sort.endswith("created") else row.sort_value
    content = json.dumps([sort, value, row.number], ensure_ascii=True, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _read_cursor(text: str, sort: str) -> tuple[Any, int]:
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        made_for, value, number = json.loads(content)
        kind = str if sort.removeprefix("-") in _TEXTS else float
        value = value if value is None else _checked(value, kind)
        known = made_for == sort and type(number) is int and 0 <= number < 2**63
    except (ValueError, TypeError, OverflowError, RecursionError):
        known = False
    if not known:
        raise BadCursor("is not a valid cursor: pass `next` from the previous page, with the same `sort`")
    return value, number


def _checked(value: Any, kind: type[str] | type[float]) -> Any:
    if kind is str:
        if not isinstance(value, str) or "\x00" in value:
            raise ValueError(value)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)
