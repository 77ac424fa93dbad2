"""What the routes answer with, as OpenAPI describes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.experiments.estimate import CORE, GPU, RULE, Estimate
from valleyscope.app.experiments.spec import Model, Text
from valleyscope.app.storage.experiment_table import ExperimentState
from valleyscope.landscape.json_encoding import to_json

Identifier = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", examples=["019a8c3f2be5d0c1"])]
# JSON has no infinity: one that overflowed is the word "Infinity", one that was not recorded is null.
Number = float | Literal["Infinity", "-Infinity"] | None


class ResponseModel(BaseModel):
    """A base whose JSON schema has no surprises: every field is there."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, json_schema_serialization_defaults_required=True)


class ExperimentSummary(ResponseModel):
    """An experiment as it is listed."""

    id: Identifier
    name: str = Field(description="what people call it")
    state: ExperimentState = Field(description="queued, running, done, failed or cancelled")
    stage: str = Field(description="what it is doing: minima, curves, surfaces, profiles, verdict")
    progress: float = Field(ge=0, le=1, description="share that is done")
    seconds_left: float | None = Field(description="time left, once it can be told")
    created: datetime
    started: datetime | None
    finished: datetime | None
    run: int = Field(description="1, and one more for every retry")
    priority: int = Field(description="lower runs first")
    error: str | None = Field(description="why it failed")
    verdict_kind: str | None = Field(description="one basin, joined by a curve only, separate, or undecided")
    sentence: str | None = Field(description="the verdict in words, with its numbers")
    dataset: str
    model: str = Field(description="the network and its options")
    minima: list[str] = Field(description="names of the minima, in the order of the spec")
    planes: list[str] = Field(description="names of the planes")


class Experiment(ExperimentSummary):
    """An experiment with its spec, and where its results are."""

    spec: dict[str, Any] = Field(description="as it was given, defaults left out")
    links: dict[str, str] = Field(description="paths of its events, results and files")


class ExperimentPage(ResponseModel):
    """Some experiments, newest first."""

    items: list[ExperimentSummary]
    next: str | None = Field(description="cursor of the next page; null on the last")


class TypedArray(ResponseModel):
    """Numbers as plotly takes them: base64 of little-endian values."""

    dtype: Literal["f8", "u1"]
    bdata: str = Field(description="base64")
    shape: str = Field(description="such as '41, 41'; rows first")


class Surface(ResponseModel):
    """Values on the grid of a plane; a row is one value of y."""

    experiment: Identifier
    plane: str
    kind: str = Field(description="through, around or principal")
    split: str
    value: Literal["loss", "error"]
    unit: str = Field(description="of both axes")
    complete: bool = Field(description="whether every point is computed")
    computed: int = Field(description="points that are computed")
    x: TypedArray
    y: TypedArray
    z: TypedArray = Field(description="values; NaN where not computed, infinity where the loss overflowed")
    done: TypedArray = Field(description="1 where computed")
    points: dict[str, list[float]] = Field(description="named points: x and y, projected if they are off the plane")
    distances: dict[str, float] = Field(description="how far each named point is off the plane")
    paths: dict[str, TypedArray] = Field(description="curves and trajectories, projected: n rows of x and y")
    defining: list[str] = Field(description="names of the points that span the plane")
    note: str


class Layer(ResponseModel):
    """How many groups and parameters of a layer are exactly zero."""

    name: str
    groups: int
    zero_groups: int
    parameters: int
    zero_parameters: int


class Minimum(ResponseModel):
    """A trained network: its settings, its metrics after each epoch, the sparsity of its layers."""

    name: str
    optimizer: str
    settings: dict[str, Any]
    epochs: dict[str, list[Number]] = Field(description="one list a quantity, one value an epoch")
    layers: list[Layer]
    final: dict[str, Number] = Field(description="the last values")
    checkpoint: str | None = Field(description="name of its file under /files")


class Minima(ResponseModel):
    """The minima that are ready."""

    experiment: Identifier
    minima: dict[str, Minimum]


class PathProfile(ResponseModel):
    """Loss (nats) and error (a share) along a path."""

    name: str
    kind: str = Field(description="bezier, polychain, line or curve")
    start: str
    end: str
    t: list[float]
    arc: list[Number] = Field(description="distance along the path in weight space")
    loss: dict[str, list[Number]] = Field(description="by split")
    error: dict[str, list[Number]] = Field(description="by split")
    barrier: dict[str, Number] = Field(description="by split: the highest loss less that of the higher end")


class Profile(ResponseModel):
    """Curves, and straight lines between minima."""

    experiment: Identifier
    curves: dict[str, PathProfile]
    lines: dict[str, PathProfile]


class Verdict(BaseModel):
    """What the numbers say."""

    model_config = ConfigDict(extra="allow")
    kind: str = Field(description="one basin, joined by a curve only, separate, or undecided")
    sentence: str


class Checkpoint(ResponseModel):
    """An uploaded checkpoint; its id is what `checkpoint` of a minimum names."""

    id: Identifier
    name: str
    model: dict[str, Any]
    dataset: str
    size: int = Field(description="bytes")
    sha256: str
    created: datetime


class Checkpoints(ResponseModel):
    items: list[Checkpoint]


class StageCost(ResponseModel):
    """The cost of a stage."""

    multiply_adds: float
    gpu_hours: float
    core_hours: float


class MinimumReach(ResponseModel):
    """What AltSDP's threshold reaches, beside the initial norms of the groups."""

    c: float
    reach: Number = Field(description="G, the accumulated threshold at the end")
    smallest_norm: float | None = Field(description="of the groups before training; null if not known yet")
    median_norm: float | None
    prunes: bool | None = Field(description="whether G exceeds the smallest norm: otherwise nothing becomes zero")


class Cost(ResponseModel):
    """What an experiment will cost."""

    gpu_hours: float
    core_hours: float
    limit_gpu_hours: float = Field(description="beyond this a submission must be forced")
    allowed: bool = Field(description="whether it is within the limit")
    parameters: int | None
    multiply_adds: float = Field(description="of one forward pass of a sample")
    stages: dict[str, StageCost]
    minima: dict[str, MinimumReach] = Field(description="of the minima that AltSDP trains")
    rule: str

    @classmethod
    def of(cls, cost: Estimate, limit: float) -> Cost:
        return cls(
            gpu_hours=cost.gpu_hours,
            core_hours=cost.core_hours,
            limit_gpu_hours=limit,
            allowed=cost.gpu_hours <= limit,
            parameters=cost.parameters,
            multiply_adds=cost.multiply_adds,
            stages={
                name: StageCost(
                    multiply_adds=work.multiply_adds, gpu_hours=GPU.hours(work), core_hours=CORE.hours(work)
                )
                for name, work in cost.stages.items()
            },
            minima={
                name: MinimumReach(
                    c=reach.c,
                    reach=to_json(reach.reach),
                    smallest_norm=reach.smallest,
                    median_norm=reach.median,
                    prunes=reach.prunes,
                )
                for name, reach in cost.minima.items()
            },
            rule=RULE,
        )


class Recipe(ResponseModel):
    """A spec that ships with the project."""

    name: str
    description: str = Field(description="what it shows, where it comes from, and what was corrected")
    spec: dict[str, Any]
    gpu_hours: float
    core_hours: float


class Recipes(ResponseModel):
    demo: str = Field(description="the one to begin with")
    items: list[Recipe]


class Architecture(ResponseModel):
    """A network that a spec may name."""

    name: str
    description: str
    options: dict[str, Any] = Field(description="with their defaults")
    needs: str = Field(description="inputs that fit")


class Architectures(ResponseModel):
    items: list[Architecture]


class DataSource(ResponseModel):
    """A data set that a spec may name."""

    name: str
    description: str
    classes: int | None
    shape: list[int] | None = Field(description="of a sample")
    train: int | None = Field(description="samples")
    test: int | None
    present: bool | None = Field(description="whether it is on the server already; else it is downloaded at first use")


class DataSources(ResponseModel):
    items: list[DataSource]


class Worker(ResponseModel):
    """A living worker."""

    id: str
    host: str
    pid: int
    device: str
    device_name: str | None = Field(None, description="what the device is called")
    memory_used: int | None = Field(None, description="bytes: of the worker on a processor, of the whole card on a GPU")
    memory_total: int | None = Field(None, description="bytes that the device has")
    state: Literal["idle", "busy"]
    experiment: str | None
    task: str | None
    since: datetime = Field(description="since when it does that")
    seen: datetime = Field(description="when it last said so")


class Workers(ResponseModel):
    items: list[Worker]


class QueuedTask(ResponseModel):
    """A task that waits for a worker."""

    experiment: str
    task: str
    priority: int
    since: datetime


class Queue(ResponseModel):
    items: list[QueuedTask]


class Health(ResponseModel):
    status: Literal["ok"]


class Ready(ResponseModel):
    """Whether the service can take work."""

    status: Literal["ready"]
    workers: int
    checks: dict[str, str]


class UploadQuery(BaseModel):
    """How a checkpoint is described beside its bytes."""

    model_config = ConfigDict(extra="forbid")
    model: Model
    dataset: Text = Field(min_length=1, max_length=400)
    name: Text = Field("checkpoint", min_length=1, max_length=120)
