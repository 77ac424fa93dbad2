"""The command `valley`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from valleyscope.app.commands.admin import add_admin_commands
from valleyscope.app.commands.align import add_align_command
from valleyscope.app.commands.bench import add_bench_command
from valleyscope.app.commands.client import add_server
from valleyscope.app.commands.compact import add_compact_command
from valleyscope.app.commands.export import export_landscape
from valleyscope.app.commands.remote import add_commands
from valleyscope.app.commands.run import run_in_terminal
from valleyscope.app.experiments.experiment_writer import DirectoryLocked
from valleyscope.app.experiments.gallery import gallery_entries
from valleyscope.app.experiments.model_info import BadModel, ModelInfoCache
from valleyscope.app.experiments.recipes import describe_recipe, load_recipe, recipe_names
from valleyscope.app.experiments.spec import BadSpec, Spec, read_spec
from valleyscope.app.experiments.wishes import check_wishes
from valleyscope.app.log_config import start_logging
from valleyscope.app.settings import Settings
from valleyscope.app.storage.safetensors_check import BadUpload, check_file
from valleyscope.training.downloads import SWITCH as DOWNLOADS

_MOST_PARAMETERS = 10**9  # of a network that is built to look at it; VALLEY_MAX_PARAMETERS is for servers
EXIT_UNHEALTHY = 1  # health checks of containers know only 0 and 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; user errors are one line without a traceback."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.WARNING, format="%(levelname)s %(message)s")
    console = Console(emoji=False)
    try:
        return int(options.run(options, console))
    except (BadSpec, DirectoryLocked, ValueError, FileNotFoundError, PermissionError) as error:
        if options.verbose:
            raise
        print(f"valley: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("\nvalley: interrupted; run the same command again to continue", file=sys.stderr)
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="valley", description="Do these trained networks lie in one flat valley?")
    parser.add_argument("--version", action="version", version=f"valleyscope {version('valleyscope')}")
    parser.add_argument("--verbose", action="store_true", help="show log messages and tracebacks")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a spec in the terminal")
    run.add_argument("spec", metavar="SPEC", help="a JSON or YAML file, or the name of a recipe")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="output directory; run again to continue")
    _machine_options(run)
    run.set_defaults(run=_run)

    demo = commands.add_parser("demo", help="start a server and run the demo recipe")
    demo.add_argument("--once", action="store_true", help="exit when the experiment is done")
    demo.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="home (default: demo)")
    demo.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    _machine_options(demo)
    demo.set_defaults(run=_demo)

    serve = commands.add_parser("serve", help="serve the API and the page, with workers on this machine")
    serve.add_argument("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="port to listen on, 0 for any free one (default: 8360)")
    serve.add_argument("--adopt-home", action="store_true", help="link this home or store to this database")
    _home_options(serve)
    _machine_options(serve)
    serve.set_defaults(run=_serve)

    worker = commands.add_parser("worker", help="run tasks of a server on this or another machine")
    worker.add_argument("--device", metavar="NAME", help="cpu, cuda:N, or gpu: any free one (default: the first GPU)")
    worker.add_argument("--attached", action="store_true", help="exit when standard input is closed")
    _home_options(worker)
    worker.add_argument("--data", type=Path, metavar="DIR", help="directory of data sets (default: VALLEY_DATA)")
    worker.set_defaults(run=_worker)

    add_commands(commands)
    add_admin_commands(commands)

    recipes = commands.add_parser("recipes", help="list the included specs")
    recipes.set_defaults(run=_recipes)

    gallery = commands.add_parser(
        "gallery", help="list the included landscapes; `valley export gallery-demo` writes one"
    )
    gallery.set_defaults(run=_gallery)

    export = commands.add_parser("export", help="write a landscape as CSV, VTK, PNG, SVG and PDF")
    export.add_argument(
        "source", type=Path, metavar="DIR|ID", help="directory of a run, landscape.h5, or id, also of the gallery"
    )
    export.add_argument("--out", type=Path, metavar="DIR", help="output directory (default: DIR/export, or ID)")
    export.add_argument(
        "--formats", default="csv,vtk,png,svg", help="which of csv, vtk, png, svg, pdf (default: all but pdf)"
    )
    add_server(export)
    export.set_defaults(run=export_landscape)

    add_bench_command(commands)
    add_compact_command(commands)
    add_align_command(commands)

    imported = commands.add_parser("import", help="convert recorded runs and files of other tools into landscapes")
    imported.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="plane.npz, curve.npz, a surface .h5, landscape.h5, or folders of a Recorder (in one common plane)",
    )
    imported.add_argument("--out", type=Path, metavar="DIR", help="output directory (default: beside the first FILE)")
    imported.add_argument("--server", metavar="URL", help="send the files to this server instead")
    imported.add_argument("--name", metavar="TEXT", help="name on the server (default: that of the file)")
    imported.set_defaults(run=_import)

    health = commands.add_parser("health", help="check the health of the local server or worker")
    health.add_argument("role", nargs="?", choices=["api", "worker"], default="api", help="which (default: api)")
    health.set_defaults(run=_health)

    doctor = commands.add_parser("doctor", help="check versions, devices, settings, database and data")
    doctor.set_defaults(run=_doctor)
    return parser


def _machine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, metavar="N", help="parallel tasks (default: one per core)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory of data sets (default: VALLEY_DATA)")


def _home_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, metavar="DIR", help="home of the service (default: VALLEY_HOME)")
    parser.add_argument("--database", metavar="URL", help="database (default: SQLite under the home)")
    parser.add_argument("--store", metavar="URL", help="object store: s3://bucket/prefix (default: VALLEY_STORE)")


def _load_settings(options: argparse.Namespace, *names: str) -> Settings:
    settings = Settings.load(**{name: getattr(options, name) for name in names})
    if settings.allow_downloads:  # processes that compute inherit the environment
        os.environ[DOWNLOADS] = "1"
    return settings


def _run(options: argparse.Namespace, console: Console) -> int:
    path = Path(options.spec)
    spec = load_recipe(options.spec) if options.spec in recipe_names() and not path.exists() else read_spec(path)
    settings = _load_settings(options)
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers={options.workers} must be 1 or more")
    data_root = options.data or settings.data
    with closing(ModelInfoCache(data_root, _MOST_PARAMETERS)) as networks:
        check_wishes(spec, networks)
        checkpoints = dict(_checkpoints(spec, path.parent, networks))
    return run_in_terminal(
        spec,
        options.out,
        workers=options.workers or settings.workers or None,  # 0 is for servers with remote workers
        data_root=data_root,
        checkpoints=checkpoints,
        console=console,
    )


def _checkpoints(spec: Spec, folder: Path, networks: ModelInfoCache) -> Iterator[tuple[str, Path]]:
    """The files that a spec names; raises BadSpec for those that are not weights of its network."""
    for name, minimum in spec.minima.items():
        if minimum.checkpoint is None:
            continue
        file = (folder / minimum.checkpoint).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"minima.{name}.checkpoint={minimum.checkpoint!r}: {file} does not exist")
        try:
            check_file(file, networks.inspect(spec.model, spec.dataset, spec.loss))
        except BadModel:  # the first task says it
            pass
        except BadUpload as error:
            raise BadSpec(f"minima.{name}.checkpoint={minimum.checkpoint!r}: {error}") from error
        yield name, file


def _demo(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.commands.demo import demonstrate

    settings = Settings.load(
        home=options.out,
        database=f"sqlite:///{(options.out / 'valley.db').absolute()}",
        host="127.0.0.1",
        port=options.port,
        workers=options.workers,
        data=options.data,
        log_level="WARNING",
        log_format="text",
    ).model_copy(update={"store": None})  # everything stays in one folder
    start_logging(settings)
    return demonstrate(settings, console, once=options.once)


def _serve(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.commands.serve import serve

    settings = _load_settings(options, "host", "port", "home", "database", "store", "workers", "data")

    def on_ready(address: str) -> None:
        console.print(f"Serving at {address}", highlight=False, soft_wrap=True)

    serve(settings, on_ready, adopt_home=options.adopt_home)
    return 0


def _worker(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    from valleyscope.app.worker.worker import run_worker

    settings = _load_settings(options, "home", "database", "store", "data")
    start_logging(settings)
    run_worker(settings, device=options.device, attached=options.attached)
    return 0


def _recipes(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    for name in recipe_names():
        console.print(f"[bold]{name}[/bold]  {describe_recipe(name)}", highlight=False)
    return 0


def _gallery(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    for entry in gallery_entries():
        console.print(f"[bold]{entry.id}[/bold]  {entry.verdict}. {entry.shows}", highlight=False)
    return 0


def _import(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.commands.import_file import import_landscape, send_files

    if options.server is None:
        return import_landscape(options.files, options.out, console)
    if options.out is not None:
        raise ValueError(f"--out={options.out}: the server keeps the landscape; leave out --out or --server")
    return send_files(options.files, options.server, options.name, console)


def _health(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.commands.health import check_health
    from valleyscope.app.worker.health_file import Unhealthy

    try:
        console.print(check_health(Settings.load(), options.role), highlight=False, markup=False, soft_wrap=True)
    except Unhealthy as error:
        print(f"valley: {error}", file=sys.stderr)
        return EXIT_UNHEALTHY
    return 0


def _doctor(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    from valleyscope.app.commands.doctor import examine

    return examine(Settings.load(), console)


if __name__ == "__main__":
    sys.exit(main())
