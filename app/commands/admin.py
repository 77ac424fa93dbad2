"""Commands for operators: `valley prune`, `valley backup` and `valley restore`."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from valleyscope.app.commands.client import FINAL, Client, Refused, add_server, connect
from valleyscope.app.settings import Settings

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_GONE = (404, 409)


def add_admin_commands(commands: Any) -> None:
    prune = commands.add_parser("prune", help="delete old experiments of a server with their files")
    prune.add_argument("--older-than", required=True, type=parse_age, metavar="AGE", help="such as 12h, 30d or 8w")
    prune.add_argument("--state", choices=FINAL, action="append", help="only those in this state; can be repeated")
    prune.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    add_server(prune)
    prune.set_defaults(run=_prune)

    backup = commands.add_parser("backup", help="copy database and files into a new folder; works while serving")
    restore = commands.add_parser("restore", help="restore a backup into an empty home and an empty database")
    for parser, run, text in ((backup, _backup, "new folder"), (restore, _restore, "folder of the backup")):
        parser.add_argument("folder", type=Path, metavar="DIR", help=text)
        parser.add_argument("--home", type=Path, metavar="DIR", help="home of the service (default: VALLEY_HOME)")
        parser.add_argument("--database", metavar="URL", help="database of the service (default: VALLEY_DATABASE)")
        parser.set_defaults(run=run)


def parse_age(text: str) -> timedelta:
    """Parse an age.

    >>> parse_age("30d")
    datetime.timedelta(days=30)
    """
    found = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid age: use hours, days or weeks: 12h, 30d or 8w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _prune(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    limit = datetime.now(UTC) - options.older_than
    states = options.state or FINAL
    old = [row for state in states for row in client.experiments(state=state) if _ended_before(row, limit)]
    deleted = 0
    for row in sorted(old, key=lambda row: str(row["finished"])):
        if not options.dry_run and not _delete(client, row["id"]):
            continue
        deleted += 1
        console.print(f"{row['id']}  {row['state']}  {row['finished']}  {row['name']}", highlight=False, markup=False)
    verb = "would be deleted" if options.dry_run else "deleted"
    console.print(f"{deleted} experiments {verb}", highlight=False)
    return 0


def _ended_before(row: dict[str, Any], limit: datetime) -> bool:
    return row["finished"] is not None and datetime.fromisoformat(row["finished"]) < limit


def _delete(client: Client, id: str) -> bool:
    """False if it was deleted or restarted in the meantime."""
    try:
        client.delete(f"/api/experiments/{id}?permanent=true")
    except Refused as error:
        if error.status not in _GONE:
            raise
        return False
    return True


def _backup(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.storage.backups import back_up

    manifest = back_up(Settings.load(home=options.home, database=options.database), options.folder)
    size = manifest["bytes"] / 2**20
    console.print(f"{options.folder}: {manifest['files']} files, {size:.1f} MiB", highlight=False, soft_wrap=True)
    return 0


def _restore(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.storage.backups import restore

    settings = Settings.load(home=options.home, database=options.database)
    manifest = restore(settings, options.folder)
    console.print(f"{settings.home} is restored to {manifest['created']}", highlight=False, soft_wrap=True)
    return 0
