"""A TCP connection of an nsqd: bytes from the socket to its session and back. Knows asyncio; no command."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final, cast

from penstock.daemon.listening import shown_peer
from penstock.nsqlookupd.session import Session

if TYPE_CHECKING:
    from penstock.nsqlookupd.service import Service

_SILENCE: Final = 15  # seconds, as in Go: a machine that is gone without a word is found out by the kernel


class Connection(asyncio.Protocol):
    def __init__(self, service: Service) -> None:
        self._service = service

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        service = self._service
        if service.doors is not None and not service.doors.enter(self, transport):
            return
        self._transport = cast("asyncio.Transport", transport)
        _keep_alive(transport.get_extra_info("socket"))
        address = shown_peer(transport.get_extra_info("peername"))
        self._session = Session(service.registrations, address, service.about, service.logger)
        service.connections.add(self)
        service.watch.add(self, service.advance())
        service.set_timer()
        service.logger.info("TCP: new client(%s)", address)

    def data_received(self, data: bytes) -> None:
        service, session = self._service, self._session
        now = service.advance()
        answers = session.received(data, now)
        if answers and session.known:
            service.watch.heard(self, now)
        self._send(answers)

    def eof_received(self) -> bool:
        self._service.advance()
        self._send(self._session.cut_off())
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        service = self._service
        service.advance()
        service.connections.discard(self)
        service.watch.remove(self)
        if service.doors is not None:
            service.doors.leave(self)
        self._session.leave()
        service.set_timer()
        service.logger.info("PROTOCOL(V1): [%s] exiting ioloop", self._session.address)

    def pause_writing(self) -> None:
        """It does not take its answers: it is not read."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    def drop(self, why: str) -> None:
        """It is not waited for any more."""
        self._service.logger.warn("PROTOCOL(V1): [%s] dropped: %s", self._session.address, why)
        self._transport.abort()

    def _send(self, answers: bytes) -> None:
        self._service.set_timer()
        if answers:
            self._transport.write(answers)
        if self._session.ended:
            self._transport.close()


def _keep_alive(sock: socket.socket) -> None:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SILENCE)
