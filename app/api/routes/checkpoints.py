"""/api/checkpoints: upload weights that were trained elsewhere."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from valleyscope.app.api.dependencies import AppState, State
from valleyscope.app.api.openapi import LOCATION, links, problems
from valleyscope.app.api.problems import Problem, field_problems, invalid_parameter
from valleyscope.app.api.schemas import Checkpoint, Checkpoints, UploadQuery
from valleyscope.app.api.upload_stream import bad_upload, stream_upload
from valleyscope.app.storage.safetensors_check import UPLOAD_FOLDER, BadUpload, StreamedSafetensors

router = APIRouter(tags=["checkpoints"])

CheckpointId = Annotated[str, Path(max_length=64, description="id of the upload", examples=["019a8c3f2be5d0c1"])]
_PARALLEL_UPLOADS = asyncio.Semaphore(4)
_FIELDS = ("model", "dataset", "loss", "name")
_BAD = "bad-checkpoint"

_FORM_SCHEMA = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "the safetensors file"},
        **{name: {"type": "string", "description": "as in the query"} for name in _FIELDS},
    },
}


@router.post(
    "/checkpoints",
    status_code=201,
    response_model=Checkpoint,
    responses={
        201: {"headers": LOCATION, "links": links("read_checkpoint", "delete_checkpoint")},
        **problems(415),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "A safetensors file: its bytes alone, or in the field `file` of a form",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {"schema": _FORM_SCHEMA},
            },
        }
    },
)
async def upload(
    request: Request,
    response: Response,
    app_state: State,
    model: Annotated[
        str | None,
        Query(max_length=2000, description="name of the network, or JSON with its options", examples=["cnn"]),
    ] = None,
    dataset: Annotated[str | None, Query(max_length=400, description="data set", examples=["digits"])] = None,
    loss: Annotated[
        str | None, Query(max_length=20, description="loss of the spec: its targets give the outputs", examples=["mse"])
    ] = None,
    name: Annotated[str | None, Query(max_length=120, description="display name")] = None,
) -> Any:
    """Upload the weights of a network as safetensors. Use them as `{"checkpoint": id}` in a spec.

    Names and shapes must match the network, and all values must be finite. Pass `model`, `dataset`
    and, unless it is cross_entropy, `loss` in the query or in the form.
    """
    async with _PARALLEL_UPLOADS:
        stored = await run_in_threadpool(app_state.service.checkpoint_table.list)
        if len(stored) >= app_state.settings.max_uploads:
            raise Problem(429, "too-many-uploads", f"there are {len(stored)} checkpoints already: delete some first")
        upload_file = StreamedSafetensors(app_state.settings.home / UPLOAD_FOLDER, app_state.settings.max_upload)
        try:
            fields = await stream_upload(request, upload_file, fields=_FIELDS, code=_BAD)
            given = {"model": model, "dataset": dataset, "loss": loss, "name": name} | fields
            row = await run_in_threadpool(_add_checkpoint, app_state, upload_file, given)
        finally:
            await run_in_threadpool(upload_file.discard)
    response.headers["Location"] = f"/api/checkpoints/{row.id}"
    return row


@router.get("/checkpoints", response_model=Checkpoints, responses=problems())
def list_checkpoints(app_state: State) -> Any:
    """List uploaded checkpoints, newest first."""
    return {"items": app_state.service.checkpoint_table.list()}


@router.get("/checkpoints/{id}", response_model=Checkpoint, responses=problems(404))
def read_checkpoint(id: CheckpointId, app_state: State) -> Any:
    """Read the description of an uploaded checkpoint."""
    return app_state.service.checkpoint_table.get(id)


@router.delete("/checkpoints/{id}", status_code=204, responses=problems(404, 409))
def delete_checkpoint(id: CheckpointId, app_state: State) -> None:
    """Delete an uploaded checkpoint. Experiments that used it keep their copy."""
    app_state.service.checkpoint_table.remove(id)


def _add_checkpoint(app_state: AppState, upload_file: StreamedSafetensors, given: dict[str, str | None]) -> Any:
    description = _description(given)
    with field_problems():
        model_info = app_state.submission_limits.check_source(description.dataset, description.model, description.loss)
    try:
        upload_file.finish(model_info)
    except BadUpload as error:
        raise bad_upload(error, _BAD) from error
    return app_state.service.checkpoint_table.add(
        upload_file.path,
        name=description.name,
        model=description.model.model_dump(),
        dataset=description.dataset,
        loss=description.loss,
        sha256=upload_file.sha256,
    )


def _description(given: dict[str, str | None]) -> UploadQuery:
    values: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    model = values.get("model")
    if isinstance(model, str):
        try:
            values["model"] = json.loads(model) if model.lstrip().startswith("{") else {"name": model}
        except (ValueError, RecursionError) as error:
            message = f"is neither the name of a network nor valid JSON: {str(error)[:100]}"
            raise invalid_parameter("query", "model", message, model) from error
    with field_problems():
        return UploadQuery.model_validate(values)
