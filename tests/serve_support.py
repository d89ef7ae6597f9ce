"""A service in memory on a real store, and ways to talk to its app."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

import cv2
import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI

from edge.app.forgetting import forget
from edge.app.orders import Orders
from edge.app.pauses import Pause, PauseBook
from edge.errors import ModelError, NotFoundError, SourceError, UserError
from edge.identity import RULES
from edge.memory import Plan, Store, Target
from edge.notify import Notifier
from edge.recall import Recall
from edge.serve import CameraState, CameraStatus, Device, Fill, Scope, Vitals, server_config
from edge.settings import NotifySettings, ServeSettings
from edge.types.media import Samples
from edge.types.records import CorrectionDraft, CorrectionRecord, EntityRecord
from tests.recall_data import BagEmbedder

STARTED = time.time()


@dataclass(frozen=True)
class Happening:
    kind: str
    camera: str | None
    at: float
    data: Mapping[str, object]


class Happenings:
    """Publish from any thread, subscribe on a loop; who is slow loses the oldest."""

    def __init__(self) -> None:
        self._listening: list[tuple[asyncio.AbstractEventLoop, deque[Happening], asyncio.Event]] = []

    def publish(self, kind: str, camera: str | None, data: Mapping[str, object]) -> None:
        happening = Happening(kind, camera, time.time(), data)
        for loop, waiting, ready in list(self._listening):
            waiting.append(happening)
            loop.call_soon_threadsafe(ready.set)

    async def subscribe(self, maxlen: int = 64) -> AsyncIterator[Happening]:
        waiting: deque[Happening] = deque(maxlen=maxlen)
        entry = (asyncio.get_running_loop(), waiting, asyncio.Event())
        self._listening.append(entry)
        try:
            while True:
                while waiting:
                    yield waiting.popleft()
                entry[2].clear()
                await entry[2].wait()
        finally:
            self._listening.remove(entry)


class Keys:
    """An Auth of fixed keys: `Authorization: Bearer NAME`; without one, as `default`."""

    def __init__(self, default: Device | None) -> None:
        self.default = default
        self.known = {
            "phone": Device("d1", "phone", frozenset({Scope.PUBLISH})),
            "reader": Device("d2", "reader", frozenset({Scope.ASK})),
            "owner": Device("d3", "owner", frozenset({Scope.ADMIN})),
        }

    def authenticate(self, headers: Mapping[str, str], cookies: Mapping[str, str], client: str | None) -> Device | None:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        return self.known.get(given, self.default if not given else None)


LOCAL = Device("local", "this device", frozenset({Scope.ADMIN}), local=True)


@dataclass
class MemoryService:
    """ServiceLike on a real store, with cameras that are only names."""

    store: Store
    recall: Recall
    events: Happenings = field(default_factory=Happenings)
    pictures: dict[str, bytes] = field(default_factory=dict)
    _cameras: dict[str, CameraStatus] = field(default_factory=dict)
    hears: Callable[[Samples], str] | None = None

    @cached_property
    def pauses(self) -> PauseBook:
        return PauseBook(self.store.home)

    @property
    def notifier(self) -> Notifier:
        return Notifier(self.store, NotifySettings())

    @property
    def orders(self) -> Orders:
        return Orders(self.store, self.notifier, None)

    @property
    def cameras(self) -> list[CameraStatus]:
        return [self._cameras[name] for name in sorted(self._cameras)]

    @property
    def vitals(self) -> Vitals:
        return Vitals(
            STARTED, 1.5, 0, {"capture:hall": Fill(2, 8, 1)}, ("Speech is not heard.",), "CPU, 1 thread", "kitchen box"
        )

    async def add_camera(self, name: str, uri: str) -> CameraStatus:
        if name in self._cameras:
            raise UserError(f"There is a camera “{name}” already; choose another name.")
        if "://" not in uri:
            raise SourceError(uri, f"“{uri[:50]}” is not an address; give one such as rtsp://host/path.")
        self._cameras[name] = CameraStatus(name, uri, CameraState.LIVE, since=time.time(), width=640, height=480)
        self._tell(name)
        return self._cameras[name]

    async def remove_camera(self, name: str) -> None:
        self._one(name)
        del self._cameras[name]
        self.events.publish("camera", name, {"state": "removed", "detail": ""})

    async def pause_camera(self, name: str, seconds: float | None = None) -> CameraStatus:
        return self._put(replace(self._one(name), state=CameraState.PAUSED, paused=True))

    async def resume_camera(self, name: str) -> CameraStatus:
        return self._put(replace(self._one(name), state=CameraState.LIVE, paused=False))

    @property
    def paused(self) -> Pause | None:
        return self.pauses.pause

    async def pause(self, seconds: float | None = None) -> Pause:
        return self.pauses.begin(None if seconds is None else time.time() + seconds)

    async def resume(self) -> None:
        self.pauses.end()

    async def forget(self, target: Target, token: str | None) -> Plan:
        planned = await asyncio.to_thread(forget, self.store, target, token)
        self.events.publish("forgot", None, {"text": planned.text})
        return planned

    def latest_jpeg(self, camera: str) -> bytes | None:
        self._one(camera)
        return self.pictures.get(camera)

    def transcribe(self, samples: Samples) -> str:
        if self.hears is None:
            raise ModelError("speech", "The model for speech is not here; fetch it with `reflectworld models pull`.")
        return self.hears(samples)

    def push_source(self, camera: str, device: Device | None = None) -> Any:
        raise UserError("This service takes no pictures.")

    async def name_person(self, entity: int, name: str | None) -> EntityRecord:
        call = (lambda: self.store.clear_name(entity)) if name is None else (lambda: self.store.set_name(entity, name))
        record = await asyncio.to_thread(call)
        self.events.publish("person", None, {"person": f"p{record.id}", "title": record.title})
        return record

    async def correct(self, draft: CorrectionDraft) -> CorrectionRecord:
        record = await asyncio.to_thread(self.store.correct, draft, RULES)
        self.events.publish("person", None, {"person": f"p{record.person}"})
        return record

    async def undo_correction(self, number: int) -> CorrectionRecord:
        record = await asyncio.to_thread(self.store.undo, number, RULES)
        self.events.publish("person", None, {"person": f"p{record.person}"})
        return record

    def _one(self, name: str) -> CameraStatus:
        if name not in self._cameras:
            raise NotFoundError(name, f"There is no camera “{name}”; add it first.")
        return self._cameras[name]

    def _put(self, status: CameraStatus) -> CameraStatus:
        self._cameras[status.name] = status
        self._tell(status.name)
        return status

    def _tell(self, name: str) -> None:
        status = self._cameras[name]
        self.events.publish("camera", name, {"state": str(status.state), "detail": status.detail})


def service_on(store: Store, embedder: BagEmbedder | None = None) -> MemoryService:
    return MemoryService(store, Recall(store, embedder))


def jpeg(seed: int = 0) -> bytes:
    image = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), np.uint8)
    return cv2.imencode(".jpg", image)[1].tobytes()


def call(app: FastAPI, method: str, path: str, **more: Any) -> httpx.Response:
    """One request to the app, without a network."""

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **more)

    return asyncio.run(go())


@contextmanager
def serving(app: FastAPI, settings: ServeSettings | None = None, port: int = 0) -> Iterator[str]:
    """The app on a real server on loopback; gives its address."""
    config = server_config(app, settings or ServeSettings(), host="127.0.0.1", port=port)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, name="test-server")
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.hub.close_soon()
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def new_store(home: Path) -> Store:
    return Store.open(home)
