"""/api/landscapes: upload finished landscapes, ours and those of other tools."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from valleyscope.app.api.dependencies import AppState, State
from valleyscope.app.api.openapi import LOCATION, links, problems
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.routes.experiments import RESULTS
from valleyscope.app.api.schemas import Experiment, ExperimentSummary
from valleyscope.app.api.serializers import detail, summary
from valleyscope.app.api.upload_stream import FILE, bad_upload, stream_upload
from valleyscope.app.experiments.landscape_import import import_landscapes
from valleyscope.app.storage.experiment_table import ExperimentRow
from valleyscope.app.storage.landscape_upload import LandscapeUpload
from valleyscope.app.storage.safetensors_check import UPLOAD_FOLDER
from valleyscope.landscape.importers import NotImportable

router = APIRouter(tags=["landscapes"])

_PARALLEL_UPLOADS = asyncio.Semaphore(2)
_BAD = "bad-landscape"
_TIMEOUT = 60.0
_FORM_SCHEMA = {
    "type": "object",
    "required": [FILE],
    "properties": {
        FILE: {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "the files, each in a field of this name",
        },
        "name": {"type": "string", "description": "as in the query"},
    },
}


class ImportedExperiment(Experiment):
    """The experiment of the first landscape, and in `items` those of all."""

    items: list[ExperimentSummary] = Field(description="one experiment for each landscape in the files")


@router.post(
    "/landscapes",
    status_code=201,
    response_model=ImportedExperiment,
    responses={201: {"headers": LOCATION, "links": links("read", "delete", *RESULTS)}, **problems(415)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "One file alone, or several in fields `file` of a form",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {"schema": _FORM_SCHEMA},
            },
        }
    },
)
async def upload_landscape(
    request: Request,
    response: Response,
    app_state: State,
    name: Annotated[str | None, Query(max_length=120, description="display name; that of the file by default")] = None,
    filename: Annotated[
        str | None, Query(max_length=200, description="name of a file that is sent alone", examples=["plane.npz"])
    ] = None,
) -> Any:
    """Upload landscapes. Each becomes an experiment that is done.

    Files are landscape.h5, plane.npz and curve.npz of dnn-mode-connectivity (those of one run become one landscape),
    and surfaces (.h5) of loss-landscape.
    """
    settings = app_state.settings
    async with _PARALLEL_UPLOADS:
        await run_in_threadpool(app_state.readiness.require_home)
        upload = LandscapeUpload(settings.home / UPLOAD_FOLDER, settings.max_landscape)
        try:
            given = await stream_upload(request, upload, fields=("name",), code=_BAD, name=filename or "")
            rows = await run_in_threadpool(_add, app_state, upload, given.get("name") or name)
        finally:
            await run_in_threadpool(upload.discard)
    response.headers["Location"] = f"/api/experiments/{rows[0].id}"
    return {**detail(rows[0]).model_dump(), "items": [summary(row) for row in rows]}


def _add(app_state: AppState, upload: LandscapeUpload, name: str | None) -> list[ExperimentRow]:
    upload.close()
    try:
        landscapes = import_landscapes(upload.files, upload.path / "landscapes", name=name, timeout=_TIMEOUT)
    except NotImportable as error:
        raise bad_upload(ValueError(_without_folders(str(error), upload)), _BAD) from error
    if not landscapes:
        raise Problem(422, _BAD, "the request has no file: send one or more in fields `file`")
    return app_state.service.add_landscapes(landscapes)


def _without_folders(message: str, upload: LandscapeUpload) -> str:
    """The message with the names of the files as the client knows them."""
    for file in upload.files:
        message = message.replace(str(file), file.name)
    return message
