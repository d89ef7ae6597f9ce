"""Peer connections that also take publishers with RSA certificates, as GStreamer's are.

aiortc offers cipher suites for elliptic curves alone, and where the publisher is the server of DTLS, its certificate decides
(RFC 8827, 6.5, asks for one suite and allows others). aiortc has no public setting for this; a test holds that it acts.
"""

from __future__ import annotations

from typing import Any, Final

from aiortc import RTCCertificate, RTCConfiguration, RTCPeerConnection

# aiortc's own, then those for RSA that are forward secret and authenticated.
CIPHERS: Final = (
    b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-SHA"
    b":ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305"
)


class Certificate(RTCCertificate):
    """A certificate with an elliptic curve whose connections take peers with either kind."""

    def _create_ssl_context(self, srtp_profiles: Any) -> Any:
        context = super()._create_ssl_context(srtp_profiles)
        context.set_cipher_list(CIPHERS)
        return context


def peer_connection() -> RTCPeerConnection:
    """A new connection, with a certificate of its own. No servers: nothing outside the local network is asked for an address."""
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    vars(connection)["_RTCPeerConnection__certificates"] = [Certificate.generateCertificate()]
    return connection
