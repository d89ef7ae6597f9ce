"""Whose program is at the other end of a connection of this device: the system knows the account of every socket.

So a page in a browser of the account that the service runs as may do what that account's commands may, and a page of
another account may not. Linux tells it in /proc/net/tcp; where it does not (a container, another system), nobody is the
owner.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from starlette.types import Scope

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"

Address = tuple[str, int]  # IP address and port


def same_owner(scope: Scope) -> bool:
    """Whether a request comes from a program of the account that this process runs as. Reads files: not on the loop.

    Args:
        scope: of the request (ASGI).
    """
    client, server = scope.get("client"), scope.get("server")
    if client is None or server is None or server[1] is None:
        return False
    lines: list[str] = []
    for table in _TABLES:
        try:
            lines += table.read_text().splitlines()
        except OSError:
            continue
    return socket_owner(lines, (str(client[0]), int(client[1])), (str(server[0]), int(server[1]))) == os.getuid()


def socket_owner(lines: Iterable[str], local: Address, remote: Address) -> int | None:
    """The account of an open socket.

    Args:
        lines: of /proc/net/tcp or tcp6.
        local: its own address.
        remote: the address that it is connected to.

    Returns:
        Its uid; None: there is no such socket, or several accounts claim it.
    """
    ours, theirs = _forms(local), _forms(remote)
    owners = set()
    for line in lines:
        parts = line.split()
        if len(parts) > 7 and parts[1] in ours and parts[2] in theirs and parts[3] == _ESTABLISHED:
            owners.add(int(parts[7]))
    return owners.pop() if len(owners) == 1 else None


def _forms(address: Address) -> set[str]:
    """How the tables write an address: words of 32 bits in the machine's order; IPv4 also as IPv6 carries it."""
    try:
        ip = ipaddress.ip_address(address[0])
    except ValueError:
        return set()
    forms = [ip.packed]
    if isinstance(ip, ipaddress.IPv4Address):
        forms.append(bytes(10) + b"\xff\xff" + ip.packed)
    elif ip.ipv4_mapped is not None:
        forms.append(ip.ipv4_mapped.packed)
    return {f"{_words(packed)}:{address[1]:04X}" for packed in forms}


def _words(packed: bytes) -> str:
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
