"""Problem details (RFC 9457): every error that a client sees has this form.

{"type": "about:blank", "title": "Unprocessable Content", "status": 422, "code": "invalid", "detail": "...",
 "instance": "/api/experiments", "errors": [{"path": "minima.a.lr", "value": -1, "message": "..."}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from valleyscope.app.storage.db_errors import DiskState
from valleyscope.landscape.json_encoding import to_json

MEDIA_TYPE: Final = "application/problem+json"
_LONGEST_VALUE = 200
_LONGEST_LIST = 20
_MOST_ERRORS = 50
BRANCHES: Final = {"spec": "[spec]", "recipe": "[recipe]"}
"""Tags of the union that a body may be: pydantic puts them into an error's place, where a field's name misleads."""
_SOURCES = ("body", "query", "path", "header", "cookie")
_OBSTACLES: Final[dict[DiskState, tuple[int, str, str]]] = {
    "full": (507, "disk-full", "the server's disk is full: try again when there is room; what it has can be read"),
    "read-only": (503, "read-only", "the server's disk cannot be written at present; what it has can be read"),
    "unreachable": (503, "no-database", "the database cannot be reached or written at present: try again"),
}


class FieldError(BaseModel):
    """One field that is wrong: where it is, what it says, and what would be right."""

    path: str = Field(description="names joined by dots, such as minima.altsdp.mu", examples=["minima.altsdp.mu"])
    location: str = Field("body", description="body, query, path or header", examples=["body"])
    value: Any = Field(None, description="what was given, shortened", examples=[-1])
    message: str = Field(description="what would be right", examples=["Input should be greater than 0"])


class ProblemDetails(BaseModel):
    """An error, in the form of RFC 9457."""

    model_config = ConfigDict(extra="allow")
    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(description="the status in words", examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(description="what a program may switch on", examples=["unknown-experiment"])
    detail: str = Field(description="what happened, and what to do", examples=["there is no experiment 'x'"])
    instance: str | None = Field(None, description="the path that was asked for", examples=["/api/experiments/x"])
    errors: list[FieldError] | None = Field(None, description="each field that is wrong")
    id: str | None = Field(None, description="of an unexpected error: the same id is in the log")


class Problem(HTTPException):
    """Raised anywhere below a route, sent to the client as problem details."""

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
        # ASCII only: what a client sent may have surrogates, which UTF-8 cannot carry.
        return Response(
            json.dumps(plain(content), allow_nan=False).encode("ascii"),
            status_code=self.status_code,
            media_type=MEDIA_TYPE,
            headers={"Cache-Control": "no-store", **(self.headers or {})},
        )


def invalid(errors: Sequence[Mapping[str, Any]], body: Any = None) -> Problem:
    """Everything that pydantic found wrong, each at its field."""
    found = list(_field_errors(errors, body))
    shown = "; ".join(f"{error['path']}: {error['message']}" for error in found[:3])
    more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
    return Problem(422, "invalid", f"{shown}{more}", errors=found[:_MOST_ERRORS])


def storage_problem(obstacle: DiskState) -> Problem:
    """A write that the server's disk or database does not allow at present; nothing was changed by it."""
    status, code, detail = _OBSTACLES[obstacle]
    return Problem(status, code, detail, headers={"Retry-After": "10"})


def plain(value: Any) -> Any:
    """A value that JSON can carry, as an error message repeats it."""
    return to_json(value, nan="NaN", other=_other)


def _other(value: Any) -> Any:
    return plain(value.model_dump(mode="json", by_alias=True)) if isinstance(value, BaseModel) else repr(value)


def shortened(value: Any) -> Any:
    """A value as an error message may repeat it: never longer than a few lines."""
    value = plain(value)
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a very large number"
    if isinstance(value, list):
        entries = [shortened(entry) for entry in value[:_LONGEST_LIST]]
        return entries if len(value) <= _LONGEST_LIST else [*entries, "..."]
    if isinstance(value, dict):
        return f"an object with {', '.join(list(value)[:6]) or 'no fields'}"[:_LONGEST_VALUE]
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
            message = "unknown field: remove it, or correct its name"
        elif error["type"] == "missing":
            message = "is required"
        yield {
            "path": ".".join(path)[:_LONGEST_VALUE] or location,
            "location": location,
            "value": None if error["type"] == "missing" else shortened(error.get("input")),
            "message": message if len(message) <= 3 * _LONGEST_VALUE else f"{message[: 3 * _LONGEST_VALUE]}...",
        }


def _walk(parts: list[str | int], document: Any) -> Iterator[str]:
    """The parts of an error's place that are in the document: pydantic also names the branches of unions."""
    for index, part in enumerate(parts):
        try:
            document = document[part]
        except (LookupError, TypeError):
            if part == "[key]" or index < len(parts) - 1 or not isinstance(document, Mapping):
                continue
        yield str(part)
