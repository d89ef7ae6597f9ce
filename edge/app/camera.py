"""One camera for as long as the service runs: it connects, watches, notices silence, reconnects, pauses.

States: connecting → live ⇄ stalled → failed → connecting …; paused and ended wait for somebody. One thread moves
through them (`camera:NAME`); `tick` on the event loop notices silence.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import cv2
import structlog

from edge.app.backoff import Backoff
from edge.app.cameras import CameraConfig
from edge.app.events import Event, Events
from edge.app.pauses import PauseBook
from edge.app.pipeline import Pipeline, Senses, Tally
from edge.app.remember import Remembered, Rememberer
from edge.app.rooms import Rooms
from edge.capture import Picture, PushPort, Source, open_source
from edge.clock import monotonic, utc_now
from edge.errors import ReflectWorldError
from edge.perceive import InView, Sight
from edge.serve import CameraState, CameraStatus, Fill
from edge.types.media import Frame, Mode
from edge.types.records import EntityKind, Kind, public_id

log = structlog.get_logger(__name__)

_FPS_S = 5.0  # s over which the rate of looks is measured
_SNAPSHOT_PX = 960  # longer side of `latest_jpeg`
_SNAPSHOT_QUALITY = 80
_WORKED_S = 10.0  # a connection that gave pictures for so long is good: the next wait is the shortest again, s


@dataclass(frozen=True, slots=True)
class Shared:
    """What all cameras of a service share."""

    rooms: Rooms
    rememberer: Rememberer
    events: Events
    pauses: PauseBook


class Camera:
    """Runs one camera. Thread-safe."""

    def __init__(self, config: CameraConfig, shared: Shared) -> None:
        self.config = config
        self._shared = shared
        self._settings = shared.rooms.settings.capture
        self.port = PushPort(self._settings) if config.pushed else None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._paused = config.paused
        self._wake = threading.Event()
        self._pipeline: Pipeline | None = None
        self._state = CameraState.CONNECTING
        self._detail = ""
        self._since = utc_now()
        self._latest: Picture | None = None
        self._coded: tuple[Picture | None, bytes | None] = (None, None)
        self._latest_at = 0.0  # UTC
        self._size = (0, 0)
        self._looks: deque[float] = deque(maxlen=256)
        self._looked = -1  # index of the frame that was looked at last
        self._last_end = 0.0  # UTC up to which this camera was captured
        self.tally = Tally()
        self._thread = threading.Thread(target=self._main, name=f"camera:{config.name}", daemon=True)

    # -- from outside -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the open segment and end; does not wait."""
        with self._lock:
            self._over.set()
            self._interrupt()
        if self.port is not None:
            self.port.accept(False)

    def join(self, seconds: float) -> bool:
        """Wait for the end; whether it came, or nothing is lost by not waiting for it."""
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive() or self._pipeline is None

    def pause(self, until: float = 0.0) -> None:
        """Look at nothing until `resume`. What was seen and heard up to now is remembered, and nothing after it.

        Args:
            until: UTC POSIX seconds; 0: until told otherwise.
        """
        with self._lock:
            self._paused = True
            self.config = replace(self.config, paused=True, until=until)
            self._interrupt(monotonic())

    def resume(self) -> None:
        """Go on."""
        with self._lock:
            self._paused = False
            self.config = replace(self.config, paused=False, until=0.0)
            self._wake.set()

    def look_again(self) -> None:
        """Whether everything is paused has changed."""
        with self._lock:
            if self.paused:
                self._interrupt(monotonic())
            else:
                self._wake.set()

    def forget_names(self) -> None:
        """Call nobody in view by a name until they are known again."""
        pipeline = self._pipeline
        if pipeline is not None:
            pipeline.forget_names()

    def _interrupt(self, cut: float | None = None) -> None:
        self._wake.set()
        if self._pipeline is not None:
            self._pipeline.stop(cut)

    @property
    def paused(self) -> bool:
        """Whether it looks at nothing: by itself, or because everything is paused."""
        return self._paused or self._shared.pauses.pause is not None

    def pause_is_over(self, now: float) -> bool:
        """Whether its own pause has lasted as long as it was to (UTC POSIX seconds)."""
        return self._paused and 0.0 < self.config.until <= now

    @property
    def status(self) -> CameraStatus:
        """As it is now."""
        now = monotonic()
        looks = sum(now - at <= _FPS_S for at in tuple(self._looks))
        return CameraStatus(
            name=self.config.name,
            uri=self.config.shown_uri,
            # Told to pause, it is paused, while the segment that was open is still being remembered.
            state=CameraState.PAUSED if self.paused and self._state is not CameraState.ENDED else self._state,
            detail=self._detail,
            since=self._since,
            last_frame=self._latest_at or None,
            fps=looks / _FPS_S,
            width=self._size[0],
            height=self._size[1],
            segments=self.tally.segments,
            dropped=self.tally.dropped,
            oldest=self.tally.oldest,
            enabled=self.config.enabled,
            paused=self.paused,
            pushed=self.port is not None,
        )

    @property
    def channels(self) -> dict[str, Fill]:
        """Its bounded channels, by name."""
        pipeline, name = self._pipeline, self.config.name
        if pipeline is None:
            return {}
        return {
            f"frames:{name}": Fill(pipeline.channel.fill, pipeline.channel.bound, pipeline.channel.dropped),
            f"segments:{name}": Fill(pipeline.handover.qsize(), pipeline.handover.maxsize),
        }

    def latest_jpeg(self) -> bytes | None:
        """The latest picture; None: none, or it is paused. Encodes: not for the loop."""
        picture, (shown, coded) = self._latest, self._coded
        if picture is None or self.paused:
            return None
        if picture is not shown:  # viewers ask more often than cameras send
            image = picture.image(_SNAPSHOT_PX)
            done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _SNAPSHOT_QUALITY])
            coded = data.tobytes() if done else None
            self._coded = (picture, coded)
        return coded

    def tick(self) -> None:
        """Notice silence; called a few times a second."""
        pipeline = self._pipeline
        if pipeline is None or not pipeline.source.live:
            return
        received, patience = pipeline.source.received, self._settings.stall_s
        if received is None:
            return
        silent = monotonic() - received
        if (
            self._state is CameraState.CONNECTING
            and not pipeline.source.info.has_video
            and pipeline.source.position > 0
        ):
            self._become(CameraState.LIVE)
        if self._state is CameraState.LIVE and silent > patience:
            self._become(CameraState.STALLED, f"No picture for {patience:.0f} s.")
        elif self._state is CameraState.STALLED and silent < patience:
            self._become(CameraState.LIVE)
        if silent > 2 * patience:
            pipeline.stop()

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        backoff = Backoff(self._settings.reconnect_first_s, self._settings.reconnect_max_s)
        senses: Senses | None = None
        while not self._over.is_set():
            self._wake.clear()
            if self._over.is_set():
                return
            if self.paused:
                self._latest, self._coded = None, (None, None)
                self._set_accepting(False)
                self._become(CameraState.PAUSED)
                self._wake.wait()
                continue
            began = monotonic()
            try:
                senses = senses or Senses(self._shared.rooms)
                again = self._watch(senses)
            except ReflectWorldError as error:
                again = self._failed(str(error))
            except Exception as error:
                log.exception("camera.failed", camera=self.config.name)
                again = self._failed(f"Something unforeseen happened ({type(error).__name__}: {error}); see the log.")
            if not again:
                self._wake.wait()
                continue
            if monotonic() - began > _WORKED_S:
                backoff.reset()
            if self._state is CameraState.FAILED:
                self._wake.wait(backoff.next())

    def _failed(self, detail: str) -> bool:
        """Say so; whether to try again: a recording that failed once will fail again."""
        if self._held():
            return True
        self._become(CameraState.FAILED, detail)
        return self._is_live

    _is_live = True  # until a source was opened that is a recording

    def _watch(self, senses: Senses) -> bool:
        """Open and run once; returns whether to go on."""
        if self._state is not CameraState.ENDED:
            self._become(CameraState.CONNECTING)
        source = self._open()
        if source is None:
            return True
        self._is_live = source.live
        source.on_picture = self._show
        if source.live and source.info.start < self._last_end:
            # The device's clock was set back, or the camera's ran ahead: time goes on from where it got to.
            source.info = replace(source.info, start=self._last_end)
        mode = Mode.LIVE_LATENCY if source.live else Mode.OFFLINE_QUALITY
        shared = self._shared
        pipeline = Pipeline(
            shared.rooms,
            shared.rememberer,
            senses,
            source,
            mode,
            self.tally,
            on_sight=self._saw,
            on_remembered=self._remembered,
        )
        with self._lock:
            if self._held():
                source.close()
                return True
            self._pipeline = pipeline
        try:
            pipeline.run()
        finally:
            self._last_end = max(self._last_end, pipeline.last_end) if source.live else self._last_end
            with self._lock:
                self._pipeline = None
        if self._held():
            return True
        if self.port is not None:
            self._become(CameraState.ENDED, "The publisher has left.")
            return True
        if source.live:
            self._become(CameraState.FAILED, f"“{source.info.uri}” sends nothing any more; connecting again.")
            return True
        self._become(CameraState.ENDED, "Watched to its end.")
        return False

    def _open(self) -> Source | None:
        """The source; None: stopped or paused meanwhile."""
        if self.port is None:
            return open_source(self.config.uri, camera=self.config.name, start=None, settings=self._settings)
        self._set_accepting(True)
        if not self._detail:
            self._detail = "Waits for a publisher."
        while not self.port.wait(0.1):
            if self._held():
                return None
        return self.port.open(self.config.name)

    def _held(self) -> bool:
        return self._over.is_set() or self.paused

    def _set_accepting(self, accepting: bool) -> None:
        if self.port is not None:
            self.port.accept(accepting)

    def _become(self, state: CameraState, detail: str = "") -> None:
        if (state, detail) == (self._state, self._detail):
            return
        self._state, self._detail, self._since = state, detail, utc_now()
        log.info("camera.state", camera=self.config.name, state=state.value, detail=detail)
        self._tell("camera", {"state": state.value, "detail": detail})

    # -- what a run tells ---------------------------------------------------------------------------------------------

    def _show(self, picture: Picture) -> None:
        self._latest, self._latest_at = picture, utc_now() - (monotonic() - picture.captured)
        if self._state in (CameraState.CONNECTING, CameraState.ENDED, CameraState.FAILED):
            self._become(CameraState.LIVE)

    def _saw(self, frame: Frame, sight: Sight, names: Mapping[str, str]) -> None:
        if frame.index != self._looked:  # names may come after boxes, of the same frame
            self._looked = frame.index
            self._looks.append(monotonic())
        self._size = (sight.width, sight.height)
        self._tell(
            "sight",
            {
                "width": sight.width,
                "height": sight.height,
                "captured": utc_now() - (monotonic() - frame.captured),
                "in_view": [_in_view(seen, sight, names.get(seen.anchor)) for seen in sight.in_view],
            },
            at=sight.at,
        )

    def _remembered(self, remembered: Remembered) -> None:
        trace = remembered.committed.trace
        if trace is None:
            return
        store, ids = self._shared.rooms.store, remembered.committed.entities
        record = store.trace(trace)
        titles = store.titles(record.entities)
        self._tell(
            "moment",
            {
                "trace": public_id(Kind.TRACE, trace),
                "text": record.text,
                "start": record.start,
                "end": record.end,
                "people": [
                    {"id": public_id(Kind.ENTITY, entity), "title": titles.get(entity, "someone")}
                    for entity in record.entities
                ],
            },
        )
        new = {ids[entity.key] for entity in remembered.draft.entities if entity.kind is EntityKind.PERSON}
        named = {ids.get(c.entity, c.entity) for c in remembered.draft.names if c.accepted}
        for entity in sorted(new | named):
            tell_person(self._shared.events, self._shared.rooms, entity, new=entity in new, camera=self.config.name)

    def _tell(self, kind: str, data: dict[str, object], at: float | None = None) -> None:
        self._shared.events.publish(Event(kind, self.config.name, utc_now() if at is None else at, data))


def tell_person(events: Events, rooms: Rooms, entity: int, *, new: bool, camera: str | None = None) -> None:
    """Publish who somebody is now."""
    known = rooms.store.entity(entity)
    data = {"id": public_id(Kind.ENTITY, entity), "title": known.title, "name": known.name, "new": new}
    events.publish(Event("person", camera, data=data))


def _in_view(seen: InView, sight: Sight, name: str | None) -> dict[str, object]:
    left, top, right, bottom = seen.box
    return {
        "anchor": seen.anchor,
        "label": seen.label,
        "name": name,
        "score": round(seen.score, 3),
        "box": [
            round(left / sight.width, 4),
            round(top / sight.height, 4),
            round(right / sight.width, 4),
            round(bottom / sight.height, 4),
        ],
    }
