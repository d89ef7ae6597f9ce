"""Writes docs/settings.md from the settings themselves: `python -m tools.docs`."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from edge.settings import Settings

TARGET = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def settings_page() -> str:
    """The page, as Markdown."""
    lines = [
        "# Settings",
        "",
        "A setting is an environment variable, or a line of `config.toml` in the home folder (`reflectworld config init` writes one;",
        "`REFLECTWORLD_CAPTURE__SAMPLE_FPS` is `sample_fps` under `[capture]`); the variable wins over the line, and without both the",
        "default below holds. This page is written by `python -m tools.docs`.",
        "",
    ]
    rooms: list[tuple[str, type[BaseModel]]] = []
    lines += ["| variable | default | what |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            rooms.append((name, field.annotation))
        else:
            default = "the user's data folder" if name == "home" else field.default
            lines.append(f"| `REFLECTWORLD_{name.upper()}` | {default} | {field.description} |")
    for room, kind in rooms:
        lines += [
            "",
            f"## {room}",
            "",
            (kind.__doc__ or "").strip(),
            "",
            "| variable | default | what |",
            "|---|---|---|",
        ]
        for name, field in kind.model_fields.items():
            lines.append(f"| `REFLECTWORLD_{room.upper()}__{name.upper()}` | {field.default} | {field.description} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(settings_page())
