"""Certificates made for the tests, and the two ends of a TLS connection that is made of bytes."""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import trustme

from penstock.stream import Tls

if TYPE_CHECKING:
    from penstock.stream import Layer


class Contexts(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext


@cache
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@cache
def contexts() -> Contexts:
    """A server for `localhost` and a client that trusts it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("localhost", key_type=trustme.KeyType.ECDSA).configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(client)
    return Contexts(server, client)


def shake(server: Tls, client: Tls) -> None:
    """Until both are ready."""
    client.begin()
    while not (server.ready and client.ready):
        decoded(server, client.outgoing())
        decoded(client, server.outgoing())


def decoded(layer: Layer, data: bytes) -> bytes:
    return b"".join(bytes(piece) for piece in layer.decode(data))


def connected() -> tuple[Tls, Tls]:
    """A server's side and a client's."""
    server, client = Tls(contexts().server, server=True), Tls(contexts().client, server=False, name="localhost")
    shake(server, client)
    return server, client
