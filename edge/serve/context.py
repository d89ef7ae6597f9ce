"""What the routes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import Depends

from edge.serve.access import requires
from edge.serve.protocols import Auth, Scope, ServiceLike
from edge.serve.work import Workers


@dataclass(frozen=True, slots=True)
class Context:
    """One server."""

    service: ServiceLike
    auth: Auth
    workers: Workers

    def needs(self, scope: Scope) -> Any:
        """A dependency for routes that only a device with this scope may use; it gives the device."""
        return Depends(requires(self.auth, scope))
