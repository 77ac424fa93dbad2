"""Commands that talk to a server: submit, jobs, watch, cancel, retry, delete, share and fetch."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from valleyscope.app.commands.client import FINAL, Refused, add_server, connect
from valleyscope.app.commands.watch import print_outcome, watch
from valleyscope.app.experiments.recipes import recipe_names
from valleyscope.app.experiments.spec import read_spec

EXIT_FAILED = 1


def add_commands(commands: Any) -> None:
    submit = _command(commands, "submit", _submit, "submit an experiment to a server")
    submit.add_argument("spec", metavar="SPEC", help="a JSON or YAML file, or the name of a recipe")
    submit.add_argument("--force", action="store_true", help="submit even if the cost exceeds the limit of the server")
    submit.add_argument("--priority", type=int, default=100, metavar="N", help="lower runs first (default: 100)")
    submit.add_argument("--key", metavar="TEXT", help="the same key and spec return the same experiment")
    submit.add_argument("--watch", action="store_true", help="show the progress until it ends")

    jobs = _command(commands, "jobs", _jobs, "list the experiments of a server")
    jobs.add_argument("--state", choices=["queued", "running", *FINAL], help="only those in this state")
    jobs.add_argument("--search", metavar="TEXT", help="only those with TEXT in the name")
    jobs.add_argument("--limit", type=int, default=20, metavar="N", help="maximum number of rows (default: 20)")

    for name, run, text in (
        ("watch", _watch, "show the progress of an experiment until it ends"),
        ("cancel", _cancel, "cancel an experiment; its results so far stay"),
        ("retry", _retry, "continue a failed or cancelled experiment"),
    ):
        _command(commands, name, run, text).add_argument("id", metavar="ID", help="id of the experiment")

    delete = _command(commands, "delete", _delete, "move experiments to the trash of the server, for a day")
    delete.add_argument("ids", metavar="ID", nargs="+", help="ids of experiments that are not running")
    how = delete.add_mutually_exclusive_group()
    how.add_argument("--undo", action="store_true", help="take them out of the trash again")
    how.add_argument("--permanent", action="store_true", help="delete them with their files at once")

    share = _command(commands, "share", _share, "make a read-only link to an experiment, or revoke its links")
    share.add_argument("id", metavar="ID", help="id of the experiment")
    how = share.add_mutually_exclusive_group()
    how.add_argument("--days", type=float, default=30.0, metavar="N", help="days until it expires (default: 30)")
    how.add_argument("--revoke", action="store_true", help="revoke all links to it")

    plane = _command(commands, "plane", _plane, "add a plane through three minima to an experiment that has ended")
    plane.add_argument("id", metavar="ID", help="id of the experiment")
    plane.add_argument("through", metavar="POINT", nargs=3, help="a minimum, or a bend such as valley.bend")
    plane.add_argument(
        "--resolution", type=int, default=21, metavar="N", help="grid points along an axis (default: 21)"
    )
    plane.add_argument("--name", metavar="NAME", help="name of the plane (default: plane1, plane2, ...)")

    fetch = _command(commands, "fetch", _fetch, "download the files of an experiment")
    fetch.add_argument("id", metavar="ID", help="id of the experiment")
    fetch.add_argument("--out", type=Path, metavar="DIR", help="output directory (default: the id)")


def _command(commands: Any, name: str, run: Any, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help)
    add_server(parser)
    parser.set_defaults(run=run)
    return parser


def _submit(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    extra = {"priority": options.priority} | ({"force": True} if options.force else {})
    if options.spec in recipe_names() and not Path(options.spec).exists():
        submission: dict[str, Any] = {"recipe": options.spec}
    else:
        submission = read_spec(options.spec).to_json()
    row = client.submit(submission | extra, key=options.key)
    console.print(row["id"], highlight=False)
    if not options.watch:
        return 0
    return _exit_code(watch(client, row["id"], console), console)


def _jobs(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("id", "name", "state", "created", "rise", "verdict"):
        table.add_column(column, no_wrap=column not in ("name", "verdict"))
    for number, row in enumerate(client.experiments(state=options.state, search=options.search)):
        if number >= options.limit:
            break
        created = datetime.fromisoformat(row["created"]).astimezone().strftime("%m-%d %H:%M")
        state = f"{row['state']} {100 * row['progress']:.0f} %" if row["state"] == "running" else row["state"]
        verdict = row["verdict_kind"] or row["error"] or ""
        rise = "" if row["rise"] is None else f"{row['rise']:.3f}"
        table.add_row(row["id"], row["name"], state, created, rise, verdict)
    console.print(table)
    return 0


def _watch(options: argparse.Namespace, console: Console) -> int:
    return _exit_code(watch(connect(options.server), options.id, console), console)


def _cancel(options: argparse.Namespace, console: Console) -> int:
    row = connect(options.server).post(f"/api/experiments/{options.id}/cancel")
    console.print(f"{row['name']} is {row['stage']}", highlight=False)
    return 0


def _retry(options: argparse.Namespace, console: Console) -> int:
    row = connect(options.server).post(f"/api/experiments/{options.id}/retry")
    console.print(f"{row['name']} is {row['state']} again (run {row['run']})", highlight=False)
    return 0


def _delete(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    done = "restored" if options.undo else "deleted" if options.permanent else "in the trash for a day"
    failed = False
    for id in options.ids:
        path = f"/api/experiments/{quote(id, safe='')}"
        try:
            if options.undo:
                client.post(f"{path}/restore")
            else:
                client.delete(f"{path}?permanent=true" if options.permanent else path)
            console.print(f"{id} {done}", highlight=False)
        except Refused as error:
            failed = True
            console.print(f"{id} {error}", highlight=False, markup=False)
    return EXIT_FAILED if failed else 0


def _share(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    path = f"/api/experiments/{quote(options.id, safe='')}/share"
    if options.revoke:
        client.delete(path)
        console.print("its links are revoked", highlight=False)
        return 0
    made = client.post(path, {"days": options.days})
    console.print(f"{client.server}{made['path']}", highlight=False, soft_wrap=True)
    return 0


def _plane(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    body = {"through": options.through, "resolution": options.resolution, "name": options.name}
    added = client.post(f"/api/experiments/{quote(options.id, safe='')}/planes", body)
    console.print(f"plane {added['plane']}: experiment {added['state']}", highlight=False)
    return 0


def _fetch(options: argparse.Namespace, console: Console) -> int:
    client = connect(options.server)
    target = options.out or Path(options.id)
    names = [file["name"] for file in client.get(f"/api/experiments/{options.id}/files")["items"]]
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            client.download(options.id, name, target / name)
        except Refused as error:
            if error.status != 404:  # removed since it was listed
                raise
            continue
        console.print(str(target / name), highlight=False, soft_wrap=True)
    return 0


def _exit_code(row: dict[str, Any], console: Console) -> int:
    print_outcome(row, console)
    return 0 if row["state"] == "done" else EXIT_FAILED
