"""Read-only links: signed tokens, each of which opens one experiment until it expires or is revoked.

A token is `id.signature`: the id of a row, and HMAC-SHA256 of what the row says, by a key that only this row has. To
revoke a link is to delete its row.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import Unknown
from valleyscope.app.storage.ids import is_id, new_id
from valleyscope.app.storage.tables import shares

DAY: Final = 86_400.0
_KEY_BYTES = 32
_FORM = re.compile(r"([0-9a-f]{16})\.([\w-]{43})", re.ASCII)


class BadToken(PermissionError):
    """A token that opens nothing: it is not ours, was changed or revoked, or has expired."""


@dataclass(frozen=True)
class ShareRow:
    """A link to an experiment, with its token."""

    id: str
    experiment: str
    token: str
    created: datetime
    expires: datetime


class ShareTable:
    """All links. An expired one stays until the next link to its experiment is made."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, connection: sa.Connection, experiment: str, *, days: float) -> ShareRow:
        """Make a link to an experiment that exists."""
        now = time.time()
        connection.execute(shares.delete().where(shares.c.experiment == experiment, shares.c.expires <= now))
        insert = shares.insert().values(
            id=new_id(),
            experiment=experiment,
            key=secrets.token_bytes(_KEY_BYTES),
            created=now,
            expires=float(int(now + days * DAY)),
        )
        return _row(connection.execute(insert.returning(shares)).one())

    def list(self, experiment: str) -> list[ShareRow]:
        """The links to an experiment that have not expired, newest first."""
        valid = shares.c.experiment == experiment, shares.c.expires > time.time()
        with self._database.read() as connection:
            rows = connection.execute(sa.select(shares).where(*valid).order_by(shares.c.id.desc()))
            return [_row(row) for row in rows]

    def remove(self, connection: sa.Connection, experiment: str, share: str | None = None) -> None:
        """Revoke one link, or all links to an experiment."""
        chosen = [shares.c.experiment == experiment, *([] if share is None else [shares.c.id == share])]
        found = is_id(share or experiment) and connection.execute(shares.delete().where(*chosen)).rowcount
        if share is not None and not found:
            raise Unknown(f"experiment {experiment} has no link {share!r}")

    def open(self, token: str) -> ShareRow:
        """The link of a token; raises BadToken."""
        form = _FORM.fullmatch(token)
        row = None
        if form is not None:
            with self._database.read() as connection:
                row = connection.execute(sa.select(shares).where(shares.c.id == form[1])).one_or_none()
        if form is None or row is None or not hmac.compare_digest(form[2], _signature(row)):
            raise BadToken("this link is not valid, or was revoked: ask for a new one")
        if row.expires <= time.time():
            until = datetime.fromtimestamp(row.expires, UTC)
            raise BadToken(f"this link expired on {until:%Y-%m-%d at %H:%M} UTC: ask for a new one")
        return _row(row)


def _signature(row: Any) -> str:
    text = f"{row.id}.{row.experiment}.{row.expires:.0f}"
    digest = hmac.new(row.key, text.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _row(row: Any) -> ShareRow:
    return ShareRow(
        id=row.id,
        experiment=row.experiment,
        token=f"{row.id}.{_signature(row)}",
        created=datetime.fromtimestamp(row.created, UTC),
        expires=datetime.fromtimestamp(row.expires, UTC),
    )
