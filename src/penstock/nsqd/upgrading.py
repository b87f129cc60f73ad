"""A connection that goes on through TLS, snappy or deflate, as its client asked. Knows asyncio; no command.

JSON, plain --> TLS handshake --> OK --> snappy or deflate --> OK --> what the client says next
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.frames import OK
from penstock.stream import Deflate, Layers, Snappy, Tls
from penstock.stream.tunnel import Tunnel

if TYPE_CHECKING:
    import asyncio

    from penstock.nsqd.connection import Connection
    from penstock.nsqd.service import Service
    from penstock.protocol.identify import Agreement


def upgrade(connection: Connection, transport: asyncio.Transport, agreement: Agreement, service: Service) -> Tunnel:
    """What the connection sends and hears by from now on."""
    session, logger = connection.session, service.logger
    tls = Tls(service.tls_context(), server=True) if agreement.tls_v1 else None

    def ready(tunnel: Tunnel) -> None:
        session.tls = tls
        if tls is not None:
            tunnel.write(OK)
        if agreement.snappy:
            tunnel.layers.add(Snappy())
            tunnel.write(OK)
        if agreement.deflate_level:
            tunnel.layers.add(Deflate(agreement.deflate_level))
            tunnel.write(OK)
        if agreement.compressed:  # little on the wire may be much that is unsent: it is told of each time that all is
            transport.set_write_buffer_limits(high=0)
        session.go_on()

    def broken(tunnel: Tunnel, why: str) -> None:
        if session.held and tls is not None and not tls.ready:
            logger.warn("TLS: client(%s) refused: %s", session.name, why)
        else:
            logger.warn("PROTOCOL(V2): [%s] dropped: %s", session.name, why)

    tunnel = Tunnel(connection, Layers() if tls is None else Layers(tls), tls, on_ready=ready, on_broken=broken)
    logger.info("PROTOCOL(V2): [%s] upgrading connection to %s", session.name, _wanted(agreement))
    return tunnel


def _wanted(agreement: Agreement) -> str:
    wanted = ["TLS"] * agreement.tls_v1 + ["snappy"] * agreement.snappy
    if agreement.deflate_level:
        wanted.append(f"deflate (level {agreement.deflate_level})")
    return ", ".join(wanted)
