"""Changes of the catalogue's tables, numbered, each applied once and for all.

A step is a module `step_NNNN` with `apply(connection)`. It describes the tables by itself, as they were then, since
`valleyscope.app.storage.tables` describes them as they are now. A published step is never edited.

Processes of two versions work side by side while a release is rolled out. A step that older programs can live with (a
new table, a column with a default) says so by `SUITS = n`: programs whose last step is n or later go on with the
tables as they are after this one. Any other step locks out all programs that do not know it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import sqlalchemy as sa

from valleyscope.app.storage.database import Database

_VERSION = sa.Table(
    "valley_version",
    sa.MetaData(),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("suits", sa.Integer, nullable=True),
)
_PREFIX = "step_"


class NewerDatabase(ValueError):
    """The database was written by a newer version of the program."""


@dataclass(frozen=True)
class Step:
    """A change of the tables; `suits` is the last step of the oldest program that can go on after it."""

    apply: Callable[[sa.Connection], None]
    suits: int


def steps() -> dict[int, Step]:
    """All steps by number, in order."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith(_PREFIX))
    found = {int(name.removeprefix(_PREFIX)): import_module(f"{__name__}.{name}") for name in names}
    return {number: Step(module.apply, getattr(module, "SUITS", number)) for number, module in found.items()}


@dataclass(frozen=True)
class Version:
    """Of the tables that are there; `suits` is the oldest program that can go on with them."""

    version: int
    suits: int


def found_version(connection: sa.Connection) -> Version | None:
    """The version of the tables, None where there are none; nothing is changed."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    known = {column["name"] for column in sa.inspect(connection).get_columns(_VERSION.name)}
    suits = sa.func.coalesce(_VERSION.c.suits, _VERSION.c.version) if "suits" in known else _VERSION.c.version
    found = connection.execute(sa.select(sa.func.max(_VERSION.c.version), sa.func.max(suits))).one()
    return None if found[0] is None else Version(int(found[0]), int(found[1]))


def migrate(database: Database) -> int:
    """Bring the tables up to date; returns their version. Call it inside `database.alone`."""
    known = steps()
    with database.write(durable=True) as connection:
        _prepare(connection)
        found = found_version(connection) or Version(0, 0)
        version = found.version
        if version > max(known):
            if found.suits <= max(known):
                return version
            raise NewerDatabase(
                f"the database has version {version}, this program knows {max(known)}: upgrade valleyscope"
            )
        for number, step in known.items():
            if number > version:
                step.apply(connection)
                connection.execute(_VERSION.insert().values(version=number, suits=step.suits))
    return max(known)


def _prepare(connection: sa.Connection) -> None:
    """The table of versions; those of the first days had one column."""
    _VERSION.create(connection, checkfirst=True)
    if "suits" not in {column["name"] for column in sa.inspect(connection).get_columns(_VERSION.name)}:
        connection.execute(sa.text("ALTER TABLE valley_version ADD COLUMN suits INTEGER"))
