"""/api/gallery: finished landscapes that ship with the program."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from valleyscope.app.api.openapi import problems
from valleyscope.app.api.schemas import ExperimentSummary, ResponseModel
from valleyscope.app.api.serializers import summary
from valleyscope.app.experiments.gallery import gallery_entries
from valleyscope.app.storage.gallery_rows import gallery_row

router = APIRouter(tags=["catalog"])


class GalleryItem(ExperimentSummary):
    """A landscape to explore: read it at /api/experiments/{id} as an experiment. It cannot be changed."""

    shows: str = Field(description="what to look at, in one sentence")


class Gallery(ResponseModel):
    items: list[GalleryItem]


@router.get("/gallery", response_model=Gallery, responses=problems())
def list_gallery() -> Any:
    """List the landscapes that ship with the program. They are not in the list of experiments."""
    return Gallery(
        items=[
            GalleryItem(**summary(gallery_row(entry.id)).model_dump(), shows=entry.shows) for entry in gallery_entries()
        ]
    )
