"""Pictures that go on through a bad link: lost packets are asked for again, and what cannot be had is skipped.

aiortc asks once for a packet that is missing and then waits until 512 others have come; when that one request or its
answer is lost, the picture stands still for as long (measured with a tenth of all datagrams lost: 7 s and more in a quarter
of the runs), and what has piled up meanwhile comes out late. It has no public setting for this; a test holds that this acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiortc import RTCRtpReceiver
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.rtp import RtpPacket
from aiortc.utils import uint16_add, uint16_gt

from edge.clock import monotonic

_LOOK_S: Final = 0.05  # missing packets are looked for so often, s
_ASK_S: Final = 0.1  # and asked for again so often; more than a round trip in a home, s
_GIVE_UP_S: Final = 0.4  # a packet that has not come by then is skipped: what comes after would be late, s
_KEY_S: Final = 0.3  # a picture that stands for itself is asked for again so often, s
_BROKEN_S: Final = 2.0  # and pictures without it are taken after this: some encoders send none when asked, s
_SKIP_S: Final = 2.0  # at least so long between skips for lateness, which may be the link's own, s
_PACKETS: Final = 512  # bound of the buffer, as aiortc has it


class _Fresh(JitterBuffer):
    """Lets nothing through before a picture that stands for itself: what comes earlier builds on what was skipped.

    Args:
        kinds: media type of the codec, by payload type.
        last: number of the latest packet that was skipped; those sent again before it would be waited for in vain.
    """

    def __init__(self, kinds: Mapping[int, str], last: int | None) -> None:
        super().__init__(capacity=_PACKETS, is_video=True)
        self._kinds = kinds
        self._last = last
        self._until = monotonic() + _BROKEN_S
        self.waits = True

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """Take a packet; whether to ask for a whole picture, and the picture that it completes."""
        if self._last is not None:
            if not uint16_gt(packet.sequence_number, self._last):
                return False, None
            if monotonic() > self._until:  # nothing so old comes any more, and numbers begin again
                self._last = None
        ask, frame = super().add(packet)
        if frame is None or not self.waits:
            return ask, frame
        if stands_alone(self._kinds.get(packet.payload_type, ""), frame.data) or monotonic() > self._until:
            self.waits = False
            return ask, frame
        return ask, None


def stands_alone(kind: str, data: bytes) -> bool:
    """Whether an encoded picture needs no other.

    Args:
        kind: `video/VP8` or `video/H264`.
        data: a VP8 frame (RFC 6386, 9.1: one with a start code), or NAL units after start codes (H.264, 7.3.3: one with the
            slice of an IDR picture, 5, that holds its first macroblock, so that its beginning is there).
    """
    if kind == "video/VP8":
        return len(data) > 5 and not data[0] & 1 and data[3:6] == b"\x9d\x01\x2a"
    if kind == "video/H264":
        units = data.split(b"\x00\x00\x01")[1:]
        return any(len(unit) > 1 and unit[0] & 0x1F == 5 and unit[1] & 0x80 for unit in units)
    return False


class Repair:
    """Looks after the pictures of one receiver, on the event loop."""

    def __init__(self, receiver: RTCRtpReceiver) -> None:
        self._receiver = receiver
        self._held: int | None = None  # number of the packet that holds up the pictures
        self._held_since = 0.0
        self._asked = 0.0
        self._skipped = float("-inf")
        self._fresh: _Fresh | None = None  # takes the place of the receiver's buffer once something was skipped
        self._key_asked = 0.0
        self.skips = 0

    async def run(self) -> None:
        """Look for what is missing until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            now = monotonic()
            held = self._held_up_by()
            if held is None or held != self._held:
                self._held, self._held_since = held, now
            known = self._part("nack_generator").missing
            missing = [one for one in known if held is not None and not uint16_gt(held, one)]
            if held is not None and now - self._held_since > _GIVE_UP_S:
                self._skip(now)
            elif missing and now - self._asked >= _ASK_S:
                self._asked = now
                for source in self._sources():
                    await self._receiver._send_rtcp_nack(source, sorted(missing))  # noqa: SLF001 -- there is no other way
            if self._fresh is not None and self._fresh.waits and now - self._key_asked >= _KEY_S:
                self._key_asked = now
                for source in self._sources():
                    await self._receiver._send_rtcp_pli(source)  # noqa: SLF001 -- as above

    def late(self) -> None:
        """What comes out is too old to be looked at: go on with what comes now."""
        now = monotonic()
        if now - self._skipped > _SKIP_S:
            self._skip(now)

    def _skip(self, now: float) -> None:
        self.skips += 1
        self._skipped = now
        self._key_asked = float("-inf")
        self._held = None
        self._part("nack_generator").missing.clear()
        kinds = {number: codec.mimeType for number, codec in self._part("codecs").items()}
        self._fresh = _Fresh(kinds, self._part("nack_generator").max_seq)
        vars(self._receiver)["_RTCRtpReceiver__jitter_buffer"] = self._fresh

    def _held_up_by(self) -> int | None:
        """The first packet that is missing while later ones are here; after a long hole aiortc knows of the last ones only."""
        buffer, latest = self._part("jitter_buffer"), self._part("nack_generator").max_seq
        number: int | None = buffer._origin  # noqa: SLF001 -- as above
        while number is not None and latest is not None and uint16_gt(latest, number):
            if buffer._packets[number % buffer.capacity] is None:  # noqa: SLF001 -- as above
                return number
            number = uint16_add(number, 1)
        return None

    def _sources(self) -> list[int]:
        """The sources of pictures, without those of what is sent again."""
        return [source for source in self._part("active_ssrc") if source not in self._part("rtx_ssrc")]

    def _part(self, name: str) -> Any:
        return vars(self._receiver)[f"_RTCRtpReceiver__{name}"]
