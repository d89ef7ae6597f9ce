"""Prompts: Markdown files of their own, beside this module, with blanks that are filled in.

A blank is `[[name]]`. What is filled in is put in as it is and never looked through for blanks itself, so that words which
somebody said can neither break a prompt nor fill in another blank. A line `---` parts what is said to the model once and for
all (system) from what is asked (user); a prompt without one is a text that goes into another message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from edge.reason.values import Message

_BLANK = re.compile(r"\[\[([a-z_]+)\]\]")
_NAME = re.compile(r"[a-z][a-z_]*")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as it is kept."""

    name: str
    system: str
    user: str

    @property
    def blanks(self) -> frozenset[str]:
        """What has to be filled in."""
        return frozenset(_BLANK.findall(self.system) + _BLANK.findall(self.user))

    def fill(self, **values: str) -> tuple[Message, Message]:
        """The prompt with its blanks filled in.

        Raises:
            KeyError: a blank is left, or there is none of a name that was given.
        """
        return Message("system", self._filled(self.system, values)), Message("user", self._filled(self.user, values))

    def words(self, **values: str) -> str:
        """What is asked, as a text.

        Raises:
            KeyError: as of `fill`.
        """
        return self._filled(self.user, values)

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        strange = self.blanks ^ set(values)
        if strange:
            raise KeyError(f"blanks of the prompt “{self.name}” that do not fit: {', '.join(sorted(strange))}")

        def put(match: re.Match[str]) -> str:
            return values[match[1]]

        return _BLANK.sub(put, text)


@lru_cache(maxsize=64)
def load(name: str) -> Prompt:
    """The prompt of a name: `prompts/NAME.md`.

    Raises:
        LookupError: there is none.
    """
    file = files("edge.reason") / "prompts" / f"{name}.md"
    if not _NAME.fullmatch(name) or not file.is_file():
        raise LookupError(f"there is no prompt “{name}”")
    system, mark, user = file.read_text(encoding="utf-8").partition("\n---\n")
    if not mark:
        system, user = "", system
    return Prompt(name, system.strip(), user.strip())
