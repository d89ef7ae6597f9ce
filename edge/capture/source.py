"""Opening a source: what it is, when it began, and what is wrong with it if it cannot be watched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av

from edge.capture import decode, media
from edge.capture.address import Address, parse_address
from edge.capture.csi import CsiCamera
from edge.capture.feed import Feed, RecordedFeed
from edge.capture.handle import Source, StartFrom
from edge.capture.live import LiveFeed
from edge.capture.pattern import Pattern
from edge.capture.picture import display_matrix, fitted, sane_aspect, turns
from edge.capture.push import MadeFeed
from edge.capture.sound import SoundTrack
from edge.capture.stills import STILL_S, is_still, read_still, still_pictures
from edge.capture.timestamps import MediaClock
from edge.clock import monotonic, utc_now
from edge.errors import SourceError
from edge.settings import CaptureSettings
from edge.types.media import Mode, SourceInfo, SourceKind

_PART = 1 << 20  # bytes of each part of a file that the fingerprint covers
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()  # recordings dated before are cameras without a clock
_TOLERANCE_S = 86_400.0  # a recording may be dated this far ahead (zones), s
_RUN_UP_S = 10.0  # a resumed run decodes from a key frame this much before, s
_APART_S = 600.0  # picture and sound whose first stamps differ more have separate time bases, s


def open_source(uri: str, *, camera: str | None, start: float | None, settings: CaptureSettings) -> Source:
    """Open a source and look into it.

    Args:
        uri: a file (video, sound or still image), `rtsp(s)://…`, `http(s)://…`, `usb:N`, `/dev/videoN`, `csi:N`
            or `test:` (a moving pattern with a tone).
        camera: the name of the camera; None: from the file's name or the host.
        start: UTC of media time 0, POSIX seconds; None: when the recording was made (`Source.start_from` says how that
            is known); a live source starts now.
        settings: how it will be read.

    Returns:
        The source. `info.uri` carries no credentials; `info.width` and `info.height` are before scaling down.

    Raises:
        SourceError: it cannot be watched; the sentence says why and what to do.
    """
    address = parse_address(uri)
    name = camera or address.name
    if address.kind is SourceKind.PUSH:
        raise SourceError(address.shown, "A publisher sends to a push: camera; it needs `reflectworld run`.")
    if address.kind in (SourceKind.TEST, SourceKind.CSI):
        return _open_made(address, name, start, settings)
    if address.kind is not SourceKind.FILE:
        return _open_stream(address, name, start, settings)
    head = _checked_head(address)
    path = address.path
    if is_still(path, head):
        return _open_still(address, name, start)
    return _open_recording(address, name, start, fingerprint_of(path))


def fingerprint_of(path: Path) -> str:
    """32 hex digits that name a file's content: BLAKE2b over its size and its first, middle and last MiB."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as file:
        for begin in (0, max(0, size // 2 - _PART // 2), max(0, size - _PART)):
            file.seek(begin)
            digest.update(file.read(_PART))
    return digest.hexdigest()


def _checked_head(address: Address) -> bytes:
    path, shown = address.path, address.shown
    try:
        if path.is_dir():
            raise SourceError(shown, f"“{shown}” is a folder: name a file in it.")
        if not path.exists():
            raise SourceError(shown, f"There is no file “{shown}”: check the name and the folder.")
        with path.open("rb") as file:
            head = file.read(64)
    except PermissionError as error:
        raise SourceError(
            shown, f"“{shown}” may not be read: give yourself permission (chmod u+r) or copy it."
        ) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SourceError(shown, f"“{shown}” cannot be read ({reason}): check the name and the disk.") from error
    if not head:
        raise SourceError(shown, f"“{shown}” is empty: copy it again from where it came.")
    return head


def _open_still(address: Address, camera: str, start: float | None) -> Source:
    path = address.path
    image, faults = read_still(path)
    began, start_from = _start(start, None, path, STILL_S)
    info = SourceInfo(
        uri=address.shown,
        camera=camera,
        kind=SourceKind.IMAGE,
        fingerprint=fingerprint_of(path),
        start=began,
        duration=STILL_S,
        has_video=True,
        has_audio=False,
        width=image.shape[1],
        height=image.shape[0],
        dated=start_from is not StartFrom.MODIFIED,
    )

    def opener(mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed:  # a picture is read in one way
        return RecordedFeed(still_pictures(image, faults), None, lambda: None)

    return Source(info, start_from, opener, live=False)


def _open_recording(address: Address, camera: str, start: float | None, fingerprint: str) -> Source:
    with media.opened(address) as container:
        facts = _look_into(container, address)
    path = address.path
    began, start_from = _start(start, facts.recorded, path, facts.duration or 0.0)
    info = replace(_info(address, camera, fingerprint, began, facts), dated=start_from is not StartFrom.MODIFIED)

    def opener(mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed:  # in order in both modes
        return _recorded_feed(address, facts, resume_at, stopped)

    return Source(info, start_from, opener, live=False)


def _open_made(address: Address, camera: str, start: float | None, settings: CaptureSettings) -> Source:
    """A source that a thread of ours makes: the test pattern, or a camera with a Python library of its own."""
    fingerprint = hashlib.blake2b(address.shown.encode(), digest_size=16).hexdigest()
    maker: Pattern | CsiCamera = Pattern() if address.kind is SourceKind.TEST else CsiCamera(int(address.location))
    info = _info(
        address,
        camera,
        fingerprint,
        start if start is not None else utc_now(),
        _Facts(0, 0 if maker.sound else None, 0.0, 0.0, None, None, maker.size),
    )

    def opener(mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed:  # it goes on from now
        return MadeFeed(maker, monotonic(), settings)

    start_from = StartFrom.GIVEN if start is not None else StartFrom.NOW
    return Source(info, start_from, opener, live=True, release=maker.close)


def _open_stream(address: Address, camera: str, start: float | None, settings: CaptureSettings) -> Source:
    fingerprint = hashlib.blake2b(address.shown.encode(), digest_size=16).hexdigest()
    container = media.opened(address, settings)
    duration = media.duration_of(container)
    if address.kind is SourceKind.HTTP and duration is not None:
        # A recording behind a link: it is read in order like a file.
        container.close()
        return _open_recording(address, camera, start if start is not None else utc_now(), fingerprint)
    video, audio = media.best_video(container), media.best_audio(container)
    if video is None and audio is None:
        container.close()
        raise SourceError(
            address.shown, f"“{address.shown}” sends neither picture nor sound: check the camera's address."
        )
    began = start if start is not None else utc_now()
    size = (0, 0)
    if video is not None:
        aspect = sane_aspect(video.sample_aspect_ratio or video.codec_context.sample_aspect_ratio)
        size = fitted(video.width, video.height, aspect, None)
    facts = _Facts(
        video=None if video is None else video.index,
        audio=None if audio is None else audio.index,
        video_origin=0.0,
        audio_origin=0.0,
        duration=None,
        recorded=None,
        size=size,
    )
    info = _info(address, camera, fingerprint, began, facts)
    waiting: list[av.container.InputContainer] = [container]

    def opener(mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed:  # it goes on from now
        running = waiting.pop() if waiting else media.opened(address, settings)
        return LiveFeed(running, facts.video, facts.audio, settings, drop=mode is Mode.LIVE_LATENCY)

    def release() -> None:
        while waiting:
            waiting.pop().close()

    start_from = StartFrom.GIVEN if start is not None else StartFrom.NOW
    return Source(info, start_from, opener, live=True, release=release)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What looking into a container has shown."""

    video: int | None  # stream index
    audio: int | None
    video_origin: float  # stamp of media time 0, s
    audio_origin: float
    duration: float | None
    recorded: float | None  # UTC
    size: tuple[int, int]


def _info(address: Address, camera: str, fingerprint: str, start: float, facts: _Facts) -> SourceInfo:
    return SourceInfo(
        uri=address.shown,
        camera=camera,
        kind=address.kind,
        fingerprint=fingerprint,
        start=start,
        duration=facts.duration,
        has_video=facts.video is not None,
        has_audio=facts.audio is not None,
        width=facts.size[0],
        height=facts.size[1],
    )


def _look_into(container: av.container.InputContainer, address: Address) -> _Facts:
    """Decode the first picture and the first sound: what cannot be decoded at all does not count as there."""
    shown = address.shown
    video, audio = media.best_video(container), media.best_audio(container)
    if video is None and audio is None:
        raise SourceError(shown, f"“{shown}” has neither a picture nor a sound track: choose another file.")
    duration, recorded = media.duration_of(container), _recorded(container, video)
    picture = media.first_frame(address, video.index) if video is not None else None
    sound = media.first_frame(address, audio.index) if audio is not None else None
    if picture is None and sound is None:
        raise SourceError(shown, f"Nothing in “{shown}” can be decoded: it is damaged or cut short; copy it again.")
    size = (0, 0)
    firsts: dict[str, float] = {}
    if isinstance(picture, av.VideoFrame) and video is not None:
        aspect = sane_aspect(video.sample_aspect_ratio or video.codec_context.sample_aspect_ratio)
        size = fitted(picture.width, picture.height, aspect, None)
        size = size[::-1] if turns(display_matrix(picture)) else size
        firsts["video"] = decode.raw_time(picture, video) or 0.0
    if isinstance(sound, av.AudioFrame):
        firsts["audio"] = decode.raw_time(sound, audio) or 0.0
    origin = min(firsts.values())
    shared = max(firsts.values()) - origin <= _APART_S
    return _Facts(
        video=video.index if video is not None and "video" in firsts else None,
        audio=audio.index if audio is not None and "audio" in firsts else None,
        video_origin=origin if shared else firsts["video"],
        audio_origin=origin if shared else firsts["audio"],
        duration=duration,
        recorded=recorded,
        size=size,
    )


def _recorded_feed(address: Address, facts: _Facts, resume_at: float, stopped: Callable[[], bool]) -> RecordedFeed:
    """Two readers of one file, so that picture and sound are never waited for across a badly interleaved file."""
    containers: list[av.container.InputContainer] = []

    def reader(index: int) -> tuple[av.container.InputContainer, Any, decode.Faults]:
        container = media.opened(address)
        containers.append(container)
        return container, media.select(container, index), decode.Faults()

    pictures = sound = None
    if facts.video is not None:
        skip = 0
        if resume_at > _RUN_UP_S:
            with media.opened(address) as scout:
                stream = media.select(scout, facts.video)
                skip = decode.skippable(scout, stream, facts.video_origin, resume_at - _RUN_UP_S, stopped)
        container, stream, faults = reader(facts.video)
        frames = decode.video_frames(container, stream, faults, skip, stopped)
        pictures = decode.pictures(frames, stream, MediaClock(facts.video_origin, facts.duration), faults)
    if facts.audio is not None:
        container, stream, faults = reader(facts.audio)
        heard = decode.audio_frames(container, stream, faults)
        chunks = decode.chunks(heard, stream, MediaClock(facts.audio_origin, facts.duration), faults)
        sound = SoundTrack(*decode.once(chunks))

    def close() -> None:
        while containers:
            containers.pop().close()

    return RecordedFeed(pictures, sound, close)


def _start(given: float | None, recorded: float | None, path: Path, duration: float) -> tuple[float, StartFrom]:
    if given is not None:
        return given, StartFrom.GIVEN
    if recorded is not None:
        return recorded, StartFrom.RECORDED
    return path.stat().st_mtime - duration, StartFrom.MODIFIED


def _recorded(container: av.container.InputContainer, video: Any) -> float | None:
    tags = [container.metadata, *([video.metadata] if video is not None else [])]
    keys: tuple[Callable[[dict[str, str]], str | None], ...] = (
        lambda tag: tag.get("com.apple.quicktime.creationdate"),
        lambda tag: tag.get("creation_time"),
        lambda tag: tag.get("DATE_RECORDED"),
    )
    for text in (key(tag) for key in keys for tag in tags):
        if text is None:
            continue
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if _EARLIEST <= at <= utc_now() + _TOLERANCE_S:
            return at
    return None
