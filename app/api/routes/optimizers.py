"""/api/optimizers: what a minimum can be trained with."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from valleyscope.app.api.dependencies import State
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.schemas import ResponseModel
from valleyscope.training.optimizers import OPTIMIZERS, OWN

router = APIRouter(tags=["catalog"])


class NamedOptimizer(ResponseModel):
    """An optimiser that a minimum can name."""

    name: str
    description: str
    options: dict[str, Any] = Field(description="fields that only this optimiser has, with their defaults")
    lr: float | None = Field(description="the usual learning rate where it is not that of the spec")


class NamedOptimizers(ResponseModel):
    items: list[NamedOptimizer]


@router.get("/optimizers", response_model=NamedOptimizers, responses=problems())
def optimizers(app_state: State) -> Any:
    """List the optimisers that a minimum can name: those that are built in, and those that the operator allows."""
    named = [
        NamedOptimizer(name=name, description=info.description, options=dict(info.options), lr=info.lr)
        for name, info in OPTIMIZERS.items()
    ]
    own = [
        NamedOptimizer(
            name=name, description="added by the operator of this server", options=dict(OWN.options), lr=None
        )
        for name in app_state.settings.allowed_optimizers
    ]
    return NamedOptimizers(items=named + own)
