"""Spoken questions: a recording that its user made by pressing a button becomes words, and these are asked.

What is merely overheard by a camera never comes here, so nobody in the room, and no television, gives the device orders.
The recording is kept by nobody.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from fastapi import APIRouter, Request

from edge.serve.api_ask import reply
from edge.serve.context import Context
from edge.serve.forms import Answered
from edge.serve.problems import Problem
from edge.serve.protocols import Scope
from edge.types.media import SAMPLE_RATE, Samples

PATH: Final = "/api/v1/ask/voice"
LONGEST_S: Final = 20.0  # a question is spoken within this, s
MAX_BYTES: Final = round(LONGEST_S * SAMPLE_RATE * 2) + 4096  # with the headers of the file
LARGER_BODIES: Final = {PATH: MAX_BYTES}
_TYPES: Final = frozenset({"audio/wav", "audio/wave", "audio/x-wav", "audio/vnd.wave"})
_AT_ONCE: Final = 2  # one is recognised, one waits: other requests need the threads, too
_FORM: Final = "Send a WAV file of 16-bit PCM, mono, 16 kHz, of at most 20 s"


def read_recording(data: bytes) -> Samples:
    """The sound of a WAV file.

    Args:
        data: the file.

    Returns:
        (n,) float32, mono, 16 kHz, -1..1.

    Raises:
        Problem: 422; it is something else.
    """
    try:
        with wave.open(io.BytesIO(data)) as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            raw = file.readframes(min(file.getnframes(), len(data) // 2))
    except (wave.Error, EOFError, RuntimeError, ValueError) as error:
        raise Problem(422, "recording", f"{_FORM}; this is none.") from error
    if form != (1, 2, SAMPLE_RATE):
        channels, width, rate = form
        raise Problem(422, "recording", f"{_FORM}; this has {channels} × {8 * width} bits at {rate} Hz.")
    samples: Samples = np.frombuffer(raw[: len(raw) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768)
    if len(samples) > LONGEST_S * SAMPLE_RATE:
        raise Problem(422, "recording", f"{_FORM}; this is longer.")
    return samples


def voice_router(context: Context) -> APIRouter:
    """The route."""
    router = APIRouter(tags=["ask"], dependencies=[context.needs(Scope.ASK)])
    service = context.service
    inside = 0

    @contextmanager
    def turn() -> Iterator[None]:
        nonlocal inside
        if inside >= _AT_ONCE:
            raise Problem(429, "busy", "Other questions are being heard; ask again.", headers={"Retry-After": "2"})
        inside += 1
        try:
            yield
        finally:
            inside -= 1

    def answer(data: bytes) -> Answered:
        words = service.transcribe(read_recording(data))
        if not words:
            raise Problem(422, "not-understood", "No words were understood; speak nearer to the phone, or type.")
        return reply(service, words, overheard=True)

    body: dict[str, Any] = {
        "required": True,
        "content": {"audio/wav": {"schema": {"type": "string", "format": "binary", "maxLength": MAX_BYTES}}},
    }

    @router.post(PATH, openapi_extra={"requestBody": body})
    async def ask_by_voice(request: Request) -> Answered:
        """Answer a spoken question: a WAV file of 16-bit PCM, mono, 16 kHz, of at most 20 s.

        `question` of the answer is what was understood. The recording is not kept.
        """
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given not in _TYPES:
            raise Problem(415, "media-type", f"{_FORM} as audio/wav.", headers={"Accept-Post": "audio/wav"})
        with turn():
            return await context.workers.run(answer, await request.body())

    return router
