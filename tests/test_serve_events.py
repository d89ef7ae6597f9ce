"""Live events, and clients that are slow, on a real server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from edge.memory import Store
from edge.serve import build_app
from edge.serve.sse import Hub
from edge.settings import ServeSettings
from tests.serve_support import LOCAL, Happenings, Keys, MemoryService, service_on, serving

SETTINGS = ServeSettings(event_buffer=16, heartbeat_s=0.2, header_timeout_s=0.5, body_timeout_s=0.5, max_streams=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("events") / "home") as store:
        yield store


@pytest.fixture
def service(store: Store) -> MemoryService:
    return service_on(store)


@pytest.fixture
def app(service: MemoryService) -> FastAPI:
    return build_app(service, Keys(LOCAL), SETTINGS)


def read(lines: Iterator[str], count: int) -> list[tuple[str, str, dict]]:
    """The next `count` events: (id, kind, data)."""
    found, number, kind = [], "", ""
    for line in lines:
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            found.append((number, kind, json.loads(line[6:])))
            number = ""
            if len(found) == count:
                return found
    return found


def moments(service: MemoryService, numbers: range) -> None:
    for number in numbers:
        service.events.publish("moment", "hall", {"trace": f"t{number}", "text": "Line one.\nLine two.", "people": []})


def listening(url: str, last: str = "") -> httpx.Client:
    headers = {"Last-Event-ID": last} if last else {}
    return httpx.Client(base_url=url, headers=headers, timeout=5)


def test_what_happens_is_told_and_the_line_is_kept_alive(app: FastAPI, service: MemoryService) -> None:
    with serving(app, SETTINGS) as url, listening(url) as client, client.stream("GET", "/api/v1/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        assert any(line == ": alive" for line in lines)
        moments(service, range(1, 2))
        service.events.publish("sight", "hall", {"width": 640, "height": 480, "in_view": []})
        (first, second) = read(lines, 2)
        assert first[1] == "moment"
        assert first[2]["text"] == "Line one.\nLine two."
        assert first[2]["camera"] == "hall"
        assert (second[0], second[1]) == ("", "sight")  # boxes have no number: nobody asks for old ones


def test_a_page_that_was_away_gets_what_it_missed(app: FastAPI, service: MemoryService) -> None:
    with serving(app, SETTINGS) as url:
        with listening(url) as client, client.stream("GET", "/api/v1/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            moments(service, range(1, 3))
            last = read(lines, 2)[0][0]
        moments(service, range(3, 5))
        with listening(url, last) as client, client.stream("GET", "/api/v1/events") as stream:
            missed = read(stream.iter_lines(), 3)
        assert [one[2]["trace"] for one in missed] == ["t2", "t3", "t4"]


@pytest.mark.parametrize("last", ["other-5", "nonsense", "x" * 500, "-", "0-99999999999999999999999"])
def test_a_page_from_before_a_restart_begins_anew(app: FastAPI, last: str) -> None:
    with (
        serving(app, SETTINGS) as url,
        listening(url, last) as client,
        client.stream("GET", "/api/v1/events") as stream,
    ):
        assert read(stream.iter_lines(), 1)[0][1] == "reset"


def test_a_page_that_missed_too_much_begins_anew(app: FastAPI, service: MemoryService) -> None:
    with serving(app, SETTINGS) as url:
        with listening(url) as client, client.stream("GET", "/api/v1/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            moments(service, range(1, 2))
            last = read(lines, 1)[0][0]
            moments(service, range(2, 30))
            read(lines, 28)
        with listening(url, last) as client, client.stream("GET", "/api/v1/events") as stream:
            assert read(stream.iter_lines(), 1)[0][1] == "reset"


def test_a_slow_page_loses_boxes_before_moments() -> None:
    async def go() -> tuple[list[str], int]:
        happenings = Happenings()
        hub = Hub(happenings, ServeSettings(heartbeat_s=60))
        pump = asyncio.create_task(hub.run())
        stream = hub.listen("")
        await anext(stream)
        await asyncio.sleep(0)
        pending = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.01)
        for number in range(400):
            happenings.publish("moment" if number % 10 == 0 else "sight", "hall", {"n": number})
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        hub.close()
        messages = [await pending] + [message async for message in stream]
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)
        return [message.decode() for message in messages], hub.dropped

    messages, dropped = asyncio.run(go())
    assert sum("event: moment" in message for message in messages) == 40
    assert dropped > 0
    assert len(messages) <= 130
    assert "event: reset" not in "".join(messages)


def test_more_pages_than_allowed_are_told_to_come_back(app: FastAPI) -> None:
    with serving(app, SETTINGS) as url:
        clients = [listening(url) for _ in range(3)]
        streams = [client.stream("GET", "/api/v1/events") for client in clients]
        lines = [stream.__enter__().iter_lines() for stream in streams]  # kept: a reader that is let go of hangs up
        assert all(next(one).startswith("retry:") for one in lines)
        refused = httpx.get(f"{url}/api/v1/events", timeout=5)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        for stream, client in zip(streams, clients, strict=True):
            stream.__exit__(None, None, None)
            client.close()
        deadline = time.monotonic() + 5
        while app.state.hub.pages and time.monotonic() < deadline:
            time.sleep(0.02)
        assert app.state.hub.pages == 0


def test_a_server_with_listening_pages_stops_quickly(app: FastAPI) -> None:
    opened, ended = threading.Event(), threading.Event()

    def listen(url: str) -> None:
        with listening(url) as client, client.stream("GET", "/api/v1/events") as stream:
            for _ in stream.iter_lines():
                opened.set()
        ended.set()

    with serving(app, SETTINGS) as url:
        threading.Thread(target=listen, args=(url,)).start()
        assert opened.wait(5)
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert ended.wait(5)


def address(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def raw(url: str, data: bytes, wait: float = 3.0) -> bytes:
    """What comes back for some bytes, until the server closes."""
    with socket.create_connection(address(url), timeout=wait) as connection:
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def test_who_never_finishes_asking_is_let_go(app: FastAPI) -> None:
    with serving(app, SETTINGS) as url:
        began = time.monotonic()
        for part in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "):
            with contextlib.suppress(ConnectionResetError):
                assert raw(url, part) == b""
        with contextlib.suppress(ConnectionResetError), socket.create_connection(address(url), timeout=3) as connection:
            connection.sendall(b"GET /api/v1/cameras HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            connection.sendall(b"GET /api")  # a second request that stays a beginning
            while connection.recv(65536):
                pass
        slow = b"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{"
        assert raw(url, slow).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - began < 8
        assert httpx.get(f"{url}/api/v1/status", timeout=5).status_code == 200


def test_a_head_that_has_no_end_is_refused(app: FastAPI) -> None:
    with serving(app, SETTINGS) as url:
        assert raw(url, b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000).startswith(b"HTTP/1.1 4")
        assert raw(url, b"GET /static/../../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 404"
        )
