"""WHIP (RFC 9725): phones, OBS, GStreamer, FFmpeg and browsers publish, each as a camera of its own.

On a data channel `notices` a publisher that may read the memory gets word of the owner's rules, as JSON.

Pictures go to the camera's latest-frame slot with the monotonic clock at which they came; sound goes on without loss.
aiortc queues what it decodes without bound, so every track is pumped whether it is wanted or not.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
import orjson
import structlog
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from edge.clock import iso, monotonic
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
from edge.serve.protocols import Auth, Device, PushSourceLike, Scope, ServiceLike
from edge.serve.repair import Repair
from edge.serve.sdp import SdpError, parse_fragment, parse_offer
from edge.types.media import SAMPLE_RATE, Samples

NOTICE = "notice"  # kind of event: word of one of the owner's rules
_LATE_S = 0.5  # a picture that is later than this against the earliest ones is not looked at, s
_ANCHOR_S = 5.0  # lateness that lasts is a jump of the sender's clock, s
_OPPOSED = 0.05  # a mix with less than this part of the channels' power has lost them to opposed phases

_log = structlog.get_logger()


class Lateness:
    """How late pictures are, from their stamps and their arrival; the earliest of them count as in time."""

    def __init__(self) -> None:
        self._least: float | None = None
        self._late_since: float | None = None

    def of(self, stamp: float, mono: float) -> float:
        """How late a picture is.

        Args:
            stamp: by the sender's clock, s.
            mono: when it arrived, monotonic s.

        Returns:
            Seconds; 0 for the earliest so far.
        """
        offset = mono - stamp
        if self._least is None or offset < self._least:
            self._least = offset
        # Two clocks drift apart by some 50 millionths: let the measure follow.
        self._least += 1e-5
        late = offset - self._least
        if late <= _LATE_S:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = mono
        elif mono - self._late_since > _ANCHOR_S:
            self._least, self._late_since, late = offset, None, 0.0
        return max(0.0, late)


class Mono:
    """Decoded sound of any kind as float32, mono, 16 kHz."""

    def __init__(self) -> None:
        self._resampler: Any = None
        self._layout: tuple[str, int] | None = None

    def feed(self, frame: Any) -> Samples:
        """The samples that this frame completes, (n,); it keeps some milliseconds back."""
        layout = (str(frame.layout.name), int(frame.sample_rate))
        if layout != self._layout:
            self._resampler = av.AudioResampler(format="fltp", rate=SAMPLE_RATE)
            self._layout = layout
        parts = [np.asarray(one.to_ndarray(), np.float32) for one in self._resampler.resample(frame)]
        if not parts:
            return np.empty(0, np.float32)
        channels = np.concatenate(parts, axis=1)
        mixed = channels.mean(axis=0)
        powers = np.square(channels).mean(axis=1)
        if channels.shape[0] > 1 and float(np.square(mixed).mean()) < _OPPOSED * float(powers.max()):
            mixed = channels[int(powers.argmax())]
        return np.ascontiguousarray(mixed, np.float32)


@dataclass(eq=False)
class Publisher(Peer):
    """A peer that is a camera."""

    source: PushSourceLike | None = None
    pictures: int = 0
    late: int = 0  # pictures that were too old to be looked at
    samples: int = 0
    paused: bool = False
    kinds: list[str] = field(default_factory=list)
    repair: Repair | None = None  # of its pictures

    def over(self) -> str | None:
        """Nobody takes what is sent for a camera that was removed."""
        return "its camera was removed" if self.source is not None and self.source.removed else None

    async def pump(self, track: MediaStreamTrack) -> None:
        """Read a track until it ends; reading never waits for anything else."""
        lateness, sound = Lateness(), Mono()
        while True:
            try:
                frame: Any = await track.recv()
            except MediaStreamError:
                return
            now = monotonic()
            self.heard = now
            if self.source is None or self.paused:
                continue
            if isinstance(frame, av.VideoFrame):
                self.pictures += 1
                stamp = frame.time  # s; None without a stamp
                if stamp is not None and lateness.of(stamp, now) > _LATE_S:
                    self.late += 1
                    if self.repair is not None:
                        self.repair.late()
                    continue
                self.source.push_picture(frame, now)
            else:
                samples = sound.feed(frame)
                if len(samples):
                    self.samples += len(samples)
                    self.source.push_sound(samples, now - len(samples) / SAMPLE_RATE)


class Publishers(Owner):
    """All publishers, and the sources of those that were lost a moment ago and may come back."""

    def __init__(self, service: ServiceLike, limits: PeerLimits) -> None:
        super().__init__(limits)
        self._service = service
        self._lingering: dict[str, tuple[PushSourceLike, asyncio.Task[None]]] = {}
        self._removed: dict[str, float] = {}  # cameras that were removed a moment ago, and until when, monotonic s

    def begin(self) -> None:
        """Hand the owner's messages on to whoever publishes and may read the memory."""
        self.start("notices", self._hand_on())

    async def _hand_on(self) -> None:
        events = self._service.events.subscribe(64)
        try:
            async for event in events:
                if event.kind == NOTICE:
                    words = orjson.dumps({"kind": NOTICE, "at": iso(event.at), **event.data}, default=str).decode()
                    told = [peer.camera for peer in self.peers.values() if peer.tell(words)]
                    _log.debug("notice handed on", cameras=told)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def of_camera(self, camera: str) -> Publisher | None:
        """Who publishes it now."""
        for peer in self.peers.values():
            if peer.camera == camera and isinstance(peer, Publisher):
                return peer
        return None

    async def publish(self, camera: str, device: Device, body: bytes) -> tuple[Publisher, str]:
        """Answer an offer and make a camera of whoever made it.

        Raises:
            Problem: it is refused.
        """
        try:
            offer = parse_offer(body)
        except SdpError as error:
            raise refused(error) from error
        if not offer.sends():
            raise Problem(400, "offer", "The offer sends neither a picture nor sound: offer one as sendonly.")
        self._check_camera(camera, device)
        async with self.gate.enter():
            if self.of_camera(camera) is None:
                self.room()
            # In a thread: the first certificate takes a while.
            peer = await asyncio.to_thread(Publisher, device, camera, self.limits, needs_media=True)
            tracks: list[MediaStreamTrack] = []
            peer.connection.on("track", tracks.append)

            def receive_only() -> None:
                for transceiver in peer.connection.getTransceivers():
                    transceiver.direction = "recvonly"

            answer = await peer.answer(offer, receive_only)
            try:
                # Whoever published as this camera before is the same device, which has lost that connection.
                self._check_camera(camera, device)
                before = self.of_camera(camera)
                if before is not None:
                    self.peers.pop(before.id)
                    before.source = None
                    self.start(f"close {camera}", before.close())
                else:
                    self.room()
                self._forget_lingering(camera)
                self.peers[peer.id] = peer  # from here on the name is its own
                # In a thread: a new camera is written to the disk.
                peer.source = await asyncio.to_thread(self._service.push_source, camera, device)
            except BaseException:
                self.peers.pop(peer.id, None)
                await peer.close()
                raise
        for track in tracks:
            peer.kinds.append(track.kind)
            self.start(f"{track.kind} {camera}", peer.pump(track))
        receiver = next((one.receiver for one in peer.connection.getTransceivers() if one.kind == "video"), None)
        mending = None
        if receiver is not None:
            peer.repair = Repair(receiver)
            mending = self.start(f"repair {camera}", peer.repair.run())
        self.adopt(peer, lambda why: self._lost(peer, why), mending)
        _log.info("publishing", camera=camera, device=device.id, kinds=peer.kinds)
        return peer, answer

    async def end(self, peer: Publisher) -> None:
        """End a session: the publisher says that it is over."""
        self.peers.pop(peer.id, None)
        source, peer.source = peer.source, None
        await peer.close()
        if source is not None:
            source.close()

    async def pause(self, peer: Publisher, paused: bool) -> None:
        """Stop or go on to remember what a publisher sends."""
        if paused:
            peer.paused = peer.quiet = True
            await self._service.pause_camera(peer.camera)
            return
        await self._service.resume_camera(peer.camera)
        peer.alive()
        peer.paused = peer.quiet = False

    async def close(self) -> None:
        """End all; their cameras end with them."""
        sources = [peer.source for peer in self.peers.values() if isinstance(peer, Publisher) and peer.source]
        sources += [source for source, _ in self._lingering.values()]
        await super().close()
        for source in sources:
            source.close()

    def _check_camera(self, camera: str, device: Device) -> None:
        if not camera.strip() or len(camera) > 64 or not camera.isprintable():
            raise Problem(400, "camera", "The name of a camera has 1 to 64 printable characters.")
        self._check_removed(camera)
        before = self.of_camera(camera)
        if before is not None and before.device.id != device.id:
            raise Problem(
                409, "taken", f"“{before.device.name}” publishes as “{camera}” now: publish under another name."
            )
        known = next((one for one in self._service.cameras if one.name == camera), None)
        if known is not None and not known.pushed:
            raise Problem(409, "taken", f"“{camera}” is a camera of its own: publish under another name.")

    def _check_removed(self, camera: str) -> None:
        lingering = self._lingering.get(camera)
        if lingering is not None and lingering[0].removed:
            self._forget_lingering(camera)
            self._note_removed(camera)
        wait = self._removed.get(camera, 0.0) - monotonic()
        if wait <= 0:
            self._removed.pop(camera, None)
            return
        # 409 and not 503: publishers that come back by themselves are to stop.
        raise Problem(
            409,
            "removed",
            f"“{camera}” was removed on the device; to publish it again, start again in {math.ceil(wait)} s.",
            headers={"Retry-After": str(math.ceil(wait))},
        )

    def _note_removed(self, camera: str) -> None:
        self._removed[camera] = monotonic() + self.limits.removed_s

    async def _lost(self, peer: Publisher, why: str) -> None:
        skips = peer.repair.skips if peer.repair is not None else 0
        _log.info("publisher gone", camera=peer.camera, why=why, pictures=peer.pictures, late=peer.late, skips=skips)
        source, peer.source = peer.source, None
        if source is None:
            return
        if source.removed:
            self._note_removed(peer.camera)
            return
        task = self.start(f"linger {peer.camera}", self._linger(peer.camera, source))
        self._lingering[peer.camera] = (source, task)

    async def _linger(self, camera: str, source: PushSourceLike) -> None:
        await asyncio.sleep(self.limits.linger_s)
        self._lingering.pop(camera, None)
        source.close()

    def _forget_lingering(self, camera: str) -> None:
        lingering = self._lingering.pop(camera, None)
        if lingering is not None:
            lingering[1].cancel()


def whip_router(
    service: ServiceLike, auth: Auth, limits: PeerLimits | None = None, *, devices: Devices | None = None
) -> APIRouter:
    """The routes under `/whip`; their lifespan ends all sessions.

    `POST /whip` publishes as the camera named like the device, `POST /whip/NAME` as another. Both take the key as a bearer
    token, or a browser's cookie.
    """
    publishers = Publishers(service, limits or PeerLimits())
    if devices is not None:
        publishers.hear(devices)

    router = APIRouter(prefix="/whip", tags=["webrtc"], lifespan=publishers.lifespan)
    known: Any = Depends(requires(auth, Scope.PUBLISH))

    async def begin(camera: str, device: Device, request: Request) -> Response:
        publishers.gate.count(device)
        peer, answer = await publishers.publish(camera, device, await read_description(request, SDP))
        return created(peer, router.url_path_for("session", camera=camera, session=peer.id), answer)

    def found(camera: str, session: str, device: Device) -> Publisher:
        peer = publishers.find(camera, session, device)
        assert isinstance(peer, Publisher)  # noqa: S101 -- for the type checker; this owner has no others
        return peer

    @router.options("", status_code=204)
    @router.options("/{camera}", status_code=204)
    async def may() -> Response:
        """What may be posted."""
        return options()

    @router.post("", status_code=201)
    async def publish_as_device(request: Request, device: Device = known) -> Response:
        """Publish as the camera that is named like the device."""
        return await begin(device.name, device, request)

    @router.post("/{camera}", status_code=201)
    async def publish_as(camera: str, request: Request, device: Device = known) -> Response:
        """Publish as a camera."""
        return await begin(camera, device, request)

    @router.patch("/{camera}/{session}", status_code=204)
    async def trickle(camera: str, session: str, request: Request, device: Device = known) -> Response:
        """Add ICE candidates (RFC 8840)."""
        peer = found(camera, session, device)
        check_precondition(request, peer)
        try:
            fragment = parse_fragment(await read_description(request, FRAGMENT))
        except SdpError as error:
            raise refused(error) from error
        await peer.trickle(fragment)
        return Response(status_code=204)

    @router.delete("/{camera}/{session}", name="session")
    async def end(camera: str, session: str, device: Device = known) -> Response:
        """End the session and with it the camera."""
        await publishers.end(found(camera, session, device))
        return Response(status_code=200)

    @router.post("/{camera}/{session}/pause", status_code=204)
    async def pause(camera: str, session: str, device: Device = known) -> Response:
        """Stop to remember; what is sent until then is remembered."""
        await publishers.pause(found(camera, session, device), paused=True)
        return Response(status_code=204)

    @router.post("/{camera}/{session}/resume", status_code=204)
    async def resume(camera: str, session: str, device: Device = known) -> Response:
        """Remember again."""
        await publishers.pause(found(camera, session, device), paused=False)
        return Response(status_code=204)

    return router
