"""JPEG answers with an ETag, for the cache of one browser and no other."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response

STORED = "private, max-age=600"  # it may be forgotten on the device: no browser keeps it for long
LIVE = "private, no-store"


def picture(request: Request, jpeg: bytes, cache: str = STORED) -> Response:
    """A picture, or 304 where the browser has it (RFC 9110, 13.1.2).

    Args:
        request: with `If-None-Match` perhaps.
        jpeg: the file.
        cache: for `Cache-Control`.
    """
    tag = f'"{hashlib.blake2b(jpeg, digest_size=16).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": cache}
    known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(jpeg, media_type="image/jpeg", headers=headers)
