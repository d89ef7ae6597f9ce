"""Who asks: a paired device by its key, a command of this device by the run secret, or this device itself.

A key comes as `Authorization: Bearer KEY` (programs; WHIP and WHEP say so) or as a cookie (browsers). Without one, a
request is admitted as the local admin only if `edge.serve.origins.is_local` holds: connection, Host and Origin are all
of this device.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from edge.serve.devices import Devices, PairedDevice
from edge.serve.origins import is_local
from edge.serve.protocols import Device, Scope

COOKIE: Final = "__Host-reflectworld"
COOKIE_DAYS: Final = 400  # browsers keep none longer
ALL_SCOPES: Final = frozenset(Scope)

LOCAL: Final = Device("local", "this device", ALL_SCOPES, local=True)
COMMAND: Final = Device("command", "a command of this device", ALL_SCOPES, local=True)


class DeviceAuth:
    """Knows paired devices by their keys (`edge.serve.protocols.Auth`).

    Args:
        devices: the paired ones.
        run_token: the secret of `run.token`, if the service wrote one.
    """

    def __init__(self, devices: Devices, *, run_token: str | None = None) -> None:
        self.devices = devices
        self._run_token = run_token

    def authenticate(self, headers: Mapping[str, str], cookies: Mapping[str, str], client: str | None) -> Device | None:
        """Who sends a request; None: nobody who is known.

        A key that is given and wrong is refused also on this device: whoever sends one means to be that device.
        """
        lowered = {name.lower(): value for name, value in headers.items()}
        local = is_local(lowered, client)
        given = lowered.get("authorization")
        if given is not None:
            scheme, _, key = given.partition(" ")
            key = key.strip()
            if scheme.lower() != "bearer" or not key:
                return None
            if local and self._run_token is not None and _same(key, self._run_token):
                return COMMAND
            return as_device(self.devices.by_key(key))
        cookie = cookies.get(COOKIE)
        device = as_device(self.devices.by_key(cookie)) if cookie else None
        return device if device is not None else LOCAL if local else None


def as_device(paired: PairedDevice | None) -> Device | None:
    """A paired device as the server's routes see it."""
    return Device(paired.id, paired.name, paired.scopes) if paired is not None else None


def key_cookie(key: str) -> str:
    """The `Set-Cookie` that keeps a key in a browser, out of reach of scripts and of other sites."""
    return f"{COOKIE}={key}; Max-Age={COOKIE_DAYS * 86_400}; Path=/; HttpOnly; Secure; SameSite=Strict"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass"))
