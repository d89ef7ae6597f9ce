"""The pure rules of pairing: hosts, origins, rates, tokens, and what is open to the network."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.serve.gate import PAIRING, ListenerPolicy
from edge.serve.invitation import (
    LIFETIME_S,
    TRIES_OF_ADDRESS,
    TRIES_OF_ALL,
    Stage,
    Verdict,
    invite,
    present,
)
from edge.serve.limits import TokenBuckets
from edge.serve.origins import (
    LOCAL_NAMES,
    Coming,
    client_group,
    host_admitted,
    is_local,
    is_loopback,
    origin_admitted,
    same_origin,
    split_authority,
)
from edge.serve.protocols import Scope

NAMES = frozenset({"reflectworld-hall.local"})
ADDRESSES = frozenset({"192.168.7.2", "fd00::2"})

labels = st.from_regex(r"\A[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?\Z")
hosts = st.one_of(
    st.text(max_size=60),
    st.builds(".".join, st.lists(labels, min_size=1, max_size=4)),
    st.builds(str, st.ip_addresses(v=4)),
    st.builds("[{}]".format, st.ip_addresses(v=6)),
    st.sampled_from(["localhost", "127.0.0.1", "[::1]", *NAMES, *ADDRESSES, "[fd00::2]"]),
)
ports = st.one_of(st.just(""), st.integers(0, 70_000).map(":{}".format))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("localhost:8420", ("localhost", 8420)),
        ("Reflectworld-Hall.LOCAL.", ("reflectworld-hall.local", None)),
        ("[::1]:1", ("::1", 1)),
        ("[FD00:0::2]", ("fd00::2", None)),
        ("", None),
        (".", None),
        ("a:0", None),
        ("a:65536", None),
        ("a:", None),
        ("user@localhost", None),
        ("localhost/x", None),
        ("localhost\n", None),
        ("::1", None),
        ("[::1", None),
        ("[nonsense]", None),
        ("localhost, evil.example", None),
        ("löcalhost", None),
    ],
)
def test_authorities_are_read_strictly(text: str, parts: tuple[str, int | None] | None) -> None:
    assert split_authority(text) == parts


@given(host=hosts, port=ports)
def test_only_hosts_of_this_device_are_admitted(host: str, port: str) -> None:
    if host_admitted(host + port, NAMES, ADDRESSES):
        bare = host.lower().strip("[]").removesuffix(".")
        canonical = str(ipaddress.ip_address(bare)) if ":" in bare else bare
        assert canonical in NAMES | ADDRESSES | LOCAL_NAMES


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:9", "192.168.7.2:8421", "[fd00::2]", *NAMES])
def test_hosts_of_this_device_are_admitted(host: str) -> None:
    assert host_admitted(host, NAMES, ADDRESSES)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "evil.example",
        "localhost.evil.example",
        "evil.example:8420",
        "reflectworld-hall.local.evil.example",
        "192.168.7.3",
        "0.0.0.0",
        "127.0.0.2",
        "2130706433",
        "0x7f000001",
        "[::ffff:7f00:1]",
    ],
)
def test_other_hosts_are_not(host: str | None) -> None:
    assert not host_admitted(host, NAMES, ADDRESSES)


@given(
    host=st.sampled_from(["localhost:8420", "reflectworld-hall.local:8421", "192.168.7.2:8421"]),
    origin=st.one_of(
        st.text(max_size=40), st.builds("{}://{}{}".format, st.sampled_from(["http", "https"]), hosts, ports)
    ),
    scheme=st.sampled_from(["http", "https", "ws", "wss"]),
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
)
def test_a_foreign_origin_is_never_admitted(host: str, origin: str, scheme: str, method: str) -> None:
    if origin_admitted(Coming(method, scheme, host, origin)):
        assert split_authority(origin.partition("://")[2]) == split_authority(host)


def test_origins() -> None:
    host = "reflectworld-hall.local:8421"
    assert same_origin(f"https://{host}", "https", host)
    assert same_origin(f"https://{host}", "wss", host)
    assert same_origin("https://cam.example.org", "http", "cam.example.org"), "TLS was taken off by a proxy"
    assert same_origin("http://localhost", "http", "localhost:80")
    assert not same_origin(f"http://{host}", "https", host), "a plain page is anybody's on the way"
    assert not same_origin("https://reflectworld-hall.local:8420", "https", host)
    assert not same_origin("null", "https", host)
    assert not same_origin("", "https", host)
    assert not same_origin(f"https://{host}", "https", None)


def test_fetch_metadata_lets_foreign_pages_open_pages_only() -> None:
    opening = Coming("GET", "https", "localhost", None, "cross-site", "navigate", "document")
    assert origin_admitted(opening)
    for site in ("cross-site", "same-site"):
        assert not origin_admitted(Coming("GET", "https", "localhost", None, site, "no-cors", "image"))
        assert not origin_admitted(Coming("GET", "https", "localhost", None, site, "navigate", "iframe"))
        assert not origin_admitted(Coming("POST", "https", "localhost", None, site, "navigate", "document"))
    assert origin_admitted(Coming("POST", "https", "localhost", None, "same-origin", "cors", "empty"))
    assert origin_admitted(Coming("GET", "https", "localhost", None, "none", "navigate", "document"))


@given(
    client=st.one_of(st.none(), st.builds(str, st.ip_addresses()), st.text(max_size=20)),
    host=st.sampled_from(["localhost", "127.0.0.1:8420", "[::1]"]),
)
def test_only_connections_of_this_device_are_local(client: str | None, host: str) -> None:
    if is_local({"host": host}, client):
        assert client is not None
        assert is_loopback(client)


def test_local_needs_host_and_origin_of_this_device() -> None:
    assert is_local({"host": "localhost:8420"}, "127.0.0.1")
    assert is_local({"host": "[::1]:8420", "origin": "http://[::1]:8420"}, "::1")
    assert is_local({"host": "127.0.0.1"}, "::ffff:127.0.0.1")
    assert not is_local({"host": "reflectworld-hall.local"}, "127.0.0.1")
    assert not is_local({"host": "localhost", "origin": "http://localhost:3000"}, "127.0.0.1")
    assert not is_local({"host": "localhost", "origin": "null"}, "127.0.0.1")
    assert not is_local({}, "127.0.0.1")
    for header in ("x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host"):
        assert not is_local({"host": "localhost", header: "192.168.7.9"}, "127.0.0.1"), header


def test_guessers_are_counted_by_what_one_host_can_have() -> None:
    assert client_group("2001:db8:1:2::5") == client_group("2001:db8:1:2:ffff::9")
    assert client_group("2001:db8:1:2::5") != client_group("2001:db8:1:3::5")
    assert client_group("::ffff:192.168.7.9") == client_group("192.168.7.9") == "192.168.7.9"
    assert client_group(None) == client_group("nonsense")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(
    rate=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 2)), max_size=120),
)
def test_no_span_holds_more_than_burst_and_rate(rate: float, burst: int, steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    buckets = TokenBuckets(rate, burst, clock=clock)
    taken: dict[int, list[float]] = {}
    for pause, key in steps:
        clock.now += pause
        if buckets.take(str(key)) == 0.0:
            taken.setdefault(key, []).append(clock.now)
    for times in taken.values():
        for i, begin in enumerate(times):
            for j in range(i, len(times)):
                assert j - i + 1 <= burst + rate * (times[j] - begin) + 1e-6


@given(rate=st.floats(0.05, 50), burst=st.integers(1, 20), extra=st.integers(0, 5))
def test_who_waits_as_told_is_let_through(rate: float, burst: int, extra: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(rate, burst, clock=clock)
    assert [buckets.take("a") for _ in range(burst)] == [0.0] * burst
    for _ in range(extra):
        buckets.take("a")  # refusals cost nothing
    wait = buckets.take("a")
    assert wait > 0
    clock.now += wait
    assert buckets.take("a") == 0.0
    assert buckets.take("b") == 0.0, "another key has its own"


def test_buckets_are_bounded_and_forget_the_longest_idle() -> None:
    buckets = TokenBuckets(0.001, 1, clock=Clock(), max_keys=3)
    for key in "abcd":
        assert buckets.take(key) == 0.0
    assert len(buckets) == 3
    assert buckets.take("d") > 0
    assert buckets.take("a") == 0.0
    for bad in ((0, 1, 1), (1, 0.5, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="must be"):
            TokenBuckets(bad[0], bad[1], max_keys=bad[2])


tries = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.floats(0, 120)), max_size=60)


@given(tries)
def test_a_token_is_accepted_once_in_time_and_not_from_guessers(steps: list[tuple[int, bool, float]]) -> None:
    now = 500.0
    invitation, token = invite(now, frozenset({Scope.ASK}), "phone")
    accepted = 0
    wrong: dict[str, int] = {}
    for who, right, pause in steps:
        now += pause
        address = f"10.0.0.{who}"
        blocked = wrong.get(address, 0) >= TRIES_OF_ADDRESS
        over = accepted or sum(wrong.values()) >= TRIES_OF_ALL or now >= 500.0 + LIFETIME_S
        invitation, verdict = present(invitation, token if right else token[:-1], address, now)
        if over:
            assert verdict is Verdict.CLOSED
        elif blocked:
            assert verdict is Verdict.BLOCKED
        elif right:
            assert verdict is Verdict.ACCEPTED
            accepted += 1
        else:
            assert verdict is Verdict.WRONG
            wrong[address] = wrong.get(address, 0) + 1
        assert accepted <= 1
        assert sum(invitation.wrong.values()) <= TRIES_OF_ALL
        assert invitation.stage(now) is (
            Stage.USED
            if accepted
            else Stage.LOCKED
            if sum(wrong.values()) >= TRIES_OF_ALL
            else Stage.OPEN
            if now < 500.0 + LIFETIME_S
            else Stage.EXPIRED
        )


@given(st.text(max_size=300))
def test_no_other_text_is_the_token(guess: str) -> None:
    invitation, token = invite(0.0, frozenset({Scope.ASK}))
    _, verdict = present(invitation, guess, "10.0.0.1", 1.0)
    assert verdict is (Verdict.ACCEPTED if guess == token else Verdict.WRONG)


def test_tokens_are_long_and_not_kept() -> None:
    first, token = invite(0.0, frozenset(Scope))
    _, other = invite(0.0, frozenset(Scope))
    assert token != other
    assert len(token) == 22  # 128 bits in base64
    assert token not in repr(first)


@given(
    paired=st.integers(0, 3),
    inviting=st.booleans(),
    known=st.booleans(),
    method=st.sampled_from(["GET", "HEAD", "POST", "DELETE", "WEBSOCKET"]),
    path=st.one_of(
        st.text(max_size=20), st.sampled_from(sorted({path for _, path in PAIRING} | {"/", "/pair/", "/pair/../api"}))
    ),
)
def test_the_network_gets_the_pairing_page_at_most(
    paired: int, inviting: bool, known: bool, method: str, path: str
) -> None:
    policy = ListenerPolicy(paired, inviting)
    assert policy.lan_open == (paired > 0 or inviting)
    admitted = policy.admits(method, path, known=known)
    if known:
        assert admitted
    elif admitted:
        assert inviting
        assert (method, path) in PAIRING
