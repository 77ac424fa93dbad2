"""Builds the application: routes, middleware, error handlers, the page, and the lifespan of the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES
from starlette.responses import Response

from valleyscope.app.api.dependencies import AppState
from valleyscope.app.api.middleware.head_requests import HeadMiddleware, allowed_methods
from valleyscope.app.api.middleware.request_log import PREFIX, RequestLog
from valleyscope.app.api.middleware.security import AccessControl, BodyLimit, SecurityHeaders
from valleyscope.app.api.openapi import DESCRIPTION
from valleyscope.app.api.problems import MEDIA_TYPE, Problem, ProblemDetails, invalid, storage_problem
from valleyscope.app.api.routes import (
    bulk,
    catalog,
    checkpoints,
    contents,
    events,
    experiments,
    figures,
    files,
    gallery,
    landscapes,
    operations,
    optimizers,
    planes,
    results,
    shares,
)
from valleyscope.app.api.share_access import without_token
from valleyscope.app.api.static_files import add_page
from valleyscope.app.settings import Settings
from valleyscope.app.storage.db_errors import classify, short_message
from valleyscope.app.storage.experiment_table import Unknown, WrongState
from valleyscope.app.storage.object_store import StoreUnavailable

log = logging.getLogger(__name__)

_PAGE = Path(__file__).resolve().parents[2] / "static"
_GZIP_LEVEL = 4


def create_app(settings: Settings, *, page: Path = _PAGE) -> FastAPI:
    """Build the application; the service starts and stops with it."""
    settings.check_exposure()
    app_state = AppState(settings)
    service = app_state.service

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.start)
        service.event_feed.listeners.append(app_state.metrics.count_event)
        await asyncio.to_thread(app_state.model_info_cache.prepare)
        try:
            yield
        finally:
            app_state.closing = True
            await asyncio.to_thread(app_state.model_info_cache.close)
            await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="Valleyscope",
        version=version("valleyscope"),
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # both pages load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.app_state = app_state
    for module in (
        bulk,
        experiments,
        planes,
        events,
        contents,
        results,
        figures,
        files,
        checkpoints,
        landscapes,
        shares,
        gallery,
        catalog,
        optimizers,
        operations,
    ):
        app.include_router(module.router, prefix=PREFIX)
    app.include_router(operations.root_router)
    if (page / "index.html").is_file():
        add_page(app, page)
    _handle_errors(app)
    _complete_openapi(app)
    # The middleware added last sees a request first.
    app.add_middleware(
        files.Compression,
        compresslevel=_GZIP_LEVEL,
        exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/x-hdf5"),
    )
    app.add_middleware(HeadMiddleware)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(AccessControl, settings=settings, shares=service.share_table)
    app.add_middleware(RequestLog, metrics=app_state.metrics)
    app.add_middleware(SecurityHeaders, embed=settings.embed)
    return app


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return error.response(request.url.path)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        path = request.url.path[:200]
        code, detail = {
            404: ("unknown-path", f"path {path} does not exist: see {PREFIX}/openapi.json"),
            405: ("no-such-method", f"{path} does not support {request.method[:20]}"),
            400: ("bad-request", str(error.detail)),
        }.get(error.status_code, ("refused", str(error.detail)))
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = allowed_methods(app.routes, request.scope)
        return Problem(error.status_code, code, detail, headers=headers).response(request.url.path)

    @app.exception_handler(RequestValidationError)
    async def validation(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        problem = invalid(errors, error.body)
        if any(found["type"] == "json_invalid" for found in errors):
            reason, position = errors[0].get("ctx", {}).get("error", ""), errors[0]["loc"][-1]
            problem = Problem(400, "bad-json", f"the body is not valid JSON: {reason} at character {position}")
        return problem.response(request.url.path)

    @app.exception_handler(Unknown)
    @app.exception_handler(WrongState)
    async def refused(request: Request, error: Unknown | WrongState) -> Response:
        status, code = (404, "unknown") if isinstance(error, Unknown) else (409, "wrong-state")
        return Problem(status, code, str(error)[:300]).response(request.url.path)

    @app.exception_handler(StoreUnavailable)
    async def store_unavailable(request: Request, error: StoreUnavailable) -> Response:
        log.error("%s", error)
        detail = "the object store cannot be reached or written: try again later"
        return Problem(503, "no-store", detail, headers={"Retry-After": "5"}).response(request.url.path)

    @app.exception_handler(SQLAlchemyError)
    @app.exception_handler(OSError)
    async def storage_error(request: Request, error: SQLAlchemyError | OSError) -> Response:
        state = classify(error)
        if state is None:
            raise error
        path = without_token(request.url.path)
        log.warning("%s failed: %s", request.method, short_message(error), extra={"path": path})
        return storage_problem(state).response(request.url.path)


def _complete_openapi(app: FastAPI) -> None:
    """Add problem details and the API key to the OpenAPI document, and remove FastAPI's own error schemas."""
    build = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = build()
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            details = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= details.pop("$defs", {})
            schemas["ProblemDetails"] = details
            for path in document["paths"].values():
                for operation in path.values():
                    for status, response in operation["responses"].items():
                        if int(status) >= 400:
                            response["content"] = {MEDIA_TYPE: response["content"][MEDIA_TYPE]}
            document["components"]["securitySchemes"] = {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "if the server has one"}
            }
            document["security"] = [{}, {"key": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
