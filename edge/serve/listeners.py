"""Where the server listens: always for this device itself, and for the network when `ListenerPolicy` says so.

Localhost speaks HTTP (browsers take it for secure); the network gets TLS only. Both serve the same guarded application.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import structlog
import uvicorn
import zeroconf
from fastapi import APIRouter
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from edge.clock import monotonic
from edge.errors import ReflectWorldError, SettingsError
from edge.serve.api_voice import LARGER_BODIES
from edge.serve.auth import DeviceAuth
from edge.serve.certificates import Certificates, Served
from edge.serve.devices import Devices
from edge.serve.discovery import Advert
from edge.serve.gate import Gate, ListenerPolicy
from edge.serve.guards import guarded
from edge.serve.network import OwnAddresses, device_name
from edge.serve.origins import client_group, is_loopback
from edge.serve.pairing import Link, Pairing, link, pairing_router
from edge.serve.problems import Problem
from edge.settings import ServeSettings

LOOK_S: Final = 0.25  # how often the rule is looked at
OPEN_S: Final = 5.0  # to open the listener takes less
RENEW_S: Final = 30.0  # how often addresses and certificate are
RETRY_S: Final = 5.0  # after the listener could not be opened
CLOSE_S: Final = 2  # open requests have so long when a listener closes
PER_ADDRESS: Final = 40  # connections of one address of the network at once

_log = structlog.get_logger()


class Access:
    """Who may come in, and how: devices, keys, the invitation, the certificate and the guards of one service.

    Args:
        home: the folder of the memory.
        settings: of the server.
        run_token: the secret of `run.token`.
        addresses: gives the addresses of the device now.

    Raises:
        PairingError: `devices.json` is damaged.
    """

    def __init__(
        self,
        home: Path,
        settings: ServeSettings,
        *,
        run_token: str | None = None,
        addresses: Callable[[], tuple[str, ...]] | None = None,
    ) -> None:
        self.settings = settings
        self.name = device_name(settings)
        self.hosts = (*(host.lower() for host in settings.hosts), f"{self.name}.local")
        self.addresses = addresses if addresses is not None else OwnAddresses()
        self.devices = Devices(home)
        self.auth = DeviceAuth(self.devices, run_token=run_token)
        self.pairing = Pairing(self.devices)
        self.certificates = Certificates(home, settings, self.name)
        self.lan_port = settings.lan_port  # the real one, once it listens
        self.trouble: str | None = None  # "": listens; None: does not, as nobody may come
        self.patience_s = 0.0  # how long an invitation waits for the network listener, if there is one

    def policy(self) -> ListenerPolicy:
        """What is open to the network now."""
        return ListenerPolicy(len(self.devices), self.pairing.inviting)

    def guard(self, app: ASGIApp) -> ASGIApp:
        """An application behind the gate and the guards."""
        settings = self.settings
        return guarded(
            Gate(app, self.auth, self.devices, self.policy),
            names=self.hosts,
            addresses=self.addresses,
            max_body_bytes=settings.max_body_bytes,
            body_timeout_s=settings.body_timeout_s,
            larger=LARGER_BODIES,
        )

    def router(self) -> APIRouter:
        """The routes of pairing and of devices."""
        return pairing_router(
            self.auth,
            self.devices,
            self.pairing,
            self.certificates,
            offer=self._offer,
            listening=lambda: self.trouble,
        )

    async def _offer(self, token: str, expires: float) -> Link:
        until = monotonic() + self.patience_s
        while self.trouble is None and monotonic() < until:  # noqa: ASYNC110 -- as in `Listeners`
            await asyncio.sleep(LOOK_S / 5)
        if self.trouble:
            raise Problem(503, "pairing-listener", self.trouble)
        addresses = self.addresses()
        served = await asyncio.to_thread(self.certificates.ensure, addresses)
        return link(token, expires, served, self.hosts, addresses, self.lan_port)


class Listeners:
    """The listeners of one service: `bind`, then `run` until it is cancelled.

    Args:
        app: behind its guards (`Access.guard`).
        access: decides whether the network is let in.
        lan_host: address to listen at for the network; None: all.
        advertise: whether the device tells its name by mDNS.
    """

    def __init__(self, app: ASGIApp, access: Access, *, lan_host: str | None = None, advertise: bool = True) -> None:
        self._app = app
        self._access = access
        self._settings = access.settings
        self._lan_host = lan_host
        self._advertise = advertise
        self._sockets: list[socket.socket] = []

    def bind(self) -> str:
        """Take the localhost port.

        Returns:
            The address for commands of this device, for example `http://127.0.0.1:8765`.

        Raises:
            SettingsError: the port is taken.
        """
        try:
            first = socket.create_server(("127.0.0.1", self._settings.port))
        except OSError as error:
            raise SettingsError(
                f"Port {self._settings.port} cannot be used ({error.strerror}): does the service run already? "
                "Else set REFLECTWORLD_SERVE__PORT to another one."
            ) from error
        port = first.getsockname()[1]
        self._sockets = [first]
        with contextlib.suppress(OSError):  # no IPv6 here: browsers try 127.0.0.1 next
            self._sockets.append(socket.create_server(("::1", port), family=socket.AF_INET6))
        return f"http://127.0.0.1:{port}"

    async def run(self) -> None:
        """Serve until cancelled; then end what is open within two seconds."""
        if not self._sockets:
            self.bind()
        self._access.patience_s = OPEN_S
        async with asyncio.TaskGroup() as group:
            group.create_task(_serve(self._server(lifespan="auto"), self._sockets), name="listen-local")
            group.create_task(self._lan(), name="listen-lan")

    async def _lan(self) -> None:
        """Open and close the LAN listener as the rule says."""
        access = self._access
        while True:
            access.trouble = None
            while not access.policy().lan_open:  # noqa: ASYNC110 -- time and other processes change it too
                await asyncio.sleep(LOOK_S)
            try:
                await self._listen()
            except (ReflectWorldError, OSError) as error:
                access.trouble = str(error) if isinstance(error, ReflectWorldError) else _trouble(access, error)
                _log.error("the network listener is closed", error=access.trouble)
                await self._wait(RETRY_S)

    async def _wait(self, seconds: float) -> None:
        until = monotonic() + seconds
        while monotonic() < until and self._access.policy().lan_open:  # noqa: ASYNC110 -- as above
            await asyncio.sleep(LOOK_S)

    async def _listen(self) -> None:
        """Listen to the network until the rule says no more."""
        access = self._access
        served = await asyncio.to_thread(access.certificates.ensure, access.addresses())
        server = self._server(lifespan="off")
        server.config.load()
        server.config.ssl = access.certificates.context(served)
        listening = _lan_socket(self._lan_host, self._settings.lan_port)
        access.lan_port = listening.getsockname()[1]
        advert = Advert(access.name, access.lan_port, interfaces=[self._lan_host] if self._lan_host else None)
        task = asyncio.create_task(_serve(server, [listening]), name="listen-lan-server")
        _log.info("open to the network", port=access.lan_port, fingerprint=served.groups)
        access.trouble = ""
        try:
            renew = monotonic() + RENEW_S
            await self._tell(advert)
            while access.policy().lan_open and not task.done():
                await asyncio.sleep(LOOK_S)
                if monotonic() >= renew:
                    renew = monotonic() + RENEW_S
                    served = await self._renew(served)
                    await self._tell(advert)
        finally:
            access.trouble = None
            task.cancel()
            try:
                await advert.hide()
            finally:
                await asyncio.wait({task})
            _log.info("closed to the network")

    async def _renew(self, served: Served) -> Served:
        access = self._access
        try:
            now = await asyncio.to_thread(access.certificates.ensure, access.addresses())
            access.certificates.context(now)
        except (ReflectWorldError, OSError) as error:
            _log.error("the certificate could not be renewed", error=str(error))
            return served
        if now.fingerprint != served.fingerprint:
            _log.info("the certificate is new", fingerprint=now.groups)
        return now

    async def _tell(self, advert: Advert) -> None:
        if not self._advertise:
            return
        addresses = (self._lan_host,) if self._lan_host is not None else self._access.addresses()
        try:
            await advert.show(addresses)
        except (OSError, zeroconf.Error) as error:
            _log.warning("the device's name cannot be told by mDNS", name=self._access.name, error=repr(error))

    def _server(self, *, lifespan: Any) -> uvicorn.Server:
        settings = self._settings
        return _Server(
            uvicorn.Config(
                self._app,
                http=_impatient(settings.header_timeout_s, PER_ADDRESS),
                ws="none",
                lifespan=lifespan,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # whoever is behind a proxy of this device must not pass for local
                limit_concurrency=settings.max_connections,
                timeout_graceful_shutdown=CLOSE_S,
                backlog=128,
            )
        )


class _Server(uvicorn.Server):
    """A server that leaves signals to the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    """Run a server; when this is cancelled, it ends in order first."""
    task = asyncio.create_task(server.serve(sockets), name=f"serve:{sockets[0].getsockname()[1]}")
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = True
        await task
        raise


def _lan_socket(host: str | None, port: int) -> socket.socket:
    if host is not None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # IPv6 is switched off: IPv4 alone then
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _trouble(access: Access, error: OSError) -> str:
    return (
        f"The network listener cannot be opened at port {access.settings.lan_port} ({error.strerror or error}); "
        "free the port, or set REFLECTWORLD_SERVE__LAN_PORT to another one."
    )


def _impatient(header_s: float, per_address: int) -> type[H11Protocol]:
    """HTTP of uvicorn with what it lacks: a time limit for the head of a request, and a bound of connections an address."""
    open_connections: Counter[str] = Counter()

    class Impatient(H11Protocol):
        _hurry: asyncio.TimerHandle | None = None
        _group: str | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
            super().connection_made(transport)
            host = self.client[0] if self.client else None
            if not is_loopback(host):
                self._group = client_group(host)
                open_connections[self._group] += 1
                if open_connections[self._group] > per_address:
                    transport.abort()
                    return
            self._arm()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._answering():
                self._disarm()
            else:
                self._arm()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._answering():
                self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            if self._group is not None:
                open_connections[self._group] -= 1
                if open_connections[self._group] <= 0:
                    del open_connections[self._group]
            super().connection_lost(exc)

        def _answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _arm(self) -> None:
            if self._hurry is None and not self.transport.is_closing():
                self._hurry = self.loop.call_later(header_s, self._too_slow)

        def _disarm(self) -> None:
            if self._hurry is not None:
                self._hurry.cancel()
                self._hurry = None

        def _too_slow(self) -> None:
            self._hurry = None
            if not self._answering():
                self.transport.abort()

    return Impatient
