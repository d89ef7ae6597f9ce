"""Who may do what: dependencies that routes ask for a device with a scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection

from edge.serve.problems import Problem
from edge.serve.protocols import Auth, Device, Scope


def admit(auth: Auth, scope: Scope | None, connection: HTTPConnection) -> Device:
    """The device that asks; without a scope, any that is known.

    Raises:
        Problem: 401: it is not known; 403: it lacks the scope.
    """
    client = connection.client.host if connection.client else None
    known = auth.authenticate(connection.headers, connection.cookies, client)
    if known is None:
        raise Problem(
            401,
            "unauthorised",
            "This needs the key of a paired device; pair one with `reflectworld pair`.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    if scope is not None and not known.may(scope):
        raise Problem(403, "forbidden", f"“{known.name}” may not do this: it lacks the scope “{scope}”.")
    return known


def requires(auth: Auth, scope: Scope) -> Callable[[HTTPConnection], Awaitable[Device]]:
    """A FastAPI dependency that gives the device which asks, and refuses as `admit` does."""

    async def device(connection: HTTPConnection) -> Device:  # async, so that it needs no thread
        return admit(auth, scope, connection)

    return device
