"""TLS from a connection's first byte, and a log line for each that is refused. Knows no protocol above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.daemon.listening import shown_peer
from penstock.stream import Layers, Tls
from penstock.stream.tunnel import Tunnel

if TYPE_CHECKING:
    import asyncio

    from penstock.daemon.logging import Logger
    from penstock.daemon.security import Security


def over_tls(inner: asyncio.BaseProtocol, security: Security, logger: Logger) -> Tunnel:
    """What accepts a connection in its place, with the certificate of the moment, if there is room."""

    def refuse(tunnel: Tunnel, why: str) -> None:
        logger.warn("TLS: client(%s) refused: %s", shown_peer(tunnel.get_extra_info("peername")), why)

    context = security.certificates.server
    if context is None:
        raise AssertionError("nothing listens for TLS without a certificate")
    tls = Tls(context, server=True)
    return Tunnel(inner, Layers(tls), tls, on_ready=inner.connection_made, on_broken=refuse, doors=security.doors)
