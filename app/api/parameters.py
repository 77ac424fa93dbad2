"""What routes ask of a request: the id of an experiment, and that a body is JSON."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request

from valleyscope.app.api.problems import Problem

ExperimentId = Annotated[str, Path(max_length=64, description="id of the experiment", examples=["019a8c3f2be5d0c1"])]


def _must_be_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = f"the body must be JSON, not {kind[:100] or 'of no type'}: send Content-Type: application/json"
        raise Problem(415, "not-json", detail, headers={"Accept": "application/json"})


JsonBody: Final = Depends(_must_be_json)
