"""The response bodies, as OpenAPI describes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from valleyscope.app.experiments.cost import CORE, GPU, RULE, Device, Estimate
from valleyscope.app.experiments.spec_parts import Model, Text
from valleyscope.app.storage.experiment_table import ExperimentState
from valleyscope.landscape.json_encoding import to_json

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


class TypedArray(ResponseModel):
    """An array in the format of plotly: base64 of little-endian values."""

    dtype: Literal["f8", "u1"]
    bdata: str = Field(description="base64")
    shape: str = Field(description="such as '41, 41'; rows first")


class ToleranceLevel(ResponseModel):
    """Up to which value the claim of the verdict counts a path as flat."""

    end: float = Field(description="the higher end of the judged path")
    tolerance: float
    value: float = Field(description="end plus tolerance: where pictures draw the tolerance contour")
    peak: float = Field(description="highest value on the judged paths and on the way to the control")
    judged: bool = Field(description="false: the verdict does not judge this quantity")
    floor: float | None = Field(None, description="of a slope: the lowest value of the line plus the tolerance")


class PlaneFields(ResponseModel):
    """All of a plane but its values."""

    experiment: Identifier
    plane: str
    kind: str = Field(description="through, around or principal")
    unit: str = Field(description="of both axes")
    loss_unit: str = Field("nats", description="of losses; empty for a loss with a unit of its own, such as mse")
    complete: bool = Field(description="whether every point is computed")
    computed: int = Field(description="number of computed points")
    x: TypedArray
    y: TypedArray
    done: TypedArray = Field(description="1 where computed")
    points: dict[str, list[float]] = Field(description="named points: x and y, projected if they are off the plane")
    distances: dict[str, float] = Field(description="distance of each named point from the plane")
    paths: dict[str, TypedArray] = Field(description="curves and trajectories, projected: n rows of x and y")
    defining: list[str] = Field(description="names of the points that span the plane")
    explained: list[float] | None = Field(
        None, description="share of the squared distances of snapshots that each principal direction carries"
    )
    offsets: dict[str, TypedArray] = Field(
        default_factory=dict, description="of trajectories: distance of every snapshot from the plane"
    )
    axes: list[str] = Field([], description="where x and y lead, for planes along measured directions; else empty")
    note: str
    estimate: dict[str, Any] = Field(
        {},
        description="of an estimated surface: accuracy, evaluated (share of all pairs computed), settled, exact splits",
    )


class Surface(PlaneFields):
    """Values on the grid of a plane; a row is one value of y."""

    split: str
    value: Literal["loss", "error", "loss_error", "error_error"]
    z: TypedArray = Field(description="values; NaN where not computed, infinity where the loss overflowed")
    level: ToleranceLevel | None = Field(description="null before the verdict, or if the plane does not show its claim")


class Plane(PlaneFields):
    """A plane with all that was recorded on it."""

    grids: dict[str, TypedArray] = Field(
        description='values by split and quantity, such as "train loss", "test error" or "train loss_error"'
    )


class Layer(ResponseModel):
    """Number of groups and parameters of a layer that are exactly zero."""

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
    epochs: dict[str, list[Number]] = Field(description="one list per quantity, one value per epoch")
    layers: list[Layer]
    final: dict[str, Number] = Field(description="the last values")
    checkpoint: str | None = Field(description="name of its file under /files")
    pruning: dict[str, Any] = Field(
        {},
        description="what its pruning method did: threshold_ended, cut (before, stale, after), macs, collapsed, text",
    )
    compact: dict[str, Any] | None = Field(
        None,
        description="the network without its zero groups: `before`, `after` with parameters, multiply_adds and bytes; "
        "`latency` in seconds by batch size (median and quartiles), `layers` with their widths, `files`; "
        "`smaller` is false without zero groups, `refused` says why a network was not handled; null before that",
    )


class MethodSpread(ResponseModel):
    mean: Number
    deviation: Number | None = Field(description="standard deviation over seeds; null for one seed")
    count: int = Field(description="number of seeds")


class MethodRow(ResponseModel):
    """One method at one share of pruning."""

    name: str
    method: str
    wish: float | None = Field(description="share of zero groups, or of multiply-adds left")
    minima: list[str] = Field(description="its networks, one for each seed")
    values: dict[str, MethodSpread] = Field(
        description="test_accuracy, accuracy_before_cut, accuracy_after_cut, train_loss, zero_groups, macs, rise and "
        "barrier to the SGD network of the same seed, time over that of SGD, latency_1 and latency_32: latency of the "
        "compact network over that of the whole one, for 1 and 32 samples"
    )
    collapsed: int = Field(description="seeds in which the network is no better than guessing")


class Methods(ResponseModel):
    """Pruning methods side by side."""

    experiment: str
    rows: list[MethodRow]
    remarks: list[str] = Field(description="what a reader should not miss")
    published: list[dict[str, Any]] = Field(description="numbers of the paper for this network and data, not ours")


class Minima(ResponseModel):
    """The minima that are ready."""

    experiment: Identifier
    minima: dict[str, Minimum]


class PathProfile(ResponseModel):
    """Loss (in nats, unless loss_unit says otherwise) and error (a share) along a path."""

    name: str
    kind: str = Field(description="bezier, polychain, line or curve")
    start: str
    end: str
    loss_unit: str = Field("nats", description="of losses; empty for a loss with a unit of its own, such as mse")
    t: list[float]
    arc: list[Number] = Field(description="distance along the path in weight space")
    loss: dict[str, list[Number]] = Field(description="by split")
    error: dict[str, list[Number]] = Field(description="by split")
    barrier: dict[str, Number] = Field(description="by split: the highest loss minus the loss of the higher end")
    fit: dict[str, list[Number]] = Field(
        default_factory=dict,
        description="of a fitted curve, by epoch: epoch, mean loss over the curve in nats, learning_rate, and bend1, "
        "bend2, ... with the distance of each bend from the straight line; empty for a line",
    )
    note: str = Field("", description="where the values come from, of landscapes of other tools")


class Profile(ResponseModel):
    """Curves, and straight lines between minima."""

    experiment: Identifier
    curves: dict[str, PathProfile]
    lines: dict[str, PathProfile]
    aligned: dict[str, PathProfile] = Field(
        {}, description="lines to the second minimum with its hidden units in the order of the first; see `align`"
    )


class PairValues(ResponseModel):
    """A quantity of the line between every two minima, in nats: squares, row by row."""

    value: list[list[Number | None]]
    low: list[list[Number | None]] = Field(description="lower end of the bootstrap interval")
    high: list[list[Number | None]] = Field(description="upper end")


class AlignedPairs(ResponseModel):
    """The same with the hidden units of the later minimum of each pair in the order of the earlier one."""

    barrier: PairValues
    rise: PairValues


class Matrix(ResponseModel):
    """Barrier and rise between every two minima."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "experiment": "019a8c3f2be5d0c1",
                    "minima": ["sgd", "altsdp", "control"],
                    "split": "train",
                    "level": 0.95,
                    "tolerance": 0.05,
                    "barrier": {
                        "value": [[None, 0.0, 0.93], [0.0, None, 0.88], [0.93, 0.88, None]],
                        "low": [[None, 0.0, 0.9], [0.0, None, 0.85], [0.9, 0.85, None]],
                        "high": [[None, 0.001, 0.96], [0.001, None, 0.91], [0.96, 0.91, None]],
                    },
                    "rise": {
                        "value": [[None, 0.031, 0.94], [0.031, None, 0.92], [0.94, 0.92, None]],
                        "low": [[None, 0.027, 0.91], [0.027, None, 0.89], [0.91, 0.89, None]],
                        "high": [[None, 0.036, 0.97], [0.036, None, 0.95], [0.97, 0.95, None]],
                    },
                }
            ]
        }
    )
    experiment: Identifier
    minima: list[str] = Field(description="the order of rows and columns")
    split: str = Field(description="data of the losses")
    level: float = Field(description="level of the intervals")
    tolerance: float = Field(description="of the verdict: up to this barrier and rise a line is level")
    barrier: PairValues
    rise: PairValues
    aligned: AlignedPairs | None = Field(None, description="of aligned lines; only where the spec has `align`")


class Verdict(BaseModel):
    """The verdict: its kind, a sentence, and the numbers behind it."""

    model_config = ConfigDict(extra="allow")
    kind: str = Field(description="level valley; one basin, sloping; joined by a curve only; separate; or undecided")
    sentence: str


class Checkpoint(ResponseModel):
    """An uploaded checkpoint; use its id as `checkpoint` of a minimum."""

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
    """The final threshold of AltSDP compared with the initial norms of the groups."""

    c: float
    reach: Number = Field(description="G, the accumulated threshold after training")
    smallest_norm: float | None = Field(description="of the groups before training; null while unknown")
    median_norm: float | None
    prunes: bool | None = Field(description="whether G exceeds the smallest norm; if not, no group becomes zero")


class ServiceTime(ResponseModel):
    """How long an experiment takes on the workers of this service while they do nothing else."""

    workers: int
    devices: dict[str, int] = Field(description="workers by kind of device: core or GPU")
    hours: float | None = Field(description="null without workers")


class Cost(ResponseModel):
    """The estimated cost of an experiment."""

    gpu_hours: float
    core_hours: float
    limit_gpu_hours: float = Field(description="above this, submit with `force: true`")
    allowed: bool = Field(description="whether it is within the limit")
    parameters: int | None
    multiply_adds: float = Field(description="in the forward pass of one sample")
    stages: dict[str, StageCost]
    lines: int = Field(description="straight lines that the profiles measure: one for every two minima")
    minima: dict[str, MinimumReach] = Field(description="of the minima that AltSDP trains")
    rule: str
    notes: list[str] = Field(description="what the estimate cannot know")
    service: ServiceTime

    @classmethod
    def of(cls, cost: Estimate, limit: float, devices: Sequence[Device]) -> Cost:
        kinds = {"GPU": devices.count(GPU), "core": devices.count(CORE)}
        return cls(
            gpu_hours=cost.gpu_hours,
            core_hours=cost.core_hours,
            limit_gpu_hours=limit,
            allowed=cost.gpu_hours <= limit,
            parameters=cost.parameters,
            multiply_adds=cost.multiply_adds,
            lines=cost.lines,
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
            notes=list(cost.notes),
            service=ServiceTime(
                workers=len(devices),
                devices={kind: count for kind, count in kinds.items() if count},
                hours=cost.wall_hours(devices),
            ),
        )


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
    name: Text = Field("checkpoint", min_length=1, max_length=120)
