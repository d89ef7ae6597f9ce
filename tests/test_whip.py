"""Publishing over WebRTC (WHIP) and watching (WHEP), against a server on loopback."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import httpx
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa

from edge.serve.dtls import Certificate, peer_connection
from edge.serve.peers import PeerLimits
from edge.serve.repair import stands_alone
from edge.serve.whip import Lateness
from tests.media import babble, hush, pan, photo
from tests.webrtc_support import (
    ASK_KEY,
    BINDINGS,
    KEY,
    OTHER_KEY,
    MemoryService,
    Photographs,
    Sound,
    app_of,
    certificate_files,
    client,
    served,
    until,
)

DAY = dt.timedelta(days=1)


def test_pictures_and_sound_arrive_stamped_and_whole() -> None:
    async def run() -> None:
        service = MemoryService()
        spoken = babble(2.0)
        with served(service) as server:
            async with client(server.url) as phone:
                began = time.monotonic()
                phone.add(Photographs(), Sound(spoken)).heartbeat()
                await phone.begin("/whip/hall")
                assert service.publishers == [("hall", "d1")]
                hall = service.sources["hall"]
                assert await until(lambda: len(hall.pictures) > 5, 5, "pictures") < 5
                await until(lambda: sum(map(len, hall.sound)) > 2.5 * 16_000, 6, "sound")
                stamps = [mono for mono, _, _ in hall.pictures]
                assert stamps == sorted(stamps)
                assert began < stamps[0] < stamps[-1] <= time.monotonic()
                assert {(width, height) for _, width, height in hall.pictures} == {(320, 240)}
                seen = hall.latest.to_ndarray(format="bgr24").astype(float)
                assert seen.std() > 30  # a photograph, not a grey field
                heard = np.concatenate(hall.sound)
                # Opus over 20 ms frames: the loudness over time is that of what was said.
                loud = [float(np.square(part).mean()) for part in np.array_split(heard[: 2 * 16_000], 40)]
                said = [float(np.square(part).mean()) for part in np.array_split(spoken, 40)]
                best = max(np.corrcoef(np.roll(said, shift), loud)[0, 1] for shift in range(4))
                assert best > 0.8
                # Sound never has a hole: the samples fill the time that they are stamped with.
                span = hall.sound_at[-1] - hall.sound_at[0]
                assert abs(sum(map(len, hall.sound[:-1])) / 16_000 - span) < 0.3
                assert phone.echoes > 0

    asyncio.run(run())


def test_a_killed_publisher_is_noticed_within_five_seconds_and_goes_on_as_the_same_camera() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service, PeerLimits(linger_s=0.3)) as server:
            async with client(server.url) as phone, client(server.url) as again:
                phone.add(Photographs()).heartbeat()
                await phone.begin("/whip/hall")
                hall = service.sources["hall"]
                await until(lambda: hall.pictures and phone.echoes, 5, "pictures")
                killed = time.monotonic()
                phone.silence()
                await until(lambda: hall.ends, 8, "noticed")
                assert time.monotonic() - killed - 0.3 <= 5.0
                assert (await phone.http.delete(phone.location)).status_code == 404
                count = len(hall.pictures)
                again.add(Photographs()).heartbeat()
                await again.begin("/whip/hall")
                await until(lambda: len(hall.pictures) > count, 5, "pictures again")
                assert hall.pictures[count][0] > killed

    asyncio.run(run())


def test_word_of_a_rule_comes_over_the_data_channel_to_who_may_read_the_memory() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone, client(server.url, OTHER_KEY) as tablet:
                await phone.add(Photographs()).heartbeat().listen().begin("/whip/hall")
                await tablet.add(Photographs()).heartbeat().listen().begin("/whip/door")  # may publish, not read
                await until(lambda: phone.echoes and tablet.echoes, 5, "both")
                notice = {"id": "a7", "text": "The dog is on the sofa.", "at": "2026-12-01T09:00:00Z", "rule": "r1"}
                service.events.publish("moment", "hall", {"text": "A moment is no message."})
                service.events.publish("notice", None, notice)
                await until(lambda: phone.notices, 3, "the message")
                assert phone.notices == [{"kind": "notice", **notice}]
                await until(lambda: tablet.notices, 3, "its channel is closed")
                assert tablet.notices == [{"kind": "closed"}]

    asyncio.run(run())


def test_delete_ends_the_camera_at_once() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone:
                await phone.add(Photographs()).begin("/whip")
                assert phone.location.startswith("/whip/phone/")  # named like the device
                camera = service.sources["phone"]
                await until(lambda: camera.pictures, 5, "pictures")
                assert (await phone.http.get(phone.location)).status_code == 405
                assert (await phone.http.delete(phone.location)).status_code == 200
                assert camera.ends == 1
                assert (await phone.http.delete(phone.location)).status_code == 404

    asyncio.run(run())


def test_several_publish_and_the_same_device_takes_over_from_itself() -> None:
    async def run() -> None:
        service = MemoryService()
        service.fetched.append("door")
        with served(service) as server:
            async with client(server.url) as one, client(server.url, OTHER_KEY) as two, client(server.url) as three:
                await one.add(Photographs()).heartbeat().begin("/whip/hall")
                await two.add(Photographs((160, 120))).heartbeat().begin("/whip/kitchen")
                await until(lambda: service.sources["hall"].pictures, 5, "the first's pictures")
                await until(lambda: service.sources["kitchen"].pictures, 5, "the second's pictures")
                assert service.sources["kitchen"].pictures[0][1:] == (160, 120)
                # Somebody else's camera, or one that is fetched, cannot be taken; one's own can.
                offer = await three.add(Photographs((240, 160))).heartbeat().offer()
                assert (await three.post("/whip/kitchen", offer)).status_code == 409
                assert (await three.post("/whip/door", offer)).status_code == 409
                await three.begin("/whip/hall", offer)
                hall = service.sources["hall"]
                await until(lambda: hall.pictures[-1][1:] == (240, 160), 5, "the third's pictures")
                await asyncio.sleep(0.3)
                count = len(hall.pictures)
                await asyncio.sleep(0.3)
                assert {(width, height) for _, width, height in hall.pictures[count:]} == {(240, 160)}
                assert hall.ends == 0
                assert (await one.http.delete(one.location)).status_code == 404

    asyncio.run(run())


def test_a_publisher_with_an_rsa_certificate_connects() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as encoder:
                # As GStreamer's; the publisher is the server of DTLS, so its certificate chooses the cipher.
                encoder.connection = peer_connection()
                vars(encoder.connection)["_RTCPeerConnection__certificates"] = [rsa_certificate()]
                await encoder.add(Photographs()).begin("/whip/encoder")
                await until(lambda: service.sources["encoder"].pictures, 5, "pictures")

    asyncio.run(run())


@pytest.mark.parametrize(("share", "seconds"), [(0.1, 1.2), (1.0, 2.4)], ids=["bad", "cut"])
def test_pictures_go_on_after_a_bad_link(share: float, seconds: float) -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                hall = service.sources["hall"]
                await until(lambda: len(hall.pictures) > 5, 5, "pictures")
                phone.lossy(share)
                await asyncio.sleep(seconds)
                phone.lossy(0.0)
                good, count = time.monotonic(), len(hall.pictures)
                # What is shown from then on is what is sent now, not what has piled up.
                await until(lambda: len(hall.pictures) > count + 20, 4, "pictures through a good link again")
                assert time.monotonic() - good < 3.0
                assert hall.pictures[-1][0] - hall.pictures[-10][0] > 0.2
                assert hall.ends == 0

    asyncio.run(run())


def test_trickled_candidates_connect() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone:
                offer = await phone.add(Photographs()).offer()
                lines = offer.split("\r\n")
                candidates = [line for line in lines if line.startswith("a=candidate:")]
                bare = "\r\n".join(line for line in lines if not line.startswith(("a=candidate:", "a=end-of")))
                await phone.begin("/whip/hall", bare)
                ufrag = next(line for line in lines if line.startswith("a=ice-ufrag:"))

                async def patch(body: str, **headers: str) -> int:
                    kind = {"Content-Type": "application/trickle-ice-sdpfrag"}
                    return (await phone.http.patch(phone.location, content=body, headers=kind | headers)).status_code

                match = {"If-Match": phone.etag}
                assert await patch(ufrag) == 428
                assert await patch(ufrag, **{"If-Match": '"other"'}) == 412
                assert await patch(ufrag, **{"If-Match": "*"}) == 422
                assert await patch("a=ice-ufrag:else\r\na=ice-pwd:" + "p" * 24, **match) == 422
                assert await patch("<html>", **match) == 400
                assert await patch(ufrag, **match, **{"Content-Type": "text/html"}) == 415
                # Pictures may be there already: the publisher knows our candidates and we learn its own from its checks.
                body = "\r\n".join([ufrag, "m=video 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0", *candidates, ""])
                assert await patch(body, **match) == 204
                assert await patch(f"{ufrag}\r\na=end-of-candidates\r\n", **match) == 204
                await until(lambda: service.sources["hall"].pictures, 5, "pictures")

    asyncio.run(run())


def test_pausing_remembers_nothing_until_it_is_resumed() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service, PeerLimits(silence_s=1.0)) as server:
            async with client(server.url) as phone, client(server.url, OTHER_KEY) as other:
                await phone.add(Photographs(), Sound(babble(20.0))).begin("/whip/hall")
                hall = service.sources["hall"]
                await until(lambda: hall.pictures and hall.sound, 5, "pictures")
                assert (await other.http.post(f"{phone.location}/pause")).status_code == 404
                assert (await phone.http.post(f"{phone.location}/pause")).status_code == 204
                assert service.paused == {"hall"}
                pictures, sounds = len(hall.pictures), len(hall.sound)
                await asyncio.sleep(1.5)
                assert (len(hall.pictures), len(hall.sound)) == (pictures, sounds)
                assert (await phone.http.post(f"{phone.location}/resume")).status_code == 204
                assert not service.paused
                await until(lambda: len(hall.pictures) > pictures and len(hall.sound) > sounds, 5, "pictures again")

    asyncio.run(run())


def test_sound_of_opposed_phases_does_not_mix_to_silence() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone:
                await phone.add(Sound(babble(5.0), opposed=True)).begin("/whip/hall")
                await until(lambda: sum(map(len, service.sources["hall"].sound)) > 16_000, 6, "sound")
                assert float(np.abs(np.concatenate(service.sources["hall"].sound)).max()) > 0.05

    asyncio.run(run())


def test_who_may_not_publish_is_refused() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url, ASK_KEY) as reader, client(server.url, "guessed") as stranger:
                offer = await reader.add(Photographs()).offer()
                refused = await reader.post("/whip/hall", offer)
                assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
                unknown = await stranger.post("/whip/hall", offer)
                assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, "Bearer")
                assert (await stranger.post("/whep/hall", offer)).status_code == 401
                may = await stranger.http.options("/whip/hall", headers={"Origin": "https://elsewhere.example"})
                assert may.status_code == 204
                assert may.headers["accept-post"] == "application/sdp"
                assert "access-control-allow-origin" not in may.headers
        assert not service.sources

    asyncio.run(run())


def rsa_certificate() -> Certificate:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "encoder")])
    now = dt.datetime.now(dt.UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = built.serial_number(1).not_valid_before(now - DAY).not_valid_after(now + DAY)
    return Certificate(key=key, cert=dated.sign(key, hashes.SHA256()))


def hostile() -> list[tuple[bytes, str, int]]:
    many = b"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" + b"m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 1000
    return [
        (b"", "application/sdp", 400),
        (b"<html><body>offer</body></html>", "application/sdp", 400),
        (b"\x00\xff" * 500, "application/sdp", 400),
        (many, "application/sdp", 400),
        (b"a=" + b"x" * 1_000_000, "application/sdp", 413),
        (b"v=0", "text/plain", 415),
        (b"v=0", "", 415),
    ]


def test_hostile_offers_are_refused_quickly_and_hurt_nobody() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone, client(server.url, OTHER_KEY) as attacker:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                hall = service.sources["hall"]
                await until(lambda: len(hall.pictures) > 10, 5, "pictures")
                offer = await attacker.add(Photographs()).offer()
                texts = hostile()
                texts.append((offer.replace("a=fingerprint", "a=nothing").encode(), "application/sdp", 400))
                texts.append((offer.replace("VP8/90000", "ZZ9/90000").replace("H264/", "ZZ8/").encode(), "", 415))
                odd = offer.replace("VP8/90000", "ZZ9/90000").replace("H264/90000", "ZZ8/90000")
                texts.append((odd.encode(), "application/sdp", 400))
                texts.append((offer.replace("a=sendonly", "a=recvonly").encode(), "application/sdp", 400))
                began, before = time.monotonic(), len(hall.pictures)
                for body, kind, status in texts:
                    answer = await attacker.http.post(
                        "/whip/x", content=body, headers={"Content-Type": kind} if kind else {}
                    )
                    assert answer.status_code == status, (body[:60], answer.text)
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert answer.json()["detail"]
                took = time.monotonic() - began
                assert took < 3.0
                await until(lambda: len(hall.pictures) - before > took * 15, 2, "the other one's pictures")
                assert set(service.sources) == {"hall"}

    asyncio.run(run())


def test_a_flood_of_offers_is_refused_and_others_go_on() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service, PeerLimits(burst=10, offers_per_s=0.5)) as server:
            async with client(server.url) as phone, client(server.url, OTHER_KEY) as flood:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                hall = service.sources["hall"]
                await until(lambda: len(hall.pictures) > 10, 5, "pictures")
                offer = await flood.add(Photographs()).offer()
                before, began = len(hall.pictures), time.monotonic()
                answers = await asyncio.gather(*(flood.post(f"/whip/c{number}", offer) for number in range(60)))
                statuses = [answer.status_code for answer in answers]
                assert statuses.count(429) >= 50
                assert set(statuses) <= {201, 429, 503}
                assert all(int(one.headers["retry-after"]) >= 1 for one in answers if one.status_code == 429)
                took = time.monotonic() - began
                await asyncio.sleep(0.5)
                assert len(hall.pictures) - before > took * 10
                assert (await phone.http.delete(phone.location)).status_code == 200

    asyncio.run(run())


def test_no_more_publish_than_may_and_who_never_connects_is_let_go() -> None:
    async def run() -> None:
        service = MemoryService()
        limits = PeerLimits(peers=2, connect_s=1.5, linger_s=0.1)
        with served(service, limits) as server:
            async with client(server.url) as idle:
                offer = await idle.add(Photographs()).offer()
                bare = "\r\n".join(line for line in offer.split("\r\n") if not line.startswith("a=candidate:"))
                gone = bare.replace("a=ice-ufrag:", "a=ice-ufrag:zz")  # nobody will ever answer these
                statuses = [(await idle.post(f"/whip/c{number}", gone)).status_code for number in range(3)]
                assert statuses == [201, 201, 503]
                await until(lambda: service.sources["c0"].ends and service.sources["c1"].ends, 5, "let go")
                assert (await idle.post("/whip/c2", gone)).status_code == 201

    asyncio.run(run())


def test_watching_a_camera_in_a_browser() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone, client(server.url, ASK_KEY) as viewer:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                await until(lambda: service.sources["hall"].pictures, 5, "pictures")
                viewer.connection.addTransceiver("video", "recvonly")
                tracks: list = []
                viewer.connection.on("track", tracks.append)
                assert (await viewer.post("/whep/attic", await viewer.offer())).status_code == 404
                await viewer.begin("/whep/hall", viewer.connection.localDescription.sdp)
                frames = [await asyncio.wait_for(tracks[0].recv(), 5) for _ in range(10)]
                assert (frames[-1].width, frames[-1].height) == (320, 240)
                assert frames[-1].to_ndarray(format="bgr24").std() > 30
                assert (await viewer.http.delete(viewer.location)).status_code == 200

    asyncio.run(run())


def test_who_watches_a_camera_that_is_gone_is_let_go() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service) as server:
            async with client(server.url) as phone, client(server.url, ASK_KEY) as viewer:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                await until(lambda: service.sources["hall"].pictures, 5, "pictures")
                viewer.connection.addTransceiver("video", "recvonly")
                await viewer.begin("/whep/hall", await viewer.offer())
                await until(lambda: viewer.connection.connectionState == "connected", 5, "connected")
                del service.sources["hall"]
                # Not a picture that stands still: the page can ask for another camera.
                await until(lambda: viewer.connection.connectionState == "closed", 3, "let go")
                assert (await viewer.http.delete(viewer.location)).status_code == 404

    asyncio.run(run())


def test_removing_a_camera_ends_its_session_and_keeps_its_publisher_from_coming_back_by_itself() -> None:
    async def run() -> None:
        service = MemoryService()
        with served(service, PeerLimits(removed_s=1.0)) as server:
            async with client(server.url) as phone, client(server.url) as again:
                await phone.add(Photographs()).heartbeat().begin("/whip/hall")
                await until(lambda: service.sources["hall"].pictures, 5, "pictures")
                service.sources.pop("hall").removed = True
                await until(lambda: phone.connection.connectionState == "closed", 3, "ended")
                assert (await phone.http.delete(phone.location)).status_code == 404
                offer = await again.add(Photographs()).heartbeat().offer()
                refused = await again.post("/whip/hall", offer)
                assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (409, "removed")
                assert "hall" not in service.sources
                await asyncio.sleep(1.0)
                await again.begin("/whip/hall", offer)
                await until(lambda: service.sources["hall"].pictures, 5, "pictures again")

    asyncio.run(run())


def test_the_server_ends_quickly_with_peers_connected() -> None:
    async def run() -> None:
        service = MemoryService()
        async with client("http://127.0.0.1") as phone:
            with served(service) as server:
                phone.http.base_url = httpx.URL(server.url)
                await phone.add(Photographs(), Sound(hush(1.0))).heartbeat().begin("/whip/hall")
                await until(lambda: service.sources["hall"].pictures, 5, "pictures")
                began = time.monotonic()
            assert time.monotonic() - began < 5.0
            assert service.sources["hall"].ends == 1

    asyncio.run(run())


def test_lateness_is_measured_against_the_earliest_and_follows_jumps() -> None:
    lateness = Lateness()
    assert lateness.of(0.0, 100.0) == 0.0
    assert lateness.of(1.0, 101.2) == pytest.approx(0.2, abs=0.001)
    assert lateness.of(2.0, 103.0) == pytest.approx(1.0, abs=0.001)
    assert lateness.of(3.0, 103.1) == pytest.approx(0.1, abs=0.001)  # it caught up
    late = [lateness.of(4.0 + step / 10, 114.1 + step / 10) for step in range(80)]
    assert late[0] == pytest.approx(10.1, abs=0.01)
    assert late[-1] == pytest.approx(0.0, abs=0.01)  # ten seconds that stay are the sender's clock, not a delay


def test_the_routes_are_described() -> None:
    paths = app_of(MemoryService()).openapi()["paths"]
    assert set(paths["/whip/{camera}/{session}"]) == {"patch", "delete"}


@pytest.mark.slow
def test_ffmpeg_publishes(tmp_path: Path) -> None:
    if "whip" not in av.formats_available:
        pytest.skip("this build of FFmpeg has no WHIP muxer")
    service = MemoryService()
    with served(service) as server:
        pair = [str(path) for path in certificate_files(tmp_path)]
        command = [sys.executable, "-m", "tests.ffmpeg_publisher", f"{server.url}/whip/encoder", KEY, "5", *pair]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        camera = service.sources["encoder"]
        assert len(camera.pictures) > 100
        assert {(width, height) for _, width, height in camera.pictures} == {(320, 240)}
        assert camera.latest.to_ndarray(format="bgr24").std() > 30
        heard = np.concatenate(camera.sound)
        assert len(heard) > 4 * 16_000
        spectrum = np.abs(np.fft.rfft(heard[16_000:32_000]))
        assert abs(int(spectrum.argmax()) - 440) < 10  # Hz, of the tone


@pytest.mark.slow
def test_gstreamer_publishes() -> None:
    found = "from gi import require_version as r; r('GstWebRTC', '1.0'); r('GstSdp', '1.0')"
    if subprocess.run([BINDINGS, "-c", found], capture_output=True, check=False).returncode:
        pytest.skip("GStreamer's bindings are not installed (Debian: python3-gi, gir1.2-gst-plugins-bad-1.0)")
    service = MemoryService()
    with served(service) as server:
        script = str(Path(__file__).with_name("gst_publisher.py"))
        done = subprocess.run(
            [BINDINGS, script, f"{server.url}/whip/encoder", KEY, "6"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        camera = service.sources["encoder"]
        assert camera.ends == 1
        assert len(camera.pictures) > 50
        assert {(width, height) for _, width, height in camera.pictures} == {(320, 240)}
        assert camera.latest.to_ndarray(format="bgr24").std() > 30
        heard = np.concatenate(camera.sound)
        assert len(heard) > 3 * 16_000
        spectrum = np.abs(np.fft.rfft(heard[16_000:32_000]))
        assert abs(int(spectrum.argmax()) - 440) < 10  # Hz, of the tone


@pytest.mark.parametrize(("encoder", "kind"), [("libvpx", "video/VP8"), ("libx264", "video/H264")])
def test_pictures_that_stand_for_themselves_are_known(encoder: str, kind: str) -> None:
    context = av.CodecContext.create(encoder, "w")
    context.width, context.height, context.pix_fmt, context.gop_size = 160, 120, "yuv420p", 7
    context.time_base = Fraction(1, 25)
    coded: list[av.Packet] = []
    for number, picture in enumerate([*pan(photo("chelsea"), 24, (160, 120)), None]):
        frame = None if picture is None else av.VideoFrame.from_ndarray(picture, "bgr24")
        if frame is not None:
            frame.pts, frame.time_base = number, Fraction(1, 25)
        coded += context.encode(frame)
    found = [(packet.is_keyframe, stands_alone(kind, bytes(packet))) for packet in coded]
    assert len(found) == 24
    assert all(key is told for key, told in found)
    assert 2 < sum(key for key, _ in found) < 24
    assert not stands_alone(kind, b"")
    assert not stands_alone(kind, bytes(coded[0])[900:])  # its beginning was lost
