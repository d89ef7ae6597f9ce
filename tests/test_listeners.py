"""The listeners over real sockets: TLS, opening and closing, revocation, slow clients, another host's view, mDNS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from edge.cli.pair import POLL_S
from edge.errors import SettingsError
from edge.serve.discovery import SERVICE, Advert
from edge.serve.listeners import PER_ADDRESS, Listeners
from tests.command import Command, reflectworld
from tests.netns import cable, call_inside, inside
from tests.pairing_support import HOST, NAME, RUN_TOKEN, Running, make_access, make_app, running, token_of

__all__ = ["reflectworld"]


def until(true: Callable[[], bool], seconds: float = 8.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def connects(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=2):
            return True
    except ConnectionRefusedError:
        return False


def paired(service: Running, address: str, host: str = HOST) -> httpx.Client:
    """A client that has paired as a phone does."""
    with service.owner() as owner:
        token = token_of(owner.call("POST", "/api/v1/pairing", {})["url"])
    client = service.client(address, host)
    answer = client.post("/pair", json={"token": token, "name": "phone"})
    assert answer.status_code == 201, answer.text
    client.headers["Authorization"] = f"Bearer {answer.json()['key']}"
    return client


def test_tls_opens_for_an_invitation_stays_for_a_device_and_closes_after_the_last(tmp_path: Path) -> None:
    with running(tmp_path, lan_host="127.0.0.1") as service:
        assert httpx.get(f"{service.url}/secret", trust_env=False).status_code == 200
        time.sleep(0.6)
        assert service.access.trouble is None, "closed while nobody may come"
        with service.owner() as owner:
            made = owner.call("POST", "/api/v1/pairing", {})
            assert owner.call("GET", "/api/v1/pairing")["listening"] is True
            port = service.lan_port
            with service.client("127.0.0.1") as stranger:
                assert stranger.get("/pair").status_code == 200
                assert stranger.get("/secret").status_code == 401
            # What the code says is what the listener has.
            served = ssl.get_server_certificate(("127.0.0.1", port))
            fingerprint = x509.load_pem_x509_certificate(served.encode()).fingerprint(hashes.SHA256())
            assert fingerprint.hex(":").upper() == made["fingerprint"]
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/pair", trust_env=False)
            with pytest.raises(httpx.ConnectError, match="certificate"):
                httpx.get(f"https://127.0.0.1:{port}/pair", trust_env=False)
            owner.call("DELETE", "/api/v1/pairing")
            until(lambda: not connects("127.0.0.1", port))
            with closing(paired(service, "127.0.0.1")) as phone:
                assert phone.get("/secret").json() == {"secret": "where the cup is"}
                time.sleep(0.6)
                assert phone.get("/secret").status_code == 200, "it stays"
                with service.client("127.0.0.1") as stranger:
                    assert stranger.get("/pair").status_code == 401, "the page is gone with the invitation"
                port = service.lan_port
                owner.call("DELETE", "/api/v1/devices/phone")
                until(lambda: not connects("127.0.0.1", port))


def test_revoking_ends_an_open_stream_at_once_and_other_devices_go_on(tmp_path: Path) -> None:
    with (
        running(tmp_path, lan_host="127.0.0.1") as service,
        closing(paired(service, "127.0.0.1")) as phone,
        closing(paired(service, "127.0.0.1")) as tablet,
    ):
        ended: dict[str, float] = {}
        flowing = {name: threading.Event() for name in ("phone", "tablet")}

        def listen(name: str, client: httpx.Client) -> None:
            try:
                with client.stream("GET", "/events") as stream:
                    for _ in stream.iter_bytes():
                        flowing[name].set()
            except httpx.HTTPError:
                pass  # the connection is closed at the end of the test
            ended[name] = time.monotonic()

        threads = [threading.Thread(target=listen, args=one) for one in (("phone", phone), ("tablet", tablet))]
        for thread in threads:
            thread.start()
        assert all(event.wait(5) for event in flowing.values())
        began = time.monotonic()
        with service.owner() as owner:
            owner.call("DELETE", "/api/v1/devices/d1")
        threads[0].join(5)
        assert ended["phone"] - began < 1.0
        assert phone.get("/secret").status_code == 401
        assert tablet.get("/secret").status_code == 200
        time.sleep(0.2)
        assert "tablet" not in ended
        with service.owner() as owner:
            owner.call("DELETE", "/api/v1/devices/d2")
        threads[1].join(5)
        assert "tablet" in ended


def test_the_commands_pair_and_revoke_through_the_service(
    home: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.cli.pair.POLL_S", POLL_S / 20)
    with running(home, lan_host="127.0.0.1") as service:
        file = home / "run.token"
        file.write_bytes(orjson.dumps({"url": service.url, "token": RUN_TOKEN, "pid": 1}))
        ran = reflectworld("pair", "--no-wait")
        assert ran.code == 0
        assert "▀" in ran.out or "█" in ran.out
        assert f"https://{HOST}:{service.lan_port}/pair#token=" in ran.out
        made = orjson.loads(reflectworld("pair", "--json", "--name", "hall", "--scope", "publish").out)
        assert made["fingerprint"].split(":")[0] in ran.out
        assert reflectworld("devices", "list", "--json").out == "[]\n"

        def scan() -> None:
            until(lambda: service.access.pairing.report()["device"] is None and service.access.pairing.inviting)
            with service.client("127.0.0.1") as phone:
                phone.post("/pair", json={"token": tokens[-1], "name": "Eileen's phone"})

        tokens: list[str] = []
        invite = service.access.pairing.invite

        def remembered(*arguments: object, **more: object) -> tuple[str, float]:
            made = invite(*arguments, **more)  # type: ignore[arg-type] # passed on as it is
            tokens.append(made[0])
            threading.Thread(target=scan).start()
            return made

        monkeypatch.setattr(service.access.pairing, "invite", remembered)
        ran = reflectworld("pair")
        assert "Paired: Eileen's phone (d1; may ask, publish), from 127.0.0.1." in ran.out
        assert reflectworld("devices", "rename", "d1", "a/b c").out == "d1 is now called a/b c.\n"
        assert "a/b c" in reflectworld("devices", "list").out
        assert reflectworld("devices", "revoke", "a/b c").code == 0
        assert reflectworld("devices", "revoke", "a/b c").code == 2
        # Somebody else's secret does nothing.
        file.write_bytes(orjson.dumps({"url": service.url, "token": "guessed", "pid": 1}))
        assert reflectworld("pair").code == 2


def test_who_does_not_ask_is_hung_up_on(tmp_path: Path) -> None:
    with running(tmp_path, lan_host="127.0.0.1", header_timeout_s=0.4, body_timeout_s=0.4) as service:
        port = int(service.url.rpartition(":")[2])
        heads = [b"", b"GET /secret HTTP/1.1\r\nHost: loc", b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\nGET /se"]
        for head in heads:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as slow:
                slow.sendall(head)
                began = time.monotonic()
                try:
                    while slow.recv(65536):
                        pass
                except ConnectionResetError:
                    pass  # hung up on, hard
                assert time.monotonic() - began < 3
        with socket.create_connection(("127.0.0.1", port), timeout=5) as slow:
            slow.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
            assert slow.recv(65536).startswith(b"HTTP/1.1 408")
        assert httpx.get(f"{service.url}/secret", trust_env=False).status_code == 200


def test_ports_that_are_taken_are_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        access = make_access(tmp_path / "one", port=taken)
        with pytest.raises(SettingsError, match="REFLECTWORLD_SERVE__PORT"):
            Listeners(make_app(access), access).bind()
        with running(tmp_path / "two", lan_host="127.0.0.1", lan_port=taken) as service, service.owner() as owner:
            with pytest.raises(Exception, match="REFLECTWORLD_SERVE__LAN_PORT"):
                owner.call("POST", "/api/v1/pairing", {})
            assert owner.call("GET", "/api/v1/pairing")["stage"] == "none", "withdrawn again"


def test_a_client_on_another_host_gets_nothing_but_the_page(tmp_path: Path) -> None:
    with (
        cable() as wire,
        running(tmp_path, lan_host=wire.here_address, advertise=True, inside=inside(wire.here)) as service,
    ):
        local_port = int(service.url.rpartition(":")[2])

        def there(call: Callable[[], object]) -> object:
            return call_inside(wire.there, call)

        def ask(paths: list[str], host: str = HOST, key: str | None = None, method: str = "GET") -> list[int]:
            def call() -> list[int]:
                with service.client(wire.here_address, host) as client:
                    if key is not None:
                        client.headers["Authorization"] = f"Bearer {key}"
                    return [client.request(method, path).status_code for path in paths]

            found = there(call)
            assert isinstance(found, list)
            return found

        def invite() -> str:
            def call() -> str:
                with service.owner() as owner:
                    return token_of(owner.call("POST", "/api/v1/pairing", {})["url"])

            return call_inside(wire.here, call)

        def try_token(token: str) -> httpx.Response:
            def call() -> httpx.Response:
                with service.client(wire.here_address) as client:
                    return client.post("/pair", json={"token": token, "name": "phone"})

            answer = there(call)
            assert isinstance(answer, httpx.Response)
            return answer

        assert there(lambda: connects(wire.here_address, local_port)) is False, "localhost is this device's own"
        token = invite()
        port = service.lan_port
        page = ["/pair", "/pair/pair.js", "/pair/pair.css", "/pair/authority.crt"]
        rest = ["/", "/secret", "/events", "/api/v1/devices", "/api/v1/pairing", "/metrics", "/static/index.html"]
        assert ask(page) == [200] * len(page)
        assert ask(rest) == [401] * len(rest)
        assert ask(rest, "localhost") == [401] * len(rest), "to say localhost is not to be local"
        assert ask(["/pair", "/secret"], "rebound.example") == [421, 421]
        assert ask(["/secret"], key=RUN_TOKEN) == [401]

        def named() -> list[str]:
            async def look() -> list[str]:
                async with AsyncZeroconf(interfaces=[wire.there_address]) as mdns:
                    info = AsyncServiceInfo(SERVICE, f"{NAME}.{SERVICE}")
                    assert await info.async_request(mdns.zeroconf, 3000)
                    return [str(info.server), str(info.port), *info.parsed_addresses()]

            return asyncio.run(look())

        assert there(named) == [f"{HOST}.", str(port), wire.here_address]
        assert try_token("x" * 22).status_code == 403
        answer = try_token(token)
        assert answer.status_code == 201
        key = answer.json()["key"]
        assert try_token(token).status_code == 401
        assert ask(page) == [401] * len(page)
        assert ask(["/secret"], key=key) == [200]

        def crowd() -> int:
            open_ones = []
            try:
                context = service.trusting()
                for _ in range(PER_ADDRESS + 3):
                    raw = socket.create_connection((wire.here_address, port), timeout=3)
                    try:
                        open_ones.append(context.wrap_socket(raw, server_hostname=wire.here_address))
                    except (OSError, ssl.SSLError):
                        raw.close()
                time.sleep(0.2)
                alive = 0
                for one in open_ones:
                    try:
                        one.sendall(f"GET /pair HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                        alive += one.recv(100).startswith(b"HTTP/1.1 401")
                    except (OSError, ssl.SSLError):
                        pass  # hung up on: one too many
                return alive
            finally:
                for one in open_ones:
                    one.close()

        assert there(crowd) == PER_ADDRESS
        call_inside(wire.here, lambda: service.access.devices.revoke("phone"))
        until(lambda: there(lambda: connects(wire.here_address, port)) is False)


def test_the_advert_comes_and_goes() -> None:
    async def story() -> None:
        advert = Advert("reflectworld-advert-test", 8421, interfaces=["127.0.0.1"])
        await advert.hide()
        await advert.show(["192.168.7.2"])
        await advert.show(["192.168.7.2"])
        assert advert.shown == ("192.168.7.2",)
        async with AsyncZeroconf(interfaces=["127.0.0.1"]) as mdns:
            info = AsyncServiceInfo(SERVICE, f"reflectworld-advert-test.{SERVICE}")
            assert await info.async_request(mdns.zeroconf, 3000)
            assert info.parsed_addresses() == ["192.168.7.2"]
        await advert.hide()
        assert advert.shown == ()
        async with AsyncZeroconf(interfaces=["127.0.0.1"]) as mdns:
            assert not await AsyncServiceInfo(SERVICE, f"reflectworld-advert-test.{SERVICE}").async_request(
                mdns.zeroconf, 500
            )

    asyncio.run(story())
