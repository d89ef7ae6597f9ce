"""Pairing: the invitation that is open now, the page that a phone opens with it, and who may do what to devices."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import segno
import structlog
from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from edge.clock import iso, monotonic, utc_now
from edge.serve.access import requires
from edge.serve.auth import COMMAND, key_cookie
from edge.serve.certificates import Certificates, Served, grouped
from edge.serve.devices import NAME_CHARS, Devices, PairedDevice, device_json
from edge.serve.guards import client_of
from edge.serve.invitation import LIFETIME_S, TRIES_OF_ALL, Invitation, Stage, Verdict, invite, present
from edge.serve.origins import client_group
from edge.serve.owner import same_owner
from edge.serve.problems import Problem
from edge.serve.protocols import Auth, Device, Scope

_log = structlog.get_logger()

_STATIC: Final = Path(__file__).resolve().parent / "static"
_ASSETS: Final = {
    "/pair": ("pair.html", "text/html; charset=utf-8"),
    "/pair/pair.js": ("js/pair.js", "text/javascript; charset=utf-8"),
    "/pair/pair.css": ("css/pair.css", "text/css; charset=utf-8"),
}
PHONE_SCOPES: Final = frozenset({Scope.PUBLISH, Scope.ASK})


@dataclass(frozen=True, slots=True)
class Link:
    """Where a phone pairs: what the code carries."""

    url: str  # with the token and the certificate's fingerprint behind the #, which browsers send to nobody
    others: tuple[str, ...]  # the same by address, for phones that do not resolve `.local`
    served: Served
    expires: float  # UTC POSIX seconds

    def svg(self) -> str:
        """The code as an SVG image."""
        out = io.BytesIO()
        qr_code(self.url).save(out, kind="svg", scale=6, border=4, light="white", xmldecl=False)
        return out.getvalue().decode()

    def png(self) -> bytes:
        """The code as a PNG image."""
        out = io.BytesIO()
        qr_code(self.url).save(out, kind="png", scale=8, border=4)
        return out.getvalue()


def qr_code(text: str) -> segno.QRCode:
    """A QR code of the fewest modules: it is read from a screen, which has no scratches."""
    return segno.make_qr(text, error="l")


class Pairing:
    """The one invitation of a service. Safe for threads.

    Args:
        devices: where paired devices are kept.
        clock: seconds that never go backwards.
    """

    def __init__(self, devices: Devices, *, clock: Callable[[], float] = monotonic) -> None:
        self._devices = devices
        self._clock = clock
        self._mutex = threading.Lock()
        self._invitation: Invitation | None = None
        self._expires_utc: float | None = None
        self._paired: PairedDevice | None = None
        self._paired_from: str | None = None

    @property
    def stage(self) -> Stage:
        """How it stands with the invitation."""
        with self._mutex:
            return Stage.NONE if self._invitation is None else self._invitation.stage(self._clock())

    @property
    def inviting(self) -> bool:
        """Whether an invitation is open."""
        return self.stage is Stage.OPEN

    def invite(self, scopes: frozenset[Scope] = PHONE_SCOPES, name: str | None = None) -> tuple[str, float]:
        """Open an invitation in place of an earlier one, whose token is worth nothing from now on.

        Returns:
            The token, and when it expires (UTC POSIX seconds).
        """
        with self._mutex:
            self._invitation, token = invite(self._clock(), scopes, name)
            self._expires_utc = utc_now() + LIFETIME_S
            self._paired = self._paired_from = None
            return token, self._expires_utc

    def withdraw(self) -> None:
        """Close the invitation."""
        with self._mutex:
            self._invitation = None

    def accept(self, token: str, name: str | None, client: str | None) -> tuple[PairedDevice, str]:
        """Pair whoever has the token.

        Args:
            token: what they give.
            name: what they call themselves; the inviter's word counts more.
            client: the address they come from.

        Returns:
            The device and its key.

        Raises:
            Problem: the token is not accepted.
            PairingError: the name cannot be one, or there are too many devices.
            OSError: the device cannot be written; the token is used up.
        """
        with self._mutex:
            if self._invitation is None:
                raise _closed(Stage.NONE)
            self._invitation, verdict = present(self._invitation, token, client_group(client), self._clock())
            invitation = self._invitation
            stage = invitation.stage(self._clock())
        if verdict is not Verdict.ACCEPTED:
            _log.warning("a pairing token was refused", verdict=verdict.value, stage=stage.value, client=client)
        if verdict is Verdict.CLOSED:
            raise _closed(stage)
        if verdict is Verdict.BLOCKED:
            raise Problem(
                429, "pairing-blocked", "Too many wrong tries from this address; run `reflectworld pair` anew."
            )
        if verdict is Verdict.WRONG:
            raise Problem(403, "pairing-token", "This is not the token of the open invitation; scan the code again.")
        device, key = self._devices.add(invitation.name or name or "phone", invitation.scopes)
        with self._mutex:
            self._paired, self._paired_from = device, client
        _log.info("paired", device=device.id, name=device.name, client=client)
        return device, key

    def report(self) -> dict[str, object]:
        """How it stands, for the command that invited."""
        stage = self.stage
        with self._mutex:
            wrong = sum(self._invitation.wrong.values()) if self._invitation else 0
            return {
                "stage": stage.value,
                "expires": iso(self._expires_utc) if self._expires_utc is not None else None,
                "wrong_tries": wrong,
                "wrong_tries_allowed": TRIES_OF_ALL,
                "device": device_json(self._paired) if self._paired is not None else None,
                "from": self._paired_from,
            }


def _closed(stage: Stage) -> Problem:
    words = {
        Stage.USED: "This token was used already",
        Stage.EXPIRED: "This token is older than ten minutes",
        Stage.LOCKED: "Pairing is locked after too many wrong tries",
    }.get(stage, "Nobody is invited to pair now")
    return Problem(410, "pairing-closed", f"{words}; run `reflectworld pair` on the device for a new code.")


def link(
    token: str, expires: float, served: Served, hosts: tuple[str, ...], addresses: tuple[str, ...], port: int
) -> Link:
    """What the code of an invitation carries.

    Args:
        token: of the invitation.
        expires: UTC POSIX seconds.
        served: the certificate that the listener has.
        hosts: names of the device, the best first.
        addresses: of the device, canonical.
        port: of the LAN listener.
    """
    fingerprint = base64.urlsafe_b64encode(served.fingerprint).rstrip(b"=").decode()
    tail = f":{port}/pair#token={token}&fp={fingerprint}"
    others = tuple(f"https://{f'[{one}]' if ':' in one else one}{tail}" for one in addresses)
    return Link(f"https://{hosts[0]}{tail}", others, served, expires)


class PairRequest(BaseModel):
    """What the pairing page sends."""

    model_config = ConfigDict(extra="forbid")
    token: str = Field(max_length=200)
    name: str | None = Field(None, max_length=NAME_CHARS)


class InviteRequest(BaseModel):
    """Whom to invite."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = Field(None, min_length=1, max_length=NAME_CHARS, description="what the device will be called")
    scopes: list[Scope] = Field(default_factory=lambda: sorted(PHONE_SCOPES), min_length=1, max_length=len(Scope))


class RenameRequest(BaseModel):
    """What to call a device."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1, max_length=NAME_CHARS)


def pairing_router(
    auth: Auth,
    devices: Devices,
    pairing: Pairing,
    certificates: Certificates,
    *,
    offer: Callable[[str, float], Awaitable[Link]],
    listening: Callable[[], str | None],
) -> APIRouter:
    """The routes of pairing and of devices.

    Args:
        auth: who knows devices.
        devices: the paired ones.
        pairing: the invitation.
        certificates: gives the authority for phones to trust.
        offer: makes the link of a token and the time that it expires, once the network listener listens.
        listening: what keeps the LAN listener from listening, one sentence; empty: nothing; None: it does not listen yet.
    """
    router = APIRouter()
    admin: Any = Depends(requires(auth, Scope.ADMIN))

    for path, (file, media_type) in _ASSETS.items():
        router.add_api_route(path, _asset(file, media_type), methods=["GET", "HEAD"], include_in_schema=False)

    @router.get("/pair/authority.crt", include_in_schema=False)
    async def authority() -> Response:
        data = await asyncio.to_thread(certificates.authority_certificate)
        if data is None:
            raise Problem(404, "not-found", "This device serves a certificate of its owner's; there is none to trust.")
        disposition = {"Content-Disposition": 'attachment; filename="reflectworld-authority.crt"'}
        return Response(data, media_type="application/x-x509-ca-cert", headers=disposition)

    @router.post("/pair", tags=["devices"], summary="Pair this device with the token of an invitation")
    async def pair(request: Request, wanted: PairRequest) -> Response:
        client = client_of(request.scope)
        device, key = await asyncio.to_thread(pairing.accept, wanted.token, wanted.name, client)
        answer = JSONResponse({"device": device_json(device), "key": key}, status_code=201)
        answer.headers["Set-Cookie"] = key_cookie(key)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @router.post("/api/v1/pairing", tags=["devices"], status_code=201, summary="Invite a device to pair")
    async def invite_device(request: Request, wanted: InviteRequest, who: Device = admin) -> dict[str, Any]:
        await _only_owner(who, request, wanted)
        token, expires = pairing.invite(frozenset(wanted.scopes), wanted.name)
        try:
            made = await offer(token, expires)
            authority = await asyncio.to_thread(certificates.authority_certificate)
        except BaseException:
            pairing.withdraw()
            raise
        return {
            "url": made.url,
            "others": list(made.others),
            "expires": iso(expires),
            "fingerprint": made.served.groups,
            "authority": grouped(hashlib.sha256(authority).digest()) if authority is not None else None,
            "uncovered": list(made.served.uncovered),
            "qr_svg": made.svg(),
            "qr_png": base64.b64encode(made.png()).decode(),
        }

    @router.get("/api/v1/pairing", tags=["devices"], dependencies=[admin], summary="How it stands with the invitation")
    async def invitation() -> dict[str, Any]:
        trouble = listening()
        return {**pairing.report(), "listening": trouble == "", "trouble": trouble or None}

    @router.delete(
        "/api/v1/pairing", tags=["devices"], dependencies=[admin], status_code=204, summary="Close the invitation"
    )
    async def withdraw() -> Response:
        pairing.withdraw()
        return Response(status_code=204)

    @router.get("/api/v1/devices", tags=["devices"], dependencies=[admin], summary="The paired devices")
    async def list_devices() -> list[dict[str, Any]]:
        return [device_json(device) for device in await asyncio.to_thread(devices.list)]

    @router.get("/api/v1/devices/me", tags=["devices"], summary="Who asks")
    async def me(request: Request) -> dict[str, Any]:
        device = auth.authenticate(request.headers, request.cookies, client_of(request.scope))
        if device is None:
            raise Problem(
                401, "unauthorised", "This needs the key of a paired device; pair one with `reflectworld pair`."
            )
        return {"id": device.id, "name": device.name, "scopes": sorted(device.scopes), "local": device.local}

    @router.patch(
        "/api/v1/devices/{device:path}", tags=["devices"], dependencies=[admin], summary="Call a device otherwise"
    )
    async def rename(device: str, wanted: RenameRequest) -> dict[str, Any]:
        return device_json(await asyncio.to_thread(devices.rename, device, wanted.name))

    @router.delete(
        "/api/v1/devices/{device:path}",
        tags=["devices"],
        dependencies=[admin],
        summary="Revoke a device's key, at once",
    )
    async def revoke(device: str) -> dict[str, Any]:
        return device_json(await asyncio.to_thread(devices.revoke, device))

    return router


async def _only_owner(who: Device, request: Request, wanted: InviteRequest) -> None:
    """Every account of the device reaches localhost; only its owner may invite, which outlasts the moment.

    A page in the owner's own browser may invite, too, but only devices that look and ask.
    """
    if not who.local or who == COMMAND:
        return
    if not frozenset(wanted.scopes) <= PHONE_SCOPES:
        raise Problem(
            403, "pairing-scope", "Pages invite phones only; for `admin` run `reflectworld pair --scope admin`."
        )
    if not await asyncio.to_thread(same_owner, request.scope):
        raise Problem(
            403,
            "pairing-owner",
            "Only the account that the service runs as may invite from a page; run `reflectworld pair` in a terminal.",
        )


def _asset(file: str, media_type: str) -> Callable[[], Response]:
    content = (_STATIC / file).read_bytes()

    def serve() -> Response:
        return Response(content, media_type=media_type, headers={"Cache-Control": "no-store"})

    return serve
