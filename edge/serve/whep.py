"""WHEP: watch a camera's live picture in a browser.

What is watched is the latest picture of the camera, encoded again for each viewer, so that a viewer never holds up the
watch: whoever is slow sees fewer pictures. A camera that nobody looks at costs nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import cv2
import numpy as np
import structlog
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from edge.clock import monotonic
from edge.errors import NotFoundError, ReflectWorldError
from edge.serve.access import requires
from edge.serve.devices import Devices
from edge.serve.peers import (
    FRAGMENT,
    SDP,
    Owner,
    Peer,
    PeerLimits,
    check_precondition,
    created,
    options,
    read_description,
    refused,
)
from edge.serve.problems import Problem
from edge.serve.protocols import Auth, Device, Scope, ServiceLike
from edge.serve.sdp import SdpError, parse_fragment, parse_offer

_STEP_S = 1 / 15  # a new picture is looked for so often, s
_REPEAT_S = 1.0  # a picture that does not change is sent again after this, s
_SIDE_PX = 640  # longer side of what is sent
_CLOCK = 90_000  # Hz, of video in RTP

_log = structlog.get_logger()


class LiveTrack(MediaStreamTrack):
    """The latest picture of a camera, as a track."""

    kind = "video"

    def __init__(self, service: ServiceLike, camera: str) -> None:
        super().__init__()
        self._service = service
        self._camera = camera
        self._began = monotonic()
        self._next = self._began
        self._sent = 0.0  # monotonic s
        self._shown: bytes | None = None
        self._frame: Any = None

    async def recv(self) -> Any:
        """The next picture, as soon as there is another one."""
        while True:
            if self.readyState != "live":
                raise MediaStreamError
            await asyncio.sleep(max(0.0, self._next - monotonic()))
            self._next = max(monotonic(), self._next + _STEP_S)
            try:
                changed = await asyncio.to_thread(self._look)
            except ReflectWorldError as error:
                _log.info("nothing to watch", camera=self._camera, error=str(error))
                self.stop()
                raise MediaStreamError from error
            now = monotonic()
            if self._frame is not None and (changed or now - self._sent >= _REPEAT_S):
                self._sent = now
                self._frame.pts = round((now - self._began) * _CLOCK)
                self._frame.time_base = Fraction(1, _CLOCK)
                return self._frame

    def _look(self) -> bool:
        """Whether there is a new picture; runs in a thread."""
        coded = self._service.latest_jpeg(self._camera)
        if coded is None or coded == self._shown:
            return False
        image = cv2.imdecode(np.frombuffer(coded, np.uint8), cv2.IMREAD_COLOR)
        if image is None:
            return False
        self._shown = coded
        self._frame = av.VideoFrame.from_ndarray(_fitted(np.asarray(image, np.uint8)), "bgr24")
        return True


def _fitted(image: Any) -> Any:
    """At most `_SIDE_PX` on the longer side, with even sides, as encoders want."""
    height, width = image.shape[:2]
    scale = min(1.0, _SIDE_PX / max(width, height))
    size = (max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2))
    return image if size == (width, height) else cv2.resize(image, size, interpolation=cv2.INTER_AREA)


@dataclass(eq=False)
class Viewer(Peer):
    """A peer that watches."""

    track: LiveTrack | None = None

    def over(self) -> str | None:
        """A picture that stands still for ever is no picture: who watches may ask again."""
        ended = self.track is not None and self.track.readyState == "ended"
        return "there is nothing to watch any more" if ended else None


class Viewers(Owner):
    """All that watch."""

    def __init__(self, service: ServiceLike, limits: PeerLimits) -> None:
        super().__init__(limits)
        self._service = service

    async def watch(self, camera: str, device: Device, body: bytes) -> tuple[Peer, str]:
        """Answer an offer with the picture of a camera.

        Raises:
            Problem: it is refused.
            NotFoundError: there is no such camera.
        """
        try:
            offer = parse_offer(body)
        except SdpError as error:
            raise refused(error) from error
        if "video" not in offer.receives():
            raise Problem(400, "offer", "The offer receives no picture: offer video as recvonly.")
        if all(one.name != camera for one in self._service.cameras):
            raise NotFoundError(camera[:64], f"There is no camera “{camera[:64]}”; `GET /api/v1/cameras` lists them.")
        async with self.gate.enter():
            self.room()
            # In a thread: the first certificate takes a while.
            peer = await asyncio.to_thread(Viewer, device, camera, self.limits, needs_media=False)
            peer.track = track = LiveTrack(self._service, camera)

            def send() -> None:
                for transceiver in peer.connection.getTransceivers():
                    transceiver.direction = "sendonly" if transceiver.kind == "video" else "inactive"
                peer.connection.addTrack(track)

            answer = await peer.answer(offer, send)
            self.adopt(peer, lambda why: self._left(peer, why))
        return peer, answer

    async def end(self, peer: Peer) -> None:
        """End a session."""
        self.peers.pop(peer.id, None)
        await peer.close()

    async def _left(self, peer: Viewer, why: str) -> None:
        if peer.track is not None:
            peer.track.stop()
        _log.info("viewer gone", camera=peer.camera, why=why)


def whep_router(
    service: ServiceLike, auth: Auth, limits: PeerLimits | None = None, *, devices: Devices | None = None
) -> APIRouter:
    """The routes under `/whep`: `POST /whep/NAME` watches a camera."""
    viewers = Viewers(service, limits or PeerLimits(peers=4))
    if devices is not None:
        viewers.hear(devices)

    router = APIRouter(prefix="/whep", tags=["webrtc"], lifespan=viewers.lifespan)
    known: Any = Depends(requires(auth, Scope.ASK))

    @router.options("/{camera}", status_code=204)
    async def may() -> Response:
        """What may be posted."""
        return options()

    @router.post("/{camera}", status_code=201)
    async def watch(camera: str, request: Request, device: Device = known) -> Response:
        """Watch a camera."""
        viewers.gate.count(device)
        peer, answer = await viewers.watch(camera, device, await read_description(request, SDP))
        return created(peer, router.url_path_for("viewing", camera=camera, session=peer.id), answer)

    @router.patch("/{camera}/{session}", status_code=204)
    async def trickle(camera: str, session: str, request: Request, device: Device = known) -> Response:
        """Add ICE candidates (RFC 8840)."""
        peer = viewers.find(camera, session, device)
        check_precondition(request, peer)
        try:
            fragment = parse_fragment(await read_description(request, FRAGMENT))
        except SdpError as error:
            raise refused(error) from error
        await peer.trickle(fragment)
        return Response(status_code=204)

    @router.delete("/{camera}/{session}", name="viewing")
    async def end(camera: str, session: str, device: Device = known) -> Response:
        """Stop to watch."""
        await viewers.end(viewers.find(camera, session, device))
        return Response(status_code=200)

    return router
