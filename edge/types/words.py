"""The words of a text that say what it is about."""

from __future__ import annotations

import re

from edge.types.stop_words import FUNCTION_WORDS

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def content_words(text: str) -> list[tuple[int, int]]:
    """Where the words are that are no function words: characters from and to, in order."""
    return [match.span() for match in _WORD.finditer(text) if match.group().lower() not in FUNCTION_WORDS]
