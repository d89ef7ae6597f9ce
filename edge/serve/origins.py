"""Which hosts a request may name and which origins it may come from.

Pure. A browser that was lured to a foreign page sends requests here too; what tells them apart is the `Host` that it
believes to speak to (DNS rebinding makes that a foreign name) and the `Origin` that the page has.

Invariants, held by property tests:

* a Host that is neither a name of this device nor one of its addresses is never admitted;
* a request with a foreign Origin is never admitted, whatever its method;
* a request that came from another device is never local, whatever its headers say.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# What a proxy on this device adds: whoever is behind it is not local, though its connection is.
FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")

_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SECURE: Final = {"http": "http", "ws": "http", "https": "https", "wss": "https"}


def split_authority(text: str) -> tuple[str, int | None] | None:
    """A `Host` header as (name, port).

    Args:
        text: for example `reflectworld.local:8766`, `192.168.1.7`, `[::1]:8765`.

    Returns:
        The name in lower case without a final dot, an address in its canonical form; None: not an authority.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 65536:
        return None
    if match["six"] is not None:
        try:
            return str(ipaddress.IPv6Address(match["six"])), port
        except ValueError:
            return None
    name = match["name"].lower().removesuffix(".")
    return (name, port) if name else None


def canonical(address: str) -> str | None:
    """An IP address in its one form, without a zone, IPv4 that was mapped into IPv6 as IPv4; None: not one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def is_loopback(client: str | None) -> bool:
    """Whether a connection comes from this device itself; an unknown one does not."""
    address = canonical(client) if client is not None else None
    return address is not None and ipaddress.ip_address(address).is_loopback


def client_group(client: str | None) -> str:
    """What is counted as one address: an IPv4 address, or a /64 of IPv6, of which one host has all."""
    address = canonical(client) if client is not None else None
    if address is None:
        return "unknown"
    if ":" in address:
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return address


def host_admitted(host: str | None, names: Collection[str], addresses: Collection[str]) -> bool:
    """Whether a request may name this host.

    Args:
        host: the `Host` header.
        names: names of this device beside the local ones, in lower case.
        addresses: IP addresses of this device, canonical.
    """
    parts = split_authority(host) if host is not None else None
    if parts is None:
        return False
    return parts[0] in LOCAL_NAMES or parts[0] in names or parts[0] in addresses


def same_origin(origin: str, scheme: str, host: str | None) -> bool:
    """Whether an `Origin` header is that of the page's own server.

    A secure origin of the same name and port is the same owner, also where a proxy takes TLS off on the way.

    Args:
        origin: for example `https://reflectworld.local:8766`; `null` is nobody's.
        scheme: of the request: http, https, ws or wss.
        host: its `Host` header.
    """
    kind, separator, rest = origin.partition("://")
    kind = kind.lower()
    ours = split_authority(host) if host is not None else None
    theirs = split_authority(rest) if separator else None
    if ours is None or theirs is None or kind not in {"http", "https"}:
        return False
    if kind != _SECURE.get(scheme) and kind != "https":
        return False
    default = _PORTS[kind]
    return (ours[0], ours[1] or default) == (theirs[0], theirs[1] or default)


@dataclass(frozen=True, slots=True)
class Coming:
    """Where a request says that it comes from."""

    method: str  # of HTTP; a WebSocket begins with GET
    scheme: str  # http, https, ws, wss
    host: str | None
    origin: str | None
    site: str | None = None  # Sec-Fetch-Site
    mode: str | None = None  # Sec-Fetch-Mode
    dest: str | None = None  # Sec-Fetch-Dest


def origin_admitted(coming: Coming) -> bool:
    """Whether a request comes from this server's own pages, from no page, or only opens one.

    Requests without `Origin` and without fetch metadata come from programs, which hold keys and are lured by no page.
    """
    if coming.origin is not None and not same_origin(coming.origin, coming.scheme, coming.host):
        return False
    if coming.site in {None, "same-origin", "none"}:
        return True
    # A link on a foreign page may open a page of ours, nothing more: not a picture, a frame, a script or a form.
    opens = coming.mode == "navigate" and coming.dest in {None, "document"}
    return opens and coming.method in {"GET", "HEAD"} and coming.scheme in {"http", "https"}


def is_local(headers: Mapping[str, str], client: str | None) -> bool:
    """Whether a request comes from a program or a page of this device itself.

    Args:
        headers: by names in lower case.
        client: the address of the connection.
    """
    host = headers.get("host")
    parts = split_authority(host) if host is not None else None
    if not is_loopback(client) or parts is None or parts[0] not in LOCAL_NAMES:
        return False
    if any(headers.get(name) is not None for name in FORWARDED):
        return False
    origin = headers.get("origin")
    # The scheme is not known here: either will do, as both are this device's.
    return origin is None or same_origin(origin, "http", host) or same_origin(origin, "https", host)
