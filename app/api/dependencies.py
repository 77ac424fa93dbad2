"""The objects that all routes share, as a FastAPI dependency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from valleyscope.app.api.metrics import Metrics
from valleyscope.app.api.readiness import Readiness
from valleyscope.app.api.service import Service
from valleyscope.app.api.submission_limits import SubmissionLimits
from valleyscope.app.experiments.model_info import ModelInfoCache
from valleyscope.app.experiments.model_info_cache import FOLDER, DiskCache
from valleyscope.app.settings import Settings
from valleyscope.app.storage.checkpoint_table import CheckpointRow
from valleyscope.app.storage.experiment_table import Unknown
from valleyscope.app.storage.landscape_cache import LandscapeCache


@dataclass
class AppState:
    """The parts of a running service. Event streams end when `closing` is set."""

    settings: Settings
    service: Service
    submission_limits: SubmissionLimits
    model_info_cache: ModelInfoCache
    landscape_cache: LandscapeCache
    readiness: Readiness
    metrics: Metrics
    closing: bool = False


def build_state(settings: Settings, service: Service) -> AppState:
    """Build the parts without starting any."""
    readiness = Readiness(service, settings.home)
    model_info_cache = ModelInfoCache(settings.data, settings.max_parameters, DiskCache(settings.home / FOLDER))
    return AppState(
        settings=settings,
        service=service,
        submission_limits=SubmissionLimits(settings, model_info_cache, lambda id: _find_checkpoint(service, id)),
        model_info_cache=model_info_cache,
        landscape_cache=LandscapeCache(),
        readiness=readiness,
        metrics=Metrics(service, readiness),
    )


def _find_checkpoint(service: Service, id: str) -> CheckpointRow | None:
    try:
        return service.checkpoint_table.get(id)
    except Unknown:
        return None


def state_of(request: Request) -> AppState:
    app_state = request.app.state.app_state
    assert isinstance(app_state, AppState)
    return app_state


State = Annotated[AppState, Depends(state_of)]
