"""Pairing over HTTP: what the page gets, which tokens work, who may invite; and what the guards refuse."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge.serve.certificates import grouped
from edge.serve.guards import BodyLimit, RateLimit, SlowClient
from edge.serve.invitation import LIFETIME_S
from edge.serve.limits import TokenBuckets
from edge.serve.pairing import Pairing
from tests.pairing_support import HOST, RUN_TOKEN, make_access, make_app, token_of

OWNER = {"Authorization": f"Bearer {RUN_TOKEN}", "Host": "localhost:8420"}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Place:
    """One service and clients of it, without sockets."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.access = make_access(home, **settings)
        self.access.pairing = Pairing(self.access.devices, clock=self.clock)
        self.app = make_app(self.access)

    def lan(self, address: str = "192.168.7.9", host: str = HOST) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=(address, 4000))
        return httpx.AsyncClient(transport=transport, base_url=f"https://{host}:8421")

    def local(self, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=("127.0.0.1", 4000))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost:8420", headers=headers)

    async def invite(self, **wanted: Any) -> dict[str, Any]:
        async with self.local(**OWNER) as owner:
            answer = await owner.post("/api/v1/pairing", json=wanted)
            assert answer.status_code == 201, answer.text
            made: dict[str, Any] = answer.json()
            return made

    async def stage(self) -> str:
        async with self.local(**OWNER) as owner:
            return str((await owner.get("/api/v1/pairing")).json()["stage"])


def play(home: Path, story: Callable[[Place], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        await story(Place(home, **settings))

    asyncio.run(run())


async def try_token(client: httpx.AsyncClient, token: str, name: str = "phone") -> httpx.Response:
    return await client.post("/pair", json={"token": token, "name": name})


def test_the_network_gets_nothing_but_the_page_and_that_only_while_invited(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        pages = ["/pair", "/pair/pair.js", "/pair/pair.css", "/pair/authority.crt"]
        others = ["/", "/secret", "/events", "/docs", "/openapi.json", "/api/v1/devices", "/api/v1/devices/me"]
        others += ["/api/v1/pairing", "/pair/", "/pair/qr", "/pair/../secret", "/pair/%2e%2e/secret", "//secret"]
        async with place.lan() as phone:
            for path in pages + others:
                assert (await phone.get(path)).status_code == 401, path
            await place.invite()
            for path in pages:
                answer = await phone.get(path)
                assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), path
            for path in others:
                answer = await phone.get(path)
                assert answer.status_code == 401, path
                assert b"cup" not in answer.content
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                assert (await phone.request(method, "/secret")).status_code == 401
            page = await phone.get("/", headers={"Accept": "text/html"})
            assert page.status_code == 401
            assert "reflectworld pair" in page.text
            place.clock.now += LIFETIME_S
            for path in pages + others:
                assert (await phone.get(path)).status_code == 401, path

    play(tmp_path, story)


def test_pairing_from_the_code_to_the_key(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        made = await place.invite()
        token = token_of(made["url"])
        assert re.fullmatch(rf"https://{HOST}:0/pair#token={token}&fp=[\w-]{{43}}", made["url"])
        encoded = made["url"].rpartition("fp=")[2]
        assert base64.urlsafe_b64decode(encoded + "=").hex(":").upper() == made["fingerprint"]
        assert any(url.startswith("https://10.231.77.1:0/pair#") for url in made["others"])
        assert made["qr_svg"].startswith("<svg")
        assert base64.b64decode(made["qr_png"]).startswith(b"\x89PNG")
        async with place.lan() as phone:
            answer = await try_token(phone, token, "Eileen's  phone")
            assert answer.status_code == 201
            body = answer.json()
            assert (body["device"]["name"], body["device"]["scopes"]) == ("Eileen's phone", ["ask", "publish"])
            assert answer.headers["set-cookie"].startswith("__Host-reflectworld=")
            # The browser goes on with its cookie, programs with the key.
            assert (await phone.get("/secret")).json() == {"secret": "where the cup is"}
            me = (await phone.get("/api/v1/devices/me")).json()
            assert (me["name"], me["local"]) == ("Eileen's phone", False)
            for method, path in (
                ("GET", "/api/v1/devices"),
                ("POST", "/api/v1/pairing"),
                ("DELETE", "/api/v1/devices/d1"),
            ):
                refused = await phone.request(method, path, json={} if method == "POST" else None)
                assert refused.status_code == 403, path
        async with place.lan("192.168.7.20") as program:
            program.headers["Authorization"] = f"Bearer {body['key']}"
            assert (await program.get("/secret")).status_code == 200
            program.headers["Authorization"] = f"Bearer {body['key'][:-1]}"
            assert (await program.get("/secret")).status_code == 401
        async with place.local(**OWNER) as owner:
            report = (await owner.get("/api/v1/pairing")).json()
            assert (report["stage"], report["device"]["id"], report["from"]) == ("used", "d1", "192.168.7.9")
            listed = (await owner.get("/api/v1/devices")).json()
            assert [one["name"] for one in listed] == ["Eileen's phone"]
            assert body["key"] not in repr(listed)

    play(tmp_path, story)


def test_used_old_and_guessed_tokens_fail(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        first = token_of((await place.invite())["url"])
        second = token_of((await place.invite())["url"])
        async with place.lan() as phone, place.lan("192.168.7.10") as other:
            assert (await try_token(phone, first)).status_code == 403, "replaced by the second"
            assert (await try_token(phone, second)).status_code == 201
            assert (await try_token(phone, second)).status_code == 410, "used, by whoever has a key"
            assert (await try_token(other, second)).status_code == 401, "used"
            third = token_of((await place.invite())["url"])
            place.clock.now += LIFETIME_S
            assert await place.stage() == "expired"
            assert (await try_token(other, third)).status_code == 401
        fourth = token_of((await place.invite())["url"])
        async with place.lan("192.168.7.11") as guesser, place.lan("192.168.7.12") as honest:
            for _ in range(5):
                assert (await try_token(guesser, "x" * 22)).status_code == 403
            assert (await try_token(guesser, fourth)).status_code == 429, "also the right one"
            assert (await try_token(honest, fourth)).status_code == 201
        assert len(place.access.devices) == 2

    play(tmp_path, story)


def test_guessing_from_everywhere_locks_pairing_until_it_is_invited_anew(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        token = token_of((await place.invite())["url"])
        for number in range(20):
            async with place.lan(f"192.168.7.{20 + number // 4}") as guesser:
                assert (await try_token(guesser, f"guess {number}")).status_code == 403
        assert await place.stage() == "locked"
        async with place.lan() as phone:
            assert (await try_token(phone, token)).status_code == 401
            token = token_of((await place.invite())["url"])
            assert (await try_token(phone, token)).status_code == 201

    play(tmp_path, story)


def test_malformed_tries_are_refused_in_words(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.invite(name="hall", scopes=["publish"])
        async with place.lan() as phone:
            for body in (
                b"",
                b"{",
                b"[]",
                b'{"token": 7}',
                b'{"token": "x", "more": 1}',
                b'{"token": "' + b"x" * 300 + b'"}',
            ):
                answer = await phone.post("/pair", content=body, headers={"Content-Type": "application/json"})
                assert answer.status_code == 422, body
                assert answer.headers["content-type"] == "application/problem+json"
            answer = await phone.post("/pair", data={"token": "x"})
            assert answer.status_code == 422, "a form of another page"

    play(tmp_path, story)


def test_only_the_owner_invites(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        async with place.local() as page:
            # Any account of this device reaches localhost; only its owner reads run.token.
            answer = await page.post("/api/v1/pairing", json={})
            assert answer.status_code == 403
            assert "reflectworld pair" in answer.json()["detail"]
            assert (await page.get("/api/v1/devices")).status_code == 200
        async with place.lan() as phone:
            answer = await phone.post("/api/v1/pairing", json={}, headers={"Authorization": f"Bearer {RUN_TOKEN}"})
            assert answer.status_code == 401, "the secret is good on this device only"
        token = token_of((await place.invite(name="tablet", scopes=["admin"]))["url"])
        async with place.lan() as tablet:
            assert (await try_token(tablet, token, "says otherwise")).json()["device"]["name"] == "tablet"
            assert (await tablet.post("/api/v1/pairing", json={})).status_code == 201
            assert (await tablet.delete("/api/v1/pairing")).status_code == 204
            assert await place.stage() == "none"
            assert (await tablet.patch("/api/v1/devices/d1", json={"name": "hall"})).json()["name"] == "hall"
            assert (await tablet.delete("/api/v1/devices/d9")).status_code == 404
            # Who revokes itself is told that it is done, and is out from then on; what else it had open has ended.
            events = asyncio.create_task(tablet.get("/events"))
            await asyncio.sleep(0.1)
            done = await tablet.delete("/api/v1/devices/hall")
            assert (done.status_code, done.json()["name"]) == (200, "hall")
            await asyncio.wait_for(events, 2)
            assert (await tablet.get("/secret")).status_code == 401

    play(tmp_path, story)


def test_foreign_hosts_and_origins_are_refused(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        _, key = place.access.devices.add("phone", frozenset())
        bearer = {"Authorization": f"Bearer {key}"}
        async with place.lan() as phone:
            for host in ("evil.example", "evil.example:8421", f"{HOST}.evil.example", "", "192.168.7.3", "a b"):
                answer = await phone.get("/secret", headers={**bearer, "Host": host})
                assert answer.status_code == 421, host
                answer = await phone.get("/pair", headers={"Host": host})
                assert answer.status_code == 421, host
            twice = httpx.Headers([("Host", f"{HOST}:8421"), ("Host", "evil.example"), *bearer.items()])
            assert (await phone.get("/secret", headers=twice)).status_code == 421
            for origin in (
                "https://evil.example",
                "null",
                f"http://{HOST}:8421",
                f"https://{HOST}",
                f"https://{HOST}:8420",
            ):
                for method, path in (("POST", "/echo"), ("GET", "/secret"), ("GET", "/events"), ("OPTIONS", "/echo")):
                    answer = await phone.request(method, path, headers={**bearer, "Origin": origin})
                    assert answer.status_code == 403, (origin, path)
                    assert "access-control-allow-origin" not in answer.headers
            answer = await phone.post("/echo", content=b"abc", headers={**bearer, "Origin": f"https://{HOST}:8421"})
            assert answer.json() == {"bytes": 3}
            picture = {**bearer, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
            assert (await phone.get("/secret", headers=picture)).status_code == 403
        async with place.local() as page:
            assert (await page.get("/secret")).status_code == 200
            assert (await page.post("/echo", headers={"Origin": "http://localhost:3000"})).status_code == 403
            assert (await page.get("/secret", headers={"Host": "rebound.example"})).status_code == 421
            # A page that rebound its name to 127.0.0.1 speaks to this device, and is not this device.
            assert (await page.get("/secret", headers={"Host": HOST})).status_code == 401
            assert (await page.get("/secret", headers={"X-Forwarded-For": "192.168.7.9"})).status_code == 401

    play(tmp_path, story)


def test_websockets_of_strangers_are_closed(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        _, key = place.access.devices.add("phone", frozenset())

        async def knock(**headers: str) -> dict[str, Any]:
            given = {"host": f"{HOST}:8421", **headers}
            sent: list[Any] = []

            async def receive() -> dict[str, Any]:
                return {"type": "websocket.connect"}

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {
                "type": "websocket",
                "scheme": "wss",
                "path": "/ws",
                "raw_path": b"/ws",
                "query_string": b"",
                "headers": [(name.encode(), value.encode()) for name, value in given.items()],
                "client": ("192.168.7.9", 4000),
                "server": ("192.168.7.2", 8421),
                "subprotocols": [],
                "root_path": "",
            }
            await place.app(scope, receive, send)
            assert len(sent) == 1
            message: dict[str, Any] = sent[0]
            return message

        assert (await knock())["reason"] == "unauthorised"
        assert (await knock(host="evil.example"))["reason"] == "host"
        assert (await knock(origin="https://evil.example"))["reason"] == "origin"
        known = await knock(authorization=f"Bearer {key}", origin=f"https://{HOST}:8421")
        assert known["type"] == "websocket.close", "there is no such route"
        assert known.get("reason") not in {"unauthorised", "host", "origin"}

    play(tmp_path, story)


def test_every_answer_has_its_headers(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.invite()
        async with place.lan() as phone, place.local() as page:
            answers = [
                await phone.get("/pair"),
                await phone.get("/nothing"),
                await phone.get("/pair", headers={"Host": "evil.example"}),
                await page.get("/secret"),
                await page.get("/nothing"),
            ]
            for answer in answers:
                policy = answer.headers["content-security-policy"]
                assert "unsafe" not in policy
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["referrer-policy"] == "no-referrer"
                assert "strict-transport-security" not in answer.headers
                assert "no-store" in answer.headers["cache-control"]
            assert (await page.get("/page")).headers.get_list("content-security-policy") == ["own"]

    play(tmp_path, story)


def test_the_page_keeps_to_the_policy_and_is_honest() -> None:
    folder = Path(__import__("edge.serve").serve.__file__).parent / "static"
    page = (folder / "pair.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert not re.search(r"(?:src|href)=\"(?!/|data:,)", page)
    for word in ("service worker", "installing", "fingerprint", "/pair/authority.crt", "Certificate Trust Settings"):
        assert word in page, word
    script = (folder / "js" / "pair.js").read_text()
    assert "innerHTML" not in script
    for asset in re.findall(r"(?:src|href)=\"(/pair/[^\"]+)\"", page):
        assert asset in {"/pair/pair.js", "/pair/pair.css", "/pair/authority.crt"}


def test_the_cookie_is_renewed_when_a_page_is_opened(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        _, key = place.access.devices.add("phone", frozenset())
        async with place.lan() as phone:
            cookie = {"Cookie": f"__Host-reflectworld={key}"}
            opened = await phone.get("/page", headers={**cookie, "Accept": "text/html,*/*"})
            assert key in opened.headers["set-cookie"]
            assert "set-cookie" not in (await phone.get("/secret", headers=cookie)).headers

    play(tmp_path, story)


def test_long_bodies_are_refused_by_what_they_say_and_are(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        async with place.local() as page:
            assert (await page.post("/echo", content=b"x" * 5000)).json() == {"bytes": 5000}
            assert (await page.post("/echo", content=b"x" * 5001)).status_code == 413

            async def pieces() -> Any:
                for _ in range(6):
                    yield b"x" * 1000

            answer = await page.post("/echo", content=pieces())
            assert (answer.status_code, answer.headers["connection"]) == (413, "close")
            assert (await page.post("/echo", headers={"Content-Length": "9" * 40})).status_code == 413
            assert (await page.post("/pair", content=b"x" * 9000)).status_code == 413

    play(tmp_path, story, max_body_bytes=5000)


def call(app: Any, receive: Any, client: str = "192.168.7.9") -> list[dict[str, Any]]:
    """One request to an ASGI application, with a body of one's own making."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": (client, 1), "query_string": b""}
    asyncio.run(app(scope, receive, send))
    return sent


async def reading(scope: Any, receive: Any, send: Any) -> None:
    """An application that makes a 400 of whatever goes wrong while it reads, as frameworks do."""
    status = 200
    try:
        while (await receive()).get("more_body"):
            pass
    except Exception:  # noqa: BLE001 -- as frameworks do
        status = 400
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


def test_slow_bodies_are_given_up() -> None:
    async def dripping() -> dict[str, Any]:
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = call(SlowClient(reading, body_s=0.2), dripping)
    assert [message.get("status") for message in sent] == [408, None]
    sent = call(BodyLimit(reading, 3), dripping)
    assert sent[0]["status"] == 413


def test_a_reader_that_takes_nothing_is_given_up() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x", "more_body": True})

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def stuck(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(3600)

    async def run() -> None:
        await SlowClient(endless, body_s=1, write_s=0.05)({"type": "http", "headers": []}, whole, stuck)

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_who_asks_too_often_waits_and_this_device_does_not() -> None:
    clock = Clock()
    app = RateLimit(reading, TokenBuckets(0.5, 2, clock=clock))

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    assert [call(app, whole)[0]["status"] for _ in range(3)] == [200, 200, 429]
    refused = call(app, whole)[0]
    assert (b"retry-after", b"2") in refused["headers"]
    assert call(app, whole, "192.168.7.10")[0]["status"] == 200
    assert {call(app, whole, "127.0.0.1")[0]["status"] for _ in range(5)} == {200}
    clock.now += 2
    assert call(app, whole)[0]["status"] == 200


def test_a_user_certificate_leaves_no_authority_to_trust(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        place.access.pairing.invite()
        async with place.lan() as phone:
            assert (await phone.get("/pair/authority.crt")).status_code == 404

    play(tmp_path, story, certificate=tmp_path / "none.pem", certificate_key=tmp_path / "none.key")

    async def own(place: Place) -> None:
        place.access.pairing.invite()
        async with place.lan() as phone:
            answer = await phone.get("/pair/authority.crt")
            assert answer.headers["content-type"] == "application/x-x509-ca-cert"
            served = place.access.certificates.ensure(place.access.addresses())
            assert hashlib.sha256(answer.content).digest() != served.fingerprint
            invited = await place.invite()
            assert invited["authority"] == grouped(hashlib.sha256(answer.content).digest())

    play(tmp_path, own)
