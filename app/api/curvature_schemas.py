"""The answer of /api/experiments/{id}/curvature."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from valleyscope.app.api.schemas import Identifier, Number, ResponseModel

MaybeNumbers = list[Number]


class SpectrumDensity(ResponseModel):
    """The density of the eigenvalues on a grid; null where there is next to nothing."""

    x: list[Number]
    y: MaybeNumbers


class FactorSpread(ResponseModel):
    """Direction factors at one cut."""

    cut: Number
    removed: int = Field(description="directions above the cut")
    smallest: Number
    median: Number
    largest: Number


class Directions(ResponseModel):
    """Direction factors s_i of the groups, and the train loss along three directions."""

    layers: list[str] = Field(description="the layer of every group")
    norms: list[Number]
    cut: Number
    factors: list[Number]
    spread: list[FactorSpread]
    distances: list[Number]
    losses: dict[str, MaybeNumbers] = Field(
        description="at the distances: flat (flat subspace), groups (all groups shrink), sharpest (first eigenvector)"
    )


class Scores(ResponseModel):
    """How well a prediction fits; null where it is not defined."""

    zero: Number = Field(description="predicted zero groups")
    agreement: Number = Field(description="share of groups that are zero in both or in neither")
    auc: Number = Field(description="probability that a group that vanished ranks above one that did not")
    correlation: Number = Field(description="of predicted and measured norms")


class Trial(ResponseModel):
    """Predicted and measured norms of the groups of an AltSDP run."""

    strength: Number = Field(description="lambda, the threshold at the end of the run")
    layers: list[str]
    start: list[Number] = Field(description="norms at the SGD minimum")
    factors: list[Number]
    measured: list[Number]
    theorem: list[Number] = Field(description="predicted with the direction factors")
    null: list[Number] = Field(description="predicted with s_i = 1")
    zero: int = Field(description="groups that vanished")
    scores: dict[Literal["theorem", "null"], Scores]
    note: str
    text: str = Field(description="the result in words")


class MinimumCurvature(ResponseModel):
    """The curvature of the train loss at a minimum."""

    kind: str = Field(description="hessian, or ggn: generalised Gauss-Newton matrix")
    samples: int
    dimension: int = Field(description="weights")
    products: int = Field(description="Hessian-vector products that it took")
    converged: bool
    eigenvalues: list[Number] = Field(description="the largest, in falling order")
    residuals: list[Number]
    lowest: list[Number] = Field(description="the most negative")
    lowest_residuals: list[Number]
    trace: Number
    trace_error: Number = Field(description="standard error")
    trace_interval: MaybeNumbers = Field(description="95 % interval")
    density: SpectrumDensity | None
    epochs: dict[str, MaybeNumbers] = Field(
        description="along training: epoch, largest, residual, trace, trace_error, edge of stability (edge)"
    )
    directions: Directions | None
    trials: dict[str, Trial] = Field(description="by the name of the pruned minimum")


class CurvatureAnswer(ResponseModel):
    experiment: Identifier
    minima: dict[str, MinimumCurvature]
