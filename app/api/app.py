"""The one place that wires the API: routes, guards, errors, the page, and the life of the service behind them."""

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
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES
from starlette.responses import Response

from valleyscope.app.api.dependencies import build_state
from valleyscope.app.api.middleware.head_requests import HeadMiddleware, allowed_methods
from valleyscope.app.api.middleware.request_log import PREFIX, RequestLog
from valleyscope.app.api.middleware.security import AccessControl, BodyLimit, SecurityHeaders
from valleyscope.app.api.openapi import DESCRIPTION
from valleyscope.app.api.problems import MEDIA_TYPE, Problem, ProblemDetails, invalid, storage_problem
from valleyscope.app.api.routes import (
    catalog,
    checkpoints,
    contents,
    events,
    experiments,
    figures,
    files,
    operations,
    results,
)
from valleyscope.app.api.service import Service
from valleyscope.app.api.static_files import add_page
from valleyscope.app.settings import Settings
from valleyscope.app.storage.db_errors import classify, short_message
from valleyscope.app.storage.experiment_table import Unknown, WrongState
from valleyscope.app.storage.object_store import StoreUnavailable

log = logging.getLogger(__name__)

_PAGE = Path(__file__).resolve().parents[2] / "static"
_COMPRESSION = 4


def create_app(settings: Settings, *, page: Path = _PAGE) -> FastAPI:
    """The application; the service starts and stops with it."""
    settings.check_exposure()
    service = Service(settings)
    app_state = build_state(settings, service)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.start)
        service.observe(app_state.metrics.hear)
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
        lifespan=life,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # both load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation,
    )
    app.state.app_state = app_state
    for module in (experiments, events, contents, results, figures, files, checkpoints, catalog, operations):
        app.include_router(module.router, prefix=PREFIX)
    app.include_router(operations.root_router)
    if (page / "index.html").is_file():
        add_page(app, page)
    _handle_errors(app)
    _describe(app)
    # The last one added is the first to see a request.
    app.add_middleware(
        files.Compression,
        compresslevel=_COMPRESSION,
        exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/x-hdf5"),
    )
    app.add_middleware(HeadMiddleware)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(AccessControl, settings=settings)
    app.add_middleware(RequestLog, metrics=app_state.metrics)
    app.add_middleware(SecurityHeaders)
    return app


def _operation(route: APIRoute) -> str:
    """The operation's id in OpenAPI: the name of its function."""
    return route.name


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return error.response(request.url.path)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        found = Problem(error.status_code, _CODES.get(error.status_code, "refused"), _words(request, error))
        found.headers = dict(error.headers or {})
        if error.status_code == 405:
            found.headers["Allow"] = allowed_methods(app.routes, request.scope)
        return found.response(request.url.path)

    @app.exception_handler(RequestValidationError)
    async def validation(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        if any(found["type"] == "json_invalid" for found in errors):
            short_message = errors[0].get("ctx", {}).get("error", "")
            where = errors[0]["loc"][-1]
            return Problem(400, "bad-json", f"the body is not JSON: {short_message} at character {where}").response(
                request.url.path
            )
        return invalid(errors, error.body).response(request.url.path)

    @app.exception_handler(Unknown)
    async def unknown(request: Request, error: Unknown) -> Response:
        return Problem(404, "unknown", str(error)[:300]).response(request.url.path)

    @app.exception_handler(WrongState)
    async def wrong_state(request: Request, error: WrongState) -> Response:
        return Problem(409, "wrong-state", str(error)).response(request.url.path)

    @app.exception_handler(StoreUnavailable)
    async def store(request: Request, error: StoreUnavailable) -> Response:
        log.error("%s", error)
        detail = "the store of files cannot be reached or written at present: try again"
        return Problem(503, "no-store", detail, headers={"Retry-After": "5"}).response(request.url.path)

    @app.exception_handler(SQLAlchemyError)
    @app.exception_handler(OSError)
    async def refused(request: Request, error: SQLAlchemyError | OSError) -> Response:
        found = classify(error)
        if found is None:
            raise error
        log.warning("%s was refused: %s", request.method, short_message(error), extra={"path": request.url.path})
        return storage_problem(found).response(request.url.path)


_CODES = {404: "unknown-path", 405: "no-such-method", 400: "bad-request"}


def _words(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"there is nothing at {request.url.path[:200]}: see {PREFIX}/openapi.json"
    if error.status_code == 405:
        return f"{request.url.path[:200]} has no method {request.method[:20]}"
    return str(error.detail)


def _describe(app: FastAPI) -> None:
    """Complete the OpenAPI document: the form of errors, the key, and no form of errors that is not ours."""
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
