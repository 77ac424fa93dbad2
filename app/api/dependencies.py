"""What routes share: the parts of the service, the id of an experiment, and the check for a JSON body."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request

from valleyscope.app.api.metrics import Metrics
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.readiness import Readiness
from valleyscope.app.api.service import Service
from valleyscope.app.api.submission_limits import SubmissionLimits
from valleyscope.app.experiments.model_info import ModelInfoCache
from valleyscope.app.experiments.model_info_cache import FOLDER, DiskCache
from valleyscope.app.settings import Settings
from valleyscope.app.storage.landscape_cache import LandscapeCache


class AppState:
    """The parts of a service; building them starts none. Event streams end when `closing` is set."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.service = Service(settings)
        self.model_info_cache = ModelInfoCache(
            settings.data, settings.max_parameters, DiskCache(settings.home / FOLDER)
        )
        self.submission_limits = SubmissionLimits(settings, self.model_info_cache, self.service.checkpoint_table.find)
        self.landscape_cache = LandscapeCache()
        self.readiness = Readiness(self.service, settings.home)
        self.metrics = Metrics(self.service, self.readiness)
        self.closing = False


def _state_of(request: Request) -> AppState:
    app_state: AppState = request.app.state.app_state
    return app_state


def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = f"the body must be JSON, not {kind[:100] or 'untyped'}: send Content-Type: application/json"
        raise Problem(415, "not-json", detail, headers={"Accept": "application/json"})


State = Annotated[AppState, Depends(_state_of)]
ExperimentId = Annotated[str, Path(max_length=64, description="id of the experiment", examples=["019a8c3f2be5d0c1"])]
JsonBody: Final = Depends(_require_json)
