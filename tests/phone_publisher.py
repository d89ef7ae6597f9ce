"""Publishes as the phone page does, and comes back by itself: python -m tests.phone_publisher URL CAMERA.

A process of its own, which can be killed or live in another namespace. The times are those of `phone-link.js`.
"""

from __future__ import annotations

import asyncio
import sys
import time

import httpx

from tests.webrtc_support import Client, Photographs

DEAD_S = 4.0  # without an echo for so long the link is dead
CONNECT_S = 10.0  # a link that has not come up by then is tried anew
WAITS_S = (0.3, 0.7, 1.5, 3.0, 4.0)  # between tries; the last is kept


async def publish(url: str, camera: str) -> None:
    """Publish until killed."""
    tries = 0
    while True:
        phone = Client(url)
        try:
            phone.add(Photographs()).heartbeat()
            async with asyncio.timeout(CONNECT_S):
                await phone.begin(f"/whip/{camera}")
            if await lives(phone):
                tries = 0
        except (TimeoutError, httpx.HTTPError, AssertionError) as error:
            print("not yet:", repr(error)[:200], flush=True)
        finally:
            await phone.close()
        await asyncio.sleep(WAITS_S[min(tries, len(WAITS_S) - 1)])
        tries += 1


async def lives(phone: Client) -> bool:
    """Stay until the link is dead; whether it ever lived."""
    seen, heard, patience = 0, time.monotonic(), CONNECT_S
    while time.monotonic() - heard < patience:
        await asyncio.sleep(0.25)
        if phone.echoes > seen:
            seen, heard, patience = phone.echoes, time.monotonic(), DEAD_S
    return seen > 0


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], sys.argv[2]))
