"""One key kept under another (ChaCha20-Poly1305, RFC 8439), so that whoever has the second one can open the first."""

from __future__ import annotations

import hashlib
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_NONCE: Final = 12  # bytes


def wrap(outer: bytes, secret: bytes, purpose: str) -> str:
    """A secret that only `outer` opens.

    Args:
        outer: 32 bytes, uniformly random or stretched.
        secret: what is kept.
        purpose: what it is for; the same is needed to open it.

    Returns:
        Hex digits.
    """
    nonce = os.urandom(_NONCE)
    return (nonce + ChaCha20Poly1305(_derived(outer, purpose)).encrypt(nonce, secret, purpose.encode())).hex()


def unwrap(outer: bytes, wrapped: str, purpose: str) -> bytes | None:
    """What was wrapped; None: with another key, or it was changed since."""
    try:
        data = bytes.fromhex(wrapped)
        return ChaCha20Poly1305(_derived(outer, purpose)).decrypt(data[:_NONCE], data[_NONCE:], purpose.encode())
    except (InvalidTag, ValueError):
        return None


def _derived(outer: bytes, purpose: str) -> bytes:
    """A key of its own for each purpose, so that the key of the memory itself encrypts nothing but its pages."""
    return hashlib.blake2b(purpose.encode(), key=outer, digest_size=32, person=b"reflectworld-wrp").digest()
