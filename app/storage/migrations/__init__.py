"""Changes of the catalogue's tables, numbered, each applied once and for all.

A step is a module `step_NNNN` with `apply(connection)`. It describes the tables by itself, as they were then, since
`app.storage.catalogue` describes them as they are now. A published step is never edited.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import sqlalchemy as sa

from app.storage.database import Database

_VERSION = sa.Table("valley_version", sa.MetaData(), sa.Column("version", sa.Integer, nullable=False))
_PREFIX = "step_"


class NewerDatabase(RuntimeError):
    """The database was written by a newer version of the program."""


def steps() -> dict[int, Callable[[sa.Connection], None]]:
    """All steps by number, in order."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith(_PREFIX))
    return {int(name.removeprefix(_PREFIX)): import_module(f"{__name__}.{name}").apply for name in names}


def migrate(database: Database) -> int:
    """Bring the tables up to date; returns their version. Call it inside `database.alone`."""
    known = steps()
    with database.write(durable=True) as connection:
        _VERSION.create(connection, checkfirst=True)
        version = connection.execute(sa.select(sa.func.max(_VERSION.c.version))).scalar() or 0
        if version > max(known):
            raise NewerDatabase(
                f"the database has version {version}, this program knows {max(known)}: upgrade valleyscope"
            )
        for number, apply in known.items():
            if number > version:
                apply(connection)
                connection.execute(_VERSION.insert().values(version=number))
    return max(known)
