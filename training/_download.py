"""Download a file, with checksum, progress bar and timeout."""

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
"""Called with a file's name, the bytes received and the size of the file (0 if unknown)."""

TIMEOUT = 10.0
"""Seconds to wait for the response, and for the next chunk."""

_CHUNK = 1 << 18


class DownloadFailed(OSError):
    """A file could not be downloaded from any of its URLs."""


def fetch(urls: Sequence[str], target: Path, md5: str, progress: Progress | None = None) -> None:
    """Download `target` from the first URL that delivers bytes with this MD5 sum.

    The file is renamed when it is complete, so neither a kill nor a second process leaves an incomplete file. Each URL
    is tried once. Without `progress` a bar is drawn.
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
    """Open a URL, waiting at most TIMEOUT seconds in all.

    The timeout of urllib applies to every IP address of a host separately and not to the name lookup, which may take
    minutes where packets are dropped. So the request runs in a thread that can be abandoned.
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
