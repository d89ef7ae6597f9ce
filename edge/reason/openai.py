"""Any OpenAI-compatible server: llama-server, Ollama, vLLM, or one in a cloud.

Requests run on an event loop in a thread of their own, so that the deadline holds for the whole of a request, however slowly
an answer drips, and so that it can be given up at any moment from another thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx

from edge.clock import utc_now
from edge.reason import wire
from edge.reason.backends import Call, Completion, Halted, Trouble, stopped, timed_out
from edge.reason.pacing import retry_after
from edge.reason.values import Refusal, Why
from edge.reason.wire import Dialect
from edge.settings import ReasonSettings

_CONNECT_S: Final = 5.0
_MAX_ANSWER: Final = 4_000_000  # bytes; more is no answer to what is asked here
_POLL_S: Final = 0.1  # between looks at whether the caller gave up
_ADAPTATIONS: Final = 4  # of the dialect in one try

V = TypeVar("V")
Work = Callable[[], Coroutine[Any, Any, V]]


class OpenAIBackend:
    """One server and the model on it."""

    def __init__(self, settings: ReasonSettings) -> None:
        """Prepare; nothing is sent before the first call.

        Args:
            settings: its address, model and key.
        """
        self._settings = settings
        self._url = wire.endpoint(settings.base_url, "chat/completions")
        self._here = wire.is_here(settings.base_url)
        self._dialect = Dialect()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: httpx.AsyncClient | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The model and its address."""
        url = httpx.URL(self._settings.base_url)
        return f"{self._settings.model} at {url.host}{f':{url.port}' if url.port else ''}"

    def complete(self, call: Call, seconds: float, halted: Halted) -> Completion:
        """Make one try; see `Backend`."""
        return self._run(lambda: self._complete(call), seconds, halted)

    def probe(self, seconds: float) -> Refusal | None:
        """Ask which models there are."""
        try:
            self._run(self._models, seconds, lambda: False)
        except Trouble as trouble:
            return trouble.refusal
        return None

    def close(self) -> None:
        """End the loop and its thread; what runs is given up."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    # -- threads ----------------------------------------------------------------------------------------------------------

    def _run(self, work: Work[V], seconds: float, halted: Halted) -> V:
        """Run something on the loop, for so long and until the caller gives up."""
        with self._lock:
            loop = self._started()
            future = None if loop is None else asyncio.run_coroutine_threadsafe(self._within(work, seconds), loop)
        if future is None:
            raise stopped()
        while not future.done():
            concurrent.futures.wait([future], timeout=_POLL_S)
            if halted():
                future.cancel()
                raise stopped()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise stopped() from None  # `close` was called

    async def _within(self, work: Work[V], seconds: float) -> V:
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except TimeoutError:
            raise timed_out(seconds) from None

    def _started(self) -> asyncio.AbstractEventLoop | None:
        """The loop; None: it was closed."""
        if self._loop is None and not self._closed:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._serve, args=(loop,), name="reason-http", daemon=True)
            self._thread.start()
            self._loop = loop
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            if self._client is not None:
                loop.run_until_complete(self._client.aclose())
        finally:
            loop.close()

    # -- on the loop ------------------------------------------------------------------------------------------------------

    async def _complete(self, call: Call) -> Completion:
        dialect = self._dialect
        for _ in range(_ADAPTATIONS + 1):
            made = wire.body(call, self._settings.model, dialect, self._settings.temperature)
            status, content, wait = await self._send("POST", self._url, json.dumps(made).encode())
            if 200 <= status < 300:
                self._dialect = dialect
                return wire.completion(content)
            other = wire.adapted(dialect, status, content)
            if other is None:
                break
            dialect = other
        raise wire.trouble(status, content, wait, _secret(self._settings))

    async def _models(self) -> None:
        status, content, wait = await self._send("GET", wire.endpoint(self._settings.base_url, "models"), b"")
        if status in (404, 405):  # it has no such list
            return
        if not 200 <= status < 300:
            raise wire.trouble(status, content, wait, _secret(self._settings))

    async def _send(self, method: str, url: str, content: bytes) -> tuple[int, bytes, float | None]:
        """One exchange: status, body, and the seconds after which the server wants to be asked again."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        secret = _secret(self._settings)
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        try:
            async with self._connected().stream(method, url, content=content, headers=headers) as answer:
                found = bytearray()
                async for chunk in answer.aiter_raw():
                    found += chunk
                    if len(found) > _MAX_ANSWER:
                        text = "The language model's server answers without end."
                        raise Trouble(Refusal(Why.SERVER_FAULT, text, "Look into its log.", retry_s=300.0), sick=True)
                wait = retry_after(answer.headers.get("Retry-After"), utc_now())
                return answer.status_code, bytes(found), wait
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            where = "" if self._here else " and the network"
            text = f"Nobody answers at {self._settings.base_url} ({_short(error)})."
            remedy = f"Start the language model's server, or check [reason] base_url{where}."
            raise Trouble(Refusal(Why.OFFLINE, text, remedy, retry_s=60.0), again=True, sick=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            text = f"The language model's server broke off ({_short(error)})."
            remedy = "Look into its log."
            raise Trouble(Refusal(Why.SERVER_FAULT, text, remedy, retry_s=60.0), again=True, sick=True) from error

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(None, connect=_CONNECT_S),
                verify=_trust(self._settings),
                follow_redirects=False,  # the owner named this address and no other
                trust_env=not self._here,  # a proxy may stand before a cloud, never before this device itself
            )
        return self._client


def _trust(settings: ReasonSettings) -> ssl.SSLContext | bool:
    if settings.tls_ca is None or not settings.tls_verify:
        # Without TLS and without a proxy there is nothing to verify, and reading all authorities takes 30 ms (measured).
        plain = settings.base_url.startswith("http://") and wire.is_here(settings.base_url)
        return settings.tls_verify and not plain
    try:
        return ssl.create_default_context(cafile=settings.tls_ca.expanduser())
    except OSError as error:  # ssl.SSLError is one
        text = f"The certificate {settings.tls_ca} cannot be used ({_short(error)})."
        raise Trouble(Refusal(Why.MISCONFIGURED, text, "Correct [reason] tls_ca.")) from error


def _secret(settings: ReasonSettings) -> str:
    """The key of the server; empty: none is set.

    Raises:
        Trouble: it is named and not there, or cannot be one.
    """
    if settings.api_key_file is not None:
        where, remedy = f"the file {settings.api_key_file}", "Put the key there, or correct [reason] api_key_file."
        try:
            key = Path(settings.api_key_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            text = f"The key of the language model's server cannot be read from {where} ({_short(error)})."
            raise Trouble(Refusal(Why.MISCONFIGURED, text, remedy)) from error
    elif settings.api_key_env:
        where = f"the environment variable {settings.api_key_env}"
        remedy = "Set it for the service, or correct [reason] api_key_env."
        key = os.environ.get(settings.api_key_env, "").strip()
    else:
        return ""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        text = f"There is no key of the language model's server in {where}."
        raise Trouble(Refusal(Why.MISCONFIGURED, text, remedy))
    return key


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:120]
