"""What the token of a read-only link allows: to read one experiment, whatever key the server has."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope

from valleyscope.app.api.problems import Problem, storage_problem
from valleyscope.app.storage.db_errors import classify
from valleyscope.app.storage.share_table import BadToken, ShareRow, ShareTable

TOKEN_HEADER: Final = "X-Share-Token"
SHARED_VIEW: Final = "/shared"
_WHAT_IT_OPENS = "/api/shared"
_STATE = "valley_share"
_READ = re.compile(r"/api/experiments/(?P<id>[^/]+)(/(?!share(/|$))[a-z]+(/[^/]+)?)?")


def admit(shares: ShareTable, token: str, scope: Scope) -> None:
    """Let a request with a token pass, or raise a problem. Only reads of the token's own experiment pass."""
    try:
        share = shares.open(token)
    except BadToken as error:
        raise Problem(401, "bad-token", str(error)) from None
    except SQLAlchemyError as error:
        if (state := classify(error)) is None:
            raise
        raise storage_problem(state) from error
    if not _allowed(share, scope):
        detail = f"the token in {TOKEN_HEADER} only reads experiment {share.experiment}"
        raise Problem(403, "share-only", detail)
    scope[_STATE] = share


def share_of(scope: Scope) -> ShareRow | None:
    """The link by which a request was admitted."""
    found: ShareRow | None = scope.get(_STATE)
    return found


def _allowed(share: ShareRow, scope: Scope) -> bool:
    if scope["method"] not in ("GET", "HEAD"):
        return False
    path = _READ.fullmatch(scope["path"])
    return scope["path"] == _WHAT_IT_OPENS or (path is not None and path["id"] == share.experiment)


def without_token(path: str) -> str:
    """A path as logs may have it.

    >>> without_token("/shared/019a8c3f2be5d0c1.secret"), without_token("/api/experiments")
    ('/shared/...', '/api/experiments')
    """
    return f"{SHARED_VIEW}/..." if path.startswith(f"{SHARED_VIEW}/") else path
