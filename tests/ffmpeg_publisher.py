"""Publishes with FFmpeg's own WHIP muxer: python -m tests.ffmpeg_publisher URL KEY SECONDS CERTIFICATE PRIVATE_KEY.

A process of its own, because the muxer holds Python's lock while it waits for the server's answer. It is given a
certificate (PEM) because the one that FFmpeg makes itself with GnuTLS is of P-224, a curve that OpenSSL refuses.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import av
import numpy as np

from tests.media import photo, resized, tone

FPS = 25


def publish(url: str, key: str, seconds: float, certificate: str, private_key: str) -> None:
    """Publish photographs and a tone with the clock."""
    options = {"authorization": key, "cert_file": certificate, "key_file": private_key}
    with av.open(url, "w", format="whip", options=options) as container:
        video = container.add_stream("libx264", rate=FPS)
        video.width, video.height, video.pix_fmt = 320, 240, "yuv420p"
        video.options = {"preset": "ultrafast", "tune": "zerolatency", "profile": "baseline", "bf": "0"}
        video.codec_context.gop_size = FPS
        audio = container.add_stream("libopus", rate=48_000, options={"b": "32000"})
        audio.layout = "stereo"
        image = resized(photo("astronaut"), 320, 240)
        sound = (tone(seconds, 440.0, rate=48_000) * 32767).astype(np.int16)
        block = 48_000 // FPS
        began = time.monotonic()
        for number in range(round(seconds * FPS)):
            time.sleep(max(0.0, began + number / FPS - time.monotonic()))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.roll(image, number, axis=1)), "bgr24")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(video.encode(frame))
            part = sound[number * block : (number + 1) * block]
            heard = av.AudioFrame.from_ndarray(np.ascontiguousarray(np.repeat(part, 2).reshape(1, -1)), "s16", "stereo")
            heard.sample_rate, heard.pts, heard.time_base = 48_000, number * block, Fraction(1, 48_000)
            container.mux(audio.encode(heard))


if __name__ == "__main__":
    publish(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5])
