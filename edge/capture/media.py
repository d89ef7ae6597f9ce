"""FFmpeg's containers: opening with time-outs, choosing streams, and errors as sentences."""

from __future__ import annotations

import errno
from typing import Any

import av

from edge.capture import decode
from edge.capture.address import Address
from edge.errors import SourceError
from edge.settings import CaptureSettings
from edge.types.media import SourceKind

_DEFAULTS = CaptureSettings()
_ODD_FORMATS = {"tty", "concat", "hls_text"}  # FFmpeg takes plain text for these
_LARGE_PX = (
    1280 * 720
)  # pictures beyond this are decoded on two threads; below, threads cost more than they bring (measured)
_FIRST_PACKETS = 3000  # packets of one stream within which something must be decodable

# FFmpeg's own messages go to standard error otherwise, in the midst of a progress bar; faults are counted instead.
av.logging.set_level(av.logging.PANIC)


def opened(address: Address, settings: CaptureSettings = _DEFAULTS) -> av.container.InputContainer:
    """Open a container.

    Args:
        address: of a file or a stream.
        settings: how long a stream is waited for, and how RTSP sends.

    Raises:
        SourceError: it cannot be opened.
    """
    shown = address.shown
    options: dict[str, str] = {}
    kind = address.kind
    if kind is SourceKind.RTSP:
        options = {"rtsp_transport": settings.rtsp_transport}
    # The prefix keeps names with a colon or a percent sign from being read as something else.
    location = f"file:{address.location}" if kind is SourceKind.FILE else address.location
    live = kind in (SourceKind.RTSP, SourceKind.HTTP)
    try:
        container = av.open(
            location,
            "r",
            format="v4l2" if kind is SourceKind.USB else None,
            options=options,
            metadata_errors="replace",
            timeout=(settings.connect_s, 2 * settings.stall_s) if live else None,
        )
    except (av.FFmpegError, OSError, ValueError) as error:
        raise SourceError(shown, _sentence(address, error, settings.connect_s)) from error
    if container.format.name in _ODD_FORMATS:
        container.close()
        raise SourceError(shown, f"“{shown}” is a text file: name a video, a sound file or a picture.")
    return container


def _sentence(address: Address, error: Exception, patience: float) -> str:
    shown = address.shown
    if address.kind is SourceKind.FILE:
        if isinstance(error, PermissionError):
            return f"“{shown}” may not be read: give yourself permission (chmod u+r) or copy it."
        return (
            f"“{shown}” is not a video, sound or picture file that can be read, or it is cut short: "
            "copy it again or convert it."
        )
    if address.kind is SourceKind.USB:
        if isinstance(error, PermissionError):
            return f"The camera {shown} may not be used: add yourself to the group “video”."
        if isinstance(error, OSError) and error.errno == errno.EBUSY:
            return f"The camera {shown} is in use by another program: close it there."
        return f"There is no camera at {shown}: plug it in, or try another number."
    if isinstance(error, av.HTTPUnauthorizedError | av.HTTPForbiddenError):
        return f"“{shown}” refuses access: put the user and password into the address (scheme://USER:PASSWORD@HOST/…)."
    if isinstance(error, av.HTTPNotFoundError):
        return f"There is nothing at “{shown}”: check the path in the address."
    if isinstance(error, av.InvalidDataError | ValueError):
        return f"“{shown}” answers, but sends no video or sound: check the path in the address."
    if isinstance(error, TimeoutError | av.ExitError):
        return f"“{shown}” does not answer within {patience:.0f} s: check that the camera is on and in this network."
    return f"“{shown}” cannot be reached: check the address and that the camera is on."


def best_video(container: av.container.InputContainer) -> Any | None:
    """The largest real picture stream (cover art is none); the default one among equals."""
    streams = [
        stream
        for stream in container.streams.video
        if stream.codec_context is not None and not stream.disposition & av.stream.Disposition.attached_pic
    ]
    return max(
        streams, key=lambda stream: (stream.width * stream.height, _is_default(stream), -stream.index), default=None
    )


def best_audio(container: av.container.InputContainer) -> Any | None:
    """The default sound stream that can be decoded."""
    streams = [stream for stream in container.streams.audio if stream.codec_context is not None]
    return max(streams, key=lambda stream: (_is_default(stream), -stream.index), default=None)


def _is_default(stream: Any) -> bool:
    return bool(stream.disposition & av.stream.Disposition.default)


def select(container: av.container.InputContainer, *indexes: int) -> Any:
    """Prepare some streams for decoding and leave out the others; returns the last of them."""
    for other in container.streams:
        if other.index not in indexes:
            other.discard = av.stream.Discard.all
    for index in indexes:
        stream: Any = container.streams[index]
        if stream.type == "video":
            large = stream.width * stream.height > _LARGE_PX
            stream.thread_type = "AUTO" if large else "NONE"
            stream.thread_count = 2 if large else 1
    return container.streams[indexes[-1]]


def first_frame(address: Address, index: int) -> Any | None:
    """The first frame of a stream that can be decoded; None if there is none within a few thousand packets."""
    faults = decode.Faults()
    with opened(address) as container:
        stream = select(container, index)
        for number, packet in enumerate(decode.packets(container, [stream], faults)):
            found = decode.decode_packet(packet, faults)
            if found:
                return found[0]
            if number > _FIRST_PACKETS:
                return None
    return None


def duration_of(container: av.container.InputContainer) -> float | None:
    """What the container says that it lasts, s; None if it does not."""
    return container.duration / av.time_base if container.duration and container.duration > 0 else None
