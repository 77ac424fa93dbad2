"""Problem details (RFC 9457): the format of every error response.

{"type": "about:blank", "title": "Unprocessable Content", "status": 422, "code": "invalid", "detail": "...",
 "instance": "/api/experiments", "errors": [{"path": "minima.a.lr", "value": -1, "message": "..."}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from valleyscope.app.storage.db_errors import DiskState
from valleyscope.landscape.json_encoding import to_json

MEDIA_TYPE: Final = "application/problem+json"
_MAX_TEXT = 200
_MAX_ITEMS = 20
_MAX_ERRORS = 50
BRANCHES: Final = {"spec": "[spec]", "recipe": "[recipe]"}
"""Tags of the two kinds of submission. Pydantic puts them into the location of an error, and we remove them."""
_SOURCES = ("body", "query", "path", "header", "cookie")
_STORAGE_PROBLEMS: Final[dict[DiskState, tuple[int, str, str]]] = {
    "full": (507, "disk-full", "the disk of the server is full: try again later; you can still read results"),
    "read-only": (503, "read-only", "the disk of the server is read-only: try again later; you can still read results"),
    "unreachable": (503, "no-database", "the database cannot be reached or written: try again later"),
}


class FieldError(BaseModel):
    """An invalid field: its path, its value and what is wrong."""

    path: str = Field(description="names joined by dots, such as minima.altsdp.mu", examples=["minima.altsdp.mu"])
    location: str = Field("body", description="body, query, path or header", examples=["body"])
    value: Any = Field(None, description="the given value, shortened", examples=[-1])
    message: str = Field(description="what is wrong", examples=["Input should be greater than 0"])


class ProblemDetails(BaseModel):
    """An error in the format of RFC 9457."""

    model_config = ConfigDict(extra="allow")
    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(description="the status in words", examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(description="stable code for programs", examples=["unknown-experiment"])
    detail: str = Field(description="what happened, and what to do", examples=["there is no experiment 'x'"])
    instance: str | None = Field(None, description="the requested path", examples=["/api/experiments/x"])
    errors: list[FieldError] | None = Field(None, description="the invalid fields")
    id: str | None = Field(None, description="for unexpected errors: id of the log entry")


class Problem(HTTPException):
    """An exception that the client gets as problem details."""

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code
        self.members = members

    def response(self, path: str) -> Response:
        content = {
            "type": "about:blank",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "code": self.code,
            "detail": self.detail,
            "instance": path,
            **self.members,
        }
        # ASCII only: quoted input may contain surrogates, which UTF-8 cannot encode.
        return Response(
            json.dumps(plain(content), allow_nan=False).encode("ascii"),
            status_code=self.status_code,
            media_type=MEDIA_TYPE,
            headers={"Cache-Control": "no-store", **(self.headers or {})},
        )


def invalid(errors: Sequence[Mapping[str, Any]], body: Any = None) -> Problem:
    """All errors that pydantic found, each at its field."""
    found = list(_field_errors(errors, body))
    shown = "; ".join(f"{error['path']}: {error['message']}" for error in found[:3])
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return Problem(422, "invalid", f"{shown}{more}", errors=found[:_MAX_ERRORS])


def invalid_parameter(location: str, name: str, message: str, value: Any) -> Problem:
    """An invalid query parameter or header."""
    return invalid([{"loc": (location, name), "type": "invalid", "msg": message, "input": value}])


@contextmanager
def field_problems(body: Any = None) -> Iterator[None]:
    """Turn a ValidationError into a problem; `body` is the validated document."""
    try:
        yield
    except ValidationError as error:
        raise invalid(error.errors(include_url=False), body) from error


def storage_problem(state: DiskState) -> Problem:
    """A write that disk or database refused; nothing has changed."""
    status, code, detail = _STORAGE_PROBLEMS[state]
    return Problem(status, code, detail, headers={"Retry-After": "10"})


def plain(value: Any) -> Any:
    """A value that JSON can carry, as an error message repeats it."""
    return to_json(value, nan="NaN", other=_other)


def _other(value: Any) -> Any:
    return plain(value.model_dump(mode="json", by_alias=True)) if isinstance(value, BaseModel) else repr(value)


def shortened(value: Any) -> Any:
    """A value that is short enough for an error message."""
    value = plain(value)
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}..."
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a very large number"
    if isinstance(value, list):
        entries = [shortened(entry) for entry in value[:_MAX_ITEMS]]
        return entries if len(value) <= _MAX_ITEMS else [*entries, "..."]
    if isinstance(value, dict):
        return f"an object with {', '.join(list(value)[:6]) or 'no fields'}"[:_MAX_TEXT]
    return value


def _field_errors(errors: Sequence[Mapping[str, Any]], body: Any) -> Iterator[dict[str, Any]]:
    for error in errors:
        location, parts = "body", list(error["loc"])
        if parts == ["body"] or (len(parts) > 1 and parts[0] in _SOURCES):
            location = str(parts.pop(0))
            if parts and parts[0] in BRANCHES.values():
                parts.pop(0)
        document = body if location == "body" else None
        path = list(_walk(parts, document)) if isinstance(document, Mapping) else [str(part) for part in parts]
        message = str(error["msg"]).removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = "unknown field: remove it or correct its name"
        elif error["type"] == "missing":
            message = "is required"
        yield {
            "path": ".".join(path)[:_MAX_TEXT] or location,
            "location": location,
            "value": None if error["type"] == "missing" else shortened(error.get("input")),
            "message": message if len(message) <= 3 * _MAX_TEXT else f"{message[: 3 * _MAX_TEXT]}...",
        }


def _walk(parts: list[str | int], document: Any) -> Iterator[str]:
    """The parts of an error location that exist in the document; pydantic also names branches of unions.

    Minima that `methods` or `forks` make are not in the document: their locations stay whole.
    """
    if parts and parts[0] == "minima" and document.get("minima") is None:
        yield from map(str, parts)
        return
    for index, part in enumerate(parts):
        try:
            document = document[part]
        except (LookupError, TypeError):
            if part == "[key]" or index < len(parts) - 1 or not isinstance(document, Mapping):
                continue
        yield str(part)
