"""A daemon's HTTP API on its ports: the plain one and, with a certificate, the one with TLS. Knows no route."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from penstock.daemon.http_log import HttpLog
from penstock.daemon.listening import bind, port_of, remove_socket, shown
from penstock.daemon.over_tls import over_tls
from penstock.daemon.standing import TlsRequired
from penstock.http import Server, always
from penstock.http import json as answer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from penstock.daemon.logging import Logger
    from penstock.daemon.security import Security
    from penstock.http import Route


class Addresses(Protocol):
    @property
    def http_address(self) -> str: ...
    @property
    def https_address(self) -> str: ...
    @property
    def tls_required(self) -> TlsRequired: ...


class HttpPorts:
    """They are bound at once, and answer when they `listen`; empty addresses are none."""

    def __init__(self, options: Addresses, security: Security, logger: Logger) -> None:
        self._options = options
        self._security = security
        self._logger = logger
        self._log = HttpLog(logger)
        self._servers: list[Server] = []
        with_tls = security.certificates.server is not None
        self._plain = bind(options.http_address) if options.http_address else None
        self._tls = bind(options.https_address) if options.https_address and with_tls else None
        self.http, self.https = port_of(self._plain), port_of(self._tls)

    async def listen(self, find: Callable[[bytes, bytes], Route]) -> None:
        """`find` is that of the routes."""
        security, logger = self._security, self._logger
        if self._plain is not None:
            closed = self._options.tls_required is TlsRequired.YES
            plain = self._server(tls_required(max(0, self.https)) if closed else find, security.doors is not None)
            await plain.listen(self._plain)
            logger.info("HTTP: listening on %s", shown(self._plain))
        if self._tls is not None:
            await self._server(find, False).listen(self._tls, self._over_tls)
            logger.info("HTTPS: listening on %s", shown(self._tls))
        self.follow_log()
        security.on_reload(self._forget)

    def follow_log(self) -> None:
        """The log has another level."""
        for server in self._servers:
            self._log.follow(server)

    async def stop(self, grace: float) -> None:
        for server in self._servers:
            await server.stop(grace)
        for address in (self._options.http_address, self._options.https_address):
            remove_socket(address)

    def _server(self, find: Callable[[bytes, bytes], Route], doors: bool) -> Server:
        security = self._security
        server = Server(
            find,
            guard=security.guard,
            doors=security.doors if doors else None,
            burden=security.burden,
            on_error=self._log.failed,
        )
        self._servers.append(server)
        return server

    def _over_tls(self, connection: asyncio.BaseProtocol) -> asyncio.BaseProtocol:
        return over_tls(connection, self._security, self._logger, self._security.doors)

    def _forget(self) -> None:
        for server in self._servers:
            server.forget()


def tls_required(port: int) -> Callable[[bytes, bytes], Route]:
    """What NSQ answers to whatever is asked where TLS is required: its JSON, to the space."""
    body = b'{"message": "TLS_REQUIRED", "https_port": %d}' % port
    refusal: Final = always(answer(body, 403), quiet=True)
    return lambda _method, _path: refusal
