"""How the server listens: uvicorn with bounds on who keeps it waiting."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from edge.settings import ServeSettings

_GRACE_S = 2  # to finish answers when the server stops
_KEEP_ALIVE_S = 15
_HEADERS_MAX = 32_768  # bytes


def server_config(app: ASGIApp, settings: ServeSettings, **more: Any) -> uvicorn.Config:
    """What to make a `uvicorn.Server` of.

    Args:
        app: of `build_app`, perhaps wrapped.
        settings: the bounds.
        **more: further arguments of `uvicorn.Config`: host and port, sockets, TLS.
    """
    return uvicorn.Config(
        app,
        **{
            "http": _impatient(settings.header_timeout_s),
            "ws": "none",
            "lifespan": "on",
            "log_config": None,
            "access_log": False,
            "proxy_headers": False,  # whoever asks says nothing about where from
            "server_header": False,
            "limit_concurrency": settings.max_connections,
            "timeout_keep_alive": _KEEP_ALIVE_S,
            "timeout_graceful_shutdown": _GRACE_S,
            "h11_max_incomplete_event_size": _HEADERS_MAX,
            **more,
        },
    )


def _impatient(header_timeout_s: float) -> type[asyncio.Protocol]:
    """The protocol of a connection, which is closed where it asks nothing whole in time (“slow loris”)."""

    class Impatient(H11Protocol):
        """HTTP/1.1 with an end to waiting for the rest of a request's head."""

        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
            super().connection_made(transport)
            self._patience = self.loop.call_later(header_timeout_s, self._lose_patience)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)  # which ends uvicorn's own keep-alive timer at the first byte
            if not self._waiting():
                self._relax()
            elif self._patience is None:
                self._patience = self.loop.call_later(header_timeout_s, self._lose_patience)

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def _waiting(self) -> bool:
            """Whether no request is being answered."""
            cycle: Any = self.cycle
            return cycle is None or cycle.response_complete

        def _relax(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _lose_patience(self) -> None:
            self._patience = None
            if self._waiting() and not self.transport.is_closing():
                self.transport.abort()

    return Impatient
