"""Session descriptions, looked into before anything else sees them (RFC 8866, 8839, 8842, 9725).

aiortc takes an empty page for an offer, needs seconds for a thousand m-lines and fails in a task that nobody awaits when
a fingerprint is missing. What passes here is small, whole and an offer. This module is pure: text in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MAX_BYTES = 64 * 1024  # Chromium's offers for one picture and one sound have about 6 kB
MAX_MEDIA = 4  # m-lines
MAX_LINES = 1500
MAX_LINE_CHARS = 1024
MAX_CANDIDATES = 40  # of one description; a host with many networks has a dozen

_MEDIA_LINE = re.compile(r"(audio|video|application) (\d{1,5}) ([A-Z]+(?:/[A-Z]+)*)((?: [A-Za-z0-9-]{1,32})+)")
_FINGERPRINT = re.compile(
    r"(?i:sha-256 (?:[0-9a-f]{2}:){31}|sha-384 (?:[0-9a-f]{2}:){47}|sha-512 (?:[0-9a-f]{2}:){63})[0-9A-Fa-f]{2}"
)
_UFRAG = re.compile(r"[A-Za-z0-9+/]{4,256}")
_PASSWORD = re.compile(r"[A-Za-z0-9+/]{22,256}")
_TOKEN = re.compile(r"[!#-'*+\-.0-9A-Z^-~]{1,64}")
_CANDIDATE = re.compile(
    r"[A-Za-z0-9+/]{1,32} (?P<component>[12]) (?P<protocol>[A-Za-z]{3}) \d{1,10} (?P<host>[A-Za-z0-9.:-]{2,253}) "
    r"(?P<port>\d{1,5}) typ (?:host|srflx|prflx|relay)(?: [\x21-\x7e]{1,256} [\x21-\x7e]{1,256})*"
)
_SETUPS = frozenset({"actpass", "active", "passive"})
_DIRECTIONS = frozenset({"sendonly", "recvonly", "sendrecv", "inactive"})
_RTX = re.compile(r"(\d{1,3}) rtx/", re.IGNORECASE)
_APT = re.compile(r"(\d{1,3}) (?:.*;)?\s*apt=(\d{1,3})(?:;.*)?")


class SdpError(ValueError):
    """The text is not a description that can be used; `str()` is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class Media:
    """One m-line."""

    kind: str  # audio, video or application
    mid: str
    direction: str  # seen from the peer
    ufrag: str


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that aiortc may see."""

    sdp: str
    media: tuple[Media, ...]

    @property
    def ufrag(self) -> str:
        """The ICE user name fragment of the (bundled) transport."""
        return self.media[0].ufrag

    def sends(self) -> frozenset[str]:
        """The kinds (audio, video) that the peer would send."""
        return frozenset(one.kind for one in self.media if one.direction in {"sendonly", "sendrecv"})

    def receives(self) -> frozenset[str]:
        """The kinds (audio, video) that the peer would receive."""
        return frozenset(one.kind for one in self.media if one.direction in {"recvonly", "sendrecv"})


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a PATCH of `application/trickle-ice-sdpfrag` carries (RFC 8840)."""

    ufrag: str | None
    candidates: tuple[str, ...]  # without `candidate:`
    complete: bool  # a=end-of-candidates


def parse_offer(body: bytes) -> Offer:
    """Check an offer.

    Args:
        body: as it was sent, at most `MAX_BYTES`.

    Raises:
        SdpError: it is not one, or has more than belongs into one.
    """
    lines = _lines(body)
    if len(lines) < 4 or lines[0] != "v=0" or not lines[1].startswith("o="):
        raise SdpError("This is not a session description: it must begin with “v=0” and “o=”.")
    session, groups = _grouped(lines)
    if not groups:
        raise SdpError("The offer has no m-line: offer a picture or sound.")
    if len(groups) > MAX_MEDIA:
        raise SdpError(f"The offer has {len(groups)} m-lines; at most {MAX_MEDIA} are taken.")
    if sum(line.startswith("a=candidate:") for line in lines) > MAX_CANDIDATES:
        raise SdpError(f"The offer has more than {MAX_CANDIDATES} ICE candidates.")
    media = tuple(_media(session, group) for group in groups)
    for kind in ("audio", "video", "application"):
        if sum(one.kind == kind for one in media) > 1:
            raise SdpError(f"The offer has more than one m-line for {kind}; one is taken.")
    if len({one.mid for one in media}) < len(media):
        raise SdpError("The m-lines of the offer need different values of “a=mid”.")
    bundle = next((line.split()[1:] for line in session if line.startswith("a=group:BUNDLE ")), None)
    if bundle is None and len(media) > 1:
        raise SdpError("The m-lines of the offer must be bundled: it needs “a=group:BUNDLE”.")
    if bundle is not None and sorted(bundle) != sorted(one.mid for one in media):
        raise SdpError("“a=group:BUNDLE” must name every m-line of the offer once.")
    return Offer("\r\n".join(lines) + "\r\n", media)


def parse_fragment(body: bytes) -> Fragment:
    """Check a fragment with further candidates.

    Raises:
        SdpError: it is not one.
    """
    lines = _lines(body)
    ufrag: str | None = None
    candidates: list[str] = []
    complete = False
    for line in lines:
        if line.startswith("a=ice-ufrag:"):
            ufrag = ufrag or _one(_UFRAG, line.partition(":")[2], "a=ice-ufrag")
        elif line.startswith("a=candidate:"):
            candidates.append(_candidate(line))
        elif line.startswith("a=end-of-candidates"):
            complete = True
        elif not line.startswith(("a=", "m=", "c=")):
            raise SdpError("A fragment has lines of “a=” and “m=” only.")
    if len(candidates) > MAX_CANDIDATES:
        raise SdpError(f"The fragment has more than {MAX_CANDIDATES} ICE candidates.")
    if not candidates and not complete and ufrag is None:
        raise SdpError("The fragment carries neither a candidate nor “a=end-of-candidates”.")
    return Fragment(ufrag, tuple(dict.fromkeys(candidates)), complete)


def usable(candidate: str) -> bool:
    """Whether a candidate (checked, without `candidate:`) can be paired: only UDP can."""
    match = _CANDIDATE.fullmatch(candidate)
    return match is not None and match["protocol"].lower() == "udp" and match["component"] == "1"


def _lines(body: bytes) -> list[str]:
    if not body.strip():
        raise SdpError("The request has no body: send the session description in it.")
    if len(body) > MAX_BYTES:
        raise SdpError(f"The description is larger than {MAX_BYTES} bytes.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SdpError("The description is not text in UTF-8.") from error
    lines = [line.rstrip("\r") for line in text.rstrip("\r\n\0").split("\n")]
    if len(lines) > MAX_LINES:
        raise SdpError(f"The description has more than {MAX_LINES} lines.")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_CHARS or not line.isprintable() or line[1:2] != "=" or not line[:1].islower():
            raise SdpError(f"Line {number} is not one of a session description.")
    return lines


def _grouped(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    session: list[str] = []
    groups: list[list[str]] = []
    for line in lines:
        if line.startswith("m="):
            groups.append([line])
        else:
            (groups[-1] if groups else session).append(line)
    return session, groups


def _media(session: list[str], group: list[str]) -> Media:
    match = _MEDIA_LINE.fullmatch(group[0][2:])
    if match is None:
        raise SdpError("An m-line is neither audio, video nor a data channel.")
    kind = match[1]
    secure = "UDP/DTLS/SCTP" if kind == "application" else "UDP/TLS/RTP/SAVPF"
    if match[3] != secure:
        raise SdpError(f"The m-line for {kind} must use {secure}.")
    if kind != "application":
        _check_formats(match[4].split(), group)
    elif "webrtc-datachannel" not in match[4].split() or not any(
        re.fullmatch(r"a=sctp-port:\d{1,5}", line) for line in group
    ):
        raise SdpError("The m-line for data needs “webrtc-datachannel” and “a=sctp-port”.")

    def value(name: str) -> str:
        """The first of the m-line, else of the session."""
        found = next((line for line in _attributes(group, session) if line.startswith(f"a={name}:")), None)
        if found is None:
            raise SdpError(f"The m-line for {kind} has no “a={name}”.")
        return found.partition(":")[2]

    ufrag = _one(_UFRAG, value("ice-ufrag"), "a=ice-ufrag")
    _one(_PASSWORD, value("ice-pwd"), "a=ice-pwd")
    _one(_FINGERPRINT, value("fingerprint"), "a=fingerprint")
    if value("setup") not in _SETUPS:
        raise SdpError("“a=setup” of an offer is actpass, active or passive.")
    mid = _one(_TOKEN, value("mid"), "a=mid")
    for line in group:
        if line.startswith("a=candidate:"):
            _candidate(line)
    direction = next((line[2:] for line in _attributes(group, session) if line[2:] in _DIRECTIONS), "sendrecv")
    return Media(kind, mid, "inactive" if kind == "application" else direction, ufrag)


def _attributes(group: list[str], session: list[str]) -> Iterator[str]:
    yield from group
    yield from session


def _check_formats(formats: list[str], group: list[str]) -> None:
    """Every payload type is a number with an `a=rtpmap`, and every retransmission says of what."""
    if not all(one.isdecimal() and int(one) < 128 for one in formats) or len(set(formats)) < len(formats):
        raise SdpError("The payload types of an m-line must be different numbers below 128.")
    maps = [line[9:] for line in group if line.startswith("a=rtpmap:")]
    mapped = {text.partition(" ")[0] for text in maps}
    if not mapped or not mapped <= set(formats) or len(mapped) < len(maps):
        raise SdpError("The lines “a=rtpmap” do not fit the payload types of their m-line.")
    repeats = {match[1] for text in maps if (match := _RTX.match(text))}
    fmtp = [line[7:] for line in group if line.startswith("a=fmtp:")]
    if any(text.partition(" ")[0] not in mapped for text in fmtp):
        raise SdpError("A line “a=fmtp” is of a payload type without “a=rtpmap”.")
    known = {match[1] for text in fmtp if (match := _APT.fullmatch(text)) and match[2] in mapped}
    if not repeats <= known:
        raise SdpError("A payload type for retransmission does not say of what (apt).")


def _candidate(line: str) -> str:
    text = _one(_CANDIDATE, line.partition(":")[2].strip(), "a=candidate")
    match = _CANDIDATE.fullmatch(text)
    if match is None or not 0 <= int(match["port"]) <= 65_535:
        raise SdpError("A line “a=candidate” has no port.")
    return text


def _one(pattern: re.Pattern[str], text: str, name: str) -> str:
    if pattern.fullmatch(text) is None:
        raise SdpError(f"“{name}” of the description has no value that can be used.")
    return text


def without_unusable(offer: Offer) -> Offer:
    """The offer without candidates that cannot be paired (TCP, RTCP of its own)."""
    kept = [
        line
        for line in offer.sdp.split("\r\n")
        if not line.startswith("a=candidate:") or usable(line.partition(":")[2].strip())
    ]
    return replace(offer, sdp="\r\n".join(kept))
