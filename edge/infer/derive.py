"""Files that are made on this machine from a fetched one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from edge.errors import ModelError


def moonshine_tokens(tokenizer: bytes) -> bytes:
    """The token list that sherpa-onnx wants, from Moonshine's `tokenizer.bin`.

    `tokenizer.bin` is a row of byte strings, each after its length: one byte below 128, or two bytes, the first of them
    the length's low seven bits with the high bit set, the second the number of 128s. The list has one line a token: its
    bytes in base64, a space, its number.

    Raises:
        ModelError: the bytes end inside a token.
    """
    lines: list[bytes] = []
    at = 0
    while at < len(tokenizer):
        length = tokenizer[at]
        at += 1
        if length >= 0x80 and at < len(tokenizer):
            length += 0x80 * (tokenizer[at] - 1)
            at += 1
        token = tokenizer[at : at + length]
        if len(token) != length:
            raise ModelError("tokenizer.bin", "The file tokenizer.bin ends inside a token. Pull its model again.")
        at += length
        lines.append(b"%s %d\n" % (base64.b64encode(token), len(lines)))
    return b"".join(lines)


STEPS: Mapping[str, Callable[[bytes], bytes]] = {"moonshine-tokens": moonshine_tokens}
