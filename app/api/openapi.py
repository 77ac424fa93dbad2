"""What OpenAPI says about errors, the same words for every route."""

from __future__ import annotations

from typing import Any, Final

from valleyscope.app.api.problems import MEDIA_TYPE

DESCRIPTION: Final = """
Submit an experiment, watch it, and read its results: do these trained networks lie in one flat valley of the loss?

- Errors are `application/problem+json` (RFC 9457) with a `code`; those of a field are listed under `errors`.
- Losses are in nats, errors and accuracies are shares in [0, 1].
- Numbers that JSON cannot carry are words: `"Infinity"`; what was never recorded is `null`.
- Results of a running experiment grow; each has an `ETag`, and `If-None-Match` answers 304 while nothing is new.
- `HEAD` is answered as `GET`, without a body.
- With a key on the server, send it as `X-API-Key`.
"""

_WORDS: Final = {
    400: "The request cannot be read, such as JSON that is none",
    401: "The key is missing or wrong",
    403: "The request comes from a page of another site",
    404: "There is no such thing (`none`: the experiment has ended without it), or not yet (`not-yet`)",
    405: "The path has no such method",
    406: "None of the forms in Accept is offered",
    409: "The state of the experiment does not allow it",
    413: "The body is too large",
    415: "The body has another form than the route takes",
    416: "The file has no such bytes",
    421: "The server is not called by this name",
    422: "A field is wrong; each one is listed with what would be right",
    429: "Too many: the queue is full, or too many wrong keys; Retry-After says when",
    500: "Something unexpected; its id is in the server's log",
    503: "The service cannot do it at present",
    507: "The disk is full",
}
_EVERYWHERE: Final = (400, 401, 403, 405, 413, 421, 422, 429, 500, 503, 507)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with: those of every route, and its own."""
    return {
        status: {
            "description": _WORDS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted({*_EVERYWHERE, *statuses})
    }


NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "Nothing is new since that ETag"}}


def links(*operations: str) -> dict[str, Any]:
    """What one may do next with the thing whose id is in the answer."""
    return {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in operations}


LOCATION: Final = {"Location": {"schema": {"type": "string"}, "description": "path of what was made"}}
