"""Peers over WebRTC: what publishers and viewers have in common.

What aiortc lacks is added here: limits on who may begin, time-outs on every step, a heartbeat that notices a dead peer in
`PeerLimits.heartbeat_s` instead of half a minute, and one owner for every task.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiortc import RTCDataChannel, RTCSessionDescription
from aiortc.sdp import candidate_from_sdp
from starlette.requests import Request
from starlette.responses import Response

from edge.clock import monotonic
from edge.serve.devices import Change, DeviceChange, Devices
from edge.serve.dtls import peer_connection
from edge.serve.limits import TokenBuckets
from edge.serve.problems import Problem
from edge.serve.protocols import Device, Scope
from edge.serve.sdp import MAX_BYTES, Fragment, Offer, SdpError, usable, without_unusable

HEARTBEAT = "heartbeat"  # label of the data channel on which a peer says each second that it lives
NOTICES = "notices"  # label of the data channel on which a peer that may read the memory gets the owner's messages
SDP = "application/sdp"
FRAGMENT = "application/trickle-ice-sdpfrag"
_BODY_S = 5.0  # a description arrives within this, s
_LOOK_S = 0.25  # the owner of a peer looks after it this often, s
_UNSENT = 65_536  # bytes of messages that may wait for a slow peer; what comes then it does not get
_CLOSE_S = 3.0  # a peer may take this long to close, s

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """How many peers there may be, and how long what may take."""

    peers: int = 8  # publishers, or viewers, at a time
    negotiating: int = 2  # offers that are answered at a time
    waiting: int = 6  # offers that wait for that
    burst: int = 12  # offers of one device at once
    offers_per_s: float = 0.5  # and then so many a second, 1/s
    answer_s: float = 8.0  # an offer is answered within this or refused
    connect_s: float = 20.0  # a peer that has not connected by then is closed; trickled candidates may be late
    heartbeat_s: float = 4.0  # without a sign of life a peer with a heartbeat is dead after this
    silence_s: float = 12.0  # as that, for publishers without a heartbeat, whose only sign of life is media
    linger_s: float = 30.0  # a publisher that was lost may come back to the same camera within this
    removed_s: float = 10.0  # a camera that was removed is not published again within this, as publishers would try


class Gate:
    """Lets offers in: a few of each device, a few at a time; a flood is refused and nobody else waits for it."""

    def __init__(self, limits: PeerLimits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.negotiating)
        self._inside = 0
        self._buckets = TokenBuckets(limits.offers_per_s, limits.burst)

    def count(self, device: Device) -> None:
        """Count one request of a device.

        Raises:
            Problem: 429; there were too many.
        """
        wait = math.ceil(self._buckets.take(device.id))
        if wait:
            raise Problem(
                429, "too-many-offers", f"Too many offers: try again in {wait} s.", headers={"Retry-After": str(wait)}
            )

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait for a turn to negotiate.

        Raises:
            Problem: 429; too many wait.
        """
        if self._inside >= self._limits.negotiating + self._limits.waiting:
            raise Problem(
                429, "too-many-offers", "Too many offers at a time: try again in 2 s.", headers={"Retry-After": "2"}
            )
        self._inside += 1
        try:
            async with self._slots:
                yield
        finally:
            self._inside -= 1


@dataclass(eq=False)
class Peer:
    """One peer connection and what keeps it."""

    device: Device
    camera: str
    limits: PeerLimits
    needs_media: bool  # whether media must come from it
    id: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    etag: str = field(default_factory=lambda: f'"{secrets.token_urlsafe(9)}"')
    began: float = field(default_factory=monotonic)
    heard: float = field(default_factory=monotonic)  # monotonic s of the last sign of life
    beats: bool = False  # whether it has a heartbeat
    connected: bool = False
    closed: bool = False
    offer: Offer | None = None
    quiet: bool = False  # it sends no media on purpose
    revoked: bool = False  # its device's key was taken away

    def __post_init__(self) -> None:
        self.connection = peer_connection()
        self.connection.on("datachannel", self._channel)
        self._notices: RTCDataChannel | None = None

    def alive(self) -> None:
        """Note a sign of life."""
        self.heard = monotonic()

    async def answer(self, offer: Offer, prepare: Callable[[], None]) -> str:
        """Answer an offer.

        Args:
            offer: checked.
            prepare: called once the offer is known to the connection and before it is answered.

        Returns:
            The answer with all candidates of this device.

        Raises:
            Problem: 400; it cannot be answered. 503: not in time. The connection is closed then.
        """
        self.offer = without_unusable(offer)
        try:
            async with asyncio.timeout(self.limits.answer_s):
                await self.connection.setRemoteDescription(RTCSessionDescription(self.offer.sdp, "offer"))
                prepare()
                await self.connection.setLocalDescription(await self.connection.createAnswer())
        except TimeoutError as error:
            await self.close()
            raise Problem(
                503, "answer-late", "The offer was not answered in time: try again.", headers={"Retry-After": "2"}
            ) from error
        except Exception as error:  # the parser of aiortc raises whatever a hostile text provokes
            await self.close()
            _log.info("offer refused", device=self.device.id, error=repr(error))
            raise Problem(400, "offer", "The offer cannot be answered: no codec or transport fits.") from error
        except BaseException:
            await self.close()
            raise
        self.began = self.heard = monotonic()
        return str(self.connection.localDescription.sdp)

    async def trickle(self, fragment: Fragment) -> None:
        """Take further candidates.

        Raises:
            Problem: 422; it asks for an ICE restart, which there is not: a new connection is quicker.
        """
        if self.offer is None or (fragment.ufrag is not None and fragment.ufrag != self.offer.ufrag):
            raise Problem(422, "ice-restart", "ICE restarts are not offered: publish again with a new connection.")
        try:
            async with asyncio.timeout(self.limits.answer_s):
                for text in filter(usable, fragment.candidates):
                    candidate = candidate_from_sdp(text)
                    candidate.sdpMLineIndex = 0  # everything is bundled on the first
                    await self.connection.addIceCandidate(candidate)
                if fragment.complete:
                    await self.connection.addIceCandidate(None)
        except (TimeoutError, ValueError, AssertionError) as error:
            raise Problem(400, "candidate", "A candidate cannot be used.") from error

    async def fate(self) -> str:
        """Watch over it until it is over; why it is over, in words."""
        looked = monotonic()
        while True:
            await asyncio.sleep(_LOOK_S)
            now = monotonic()
            # Time in which this loop itself was held up is nobody's silence.
            held = max(0.0, now - looked - 2 * _LOOK_S)
            looked = now
            self.heard += held
            self.began += held
            state = self.connection.connectionState
            if self.revoked:
                return "its key was revoked"
            if self.closed or state in {"closed", "failed"}:
                return "the connection ended"
            over = self.over()
            if over is not None:
                return over
            if not self.connected:
                if state == "connected":
                    self.connected, self.heard = True, now
                elif now - self.began > self.limits.connect_s:
                    return "it did not connect in time"
                continue
            if self.beats and now - self.heard > self.limits.heartbeat_s:
                return f"no sign of life for {self.limits.heartbeat_s:g} s"
            if self.needs_media and not self.beats and not self.quiet and now - self.heard > self.limits.silence_s:
                return f"neither picture nor sound for {self.limits.silence_s:g} s"

    def over(self) -> str | None:
        """Why there is nothing more for it to send or to see, in words; None: there is. Asked a few times a second."""
        return None

    def tell(self, words: str) -> bool:
        """Send a message of the owner's rules, if this peer wants them and may read the memory; whether it was sent."""
        channel = self._notices
        if channel is None or self.closed or self.revoked or channel.readyState != "open":
            return False
        if channel.bufferedAmount > _UNSENT:
            return False
        channel.send(words)
        return True

    async def close(self) -> None:
        """Close the connection; may be called again."""
        if self.closed:
            return
        self.closed = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.connection.close()
        except TimeoutError:
            _log.warning("a peer did not close in time", peer=self.id)

    def _channel(self, channel: RTCDataChannel) -> None:
        if channel.label == NOTICES and self.device.may(Scope.ASK):
            self._notices = channel
            return
        if channel.label != HEARTBEAT:
            channel.close()
            return
        self.beats = True
        self.alive()

        def beat(message: str | bytes) -> None:
            self.alive()
            if channel.readyState == "open" and len(message) <= 64:
                channel.send(message)

        channel.on("message", beat)


class Owner:
    """Owns peers and the tasks that serve them; each task has a name and ends with its peer."""

    def __init__(self, limits: PeerLimits) -> None:
        self.limits = limits
        self.gate = Gate(limits)
        self.peers: dict[str, Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._servers = 0

    def room(self) -> None:
        """Check that one more may come.

        Raises:
            Problem: 503; there are as many as there may be, or the service ends.
        """
        if self._closing or len(self.peers) >= self.limits.peers:
            raise Problem(
                503,
                "full",
                f"There are {len(self.peers)} peers, as many as there may be: end one and try again.",
                headers={"Retry-After": "5"},
            )

    def hear(self, devices: Devices) -> None:
        """End the peers of devices whose key is taken away."""

        def changed(change: DeviceChange) -> None:
            # From any thread: each peer looks for itself.
            for peer in tuple(self.peers.values()):
                if change.change is Change.REVOKED and peer.device.id == change.device.id:
                    peer.revoked = True

        devices.changed(changed)

    def adopt(
        self, peer: Peer, gone: Callable[[str], Awaitable[None]], helper: asyncio.Task[None] | None = None
    ) -> None:
        """Watch over an answered peer; `gone` is told why, once it is over and closed; its helper ends with it."""
        self.peers[peer.id] = peer

        async def watch() -> None:
            try:
                why = await peer.fate()
            finally:
                if helper is not None:
                    helper.cancel()
            self.peers.pop(peer.id, None)
            await peer.close()
            await gone(why)

        self.start(f"peer {peer.camera}", watch())

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something as a task of this owner."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def find(self, camera: str, peer_id: str, device: Device) -> Peer:
        """A peer of a device.

        Raises:
            Problem: 404; there is none, or it is somebody else's.
        """
        peer = self.peers.get(peer_id)
        if peer is None or peer.camera != camera or not (peer.device.id == device.id or device.local):
            raise Problem(404, "no-session", "There is no such session: it has ended.")
        return peer

    @asynccontextmanager
    async def lifespan(self, _app: object) -> AsyncIterator[None]:
        """Of a router: with the last server that serves it everything ends."""
        self._servers += 1
        self._closing = False
        if self._servers == 1:
            self.begin()
        try:
            yield
        finally:
            self._servers -= 1
            if not self._servers:
                await self.close()

    def begin(self) -> None:
        """Start what runs beside the peers; called with the first server."""

    async def close(self) -> None:
        """End all peers and tasks; may be called again."""
        self._closing = True
        peers = list(self.peers.values())
        self.peers.clear()
        await asyncio.gather(*(peer.close() for peer in peers))
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task failed", task=task.get_name(), error=repr(error))


def refused(error: SdpError) -> Problem:
    """The problem that an unusable description becomes."""
    return Problem(400, "offer", str(error))


async def read_description(request: Request, media_type: str) -> bytes:
    """The body of a request with a session description.

    Raises:
        Problem: 415, 413 or 408.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise Problem(415, "media-type", f"Send the description as {media_type}.", headers={"Accept-Post": SDP})
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BYTES:
                    raise Problem(413, "too-large", f"A description has at most {MAX_BYTES} bytes.")
    except TimeoutError as error:
        raise Problem(408, "slow", f"The description did not arrive within {_BODY_S:g} s: try again.") from error
    return bytes(body)


def check_precondition(request: Request, peer: Peer) -> None:
    """RFC 9725, 4.3.1: a PATCH names the session's state that it is for.

    Raises:
        Problem: 428 or 412; 422 for an ICE restart.
    """
    match = request.headers.get("if-match")
    if match is None:
        raise Problem(428, "precondition", "Send the session's ETag as If-Match.")
    if match.strip() == "*":
        raise Problem(422, "ice-restart", "ICE restarts are not offered: begin again with a new connection.")
    if peer.etag not in [one.strip() for one in match.split(",")]:
        raise Problem(412, "precondition", "If-Match is not the session's ETag.")


def created(peer: Peer, path: str, answer: str) -> Response:
    """The 201 that answers an offer."""
    headers = {"Location": path, "ETag": peer.etag, "Accept-Patch": FRAGMENT, "Cache-Control": "no-store"}
    return Response(answer, 201, headers=headers, media_type=SDP)


def options() -> Response:
    """What may be posted. It names no foreign origin: only this server's own pages may."""
    return Response(status_code=204, headers={"Accept-Post": SDP, "Allow": "POST, OPTIONS"})
