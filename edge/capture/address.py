"""Where a source is: the address as people type it, taken apart."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from edge.errors import SourceError
from edge.types.media import SourceKind

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USB = re.compile(r"usb:(\d{1,3})", re.IGNORECASE)
_CSI = re.compile(r"csi:(\d{1,2})", re.IGNORECASE)
_TEST = re.compile(r"test:(?://)?", re.IGNORECASE)
_PUSH = re.compile(r"push:(?://)?", re.IGNORECASE)
_DEVICE = re.compile(r"/dev/video(\d{1,3})")
_RTSP = {"rtsp", "rtsps"}
_HTTP = {"http", "https"}


@dataclass(frozen=True, slots=True)
class Address:
    """A source's address."""

    kind: SourceKind  # FILE stands for images, too, until the file is looked into
    location: str  # what FFmpeg opens: a path without a scheme, or the URL with its credentials
    shown: str  # the same without credentials, for messages and the memory
    name: str  # what a camera without a name is called

    @property
    def path(self) -> Path:
        """The file's path (of a FILE only)."""
        return Path(self.location)


def parse_address(uri: str) -> Address:
    """Take an address apart.

    Args:
        uri: a path, `file://…`, `rtsp(s)://…`, `http(s)://…`, `usb:N`, `/dev/videoN`, `csi:N`, `test:` (a pattern made in
            code) or `push:` (a publisher sends it).

    Raises:
        SourceError: the scheme is not one of these, or a URL names no host.
    """
    text = uri.strip()
    if not text:
        raise SourceError(uri, "No source was given: name a file, an rtsp:// or http:// address, or usb:0.")
    device = _USB.fullmatch(text) or _DEVICE.fullmatch(text)
    if device:
        number = int(device[1])
        return Address(SourceKind.USB, f"/dev/video{number}", f"usb:{number}", f"usb-{number}")
    csi = _CSI.fullmatch(text)
    if csi:
        return Address(SourceKind.CSI, csi[1], f"csi:{int(csi[1])}", f"csi-{int(csi[1])}")
    for kind, pattern in ((SourceKind.TEST, _TEST), (SourceKind.PUSH, _PUSH)):
        if pattern.fullmatch(text):
            return Address(kind, "", f"{kind}:", str(kind))
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme in ("", "file"):
        path = text[len("file://") :] if scheme else text
        return Address(SourceKind.FILE, _expanded(path), path, slug(Path(path).stem))
    if scheme not in _RTSP | _HTTP:
        raise SourceError(
            uri,
            f"“{without_credentials(text)}” has the unknown scheme “{scheme}”: "
            "use a file, rtsp://, http://, https://, usb:N or csi:N.",
        )
    try:
        host = urlsplit(text).hostname
    except ValueError:
        host = None
    if not host:
        raise SourceError(uri, f"“{without_credentials(text)}” names no host: write it as {scheme}://HOST/PATH.")
    kind = SourceKind.RTSP if scheme in _RTSP else SourceKind.HTTP
    return Address(kind, text, without_credentials(text), slug(host))


def _expanded(path: str) -> str:
    try:
        return str(Path(path).expanduser())
    except RuntimeError:  # `~name` where there is no such user: then it is a file's name
        return path


def without_credentials(url: str) -> str:
    """The URL without user and password, so that no message and no row of the memory holds them."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/@]*@", r"\1", url)


def slug(text: str) -> str:
    """A short name of letters, digits and dashes in any script; `camera` when nothing is left."""
    plain = unicodedata.normalize("NFC", text).casefold()
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:48] or "camera"
