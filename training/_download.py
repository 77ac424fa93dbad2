"""Fetch a published file once: checked, with a bar, and without hanging where there is no network."""

from __future__ import annotations

import hashlib
import http.client
import os
import queue
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes received and the bytes of the whole file (0 where the server does not say)."""

TIMEOUT = 10.0
"""Seconds that a server may take to answer, and to send the next piece."""

_CHUNK = 1 << 18


class DownloadFailed(OSError):
    """None of the addresses of a file delivered it."""


def fetch(urls: Sequence[str], target: Path, md5: str, progress: Progress | None = None) -> None:
    """Download `target` from the first address that delivers the bytes with this MD5 sum.

    The file appears under its name when it is complete and not before, so that neither a kill nor a second process that
    downloads the same file leaves half of it behind. Each address is tried once. Without `progress` a bar is drawn.
    """
    failures = []
    for url in urls:
        try:
            _fetch_from(url, target, md5, progress)
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{url}: {getattr(error, 'reason', None) or error or type(error).__name__}")
        else:
            return
    raise DownloadFailed("; ".join(failures))


def _fetch_from(url: str, target: Path, md5: str, progress: Progress | None) -> None:
    digest = hashlib.md5(usedforsecurity=False)
    with _open_url(url) as response, _progress_or_bar(progress) as report:
        size = int(response.headers.get("Content-Length") or 0)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                received = 0
                while chunk := response.read(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    report(target.name, received, size)
            if digest.hexdigest() != md5:
                raise OSError(f"received {received} bytes with MD5 sum {digest.hexdigest()}, expected {md5}")
            Path(part).chmod(0o644)
            Path(part).replace(target)
        finally:
            Path(part).unlink(missing_ok=True)


def _open_url(url: str) -> Any:
    """Open an address, waiting at most PATIENCE seconds in all.

    The time-out of urllib counts for every IP address of a host anew and not at all for the look-up of its name, which
    makes minutes on a machine whose packets are dropped. So the request waits in a thread that can be left behind.
    """
    responses: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def request() -> None:
        try:
            responses.put(urllib.request.urlopen(url, timeout=TIMEOUT))
        except Exception as error:
            responses.put(error)

    threading.Thread(target=request, daemon=True, name="download").start()
    try:
        response = responses.get(timeout=TIMEOUT)
    except queue.Empty:
        raise TimeoutError(f"no answer in {TIMEOUT:g} seconds") from None
    if isinstance(response, Exception):
        raise response
    return response


@contextmanager
def _progress_or_bar(progress: Progress | None) -> Iterator[Progress]:
    """Yield `progress`, or a callback that draws a bar on the standard error stream."""
    if progress is not None:
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task("", total=None)

        def draw(name: str, received: int, size: int) -> None:
            bars.update(task, description=name, completed=received, total=size or None)

        yield draw
