"""A WHIP publisher in a process of its own: a clip over and over, in real time, as a phone would send it.

python -m tools.bench.stage.publisher URL CLIP SECONDS
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import httpx
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamTrack

FPS = 30
_RATE = 48_000  # Hz of the sound
_BLOCK = 960  # samples: 20 ms


def prepared(clip: Path, out: Path, *, width: int = 640, height: int = 480) -> Path:
    """The clip in the size and at the rate that are to be sent, both tracks."""
    with av.open(str(clip)) as source, av.open(str(out), "w") as target:
        video = target.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "20"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        audio = target.add_stream("aac", rate=_RATE, layout="mono")
        resampler = av.AudioResampler("fltp", "mono", _RATE)
        sent = 0
        for frame in source.decode():
            if isinstance(frame, av.AudioFrame):
                for part in resampler.resample(frame):
                    target.mux(audio.encode(part))
                continue
            at = float(frame.time or 0.0)
            picture = frame.reformat(width=width, height=height, format="yuv420p")
            while sent / FPS <= at:
                picture.pts, picture.time_base = sent, Fraction(1, FPS)
                target.mux(video.encode(picture))
                sent += 1
        target.mux(video.encode())
        target.mux(audio.encode())
    return out


class _Paced(MediaStreamTrack):
    """A track whose time goes on evenly, lap after lap."""

    def __init__(self, kind: str, frames: Iterator[Any], base: Fraction, step: int) -> None:
        super().__init__()
        self.kind = kind
        self._frames = frames
        self._base, self._step, self._pts = base, step, 0
        self._began: float | None = None

    async def recv(self) -> Any:
        """The next frame, when it is due."""
        frame = await asyncio.to_thread(next, self._frames)
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        await asyncio.sleep(max(0.0, self._began + float(self._pts * self._base) - now))
        frame.pts, frame.time_base = self._pts, self._base
        self._pts += self._step
        return frame


def _pictures(clip: Path) -> Iterator[Any]:
    while True:
        with av.open(str(clip)) as container:
            yield from container.decode(video=0)


def _sound(clip: Path) -> Iterator[Any]:
    resampler = av.AudioResampler("s16", "mono", _RATE)
    with av.open(str(clip)) as container:
        parts = [part.to_ndarray()[0] for frame in container.decode(audio=0) for part in resampler.resample(frame)]
        seconds = container.streams.video[0].frames / FPS  # a lap is as long as the pictures
    whole = np.concatenate(parts)
    wanted = round(seconds * _RATE / _BLOCK) * _BLOCK
    whole = np.pad(whole, (0, max(0, wanted - len(whole))))[:wanted]
    while True:
        for at in range(0, len(whole), _BLOCK):
            frame = av.AudioFrame.from_ndarray(whole[None, at : at + _BLOCK], "s16", "mono")
            frame.sample_rate = _RATE
            yield frame


async def publish(url: str, clip: Path, seconds: float) -> None:
    """Publish for so long, with a heartbeat.

    Args:
        url: of the endpoint.
        clip: of `prepared`.
        seconds: how long.
    """
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    for track in (
        _Paced("video", _pictures(clip), Fraction(1, FPS), 1),
        _Paced("audio", _sound(clip), Fraction(1, _RATE), _BLOCK),
    ):
        connection.addTransceiver(track, "sendonly")
    channel: Any = connection.createDataChannel("heartbeat")
    await connection.setLocalDescription(await connection.createOffer())
    async with httpx.AsyncClient(timeout=30) as client:
        headers = {"Content-Type": "application/sdp"}
        answer = await client.post(url, content=connection.localDescription.sdp, headers=headers)
        answer.raise_for_status()
        await connection.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until and connection.connectionState not in {"failed", "closed"}:
            if channel.readyState == "open":
                channel.send("beat")
            await asyncio.sleep(0.5)
        broke = connection.connectionState in {"failed", "closed"}
        with contextlib.suppress(httpx.HTTPError):
            await client.delete(str(httpx.URL(url).join(answer.headers["location"])))
    await connection.close()
    if broke:
        raise SystemExit("The connection broke.")


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])))
