"""/api/experiments/bulk: the same action for many experiments, each with its own outcome."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from valleyscope.app.api.dependencies import JsonBody, State
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.schemas import MOST_TAGS, ResponseModel, Tag
from valleyscope.app.api.service import Service
from valleyscope.app.storage.experiment_table import Unknown, WrongState

router = APIRouter(tags=["experiments"])

Id = Annotated[str, Field(max_length=64, examples=["019a8c3f2be5d0c1"])]


class BulkRequest(BaseModel):
    """An action and the experiments that it is for."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["cancel", "delete", "restore", "tag", "untag"] = Field(
        description="delete moves to the trash", examples=["delete"]
    )
    ids: list[Id] = Field(min_length=1, max_length=200)
    permanent: bool = Field(False, description="with delete: with the files and at once, also from the trash")
    tags: list[Tag] = Field(
        [], max_length=MOST_TAGS, validate_default=True, description="with tag and untag: what to add or to remove"
    )

    @field_validator("tags")
    @classmethod
    def _tags_where_needed(cls, tags: list[str], info: ValidationInfo) -> list[str]:
        needed = info.data.get("action") in ("tag", "untag")
        if needed and not tags:
            raise ValueError("is empty: give at least one tag")
        if tags and not needed:
            raise ValueError("is only for the actions tag and untag")
        return tags

    def act(self, service: Service, id: str) -> None:
        """Do it to one experiment; raises Unknown or WrongState where that is refused."""
        match self.action:
            case "cancel":
                service.cancel(id)
            case "delete":
                service.delete(id, permanent=self.permanent)
            case "restore":
                service.restore(id)
            case "tag":
                service.change_tags(id, add=self.tags)
            case "untag":
                service.change_tags(id, remove=self.tags)


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
    """Cancel, delete, restore, tag or untag many experiments. Each has its own outcome: a refusal stops no other."""
    items = []
    for id in dict.fromkeys(request.ids):
        try:
            request.act(app_state.service, id)
            items.append(BulkOutcome(id=id, ok=True, code=None, detail=None))
        except (Unknown, WrongState) as error:
            code = "unknown" if isinstance(error, Unknown) else "wrong-state"
            items.append(BulkOutcome(id=id, ok=False, code=code, detail=str(error)[:300]))
    return BulkOutcomes(items=items)
