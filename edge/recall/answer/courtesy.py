"""What people say to somebody who answers and that asks nothing of the memory: greetings, thanks, what can you do. Pure."""

from __future__ import annotations

import re
from typing import Final

_ASK: Final = "Ask me what was seen or heard, such as “where did I last see a cup?” or “what happened this morning?”."
_WAYS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|greetings)(?: there| again| everybody| you)?",
        "Hello. " + _ASK,
    ),
    (
        r"(?:thanks|thank you|many thanks|cheers)(?: a lot| very much| so much| for (?:that|this|your help))?",
        "You are welcome.",
    ),
    (r"(?:bye|goodbye|good bye|good night|see you(?: later| soon)?)", "Goodbye."),
    (r"(?:help|help me|what can (?:you do|i ask(?: you)?)|what do you do|how (?:do|can) i (?:use|ask) you)", _ASK),
    (
        r"(?:who|what) are you",
        "I am the memory of what cameras here saw and heard; I keep it on this device and answer from it alone. "
        + _ASK,
    ),
)


def courtesy(text: str) -> str | None:
    """What to say to an input that is nothing but courteous, or asks about the memory itself; None: it is something else.

    Args:
        text: the input.
    """
    bare = " ".join(re.sub(r"[^\w\s’']+", " ", text.lower()).split())
    return next((said for pattern, said in _WAYS if re.fullmatch(pattern, bare)), None)
