"""What the tests of WebRTC share: a service in memory, a server on loopback, and publishers made of real media."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import av
import cv2
import httpx
import numpy as np
import uvicorn
from aiortc import MediaStreamTrack, RTCCertificate, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack
from cryptography.hazmat.primitives import serialization
from fastapi import FastAPI

from edge.errors import NotFoundError
from edge.serve import CameraState, CameraStatus, Device, Scope, problems
from edge.serve.peers import PeerLimits
from edge.serve.whep import whep_router
from edge.serve.whip import whip_router
from tests.media import photo, resized
from tests.serve_support import Happenings

BINDINGS = "/usr/bin/python3"  # Debian's, which its GStreamer bindings are for
KEY = "a-key-of-a-phone"
OTHER_KEY = "a-key-of-another-phone"
ASK_KEY = "a-key-that-may-only-ask"
PHONE = Device("d1", "phone", frozenset({Scope.PUBLISH, Scope.ASK}))
OTHER = Device("d2", "tablet", frozenset({Scope.PUBLISH}))
ASKER = Device("d3", "reader", frozenset({Scope.ASK}))
SOON = PeerLimits(connect_s=6.0, linger_s=1.0, burst=60)


class Keys:
    """Knows three devices."""

    known: Mapping[str, Device] = {KEY: PHONE, OTHER_KEY: OTHER, ASK_KEY: ASKER}

    def authenticate(self, headers: Mapping[str, str], cookies: Mapping[str, str], client: str | None) -> Device | None:
        return self.known.get(headers.get("authorization", "").removeprefix("Bearer "))


class Pushed:
    """A pushed camera that keeps what came."""

    def __init__(self) -> None:
        self.pictures: list[tuple[float, int, int]] = []  # mono, width, height
        self.latest: Any = None
        self.sound: list[np.ndarray] = []
        self.sound_at: list[float] = []
        self.ends = 0
        self.removed = False

    def push_picture(self, frame: Any, mono: float) -> None:
        self.latest = frame
        self.pictures.append((mono, frame.width, frame.height))

    def push_sound(self, samples: Any, mono: float) -> None:
        assert samples.dtype == np.float32
        assert samples.ndim == 1
        self.sound.append(samples)
        self.sound_at.append(mono)

    def close(self) -> None:
        self.ends += 1


class MemoryService:
    """A service that only has pushed cameras."""

    def __init__(self) -> None:
        self.sources: dict[str, Pushed] = {}
        self.publishers: list[tuple[str, str | None]] = []
        self.paused: set[str] = set()
        self.fetched: list[str] = []  # cameras that are fetched, not pushed
        self.events = Happenings()

    @property
    def cameras(self) -> Sequence[CameraStatus]:
        pushed = [CameraStatus(name, "push", CameraState.LIVE, pushed=True) for name in self.sources]
        return pushed + [CameraStatus(name, "rtsp://x", CameraState.LIVE) for name in self.fetched]

    def push_source(self, camera: str, device: Device | None = None) -> Pushed:
        self.publishers.append((camera, device.id if device else None))
        return self.sources.setdefault(camera, Pushed())

    def latest_jpeg(self, camera: str) -> bytes | None:
        if camera not in self.sources:
            raise NotFoundError(camera, f"There is no camera “{camera}”.")
        frame = self.sources[camera].latest
        if frame is None:
            return None
        return cv2.imencode(".jpg", frame.to_ndarray(format="bgr24"))[1].tobytes()

    async def pause_camera(self, name: str) -> None:
        self.paused.add(name)

    async def resume_camera(self, name: str) -> None:
        self.paused.discard(name)


def app_of(service: Any, limits: PeerLimits = SOON) -> FastAPI:
    """The two routers, as the server has them."""
    app = FastAPI()
    problems.install(app)
    app.include_router(whip_router(service, Keys(), limits))
    app.include_router(whep_router(service, Keys(), limits))
    return app


class Server:
    """uvicorn on a free port of loopback, or of a namespace's address, in a thread of its own."""

    def __init__(self, app: FastAPI, port: int = 0, host: str = "127.0.0.1") -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, port))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._app = app
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="server")

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self._app.state, "hub"):
            self._app.state.hub.close_soon()
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive(), "the server did not end"


class Photographs(VideoStreamTrack):
    """Photographs one after the other, each with its own slow movement."""

    def __init__(self, size: tuple[int, int] = (320, 240)) -> None:
        super().__init__()
        self._size = size
        self._photos = [resized(photo(name), *size) for name in ("astronaut", "chelsea", "coffee")]
        self._number = 0

    async def recv(self) -> Any:
        pts, base = await self.next_timestamp()
        image = np.roll(self._photos[self._number // 30 % 3], self._number, axis=1)
        self._number += 1
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), "bgr24")
        frame.pts, frame.time_base = pts, base
        return frame


class Sound(AudioStreamTrack):
    """A sound at 48 kHz, in blocks of 20 ms, at the pace of the clock; silence after its end."""

    def __init__(self, samples: np.ndarray, opposed: bool = False) -> None:
        super().__init__()
        self._samples = np.repeat(samples, 3)
        self._opposed = opposed
        self._at = 0
        self._began = 0.0

    async def recv(self) -> Any:
        self._began = self._began or time.monotonic()
        await asyncio.sleep(max(0.0, self._began + self._at / 48_000 - time.monotonic()))
        block = self._samples[self._at : self._at + 960]
        block = (np.pad(block, (0, 960 - len(block))) * 32767).astype(np.int16)
        stereo = np.stack([block, -block if self._opposed else block], axis=1).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(stereo), "s16", "stereo")
        frame.sample_rate, frame.pts, frame.time_base = 48_000, self._at, Fraction(1, 48_000)
        self._at += 960
        return frame


class Client:
    """A WHIP publisher or WHEP viewer."""

    def __init__(self, url: str, key: str = KEY) -> None:
        self.http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=15)
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.channel: Any = None
        self.echoes = 0
        self.notices: list[dict[str, Any]] = []
        self.location = ""
        self.etag = ""
        self._beats: asyncio.Task[None] | None = None

    def add(self, *tracks: MediaStreamTrack) -> Client:
        for track in tracks:
            self.connection.addTransceiver(track, "sendonly")
        return self

    def heartbeat(self) -> Client:
        self.channel = self.connection.createDataChannel("heartbeat")

        def echo(_message: object) -> None:
            self.echoes += 1

        self.channel.on("message", echo)

        async def beat() -> None:
            while True:
                if self.channel.readyState == "open":
                    self.channel.send("beat")
                await asyncio.sleep(0.5)

        self._beats = asyncio.ensure_future(beat())
        return self

    def listen(self) -> Client:
        """Ask for word of the owner's rules."""
        channel = self.connection.createDataChannel("notices")
        channel.on("message", lambda words: self.notices.append(json.loads(words)))
        channel.on("close", lambda: self.notices.append({"kind": "closed"}))
        return self

    async def offer(self) -> str:
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return self.connection.localDescription.sdp

    async def post(self, path: str, sdp: str) -> httpx.Response:
        return await self.http.post(path, content=sdp, headers={"Content-Type": "application/sdp"})

    async def begin(self, path: str, sdp: str | None = None) -> Client:
        answer = await self.post(path, sdp if sdp is not None else await self.offer())
        assert answer.status_code == 201, answer.text
        assert answer.headers["content-type"].startswith("application/sdp")
        self.location, self.etag = answer.headers["location"], answer.headers["etag"]
        await self.connection.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        return self

    def silence(self) -> None:
        """Stop to send anything, as a killed browser does: without a word, also to ICE."""
        if self._beats is not None:
            self._beats.cancel()
        for transceiver in self.connection.getTransceivers():
            transceiver.sender.transport._send_rtp = _nothing
            transceiver.sender.transport.transport._connection.send = _nothing
            transceiver.sender.transport.transport._send = _nothing

    def lossy(self, share: float) -> None:
        """Lose this share of all datagrams from now on, both ways, as a bad radio link does."""
        chance = random.Random(1)
        for transceiver in self.connection.getTransceivers():
            for protocol in transceiver.sender.transport.transport._connection._protocols:
                send, receive = type(protocol.transport).sendto, type(protocol).datagram_received

                def sendto(data: bytes, address: Any = None, to: Any = protocol.transport, send: Any = send) -> None:
                    if chance.random() >= share:
                        send(to, data, address)

                def received(data: bytes, address: Any, to: Any = protocol, receive: Any = receive) -> None:
                    if chance.random() >= share:
                        receive(to, data, address)

                protocol.transport.sendto, protocol.datagram_received = sendto, received

    async def close(self) -> None:
        if self._beats is not None:
            self._beats.cancel()
        await self.connection.close()
        await self.http.aclose()


def certificate_files(folder: Path) -> tuple[Path, Path]:
    """A certificate with an elliptic curve, and its key, as PEM files."""
    made = RTCCertificate.generateCertificate()
    certificate, private_key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made._cert.public_bytes(serialization.Encoding.PEM))
    private_key.write_bytes(
        made._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return certificate, private_key


async def _nothing(*_: object) -> None:
    return None


@contextlib.asynccontextmanager
async def client(url: str, key: str = KEY) -> AsyncIterator[Client]:
    one = Client(url, key)
    try:
        yield one
    finally:
        await one.close()


async def until(condition: Any, seconds: float, what: str) -> float:
    """Wait for something; how long it took, s."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


@contextlib.contextmanager
def served(service: Any, limits: PeerLimits = SOON, host: str = "127.0.0.1") -> Iterator[Server]:
    with Server(app_of(service, limits), host=host) as server:
        yield server
