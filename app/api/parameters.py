"""Parameters that routes share: the id of an experiment, and the check for a JSON body."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request

from valleyscope.app.api.problems import Problem

ExperimentId = Annotated[str, Path(max_length=64, description="id of the experiment", examples=["019a8c3f2be5d0c1"])]


def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = f"the body must be JSON, not {kind[:100] or 'untyped'}: send Content-Type: application/json"
        raise Problem(415, "not-json", detail, headers={"Accept": "application/json"})


JsonBody: Final = Depends(_require_json)
