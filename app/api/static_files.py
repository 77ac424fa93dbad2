"""The files of the page and plotly.js: read, joined and compressed once, cached by browsers for ever.

Every URL contains a hash of all files, so a changed file has a new URL. Browsers revalidate only index.html.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from valleyscope.app.api.module_bundle import join_modules

VIEWS: Final = ("/", "/new", "/experiments/{id}", "/compare", "/workers", "/help", "/gallery", "/shared/{token}")
FILES: Final = "/static"
ASSETS: Final = "/assets"
_IMMUTABLE = "public, max-age=31536000, immutable"
_PLOTLY = "package_data/plotly.min.js"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}
_ENTRY = "main.js"
_TEMPLATE = "index.html"


@dataclass(frozen=True)
class Asset:
    """A file in memory, compressed on first use."""

    content: bytes
    media_type: str

    @cached_property
    def zipped(self) -> bytes:
        return gzip.compress(self.content, 6, mtime=0)

    @cached_property
    def etag(self) -> str:
        return f'W/"{_digest(self.content)}"'

    def response(self, request: Request, caching: str) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.zipped, media_type=self.media_type, headers={**headers, "Content-Encoding": "gzip"})
        return Response(self.content, media_type=self.media_type, headers=headers)


@dataclass(frozen=True)
class Bundle:
    """One version of the folder: its files by path, with main.js joined with all its imports, and the index page."""

    stamp: tuple[tuple[str, int, int], ...]
    base: str
    files: dict[str, Asset]
    page: Asset


class Page:
    """The files of a folder. After a change on the disk, the next visit gets a new bundle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._bundle: Bundle | None = None

    def bundle(self) -> Bundle:
        with self._lock:
            stamp = tuple(_stamps(self._folder))
            if self._bundle is None or self._bundle.stamp != stamp:
                self._bundle = _read(self._folder, stamp)
            return self._bundle

    def file(self, base: str, path: str) -> tuple[Asset, str] | None:
        """A file of the current bundle, and its Cache-Control.

        A page that was opened before a change requests the old bundle. It gets the new files, uncached.
        """
        bundle = self._bundle or self.bundle()
        found = bundle.files.get(path)
        return None if found is None else (found, _IMMUTABLE if base == bundle.base else "no-store")


def add_page(app: FastAPI, folder: Path) -> None:
    """Serve the page in a folder: its views, its files, and plotly.js."""
    page = Page(folder)

    async def index(request: Request) -> Response:
        # Compress plotly.js now: the page needs it soon.
        threading.Thread(target=lambda: plotly().zipped, name="plotly", daemon=True).start()
        bundle = await run_in_threadpool(page.bundle)
        return bundle.page.response(request, "no-cache")

    async def file(request: Request) -> Response:
        path = request.path_params["path"]
        found = await run_in_threadpool(page.file, request.url.path.removesuffix(f"/{path}"), path)
        if found is None:
            raise HTTPException(404)
        content, caching = found
        return content.response(request, caching)

    async def asset(request: Request) -> Response:
        found = await run_in_threadpool(plotly)
        if request.url.path != plotly_address():
            raise HTTPException(404)
        await run_in_threadpool(lambda: found.zipped)
        return found.response(request, _IMMUTABLE)

    methods = ["GET", "HEAD"]
    for view in VIEWS:
        app.add_route(view, index, methods, include_in_schema=False)
    app.add_route(f"{FILES}/{{bundle}}/{{path:path}}", file, methods, include_in_schema=False)
    app.add_route(f"{ASSETS}/{{name}}", asset, methods, include_in_schema=False)


@cache
def plotly() -> Asset:
    """plotly.js of the installed package, found without importing it (that takes a second)."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return Asset((Path(spec.origin).parent / _PLOTLY).read_bytes(), _TYPES[".js"])


@cache
def plotly_address() -> str:
    return f"{ASSETS}/plotly-{_digest(plotly().content)}.min.js"


def _stamps(folder: Path) -> Iterator[tuple[str, int, int]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            state = path.stat()
            yield path.relative_to(folder).as_posix(), state.st_mtime_ns, state.st_size


def _read(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> Bundle:
    contents = {name: (folder / name).read_bytes() for name, _, _ in stamp}
    whole = b"".join(name.encode() + b"\0" + content for name, content in contents.items())
    base = f"{FILES}/{_digest(whole)}"
    files = {name: Asset(content, _media_type(name)) for name, content in contents.items() if name != _TEMPLATE}
    files |= _joined(contents)
    return Bundle(stamp, base, files, _filled(contents[_TEMPLATE].decode(), base))


def _joined(contents: dict[str, bytes]) -> dict[str, Asset]:
    """The entry with all its imports as one module, and its source map."""
    sources = {name: content.decode() for name, content in contents.items() if name.endswith((".js", ".json"))}
    joined = join_modules(sources, _ENTRY, f"{_ENTRY}.map")
    return {
        _ENTRY: Asset(joined.script.encode(), _TYPES[".js"]),
        f"{_ENTRY}.map": Asset(joined.source_map.encode(), "application/json"),
    }


def _filled(template: str, base: str) -> Asset:
    for field, value in (("base", base), ("plotly", plotly_address())):
        template = template.replace(f"{{{{{field}}}}}", value)
    return Asset(template.encode(), _TYPES[".html"])


def _media_type(name: str) -> str:
    return _TYPES.get(Path(name).suffix) or guess_type(name)[0] or "application/octet-stream"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
