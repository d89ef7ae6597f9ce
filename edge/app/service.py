"""The service: one event loop that owns every task by name, and the cameras in their threads.

Shutdown is structured: `stop` ends the serving tasks and tells all cameras to finish their open segments; `run` returns
when those are durable, at the latest after `SHUTDOWN_S`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import structlog

from edge.app.camera import Camera, Shared, tell_person
from edge.app.cameras import CameraBook, CameraConfig, camera_config
from edge.app.corrected import tell_corrected
from edge.app.events import Events
from edge.app.forgetting import forget, tell_forgotten
from edge.app.keeping import short_of_room, thin_out
from edge.app.notices import Notices
from edge.app.orders import Orders
from edge.app.pauses import Pause, PauseBook
from edge.app.pulse import Pulse
from edge.app.remember import Rememberer
from edge.app.rooms import Rooms, open_rooms
from edge.app.work import Busyness, build_worker
from edge.capture import PushSource
from edge.clock import monotonic, utc_now
from edge.errors import NotFoundError, StoreError, UserError
from edge.identity import RULES
from edge.memory import Plan, Store, Target
from edge.notify import Notifier
from edge.perceive import Dictation, build_dictation
from edge.reason import open_reasoner
from edge.recall import Recall
from edge.serve import CameraStatus, Device, Fill, Vitals
from edge.serve.network import device_name
from edge.settings import Settings
from edge.types.media import Samples
from edge.types.records import CorrectionDraft, CorrectionRecord, EntityRecord

log = structlog.get_logger(__name__)

SHUTDOWN_S = 4.5  # the cameras have this long to finish, s
_ROOM_S = 5.0  # s between looks at the room that is left on the device
_TICK_S = 0.25  # s between looks at the cameras

Job = Callable[["Service"], Coroutine[Any, Any, None]]


class Service:
    """Watches all cameras and answers for them. Made by `open_service`."""

    def __init__(self, rooms: Rooms) -> None:
        self.settings = rooms.settings
        self.rooms = rooms
        self.store: Store = rooms.store
        self._reasoner = open_reasoner(rooms.settings.reason, rooms.settings.home)
        self.recall = Recall(
            rooms.store, rooms.embedder, rooms.settings.recall, head=rooms.head, reasoner=self._reasoner
        )
        self.events = Events()
        self._pauses = PauseBook(rooms.settings.home)
        rememberer = Rememberer(rooms.store, rooms.identifier, rooms.embedder)
        self._shared = Shared(rooms, rememberer, self.events, self._pauses)
        self._notices = Notices(rooms.store, rooms.settings.notify, self.events, rooms.embedder)
        busy = Busyness(rooms.settings.consolidate.idle_cpu, self._waiting)
        self.worker = build_worker(
            rooms.store,
            rooms.settings,
            rooms.embedder,
            purpose="reflectworld run",
            reasoner=self._reasoner,
            busy=busy,
        )
        self._book = CameraBook(rooms.settings.home)
        self._cameras: dict[str, Camera] = {}
        self._dictation: Dictation | None = None  # until somebody speaks to it
        self._dictating = threading.Lock()
        self._publishing = threading.Lock()
        self._pulse = Pulse()
        self._started = utc_now()
        self._stopping: asyncio.Event | None = None
        self._group: asyncio.TaskGroup | None = None
        self._running = False

    # -- life -----------------------------------------------------------------------------------------------------------

    async def run(self, jobs: Sequence[tuple[str, Job]] = (), *, cameras: Sequence[CameraConfig] = ()) -> None:
        """Run until `stop`; the caller's loop becomes the service's.

        Args:
            jobs: what else runs in it, by name, for example the server; a job that fails ends the service.
            cameras: watched beside those of `cameras.toml`, and not kept there.

        Raises:
            BaseExceptionGroup: a job failed.
        """
        self._stopping = asyncio.Event()
        self._running = True
        for config in cameras:
            if config.name in self._cameras or any(known.name == config.name for known in self._book):
                raise UserError(f"There are two cameras “{config.name}”: give one of them another name.")
            self._cameras[config.name] = Camera(config, self._shared)
        for config in self._book:
            if config.enabled:
                self._cameras[config.name] = Camera(config, self._shared)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for camera in self._cameras.values():
                    camera.start()
                self.worker.start()
                owned = [
                    group.create_task(self._pulse.run(), name="pulse"),
                    group.create_task(self._watch_cameras(), name="cameras"),
                ]
                owned.append(group.create_task(self._watch_room(), name="room"))
                owned.append(group.create_task(self._notices.run(), name="notices"))
                owned += [group.create_task(job(self), name=name) for name, job in jobs]
                await self._stopping.wait()
                self._running = False
                self.worker.stop()
                for camera in tuple(self._cameras.values()):
                    camera.stop()
                self.events.close()
                for task in owned[2:]:
                    task.cancel()
                await self._finish_cameras()
                for task in owned[:2]:
                    task.cancel()
        finally:
            self._running = False
            self._group = None
            self._reasoner.stop()
            self.worker.stop()
            for camera in tuple(self._cameras.values()):
                camera.stop()

    def stop(self) -> None:
        """End `run`; idempotent, on its loop (also from a signal handler of the loop)."""
        if self._stopping is not None:
            self._stopping.set()

    async def _watch_cameras(self) -> None:
        paused = self._pauses.pause is not None
        while True:
            now, before, paused = utc_now(), paused, self._pauses.pause is not None
            for name, camera in tuple(self._cameras.items()):
                camera.tick()
                if before and not paused:
                    camera.look_again()
                if camera.pause_is_over(now):
                    await self._set_paused(name, paused=False)
            await asyncio.sleep(_TICK_S)

    async def _watch_room(self) -> None:
        """Thin the memory ahead of a full device; what is thinned for other reasons waits for a quiet moment."""
        settings = self.settings.memory
        while True:
            await asyncio.sleep(_ROOM_S)
            try:
                if await asyncio.to_thread(short_of_room, self.store, settings):
                    await asyncio.to_thread(thin_out, self.store, settings, steps=1)
            except StoreError as error:
                log.warning("memory.not_thinned", error=str(error))

    async def _finish_cameras(self) -> None:
        deadline = monotonic() + SHUTDOWN_S
        for name, camera in tuple(self._cameras.items()):
            if not await asyncio.to_thread(camera.join, deadline - monotonic()):
                log.error("camera.unfinished", camera=name, seconds=SHUTDOWN_S)
        if not await asyncio.to_thread(self.worker.join, deadline - monotonic()):
            log.warning("jobs.unfinished", seconds=SHUTDOWN_S)  # it is done again after the next start
        await asyncio.to_thread(self._reasoner.close)

    def _waiting(self) -> list[int]:
        """How many segments wait to be remembered, of each camera."""
        fills = (camera.channels for camera in tuple(self._cameras.values()))
        return [fill.items for channels in fills for name, fill in channels.items() if name.startswith("segments:")]

    # -- what is asked of it ---------------------------------------------------------------------------------------------

    @property
    def notifier(self) -> Notifier:
        """The owner's rules; every call reads the disk."""
        return self._notices.notifier

    @property
    def orders(self) -> Orders:
        """What the owner asks to be kept; every call writes the disk."""
        return self._notices.orders

    @property
    def cameras(self) -> Sequence[CameraStatus]:
        """All cameras as they are now, in the order of their names."""
        return [self._cameras[name].status for name in sorted(self._cameras)]

    @property
    def vitals(self) -> Vitals:
        """How the service is."""
        waiting, lost = self.events.fill
        channels = {"events": Fill(waiting, 64, lost)}
        for camera in tuple(self._cameras.values()):
            channels |= camera.channels
        return Vitals(
            started=self._started,
            loop_lag_ms=round(self._pulse.percentile(0.99) * 1000, 2),
            loop_stalls=self._pulse.stalls,
            channels=channels,
            missing=self.rooms.missing,
            networks=self.rooms.runtime.description,
            name=device_name(self.settings.serve),
        )

    async def add_camera(self, name: str, uri: str) -> CameraStatus:
        """Keep a camera and start to watch it.

        Raises:
            UserError: the name is taken or cannot be one.
            SourceError: the address cannot be one.
        """
        config = camera_config(name, uri)
        if config.name in self._cameras:
            raise UserError(f"There is a camera “{config.name}” already: choose another name, or remove that one.")
        await asyncio.to_thread(self._book.add, config)
        return self._begin(config).status

    async def remove_camera(self, name: str) -> None:
        """Stop to watch a camera and forget its address; what it saw stays.

        Raises:
            NotFoundError: there is none of this name.
        """
        camera = self._camera(name)
        del self._cameras[name]
        if camera.port is not None:
            camera.port.remove()  # who publishes it learns so
        camera.stop()
        with suppress(NotFoundError):  # it was given for this run only
            await asyncio.to_thread(self._book.remove, name)
        await asyncio.to_thread(camera.join, SHUTDOWN_S)

    async def pause_camera(self, name: str, seconds: float | None = None) -> CameraStatus:
        """Stop to watch until `resume_camera`, or for so many seconds; what was seen up to now is remembered.

        Raises:
            NotFoundError: there is none of this name.
        """
        return await self._set_paused(name, paused=True, until=0.0 if seconds is None else utc_now() + seconds)

    async def resume_camera(self, name: str) -> CameraStatus:
        """Go on watching.

        Raises:
            NotFoundError: there is none of this name.
        """
        return await self._set_paused(name, paused=False)

    async def _set_paused(self, name: str, *, paused: bool, until: float = 0.0) -> CameraStatus:
        camera = self._camera(name)
        if paused:
            camera.pause(until)
        else:
            camera.resume()
        with suppress(NotFoundError):  # it was given for this run only
            await asyncio.to_thread(self._book.pause, name, paused, until)
        return camera.status

    @property
    def paused(self) -> Pause | None:
        """The pause of everything that holds now."""
        return self._pauses.pause

    async def pause(self, seconds: float | None = None) -> Pause:
        """Remember nothing of any camera until `resume`, or for so many seconds; kept over a restart.

        Raises:
            SettingsError: it cannot be written down.
        """
        until = None if seconds is None else utc_now() + seconds
        pause = await asyncio.to_thread(self._pauses.begin, until)
        for camera in tuple(self._cameras.values()):
            camera.look_again()
        return pause

    async def resume(self) -> None:
        """End the pause of everything; cameras that are paused by themselves stay so.

        Raises:
            SettingsError: it cannot be written down.
        """
        await asyncio.to_thread(self._pauses.end)
        for camera in tuple(self._cameras.values()):
            camera.look_again()

    async def forget(self, target: Target, token: str | None) -> Plan:
        """Forget something, with what of it is on its way into the memory, and tell everybody.

        Raises:
            NotFoundError: it is not there.
            UserError: it cannot be forgotten by itself, or the memory has changed since it was shown.
        """
        planned = await asyncio.to_thread(forget, self.store, target, token, self._shared.rememberer)
        for camera in tuple(self._cameras.values()):
            camera.forget_names()
        self.worker.wake()
        tell_forgotten(self.events, planned)
        return planned

    def latest_jpeg(self, camera: str) -> bytes | None:
        """The latest picture of a camera; None: none yet, or it is paused. Encodes: from any thread, not on the loop.

        Raises:
            NotFoundError: there is no camera of this name.
        """
        return self._camera(camera).latest_jpeg()

    def push_source(self, camera: str, device: Device | None = None) -> PushSource:
        """The source of a camera that a publisher feeds; made on first use, taken over from an earlier publisher.

        Thread-safe; a camera's first use writes the disk.

        Args:
            camera: its name.
            device: who publishes.

        Raises:
            UserError: the name cannot be one, or is that of a camera that is fetched.
        """
        with self._publishing:
            known = self._cameras.get(camera)
            if known is None:
                config = camera_config(camera, "push:")
                self._book.add(config)
                known = self._begin(config)
                log.info("camera.published", camera=camera, device=None if device is None else device.name)
        if known.port is None:
            raise UserError(f"“{camera}” is a camera that is fetched; publish under another name.")
        return known.port.publish()

    def transcribe(self, samples: Samples) -> str:
        """What is said in a short recording; empty: nothing that can be made out. Takes its time: never on the loop.

        Args:
            samples: (n,) float32, mono, 16 kHz.

        Raises:
            ModelError: the recogniser is not there.
            InferenceError: it failed.
        """
        with self._dictating:
            rooms = self.rooms
            self._dictation = self._dictation or build_dictation(rooms.catalog, rooms.runtime, self.settings.perceive)
            return self._dictation.words(samples)

    async def name_person(self, entity: int, name: str | None) -> EntityRecord:
        """Give a person a name on the user's authority, or take it away (None), and tell everybody.

        Raises:
            NotFoundError: nobody has this id.
            UserError: not a name.
        """
        if name is None:
            record = await asyncio.to_thread(self.store.clear_name, entity)
        else:
            record = await asyncio.to_thread(self.store.set_name, entity, name)
        await asyncio.to_thread(tell_person, self.events, self.rooms, entity, new=False)
        return record

    async def correct(self, draft: CorrectionDraft) -> CorrectionRecord:
        """Put right who is who, and tell everybody about all who are concerned.

        Raises:
            NotFoundError: somebody is not known.
            UserError: it makes no sense.
        """
        record = await asyncio.to_thread(self.store.correct, draft, RULES)
        await asyncio.to_thread(tell_corrected, self.events, self.store, record)
        return record

    async def undo_correction(self, number: int) -> CorrectionRecord:
        """Take a correction back, and tell everybody likewise.

        Raises:
            NotFoundError: there is none of this id.
            UserError: it was undone already.
        """
        record = await asyncio.to_thread(self.store.undo, number, RULES)
        await asyncio.to_thread(tell_corrected, self.events, self.store, record)
        return record

    def _begin(self, config: CameraConfig) -> Camera:
        camera = Camera(config, self._shared)
        self._cameras[config.name] = camera
        if self._running:
            camera.start()
        return camera

    def _camera(self, name: str) -> Camera:
        camera = self._cameras.get(name)
        if camera is None:
            known = ", ".join(sorted(self._cameras)) or "none yet"
            raise NotFoundError(name[:60], f"There is no camera “{name[:60]}”; the cameras are: {known}.")
        return camera


@contextmanager
def open_service(settings: Settings) -> Iterator[Service]:
    """Open the memory, load the networks, and be ready to `run`.

    Raises:
        StoreError: another service runs on this memory, or it cannot be opened.
    """
    with open_rooms(settings) as rooms, rooms.store.claim("service", "reflectworld run"):
        yield Service(rooms)
