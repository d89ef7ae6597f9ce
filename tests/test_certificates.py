"""The device's authority and certificate, and certificates of the user's own."""

from __future__ import annotations

import ipaddress
import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from edge.errors import CertificateError
from edge.serve.certificates import PERMITTED, Certificates, Served, grouped
from edge.settings import ServeSettings

LAN = ("192.168.7.2", "fd00::2")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Clock:
    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at.timestamp()


def certificates(home: Path, clock: Clock | None = None, **settings: object) -> Certificates:
    return Certificates(home, ServeSettings.model_validate(settings), "reflectworld-t", clock=clock or Clock())


def leaf_of(served: Served) -> x509.Certificate:
    return x509.load_pem_x509_certificates(served.chain.read_bytes())[0]


def authority_of(made: Certificates) -> x509.Certificate:
    data = made.authority_certificate()
    assert data is not None
    return x509.load_der_x509_certificate(data)


def test_it_is_good_for_the_name_the_addresses_and_localhost(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    served = made.ensure(LAN)
    leaf, authority = leaf_of(served), authority_of(made)
    builder = PolicyBuilder().store(Store([authority])).time(NOW)
    for name in ("reflectworld-t.local", "localhost"):
        assert builder.build_server_verifier(x509.DNSName(name)).verify(leaf, [])[0] == leaf
    for address in (*LAN, "127.0.0.1", "::1"):
        assert builder.build_server_verifier(x509.IPAddress(ipaddress.ip_address(address))).verify(leaf, [])
    with pytest.raises(VerificationError):
        builder.build_server_verifier(x509.DNSName("example.org")).verify(leaf, [])
    assert served.own_authority
    assert served.uncovered == ()
    assert served.groups == grouped(leaf.fingerprint(hashes.SHA256()))
    assert len(served.groups.split(":")) == 32
    made.context(served)


def test_private_keys_are_private(tmp_path: Path) -> None:
    certificates(tmp_path).ensure(LAN)
    keys = list((tmp_path / "tls").glob("*.key"))
    assert len(keys) == 2
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    (tmp_path / "tls" / "device.key").chmod(0o644)
    with pytest.raises(CertificateError, match="chmod 600"):
        certificates(tmp_path).ensure(LAN)


def test_the_authority_can_sign_for_nothing_else(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    made.ensure(LAN)
    authority = authority_of(made)
    key = serialization.load_pem_private_key((tmp_path / "tls" / "authority.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = PolicyBuilder().store(Store([authority])).time(NOW)
    subjects: list[x509.DNSName | x509.IPAddress] = [
        x509.DNSName("bank.example"),
        x509.IPAddress(ipaddress.ip_address("1.1.1.1")),
        x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
    ]
    for subject in subjects:
        forged = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(7)
            .not_valid_before(NOW - timedelta(days=1))
            .not_valid_after(NOW + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([subject]), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        with pytest.raises(VerificationError):
            builder.build_server_verifier(subject).verify(forged, [])
    basic = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert basic.ca
    assert basic.path_length == 0


def test_it_stays_until_there_is_reason(tmp_path: Path) -> None:
    clock = Clock()
    first = certificates(tmp_path, clock).ensure(LAN)
    authority = authority_of(certificates(tmp_path, clock))
    assert certificates(tmp_path, clock).ensure(LAN) == first
    assert certificates(tmp_path, clock).ensure(LAN[:1]).fingerprint == first.fingerprint, "fewer addresses"
    moved = certificates(tmp_path, clock).ensure((*LAN, "10.1.2.3"))
    assert moved.fingerprint != first.fingerprint
    clock.at += timedelta(days=366)
    assert certificates(tmp_path, clock).ensure(LAN).fingerprint == moved.fingerprint
    clock.at += timedelta(days=2)
    renewed = certificates(tmp_path, clock).ensure(LAN)
    assert renewed.fingerprint != moved.fingerprint
    assert renewed.expires > clock() + 390 * 86_400
    assert authority_of(certificates(tmp_path, clock)) == authority
    clock.at += timedelta(days=3650)
    assert authority_of(certificates(tmp_path, clock)) != authority


def test_addresses_that_are_not_private_are_left_out_and_said(tmp_path: Path) -> None:
    served = certificates(tmp_path).ensure(("192.168.7.2", "203.0.113.9"))
    assert served.uncovered == ("203.0.113.9",)
    assert all(network.is_private or network == PERMITTED[1] for network in PERMITTED)


def test_a_clock_that_starts_in_1970_makes_something_that_lasts(tmp_path: Path) -> None:
    clock = Clock(datetime(1970, 1, 1, tzinfo=UTC))
    made = certificates(tmp_path, clock)
    made.ensure(LAN)
    authority = authority_of(made)
    clock.at = NOW
    later = certificates(tmp_path, clock)
    leaf = leaf_of(later.ensure(LAN))
    assert authority_of(later) == authority
    assert leaf.not_valid_before_utc <= NOW < leaf.not_valid_after_utc


def test_a_kill_between_key_and_certificate_is_mended(tmp_path: Path) -> None:
    served = certificates(tmp_path).ensure(LAN)
    other = tmp_path / "other"
    certificates(other).ensure(LAN)
    served.key.write_bytes((other / "tls" / "device.key").read_bytes())
    mended = certificates(tmp_path).ensure(LAN)
    assert mended.fingerprint != served.fingerprint
    certificates(tmp_path).context(mended)
    served.chain.write_text("nonsense")
    with pytest.raises(CertificateError, match="device made it"):
        certificates(tmp_path).ensure(LAN)


def test_many_threads_make_one(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        assert len({served.fingerprint for served in pool.map(made.ensure, [LAN] * 8)}) == 1


def own(tmp_path: Path, *, days: int = 90) -> tuple[Path, Path]:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cam.example.org")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=100))
        .not_valid_after(NOW + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    chain_path, key_path = tmp_path / "own.pem", tmp_path / "own.key"
    chain_path.write_bytes(certificate.public_bytes(pem))
    key_path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    key_path.chmod(0o640)
    return chain_path, key_path


def test_a_certificate_of_the_users_own(tmp_path: Path) -> None:
    chain, key = own(tmp_path)
    made = certificates(tmp_path, certificate=chain, certificate_key=key)
    served = made.ensure(LAN)
    assert (served.chain, served.own_authority) == (chain, False)
    assert made.authority_certificate() is None
    assert not (tmp_path / "tls").exists()
    context = made.context(served)
    own(tmp_path)  # renewed by whatever renews it
    renewed = made.ensure(LAN)
    assert renewed.fingerprint != served.fingerprint
    assert made.context(renewed) is context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_certificate_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    chain, key = own(tmp_path)
    with pytest.raises(CertificateError, match="both settings"):
        certificates(tmp_path, certificate=chain).ensure(LAN)
    with pytest.raises(CertificateError, match="permissions"):
        certificates(tmp_path, certificate=chain, certificate_key=tmp_path / "none").ensure(LAN)
    key.chmod(0o644)
    with pytest.raises(CertificateError, match="chmod o="):
        certificates(tmp_path, certificate=chain, certificate_key=key).ensure(LAN)
    key.chmod(0o600)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    made = certificates(tmp_path, certificate=chain, certificate_key=own(stranger)[1])
    with pytest.raises(CertificateError, match="cannot be served"):
        made.context(made.ensure(LAN))
    chain, key = own(tmp_path, days=-1)
    with pytest.raises(CertificateError, match="expired on 2026-05-31"):
        certificates(tmp_path, certificate=chain, certificate_key=key).ensure(LAN)
