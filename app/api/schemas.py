"""The response bodies, as OpenAPI describes them: experiments, checkpoints, what a spec can name, and the service.

Those of results are in `result_schemas`, the cost of a spec in `cost_schemas`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from valleyscope.app.experiments.spec_parts import Model, Text
from valleyscope.app.storage.experiment_table import ExperimentState
from valleyscope.training.losses import LossName

Identifier = Annotated[str, Field(pattern=r"^([0-9a-f]{16}|gallery-[a-z0-9-]+)$", examples=["019a8c3f2be5d0c1"])]
# JSON has no infinity and no NaN: an overflow is the string "Infinity", a missing value is null.
Number = float | Literal["Infinity", "-Infinity"] | None


Tag = Annotated[
    str, Field(min_length=1, max_length=40, pattern=r"^[^\s,](?:[^\x00-\x1f\x7f,]*[^\s,])?$", examples=["paper"])
]
MOST_TAGS = 20


class ResponseModel(BaseModel):
    """Base of all responses: every field is always present."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, json_schema_serialization_defaults_required=True)


class ExperimentSummary(ResponseModel):
    """An experiment in a list."""

    id: Identifier
    name: str = Field(description="display name")
    state: ExperimentState = Field(description="queued, running, done, failed or cancelled")
    stage: str = Field(description="minima, curves, surfaces, profiles, curvature or verdict")
    progress: float = Field(ge=0, le=1, description="completed share")
    seconds_left: float | None = Field(description="estimated time left; null while unknown")
    created: datetime
    started: datetime | None
    finished: datetime | None
    active_seconds: float | None = Field(
        description="how long it has been running, without pauses before a retry; null before it starts"
    )
    run: int = Field(description="1, plus 1 for every retry")
    priority: int = Field(description="lower runs first")
    error: str | None = Field(description="why it failed")
    verdict_kind: str | None = Field(
        description="level valley; one basin, sloping; joined by a curve only; separate; or undecided"
    )
    sentence: str | None = Field(description="the verdict in words, with its numbers")
    rise: float | None = Field(description="of the judged line: highest minus lowest loss, in nats")
    barrier: float | None = Field(description="of the judged line: highest loss minus that of the higher end, in nats")
    control_barrier: float | None = Field(description="of the line to the control, in nats")
    zero_groups: float | None = Field(description="share of groups that are zero in the second judged minimum")
    accuracy: float | None = Field(description="test accuracy of the second judged minimum, a share")
    tags: list[str]
    note: str
    origin: Literal["computed", "imported", "gallery"] = Field(
        description="imported: its landscape was uploaded; gallery: it ships with the program"
    )
    dataset: str = Field(description="empty if unknown")
    model: str = Field(description="the network and its options; empty if unknown")
    minima: list[str] = Field(description="names of the minima, in the order of the spec")
    planes: list[str] = Field(description="names of the planes")


class Experiment(ExperimentSummary):
    """An experiment with its spec and links to its results."""

    spec: dict[str, Any] = Field(description="as submitted, without defaults")
    resolved: dict[str, Any] = Field(description="the spec with all defaults, as it is executed")
    links: dict[str, str] = Field(description="paths of its events, results and files")


class Description(BaseModel):
    """What people say about an experiment; fields that are not given stay."""

    model_config = ConfigDict(extra="forbid")
    name: Text = Field("", min_length=1, max_length=120)
    tags: list[Tag] = Field([], max_length=MOST_TAGS, description="lower and upper case count as the same")
    note: Text = Field("", max_length=4000)

    @field_validator("tags")
    @classmethod
    def _unique(cls, tags: list[str]) -> list[str]:
        first = {tag.casefold(): tag for tag in reversed(tags)}
        return list(dict.fromkeys(first[tag.casefold()] for tag in tags))

    def given(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set)


class ExperimentPage(ResponseModel):
    """A page of experiments in the requested order."""

    items: list[ExperimentSummary]
    next: str | None = Field(description="cursor of the next page; null on the last page")


class Checkpoint(ResponseModel):
    """An uploaded checkpoint; use its id as `checkpoint` of a minimum."""

    id: Identifier
    name: str
    model: dict[str, Any]
    dataset: str
    loss: LossName
    size: int = Field(description="bytes")
    sha256: str
    created: datetime


class Checkpoints(ResponseModel):
    items: list[Checkpoint]


class Recipe(ResponseModel):
    """A spec that comes with Valleyscope."""

    name: str
    description: str = Field(description="what it shows, where it comes from, and what was corrected")
    spec: dict[str, Any]
    gpu_hours: float
    core_hours: float


class Recipes(ResponseModel):
    demo: str = Field(description="name of the recipe to start with")
    items: list[Recipe]


class Architecture(ResponseModel):
    """A network that a spec can name."""

    name: str
    description: str
    options: dict[str, Any] = Field(description="with their defaults")
    needs: str = Field(description="accepted inputs")


class Architectures(ResponseModel):
    items: list[Architecture]


class PruningMethod(ResponseModel):
    """A pruning method that a minimum can name."""

    name: str
    title: str
    formula: str
    source: str
    kind: str = Field(description="optimizer, penalty, projection, narrower or post hoc")
    options: dict[str, Any] = Field(
        description="with their defaults; all have sparsity or macs, structure, bias, floor"
    )
    needs_batch_norm: bool


class PruningMethods(ResponseModel):
    items: list[PruningMethod]
    not_ours: list[str] = Field(description="methods of the paper's tables that are not built: published numbers only")


class DataSource(ResponseModel):
    """A data set that a spec can name."""

    name: str
    description: str
    classes: int | None = None
    shape: list[int] | None = Field(None, description="of a sample")
    train: int | None = Field(None, description="number of training samples")
    test: int | None = Field(None, description="number of test samples")
    present: bool | None = Field(None, description="whether the server has it; otherwise it downloads it at first use")


class DataSources(ResponseModel):
    items: list[DataSource]


class Worker(ResponseModel):
    """A running worker."""

    id: str
    host: str
    pid: int
    device: str
    device_name: str | None = Field(None, description="such as the model of the GPU")
    memory_used: int | None = Field(None, description="bytes: of the worker on a CPU, of the whole card on a GPU")
    memory_total: int | None = Field(None, description="bytes of the device")
    state: Literal["idle", "busy"]
    experiment: str | None
    task: str | None
    since: datetime = Field(description="start of the current state")
    seen: datetime = Field(description="last heartbeat")


class Workers(ResponseModel):
    items: list[Worker]


class QueuedTask(ResponseModel):
    """A task waiting for a worker."""

    experiment: str
    task: str
    priority: int
    since: datetime


class Queue(ResponseModel):
    items: list[QueuedTask]


class Health(ResponseModel):
    status: Literal["ok"]


class Ready(ResponseModel):
    """The service accepts work."""

    status: Literal["ready"]
    workers: int
    checks: dict[str, str]


class UploadQuery(BaseModel):
    """The description of an uploaded checkpoint."""

    model_config = ConfigDict(extra="forbid")
    model: Model
    dataset: Text = Field(min_length=1, max_length=400)
    loss: LossName = "cross_entropy"
    name: Text = Field("checkpoint", min_length=1, max_length=120)
