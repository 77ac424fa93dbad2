"""Shared parts of the OpenAPI document: description, errors, links."""

from __future__ import annotations

from typing import Any, Final

from valleyscope.app.api.problems import MEDIA_TYPE

DESCRIPTION: Final = """
Submit an experiment, watch it, and read its results: do these trained networks lie in one flat valley of the loss?

- Errors are `application/problem+json` (RFC 9457) with a `code`; errors of single fields are listed under `errors`.
- Losses are in nats, errors and accuracies are shares in [0, 1].
- Infinity is the string `"Infinity"`, a missing number is `null`.
- Results grow while an experiment runs. Each has an `ETag`; with `If-None-Match` you get 304 while nothing changed.
- `HEAD` works wherever `GET` does.
- If the server has an API key, send it as `X-API-Key`.
"""

_DESCRIPTIONS: Final = {
    400: "The request is malformed, such as invalid JSON",
    401: "The key is missing or wrong",
    403: "The request comes from a page of another site",
    404: "It does not exist; `not-yet`: not computed yet; `none`: the experiment ended without it",
    405: "The path does not support this method",
    406: "No media type in Accept is available",
    409: "The state of the experiment does not allow it",
    413: "The body is too large",
    415: "The route does not accept this Content-Type",
    416: "Range is outside of the file",
    421: "The server does not accept this Host",
    422: "A field is invalid; `errors` lists each one",
    429: "The queue is full, or there were too many wrong keys; see Retry-After",
    500: "Unexpected error; its id is in the log of the server",
    503: "The service is temporarily unable to do this",
    507: "The disk is full",
}
_EVERYWHERE: Final = (400, 401, 403, 405, 413, 421, 422, 429, 500, 503, 507)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route: those of every route, and its own."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted({*_EVERYWHERE, *statuses})
    }


NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "Not changed since that ETag"}}


def links(*operations: str) -> dict[str, Any]:
    """Operations on the object whose id is in the response."""
    return {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in operations}


LOCATION: Final = {"Location": {"schema": {"type": "string"}, "description": "path of the new object"}}
