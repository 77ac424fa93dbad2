"""The estimated cost of an experiment, as OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from valleyscope.app.api.schemas import Number, ResponseModel
from valleyscope.app.experiments.cost import CORE, GPU, RULE, Device, Estimate
from valleyscope.landscape.json_encoding import to_json


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
