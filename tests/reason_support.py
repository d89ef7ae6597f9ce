"""An OpenAI-compatible server on the loopback interface that answers, or misbehaves, as a script says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from edge.reason import Ledger, Reasoner
from edge.settings import ReasonSettings


@dataclass(frozen=True)
class Reply:
    """One answer of the server."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip_s: float = 0.0  # between bytes
    hang: bool = False  # until the client goes away
    cut: int = 0  # so many bytes of the body are held back, and the connection is closed


def say(text: str | None, *, ending: str = "stop", usage: tuple[int, int] | None = (100, 20), **rest: Any) -> Reply:
    """A completion."""
    made: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": ending}],
    }
    if usage:
        made["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Reply(body=json.dumps(made).encode(), **rest)


def tell(value: Any, **rest: Any) -> Reply:
    """A completion that holds JSON."""
    return say(json.dumps(value), **rest)


def refuse(status: int, message: str = "no", **headers: str) -> Reply:
    """An error."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps({"error": {"message": message}}).encode(), told)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are meant."""


Script = Reply | Callable[[dict[str, Any]], Reply]


class FakeModels:
    """The server: what it was asked, and what it will answer. After its script it repeats the last line of it."""

    def __init__(self) -> None:
        self.script: list[Script] = [say("{}")]
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(Reply(body=b'{"data": []}') if self.path == "/v1/models" else refuse(404))

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._send(
                    fake._answer(asked, dict(self.headers)) if self.path == "/v1/chat/completions" else refuse(404)
                )

            def _send(self, reply: Reply) -> None:
                if reply.hang:
                    fake.over.wait(30)
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                try:
                    if reply.drip_s:
                        for one in reply.body:
                            self.wfile.write(bytes([one]))
                            if fake.over.wait(reply.drip_s):
                                break
                    else:
                        self.wfile.write(reply.body[: len(reply.body) - reply.cut])
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                if reply.cut:
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def _answer(self, asked: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self.headers.append(headers)
            line = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return line(asked) if callable(line) else line

    def will(self, *script: Script) -> None:
        """Answer so from now on."""
        self.script = list(script)

    def settings(self, **changes: Any) -> ReasonSettings:
        """Settings that lead here, with short waits."""
        quick = {"retry_first_s": 0.01, "retry_max_s": 0.02, "breaker_open_s": 0.2}
        return ReasonSettings(backend="openai", model="fake", **{"base_url": self.url, **quick, **changes})

    @contextmanager
    def reasoner(self, *, ledger: Ledger | None = None, **changes: Any) -> Iterator[Reasoner]:
        """Who asks this server."""
        made = Reasoner(self.settings(**changes), ledger=ledger)
        try:
            yield made
        finally:
            made.close()

    def prompts(self) -> Sequence[str]:
        """What the last request said, message by message."""
        return [str(message["content"]) for message in self.asked[-1]["messages"]]


@contextmanager
def fake_models() -> Iterator[FakeModels]:
    """A server for the length of a test."""
    fake = FakeModels()
    thread = threading.Thread(target=fake._server.serve_forever, kwargs={"poll_interval": 0.01}, name="fake-models")
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        fake._server.shutdown()
        thread.join()
        fake._server.server_close()


def wait_for(true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Until something holds."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)
