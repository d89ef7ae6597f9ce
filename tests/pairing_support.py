"""A small service behind the real guards, in a thread, and a client that keeps to one address."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from fastapi import FastAPI, Request
from starlette.responses import StreamingResponse

from edge.serve import problems
from edge.serve.listeners import Access, Listeners
from edge.serve.local import LocalClient, RunFile, write_run_file
from edge.settings import ServeSettings

NAME = "reflectworld-t"
HOST = f"{NAME}.local"
RUN_TOKEN = "the secret of this run"


def make_access(home: Path, **settings: Any) -> Access:
    given = {"name": NAME, "port": 0, "lan_port": 0, **settings}
    return Access(
        home, ServeSettings.model_validate(given), run_token=RUN_TOKEN, addresses=lambda: ("192.168.7.2", "10.231.77.1")
    )


def make_app(access: Access) -> Any:
    """The routes of pairing, one that has a secret, one that echoes and one that never ends; all behind the guards."""
    app = FastAPI()
    problems.install(app)
    app.include_router(access.router())

    @app.get("/secret")
    async def secret() -> dict[str, str]:
        return {"secret": "where the cup is"}

    @app.get("/page")
    async def page() -> Any:
        return StreamingResponse(iter([b"<p>"]), media_type="text/html", headers={"Content-Security-Policy": "own"})

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/events")
    async def events() -> StreamingResponse:
        async def forever() -> AsyncIterator[bytes]:
            while True:
                yield b": alive\n\n"
                await asyncio.sleep(0.02)

        return StreamingResponse(forever(), media_type="text/event-stream")

    return access.guard(app)


@dataclass
class Running:
    """A service that listens."""

    access: Access
    url: str
    run: RunFile

    @property
    def lan_port(self) -> int:
        return self.access.lan_port

    def owner(self) -> LocalClient:
        return LocalClient(self.run)

    def trusting(self) -> ssl.SSLContext:
        data = self.access.certificates.authority_certificate()
        assert data is not None
        return ssl.create_default_context(cadata=data)

    def client(self, address: str, host: str | None = HOST, **more: Any) -> httpx.Client:
        headers = {} if host is None else {"Host": f"{host}:{self.lan_port}"}
        return httpx.Client(
            base_url=f"https://{address}:{self.lan_port}",
            verify=self.trusting(),
            headers=headers,
            trust_env=False,
            timeout=5,
            **more,
        )


@contextmanager
def running(
    home: Path,
    *,
    lan_host: str,
    advertise: bool = False,
    inside: Callable[[Callable[[], None]], Callable[[], None]] = lambda call: call,
    **settings: Any,
) -> Iterator[Running]:
    """Listeners in a thread of their own until the block ends."""
    access = make_access(home, **settings)
    listeners = Listeners(make_app(access), access, lan_host=lan_host, advertise=advertise)
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def serve() -> None:
        state["url"] = listeners.bind()
        state["stop"] = asyncio.Event()
        state["loop"] = asyncio.get_running_loop()
        task = asyncio.create_task(listeners.run())
        ready.set()
        await state["stop"].wait()
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        state["ended"] = task.done()

    def body() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            state["error"] = error
            raise
        finally:
            ready.set()

    thread = threading.Thread(target=inside(body), name="serving")
    thread.start()
    assert ready.wait(10)
    assert "error" not in state, state
    run = write_run_file(home, state["url"])
    try:
        yield Running(access, state["url"], RunFile(run.url, RUN_TOKEN, run.pid))
    finally:
        state["loop"].call_soon_threadsafe(state["stop"].set)
        thread.join(15)
        assert not thread.is_alive()
        assert state["ended"]


def token_of(url: str) -> str:
    return parse_qs(urlsplit(url).fragment)["token"][0]
