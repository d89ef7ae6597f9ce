"""Errors as problem documents (RFC 9457): one sentence with its remedy, a stable type, the right status."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import orjson
import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from edge.errors import (
    DiskFullError,
    FaultError,
    MemoryKeyError,
    ModelError,
    NotFoundError,
    QuestionError,
    ReflectWorldError,
    SourceError,
    UserError,
)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:reflectworld:problem:"

_log = structlog.get_logger()

# The first that fits counts.
_STATUS: tuple[tuple[type[ReflectWorldError], int], ...] = (
    (NotFoundError, 404),
    (QuestionError, 422),
    (SourceError, 422),
    (DiskFullError, 507),
    (ModelError, 503),
    (MemoryKeyError, 503),
    (FaultError, 503),
    (UserError, 422),
)


class Problem(Exception):  # noqa: N818 -- the word of RFC 9457
    """A refusal of the server itself."""

    def __init__(self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})


def problem(
    status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: object
) -> Response:
    """A problem document.

    Args:
        status: of HTTP.
        kind: what it is, stable, for programs; becomes `type`.
        detail: one sentence for people.
        headers: further ones of the response.
        **more: further members of the document.
    """
    document = {"type": TYPE_PREFIX + kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(orjson.dumps(document | more), status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def status_of(error: ReflectWorldError) -> int:
    """The status that an error of ours becomes."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def install(app: FastAPI) -> None:
    """Make a problem document of every error that a route or the router raises."""

    @app.exception_handler(Problem)
    async def refused(_request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)  # noqa: S101 -- for the type checker; starlette calls by type
        return problem(error.status, error.kind, error.detail, headers=error.headers)

    @app.exception_handler(ReflectWorldError)
    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, ReflectWorldError)  # noqa: S101 -- as above
        status = status_of(error)
        if status >= 500:
            _log.warning("request failed", path=request.url.path, problem=error.problem, error=str(error))
        return problem(status, error.problem, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 -- as above
        errors = [
            {"where": ".".join(str(part) for part in one["loc"]), "message": one["msg"]} for one in error.errors()[:10]
        ]
        first = errors[0] if errors else {"where": "request", "message": "not understood"}
        detail = f"The request cannot be used: {first['where']}: {first['message']}."
        return problem(422, "validation", detail, errors=errors)

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 -- as above
        phrase = HTTPStatus(error.status_code).phrase
        detail = error.detail if error.detail != phrase else f"{phrase}."
        return problem(
            error.status_code, phrase.lower().replace(" ", "-").replace("'", ""), detail, headers=error.headers
        )
