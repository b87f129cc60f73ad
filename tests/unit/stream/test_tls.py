"""TLS without a socket: who is let in, who is not, and the reason that a log line gives."""

from __future__ import annotations

import datetime
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme

from penstock.errors import BadStream
from penstock.stream import Tls
from tests.unit.stream.peers import authority, connected, contexts, decoded, shake

if TYPE_CHECKING:
    from collections.abc import Callable


def demanding() -> ssl.SSLContext:
    """A server that wants to see certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("localhost", key_type=trustme.KeyType.ECDSA).configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority().configure_trust(context)
    return context


def client(cert: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(context)
    if cert is not None:
        cert.configure_cert(context)
    return context


def stranger() -> trustme.LeafCert:
    """Signed by nobody that we know."""
    return trustme.CA().issue_cert("client", key_type=trustme.KeyType.ECDSA)


def expired() -> trustme.LeafCert:
    long_ago = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    return authority().issue_cert("client", not_before=long_ago, not_after=long_ago, key_type=trustme.KeyType.ECDSA)


def old() -> ssl.SSLContext:
    context = client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def modern() -> ssl.SSLContext:
    context = contexts_of(authority())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def contexts_of(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost", key_type=trustme.KeyType.ECDSA).configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("server", "other", "why"),
    [
        pytest.param(demanding, client, "peer did not return a certificate", id="no-certificate"),
        pytest.param(demanding, lambda: client(stranger()), "unable to get local issuer", id="signed-by-another"),
        pytest.param(demanding, lambda: client(expired()), "certificate has expired", id="expired"),
        pytest.param(modern, old, "unsupported protocol", id="too-old-a-version"),
    ],
)
def test_a_server_says_why_it_refuses_a_client(
    server: Callable[[], ssl.SSLContext], other: Callable[[], ssl.SSLContext], why: str
) -> None:
    # given a server and a client that does not do what it demands
    one, two = Tls(server(), server=True), Tls(other(), server=False, name="localhost")
    # when they shake hands, then the server refuses it, for the reason that it has
    two.begin()
    with pytest.raises(BadStream, match=why):
        shake_hands(one, two)
    # and the client is told so
    with pytest.raises(BadStream, match=r"alert|required|unknown ca|expired|version"):
        decoded(two, one.outgoing())


@pytest.mark.parametrize(
    ("context", "name", "why"),
    [
        pytest.param(lambda: contexts_of(authority()), "example.org", "not valid for 'example.org'", id="another-name"),
        pytest.param(lambda: contexts_of(trustme.CA()), "localhost", "unable to get local issuer", id="another-signer"),
    ],
)
def test_a_client_says_why_it_refuses_a_server(context: Callable[[], ssl.SSLContext], name: str, why: str) -> None:
    # given a server that is not who the client wants to talk to
    one, two = Tls(context(), server=True), Tls(client(), server=False, name=name)
    # when they shake hands, then the client refuses it
    two.begin()
    with pytest.raises(BadStream, match=why):
        shake_hands(one, two)


def shake_hands(server: Tls, other: Tls) -> None:
    while True:
        decoded(server, other.outgoing())
        decoded(other, server.outgoing())


def test_who_shows_a_certificate_has_a_name() -> None:
    # given a client with a certificate for a name
    cert = authority().issue_cert("example.org", common_name="orders", key_type=trustme.KeyType.ECDSA)
    server, other = Tls(demanding(), server=True), Tls(client(cert), server=False, name="localhost")
    # when it has shaken hands
    shake(server, other)
    # then the server knows that name, and how they talk
    assert server.common_name == "orders"
    assert server.version == "TLSv1.3"
    assert server.cipher.startswith("TLS_")


def test_who_shows_none_has_no_name() -> None:
    server, _ = connected()
    assert server.common_name == ""


def test_what_is_no_tls_is_refused() -> None:
    with pytest.raises(BadStream, match="TLS: "):
        decoded(Tls(contexts().server, server=True), b"  V2PUB orders\n")


def test_a_record_that_was_changed_on_its_way_is_refused() -> None:
    # given a record
    server, other = connected()
    wire = bytearray(other.encode(b"hello"))
    # when one bit of it is another
    wire[-1] ^= 1
    # then nothing of it comes through
    with pytest.raises(BadStream, match="bad record mac"):
        decoded(server, bytes(wire))


def test_a_side_that_closes_is_known_to_have_ended() -> None:
    # given a client that sends something, and that nothing more will come
    server, other = connected()
    decoded(server, other.outgoing())
    wire = other.encode(b"last") + other.close()
    # when both come at once
    # then the last words are heard, and that it has ended
    assert decoded(server, wire) == b"last"
    assert server.ended
    # and it can still be answered
    assert server.encode(b"answer")
