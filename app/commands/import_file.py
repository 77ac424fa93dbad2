"""`valley import`: a landscape of another tool's file, read in a process of its own.

A damaged HDF5 file can hang the library that reads it, or end its process; neither is to befall the command.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console

from valleyscope.landscape.importers import NotImportable

PATIENCE = 120.0
"""Seconds that a file may take; a surface of a million points takes some seconds."""


def import_landscape(file: Path, out: Path | None, console: Console, patience: float = PATIENCE) -> int:
    """Write landscape.h5 and report.html of a file into a folder, and say where."""
    target = out or file.with_name(f"{file.stem}-valley")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_import, args=(file, target, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(patience):
            raise NotImportable(f"{file}: could not be read within {patience:g} s; it is damaged, or far too large")
        outcome: list[Path] | ValueError | OSError = receiver.recv()
    except EOFError:
        process.join()
        raise NotImportable(f"{file}: is damaged so badly that reading it {_end(process.exitcode)}") from None
    finally:
        process.kill()
        process.join()
    if isinstance(outcome, Exception):
        raise outcome
    console.print("\n".join(map(str, outcome)), highlight=False, soft_wrap=True)
    return 0


def _import(file: Path, target: Path, sender: Connection) -> None:
    """In the process of its own: send the paths of what was written, or why nothing was."""
    from valleyscope.landscape.importers import import_file
    from valleyscope.landscape.report import write_report

    try:
        landscape = import_file(file)
        target.mkdir(parents=True, exist_ok=True)
        landscape.save(target / "landscape.h5")
        write_report(landscape, target / "report.html")
    except FileNotFoundError as error:
        sender.send(FileNotFoundError(str(error)))
    except (ValueError, OSError) as error:
        sender.send(ValueError(str(error)))
    else:
        sender.send([target / "landscape.h5", target / "report.html"])


def _end(code: int | None) -> str:
    """What became of a process that said nothing."""
    return f"fails ({signal.Signals(-code).name})" if code is not None and code < 0 else f"fails (exit status {code})"
