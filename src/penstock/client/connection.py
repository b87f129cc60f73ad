"""A TCP connection to an nsqd: bytes in and out, through what was negotiated. Knows asyncio; no topic and no message.

    connect, handshake --> Connection --begin--> its user is told what comes, and once that it is lost

What is sent in one turn of the loop goes out in one piece.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from penstock.client.frames import ANSWER, ERROR, HEARTBEAT, Frames
from penstock.client.handshake import Ask, Secure, Wishes, handshake
from penstock.errors import BadStream, HandshakeFailed, answered_error
from penstock.protocol.requests import NOP

if TYPE_CHECKING:
    import ssl as tls

    from penstock.client.address import Address
    from penstock.client.handshake import Agreement, Step, Subscribed
    from penstock.client.turn import Turn
    from penstock.stream.layer import Layer

_SILENT: Final = 2.5  # heartbeats that did not come: nobody is there
_LARGEST: Final = 1 << 20  # bytes of an answer in the handshake


class User(Protocol):
    """Who is told what comes."""

    def received(self, frames: Frames, now: float) -> None:
        """There are messages or answers to be taken."""

    def lost(self, error: Exception | None) -> None:
        """The connection is over."""


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How a producer or a consumer speaks to each nsqd; `timeout` is for the way to a conversation."""

    wishes: Wishes = field(default_factory=Wishes)
    ssl: tls.SSLContext | None = None
    timeout: float = 5.0


class Connection(asyncio.Protocol):
    """Made by `connect`."""

    agreement: Agreement
    round_trip = 0.0  # seconds, as the handshake saw it

    def __init__(self, turn: Turn, heartbeat: float) -> None:
        self._turn = turn
        self._loop = turn.loop
        self._silence = _SILENT * heartbeat
        self._layer: Layer | None = None
        self._out: list[bytes] = []
        self._user: User | None = None
        self._error: Exception | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._early = b""  # what came during the handshake, and was not looked at yet
        self._watch: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def begin(self, frames: Frames, user: User) -> None:
        """From now on what comes is the user's, made into `frames`."""
        self._frames = frames
        self._user = user
        early, self._early = self._early, b""
        if self.closed.done():
            user.lost(self._error)
        elif early:
            self._take(early, self._loop.time())

    def send(self, data: bytes) -> None:
        """Sent at the end of this turn; into nothing where the connection is over."""
        if not self._out:
            self._turn.write(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if not self._transport.is_closing():
            self._transport.write(data if self._layer is None else self._layer.encode(data))

    def close(self) -> None:
        """Behind what was sent."""
        if self._out:
            self._flush()
        self._transport.close()

    def abort(self, error: Exception) -> None:
        self._error = self._error or error
        self._transport.abort()

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        if self._silence < math.inf:
            self._watch = self._loop.call_later(self._silence, self._listen)

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        if self._layer is None:
            self._come(data)
            return
        try:
            for piece in self._layer.decode(data):
                self._come(bytes(piece))
        except BadStream as error:
            self.abort(error)

    def _come(self, data: bytes) -> None:
        if self._user is None:
            self._early += data
            self._look()
        else:
            self._take(data, self._heard)

    def connection_lost(self, exc: Exception | None) -> None:
        self._error = self._error or exc
        if self._watch is not None:
            self._watch.cancel()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._error or ConnectionResetError("the nsqd closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)
        if self._user is not None:
            self._user.lost(self._error)

    def _take(self, data: bytes, now: float) -> None:
        frames = self._frames
        try:
            frames.feed(data, now)
        except HandshakeFailed as error:
            self.abort(error)
            return
        if frames.heartbeats:
            frames.heartbeats = 0
            self.send(NOP)
        if self._user is not None and (frames.messages or frames.answers):
            self._user.received(frames, now)

    def _listen(self) -> None:
        """Nothing, not even heartbeats, for too long: the other side is gone, and TCP has not noticed."""
        left = self._heard + self._silence - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._listen)
        else:
            self.abort(TimeoutError(f"nothing came for {self._silence:.0f} s, not even heartbeats"))

    # --- the handshake

    async def greet(self, manner: Manner, host: str, subscribe: Subscribed) -> None:
        steps = handshake(manner.wishes, subscribe)
        step = next(steps)
        while True:
            answer = await self._do(step, manner, host)
            try:
                step = steps.send(answer)
            except StopIteration as end:
                self.agreement = end.value
                return

    async def _do(self, step: Step, manner: Manner, host: str) -> bytes:
        if isinstance(step, Ask):
            return await self._ask(step.data)
        if isinstance(step, Secure):
            await self._secure(manner.ssl, host)
        else:
            self._layer = step.layer
            self._early = b"".join(step.layer.decode(self._early))
        return b""

    async def _ask(self, data: bytes) -> bytes:
        began = self._loop.time()
        self._answer = self._loop.create_future()
        if data:
            self._transport.write(data if self._layer is None else self._layer.encode(data))
        self._look()
        answer = await self._answer
        taken = self._loop.time() - began
        self.round_trip = min(self.round_trip or taken, taken)
        return answer

    async def _secure(self, context: tls.SSLContext | None, host: str) -> None:
        if context is None:
            raise HandshakeFailed("this nsqd wants TLS, and no ssl context was given")
        secured = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        if secured is None:
            raise HandshakeFailed("the connection ended while TLS began")
        self._transport = secured

    def _look(self) -> None:
        """Take one answer, if it is whole: what is behind it may be in another form."""
        answer, early = self._answer, self._early
        if answer is None or answer.done() or len(early) < 8:
            return
        size, kind = int.from_bytes(early[:4], "big"), int.from_bytes(early[4:8], "big")
        if not 4 <= size <= _LARGEST or kind not in (ANSWER, ERROR):
            answer.set_exception(HandshakeFailed(f"no nsqd: it answers with {early[:20]!r}"))
        elif len(early) >= 4 + size:
            data, self._early = early[8 : 4 + size], early[4 + size :]
            if kind == ERROR:
                answer.set_exception(answered_error(data))
            elif data == HEARTBEAT:
                self._transport.write(NOP if self._layer is None else self._layer.encode(NOP))
                self._look()
            else:
                answer.set_result(data)


async def connect(address: Address, turn: Turn, manner: Manner, subscribe: Subscribed = None) -> Connection:
    """One that the nsqd has agreed to; OSError, TimeoutError or a PenstockError where it does not come about."""
    wishes = manner.wishes
    async with asyncio.timeout(manner.timeout):
        _, connection = await turn.loop.create_connection(
            lambda: Connection(turn, wishes.heartbeat_interval or math.inf), address.host, address.port
        )
        try:
            await connection.greet(manner, address.host, subscribe)
        except BaseException:
            connection.abort(ConnectionAbortedError("the handshake failed"))
            raise
    return connection
