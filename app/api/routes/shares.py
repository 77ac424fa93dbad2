"""/api/experiments/{id}/share: read-only links to one experiment; /api/shared: what a link opens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.api.dependencies import AppState, ExperimentId, JsonBody, State
from valleyscope.app.api.openapi import LOCATION, problems
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.schemas import Identifier, ResponseModel
from valleyscope.app.api.share_access import SHARED_VIEW, TOKEN_HEADER, share_of
from valleyscope.app.storage.share_table import ShareRow

router = APIRouter(tags=["sharing"])

_MOST_LINKS = 100
_LONGEST_DAYS = 3650
ShareId = Annotated[str, Path(max_length=64, description="id of the link", examples=["019a8c3f2be5d0c1"])]


class ShareRequest(BaseModel):
    """How long a link is to work."""

    model_config = ConfigDict(extra="forbid")
    days: float = Field(30.0, gt=0, le=_LONGEST_DAYS, description="days until it expires", examples=[30])


class Share(ResponseModel):
    """A read-only link. Who has its token can read this experiment and its files, and nothing else."""

    id: Identifier
    experiment: Identifier
    path: str = Field(description="address of the view on this server", examples=["/shared/019a8c3f2be5d0c1.qL..."])
    token: str = Field(description=f"for programs: send it as {TOKEN_HEADER}")
    created: datetime
    expires: datetime
    embed: list[str] = Field(description="origins whose pages may show the view in an iframe (VALLEY_EMBED)")


class Shares(ResponseModel):
    items: list[Share]


class Shared(ResponseModel):
    """What a token opens."""

    experiment: Identifier
    expires: datetime


@router.post(
    "/experiments/{id}/share",
    status_code=201,
    response_model=Share,
    dependencies=[JsonBody],
    responses={201: {"headers": LOCATION}, **problems(404, 409, 415)},
)
def share(id: ExperimentId, request: ShareRequest, response: Response, app_state: State) -> Any:
    """Make a read-only link to an experiment: its view opens without an API key until the link expires."""
    if len(app_state.service.share_table.list(id)) >= _MOST_LINKS:
        raise Problem(429, "too-many-links", f"this experiment has {_MOST_LINKS} links already: revoke some first")
    row = app_state.service.share(id, days=request.days)
    response.headers["Location"] = f"/api/experiments/{id}/share/{row.id}"
    return _share(row, app_state)


@router.get("/experiments/{id}/share", response_model=Shares, responses=problems(404))
def list_shares(id: ExperimentId, app_state: State) -> Any:
    """List the links to an experiment that have not expired, newest first."""
    app_state.service.get(id)
    return Shares(items=[_share(row, app_state) for row in app_state.service.share_table.list(id)])


@router.delete("/experiments/{id}/share", status_code=204, responses=problems(404, 409))
def revoke_all(id: ExperimentId, app_state: State) -> None:
    """Revoke all links to an experiment."""
    app_state.service.revoke(id)


@router.delete("/experiments/{id}/share/{share}", status_code=204, responses=problems(404, 409))
def revoke(id: ExperimentId, share: ShareId, app_state: State) -> None:
    """Revoke a link: its token opens nothing any more."""
    app_state.service.revoke(id, share)


@router.get("/shared", response_model=Shared, responses=problems())
def shared(request: Request) -> Any:
    """Tell which experiment the token in the header X-Share-Token opens, and until when."""
    row = share_of(request.scope)
    if row is None:
        raise Problem(401, "token-required", f"send the token of a link in the header {TOKEN_HEADER}")
    return Shared(experiment=row.experiment, expires=row.expires)


def _share(row: ShareRow, app_state: AppState) -> Share:
    return Share(
        id=row.id,
        experiment=row.experiment,
        path=f"{SHARED_VIEW}/{row.token}",
        token=row.token,
        created=row.created,
        expires=row.expires,
        embed=list(app_state.settings.embed),
    )
