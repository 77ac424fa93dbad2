"""The response bodies of results: surfaces, minima, methods, profiles, the matrix and the verdict."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.api.schemas import Identifier, Number, ResponseModel


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


class PlaneValues(PlaneFields):
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
