"""The mDNS advert: `NAME.local` and the service `_reflectworld._tcp`, so that phones find the device by its name.

It is out only while the LAN listener is open, and says nothing beside the name, the port and the version.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from zeroconf import InterfaceChoice, IPVersion, ServiceInfo
from zeroconf.asyncio import AsyncZeroconf

SERVICE: Final = "_reflectworld._tcp.local."


class Advert:
    """One advert; `show` and `hide` may be called in any order, on the loop.

    Args:
        name: first label of the device's name.
        port: of the LAN listener.
        interfaces: addresses to speak from; None: all networks.
    """

    def __init__(self, name: str, port: int, *, interfaces: Sequence[str] | None = None) -> None:
        self._name = name
        self._port = port
        self._interfaces = interfaces
        self._zeroconf: AsyncZeroconf | None = None
        self._info: ServiceInfo | None = None
        self._addresses: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The addresses that are told now; none: the advert is not out."""
        return self._addresses

    async def show(self, addresses: Sequence[str]) -> None:
        """Tell these addresses; nothing happens if they are told already.

        Raises:
            OSError: there is no network to speak on.
            zeroconf.Error: another device of this name is there.
        """
        wanted = tuple(addresses)
        if wanted == self._addresses:
            return
        await self.hide()
        if not wanted:
            return
        info = ServiceInfo(
            SERVICE,
            f"{self._name}.{SERVICE}",
            port=self._port,
            server=f"{self._name}.local.",
            addresses=[ipaddress.ip_address(address).packed for address in wanted],
            properties={"path": "/", "tls": "1"},
        )
        interfaces = list(self._interfaces) if self._interfaces is not None else InterfaceChoice.All
        version = IPVersion.V4Only if all(":" not in address for address in wanted) else IPVersion.All
        zeroconf = AsyncZeroconf(interfaces=interfaces, ip_version=version)
        try:
            announced = await zeroconf.async_register_service(info, allow_name_change=True)
            await announced
        except BaseException:
            await zeroconf.async_close()
            raise
        self._zeroconf, self._info, self._addresses = zeroconf, info, wanted

    async def hide(self) -> None:
        """Take the advert back, with a goodbye to the network."""
        zeroconf, info = self._zeroconf, self._info
        self._zeroconf, self._info, self._addresses = None, None, ()
        if zeroconf is None:
            return
        try:
            if info is not None:
                await (await zeroconf.async_unregister_service(info))
        finally:
            await zeroconf.async_close()
