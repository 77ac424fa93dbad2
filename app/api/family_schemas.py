"""The response bodies of /api/experiments/{id}/forks, ensembles and map."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from valleyscope.app.api.schemas import Identifier, Number, ResponseModel


class LineEstimate(ResponseModel):
    """A number of a straight line, with its bootstrap interval if there is one."""

    value: Number
    low: Number
    high: Number


class SeedRange(ResponseModel):
    """Mean over seeds, the lowest and the highest; of a single seed the bootstrap interval of its line."""

    mean: Number
    low: Number
    high: Number
    count: int = Field(description="number of seeds")


class ForkValues(ResponseModel):
    """One fork: the line to its trunk, and the end of its training."""

    model_config = ConfigDict(extra="allow")
    name: str
    trunk: str
    barrier: LineEstimate | None
    rise: LineEstimate | None


class ForkPointBody(ResponseModel):
    """All forks of a kind at one epoch."""

    epoch: int
    forks: list[ForkValues]
    barrier: SeedRange | None
    rise: SeedRange | None
    train_loss: SeedRange | None
    test_accuracy: SeedRange | None
    zero_groups: SeedRange | None


class ForkCurveBody(ResponseModel):
    """Forks of one kind over the epoch at which they left their trunk."""

    kind: str = Field(examples=["altsdp"])
    settled: int | None = Field(
        description="first epoch from which on no fork has a barrier above the tolerance; null if there is none"
    )
    points: list[ForkPointBody]


class Forks(ResponseModel):
    """Barrier and rise between a run and its forks, over the epoch of the fork."""

    experiment: Identifier
    curves: list[ForkCurveBody]
    unrelated: LineEstimate | None = Field(description="barrier to a network from another initialisation")
    split: str = Field(description="data of the losses")
    tolerance: float = Field(description="of the verdict")
    remarks: list[str] = Field(description="what the curves say")


class Score(ResponseModel):
    """Mean loss in nats and error, a share."""

    loss: Number
    error: Number


class EnsembleMember(ResponseModel):
    name: str
    scores: dict[str, Score] = Field(description="by split")


class EnsembleBody(ResponseModel):
    """A set of minima as one network, and as several that vote."""

    name: str
    members: list[EnsembleMember]
    average: dict[str, Score] = Field(description="the network of the mean weights, with its own BatchNorm statistics")
    ensemble: dict[str, Score] = Field(description="the mean of the predicted probabilities")


class Ensembles(ResponseModel):
    """Sets of minima, as far as they are computed."""

    experiment: Identifier
    items: list[EnsembleBody]


class MapPlaces(ResponseModel):
    """Coordinates in the order of the minima, by classical scaling."""

    x: list[float]
    y: list[float]
    shown: float = Field(description="share of the differences that two dimensions show")


class Map(ResponseModel):
    """A map of the minima, and their order by clusters."""

    experiment: Identifier
    minima: list[str]
    order: list[str] = Field(description="by average-linkage clustering of the barriers")
    distances: list[list[float]] = Field(description="in weight space, in the order of minima")
    distance: MapPlaces
    barrier: MapPlaces
