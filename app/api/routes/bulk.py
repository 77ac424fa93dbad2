"""/api/experiments/bulk: the same action for many experiments, each with its own outcome."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.api.dependencies import JsonBody, State
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.schemas import ResponseModel
from valleyscope.app.storage.experiment_table import Unknown, WrongState

router = APIRouter(tags=["experiments"])

Id = Annotated[str, Field(max_length=64, examples=["019a8c3f2be5d0c1"])]


class BulkRequest(BaseModel):
    """An action and the experiments that it is for."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["cancel", "delete", "restore"] = Field(description="delete moves to the trash", examples=["delete"])
    ids: list[Id] = Field(min_length=1, max_length=200)


class BulkOutcome(ResponseModel):
    """What became of one experiment."""

    id: str
    ok: bool
    code: str | None = Field(description="null, unknown or wrong-state")
    detail: str | None = Field(description="why it was refused")


class BulkOutcomes(ResponseModel):
    items: list[BulkOutcome] = Field(description="in the order of the request")


@router.post("/experiments/bulk", response_model=BulkOutcomes, dependencies=[JsonBody], responses=problems(415))
def bulk(request: BulkRequest, app_state: State) -> Any:
    """Cancel, delete or restore many experiments. Each has its own outcome: one that is refused stops no other."""
    act = getattr(app_state.service, request.action)
    items = []
    for id in dict.fromkeys(request.ids):
        try:
            act(id)
            items.append(BulkOutcome(id=id, ok=True, code=None, detail=None))
        except (Unknown, WrongState) as error:
            code = "unknown" if isinstance(error, Unknown) else "wrong-state"
            items.append(BulkOutcome(id=id, ok=False, code=code, detail=str(error)[:300]))
    return BulkOutcomes(items=items)
