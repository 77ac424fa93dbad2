"""What the routes share, and how a route asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from app.api.admission import Admission
from app.api.metrics import Metrics
from app.api.readiness import Readiness
from app.api.service import Service
from app.experiments.album import FOLDER as ALBUM
from app.experiments.album import Album
from app.experiments.blueprints import Blueprints
from app.settings import Settings
from app.storage.catalogue import Unknown
from app.storage.checkpoints import CheckpointRow
from app.storage.snapshots import Snapshots


@dataclass
class Wiring:
    """The parts of a running service. `closing` ends streams that would go on for ever."""

    settings: Settings
    service: Service
    admission: Admission
    blueprints: Blueprints
    snapshots: Snapshots
    readiness: Readiness
    metrics: Metrics
    closing: bool = field(default=False)


def wire(settings: Settings, service: Service) -> Wiring:
    """Put the parts together; nothing is started yet."""
    readiness = Readiness(service, settings.home)
    blueprints = Blueprints(settings.data, settings.max_parameters, Album(settings.home / ALBUM))
    return Wiring(
        settings=settings,
        service=service,
        admission=Admission(settings, blueprints, lambda id: _find_checkpoint(service, id)),
        blueprints=blueprints,
        snapshots=Snapshots(),
        readiness=readiness,
        metrics=Metrics(service, readiness),
    )


def _find_checkpoint(service: Service, id: str) -> CheckpointRow | None:
    try:
        return service.checkpoint(id)
    except Unknown:
        return None


def wiring_of(request: Request) -> Wiring:
    wiring = request.app.state.wiring
    assert isinstance(wiring, Wiring)
    return wiring


Wired = Annotated[Wiring, Depends(wiring_of)]
