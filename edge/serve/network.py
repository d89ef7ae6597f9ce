"""What this device is called, and which addresses it has on its networks."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from edge.clock import monotonic
from edge.serve.origins import canonical
from edge.settings import ServeSettings

_TEMPORARY: Final = 0x01  # IFA_F_TEMPORARY of linux/if_addr.h


def device_name(settings: ServeSettings) -> str:
    """The first label of the device's name in `.local`.

    By default not the bare host name: that one belongs to whatever else answers mDNS on the device.
    """
    if settings.name:
        return settings.name.lower()
    label = "".join(c if c.isascii() and c.isalnum() else "-" for c in socket.gethostname().split(".")[0].lower())
    label = label.strip("-")[:40].strip("-")
    return f"reflectworld-{label}" if label and label != "localhost" else "reflectworld"


def lan_addresses() -> tuple[str, ...]:
    """Addresses at which other devices may reach this one, canonical, in order.

    Left out are loopback and link-local addresses, which do not work in a browser's address bar, and temporary IPv6
    addresses, which change every day.
    """
    temporary = _temporary_addresses()
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    found: set[str] = set()
    for name, addresses in psutil.net_if_addrs().items():
        for one in addresses:
            if name not in up or one.family not in {socket.AF_INET, socket.AF_INET6}:
                continue
            address = canonical(one.address)
            if address is None or address in temporary:
                continue
            parsed = ipaddress.ip_address(address)
            if not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast):
                found.add(address)
    return tuple(sorted(found, key=lambda text: (":" in text, ipaddress.ip_address(text).packed)))


class OwnAddresses:
    """The LAN addresses, looked up anew at most every few seconds."""

    def __init__(
        self,
        look: Callable[[], tuple[str, ...]] = lan_addresses,
        *,
        fresh_s: float = 5.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._look = look
        self._fresh_s = fresh_s
        self._clock = clock
        self._known: tuple[str, ...] = ()
        self._until = float("-inf")

    def __call__(self) -> tuple[str, ...]:
        """The addresses now."""
        now = self._clock()
        if now >= self._until:
            self._known = self._look()
            self._until = now + self._fresh_s
        return self._known


def _temporary_addresses() -> set[str]:
    try:
        lines = Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines()
    except OSError:
        return set()  # no IPv6 here, or not Linux
    rows = [line.split() for line in lines]
    return {str(ipaddress.IPv6Address(int(row[0], 16))) for row in rows if int(row[4], 16) & _TEMPORARY}
