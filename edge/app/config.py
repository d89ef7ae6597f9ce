"""`config.toml`: a commented file of all settings, and the effective values."""

from __future__ import annotations

from collections.abc import Iterator

import tomli_w
from pydantic import BaseModel

from edge.settings import CONFIG_FILE, Settings

_WIDTH = 110
_HEAD = f"""\
# Settings of ReflectWorld Edge ({CONFIG_FILE} in the home folder). Lines that begin with # are comments: the values in
# them are the defaults; take the # away to change one. `reflectworld config check` looks the file over.
# An environment variable wins over this file: REFLECTWORLD_CAPTURE__SAMPLE_FPS=1 over sample_fps under [capture].
"""


def config_template() -> str:
    """The file, with every setting, its description and its default."""
    parts = [_HEAD]
    rooms: list[tuple[str, type[BaseModel]]] = []
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            rooms.append((name, field.annotation))
        elif name != "home":  # the file lies in it
            parts.append(_entry(name, field.description or "", field.default))
    for name, room in rooms:
        parts.append(f"\n[{name}]\n# {(room.__doc__ or '').strip()}\n")
        parts += [_entry(key, field.description or "", field.default) for key, field in room.model_fields.items()]
    return "\n".join(parts)


def _entry(key: str, description: str, default: object) -> str:
    words = "\n".join(f"# {line}" for line in _wrapped(description))
    if default is None:
        return f"{words}\n# (not set) {key} = …\n"
    value = tomli_w.dumps({key: list(default) if isinstance(default, tuple) else default}).strip()
    return f"{words}\n# {value}\n"


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + len(word) > _WIDTH:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def effective(settings: Settings) -> str:
    """All values as they are now, as TOML; what is not set is left out."""
    values = settings.model_dump(mode="json", exclude={"home"}, exclude_none=True)
    return f"# home: {settings.home}\n{tomli_w.dumps(values)}"
