"""Which cameras there are: `cameras.toml` in the home folder, which only its owner can read (addresses hold passwords)."""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import tomli_w

from edge.capture import parse_address
from edge.errors import NotFoundError, SettingsError, UserError
from edge.serve.private import write_private
from edge.types.media import SourceKind

FILE = "cameras.toml"
_NAME = re.compile(r"\w[\w .-]{0,62}\w|\w")


@dataclass(frozen=True, slots=True)
class CameraConfig:
    """One camera as the user wants it."""

    name: str
    uri: str
    enabled: bool = True
    paused: bool = False
    until: float = 0.0  # UTC POSIX seconds at which the pause ends by itself; 0: it does not

    @property
    def shown_uri(self) -> str:
        """The address without user and password."""
        return parse_address(self.uri).shown

    @property
    def pushed(self) -> bool:
        """Whether a publisher sends it."""
        return parse_address(self.uri).kind is SourceKind.PUSH


def camera_config(name: str | None, uri: str) -> CameraConfig:
    """A new camera; a file's path becomes absolute.

    Args:
        name: None: after the address.
        uri: as `edge.capture.open_source` takes it, or `push:`.

    Raises:
        UserError: the name cannot be one.
        SourceError: the address cannot be one.
    """
    address = parse_address(uri)
    name = (address.name if name is None else name).strip()
    if not _NAME.fullmatch(name):
        raise UserError(
            f"“{name[:60]}” cannot be a camera's name: use up to 64 letters, digits, spaces, dots and dashes."
        )
    uri = str(address.path.absolute()) if address.kind is SourceKind.FILE else uri.strip()
    return CameraConfig(name, uri)


class CameraBook:
    """The cameras of one home; every change is written at once. Thread-safe."""

    def __init__(self, home: Path) -> None:
        """Read the file; none: no cameras.

        Raises:
            SettingsError: the file cannot be read.
        """
        self._path = home / FILE
        self._lock = threading.Lock()
        self._cameras = {camera.name: camera for camera in _read(self._path)}

    def __iter__(self) -> Iterator[CameraConfig]:
        return iter(sorted(self._cameras.values(), key=lambda camera: camera.name))

    def get(self, name: str) -> CameraConfig:
        """One camera.

        Raises:
            NotFoundError: there is none of this name.
        """
        try:
            return self._cameras[name]
        except KeyError:
            known = ", ".join(sorted(self._cameras)) or "none yet"
            raise NotFoundError(name[:60], f"There is no camera “{name[:60]}”; the cameras are: {known}.") from None

    def add(self, camera: CameraConfig) -> None:
        """Keep a camera.

        Raises:
            UserError: the name is taken.
        """
        with self._lock:
            if camera.name in self._cameras:
                raise UserError(f"There is a camera “{camera.name}” already: choose another name, or remove that one.")
            self._write({**self._cameras, camera.name: camera})

    def remove(self, name: str) -> None:
        """Forget a camera.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self._lock:
            self.get(name)
            self._write({key: camera for key, camera in self._cameras.items() if key != name})

    def pause(self, name: str, paused: bool, until: float = 0.0) -> CameraConfig:
        """Note that a camera is paused, or is not.

        Args:
            name: its name.
            paused: whether it is.
            until: UTC POSIX seconds at which that ends by itself; 0: it does not.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self._lock:
            changed = replace(self.get(name), paused=paused, until=until)
            self._write({**self._cameras, name: changed})
            return changed

    def _write(self, cameras: dict[str, CameraConfig]) -> None:
        document = {"camera": [asdict(camera) for camera in cameras.values()]}
        try:
            write_private(self._path, tomli_w.dumps(document).encode())
        except OSError as error:
            raise SettingsError(f"“{self._path}” cannot be written ({error.strerror}): check the folder.") from error
        self._cameras = cameras


def _read(path: Path) -> list[CameraConfig]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"“{path}” cannot be read ({error}): correct or remove it.") from error
    rows = document.get("camera", [])
    try:
        cameras = [CameraConfig(**row) for row in rows]
    except TypeError as error:
        raise SettingsError(
            f"“{path}” has a camera that is not one ({error}): each [[camera]] has name, uri, enabled, paused, until."
        ) from error
    for camera in cameras:
        if not (isinstance(camera.name, str) and isinstance(camera.uri, str) and _NAME.fullmatch(camera.name)):
            raise SettingsError(f"“{path}” has a camera whose name or address is no text: correct it.")
        camera_config(camera.name, camera.uri)
    return cameras
