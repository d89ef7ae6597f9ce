"""TLS: the device's own authority and the certificate that it signs, or a certificate of the user's own.

The authority is made once and may sign only for names in `.local`, `localhost` and private addresses (RFC 5280, 4.2.1.10),
so that a phone which trusts it trusts nothing else to it. The certificate is renewed before it expires and when the
device gets an address or a name that it does not have. iOS takes 825 days at most from a trusted authority of the user's.
"""

from __future__ import annotations

import ipaddress
import ssl
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edge.clock import utc_now
from edge.errors import CertificateError
from edge.serve.origins import canonical
from edge.serve.private import write_private
from edge.settings import ServeSettings

AUTHORITY_DAYS: Final = 3650
LEAF_DAYS: Final = 397
RENEW_DAYS: Final = 30
# A device without a battery clock starts in 1970: what it signs then must still be good when the clock is right.
CLOCK_FLOOR: Final = datetime(2025, 1, 1, tzinfo=UTC)
# Private, shared (a Tailscale address is one), link-local and loopback addresses.
PERMITTED: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip

_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Served:
    """The certificate that is served."""

    chain: Path  # PEM
    key: Path  # PEM
    fingerprint: bytes  # SHA-256 of the first certificate of the chain
    own_authority: bool  # signed by the device's authority, else the user's own
    expires: float  # UTC POSIX seconds
    uncovered: tuple[str, ...] = ()  # addresses of the device that the certificate is not for

    @property
    def groups(self) -> str:
        """The fingerprint as people compare it: `AB:CD:…`."""
        return grouped(self.fingerprint)


def grouped(fingerprint: bytes) -> str:
    """A fingerprint as browsers show it: pairs of hex digits, joined by colons."""
    return fingerprint.hex(":").upper()


class Certificates:
    """The certificates of one home, in its folder `tls`. What reads or writes them waits for the disk.

    Args:
        home: the folder of the memory.
        settings: whether the user has a certificate of their own.
        name: first label of the device's name.
        clock: UTC POSIX seconds.
    """

    def __init__(self, home: Path, settings: ServeSettings, name: str, *, clock: Callable[[], float] = utc_now) -> None:
        self._folder = home / "tls"
        self._settings = settings
        self._name = f"{name}.local"
        self._clock = clock
        self._mutex = threading.RLock()
        self._context: ssl.SSLContext | None = None
        self._loaded: tuple[bytes, int] | None = None

    def ensure(self, addresses: Sequence[str]) -> Served:
        """The certificate to serve now; it is made or renewed if need be.

        Args:
            addresses: of the device on its networks.

        Raises:
            CertificateError: the user's own certificate, or a file of the device's own, cannot be used.
            OSError: the folder cannot be written.
        """
        with self._mutex:
            return self._ensure(addresses)

    def context(self, served: Served) -> ssl.SSLContext:
        """The TLS context of the listener: one object, whose certificate follows for connections to come.

        Raises:
            CertificateError: certificate and key do not belong together.
        """
        if self._context is None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2
            self._context.set_alpn_protocols(["http/1.1"])
        stamp = (served.fingerprint, served.key.stat().st_mtime_ns)
        if stamp != self._loaded:
            try:
                self._context.load_cert_chain(served.chain, served.key)
            except (ssl.SSLError, OSError) as error:
                raise CertificateError(
                    f"“{served.chain}” and “{served.key}” cannot be served ({error}); give a certificate and its key, unencrypted."
                ) from error
            self._loaded = stamp
        return self._context

    def authority_certificate(self) -> bytes | None:
        """The authority's certificate in DER, for phones to trust; None: the user's own certificate is served.

        Raises:
            CertificateError: a file cannot be used.
            OSError: it cannot be written.
        """
        if self._settings.certificate is not None:
            return None
        with self._mutex:
            authority, _ = self._authority()
        return authority.public_bytes(serialization.Encoding.DER)

    def _ensure(self, addresses: Sequence[str]) -> Served:
        settings = self._settings
        if settings.certificate is not None or settings.certificate_key is not None:
            if settings.certificate is None or settings.certificate_key is None:
                raise CertificateError(
                    "A certificate of your own needs both settings, serve.certificate and serve.certificate_key; set the other one too."
                )
            return self._user_certificate(settings.certificate, settings.certificate_key)
        wanted = [address for address in addresses if _permitted(address)]
        uncovered = tuple(address for address in addresses if not _permitted(address))
        authority, authority_key = self._authority()
        chain, key = self._folder / "device.pem", self._folder / "device.key"
        leaf = self._usable_leaf(chain, key, authority, wanted)
        if leaf is None:
            leaf = self._issue(authority, authority_key, wanted)
        return Served(chain, key, leaf.fingerprint(hashes.SHA256()), True, _until(leaf).timestamp(), uncovered)

    def _authority(self) -> tuple[x509.Certificate, _Key]:
        certificate_path, key_path = self._folder / "authority.pem", self._folder / "authority.key"
        if certificate_path.exists() and key_path.exists():
            certificate, key = _load(certificate_path), _load_key(key_path)
            if certificate.public_key() != key.public_key():
                raise CertificateError(
                    f"“{certificate_path}” and “{key_path}” do not belong together; remove both, and trust the new authority on the phones."
                )
            if _until(certificate) - timedelta(days=RENEW_DAYS) > self._now():
                return certificate, key
        key = ec.generate_private_key(ec.SECP256R1())
        start = max(self._now(), CLOCK_FLOOR)
        label = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{self._name} device authority"[:64])])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(label)
            .issuer_name(label)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(CLOCK_FLOOR)
            .not_valid_after(start + timedelta(days=AUTHORITY_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(
                x509.NameConstraints(
                    permitted_subtrees=[
                        x509.DNSName("local"),
                        x509.DNSName("localhost"),
                        *(x509.IPAddress(network) for network in PERMITTED),
                    ],
                    excluded_subtrees=None,
                ),
                critical=True,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(key_path, _private_pem(key))
        write_private(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
        return certificate, key

    def _usable_leaf(
        self, chain: Path, key: Path, authority: x509.Certificate, addresses: Sequence[str]
    ) -> x509.Certificate | None:
        if not (chain.exists() and key.exists()):
            return None
        leaf = _load(chain)
        if leaf.public_key() != _load_key(key).public_key():
            return None  # killed between writing the one and the other
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            return None
        if not leaf.not_valid_before_utc <= self._now() < _until(leaf) - timedelta(days=RENEW_DAYS):
            return None
        covered = _covered(leaf)
        return leaf if {self._name, *addresses} <= covered else None

    def _issue(self, authority: x509.Certificate, authority_key: _Key, addresses: Sequence[str]) -> x509.Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        now = self._now()
        # The phones' clocks are right where the device's is not, and may be slow by a little.
        start = min(now, CLOCK_FLOOR) if now < CLOCK_FLOOR else now - timedelta(days=1)
        names = [x509.DNSName(self._name), x509.DNSName("localhost")]
        literals = [x509.IPAddress(ipaddress.ip_address(a)) for a in dict.fromkeys([*addresses, "127.0.0.1", "::1"])]
        leaf = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name[:64])]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(max(now, CLOCK_FLOOR) + timedelta(days=LEAF_DAYS))
            .add_extension(x509.SubjectAlternativeName([*names, *literals]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        write_private(self._folder / "device.key", _private_pem(key))
        write_private(self._folder / "device.pem", leaf.public_bytes(pem) + authority.public_bytes(pem), mode=0o644)
        return leaf

    def _user_certificate(self, chain: Path, key: Path) -> Served:
        certificate = _load(chain)
        try:
            mode = key.stat().st_mode
        except OSError as error:
            raise CertificateError(
                f"The key “{key}” cannot be read ({error.strerror}); correct serve.certificate_key or its permissions."
            ) from error
        if stat.S_IMODE(mode) & 0o007:
            raise CertificateError(f"The key “{key}” is open to every account of this device; run `chmod o= {key}`.")
        if _until(certificate) <= self._now():
            raise CertificateError(
                f"Your certificate “{chain}” expired on {_until(certificate):%Y-%m-%d}; renew it, or unset serve.certificate."
            )
        fingerprint = certificate.fingerprint(hashes.SHA256())
        return Served(chain, key, fingerprint, False, _until(certificate).timestamp())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _permitted(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    return any(parsed in network for network in PERMITTED if network.version == parsed.version)


def _covered(leaf: x509.Certificate) -> set[str]:
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    return {*names.get_values_for_type(x509.DNSName), *(canonical(str(address)) or "" for address in addresses)}


def _until(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError, IndexError) as error:
        raise CertificateError(
            f"“{path}” is not a certificate in PEM that can be read; put it right, or remove it if the device made it."
        ) from error


def _load_key(path: Path) -> _Key:
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise CertificateError(f"The key “{path}” can be read by others on this device; run `chmod 600 {path}`.")
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise CertificateError(f"“{path}” is not a private key in PEM; remove it, and it is made anew.") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"“{path}” is not a key of the kind that the device makes; remove it.")
    return key
