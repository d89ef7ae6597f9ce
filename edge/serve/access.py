"""Who may do what: dependencies that routes ask for a device with a scope."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import HTTPConnection

from edge.serve.problems import Problem
from edge.serve.protocols import Auth, Device, Scope


def requires(auth: Auth, scope: Scope) -> Callable[[HTTPConnection], Device]:
    """A FastAPI dependency that gives the device which asks.

    It refuses with 401 whoever is not known, and with 403 whoever lacks the scope.
    """

    def device(connection: HTTPConnection) -> Device:
        client = connection.client.host if connection.client else None
        known = auth.authenticate(connection.headers, connection.cookies, client)
        if known is None:
            raise Problem(
                401,
                "unauthorised",
                "This needs the key of a paired device; pair one with `reflectworld pair`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not known.may(scope):
            raise Problem(403, "forbidden", f"“{known.name}” may not do this: it lacks the scope “{scope}”.")
        return known

    return device
