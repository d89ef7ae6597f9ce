"""What the server needs from the rest: a service, its events, and somebody who knows who asks.

The server imports nothing of `edge.app`; what is built there only has to fit these shapes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from edge.memory import Plan, Store, Target
from edge.notify import Notifier
from edge.recall import Recall
from edge.types.media import Samples
from edge.types.records import CorrectionDraft, CorrectionRecord, EntityRecord


class Scope(StrEnum):
    """What a device may do. `ADMIN` includes the others."""

    PUBLISH = "publish"  # be a camera
    ASK = "ask"  # read the memory and ask it
    ADMIN = "admin"  # name people, add and remove cameras, pair devices


@dataclass(frozen=True, slots=True)
class Device:
    """Who makes a request."""

    id: str
    name: str
    scopes: frozenset[Scope]
    local: bool = False  # a process of this device itself, let in without a key

    def may(self, scope: Scope) -> bool:
        """Whether it has this scope, by itself or as an admin."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


class Auth(Protocol):
    """Knows devices by their keys."""

    def authenticate(self, headers: Mapping[str, str], cookies: Mapping[str, str], client: str | None) -> Device | None:
        """Who sends a request; None: nobody who is known. Called on the loop for every request: quick, no waiting.

        Args:
            headers: of the request; looking names up does not depend on their case.
            cookies: of the request.
            client: the address it comes from, without the port; None: a socket without addresses.
        """


class CameraState(StrEnum):
    """What a camera does now."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALLED = "stalled"  # connected, and no picture for some seconds
    FAILED = "failed"  # cannot be reached; tried again after a while
    PAUSED = "paused"  # by the user
    ENDED = "ended"  # a file that was watched to its end, or a publisher that left


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """One camera as it is now."""

    name: str
    uri: str  # without passwords: it is shown
    state: CameraState
    detail: str = ""  # one sentence, for example why it failed
    since: float | None = None  # UTC POSIX seconds at which it got into this state
    last_frame: float | None = None  # UTC POSIX seconds of the latest picture
    fps: float = 0.0  # pictures looked at a second, over the last seconds
    width: int = 0  # px of the latest picture
    height: int = 0  # px
    segments: int = 0  # moments remembered since the service started
    dropped: int = 0  # pictures dropped to keep up
    oldest: float = 0.0  # greatest age of a live picture when it was looked at, since the service started, s
    enabled: bool = True
    paused: bool = False
    pushed: bool = False  # a publisher sends it (WHIP), nobody fetches it


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a bounded channel is."""

    items: int
    bound: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Vitals:
    """How the service is."""

    started: float  # UTC POSIX seconds
    loop_lag_ms: float = 0.0  # 99th percentile over the last minute
    loop_stalls: int = 0  # times that the loop was held up for more than 200 ms
    channels: Mapping[str, Fill] = field(default_factory=dict)  # by name
    missing: tuple[str, ...] = ()  # what cannot be done for want of a model, one sentence each
    networks: str = ""  # what networks run on, in words
    name: str = ""  # of the device


class EventLike(Protocol):
    """Something that happened. Kinds: `moment`, `sight`, `camera`, `person`, `notice`, `forgot`."""

    @property
    def kind(self) -> str:
        """What happened."""

    @property
    def camera(self) -> str | None:
        """Where; None: nowhere in particular."""

    @property
    def at(self) -> float:
        """When, UTC POSIX seconds."""

    @property
    def data(self) -> Mapping[str, object]:
        """The rest, as JSON values."""


class EventsLike(Protocol):
    """Publishes events to whoever subscribes."""

    def subscribe(self, maxlen: int = 64) -> AsyncIterator[EventLike]:
        """Events from now on, on the running loop. Who is slow loses the oldest, and the publisher never waits."""


class PushSourceLike(Protocol):
    """A camera that is fed from outside."""

    def push_picture(self, frame: Any, mono: float) -> None:
        """Put a picture in the slot of the latest one.

        Args:
            frame: `av.VideoFrame`, or an image as in `edge.types.media`.
            mono: monotonic seconds at which it was received.
        """

    def push_sound(self, samples: Any, mono: float) -> None:
        """Add sound: float32, mono, 16 kHz, with the monotonic seconds of its first sample."""

    @property
    def removed(self) -> bool:
        """Whether its camera was removed: nobody takes what is pushed any more."""

    def close(self) -> None:
        """End it; may be called again."""


class OrderLike(Protocol):
    """An order that was carried out."""

    @property
    def text(self) -> str:
        """One sentence for the owner."""

    @property
    def item(self) -> str:
        """The id of what is kept."""


class OrdersLike(Protocol):
    """Carries out what the owner asks to be kept."""

    def take(self, text: str) -> OrderLike:
        """Keep a rule, a reminder or something to remember; reads and writes the disk.

        Raises:
            UserError: it is not understood.
        """


class PauseLike(Protocol):
    """A pause of everything."""

    @property
    def since(self) -> float:
        """UTC POSIX seconds."""

    @property
    def until(self) -> float | None:
        """UTC POSIX seconds; None: until told otherwise."""


class ServiceLike(Protocol):
    """The running service. Its attributes may be read on the loop; what waits is said."""

    @property
    def store(self) -> Store:
        """The memory. Every call reads the disk: never on the loop."""

    @property
    def recall(self) -> Recall:
        """Questions to it; as the store."""

    @property
    def notifier(self) -> Notifier:
        """The owner's rules; as the store."""

    @property
    def orders(self) -> OrdersLike:
        """What the owner asks to be kept; as the store."""

    @property
    def events(self) -> EventsLike:
        """What happens."""

    @property
    def cameras(self) -> Sequence[CameraStatus]:
        """All cameras as they are now, in the order of their names."""

    @property
    def vitals(self) -> Vitals:
        """How the service is."""

    async def add_camera(self, name: str, uri: str) -> CameraStatus:
        """Keep a camera and start to watch it.

        Raises:
            UserError: the name is taken or cannot be one.
            SourceError: the address cannot be one.
        """

    async def remove_camera(self, name: str) -> None:
        """Stop to watch a camera and forget its address; what it saw stays.

        Raises:
            NotFoundError: there is none of this name.
        """

    async def pause_camera(self, name: str, seconds: float | None = None) -> CameraStatus:
        """Stop to watch until `resume_camera`, or for so many seconds; what was seen up to now is remembered.

        Raises:
            NotFoundError: there is none of this name.
        """

    async def resume_camera(self, name: str) -> CameraStatus:
        """Go on watching.

        Raises:
            NotFoundError: there is none of this name.
        """

    @property
    def paused(self) -> PauseLike | None:
        """The pause of everything that holds now."""

    async def pause(self, seconds: float | None = None) -> PauseLike:
        """Remember nothing of any camera until `resume`, or for so many seconds; kept over a restart.

        Raises:
            SettingsError: it cannot be written down.
        """

    async def resume(self) -> None:
        """End the pause of everything; cameras that are paused by themselves stay so.

        Raises:
            SettingsError: it cannot be written down.
        """

    async def forget(self, target: Target, token: str | None) -> Plan:
        """Forget something, with what of it is on its way into the memory, and tell everybody (`forgot`).

        Args:
            target: what.
            token: of the plan that was shown; None: whatever goes with the target now.

        Raises:
            NotFoundError: it is not there.
            UserError: it cannot be forgotten by itself, or the memory has changed since it was shown.
        """

    def latest_jpeg(self, camera: str) -> bytes | None:
        """The latest picture of a camera as JPEG; None: none yet. May encode: from any thread, not on the loop.

        Raises:
            NotFoundError: there is no camera of this name.
        """

    def push_source(self, camera: str, device: Device | None = None) -> PushSourceLike:
        """The source of a camera that a publisher feeds; made on first use, taken over from an earlier publisher.

        Args:
            camera: its name.
            device: who publishes.
        """

    def transcribe(self, samples: Samples) -> str:
        """What is said in a short recording; empty: nothing that can be made out. Takes its time: never on the loop.

        Args:
            samples: (n,) float32, mono, 16 kHz.

        Raises:
            ModelError: the recogniser is not there.
            InferenceError: it failed.
        """

    async def name_person(self, entity: int, name: str | None) -> EntityRecord:
        """Give a person a name on the user's authority, or take it away (None), and tell everybody (`person`).

        Raises:
            NotFoundError: nobody has this id.
            UserError: not a name.
        """

    async def correct(self, draft: CorrectionDraft) -> CorrectionRecord:
        """Put right who is who, and tell everybody about all who are concerned (`person`).

        Raises:
            NotFoundError: somebody is not known.
            UserError: it makes no sense.
        """

    async def undo_correction(self, number: int) -> CorrectionRecord:
        """Take a correction back, and tell everybody likewise.

        Raises:
            NotFoundError: there is none of this id.
            UserError: it was undone already.
        """
