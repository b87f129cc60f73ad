"""TLS from a connection's first byte, demanded or not, and a log line for each that is refused. Knows no protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from penstock.daemon.listening import shown_peer
from penstock.stream import Layers, Tls
from penstock.stream.tunnel import Tunnel

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.daemon.logging import Logger
    from penstock.daemon.security import Security
    from penstock.stream.doors import Doors


SILENCE: Final = 10.0  # seconds in which a client has to say something
_HANDSHAKE: Final = 0x16  # TLS begins with it, and none of NSQ's protocols


def over_tls(inner: asyncio.BaseProtocol, security: Security, logger: Logger, doors: Doors | None = None) -> Tunnel:
    """What accepts a connection in its place, with the certificate of the moment, if `doors` have room."""

    def refuse(tunnel: Tunnel, why: str) -> None:
        logger.warn("TLS: client(%s) refused: %s", shown_peer(tunnel.get_extra_info("peername")), why)

    context = security.certificates.server
    if context is None:
        raise AssertionError("nothing listens for TLS without a certificate")
    tls = Tls(context, server=True)
    return Tunnel(inner, Layers(tls), tls, on_ready=inner.connection_made, on_broken=refuse, doors=doors)


class Either(asyncio.Protocol):
    """A client that speaks TLS from its first byte on, or does not: the first byte says which."""

    def __init__(
        self, make: Callable[[], asyncio.Protocol], security: Security, logger: Logger, *, required: bool
    ) -> None:
        """`make` gives who talks to it."""
        self._make = make
        self._security = security
        self._logger = logger
        self._required = required

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._refuse, "it said nothing")

    def data_received(self, data: bytes) -> None:
        self._timer.cancel()
        if data[0] == _HANDSHAKE:
            over_tls(self._make(), self._security, self._logger).accept(self._transport, data)
        elif self._required:
            self._refuse("it does not speak TLS, which is required")
        else:
            inner = self._make()
            self._transport.set_protocol(inner)
            inner.connection_made(self._transport)
            if not self._transport.is_closing():
                inner.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()

    def _refuse(self, why: str) -> None:
        peer = shown_peer(self._transport.get_extra_info("peername"))
        self._logger.warn("TLS: client(%s) refused: %s", peer, why)
        self._transport.abort()
