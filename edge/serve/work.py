"""Threads for what waits: the loop never reads the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """A few named threads. Their number bounds how much is read at once; who comes later waits."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="serve")
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Calls that run or wait now."""
        return self._waiting

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in one of the threads; its error is raised here."""
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Begin nothing more; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
