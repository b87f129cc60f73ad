# cython: annotation_typing=False
"""A TCP connection: bytes from the socket to its session and back. Knows asyncio; no command and no broker.

All connections receive into one shared buffer (see `protocol/inbox.py`). What a turn gives a connection to send goes
out in one piece at the turn's end.

A client that flushes each FIN makes a read of each message, and these would be most of what a delivery costs. So where
a consumer with plenty to do makes many small reads, it is not read for a moment (`Service.rest`), and its FINs come
together.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.broker.consumer import UNSENT
from penstock.daemon.listening import shown_peer
from penstock.nsqd.session import Session
from penstock.nsqd.upgrading import upgrade

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.nsqd.service import Service
    from penstock.protocol.identify import Agreement

_CONGESTED: Final = 256 << 10  # unsent bytes at which the loop tells of it, and again when most of them are gone
_DEAF: Final = 4 << 20  # unsent bytes at which a client is not read any more: it does not read its answers
_OWED: Final = 4096  # answers that wait for the device, at which it is not read any more either,
_PENDING: Final = 4 << 20  # or bytes that were published and are not answered
_HEAVY: Final = 64 << 10  # bytes held for a client that are not worth counting: most reads leave some
_CRUMB: Final = 8 << 10  # a read is small up to here,
_UNSENT: Final = UNSENT
_CRUMBS: Final = 8  # and after so many small ones a busy consumer's FINs are taken together


class Wire:
    """One client, but for what asyncio wants its protocols to be, which is no base for a compiled class."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._parts: list[bytes] = []
        self._deaf = False
        self._resting = False
        self._heavy = False  # what is held for it is counted
        self._crumbs = 0  # small reads, one behind the other
        self._clean = False
        self.heard = 0  # when something came last

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        service = self._service
        if service.doors is not None and not service.doors.enter(self, transport):
            return
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=_CONGESTED)  # type: ignore[attr-defined]
        service.begin_turn()
        self.heard = service.clock.now
        self.session = Session(service, shown_peer(transport.get_extra_info("peername")), self._out, service.shared)
        service.connections.add(self)
        service.of_session[self.session] = self
        service.admit(self.session)
        service.logger.info("TCP: new client(%s)", self.session.name)

    def get_buffer(self, _sizehint: int) -> Buffer:
        return self.session.inbox.room()

    def buffer_updated(self, nbytes: int) -> None:
        service, session = self._service, self.session
        service.begin_turn()
        self.heard = service.clock.now
        session.received(nbytes)
        if session.held:
            self._listen()
        if self._heavy or session.inbox.kept > _HEAVY:
            self._weigh()
        self._crumbs = self._crumbs + 1 if nbytes <= _CRUMB else 0
        if self._crumbs >= _CRUMBS and session.busy:
            self._rest()
        if session.ending or self._hears_enough():
            service.outgoing(self)

    def eof_received(self) -> bool:
        """What this turn brings still goes out: the connection is closed behind that."""
        self._clean = True
        self._service.begin_turn()
        self.session.cut_off()
        self._service.outgoing(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        service = self._service
        service.begin_turn()
        session = self.session
        service.connections.discard(self)
        service.release(session)
        service.of_session.pop(session, None)
        service.burden.forget(self)
        if service.doors is not None:
            service.doors.leave(self)
        session.leave(service.clock.now, aborted=exc is not None or not self._clean)
        if session.channel is not None and session.home is not None:
            service.node.left(session.home, session.channel)
        service.logger.info("PROTOCOL(V2): [%s] exiting", session.name)

    def pause_writing(self) -> None:
        """Its channel asks how much is unsent before it gives more."""

    def resume_writing(self) -> None:
        """The client reads again."""
        self.session.unsent = self._transport.get_write_buffer_size()
        if self._heavy:
            self._weigh()
        self._listen()
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Its channel may have stopped giving because so much was unsent."""
        self._service.begin_turn()
        session = self.session
        if session.channel is not None and session.consumer is not None:
            session.channel.wake(session.consumer)
            self._service.pump(session.channel)

    # --- sending

    def _out(self, data: bytes) -> None:
        self._parts.append(data)
        self._service.outgoing(self)

    def flush(self) -> None:
        """What the turn brought goes out; and the connection ends where that was the last."""
        parts, self._parts = self._parts, []
        transport, session = self._transport, self.session
        if parts and not transport.is_closing():
            full = session.unsent >= _UNSENT
            transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
            session.unsent = transport.get_write_buffer_size()
            if full and session.unsent < _UNSENT:  # the loop tells of this only where it was congested
                self._ask_for_more()
            if self._heavy or session.unsent > _HEAVY:
                self._weigh()
        if session.ending and session.ended:
            self._clean = True
            transport.close()
            return
        if session.upgrade is not None and not session.owes:
            self._upgrade(session.upgrade)
        self._listen()

    def _upgrade(self, agreement: Agreement) -> None:
        """All that was said in plain is said; what was heard behind it was not plain."""
        session, transport = self.session, self._transport
        session.upgrade = None
        tunnel = self._transport = upgrade(self, transport, agreement, self._service)  # type: ignore[arg-type]
        if self._deaf:
            self._deaf = False
            transport.resume_reading()
        tunnel.take_over(transport, session.inbox.take())

    def _weigh(self) -> None:
        session = self.session
        size = session.inbox.kept + session.unsent
        self._heavy = size > _HEAVY
        self._service.burden.hold(self, size if self._heavy else 0)

    def _rest(self) -> None:
        self._resting = True
        self._listen()
        self._service.rest(self)

    def rested(self) -> None:
        """The moment is over: what came meanwhile is read together."""
        self._resting = False
        self._listen()

    def _listen(self) -> None:
        """Read from the client as long as it takes its answers and they do not pile up."""
        deaf = self._resting or self._hears_enough()
        if deaf != self._deaf and not self._transport.is_closing():
            self._deaf = deaf
            (self._transport.pause_reading if deaf else self._transport.resume_reading)()

    def _hears_enough(self) -> bool:
        session = self.session
        return session.unsent > _DEAF or session.owes > _OWED or session.pending > _PENDING or session.held

    # --- ending

    def finish(self) -> None:
        """The node stops: nothing more is taken, what is owed goes out."""
        self.session.ending = True
        self._clean = True
        self._service.outgoing(self)

    def drop(self, why: str) -> None:
        """The client is not there any more."""
        self._service.logger.warn("PROTOCOL(V2): [%s] dropped: %s", self.session.name, why)
        self._transport.abort()


class Connection(Wire, asyncio.BufferedProtocol):
    """One client, as asyncio knows it."""
