"""Streams an upload to the disk: a request body with the file alone, or a multipart form."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from valleyscope.app.api.problems import Problem
from valleyscope.app.storage.safetensors_check import BadUpload, TooLarge

FILE = "file"
_BATCH = 2**20
_LONGEST_FIELD = 10_000
_BARE_TYPES = ("application/octet-stream", "application/x-safetensors", "application/x-hdf5", "application/zip", "")
_SPARE_DISK = 64 * 2**20


class Upload(Protocol):
    """What receives the bytes of one or several files."""

    @property
    def path(self) -> Path:
        """Where the bytes go."""

    def begin_file(self, name: str) -> None:
        """The bytes that follow are those of a file with this name; raises BadUpload if it is one too many."""

    def write(self, data: bytes) -> None:
        """Add bytes to the current file; raises BadUpload as soon as it is known to be wrong."""


async def stream_upload(
    request: Request, upload: Upload, *, fields: tuple[str, ...], code: str, name: str = ""
) -> dict[str, str]:
    """Write the uploaded files to the disk; returns the other fields of the form, if any.

    `name` is that of a file without a form, `fields` are the fields that a form may have besides the files, and `code`
    is that of the problem of a wrong file.
    """
    content_type, options = parse_options_header(request.headers.get("content-type", ""))
    kind = content_type.decode("latin-1").strip()
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "encoded", "Content-Encoding is not supported: send the file uncompressed")
    announced = int(request.headers.get("content-length", "0"))
    if shutil.disk_usage(upload.path.parent).free < announced + _SPARE_DISK:
        raise Problem(507, "disk-full", f"the disk of the server has no space for {announced} bytes")
    try:
        if kind == "multipart/form-data":
            return await _receive_form(request, _Form(upload, fields), options.get(b"boundary", b""))
        if kind in _BARE_TYPES:
            upload.begin_file(name)
            async for batch in _batches(request):
                await run_in_threadpool(upload.write, batch)
            return {}
    except TooLarge as error:
        raise Problem(413, "too-large", str(error)) from error
    except BadUpload as error:
        raise bad_upload(error, code) from error
    except ClientDisconnect as error:
        raise Problem(400, "incomplete", "the connection ended before the end of the file") from error
    detail = f"send the file as application/octet-stream or multipart/form-data, not as {kind[:100]}"
    raise Problem(415, "not-a-file", detail)


def bad_upload(error: Exception, code: str) -> Problem:
    found = {"path": FILE, "location": "body", "value": None, "message": str(error)}
    return Problem(422, code, str(error), errors=[found])


async def _batches(request: Request) -> AsyncIterator[bytes]:
    """The body in chunks of about one MiB."""
    batch = bytearray()
    async for chunk in request.stream():
        batch += chunk
        if len(batch) >= _BATCH:
            yield bytes(batch)
            batch.clear()
    if batch:
        yield bytes(batch)


async def _receive_form(request: Request, form: _Form, boundary: bytes) -> dict[str, str]:
    try:
        parser = MultipartParser(boundary, form.callbacks(), max_header_size=4096)
        async for batch in _batches(request):
            await run_in_threadpool(parser.write, batch)
        parser.finalize()
    except FormParserError as error:
        raise Problem(400, "bad-form", f"the form cannot be read: {str(error)[:200]}") from error
    if not form.complete:
        raise Problem(400, "bad-form", "the form ends before its last boundary")
    if not form.has_file:
        raise BadUpload(f"the form has no field {FILE!r}: put the file there")
    return form.fields


class _Form:
    """Writes the parts named `file` to the disk and keeps the other, short fields in memory."""

    def __init__(self, upload: Upload, fields: tuple[str, ...]) -> None:
        self.fields: dict[str, str] = {}
        self.has_file = False
        self.complete = False
        self._upload = upload
        self._known = (FILE, *fields)
        self._header = bytearray()
        self._value = bytearray()
        self._name = ""
        self._content = bytearray()

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": lambda data, start, end: self._header.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
            "on_end": self._finish,
        }

    def _begin_part(self) -> None:
        self._name = ""
        self._content.clear()

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            given = parse_options_header(bytes(self._value))[1]
            self._name = given.get(b"name", b"").decode("latin-1")
            if self._name not in self._known:
                known = ", ".join(self._known)
                raise BadUpload(f"the form has an unknown field {self._name[:100]!r}: allowed are {known}")
            if self._name == FILE:
                self._upload.begin_file(given.get(b"filename", b"").decode("utf-8", "replace"))
                self.has_file = True
        self._header.clear()
        self._value.clear()

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == FILE:
            self._upload.write(data[start:end])
        elif len(self._content) + end - start > _LONGEST_FIELD:
            raise BadUpload(f"field {self._name!r} is longer than {_LONGEST_FIELD} bytes")
        else:
            self._content += data[start:end]

    def _end_part(self) -> None:
        if self._name != FILE:
            self.fields[self._name] = self._content.decode("utf-8", "replace")

    def _finish(self) -> None:
        self.complete = True
