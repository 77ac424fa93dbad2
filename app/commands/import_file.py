"""`valley import`: convert a file of another tool into a landscape, in a subprocess.

Reading a damaged HDF5 file can hang or crash the process.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console

from valleyscope.landscape.importers import NotImportable

TIMEOUT_SECONDS = 120.0  # a surface with a million points takes some seconds


def import_landscape(file: Path, out: Path | None, console: Console, timeout: float = TIMEOUT_SECONDS) -> int:
    """Write landscape.h5 and report.html into a folder, and print their paths."""
    target = out or file.with_name(f"{file.stem}-valley")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_import, args=(file, target, sender), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            raise NotImportable(f"{file}: could not be read within {timeout:g} s: it is damaged or too large")
        outcome: list[Path] | ValueError | OSError = receiver.recv()
    except EOFError:
        process.join()
        raise NotImportable(f"{file}: is damaged; reading it {_outcome(process.exitcode)}") from None
    finally:
        process.kill()
        process.join()
    if isinstance(outcome, Exception):
        raise outcome
    console.print("\n".join(map(str, outcome)), highlight=False, soft_wrap=True)
    return 0


def _import(file: Path, target: Path, sender: Connection) -> None:
    """In the subprocess: send the paths of the files, or the error."""
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


def _outcome(code: int | None) -> str:
    """How a process ended without a result."""
    return f"fails ({signal.Signals(-code).name})" if code is not None and code < 0 else f"fails (exit status {code})"
