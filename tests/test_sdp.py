"""Session descriptions: what is let through to aiortc, and what is not."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiortc.sdp import SessionDescription, candidate_from_sdp
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.serve.sdp import MAX_BYTES, Offer, SdpError, parse_fragment, parse_offer, usable, without_unusable
from tests.media import hush
from tests.webrtc_support import Client, Photographs, Sound


@pytest.fixture(scope="module")
def offer() -> str:
    """A real offer of a picture, sound and a data channel."""

    async def make() -> str:
        one = Client("http://127.0.0.1")
        one.add(Photographs(), Sound(hush(1.0))).connection.createDataChannel("heartbeat")
        text = await one.offer()
        await one.close()
        return text

    return asyncio.run(make())


def test_a_real_offer_passes(offer: str) -> None:
    parsed = parse_offer(offer.encode())
    assert [one.kind for one in parsed.media] == ["video", "audio", "application"]
    assert parsed.sends() == {"audio", "video"}
    assert parsed.receives() == frozenset()
    assert parsed.ufrag in offer
    assert parse_offer(offer.replace("\r\n", "\n").encode()).sdp == parsed.sdp


def without(name: str):
    return lambda text: "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith((f"a={name}:", f"a={name}\r"))
    )


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: "", "no body"),
        (lambda text: "\r\n \r\n", "no body"),
        (lambda text: "<!doctype html><html><body>hello</body></html>", "not one of a session description"),
        (lambda text: '{"type":"offer"}', "not one of a session description"),
        (lambda text: "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", "no m-line"),
        (lambda text: text[text.index("o=") :], "must begin"),
        (without("fingerprint"), "a=fingerprint"),
        (without("ice-ufrag"), "a=ice-ufrag"),
        (without("ice-pwd"), "a=ice-pwd"),
        (without("setup"), "a=setup"),
        (without("mid"), "a=mid"),
        (without("group"), "bundled"),
        (without("fmtp"), "apt"),
        (lambda text: text.replace("a=setup:actpass", "a=setup:holdconn"), "actpass"),
        (lambda text: text.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"), "must use"),
        (lambda text: text.replace("m=audio", "m=video"), "more than one m-line"),
        (lambda text: text.replace("m=audio", "m=text"), "neither audio"),
        (lambda text: text + text[text.index("m=") :] * 400, "larger than"),
        (lambda text: text + text[text.index("m=") :] * 2, "m-lines; at most"),
        (lambda text: text + "a=x\r\n" * 2000, "lines"),
        (lambda text: text + "a=" + "x" * 2000, "not one of a session description"),
        (lambda text: text + "a=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n" * 60, "more than 40"),
        (lambda text: text + "a=candidate:nonsense\r\n", "a=candidate"),
        (lambda text: text + "a=candidate:1 1 udp 1 10.0.0.1 99999 typ host\r\n", "no port"),
        (lambda text: text.replace("a=mid:1", "a=mid:0"), "different values"),
        (lambda text: text.replace("sha-256 ", "md5 "), "a=fingerprint"),
        (lambda text: text.replace("a=sctp-port:5000", "a=sctp-port:x"), "sctp-port"),
        (lambda text: text.replace("a=group:BUNDLE 0 1 2", "a=group:BUNDLE 7 8 9"), "name every m-line"),
    ],
)
def test_what_is_not_an_offer_is_refused_in_words(offer: str, spoil, says: str) -> None:
    spoilt = spoil(offer)
    assert spoilt != offer
    with pytest.raises(SdpError, match=says):
        parse_offer(spoilt.encode())


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SdpError, match="UTF-8"):
        parse_offer(b"v=0\r\n\xff\xfe")
    with pytest.raises(SdpError, match="larger"):
        parse_offer(b"a" * (MAX_BYTES + 1))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_spoilt_offer_is_refused_or_whole(offer: str, data: st.DataObject) -> None:
    lines = offer.split("\r\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        how = data.draw(st.sampled_from(["drop", "twice", "cut", "swap", "other"]))
        if how == "drop":
            lines[at : at + 1] = []
        elif how == "twice":
            lines[at:at] = [lines[at]]
        elif how == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
        elif how == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at] = data.draw(st.text(max_size=40))
        lines = lines or [""]
    try:
        parsed = parse_offer("\r\n".join(lines).encode())
    except SdpError:
        return
    assert 1 <= len(parsed.media) <= 4
    assert all(one.ufrag and one.mid for one in parsed.media)
    try:
        seen = SessionDescription.parse(parsed.sdp)
    except (ValueError, AssertionError, LookupError, StopIteration, AttributeError, TypeError, KeyError):
        return  # the connection answers these with a refusal of its own
    for media in seen.media:
        assert media.dtls is not None
        assert media.dtls.fingerprints
        assert media.ice.usernameFragment
        assert media.ice.password


@given(st.binary(max_size=400))
def test_no_fragment_raises_anything_else(body: bytes) -> None:
    with contextlib.suppress(SdpError):
        parse_fragment(body)


def test_a_fragment_of_rfc_8840() -> None:
    fragment = parse_fragment(
        b"a=ice-ufrag:EsAw\r\na=ice-pwd:bP+XJMM09aR8AiX1jdukzR6Y\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
        b"a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1\r\n"
        b"a=candidate:3471623853 1 tcp 1518283007 192.0.2.1 9 typ host tcptype active generation 0\r\n"
        b"a=end-of-candidates\r\n"
    )
    assert fragment.ufrag == "EsAw"
    assert fragment.complete
    assert [usable(one) for one in fragment.candidates] == [True, False]
    assert candidate_from_sdp(fragment.candidates[0]).ip == "192.0.2.1"


def test_candidates_that_cannot_be_paired_are_left_out(offer: str) -> None:
    first = offer.index("m=audio")
    given_ = offer[:first] + "a=candidate:9 1 tcp 1 192.0.2.7 9 typ host tcptype active\r\n" + offer[first:]
    kept: Offer = without_unusable(parse_offer(given_.encode()))
    assert "192.0.2.7" not in kept.sdp
    assert kept.sdp.count("a=candidate:") == offer.count("a=candidate:")
